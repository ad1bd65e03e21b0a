//! A task: its inputs become outputs, in one step that a crash cannot tear and no reader sees half
//! of.
//!
//! Tombstones go after `gc_grace_seconds` if no other SSTable and no memtable can hold what they
//! delete. Each shard checks its memtables again at the moment of the swap. If one has such a
//! write, all shards take the old set back, and the task runs again without a purge.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Class;
use rows::codec::EncodingStats;
use rows::{NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use schema::TableId;
use sstable::statistics::LogPosition;
use sstable::writer::WriterOptions;

use super::choice::{Candidate, Reason};
use super::look::{Look, candidate};
use super::merge::{Merged, Pace, Purging, merge_all};
use super::outputs::Outputs;
use super::record::Record;
use super::space;
use super::splitter::Splitter;
use super::work::{Task, Work};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::writer_options;
use crate::live_set::LiveSet;
use crate::node::{Node, RunningCompaction};
use crate::scrub::scrub_one;
use crate::sstables::SSTable;
use crate::transaction::{Transaction, remove_descriptor};

/// How often a removed file's last readers are looked for.
const REMOVAL_POLL: Duration = Duration::from_millis(20);
/// What is asserted of every task.
const SOME_INPUTS: &str = "a compaction has inputs";

/// What a merge made.
struct Made {
    /// What the operator knew it by while it ran.
    id: [u8; 16],
    look: Look,
    /// Inputs of which nothing was needed any more.
    expired: Vec<u64>,
    new: Vec<Arc<SSTable>>,
    purged: i64,
    merged: Merged,
    intervals: Vec<(LogPosition, LogPosition)>,
}

impl Task<'_> {
    fn numbers(&self) -> Vec<u64> {
        self.inputs.iter().map(|input| input.number).collect()
    }
}

impl Node {
    /// Does a task; false if it has to wait for something else.
    pub(crate) async fn run(
        &self,
        engine: &Rc<Engine>,
        task: &Task<'_>,
    ) -> Result<bool, StorageError> {
        let done = self.run_task(engine, task).await;
        done.inspect_err(|error| self.inspect_failure(error))
    }

    async fn run_task(&self, engine: &Rc<Engine>, task: &Task<'_>) -> Result<bool, StorageError> {
        if task.choice.moves {
            return self.change_levels(engine, task).await.map(|()| true);
        }
        if matches!(task.work, Work::Scrub(..)) {
            space::reduce(self, engine, task).await?;
            return self.try_task(engine, task, false).await.map(|_| true);
        }
        // What is put aside may need every tombstone when it comes back.
        let is_whole =
            task.node_table.is_whole() || engine.env().planted("purged_beside_what_is_aside");
        let reduced = space::reduce(self, engine, task).await?;
        let task = reduced.as_ref().unwrap_or(task);
        if self.try_task(engine, task, is_whole).await? {
            return Ok(true);
        }
        // An old write arrived that a purged tombstone deletes, or would at a start: once more,
        // keeping all of them.
        engine.env().mark("compaction.unpurged");
        if task.choice.reason == Reason::Expired && task.inputs.len() == 1 {
            // kept, it would be what it was, and be chosen again at once
            return Ok(false);
        }
        self.try_task(engine, task, false).await.map(|_| true)
    }

    /// Gives inputs another level, and nothing else.
    async fn change_levels(
        &self,
        engine: &Rc<Engine>,
        task: &Task<'_>,
    ) -> Result<(), StorageError> {
        for input in &task.inputs {
            let before = candidate(input, 0, true);
            // A snapshot links the metadata as a whole, and removal waits for the table's last
            // change.
            let _changing = task.node_table.changing.acquire(1).await;
            if task.node_table.live.borrow().tables().iter().any(|t| t.number == input.number) {
                input.set_level(engine.env(), task.choice.level).await?;
            }
            if task.choice.level > 0 {
                task.node_table.replaced(&[before], &[candidate(input, 0, false)]);
            }
        }
        Ok(())
    }

