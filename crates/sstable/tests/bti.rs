//! Tables of BTI format that Cassandra wrote (testdata/README.md), and tries made here, are walked.

use crate::chunks::uncompressed;
use crate::trie_builder;

use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use rows::codec::Format as RowFormat;
use rows::{Bound, BoundKind, Clustering, ClusteringColumn, Layout, RowRef, Unfiltered, compare};
use sstable::bti::{
    Node, PAGE_BYTES, PARTITIONS_TAIL_MAX, Pages, PartitionPlace, Partitions, Payload, RowBlock,
    RowsEntry, Search, TrieCursor, TrieWriter, bound_bytes, key_bytes, key_hash_byte,
};
use sstable::compression_params::CompressionParams;
use sstable::data::{DataCursor, Next, PartitionStart};
use sstable::descriptor::{Component, Descriptor};
use sstable::statistics::Statistics;
use sstable::table::{IndexParts, Parts, Storage, Table, format};
use sstable::writer::{Writer, WriterOptions};
use sstable::{Error, Result};
use trie_builder::TrieBuilder;
use types::{CqlType, Token};

/// A file in memory, in pages of some size.
struct Memory {
    bytes: Vec<u8>,
    page: u64,
}

impl Pages for Memory {
    type Error = Error;

    async fn page(&self, position: u64) -> Result<(u64, Rc<Vec<u8>>)> {
        let start = position - position % self.page;
        let end = (start + self.page).min(self.bytes.len() as u64);
        let page = self.bytes.get(start as usize..end as usize).unwrap_or_default();
        Ok((start, Rc::new(page.to_vec())))
    }

    fn component(&self) -> &'static str {
        "a trie"
    }

    fn corrupt(&self, error: Error) -> Error {
        error
    }
}

/// The pages are at hand: nothing is ever waited for.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("memory is always ready"),
    }
}

/// A partition as read, with its packed rows and markers.
type Partition = (PartitionStart, Vec<Vec<u8>>);

struct Files {
    table: Arc<Table>,
    partitions: Partitions,
    data: Vec<u8>,
    keys: Memory,
    rows: Memory,
}

impl Files {
    /// What a writer gives.
    fn written(mut writer: Writer, partitions: &[Partition]) -> Self {
        let (mut data, mut keys, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut take = |writer: &mut Writer| {
            data.append(writer.data());
            keys.append(writer.index());
            rows.append(writer.rows().expect("BTI has such a file"));
        };
        for (start, unfiltereds) in partitions {
            let static_row = start.static_row.as_deref().map(RowRef::from_packed);
            writer.start_partition(&start.key, start.deletion, static_row).expect("starts");
            for packed in unfiltereds {
                writer.append(Unfiltered::from_packed(packed)).expect("appends");
                take(&mut writer);
            }
            writer.end_partition().expect("ends");
            take(&mut writer);
        }
        let small = writer.finish().expect("finishes").expect("is not empty");
        take(&mut writer);
        Self::open(|part| {
            let small = small.iter().find(|(component, _)| *component == part);
            match part {
                Component::Data => Some(data.clone()),
                Component::Partitions => Some(keys.clone()),
                Component::Rows => Some(rows.clone()),
                _ => small.map(|(_, bytes)| bytes.clone()),
            }
        })
    }

    fn golden(name: &str) -> Self {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/");
        #[allow(clippy::disallowed_methods, reason = "golden files")]
        let read = |part| std::fs::read(format!("{directory}{name}/da-1-bti-{part}")).ok();
        Self::open(read)
    }

    fn open(read: impl Fn(Component) -> Option<Vec<u8>>) -> Self {
        let (keys, rows) = (read(Component::Partitions), read(Component::Rows));
        let (keys, rows) = (keys.expect("partitions"), rows.expect("rows"));
        let data = read(Component::Data).expect("data");
        let (descriptor, _) = Descriptor::parse("da-1-bti-Data.db").expect("a name");
        let tail = keys.len().saturating_sub(PARTITIONS_TAIL_MAX as usize);
        let parts = Parts {
            statistics: read(Component::Statistics).expect("statistics"),
            filter: read(Component::Filter),
            compression: read(Component::CompressionInfo),
            checksums: read(Component::Crc),
            data_length: data.len() as u64,
            index: IndexParts::Bti {
                tail: keys[tail..].to_vec(),
                length: keys.len() as u64,
                rows_length: rows.len() as u64,
            },
        };
        let partitions = Partitions::parse(&keys[tail..], keys.len() as u64).expect("a footer");
        let table = Arc::new(Table::open(descriptor, parts, false).expect("opens"));
        let page = 4 * PAGE_BYTES;
        let (keys, rows) = (Memory { bytes: keys, page }, Memory { bytes: rows, page });
        Self { table, partitions, data, keys, rows }
    }

    fn feed(&self, cursor: &mut DataCursor) {
        let range = self.table.chunk_at(cursor.wants()).expect("a chunk");
        let stored = &self.data[range.offset as usize..range.offset as usize + range.length];
        let chunk = self.table.decode_chunk(range, stored).expect("verifies");
        cursor.feed(&chunk[(cursor.wants() - range.start) as usize..]);
    }

    /// Where the partition at a place starts in the data.
    fn position(&self, place: PartitionPlace) -> u64 {
        match place {
            PartitionPlace::Data(position) => position,
            PartitionPlace::Rows(at) => self.entry(at).position,
        }
    }

    fn entry(&self, at: u64) -> RowsEntry<'_> {
        RowsEntry::parse(&self.rows.bytes[at as usize..], at).expect("an entry")
    }

