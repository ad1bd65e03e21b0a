//! The merge of a compaction: all partitions of its inputs, in order, without what may be purged.
//!
//! One pass over all inputs, by key. A small partition that one input alone has is copied as it is
//! stored if its rows are plain. Rows are plain if nothing in them is deleted or expires and all
//! cells have their row's timestamp. Only the sizes and the timestamp of each row are new
//! (`rows/src/codec/plain.rs`).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use env::Env;
use rows::{Deletion, Purger, RowBuilder, RowRef, Unfiltered, purge_marker, purge_row};
use schema::{Table, TombstoneOption};
use sstable::plain::PlainPartition;

use super::garbage::Shadow;
use super::running::RunningCompaction;
use types::TokenRange;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::io::Throttle;
use crate::memtable::{KeyRef, PartitionKey};
use crate::node_tables::Outputs;
use crate::read::{
    Chunk, Head, Keeping, KeyWalk, PIECE_BYTES, PartitionCursor, SSTableCursor, Slices, Source,
};
use crate::sstables::{Files, IndexFile, SSTable};

/// Partitions of more bytes, as encoded, are always taken apart: one of them is held in memory.
const PLAIN_BYTES_MAX: u64 = 64 << 10;

/// Of a table in which hardly anything can be taken over it is tried with one partition of so many.
const VAIN_MAX: u32 = 64;

/// The clock is looked at when so many bytes are behind: once for each small partition it was a
/// thirtieth of the work.
const LOOK_BYTES: u64 = 8 << 10;

/// Bytes that are read from all inputs of a compaction at once, as far as a chunk of each allows.
const READ_BYTES: usize = 8 << 20;

/// What a compaction may purge, and what it did.
pub(crate) struct Purging {
    pub now: i64,
    pub gc_before: i64,
    /// The other SSTables of the table: an older tombstone must stay while one of them may hold
    /// what it deletes.
    pub others: Vec<Arc<SSTable>>,
    pub allowed: bool,
    /// What is dropped for what others have.
    pub garbage: TombstoneOption,
    /// Only partitions in these ranges stay: normalized.
    pub keeps: Option<Vec<TokenRange>>,
    /// The oldest timestamp in the inputs: others with nothing newer are no reason to drop
    /// anything.
    pub oldest: i64,
    /// The newest tombstone that was purged.
    pub purged: Cell<i64>,
}

impl Purging {
    /// Everything stays, and as it is: what has expired keeps its values.
    pub fn none() -> Self {
        Self {
            now: i64::MIN,
            gc_before: i64::MIN,
            others: Vec::new(),
            allowed: false,
            garbage: TombstoneOption::None,
            keeps: None,
            oldest: i64::MIN,
            purged: Cell::new(i64::MIN),
        }
    }

    /// Does a partition stay, whatever is in it?
    fn keeps(&self, key: KeyRef<'_>) -> bool {
        self.keeps.as_ref().is_none_or(|ranges| TokenRange::any_contains(ranges, key.token))
    }

    /// The timestamp below which tombstones of a key may go.
    fn limit(&self, key: KeyRef<'_>) -> i64 {
        if !self.allowed {
            return i64::MIN;
        }
        let holds = |other: &&Arc<SSTable>| other.table.may_contain(key.token, key.bytes);
        let oldest =
            self.others.iter().filter(holds).map(|o| o.table.statistics.stats.min_timestamp);
        oldest.min().unwrap_or(i64::MAX)
    }
}

/// How far a merge got, shown and held to the node's limit.
pub(crate) struct Pace<'a> {
    env: &'a Env,
    throttle: &'a Throttle,
    shown: &'a RunningCompaction,
    /// Bytes that partitions before the present one take in the inputs, as stored.
    read: u64,
    paid: u64,
}

impl<'a> Pace<'a> {
    pub fn new(env: &'a Env, throttle: &'a Throttle, shown: &'a RunningCompaction) -> Self {
        Self { env, throttle, shown, read: 0, paid: 0 }
    }

