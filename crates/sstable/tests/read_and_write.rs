//! Tables that Cassandra wrote are read; tables that we write are read back the same.

use crate::chunks::uncompressed;

use std::sync::Arc;

use proptest::prelude::*;
use rows::codec::StatsCollector;
use rows::{
    Bound, BoundKind, CellKind, CellRef, Clustering, ClusteringColumn, ColumnLayout, Deletion,
    Layout, Liveness, MarkerRef, RowBuilder, RowRef, Unfiltered,
};
use sstable::compression_params::CompressionParams;
use sstable::compressor::Compressor;
use sstable::data::{DataCursor, Next};
use sstable::descriptor::{Component, Descriptor};
use sstable::index::{Found, Promoted, read_entry};
use sstable::plain::PlainPartition;
use sstable::table::{Index, IndexParts, Parts, Table};
use sstable::writer::{Writer, WriterOptions};
use types::{CqlType, Token};

/// The files of a table, in memory.
struct Files {
    table: Arc<Table>,
    data: Vec<u8>,
    index: Vec<u8>,
}

/// A partition as read: key, deletion, static row, packed rows and markers.
type Partition = (Vec<u8>, Deletion, Option<Vec<u8>>, Vec<Vec<u8>>);

impl Files {
    fn open(
        descriptor: &str,
        data: Vec<u8>,
        index: Vec<u8>,
        part: impl Fn(&Component) -> Option<Vec<u8>>,
    ) -> Self {
        let (descriptor, _) = Descriptor::parse(&format!("{descriptor}-Data.db")).expect("a name");
        let parts = Parts {
            statistics: part(&Component::Statistics).expect("statistics"),
            filter: part(&Component::Filter),
            compression: part(&Component::CompressionInfo),
            checksums: part(&Component::Crc),
            data_length: data.len() as u64,
            index: IndexParts::Big {
                summary: part(&Component::Summary).expect("a summary"),
                length: index.len() as u64,
            },
        };
        let table = Arc::new(Table::open(descriptor, parts, false).expect("opens"));
        Self { table, data, index }
    }

    fn golden(name: &str) -> Self {
        let descriptor = if name.starts_with("oa-") { "oa-1-big" } else { "nb-1-big" };
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/");
        #[allow(clippy::disallowed_methods, reason = "golden files")]
        let read =
            |part: &Component| std::fs::read(format!("{directory}{name}/{descriptor}-{part}")).ok();
        let file = |part: Component| read(&part).expect("a file");
        Self::open(descriptor, file(Component::Data), file(Component::Index), read)
    }

    fn feed(&self, cursor: &mut DataCursor) {
        let range = self.table.chunk_at(cursor.wants()).expect("a chunk");
        let stored = &self.data[range.offset as usize..range.offset as usize + range.length];
        let chunk = self.table.decode_chunk(range, stored).expect("verifies");
        cursor.feed(&chunk[(cursor.wants() - range.start) as usize..]);
    }

    fn partition_at(&self, cursor: &mut DataCursor) -> Partition {
        let start = loop {
            match cursor.partition_start().expect("a partition") {
                Some(start) => break start,
                None => self.feed(cursor),
            }
        };
        let (mut unfiltereds, mut packed) = (Vec::new(), Vec::new());
        loop {
            match cursor.next(&mut packed).expect("an unfiltered") {
                Next::Unfiltered => unfiltereds.push(packed.clone()),
                Next::End => return (start.key, start.deletion, start.static_row, unfiltereds),
                Next::NeedMore => self.feed(cursor),
            }
        }
    }

    /// All partitions, by the index; each is found by its key too.
    fn read(&self) -> Vec<Partition> {
        let mut partitions = Vec::new();
        let mut at = 0;
        let mut end = 0;
        while at < self.index.len() {
            let left = (self.index.len() - at) as u64;
            let Found::Entry(entry) = read_entry(&self.index[at..], left).expect("an entry") else {
                panic!("the whole index is there")
            };
            assert_eq!(entry.position, end, "partitions follow each other");
            let token = Token::of(entry.key);
            assert!(self.table.may_contain(token, entry.key));
            let Index::Big { summary, .. } = &self.table.index else { panic!("of big format") };
            let start = summary.floor(token, entry.key);
            assert!(start.expect("not before all") <= at as u64);
            let mut cursor = DataCursor::new(&self.table, entry.position);
            let partition = self.partition_at(&mut cursor);
            assert_eq!(partition.0, entry.key);
            if !entry.promoted.is_empty() {
                self.check_blocks(entry.position, entry.promoted, &partition);
            }
            end = cursor.position();
            partitions.push(partition);
            at += entry.length;
        }
        assert_eq!(end, self.table.uncompressed_length());
        partitions
    }

