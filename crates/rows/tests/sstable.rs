//! Data.db files that a Cassandra 5.0.9 flushed (`captured/`: the bases of the header, then the
//! file in hex), read unfiltered by unfiltered and written again bit for bit.
//!
//! ```text
//! a (k int, c1 int, c2 text, s int static, sm map<text,int> static, v int, b bigint, si smallint,
//!    d date, dec decimal, l list<int>, m map<int,text>, st set<text>, u ud, fu frozen<ud>,
//!    vec vector<float,2>, PRIMARY KEY (k,c1,c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)
//! ud (x int, y text)
//! w (k int PRIMARY KEY, c00 int .. c69 int)
//! ```

use proptest::prelude::*;
use rows::codec::*;
use rows::*;
use std::sync::Arc;
use types::hex::{from_hex, to_hex};
use types::{CqlType, Reader, UserType, WriteBytes};

fn column(name: &str, ty: CqlType) -> ColumnLayout {
    ColumnLayout { name: name.into(), ty }
}

fn diverse() -> Layout {
    let map = |key: CqlType, value: CqlType| CqlType::Map {
        key: key.into(),
        value: value.into(),
        frozen: false,
    };
    let definition = Arc::new(UserType {
        keyspace: "g1".into(),
        name: "ud".into(),
        fields: vec![("x".into(), CqlType::Int), ("y".into(), CqlType::Text)],
    });
    let udt = |frozen| CqlType::Udt { definition: definition.clone(), frozen };
    Layout::new(
        vec![
            ClusteringColumn { ty: CqlType::Int, reversed: true },
            ClusteringColumn { ty: CqlType::Text, reversed: false },
        ],
        vec![column("s", CqlType::Int), column("sm", map(CqlType::Text, CqlType::Int))],
        vec![
            column("v", CqlType::Int),
            column("b", CqlType::BigInt),
            column("si", CqlType::SmallInt),
            column("d", CqlType::Date),
            column("dec", CqlType::Decimal),
            column("l", CqlType::List { element: CqlType::Int.into(), frozen: false }),
            column("m", map(CqlType::Int, CqlType::Text)),
            column("st", CqlType::Set { element: CqlType::Text.into(), frozen: false }),
            column("u", udt(false)),
            column("fu", udt(true)),
            column("vec", CqlType::Vector { element: CqlType::Float.into(), dimension: 2 }),
        ],
        false,
    )
}

fn wide() -> Layout {
    let columns = (0..70).map(|at| column(&format!("c{at:02}"), CqlType::Int)).collect();
    Layout::new(vec![], vec![], columns, false)
}

struct Captured {
    header: Header,
    data: Vec<u8>,
}

fn captured(format: Format, layout: &Layout, text: &str) -> Captured {
    let mut lines = text.lines();
    let bases: Vec<i64> = lines
        .next()
        .expect("bases")
        .split(' ')
        .map(|number| number.parse().expect("a number"))
        .collect();
    let stats = EncodingStats {
        min_timestamp: bases[0],
        min_local_deletion_time: bases[1],
        min_ttl: bases[2] as i32,
    };
    let data = from_hex(&lines.collect::<String>()).expect("hex");
    Captured { header: Header::of_layout(format, stats, layout), data }
}

/// Feeds a decoder only what it asks for; checks the peek; returns the packed unfiltered.
fn next(
    decoder: &mut Decoder,
    layout: &Layout,
    header: &Header,
    bytes: &[u8],
    is_static: bool,
) -> Option<(Vec<u8>, usize)> {
    let mut fed = 1;
    loop {
        let input = &bytes[..fed];
        let decoded = match is_static {
            true => decoder.static_row(layout, header, input),
            false => decoder.unfiltered(layout, header, input),
        };
        match decoded.expect("decodes") {
            Decoded::NeedMore(wanted) => {
                assert!(wanted > fed && wanted <= bytes.len());
                fed = wanted;
            }
            Decoded::End { consumed } => {
                assert_eq!(consumed, 1);
                return None;
            }
            Decoded::Nothing { consumed } => return Some((vec![], consumed)),
            Decoded::Unfiltered { unfiltered, consumed } => {
                assert_eq!(consumed, fed);
                let mut packed = Vec::new();
                unfiltered.pack(&mut packed);
                let place = unfiltered.position().to_owned();
                if !is_static {
                    match decoder.peek(layout, header, bytes).expect("peeks") {
                        Peeked::At { position, len } => {
                            assert_eq!((position.to_owned(), len), (place, consumed));
                        }
                        other => panic!("{other:?}"),
                    }
                }
                return Some((packed, consumed));
            }
        }
    }
}