    /// So many stored bytes of the inputs are behind.
    pub async fn at(&mut self, read: u64, written: u64) -> Result<(), StorageError> {
        self.read = read;
        self.advance(written).await
    }

    /// Waits where it is too fast; an error where it is to stop. Of a large partition what is
    /// written counts, as long as that is more than what was read before it.
    async fn advance(&mut self, written: u64) -> Result<(), StorageError> {
        let is_over = || self.shown.stop.get() || self.env.is_terminated();
        if self.shown.stop.get() {
            return Err(StorageError::Interrupted);
        }
        let done = self.read.max(written);
        self.shown.written.set(done);
        let due = done.saturating_sub(self.paid);
        if due < LOOK_BYTES {
            return Ok(());
        }
        self.paid += due;
        self.throttle.take(self.env, due, is_over).await;
        Ok(())
    }
}

/// A walk over an input, and how much of it is behind.
struct Input {
    walk: KeyWalk,
    keeping: Keeping,
    behind: u64,
    /// What finds rows that can be taken over as they lie, where the table may have some.
    plain: Option<PlainPartition>,
    /// How many partitions are passed over after one that could not be taken over: twice as many
    /// after each in a row, for what was read of it in vain is read again.
    vain: u32,
    /// How many of them are left.
    passed: u32,
    /// The chunk of the last partition.
    chunk: Option<Chunk>,
    /// A partition that lies in several chunks.
    joined: Vec<u8>,
}

impl Input {
    async fn open(
        files: &Files,
        sstable: &Arc<SSTable>,
        table: &Table,
        piece: usize,
    ) -> Result<Self, StorageError> {
        let fits = PlainPartition::fits(&sstable.table, &table.layout);
        Ok(Self {
            walk: KeyWalk::start(files, sstable, None, false).await?,
            keeping: Keeping::pass(piece),
            behind: 0,
            plain: fits.then(PlainPartition::default),
            vain: 0,
            passed: 0,
            chunk: None,
            joined: Vec::new(),
        })
    }

    fn is_at(&self, key: &PartitionKey) -> bool {
        self.walk.head().is_some_and(|head| head.key == *key)
    }

    /// Bytes that it went on since the last call, as stored.
    fn advanced(&mut self) -> u64 {
        let table = &self.walk.sstable().table;
        let share = table.data_length as f64 / table.uncompressed_length().max(1) as f64;
        let at = match self.walk.head() {
            Some(head) => (head.located.position as f64 * share) as u64,
            None => table.data_length,
        };
        let went = at.saturating_sub(self.behind);
        self.behind += went;
        went
    }

    /// Writes the partition that begins there and is the one before where the walk stands, if it is
    /// small and all of its rows can be taken over as they lie: its bytes. None of one that is to
    /// be merged like others.
    async fn take_over(
        &mut self,
        files: &Files,
        key: KeyRef<'_>,
        from: u64,
        outputs: &mut Outputs<'_>,
    ) -> Result<Option<u64>, StorageError> {
        if self.passed > 0 {
            self.passed -= 1;
            return Ok(None);
        }
        let Some(mut plain) = self.plain.take() else { return Ok(None) };
        let sstable = Arc::clone(self.walk.sstable());
        let bytes = self.bytes(files, from).await?;
        let mut taken = None;
        if plain.read(&sstable.table, key.bytes, bytes) {
            outputs.start_partition(key, Deletion::LIVE, None).await?;
            for (place, row) in plain.rows() {
                outputs.append_plain(place, row, bytes).await?;
            }
            outputs.end_partition().await?;
            taken = Some(bytes.len() as u64);
        }
        self.vain = match taken {
            Some(_) => 0,
            None => (2 * self.vain).clamp(1, VAIN_MAX),
        };
        self.passed = self.vain;
        self.plain = Some(plain);
        Ok(taken)
    }