    /// Where partitions begin.
    fn positions(&self) -> Vec<usize> {
        let (mut positions, mut at) = (Vec::new(), 0);
        while let Ok(Found::Entry(entry)) =
            read_entry(&self.index[at..], (self.index.len() - at) as u64)
        {
            positions.push(entry.position as usize);
            at += entry.length;
            if at == self.index.len() {
                break;
            }
        }
        positions
    }

    /// The promoted index of a key.
    fn promoted(&self, key: &[u8]) -> Promoted {
        let mut at = 0;
        loop {
            let left = (self.index.len() - at) as u64;
            match read_entry(&self.index[at..], left).expect("an entry") {
                Found::Entry(entry) if entry.key == key => {
                    let format = sstable::table::format(self.table.descriptor.version);
                    return Promoted::read(&self.table.layout, format, entry.promoted)
                        .expect("an index");
                }
                Found::Entry(entry) => at += entry.length,
                Found::NeedMore(_) => panic!("the whole index is there"),
            }
        }
    }

    /// Each block starts at its first row and ends at its last one.
    fn check_blocks(&self, position: u64, promoted: &[u8], partition: &Partition) {
        let format = sstable::table::format(self.table.descriptor.version);
        let promoted = Promoted::read(&self.table.layout, format, promoted).expect("an index");
        assert!(promoted.blocks.len() > 1);
        let mut rest = partition.3.iter();
        let mut cursor = DataCursor::new(&self.table, 0);
        for block in &promoted.blocks {
            cursor.seek(position + block.offset);
            let (mut packed, mut places) = (Vec::new(), Vec::new());
            while cursor.position() < position + block.offset + block.width {
                match cursor.next(&mut packed).expect("an unfiltered") {
                    Next::Unfiltered => {
                        assert_eq!(Some(&packed), rest.next());
                        places.push(Unfiltered::from_packed(&packed).position().to_owned());
                    }
                    Next::End => break,
                    Next::NeedMore => self.feed(&mut cursor),
                }
            }
            assert_eq!(places.first(), Some(&block.first));
            assert_eq!(places.last(), Some(&block.last));
        }
        assert_eq!(rest.next(), None);
    }
}

#[test]
fn reads_what_cassandra_wrote() {
    for name in ["lz4", "plain", "snappy", "deflate", "zstd", "noop", "ratio"] {
        let files = Files::golden(name);
        let partitions = files.read();
        assert!(!partitions.is_empty(), "{name}");
        let statistics = &files.table.statistics;
        assert_eq!(statistics.stats.rows as usize, partitions.iter().map(|p| p.3.len()).sum());
    }
}

