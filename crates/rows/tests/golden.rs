//! Bytes captured from a Cassandra 5.0.9 (interop.md, 4.9), read and written bit for bit.

use rows::codec::*;
use rows::*;
use std::sync::Arc;
use types::hex::{from_hex, to_hex};
use types::{CqlType, Reader};

const TABLE: &str = "3c5b3720e5dd11f19a151b96078e4459";
const TS: i64 = 1_700_000_000_000_000;

/// `ks.t (k int, c text, s int static, v int, m map<text, int>, f frozen<list<int>>, si smallint,
/// d date, PRIMARY KEY (k, c))`
fn layout() -> Arc<Layout> {
    let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
    let map = CqlType::Map { key: CqlType::Text.into(), value: CqlType::Int.into(), frozen: false };
    Arc::new(Layout::new(
        vec![ClusteringColumn { ty: CqlType::Text, reversed: false }],
        vec![column("s", CqlType::Int)],
        vec![
            column("v", CqlType::Int),
            column("m", map),
            column("f", CqlType::List { element: CqlType::Int.into(), frozen: true }),
            column("si", CqlType::SmallInt),
            column("d", CqlType::Date),
        ],
        false,
    ))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.chars().filter(|c| c.is_ascii_hexdigit()).collect();
    from_hex(&digits).expect("hex")
}

fn m1() -> Vec<u8> {
    bytes(&format!(
        "01 {TABLE} 0400000001 18 fce9d96a43bfff f015014f53 00 | 010173 |
         05 0164 0166 027369 0176 016d | a001 00 01 00000005 | 01 | 64 00 0161 01 | 08 04 80004756 |
         08 14 00000002000000040000000100000004 00000002 | 08 02 0003 | 08 00000007 |
         00 00 02 08 0178 04 00000001 08 0179 04 00000002 | 01"
    ))
}

fn m2() -> Vec<u8> {
    bytes(&format!(
        "01 {TABLE} 0400000001 10 fce9d96a43c001 f015014f53 00 00 00 | 02 01 0001 00 0162 00 00 |
         02 00 0001 00 0164 00 00 | 01"
    ))
}

fn m3() -> Vec<u8> {
    bytes(&format!(
        "01 {TABLE} 0400000001 10 fce9d96a43c002 f015014f53 83e8 010176 01 |
         2c 00 017a 00 00 83e8 | 0d 00 | 01"
    ))
}

/// The whole partition as a data response tells it, without the two bytes before and one after.
fn response() -> Vec<u8> {
    let data = bytes(
        "0001040000000108fce9d96a43bffff015014f5383e80000a001000100000005640001610108048000475608
         1400000002000000040000000100000004000000020802000308000000070000020801780400000001080179
         04000000020201000100016202000200000100016402000c00017a030083e8170d000100",
    );
    data[2..data.len() - 1].to_vec()
}

fn decode(bytes: &[u8]) -> Mutation {
    let layout = layout();
    let table = from_hex(TABLE).expect("hex");
    let layout_of = |id: &[u8; 16]| (id[..] == table[..]).then(|| layout.clone());
    let mut reader = Reader::new(bytes);
    let mutation = MutationDecoder::new().mutation(&mut reader, &layout_of).expect("decodes");
    assert!(reader.is_empty());
    mutation
}

#[track_caller]
fn assert_round_trip(bytes: &[u8]) {
    let mut out = Vec::new();
    MutationEncoder::new().mutation(&decode(bytes), &mut out).expect("encodes");
    assert_eq!(to_hex(&out), to_hex(bytes));
}

#[test]
fn an_insert_with_static_row_and_map() {
    let bytes = m1();
    assert_round_trip(&bytes);
    let mutation = decode(&bytes);
    let update = &mutation.updates()[0];
    assert_eq!(mutation.key(), [0, 0, 0, 1]);
    let static_row = update.static_row().expect("a static row");
    assert_eq!(static_row.cells().collect::<Vec<_>>(), [CellRef::live(0, None, TS, &[0, 0, 0, 5])]);
    let rows: Vec<_> = update.rows.iter().collect();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].clustering().get(0), Some(Some(&b"a"[..])));
    assert_eq!(rows[0].liveness(), Some(Liveness::new(TS)));
    let deleted = rows[0].cells().find(|c| c.is_complex_deletion()).expect("the map overwritten");
    assert_eq!(deleted.as_deletion().marked_for_delete_at, TS - 1);
    assert_eq!(
        rows[0].cells().skip(3).filter(|c| !c.is_complex_deletion()).collect::<Vec<_>>(),
        [
            CellRef::live(3, None, TS, &[0, 0, 0, 7]),
            CellRef::live(4, Some(b"x"), TS, &[0, 0, 0, 1]),
            CellRef::live(4, Some(b"y"), TS, &[0, 0, 0, 2]),
        ]
    );
}

#[test]
fn a_range_deletion() {
    let bytes = m2();
    assert_round_trip(&bytes);
    let mutation = decode(&bytes);
    let ranges: Vec<_> = mutation.updates()[0].ranges.iter().cloned().collect();
    assert_eq!(ranges.len(), 1);
    assert_eq!(
        ranges[0].start,
        Bound::new(BoundKind::InclStart, Clustering::new([Some(&b"b"[..])]))
    );
    assert_eq!(ranges[0].end, Bound::new(BoundKind::ExclEnd, Clustering::new([Some(&b"d"[..])])));
    assert_eq!(ranges[0].deletion.marked_for_delete_at, TS + 1);
}