    /// The bytes from there to where the walk stands; none if they are many.
    async fn bytes(&mut self, files: &Files, from: u64) -> Result<&[u8], StorageError> {
        let Self { walk, keeping, chunk, joined, .. } = self;
        let sstable = walk.sstable();
        let head = walk.head().map(|head| head.located.position);
        let to = head.unwrap_or_else(|| sstable.table.uncompressed_length());
        joined.clear();
        if to.saturating_sub(from) > PLAIN_BYTES_MAX {
            return Ok(&[]);
        }
        let mut at = from;
        while at < to {
            let holds =
                |(start, chunk): &Chunk| (*start..*start + chunk.len() as u64).contains(&at);
            if !chunk.as_ref().is_some_and(holds) {
                *chunk = Some(files.chunk_until(sstable, at, to, keeping).await?);
            }
            let part = part_of(chunk, at, to);
            if part.is_empty() || part.len() as u64 == to - from {
                break;
            }
            joined.extend_from_slice(part);
            at += part.len() as u64;
        }
        // most lie in one chunk
        Ok(if joined.is_empty() { part_of(chunk, from, to) } else { joined })
    }
}

/// What a chunk has of the bytes from the one place to the other; it is to hold the first.
fn part_of(chunk: &Option<Chunk>, from: u64, to: u64) -> &[u8] {
    let Some((start, bytes)) = chunk else { return &[] };
    let end = to.saturating_sub(*start).min(bytes.len() as u64) as usize;
    let from = from.checked_sub(*start).map(|from| from as usize);
    from.and_then(|from| bytes.get(from..end)).unwrap_or_default()
}

/// How many partitions came from one input, from two, and so on: by the number of inputs.
pub(crate) type Merged = BTreeMap<u32, u64>;

/// Merges all.
pub(crate) async fn merge_all(
    engine: &Engine,
    table: &Arc<Table>,
    inputs: &[Arc<SSTable>],
    purging: &Purging,
    outputs: &mut Outputs<'_>,
    pace: &mut Pace<'_>,
) -> Result<Merged, StorageError> {
    let files = &engine.files;
    let mut merged = Merged::new();
    let mut open = Vec::with_capacity(inputs.len());
    let piece = (READ_BYTES / inputs.len().max(1)).min(PIECE_BYTES);
    for input in inputs {
        open.push(Input::open(files, input, table, piece).await?);
    }
    // what others have makes nothing of it needless
    let takes_over = purging.garbage == TombstoneOption::None;
    // bytes since the last look at the clock
    let mut unlooked = 0;
    let mut last: Option<PartitionKey> = None;
    loop {
        let heads = open.iter().filter_map(|input| input.walk.head());
        let Some(key) = heads.map(|head| &head.key).min().cloned() else { return Ok(merged) };
        // An index that is damaged, or that an unsorted table had: what follows would be written
        // where no read looks for it.
        if last.as_ref().is_some_and(|last| key <= *last) {
            let input = open.iter().find(|input| input.is_at(&key));
            let input = input.expect("one of the inputs is at the least key");
            let sstable = input.walk.sstable();
            let path = sstable.path(&IndexFile::Keys.of(sstable).0);
            return Err(StorageError::corrupt(path, "its partitions are out of order"));
        }
        let at = key.as_ref();
        let is_alone = open.iter().filter(|input| input.is_at(&key)).count() == 1;
        let is_kept = purging.keeps(at);
        let mut sources = Vec::new();
        let (mut taken_over, mut went) = (None, 0);
        for input in open.iter_mut().filter(|input| input.is_at(&key)) {
            let head = input.walk.take(files).await?;
            let Head { located, .. } = head.expect("an input that is at a key has its partition");
            if !is_kept {
                went += input.advanced();
                continue;
            }
            if is_alone && takes_over {
                taken_over = input.take_over(files, at, located.position, outputs).await?;
            }
            went += input.advanced();
            if taken_over.is_some() {
                break;
            }
            let (sstable, all) = (Arc::clone(input.walk.sstable()), Slices::all(false));
            let keeping = input.keeping.clone();
            let cursor = SSTableCursor::open_at(files, &sstable, at, located, table, all, keeping);
            sources.push(Source::SSTable(Box::new(cursor.await?)));
        }
        let is_written = taken_over.is_some() == sources.is_empty();
        assert!(
            is_written || !is_kept,
            "a partition is copied from one input or merged from all that have it"
        );
        *merged.entry(sources.len().max(1) as u32).or_default() += 1;
        if taken_over.is_none() && is_kept {
            let mut partition = PartitionCursor::merge(files, Arc::clone(table), sources, false);
            let others = (purging.others.as_slice(), purging.oldest);
            let shadow = Shadow::open(engine, table, at, others, purging.garbage).await?;
            let of = (&mut partition, shadow);
            write_partition(engine.env(), at, of, purging, outputs, pace).await?;
        }
        pace.read += went;
        pace.advance(outputs.written()).await?;
        last = Some(key);
        unlooked += taken_over.unwrap_or(LOOK_BYTES);
        if unlooked >= LOOK_BYTES {
            unlooked = 0;
            engine.env().maybe_yield().await;
        }
    }
}