#[test]
fn reads_oa() {
    let files = Files::golden("oa-wide");
    let partitions = files.read();
    assert_eq!(partitions.iter().map(|p| p.3.len()).collect::<Vec<_>>(), [1633, 1]);
    let stats = &files.table.statistics.stats;
    assert_eq!(stats.keys, Some((vec![0, 0, 0, 1], vec![0, 0, 0, 2])));
    let first: Vec<_> = stats.start.values.as_ref().iter().collect();
    assert_eq!(first, [Some(&0i32.to_be_bytes()[..]), Some(&[][..])]);
    let promoted = files.promoted(&[0, 0, 0, 1]);
    assert!(promoted.blocks.iter().any(|block| block.open.is_some()));

    let files = Files::golden("oa-kinds");
    let partitions = files.read();
    let deletion = |key: i32| {
        let found = partitions.iter().find(|p| p.0 == key.to_be_bytes()).expect("a partition");
        found.1.marked_for_delete_at
    };
    const WRITTEN: i64 = 1_700_000_000_000_000;
    assert_eq!((deletion(4), deletion(5)), (WRITTEN + 40, WRITTEN + 5));
    assert_eq!((deletion(1000), deletion(0)), (WRITTEN + 40, Deletion::LIVE.marked_for_delete_at));
    // cells that expire in 20 years, beyond what a signed integer of 32 bits holds
    let stats = &files.table.statistics.stats;
    assert!(stats.max_local_deletion_time > i64::from(i32::MAX));
    assert_eq!(stats.max_ttl, 630_720_000);
    let expires = |row: RowRef<'_>| {
        row.cells().any(|cell| {
            cell.ttl == 630_720_000
                && cell.local_deletion_time > i64::from(i32::MAX)
                && cell.local_deletion_time <= stats.max_local_deletion_time
        })
    };
    let rows = partitions.iter().flat_map(|p| &p.3);
    let expiring = rows.filter(|packed| match Unfiltered::from_packed(packed) {
        Unfiltered::Row(row) => expires(row),
        Unfiltered::Marker(_) => false,
    });
    assert_eq!(expiring.count(), 10);
}

#[test]
fn writes_what_cassandra_wrote() {
    for name in ["lz4", "plain", "noop", "oa-wide", "oa-kinds"] {
        let golden = Files::golden(name);
        let stats = golden.table.statistics.clone();
        let compression = match &golden.table.storage {
            sstable::table::Storage::Compressed(info, compressor) => Some(CompressionParams {
                compressor: *compressor,
                options: info.options.iter().cloned().collect(),
                chunk_length: info.chunk_length,
                min_compress_ratio: 0.0,
            }),
            sstable::table::Storage::Plain(_) => None,
        };
        let mut options = options(Arc::clone(&golden.table.layout), compression);
        options.stats = stats.header.stats;
        options.key_type = stats.header.key_type.clone();
        options.log_intervals = stats.stats.log_intervals.clone();
        options.host_id = stats.stats.host_id;
        options.filter_chance = stats.filter_chance;
        options.version = golden.table.descriptor.version;
        if name == "oa-wide" {
            options.column_index_bytes = 4 << 10;
        }
        let partitions = golden.read();
        let (again, small) = write(options, &partitions);
        // a failure that prints megabytes is not read
        assert!(
            again.index == golden.index,
            "{name}: {} {}",
            again.index.len(),
            golden.index.len()
        );
        assert!(again.read() == partitions, "{name}");
        // two encoders of LZ4 need not agree
        assert!(
            uncompressed(&again.table, &again.data) == uncompressed(&golden.table, &golden.data),
            "{name}"
        );
        let statistics = &again.table.statistics;
        let mut want = stats.stats;
        want.compression_ratio = statistics.stats.compression_ratio;
        assert_eq!(statistics.stats, want, "{name}");
        assert_eq!(statistics.header, stats.header, "{name}");
        assert_eq!(statistics.cardinality, stats.cardinality, "{name}");
        assert!(small.iter().any(|(component, _)| *component == Component::Toc));
    }
}

fn options(layout: Arc<Layout>, compression: Option<CompressionParams>) -> WriterOptions {
    WriterOptions {
        version: sstable::descriptor::NB,
        layout,
        key_type: "org.apache.cassandra.db.marshal.BytesType".into(),
        stats: rows::codec::EncodingStats::NONE,
        compression,
        filter_chance: 0.01,
        partitions: 10,
        bytes: 0,
        min_index_interval: 128,
        column_index_bytes: 64 << 10,
        log_intervals: Vec::new(),
        host_id: None,
        level: 0,
        repaired_at: 0,
        pending_repair: None,
    }
}

fn write(options: WriterOptions, partitions: &[Partition]) -> (Files, Vec<(Component, Vec<u8>)>) {
    write_each(options, partitions, |_, _, _| false)
}