/// Reads a whole file and writes it again; returns the packed unfiltereds of each partition.
fn round_trip(layout: &Layout, captured: &Captured) -> Vec<Vec<Vec<u8>>> {
    let Captured { header, data } = captured;
    let (mut decoder, mut encoder) = (Decoder::new(), Encoder::new());
    let mut partitions = Vec::new();
    let mut out = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let start = at;
        let mut reader = Reader::new(&data[at..]);
        let key = reader.short_bytes().expect("a key");
        let deletion = read_partition_deletion(header.format, &mut reader).expect("a deletion");
        out.put_short_bytes(key).expect("short");
        write_partition_deletion(header.format, deletion, &mut out);
        at += reader.position();
        let mut unfiltereds = Vec::new();
        if !layout.statics.is_empty() {
            let (row, consumed) =
                next(&mut decoder, layout, header, &data[at..], true).expect("a static row");
            let mut empty = RowBuilder::new();
            empty.start_static();
            let row =
                if row.is_empty() { empty.finish_row(layout) } else { RowRef::from_packed(&row) };
            encoder.row(layout, header, row, 0, &mut out).expect("encodes");
            unfiltereds.push(row.as_packed().to_vec());
            at += consumed;
        }
        let mut previous = start;
        while let Some((packed, consumed)) = next(&mut decoder, layout, header, &data[at..], false)
        {
            let unfiltered = Unfiltered::from_packed(&packed);
            let size = (at - previous) as u64;
            encoder.unfiltered(layout, header, unfiltered, size, &mut out).expect("encodes");
            previous = at;
            at += consumed;
            unfiltereds.push(packed);
        }
        Encoder::end(&mut out);
        at += 1;
        partitions.push(unfiltereds);
    }
    assert_eq!(to_hex(&out), to_hex(data));
    partitions
}

fn check_diverse(format: Format, text: &str) {
    let layout = diverse();
    let partitions = round_trip(&layout, &captured(format, &layout, text));
    assert_eq!(partitions.len(), 4);
    let of_key_1 = partitions.iter().max_by_key(|unfiltereds| unfiltereds.len()).expect("some");
    let markers: Vec<_> = of_key_1
        .iter()
        .filter_map(|packed| match Unfiltered::from_packed(packed) {
            Unfiltered::Marker(marker) => Some((marker.bound.kind, marker.end, marker.start)),
            Unfiltered::Row(_) => None,
        })
        .collect();
    let kinds: Vec<_> = markers.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(
        kinds,
        [
            // c1 > 6 AND c1 < 9 in descending order
            BoundKind::ExclStart,
            BoundKind::ExclEnd,
            // c1 = 5: c2 >= b AND < f, overlapped by >= d AND < h; c2 > j
            BoundKind::InclStart,
            BoundKind::ExclEndInclStart,
            BoundKind::ExclEnd,
            BoundKind::ExclStart,
            BoundKind::InclEnd,
            // c1 = 4
            BoundKind::InclStart,
            BoundKind::InclEnd,
        ]
    );
    let rows: Vec<_> = of_key_1
        .iter()
        .filter_map(|packed| match Unfiltered::from_packed(packed) {
            Unfiltered::Row(row) if !row.is_static() => Some(row),
            _ => None,
        })
        .collect();
    assert!(rows.is_sorted_by(|a, b| {
        compare_clusterings(&layout, a.clustering(), b.clustering()).is_lt()
    }));
    let deleted = rows.iter().find(|row| !row.deletion().is_live()).expect("c1 = 3, c2 = d");
    assert_eq!(deleted.deletion().marked_for_delete_at, 1_700_000_000_000_004);
    assert_eq!(deleted.liveness(), Some(Liveness::new(1_700_000_000_000_005)));
}

