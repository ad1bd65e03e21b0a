//! Merging SSTables into one.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Class;
use rows::{Deletion, Purger, RowBuilder, RowRef, Unfiltered, purge_marker, purge_row};
use schema::{Table, TableId};

use super::size_tiered::{self, Candidate};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::{least, writer_options};
use crate::memtable::KeyRef;
use crate::node::{Node, NodeTable, RunningCompaction};
use crate::output::Output;
use crate::read::{Head, KeyWalk, PartitionCursor, SSTableCursor, Slices, Source};
use crate::sstables::{LiveSet, SSTable};
use crate::transaction::{Transaction, remove_descriptor};

/// How often a removed file's last readers are looked for.
const REMOVAL_POLL: Duration = Duration::from_millis(20);
/// The longest pause of the throughput limit at once.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// What a compaction may purge, and what it did.
struct Purging {
    now: i64,
    gc_before: i64,
    /// The other SSTables of the table: an older tombstone must stay while one of them may hold what it
    /// deletes.
    others: Vec<Arc<SSTable>>,
    allowed: bool,
    /// The newest tombstone that was purged.
    purged: std::cell::Cell<i64>,
}

impl Purging {
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

impl Node {
    /// Starts a compaction of a table, if one is worth it and none runs.
    pub(crate) fn consider_compaction(&self, engine: &Rc<Engine>, id: TableId) {
        let Some(node) = self.me() else { return };
        let node_table = self.table(id);
        if node_table.compacting.get() || !self.compactions_enabled() {
            return;
        }
        // While the log is replayed, nobody knows yet what a tombstone still deletes.
        if engine.log().is_none() {
            return;
        }
        if choose(engine, id, &node_table).is_none() {
            return;
        }
        node_table.compacting.set(true);
        let engine = Rc::clone(engine);
        engine.env().clone().spawn(Class::Compaction, async move {
            while let Some((table, inputs)) = choose(&engine, id, &node_table) {
                match node.compact(&engine, &table, &node_table, inputs).await {
                    Ok(()) => {}
                    Err(error) => {
                        node.failed(error);
                        break;
                    }
                }
                if engine.env().is_terminated() {
                    break;
                }
            }
            node_table.compacting.set(false);
        });
    }

    /// Merges all SSTables of a table into one: `nodetool compact`.
    ///
    /// # Errors
    /// If one cannot be read or the new one not be written: the old ones stay.
    pub async fn compact_all(&self, id: TableId) -> Result<(), StorageError> {
        let engine = self.engine()?;
        let node_table = self.table(id);
        while node_table.compacting.get() {
            engine.env().sleep(REMOVAL_POLL).await;
        }
        let table = engine.store(id)?.table();
        let inputs = node_table.live.borrow().tables().to_vec();
        if inputs.is_empty() {
            return Ok(());
        }
        node_table.compacting.set(true);
        let result = self.compact(&engine, &table, &node_table, inputs).await;
        node_table.compacting.set(false);
        result
    }

    async fn compact(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        node_table: &NodeTable,
        inputs: Vec<Arc<SSTable>>,
    ) -> Result<(), StorageError> {
        if self.compact_once(engine, table, node_table, &inputs, true).await? {
            return Ok(());
        }
        // An old write arrived that a purged tombstone deletes, or would at a start: once more, keeping all of them.
        engine.env().mark("compaction.unpurged");
        self.compact_once(engine, table, node_table, &inputs, false).await.map(drop)
    }