#[test]
fn an_expiring_insert_of_null() {
    let bytes = m3();
    assert_round_trip(&bytes);
    let mutation = decode(&bytes);
    let row = mutation.updates()[0].rows.get(0).expect("a row");
    let liveness = row.liveness().expect("liveness");
    assert_eq!((liveness.timestamp, liveness.ttl), (TS + 2, 1000));
    let cell = row.cell(3).expect("v");
    assert!(cell.is_tombstone());
    assert_eq!(cell.local_deletion_time + 1000, liveness.expires_at);
}

/// The three mutations merged are what Cassandra answered.
#[test]
fn the_partition_that_the_mutations_make() {
    let layout = layout();
    let mutations = [decode(&m1()), decode(&m2()), decode(&m3())];
    let updates: Vec<_> = mutations.iter().map(|m| &m.updates()[0]).collect();
    let fetched = Header::of_layout(Format::Messaging12, EncodingStats::NONE, &layout);
    let expected = response();

    let mut decoder = Decoder::new();
    let selection = Selection::Fetched(&fetched);
    let start = read_partition_start(&layout, selection, &expected, &mut decoder).expect("a start");
    let header = start.header.clone().expect("rows");
    let mut out = Vec::new();
    let mut encoder = Encoder::new();
    write_partition_start(&layout, &header, selection, &start, &mut encoder, &mut out)
        .expect("encodes");
    assert_eq!(start.static_row.as_deref(), updates[0].static_row().map(|row| row.as_packed()));

    let mut streams: Vec<_> = updates.iter().map(|u| u.unfiltereds(false).peekable()).collect();
    let mut merger = UnfilteredMerger::new(streams.len(), Deletion::LIVE, false);
    let mut builder = RowBuilder::new();
    let mut at = start.consumed;
    loop {
        let heads: Vec<_> = streams.iter_mut().map(|s| s.peek().copied()).collect();
        let step = merger.step(&layout, &heads[..], &mut builder);
        let decoded = decoder.unfiltered(&layout, &header, &expected[at..]).expect("decodes");
        match (step, decoded) {
            (Step::Next(merged), Decoded::Unfiltered { unfiltered, consumed }) => {
                assert_eq!(merged, unfiltered);
                encoder.unfiltered(&layout, &header, merged, 0, &mut out).expect("encodes");
                at += consumed;
            }
            (Step::End, Decoded::End { consumed }) => {
                at += consumed;
                break;
            }
            other => panic!("{other:?}"),
        }
        for source in merger.consumed() {
            streams[*source].next();
        }
    }
    write_partition_end(&mut out);
    assert_eq!(at, expected.len());
    assert_eq!(to_hex(&out), to_hex(&expected));
}

#[test]
fn partition_deletions_on_disk() {
    let live = "7fffffff8000000000000000";
    let deletion = Deletion::new(TS, 1_795_000_000);
    for (format, deletion, hex) in [
        (Format::SstableNb, Deletion::LIVE, live),
        (Format::SstableOa, Deletion::LIVE, "80"),
        (Format::SstableNb, deletion, "6afd86c000060a24181e4000"),
        (Format::SstableOa, deletion, "00060a24181e40006afd86c0"),
    ] {
        let mut out = Vec::new();
        write_partition_deletion(format, deletion, &mut out);
        assert_eq!(to_hex(&out), hex);
        assert_eq!(read_partition_deletion(format, &mut Reader::new(&out)), Ok(deletion));
    }
}

/// Cells of a collection that come in no order, or twice, are put in order as Cassandra does.
#[test]
fn a_collection_out_of_order_is_sorted() {
    let text = to_hex(&m1());
    let (x, y) = ("0801780400000001", "0801790400000002");
    let swapped = text.replace(&format!("02{x}{y}"), &format!("03{y}{x}{y}"));
    assert_ne!(swapped, text);
    let mut out = Vec::new();
    MutationEncoder::new().mutation(&decode(&bytes(&swapped)), &mut out).expect("encodes");
    assert_eq!(to_hex(&out), text);
}

/// Every cut of a message is noticed; none is read as something else.
#[test]
fn what_is_cut_short_is_an_error() {
    let layout = layout();
    for bytes in [m1(), m2(), m3()] {
        for cut in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..cut]);
            let result = MutationDecoder::new().mutation(&mut reader, &|_| Some(layout.clone()));
            assert!(result.is_err(), "cut at {cut}");
        }
    }
}

/// The MD5 that Cassandra answered a digest read of the same partition with.
#[test]
fn the_digest_of_the_partition() {
    use md5::Digest;
    let layout = layout();
    let fetched = Header::of_layout(Format::Messaging12, EncodingStats::NONE, &layout);
    let bytes = response();
    let mut decoder = Decoder::new();
    let start = read_partition_start(&layout, Selection::Fetched(&fetched), &bytes, &mut decoder)
        .expect("a start");
    let header = start.header.as_ref().expect("rows");
    let mut hasher = md5::Md5::new();
    let mut sink = |bytes: &[u8]| hasher.update(bytes);
    let partition = digest::PartitionDigest {
        key: start.key,
        deletion: Some(start.deletion),
        is_reversed: start.is_reversed,
        static_row: start.static_row.as_deref().map(RowRef::from_packed),
    };
    partition.digest(&layout, |_, _| true, &mut sink);
    let mut at = start.consumed;
    while let Decoded::Unfiltered { unfiltered, consumed } =
        decoder.unfiltered(&layout, header, &bytes[at..]).expect("decodes")
    {
        digest::digest_unfiltered(&layout, unfiltered, &mut sink);
        at += consumed;
    }
    assert_eq!(to_hex(&hasher.finalize()), "c2c0f47dbe9f0218271a84c7cc8515cc");
}