/// `take_over` may append the rows of a partition in its own way; it is given the number of it.
fn write_each(
    options: WriterOptions,
    partitions: &[Partition],
    mut take_over: impl FnMut(&mut Writer, usize, &mut Vec<u8>) -> bool,
) -> (Files, Vec<(Component, Vec<u8>)>) {
    let version = options.version;
    let mut writer = Writer::new(options);
    let (mut data, mut index) = (Vec::new(), Vec::new());
    for (number, (key, deletion, static_row, unfiltereds)) in partitions.iter().enumerate() {
        let static_row = static_row.as_deref().map(RowRef::from_packed);
        writer.start_partition(key, *deletion, static_row).expect("starts");
        if !take_over(&mut writer, number, &mut data) {
            for packed in unfiltereds {
                writer.append(Unfiltered::from_packed(packed)).expect("appends");
                data.append(writer.data());
            }
        }
        writer.end_partition().expect("ends");
        index.append(writer.index());
    }
    let small = writer.finish().expect("finishes").expect("is not empty");
    data.append(writer.data());
    index.append(writer.index());
    let part = |wanted: &Component| {
        small.iter().find(|(component, _)| component == wanted).map(|(_, bytes)| bytes.clone())
    };
    let files = Files::open(&format!("{version}-1-big"), data, index, part);
    (files, small)
}

fn rows_of(layout: &Layout, places: &[i32]) -> Vec<Vec<u8>> {
    let row = |place: &i32| {
        let place = place.to_be_bytes();
        let mut builder = RowBuilder::new();
        builder.start_row(Clustering::new([Some(&place[..]), Some(&b"x"[..])]).as_ref());
        builder.liveness(Liveness::new(1));
        builder.finish_row(layout).as_packed().to_vec()
    };
    places.iter().map(row).collect()
}

#[test]
fn rows_of_a_damaged_file_that_are_out_of_order_are_not_written() {
    let layout = layout();
    // the first clustering column is reversed
    for (places, holds) in [([3, 2, 1], true), ([3, 1, 2], false)] {
        let mut options = options(Arc::clone(&layout), None);
        options.column_index_bytes = 1;
        let mut writer = Writer::new(options);
        writer.start_partition(b"key", Deletion::LIVE, None).expect("starts");
        let rows = rows_of(&layout, &places);
        let written = rows.iter().try_for_each(|row| writer.append(Unfiltered::from_packed(row)));
        assert_eq!(written.is_ok(), holds, "{places:?}: {written:?}");
    }
}

#[test]
fn a_key_that_has_no_length_in_the_format_is_not_written() {
    let mut writer = Writer::new(options(layout(), None));
    assert!(writer.start_partition(&[7; 65_536], Deletion::LIVE, None).is_err());
    assert!(writer.start_partition(&[7; 65_535], Deletion::LIVE, None).is_ok());
}

#[test]
#[should_panic = "partitions are written in order of token and key"]
fn partitions_come_in_order() {
    let mut keys = [&b"a"[..], b"b"];
    keys.sort_by_key(|key| types::Token::of(key));
    let mut writer = Writer::new(options(layout(), None));
    for key in keys.into_iter().rev() {
        writer.start_partition(key, Deletion::LIVE, None).expect("starts");
        writer.end_partition().expect("ends");
    }
}

fn layout() -> Arc<Layout> {
    let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
    let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: false };
    Arc::new(Layout::new(
        vec![
            ClusteringColumn { ty: CqlType::Int, reversed: true },
            ClusteringColumn { ty: CqlType::Text, reversed: false },
        ],
        vec![column("s", CqlType::Text)],
        vec![column("i", CqlType::Int), column("l", list), column("t", CqlType::Text)],
        false,
    ))
}

#[derive(Clone, Debug)]
enum Item {
    Row { at: (i32, String), value: Option<Vec<u8>>, ttl: bool, deleted: bool },
    Range { from: i32, to: i32 },
}

fn item() -> impl Strategy<Value = Item> {
    let row = (
        (-50i32..50, "[a-c]{0,2}"),
        prop::option::of(prop::collection::vec(any::<u8>(), 0..3000)),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(at, value, ttl, deleted)| Item::Row { at, value, ttl, deleted });
    let range =
        (-50i32..50, -50i32..50).prop_map(|(a, b)| Item::Range { from: a.max(b), to: a.min(b) });
    prop_oneof![8 => row, 1 => range]
}