    /// False if what was purged turned out to be needed.
    async fn try_task(
        &self,
        engine: &Rc<Engine>,
        task: &Task<'_>,
        purge: bool,
    ) -> Result<bool, StorageError> {
        let started = engine.env().now();
        let splitter = Splitter::new(task.choice.split.clone(), task.choice.level);
        let options = self.options_of(engine, task, &splitter);
        let of = (&task.table, &*task.node_table);
        let mut outputs = Outputs::new(self, engine, of, "compaction", splitter, options).await?;
        let made = match self.merge(engine, task, purge, &mut outputs).await {
            Ok(made) => made,
            Err(error) => {
                // What cannot be removed now is removed at the next start: the log says so.
                let _ = outputs.abandon().await;
                return Err(error);
            }
        };
        let numbers = task.numbers();
        let _changing = task.node_table.changing.acquire(1).await;
        let before = Arc::clone(&task.node_table.live.borrow());
        let after = before.with(&numbers, made.new.iter().cloned());
        let newest = before.tables().iter().map(|table| table.number).collect::<BTreeSet<_>>();
        let are_new = made.new.iter().all(|table| !newest.contains(&table.number));
        assert!(are_new, "the SSTables that a compaction wrote are not live before it ends");
        let is_live = |number: &u64| before.tables().iter().any(|table| table.number == *number);
        if !numbers.iter().all(is_live) {
            // TRUNCATE or DROP was faster: what was merged is void.
            engine.env().mark("compaction.void");
            outputs.abandon().await?;
            return Ok(true);
        }
        // What came in since the task began may be what a purged tombstone deletes. What other
        // tasks made of what was there then was taken into account.
        // Of a scrubbed SSTable of which nothing is left, the log may well bring back what it still
        // has.
        let is_scrub = matches!(task.work, Work::Scrub(..));
        let newcomers = before.tables().iter().filter(|table| table.epoch > made.look.epoch);
        let mut oldest = newcomers.map(|table| table.table.statistics.stats.min_timestamp);
        let safe = oldest.all(|oldest| oldest > made.purged)
            && (!made.new.is_empty() || is_scrub || !in_log(engine, &made.intervals).await?);
        if !safe || !publish(engine, task.table.id, &before, &after, made.purged).await? {
            drop(after);
            take_back(engine, outputs, made.new).await?;
            return Ok(false);
        }
        // of themselves worlds take outputs back once in hundreds
        let env = engine.env();
        let is_often =
            env.planted("outputs_taken_back_often") || env.planted("outputs_taken_back_at_once");
        if is_often && env.random_u64().is_multiple_of(4) {
            publish(engine, task.table.id, &after, &before, i64::MIN).await?;
            drop(after);
            take_back(engine, outputs, made.new).await?;
            return Ok(false);
        }
        let place = |input: &Arc<SSTable>| (input.directory.clone(), input.table.descriptor);
        let removed: Vec<_> = task.inputs.iter().map(place).collect();
        if engine.env().planted("inputs_removed_before_commit") {
            for input in &task.inputs {
                let descriptor = &input.table.descriptor;
                remove_descriptor(engine.env(), &input.directory, descriptor).await?;
            }
        }
        if let Err(error) = outputs.commit(&removed).await {
            publish(engine, task.table.id, &after, &before, i64::MIN).await?;
            drop(after);
            let _ = take_back(engine, outputs, made.new).await;
            return Err(error);
        }
        let transaction = outputs.into_transaction();
        let (gone, come) = (task.inputs.len(), made.new.len());
        let is_exchange = after.tables().len() + gone == before.tables().len() + come;
        assert!(is_exchange, "a compaction replaces only its inputs by the SSTables that it wrote");
        *task.node_table.live.borrow_mut() = after;
        self.account(engine, task, &made, started);
        engine.env().mark("compaction.done");
        self.remove_later(engine, task.inputs.clone(), transaction);
        Ok(true)
    }