fn check_wide(format: Format, text: &str) {
    let layout = wide();
    let partitions = round_trip(&layout, &captured(format, &layout, text));
    let mut counts: Vec<_> = partitions
        .iter()
        .map(|unfiltereds| RowRef::from_packed(&unfiltereds[0]).cells().count())
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2, 34, 35, 68, 70]);
}

#[test]
fn nb_of_many_types() {
    check_diverse(Format::SstableNb, include_str!("captured/nb-a.txt"));
}

#[test]
fn nb_of_many_columns() {
    check_wide(Format::SstableNb, include_str!("captured/nb-w.txt"));
}

#[test]
fn oa_of_many_types() {
    check_diverse(Format::SstableOa, include_str!("captured/oa-a.txt"));
}

#[test]
fn oa_of_many_columns() {
    check_wide(Format::SstableOa, include_str!("captured/oa-w.txt"));
}

/// Reads what it can of a damaged file's first partition.
fn read_damaged(layout: &Layout, header: &Header, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new();
    let mut unfiltereds = Vec::new();
    let mut at = 2 + 4 + 12;
    if let Some(rest) = bytes.get(at..)
        && let Ok(Decoded::Unfiltered { consumed, .. } | Decoded::Nothing { consumed }) =
            decoder.static_row(layout, header, rest)
    {
        at += consumed;
    }
    while let Some(rest) = bytes.get(at..) {
        match decoder.unfiltered(layout, header, rest) {
            Ok(Decoded::Unfiltered { unfiltered, consumed }) => {
                let mut packed = Vec::new();
                unfiltered.pack(&mut packed);
                unfiltereds.push(packed);
                at += consumed;
            }
            Ok(Decoded::Nothing { consumed } | Decoded::End { consumed }) => at += consumed,
            _ => break,
        }
    }
    unfiltereds
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Checksums stand before the decoder; yet whatever comes through is merged, purged, hashed and
    /// written without a panic.
    #[test]
    fn damaged_files_do_no_harm(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        reversed: bool,
    ) {
        let layout = diverse();
        let captured =
            captured(Format::SstableNb, &layout, include_str!("captured/nb-a.txt"));
        let mut bytes = captured.data.clone();
        for (at, with) in damage {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        let good = read_damaged(&layout, &captured.header, &captured.data);
        let bad = read_damaged(&layout, &captured.header, &bytes);
        let mut streams = [good.iter().peekable(), bad.iter().peekable()];
        let mut merger = UnfilteredMerger::new(2, Deletion::LIVE, reversed);
        let (mut builder, mut out) = (RowBuilder::new(), RowBuilder::new());
        let mut encoder = Encoder::new();
        let purger = Purger::live_only(1_800_000_000, false);
        loop {
            let heads = [0, 1].map(|source| {
                let stream: &mut std::iter::Peekable<_> = &mut streams[source];
                stream.peek().map(|packed: &&Vec<u8>| Unfiltered::from_packed(packed))
            });
            match merger.step(&layout, &heads[..], &mut builder) {
                Step::End => break,
                Step::Nothing => {}
                Step::Next(unfiltered) => {
                    let mut bytes = Vec::new();
                    encoder
                        .unfiltered(&layout, &captured.header, unfiltered, 0, &mut bytes)
                        .expect("what was decoded can be encoded");
                    digest::digest_unfiltered(&layout, unfiltered, &mut |_: &[u8]| {});
                    match unfiltered {
                        Unfiltered::Row(row) => {
                            purge_row(&layout, row, &purger, &mut out);
                        }
                        Unfiltered::Marker(marker) => {
                            purge_marker(marker, &purger);
                        }
                    }
                }
            }
            for source in merger.consumed() {
                streams[*source].next();
            }
        }
    }
}