/// Rows and markers of a partition in order, as a memtable would give them.
fn unfiltereds(layout: &Arc<Layout>, items: &[Item]) -> Vec<Vec<u8>> {
    let mut scratch = RowBuilder::new();
    let mut update = rows::UpdateBuilder::new([0; 16], Arc::clone(layout), b"k");
    for (n, item) in items.iter().enumerate() {
        let timestamp = 1_700_000_000_000_000 + n as i64;
        match item {
            Item::Row { at, value, ttl, deleted } => {
                let (first, second) = (at.0.to_be_bytes(), at.1.as_bytes());
                let clustering = Clustering::new([Some(&first[..]), Some(second)]);
                let mut row = RowBuilder::new();
                row.start_row(clustering.as_ref());
                if *ttl {
                    row.liveness(Liveness::expiring(timestamp, 100, 1_700_000_100));
                }
                if *deleted {
                    row.deletion(Deletion::new(timestamp - 1, 1_700_000_000));
                }
                row.cell(CellRef::live(0, None, timestamp, &7i32.to_be_bytes()));
                row.cell(CellRef::live(2, Some(&[1; 16]), timestamp, &[0, 0, 0, 9]));
                match value {
                    Some(value) => row.cell(CellRef::live(1, None, timestamp, value)),
                    None => row.cell(CellRef::tombstone(1, None, timestamp, 1_700_000_000)),
                }
                update.add(row.finish_row(layout), &mut scratch);
            }
            Item::Range { from, to } => update.delete_range(rows::RangeTombstone {
                // the first clustering column is descending
                start: Bound::new(
                    BoundKind::InclStart,
                    Clustering::new([Some(&from.to_be_bytes()[..])]),
                ),
                end: Bound::new(BoundKind::InclEnd, Clustering::new([Some(&to.to_be_bytes()[..])])),
                deletion: Deletion::new(timestamp, 1_700_000_000),
            }),
        }
    }
    let update = update.finish(&mut scratch);
    let pack = |unfiltered: Unfiltered<'_>| {
        let mut packed = Vec::new();
        unfiltered.pack(&mut packed);
        packed
    };
    update.unfiltereds(false).map(pack).collect()
}

/// Simple columns only, and a clustering column or none.
fn simple_layout(has_clustering: bool) -> Arc<Layout> {
    let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
    let place = ClusteringColumn { ty: CqlType::Text, reversed: true };
    Arc::new(Layout::new(
        if has_clustering { vec![place] } else { Vec::new() },
        Vec::new(),
        vec![column("i", CqlType::Int), column("t", CqlType::Text), column("u", CqlType::Blob)],
        false,
    ))
}

const NOW: i64 = 1_700_000_000_000_000;

/// A row: its time to live if it has liveness, and of some columns how far the cell is from it: its
/// timestamp and time to live, or a deletion; and a value's length.
type Row = (Option<bool>, [Option<(CellKind, bool, u8)>; 3]);

fn row() -> impl Strategy<Value = Row> {
    let often = |value: bool| prop_oneof![12 => Just(value), 1 => Just(!value)];
    let kind = prop_oneof![
        20 => Just(CellKind::Live), 1 => Just(CellKind::Tombstone), 1 => Just(CellKind::Expiring),
    ];
    let cell = prop::option::weighted(0.8, (kind, often(false), prop_oneof![Just(0), 1u8..200]));
    (prop::option::weighted(0.95, often(false)), [cell.clone(), cell.clone(), cell])
}

fn is_plain((liveness, cells): &Row) -> bool {
    let mut cells = cells.iter().flatten();
    *liveness == Some(false)
        && cells.all(|(kind, is_off, _)| (*kind, *is_off) == (CellKind::Live, false))
}