    fn options_of(&self, engine: &Engine, task: &Task<'_>, splitter: &Splitter) -> WriterOptions {
        let inputs = &task.inputs;
        let mut options = writer_options(engine, &task.table);
        let partitions: u64 = inputs.iter().map(|input| estimated_partitions(input)).sum();
        let bytes = inputs.iter().map(|input| input.table.data_length).sum();
        let outputs = splitter.outputs(bytes);
        options.partitions = partitions.div_ceil(outputs);
        let bytes: u64 = inputs.iter().map(|input| input.table.uncompressed_length()).sum();
        options.bytes = bytes.div_ceil(outputs);
        // by what is in them: what they are written relative to may be less than that, more so each
        // time
        let all = || inputs.iter().map(|input| &input.table.statistics.stats);
        options.stats = EncodingStats::of_minima(
            all().map(|stats| stats.min_timestamp).min().unwrap_or(NO_TIMESTAMP),
            all().map(|stats| stats.min_local_deletion_time).min().unwrap_or(NO_DELETION_TIME),
            all().map(|stats| stats.min_ttl).min().unwrap_or(NO_TTL),
        );
        options.log_intervals = merged_intervals(engine, inputs);
        let repaired = inputs.iter().map(|input| input.table.statistics.stats.repaired_at);
        options.repaired_at = repaired.min().expect(SOME_INPUTS);
        options
    }

    async fn merge(
        &self,
        engine: &Rc<Engine>,
        task: &Task<'_>,
        purge: bool,
        outputs: &mut Outputs<'_>,
    ) -> Result<Made, StorageError> {
        let env = engine.env();
        let (table, node_table) = (&task.table, &task.node_table);
        let look = Look::at(engine, table, node_table).await?;
        let numbers = task.numbers();
        let candidates = || look.tables.iter().filter(|candidate| numbers.contains(&candidate.id));
        let (allowed, expired) = node_table.strategy(table, |strategy| {
            let allowed = purge && strategy.may_purge(candidates());
            let expired = look.view(|view| strategy.expired(view, &numbers));
            (allowed, if allowed { expired } else { Vec::new() })
        });
        let live = look.live.tables().iter();
        let others: Vec<_> = live.filter(|t| !numbers.contains(&t.number)).cloned().collect();
        let newest = |candidate: &Candidate| candidate.max_timestamp;
        let dropped = candidates().filter(|c| expired.contains(&c.id)).map(newest).max();
        let oldest = candidates().map(|candidate| candidate.min_timestamp);
        let purging = Purging {
            now: look.now_seconds,
            gc_before: look.gc_before(),
            others: if env.planted("tombstone_purged_early") { Vec::new() } else { others },
            allowed,
            garbage: match task.work {
                Work::Collect(granularity) => granularity,
                _ => table.params.compaction.tombstone_option(),
            },
            oldest: oldest.min().unwrap_or(i64::MIN),
            purged: Cell::new(dropped.unwrap_or(i64::MIN)),
        };
        let needed = task.inputs.iter().filter(|input| !expired.contains(&input.number));
        let needed: Vec<_> = needed.cloned().collect();
        let unique = env.unique_micros();
        let running = self.runs(RunningCompaction {
            id: types::Uuid::from_unix_micros(unique, env.random_u64()).to_bytes(),
            table: table.id,
            kind: task.choice.reason.operation(),
            total: needed.iter().map(|input| input.table.data_length).sum(),
            written: Cell::new(0),
            sstables: task.inputs.len(),
            directory: outputs.places.first().cloned().unwrap_or_default(),
            stop: Cell::new(false),
        });
        let mut pace = Pace::new(env, &self.compactions.throttle, &running.1);
        let mut merged = Merged::new();
        match task.work {
            Work::Merge | Work::Collect(_) => {
                merged = merge_all(engine, table, &needed, &purging, outputs, &mut pace).await?;
            }
            Work::Scrub(how, found) => {
                for input in &needed {
                    let one = scrub_one(engine, table, input, how, outputs, &mut pace).await?;
                    found.borrow_mut().push(one);
                }
            }
        }
        let epoch = task.inputs.iter().map(|input| input.epoch).max().expect(SOME_INPUTS);
        let new = outputs.finish(table, epoch).await?;
        let intervals = merged_intervals(engine, &task.inputs);
        let purged = purging.purged.get();
        Ok(Made { id: running.1.id, look, expired, new, purged, merged, intervals })
    }