/// Writes what may not be purged of a partition, and what nothing newer elsewhere makes needless.
pub(crate) async fn write_partition(
    env: &Env,
    key: KeyRef<'_>,
    (partition, mut shadow): (&mut PartitionCursor, Option<Shadow>),
    purging: &Purging,
    outputs: &mut Outputs<'_>,
    pace: &mut Pace<'_>,
) -> Result<(), StorageError> {
    let limit = purging.limit(key);
    let purgeable = |timestamp: i64| {
        let goes = timestamp < limit;
        if goes {
            purging.purged.set(purging.purged.get().max(timestamp));
        }
        goes
    };
    let purger = Purger {
        now: purging.now,
        gc_before: purging.gc_before,
        strict_liveness: false,
        purgeable: &purgeable,
    };
    let table = Arc::clone(partition.table());
    let layout = &table.layout;
    let deletion = partition.deletion();
    let deletion = shadow.as_ref().map_or(deletion, |shadow| shadow.deletion(deletion));
    let deletion = purger.deletion(deletion);
    let mut scratch = RowBuilder::new();
    let mut kept;
    let static_row = match (partition.static_row(), &shadow) {
        (Some(row), Some(shadow)) => {
            kept = shadow.static_row(row, &mut scratch).unwrap_or_default();
            (!kept.is_empty()).then(|| RowRef::from_packed(&kept))
        }
        (row, _) => row,
    };
    let static_row = static_row
        .and_then(|row| purge_row(layout, row, &purger, &mut scratch))
        .map(|row| row.as_packed().to_vec());
    let static_row = static_row.as_deref().map(RowRef::from_packed);
    let mut started = deletion != Deletion::LIVE || static_row.is_some();
    if started {
        outputs.start_partition(key, deletion, static_row).await?;
    }
    while let Some(unfiltered) = partition.next().await? {
        let unfiltered = match (unfiltered, &mut shadow) {
            (Unfiltered::Row(row), Some(shadow)) => {
                let Some(left) = shadow.row(row, &mut scratch).await? else {
                    env.mark("compaction.garbage");
                    continue;
                };
                kept = left;
                Unfiltered::from_packed(&kept)
            }
            (unfiltered, _) => unfiltered,
        };
        let left = match unfiltered {
            Unfiltered::Row(row) => {
                purge_row(layout, row, &purger, &mut scratch).map(Unfiltered::Row)
            }
            Unfiltered::Marker(marker) => purge_marker(marker, &purger).map(Unfiltered::Marker),
        };
        let Some(left) = left else {
            env.mark("compaction.purged");
            continue;
        };
        if !std::mem::replace(&mut started, true) {
            outputs.start_partition(key, deletion, static_row).await?;
        }
        outputs.append(left).await?;
        pace.advance(outputs.written()).await?;
        env.maybe_yield().await;
    }
    // of a partition of which nothing is left nothing was begun
    if started {
        outputs.end_partition().await?;
    }
    Ok(())
}