fn packed_row(layout: &Layout, place: &str, number: i64, (liveness, cells): &Row) -> Vec<u8> {
    let mut row = RowBuilder::new();
    let clustering =
        Clustering::new((!layout.clustering.is_empty()).then_some(Some(place.as_bytes())));
    row.start_row(clustering.as_ref());
    if let Some(expires) = liveness {
        row.liveness(match expires {
            true => Liveness::expiring(NOW + number, 100, 1_700_000_100),
            false => Liveness::new(NOW + number),
        });
    }
    for (column, (kind, is_off, length)) in
        cells.iter().enumerate().filter_map(|(n, c)| Some((n, (*c)?)))
    {
        let (column, timestamp) = (column as u16, NOW + number + i64::from(is_off));
        let value = match column {
            0 => 7i32.to_be_bytes()[..if length == 0 { 0 } else { 4 }].to_vec(),
            _ => vec![b'x'; length.into()],
        };
        row.cell(match kind {
            CellKind::Tombstone => CellRef::tombstone(column, None, timestamp, 1_700_000_000),
            CellKind::Expiring => {
                CellRef::expiring(column, None, timestamp, 9, 1_700_000_009, &value)
            }
            _ => CellRef::live(column, None, timestamp, &value),
        });
    }
    row.finish_row(layout).as_packed().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Rows that are taken over as they lie are what they are when they are taken apart and encoded
    /// anew, down to the last byte of each file; and just those are taken over in which nothing is
    /// deleted, expires, or has a timestamp of its own.
    #[test]
    fn rows_that_are_taken_over_are_the_same(
        partitions in prop::collection::vec(prop::collection::vec(row(), 1..12), 1..12),
        has_clustering in any::<bool>(),
        (earlier, later) in (0i64..100_000, 0i64..100_000),
        block in prop_oneof![Just(64 << 10), 100u64..1000],
        (flip_at, flip) in (any::<prop::sample::Index>(), 1u8..),
    ) {
        let layout = simple_layout(has_clustering);
        let partitions: Vec<_> = partitions.into_iter().map(|mut rows| {
            rows.truncate(if has_clustering { rows.len() } else { 1 });
            rows
        }).collect();
        let mut all: Vec<(Partition, bool)> = partitions.iter().enumerate().map(|(n, rows)| {
            let packed = |(n, row)| {
                packed_row(&layout, &"abcdefghijkl"[11 - n..], n as i64, row)
            };
            let key = format!("key{n}").into_bytes();
            // the places descend
            let packed: Vec<_> = rows.iter().enumerate().map(packed).collect();
            let empty = |row: &Vec<u8>| RowRef::from_packed(row).is_empty();
            let mut there = rows.iter().filter(|(liveness, cells)| liveness.is_some() || cells.iter().any(Option::is_some));
            let is_plain = there.all(is_plain);
            let packed: Vec<_> = packed.into_iter().filter(|row| !empty(row)).rev().collect();
            ((key, Deletion::LIVE, None, packed), is_plain)
        }).collect();
        all.retain(|((_, _, _, packed), _)| !packed.is_empty());
        prop_assume!(!all.is_empty());
        all.sort_by_key(|((key, ..), _)| (Token::of(key), key.clone()));
        for ((.., packed), _) in &mut all {
            packed.sort_by(|a, b| {
                let place = |row| RowRef::from_packed(row).clustering();
                rows::compare(&layout, place(a), place(b))
            });
        }
        let (all, plain): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let of = |shift: i64| {
            let mut options = options(Arc::clone(&layout), Some(CompressionParams::default()));
            options.stats.min_timestamp = NOW - shift;
            options.column_index_bytes = block;
            options
        };
        let (from, _) = write(of(earlier), &all);
        prop_assert_eq!(from.read(), all.clone());
        let bytes = uncompressed(&from.table, &from.data);
        let mut places: Vec<usize> = from.positions();
        places.push(bytes.len());
        let bytes_of = |number: usize| &bytes[places[number]..places[number + 1]];
        prop_assert!(PlainPartition::fits(&from.table, &layout));

        let (wanted, wanted_small) = write(of(later), &all);
        let mut found = PlainPartition::default();
        let (made, small) = write_each(of(later), &all, |writer, number, data| {
            let is_plain = found.read(&from.table, &all[number].0, bytes_of(number));
            assert_eq!(is_plain, plain[number], "partition {number}");
            for (place, row) in found.rows().filter(|_| is_plain) {
                writer.append_plain(place, row, bytes_of(number)).expect("appends");
                data.append(writer.data());
            }
            is_plain
        });
        prop_assert_eq!((made.data, made.index, small), (wanted.data, wanted.index, wanted_small));

        // what is damaged is refused, or read as the same rows by the decoder
        let number = flip_at.index(all.len());
        let mut damaged = bytes_of(number).to_vec();
        let at = flip_at.index(damaged.len());
        damaged[at] ^= flip;
        if found.read(&from.table, &all[number].0, &damaged) {
            let mut cursor = DataCursor::new(&from.table, places[number] as u64);
            cursor.feed(&damaged);
            prop_assert!(cursor.partition_start().expect("a partition").is_some());
            let (mut packed, mut rows) = (Vec::new(), 0);
            while cursor.next(&mut packed).expect("a row") != Next::End {
                rows += 1;
            }
            prop_assert_eq!(rows, found.rows().count());
        }
    }

    #[test]
    fn what_is_written_is_read(
        partitions in prop::collection::vec(prop::collection::vec(item(), 0..60), 1..12),
        deleted in any::<bool>(),
        compressor in prop::option::of(0usize..4),
        chunk in 10u32..15,
        block in 1u64..20_000,
    ) {
        let layout = layout();
        let compression = compressor.map(|n| CompressionParams {
            compressor: [Compressor::Lz4, Compressor::Snappy, Compressor::Deflate, Compressor::Noop][n],
            options: Default::default(),
            chunk_length: 1 << chunk,
            min_compress_ratio: if n == 0 { 1.1 } else { 0.0 },
        });
        let deletion = if deleted { Deletion::new(5, 6) } else { Deletion::LIVE };
        let mut all: Vec<Partition> = partitions.iter().enumerate().map(|(n, items)| {
            let key = format!("key{n}").into_bytes();
            let mut row = RowBuilder::new();
            row.start_static();
            row.cell(CellRef::live(0, None, 1, b"static"));
            let static_row = (n % 2 == 0).then(|| row.finish_row(&layout).as_packed().to_vec());
            (key, deletion, static_row, unfiltereds(&layout, items))
        }).collect();
        all.sort_by_key(|(key, ..)| (Token::of(key), key.clone()));
        let mut options = options(Arc::clone(&layout), compression);
        options.column_index_bytes = block;
        let mut collector = StatsCollector::default();
        for packed in all.iter().flat_map(|partition| &partition.3) {
            match Unfiltered::from_packed(packed) {
                Unfiltered::Row(row) => collector.row(row),
                Unfiltered::Marker(MarkerRef { end, start, .. }) => {
                    collector.deletion(end);
                    collector.deletion(start);
                }
            }
        }
        options.stats = collector.finish();
        let (files, _) = write(options, &all);
        prop_assert_eq!(files.read(), all);
    }

    /// No damage to a chunk goes unnoticed, none makes the reader panic.
    #[test]
    fn damage_is_found(at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut files = Files::golden("lz4");
        let at = at.index(files.data.len());
        files.data[at] ^= flip;
        let table = &files.table;
        let mut found = false;
        let mut position = 0;
        while position < table.uncompressed_length() {
            let range = table.chunk_at(position).expect("a chunk");
            let stored = &files.data[range.offset as usize..range.offset as usize + range.length];
            found |= table.decode_chunk(range, stored).is_err();
            position = range.start + range.uncompressed as u64;
        }
        prop_assert!(found);
    }

    #[test]
    fn damaged_statistics_and_indexes_are_refused_or_read(
        at in any::<prop::sample::Index>(), flip in 1u8.., cut in any::<bool>(),
    ) {
        let files = Files::golden("lz4");
        let version = sstable::descriptor::NB;
        let mut bytes = files.table.statistics.encode(version).expect("encodes");
        let n = at.index(bytes.len());
        if cut { bytes.truncate(n) } else { bytes[n] ^= flip }
        prop_assert!(sstable::statistics::Statistics::parse(&bytes, version).is_err());
        let mut index = files.index.clone();
        let n = at.index(index.len());
        index[n] ^= flip;
        if let Ok(Found::Entry(entry)) = read_entry(&index, index.len() as u64) {
            let format = rows::codec::Format::SstableNb;
            let _ = Promoted::read(&files.table.layout, format, entry.promoted);
            let _ = Promoted::read(&files.table.layout, format, &index);
        }
    }
}