    /// False if what was purged turned out to be needed.
    async fn compact_once(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        node_table: &NodeTable,
        inputs: &[Arc<SSTable>],
        purge: bool,
    ) -> Result<bool, StorageError> {
        let env = engine.env();
        let numbers: Vec<u64> = inputs.iter().map(|input| input.number).collect();
        let live = Arc::clone(&node_table.live.borrow());
        let others: Vec<_> =
            live.tables().iter().filter(|t| !numbers.contains(&t.number)).cloned().collect();
        let now = env.unix_micros() / 1_000_000;
        let purging = Purging {
            now,
            gc_before: now - i64::from(table.params.gc_grace_seconds),
            others: if env.planted("tombstone_purged_early") { Vec::new() } else { others },
            allowed: purge,
            purged: std::cell::Cell::new(i64::MIN),
        };
        let mut options = writer_options(engine, table);
        options.partitions = inputs.iter().map(|i| estimated_partitions(i)).sum();
        let minima = inputs.iter().map(|input| input.table.statistics.header.stats);
        options.stats = minima.reduce(least).unwrap_or(options.stats);
        let intervals = merged_intervals(engine, inputs);
        options.log_intervals = intervals.clone();
        let directory = self.directory_of(engine, table).await?;
        let descriptor = self.next_descriptor(node_table);
        let mut transaction =
            Transaction::begin(env, &directory, "compaction", &descriptor).await?;
        let mut output = Output::create(engine, table, &directory, descriptor, options).await?;
        let unique = env.unique_micros();
        let running = self.runs(RunningCompaction {
            id: types::Uuid::from_unix_micros(unique, env.random_u64()).to_bytes(),
            table: table.id,
            total: inputs.iter().map(|input| input.table.data_length).sum(),
            written: std::cell::Cell::new(0),
            sstables: inputs.len(),
            directory: directory.clone(),
        });
        let pace = Pace::new(engine, &running.1);
        self.merge_all(engine, table, inputs, &purging, &mut output, pace).await?;
        drop(running);
        let any = output.finish().await?;
        let new = match any {
            false => None,
            true => {
                let number = self.numbers.next();
                let counter = table.is_counter();
                let new = SSTable::open(env, &directory, &descriptor, number, counter).await?;
                Some(Arc::new(new))
            }
        };
        let _changing = node_table.changing.acquire(1).await;
        let before = Arc::clone(&node_table.live.borrow());
        let after = before.with(&numbers, new.clone());
        let is_live = |number: &u64| before.tables().iter().any(|table| table.number == *number);
        if !numbers.iter().all(is_live) {
            // TRUNCATE or DROP was faster: what was merged is void.
            env.mark("compaction.void");
            remove_descriptor(env, &directory, &descriptor).await?;
            transaction.finish().await?;
            return Ok(true);
        }
        let purged = purging.purged.get();
        let known: Vec<u64> = live.tables().iter().map(|table| table.number).collect();
        let newcomers = before.tables().iter().filter(|t| !known.contains(&t.number));
        let safe =
            newcomers.map(|t| t.table.statistics.stats.min_timestamp).all(|min| min > purged)
                && (any || !in_log(engine, &intervals).await?);
        if !safe || !publish(engine, table.id, &before, &after, purged).await? {
            remove_descriptor(env, &directory, &descriptor).await?;
            transaction.finish().await?;
            return Ok(false);
        }
        let removed: Vec<_> = inputs.iter().map(|i| i.table.descriptor).collect();
        transaction.commit(&removed).await?;
        *node_table.live.borrow_mut() = after;
        if !any {
            remove_descriptor(env, &directory, &descriptor).await?;
        }
        let bytes: u64 = inputs.iter().map(|input| input.bytes_on_disk).sum();
        self.stats.compactions.set(self.stats.compactions.get() + 1);
        self.stats.compacted_bytes.set(self.stats.compacted_bytes.get() + bytes);
        env.mark("compaction.done");
        self.remove_later(engine, inputs.to_vec(), transaction);
        Ok(true)
    }