    fn account(&self, engine: &Engine, task: &Task<'_>, made: &Made, started: env::Instant) {
        let describe = |tables: &[Arc<SSTable>]| -> Vec<Candidate> {
            tables.iter().map(|sstable| candidate(sstable, 0, false)).collect()
        };
        task.node_table.replaced(&describe(&task.inputs), &describe(&made.new));
        let data = |tables: &[Arc<SSTable>]| -> u64 {
            tables.iter().map(|sstable| sstable.table.data_length).sum()
        };
        let bytes: u64 = task.inputs.iter().map(|input| input.bytes_on_disk).sum();
        let stats = &self.stats;
        stats.compactions.set(stats.compactions.get() + 1);
        stats.compacted_bytes.set(stats.compacted_bytes.get() + bytes);
        stats.expired.set(stats.expired.get() + made.expired.len() as u64);
        if matches!(task.work, Work::Scrub(..)) {
            return;
        }
        let env = engine.env();
        self.compactions.ended(Record {
            id: made.id,
            keyspace: task.table.keyspace.to_string(),
            table: task.table.name.to_string(),
            millis: env.unix_micros() / 1000,
            took: env.now() - started,
            bytes_in: data(&task.inputs),
            bytes_out: data(&made.new),
            merged: made.merged.clone(),
            kind: task.choice.reason.operation(),
        });
    }

    /// Removes the files of tables that were replaced, once nobody reads them, and then the log of
    /// their replacement.
    fn remove_later(
        &self,
        engine: &Rc<Engine>,
        tables: Vec<Arc<SSTable>>,
        transaction: Option<Transaction>,
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
            if let Some(transaction) = transaction {
                let _ = transaction.finish().await;
            }
        });
    }
}

/// Removes outputs that shards had for a moment, behind the last reader that took them then.
async fn take_back(
    engine: &Rc<Engine>,
    outputs: Outputs<'_>,
    new: Vec<Arc<SSTable>>,
) -> Result<(), StorageError> {
    if !engine.env().planted("outputs_taken_back_at_once") {
        for sstable in &new {
            forget_everywhere(engine, sstable).await;
        }
    }
    outputs.abandon().await
}

/// Waits for the last reader of a table that is no longer live, and lets every shard close it.
pub(crate) async fn forget_everywhere(engine: &Rc<Engine>, sstable: &Arc<SSTable>) {
    while Arc::strong_count(sstable) > 1 {
        engine.env().sleep(REMOVAL_POLL).await;
    }
    // before, a reader could open it again
    for shard in 0..engine.shards().count() {
        let number = sstable.number;
        let forget = move |engine: &Rc<Engine>| engine.files.forget(number);
        let _ = engine.shards().call(shard, forget).await;
    }
}

pub(crate) fn estimated_partitions(sstable: &SSTable) -> u64 {
    sstable.table.statistics.stats.partition_sizes.count().max(1).cast_unsigned()
}

/// The log's intervals of inputs that this node wrote.
fn merged_intervals(engine: &Engine, inputs: &[Arc<SSTable>]) -> Vec<(LogPosition, LogPosition)> {
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

/// Does the log still hold some of these intervals? If so, some table must say that it has them, or
/// a start brings back what was purged.
async fn in_log(
    engine: &Engine,
    intervals: &[(LogPosition, LogPosition)],
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

/// Gives all shards the new set. Where a shard's memtable holds a write older than a purged
/// tombstone, which deletes it, all take the old set again. A key's memtable and its view of the
/// files are one shard's, so no write slips between the two.
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
