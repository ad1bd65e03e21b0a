//! Tables that Cassandra wrote are read; tables that we write are read back the same.

use std::sync::Arc;

use proptest::prelude::*;
use rows::codec::StatsCollector;
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringColumn, ColumnLayout, Deletion, Layout,
    Liveness, MarkerRef, RowBuilder, RowRef, Unfiltered,
};
use sstable::compression_params::CompressionParams;
use sstable::compressor::Compressor;
use sstable::data::{DataCursor, Next};
use sstable::descriptor::{Component, Descriptor};
use sstable::index::{Found, Promoted, read_entry};
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
    assert_eq!(stats.min_clustering, [0i32.to_be_bytes().to_vec(), Vec::new()]);
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
    for name in ["lz4", "plain", "noop"] {
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
        let partitions = golden.read();
        let (again, small) = write(options, &partitions);
        assert_eq!(again.index, golden.index, "{name}");
        assert_eq!(again.read(), partitions, "{name}");
        if name != "lz4" {
            // two LZ4 encoders need not agree
            assert_eq!(again.data, golden.data, "{name}");
        }
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
        layout,
        key_type: "org.apache.cassandra.db.marshal.BytesType".into(),
        stats: rows::codec::EncodingStats::NONE,
        compression,
        filter_chance: 0.01,
        partitions: 10,
        min_index_interval: 128,
        column_index_bytes: 64 << 10,
        log_intervals: Vec::new(),
        host_id: None,
        level: 0,
        repaired_at: 0,
    }
}

fn write(options: WriterOptions, partitions: &[Partition]) -> (Files, Vec<(Component, Vec<u8>)>) {
    let mut writer = Writer::new(options);
    let (mut data, mut index) = (Vec::new(), Vec::new());
    for (key, deletion, static_row, unfiltereds) in partitions {
        let static_row = static_row.as_deref().map(RowRef::from_packed);
        writer.start_partition(key, *deletion, static_row).expect("starts");
        for packed in unfiltereds {
            writer.append(Unfiltered::from_packed(packed)).expect("appends");
            data.append(writer.data());
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
    let files = Files::open("nb-1-big", data, index, part);
    (files, small)
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

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
        let mut bytes = files.table.statistics.encode();
        let n = at.index(bytes.len());
        if cut { bytes.truncate(n) } else { bytes[n] ^= flip }
        prop_assert!(sstable::statistics::Statistics::parse(&bytes, sstable::descriptor::NB).is_err());
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