    fn place(&self, cursor: &mut TrieCursor) -> PartitionPlace {
        let (flags, payload) = now(cursor.payload(&self.keys)).expect("reads").expect("an entry");
        PartitionPlace::parse(flags, &payload, None).expect("parses").expect("without a hash")
    }

    /// All partitions as the data has them one after the other: key, where it starts, places of
    /// unfiltereds and where each starts.
    fn scan(&self) -> Vec<(Vec<u8>, u64, Vec<(u64, Bound)>)> {
        self.scan_with(|_, _| {}).0
    }

    /// The same, and what they are.
    fn partitions(&self) -> Vec<Partition> {
        let mut all: Vec<Vec<Vec<u8>>> = Vec::new();
        let (_, starts) = self.scan_with(|number, packed| {
            all.resize(number + 1, Vec::new());
            all[number].extend(packed.map(<[u8]>::to_vec));
        });
        starts.into_iter().zip(all).collect()
    }

    fn scan_with(
        &self,
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> (Vec<(Vec<u8>, u64, Vec<(u64, Bound)>)>, Vec<PartitionStart>) {
        let mut cursor = DataCursor::new(&self.table, 0);
        let (mut found, mut starts) = (Vec::new(), Vec::new());
        while cursor.position() < self.table.uncompressed_length() {
            let at = cursor.position();
            let start = loop {
                match cursor.partition_start().expect("a partition") {
                    Some(start) => break start,
                    None => self.feed(&mut cursor),
                }
            };
            let (mut packed, mut places) = (Vec::new(), Vec::new());
            let mut before = cursor.position();
            loop {
                match cursor.next(&mut packed).expect("an unfiltered") {
                    Next::Unfiltered => {
                        each(found.len(), Some(&packed));
                        let place = Unfiltered::from_packed(&packed).position().to_owned();
                        places.push((before - at, place));
                        before = cursor.position();
                    }
                    Next::End => break,
                    Next::NeedMore => self.feed(&mut cursor),
                }
            }
            each(found.len(), None);
            found.push((start.key.clone(), at, places));
            starts.push(start);
        }
        (found, starts)
    }

    /// That every partition, and every block of it, is found by the index.
    fn check(&self) {
        let scanned = self.scan();
        assert_eq!(scanned.len() as u64, self.partitions.count);
        let mut cursor = TrieCursor::new(self.partitions.root);
        let mut walk = TrieCursor::new(self.partitions.root);
        let mut there = now(walk.first(&self.keys)).expect("reads");
        for (key, at, places) in &scanned {
            assert!(there, "the trie has all partitions");
            assert_eq!(self.position(self.place(&mut walk)), *at);
            there = now(walk.next(&self.keys)).expect("reads");
            let sought = key_bytes(Token::of(key), key);
            let (flags, payload) =
                now(cursor.exact(&self.keys, &sought)).expect("reads").expect("is there");
            let place = PartitionPlace::parse(flags, &payload, Some(key_hash_byte(key)));
            let place = place.expect("parses").expect("of this hash");
            assert_eq!(self.position(place), *at);
            if let PartitionPlace::Rows(entry) = place {
                self.check_blocks(&self.entry(entry), places);
            }
        }
        assert!(!there, "the trie has no others");
    }

    fn check_blocks(&self, entry: &RowsEntry<'_>, places: &[(u64, Bound)]) {
        let block = |cursor: &mut TrieCursor| {
            let (flags, payload) =
                now(cursor.payload(&self.rows)).expect("reads").expect("an entry");
            RowBlock::parse(flags, &payload).expect("parses")
        };
        let mut cursor = TrieCursor::new(entry.root);
        let (mut blocks, mut there) = (Vec::new(), now(cursor.first(&self.rows)).expect("reads"));
        while there {
            blocks.push(block(&mut cursor));
            there = now(cursor.next(&self.rows)).expect("reads");
        }
        assert_eq!(blocks.len() as u64, entry.blocks + 1);
        assert_eq!(blocks[0].offset, places[0].0);
        let (last, _) = places.last().expect("a wide partition has rows");
        assert!(blocks[blocks.len() - 1].offset > *last);
        for (offset, place) in places {
            let bound = bound_bytes(&self.table.layout, place.as_ref()).expect("has a form");
            assert!(now(cursor.floor(&self.rows, &bound)).expect("reads"));
            let wanted = blocks.iter().rposition(|block| block.offset <= *offset).expect("one");
            assert_eq!(block(&mut cursor), blocks[wanted], "{place:?}");
        }
    }
}

/// How Cassandra wrote a table.
fn options_of(files: &Files) -> WriterOptions {
    let statistics = files.table.statistics.clone();
    let compression = match &files.table.storage {
        Storage::Compressed(info, compressor) => Some(CompressionParams {
            compressor: *compressor,
            options: info.options.iter().cloned().collect(),
            chunk_length: info.chunk_length,
            min_compress_ratio: 0.0,
        }),
        Storage::Plain(_) => None,
    };
    WriterOptions {
        version: files.table.descriptor.version,
        layout: Arc::clone(&files.table.layout),
        key_type: statistics.header.key_type,
        stats: statistics.header.stats,
        compression,
        filter_chance: statistics.filter_chance,
        partitions: files.partitions.count,
        bytes: 0,
        min_index_interval: 128,
        column_index_bytes: 4 << 10,
        log_intervals: statistics.stats.log_intervals,
        host_id: statistics.stats.host_id,
        level: statistics.stats.level,
        repaired_at: statistics.stats.repaired_at,
        pending_repair: statistics.stats.pending_repair,
    }
}

#[test]
fn writes_what_cassandra_wrote() {
    for name in ["da-simple", "da-kinds", "da-wide"] {
        let golden = Files::golden(name);
        golden.check();
        let partitions = golden.partitions();
        let again = Files::written(Writer::new(options_of(&golden)), &partitions);
        again.check();
        // a failure that prints megabytes is not read
        assert!(
            uncompressed(&again.table, &again.data) == uncompressed(&golden.table, &golden.data),
            "{name}"
        );
        assert!(again.rows.bytes == golden.rows.bytes, "{name}");
        assert!(again.keys.bytes == golden.keys.bytes, "{name}");
        let mut wanted = golden.table.statistics.clone();
        wanted.stats.compression_ratio = again.table.statistics.stats.compression_ratio;
        let Statistics { stats, header, .. } = &again.table.statistics;
        assert_eq!(*header, wanted.header, "{name}");
        assert_eq!((&stats.start, &stats.end), (&wanted.stats.start, &wanted.stats.end), "{name}");
        assert_eq!(stats.keys, wanted.stats.keys, "{name}");
        assert_eq!(stats.token_coverage, wanted.stats.token_coverage, "{name}");
        assert_eq!(stats.rows, wanted.stats.rows, "{name}");
        assert!(*stats == wanted.stats, "{name}: {stats:?}\n{:?}", wanted.stats);
    }
}

#[test]
fn finds_the_partitions_of_cassandras() {
    for (name, count) in [("da-simple", 1500), ("da-kinds", 7), ("da-wide", 2)] {
        let files = Files::golden(name);
        let scanned = files.scan();
        assert_eq!((scanned.len(), files.partitions.count), (count, count as u64), "{name}");
        let mut walk = TrieCursor::new(files.partitions.root);
        let mut there = now(walk.first(&files.keys)).expect("reads");
        for (key, at, _) in &scanned {
            assert!(there, "{name}");
            assert_eq!(files.position(files.place(&mut walk)), *at, "{name}");
            there = now(walk.next(&files.keys)).expect("reads");

            let sought = key_bytes(Token::of(key), key);
            let mut exact = TrieCursor::new(files.partitions.root);
            let found = now(exact.exact(&files.keys, &sought)).expect("reads").expect("is there");
            let hash = Some(key_hash_byte(key));
            let place = PartitionPlace::parse(found.0, &found.1, hash).expect("parses");
            assert_eq!(files.position(place.expect("of this hash")), *at, "{name}");
            let hash = hash.map(|hash| hash ^ 1);
            assert_eq!(PartitionPlace::parse(found.0, &found.1, hash), Ok(None));
            assert!(now(exact.floor(&files.keys, &sought)).expect("reads"));
            assert_eq!(files.position(files.place(&mut exact)), *at, "{name}");
        }
        assert!(!there, "{name}");
        let keys = (&scanned[0].0[..], &scanned[count - 1].0[..]);
        assert_eq!(files.table.index.keys(), keys);
    }
}

/// Every block of a wide partition starts at a row, and a bound's floor is the block that it falls
/// into.
#[test]
fn finds_the_blocks_of_cassandras() {
    let files = Files::golden("da-wide");
    let layout = &files.table.layout;
    let (key, at, places) = files.scan().into_iter().find(|p| p.2.len() > 1).expect("a wide one");
    let mut cursor = TrieCursor::new(files.partitions.root);
    let sought = key_bytes(Token::of(&key), &key);
    let found = now(cursor.exact(&files.keys, &sought)).expect("reads").expect("is there");
    let place = PartitionPlace::parse(found.0, &found.1, None).expect("parses");
    let Some(PartitionPlace::Rows(entry)) = place else { panic!("a wide partition has an entry") };
    let entry = files.entry(entry);
    assert_eq!((entry.key, entry.position), (&key[..], at));
    assert!(entry.blocks > 20, "{}", entry.blocks);

    let mut blocks = Vec::new();
    let mut cursor = TrieCursor::new(entry.root);
    let mut there = now(cursor.first(&files.rows)).expect("reads");
    let block = |cursor: &mut TrieCursor| {
        let (flags, payload) = now(cursor.payload(&files.rows)).expect("reads").expect("an entry");
        RowBlock::parse(flags, &payload).expect("parses")
    };
    while there {
        blocks.push(block(&mut cursor));
        there = now(cursor.next(&files.rows)).expect("reads");
    }
    // and one for the end
    assert_eq!(blocks.len() as u64, entry.blocks + 1);
    assert!(blocks.is_sorted_by_key(|block| block.offset));
    assert!(blocks.iter().any(|block| !block.open.is_live()));
    for block in &blocks[..blocks.len() - 1] {
        assert!(places.iter().any(|(offset, _)| *offset == block.offset));
    }

    for (offset, place) in &places {
        let bound = bound_bytes(layout, place.as_ref()).expect("has a form");
        assert!(now(cursor.floor(&files.rows, &bound)).expect("reads"));
        let found = block(&mut cursor);
        let wanted = blocks.iter().rposition(|block| block.offset <= *offset).expect("the first");
        assert_eq!(found, blocks[wanted], "{place:?}");
        let before = now(cursor.previous(&files.rows)).expect("reads");
        assert_eq!(before, wanted > 0);
        if before {
            assert_eq!(block(&mut cursor), blocks[wanted - 1]);
        }
    }
}

#[test]
fn reads_the_statistics_of_cassandras() {
    let files = Files::golden("da-kinds");
    let stats = &files.table.statistics.stats;
    assert!(stats.max_local_deletion_time > i64::from(i32::MAX));
    let (first, last) = stats.keys.as_ref().expect("has them");
    assert_eq!(files.table.index.keys(), (&first[..], &last[..]));
    assert_eq!(format(files.table.descriptor.version), RowFormat::SstableOa);
}

#[test]
fn a_torn_end_of_partitions_is_refused() {
    let files = Files::golden("da-wide");
    let bytes = &files.keys.bytes;
    assert_eq!(Partitions::parse(bytes, bytes.len() as u64).as_ref(), Ok(&files.partitions));
    for n in 0..bytes.len() {
        assert!(Partitions::parse(&bytes[..n], n as u64).is_err(), "{n}");
    }
}

fn keys() -> impl Strategy<Value = BTreeMap<Vec<u8>, u64>> {
    let byte = proptest::sample::select(vec![0u8, 1, 0x40, 0x7f, 0x80, 0xff]);
    let narrow = proptest::collection::vec(byte, 0..6);
    let wide = proptest::collection::vec(any::<u8>(), 0..4);
    let key = prop_oneof![2 => narrow, 1 => wide];
    prop_oneof![
        proptest::collection::btree_map(key.clone(), 0u64..1 << 40, 1..40),
        proptest::collection::btree_map(key, 0u64..1 << 40, 300..700),
    ]
}

/// The trie of these entries as the writer makes it, and where its root is. A value is a payload of
/// as many bytes as its flags say.
fn written(map: &BTreeMap<Vec<u8>, u64>) -> (Vec<u8>, u64) {
    let (mut writer, mut bytes) = (TrieWriter::default(), Vec::new());
    for (key, value) in map {
        let all = value.to_be_bytes();
        let own = &all[value.leading_zeros().min(56) as usize / 8..];
        writer.add(key, Payload::new(own.len() as u8, own));
        writer.take(&mut bytes);
    }
    let root = writer.complete().expect("it has entries");
    writer.take(&mut bytes);
    (bytes, root)
}

/// Keys of all lengths, many of which share long beginnings: walked, no node crosses a page (the
/// reader refuses that), and a search from the root comes into few pages.
#[test]
fn large_tries_are_shallow() {
    let mut map = BTreeMap::new();
    for n in 0..60_000u64 {
        let token = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        map.insert(token[..5].to_vec(), n);
        if n % 1000 == 0 {
            // longer than a page
            map.insert([&token[..5], &vec![n as u8; 9000 + n as usize % 7][..]].concat(), n);
        }
    }
    let (bytes, root) = written(&map);
    let file = Memory { bytes, page: PAGE_BYTES };
    let mut cursor = TrieCursor::new(root);
    let mut there = now(cursor.first(&file)).expect("reads");
    for wanted in map.values() {
        assert!(there);
        assert_eq!(value(&mut cursor, &file), *wanted);
        there = now(cursor.next(&file)).expect("reads");
    }
    assert!(!there);
    let short: Vec<_> = map.keys().filter(|key| key.len() == 5).collect();
    let pages: usize = short.iter().map(|key| pages_of(&file, root, key)).sum();
    let mean = pages as f64 / short.len() as f64;
    assert!(mean < 3.5, "a search comes into {mean:.2} pages of {}", file.bytes.len() / 4096);
}

/// How many pages a search comes into.
fn pages_of(file: &Memory, root: u64, key: &[u8]) -> usize {
    let (mut at, mut pages) = (root, std::collections::BTreeSet::new());
    for byte in key {
        pages.insert(at / PAGE_BYTES);
        let node = Node::parse("a trie", &file.bytes[at as usize..], at).expect("a node");
        let Search::At(place) = node.search(*byte) else { break };
        at = node.child("a trie", place).expect("stands before").expect("is there");
    }
    pages.insert(at / PAGE_BYTES);
    pages.len()
}

fn value(cursor: &mut TrieCursor, file: &Memory) -> u64 {
    let (flags, payload) = now(cursor.payload(file)).expect("reads").expect("an entry");
    payload[..usize::from(flags)].iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// A trie answers as a map does: walked either way, and asked for the last entry up to any key.
    #[test]
    fn a_trie_is_a_map(
        map in keys(),
        sought in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..5), 20),
        pages in 1u64..4,
        is_ours in any::<bool>(),
    ) {
        let (bytes, root) = if is_ours { written(&map) } else { TrieBuilder::build(&map) };
        let file = Memory { bytes, page: pages * PAGE_BYTES };
        let mut cursor = TrieCursor::new(root);
        let mut there = now(cursor.first(&file)).expect("reads");
        for wanted in map.values() {
            prop_assert!(there);
            prop_assert_eq!(value(&mut cursor, &file), *wanted);
            there = now(cursor.next(&file)).expect("reads");
        }
        prop_assert!(!there);

        let mut there = now(cursor.floor(&file, &[0xff; 8])).expect("reads");
        for wanted in map.values().rev() {
            prop_assert!(there);
            prop_assert_eq!(value(&mut cursor, &file), *wanted);
            there = now(cursor.previous(&file)).expect("reads");
        }
        prop_assert!(!there);

        for sought in sought.iter().chain(map.keys()) {
            let wanted = map.range(..=sought.clone()).next_back();
            let there = now(cursor.floor(&file, sought)).expect("reads");
            prop_assert_eq!(there, wanted.is_some());
            if let Some((key, wanted)) = wanted {
                prop_assert_eq!(value(&mut cursor, &file), *wanted);
                let next = map.range((std::ops::Bound::Excluded(key.clone()), std::ops::Bound::Unbounded)).next();
                prop_assert_eq!(now(cursor.next(&file)).expect("reads"), next.is_some());
                if let Some((_, wanted)) = next {
                    prop_assert_eq!(value(&mut cursor, &file), *wanted);
                }
            }
        }
        for (key, wanted) in &map {
            let (flags, payload) = now(cursor.exact(&file, key)).expect("reads").expect("is there");
            let found = payload[..usize::from(flags)].iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
            prop_assert_eq!(found, *wanted);
        }
    }

    /// Damage is refused or gives other entries, but no walk panics or goes on for ever.
    #[test]
    fn no_damage_keeps_a_walk_going(
        map in keys(), at in any::<prop::sample::Index>(), flip in 1u8.., sought in any::<[u8; 3]>(),
    ) {
        let (mut bytes, root) = TrieBuilder::build(&map);
        let n = at.index(bytes.len());
        bytes[n] ^= flip;
        let length = bytes.len();
        let file = Memory { bytes, page: PAGE_BYTES };
        let mut cursor = TrieCursor::new(root);
        let _ = now(cursor.exact(&file, &sought));
        let mut there = now(cursor.floor(&file, &sought));
        for _ in 0..length {
            if !matches!(there, Ok(true)) { break }
            there = now(cursor.next(&file));
        }
    }

    #[test]
    fn any_bytes_are_a_node_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..600), byte: u8) {
        if let Ok(node) = Node::parse("a trie", &bytes, 5000) {
            let _ = node.search(byte);
            for place in 0..node.places() {
                if let Ok(Some(child)) = node.child("a trie", place) {
                    prop_assert!(child < 5000);
                }
            }
        }
        let _ = RowsEntry::parse(&bytes, 5000);
        let _ = RowBlock::parse(byte & 15, &bytes);
        let _ = PartitionPlace::parse(byte & 15, &bytes, Some(1));
        let _ = Partitions::parse(&bytes, bytes.len() as u64);
    }

    /// Bounds and clusterings compare as their bytes do, descending columns and nulls included.
    #[test]
    fn bounds_compare_as_their_bytes(
        descending in any::<[bool; 3]>(),
        bounds in proptest::collection::vec(bound(), 2),
    ) {
        let kinds = [CqlType::Int, CqlType::Text, CqlType::BigInt];
        let column = |(ty, reversed)| ClusteringColumn { ty, reversed };
        let columns = kinds.into_iter().zip(descending).map(column).collect();
        let layout = Layout::new(columns, Vec::new(), Vec::new(), false);
        let bytes = |bound: &Bound| bound_bytes(&layout, bound.as_ref()).expect("has a form");
        let (a, b) = (&bounds[0], &bounds[1]);
        prop_assert_eq!(
            bytes(a).cmp(&bytes(b)),
            compare(&layout, a.as_ref(), b.as_ref()),
            "{:?} {:?}", bytes(a), bytes(b)
        );
    }
}

fn bound() -> impl Strategy<Value = Bound> {
    let int = prop_oneof![
        8 => (-2i32..3).prop_map(|n| Some(n.to_be_bytes().to_vec())),
        1 => Just(Some(Vec::new())),
        1 => Just(None),
    ];
    let text =
        prop_oneof!["[\\x00\\x01a]{0,2}".prop_map(|text| Some(text.into_bytes())), Just(None)];
    let long = any::<i8>()
        .prop_map(|n| Some((i64::from(n) << n.unsigned_abs().min(50)).to_be_bytes().to_vec()));
    (int, text, long, 0u8..8, 0usize..4).prop_map(|(int, text, long, kind, count)| {
        let kind = BoundKind::from_ordinal(kind).expect("a kind");
        let (kind, count) = match kind {
            BoundKind::Static | BoundKind::Clustering => (BoundKind::Clustering, 3),
            kind => (kind, count),
        };
        let values = [int, text, long];
        Bound::new(kind, Clustering::new(values.iter().take(count).map(|value| value.as_deref())))
    })
}
