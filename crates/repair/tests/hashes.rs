//! Guava's hashes, whole and in pieces; hashes of partitions as Cassandra's validation takes them.

use std::sync::Arc;

use repair::{PartitionHasher, hash_bytes};
use rows::codec::MutationDecoder;
use schema::{ColumnKind, Table, TableBuilder, TableId};
use types::hex::to_hex;
use types::{CqlType, Reader, hash128_unsigned};

use crate::common::{hex, vectors};

/// `new java.util.Random(seed).nextBytes`.
fn java_bytes(seed: u64) -> Vec<u8> {
    let mut state = (seed ^ 0x5_DEEC_E66D) & ((1 << 48) - 1);
    let mut next = move || {
        state = (state.wrapping_mul(0x5_DEEC_E66D) + 0xB) & ((1 << 48) - 1);
        (state >> 16) as u32
    };
    let words = (0..seed.div_ceil(4)).flat_map(|_| next().to_le_bytes());
    words.take(seed as usize).collect()
}

#[test]
fn are_guavas() {
    let mut lengths = Vec::new();
    for parts in vectors("5.0.9", "hash") {
        let bytes = match parts[0].strip_prefix("random:") {
            Some(length) => java_bytes(length.parse().unwrap()),
            None => hex(parts[0]),
        };
        assert_eq!(to_hex(&hash_bytes(&[&bytes])), parts[1], "{} bytes", bytes.len());
        // pieces of each length, so that each fill of a block meets each piece
        for piece in 1..40 {
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            assert_eq!(to_hex(&hash_bytes(&pieces)), parts[1], "{} in {piece}", bytes.len());
        }
        // an empty piece, and one piece that is longer than a block behind a shorter one
        let (head, tail) = bytes.split_at(bytes.len().min(5));
        assert_eq!(to_hex(&hash_bytes(&[&[], head, &[], tail])), parts[1]);
        lengths.push(bytes.len());
    }
    assert!(lengths.len() >= 200 && lengths.iter().any(|length| *length > 2000));
}

#[test]
fn are_the_two_hashes_of_all_bytes() {
    for seed in 0..300 {
        let bytes = java_bytes(seed);
        let words = [1000, 2000].map(|seed| hash128_unsigned(&bytes, seed));
        let expected: Vec<u8> =
            words.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(hash_bytes(&[&bytes]).to_vec(), expected);
    }
}

/// The tables of the vectors.
fn tables() -> Vec<(&'static str, Table)> {
    use ColumnKind::{Clustering, PartitionKey, Regular, Static};
    let table = |name: &str| Table::builder("ks", name, TableId([0; 16]));
    let set = |element: CqlType| CqlType::Set { element: element.into(), frozen: false };
    let map = CqlType::Map { key: CqlType::Text.into(), value: CqlType::Int.into(), frozen: false };
    let t = table("t")
        .column("k", CqlType::Int, PartitionKey)
        .column("c", CqlType::Text, Clustering)
        .column("s", CqlType::Int, Static)
        .column("v", CqlType::Int, Regular)
        .column("m", map, Regular)
        .column("b", CqlType::Boolean, Regular)
        .column("z", set(CqlType::Int), Static);
    let mut u = table("u")
        .column("a", CqlType::Int, PartitionKey)
        .column("b", CqlType::Text, PartitionKey)
        .column("c1", CqlType::Int, Clustering)
        .column("c2", CqlType::BigInt, Clustering)
        .column("x", CqlType::Blob, Regular)
        .column("l", set(CqlType::Text), Regular);
    u.columns.iter_mut().for_each(|column| column.reversed = &*column.name == "c1");
    let mut n = table("n").column("k", CqlType::BigInt, PartitionKey).column(
        "n",
        CqlType::Counter,
        Regular,
    );
    n.flags.counter = true;
    let all = [("t", t), ("u", u), ("n", n)];
    all.into_iter().map(|(name, builder): (_, TableBuilder)| (name, builder.build())).collect()
}

#[test]
fn partitions_hash_as_in_cassandras_validation() {
    let tables = tables();
    // one hasher for all partitions of a table, as validation has it
    let hashers = tables.iter().map(|(_, table)| PartitionHasher::new(&table.layout));
    let mut hashers: Vec<_> = hashers.collect();
    let (mut partitions, mut statics, mut deletions) = (0, 0, 0);
    for parts in vectors("5.0.9", "partition") {
        let at = tables.iter().position(|(name, _)| *name == parts[0]).expect("a table");
        let bytes = hex(parts[1]);
        let layout = Arc::clone(&tables[at].1.layout);
        let layout_of = move |_: &[u8; 16]| Some(Arc::clone(&layout));
        let update = MutationDecoder::new().update(&mut Reader::new(&bytes), &layout_of);
        let update = update.expect("Cassandra wrote it");
        let hasher = &mut hashers[at];
        hasher.start(&update.key, update.deletion, update.static_row());
        update.unfiltereds(false).for_each(|unfiltered| hasher.unfiltered(unfiltered));
        assert_eq!(to_hex(&hasher.finish()), parts[2], "{parts:?}");
        partitions += 1;
        statics += usize::from(update.static_row().is_some());
        deletions += usize::from(!update.deletion.is_live());
    }
    assert!(partitions == 60 && statics >= 5 && deletions >= 2, "{statics} {deletions}");
}