    async fn merge_all(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        inputs: &[Arc<SSTable>],
        purging: &Purging,
        output: &mut Output,
        mut pace: Pace,
    ) -> Result<(), StorageError> {
        let files = &engine.files;
        let mut walks = Vec::with_capacity(inputs.len());
        for input in inputs {
            walks.push(KeyWalk::start(files, input, None, false).await?);
        }
        loop {
            let heads = walks.iter().filter_map(|walk| walk.head());
            let Some(key) = heads.map(|head| &head.key).min().cloned() else { return Ok(()) };
            let at = key.as_ref();
            let mut sources = Vec::new();
            for walk in &mut walks {
                if walk.head().is_some_and(|head| head.key == key)
                    && let Some(Head { located, .. }) = walk.take(files).await?
                {
                    let (sstable, all) = (Arc::clone(walk.sstable()), Slices::all(false));
                    let cursor =
                        SSTableCursor::open_at(files, &sstable, at, located, table, all, false);
                    sources.push(Source::SSTable(Box::new(cursor.await?)));
                }
            }
            let mut partition = PartitionCursor::merge(files, Arc::clone(table), sources, false);
            write_purged(engine, at, &mut partition, purging, output, &mut pace).await?;
            engine.env().maybe_yield().await;
        }
    }

    /// Removes the files of tables that were replaced, once nobody reads them, and then the log of their
    /// replacement.
    fn remove_later(
        &self,
        engine: &Rc<Engine>,
        tables: Vec<Arc<SSTable>>,
        transaction: Transaction,
    ) {
        let engine = Rc::clone(engine);
        engine.env().clone().spawn(Class::Background, async move {
            for sstable in tables {
                forget_everywhere(&engine, &sstable).await;
                let descriptor = &sstable.table.descriptor;
                // What stays behind is removed at the next start: the log says so.
                if remove_descriptor(engine.env(), &sstable.directory, descriptor).await.is_err() {
                    return;
                }
            }
            let _ = transaction.finish().await;
        });
    }
}

/// Lets every shard close a table that is no longer live, and waits for its last reader.
pub(crate) async fn forget_everywhere(engine: &Rc<Engine>, sstable: &Arc<SSTable>) {
    for shard in 0..engine.shards().count() {
        let number = sstable.number;
        let forget = move |engine: &Rc<Engine>| engine.files.forget(number);
        let _ = engine.shards().call(shard, forget).await;
    }
    while Arc::strong_count(sstable) > 1 {
        engine.env().sleep(REMOVAL_POLL).await;
    }
}

fn choose(
    engine: &Engine,
    id: TableId,
    node_table: &NodeTable,
) -> Option<(Arc<Table>, Vec<Arc<SSTable>>)> {
    let table = engine.store(id).ok()?.table();
    let live = Arc::clone(&node_table.live.borrow());
    let candidates: Vec<_> = live
        .tables()
        .iter()
        .map(|sstable| Candidate { id: sstable.number, size: sstable.bytes_on_disk })
        .collect();
    let given = &table.params.compaction.options;
    if given.get("enabled").is_some_and(|enabled| enabled == "false") {
        return None;
    }
    let options = size_tiered::Options::from_map(|key| given.get(key).map(String::as_str));
    let chosen = size_tiered::choose(&candidates, &options)?;
    let inputs = live.tables().iter().filter(|t| chosen.contains(&t.number)).cloned().collect();
    Some((table, inputs))
}

fn estimated_partitions(sstable: &SSTable) -> u64 {
    sstable.table.statistics.stats.partition_sizes.count().max(1).cast_unsigned()
}

/// The log's intervals of inputs that this node wrote.
fn merged_intervals(
    engine: &Engine,
    inputs: &[Arc<SSTable>],
) -> Vec<(sstable::statistics::LogPosition, sstable::statistics::LogPosition)> {
    let mut intervals: Vec<_> = inputs
        .iter()
        .map(|input| &input.table.statistics.stats)
        .filter(|stats| stats.host_id == Some(engine.host_id()))
        .flat_map(|stats| stats.log_intervals.iter().copied())
        .collect();
    intervals.sort();
    intervals.dedup();
    intervals
}

/// Does the log still hold some of these intervals? If so, some table must say that it has them, or a start brings
/// back what was purged.
async fn in_log(
    engine: &Engine,
    intervals: &[(sstable::statistics::LogPosition, sstable::statistics::LogPosition)],
) -> Result<bool, StorageError> {
    for shard in 0..engine.shards().count() {
        let segments =
            |engine: &Rc<Engine>| engine.log().map(|log| log.segments()).unwrap_or_default();
        let segments = engine.shards().call(shard, segments).await?;
        if intervals
            .iter()
            .any(|(from, to)| segments.range(from.segment..=to.segment).next().is_some())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives all shards the new set. Where a shard's memtable holds a write older than a purged tombstone, which
/// deletes it, all take the old set again. A key's memtable and its view of the files are one shard's, so no
/// write slips between the two.
async fn publish(
    engine: &Engine,
    id: TableId,
    before: &Arc<LiveSet>,
    after: &Arc<LiveSet>,
    purged: i64,
) -> Result<bool, StorageError> {
    let mut refused = false;
    for shard in 0..engine.shards().count() {
        let after = Arc::clone(after);
        let swap = move |engine: &Rc<Engine>| engine.swap_live(id, after, purged);
        refused |= !engine.shards().call(shard, swap).await?;
    }
    if refused {
        for shard in 0..engine.shards().count() {
            let before = Arc::clone(before);
            let swap = move |engine: &Rc<Engine>| engine.swap_live(id, before, i64::MIN);
            engine.shards().call(shard, swap).await?;
        }
    }
    Ok(!refused)
}

async fn write_purged(
    engine: &Engine,
    key: KeyRef<'_>,
    partition: &mut PartitionCursor,
    purging: &Purging,
    output: &mut Output,
    pace: &mut Pace,
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
    let deletion = purger.deletion(partition.deletion());
    let mut scratch = RowBuilder::new();
    let static_row = partition
        .static_row()
        .and_then(|row| purge_row(layout, row, &purger, &mut scratch))
        .map(|row| row.as_packed().to_vec());
    let static_row = static_row.as_deref().map(RowRef::from_packed);
    let mut started = deletion != Deletion::LIVE || static_row.is_some();
    if started {
        output.start(key.bytes, deletion, static_row)?;
    }
    while let Some(unfiltered) = partition.next().await? {
        let left = match unfiltered {
            Unfiltered::Row(row) => {
                purge_row(layout, row, &purger, &mut scratch).map(Unfiltered::Row)
            }
            Unfiltered::Marker(marker) => purge_marker(marker, &purger).map(Unfiltered::Marker),
        };
        let Some(left) = left else {
            engine.env().mark("compaction.purged");
            continue;
        };
        if !std::mem::replace(&mut started, true) {
            output.start(key.bytes, deletion, static_row)?;
        }
        output.append(left)?;
        pace.wrote(output.drain().await?).await;
        engine.env().maybe_yield().await;
    }
    if started {
        output.end()?;
        pace.wrote(output.drain().await?).await;
    }
    Ok(())
}

/// Holds a compaction to `compaction_throughput`.
struct Pace {
    env: env::Env,
    bytes_per_second: u64,
    started: env::Instant,
    bytes: u64,
    shown: Rc<RunningCompaction>,
}

impl Pace {
    fn new(engine: &Engine, shown: &Rc<RunningCompaction>) -> Self {
        let env = engine.env().clone();
        let started = env.now();
        let bytes_per_second = engine.options.compaction_bytes_per_second;
        Self { env, bytes_per_second, started, bytes: 0, shown: Rc::clone(shown) }
    }

    async fn wrote(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.shown.written.set(self.bytes);
        if bytes == 0 || self.bytes_per_second == 0 {
            return;
        }
        let due = Duration::from_secs_f64(self.bytes as f64 / self.bytes_per_second as f64);
        let due = self.started + due;
        while self.env.now() < due && !self.env.is_terminated() {
            let until = due.min(self.env.now() + PAUSE_MAX);
            self.env.sleep_until(until).await;
        }
    }
}
