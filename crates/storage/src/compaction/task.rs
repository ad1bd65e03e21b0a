//! A task: its inputs become outputs, in one step that a crash cannot tear and no reader sees half
//! of.
//!
//! Tombstones go after `gc_grace_seconds` if no other SSTable and no memtable can hold what they
//! delete. Each shard checks its memtables again at the moment of the swap. If one has such a
//! write, all shards take the old set back, and the task runs again without a purge.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rows::codec::EncodingStats;
use rows::{NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};
use sstable::statistics::LogPosition;
use sstable::writer::WriterOptions;

use super::look::{Look, candidate};
use super::merge::{Merged, Pace, Purging, merge_all};
use super::record::Record;
use super::running::{RunningCompaction, RunningCompactions};
use super::scrub::scrub_one;
use super::space;
use super::work::{Task, Work};
use crate::disk_failures::DiskFailures;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::io::Throttle;
use crate::node_stats::NodeStats;
use crate::node_tables::{NodeTables, Outputs, forget_everywhere, writer_options};
use crate::sstables::{SSTable, remove_descriptor};
use crate::strategies::{Candidate, Reason, Splitter};
use types::Uuid;

/// The operation in the name of a transaction log (`OperationType.ANTICOMPACTION`).
const ANTICOMPACTION: &str = "anticompaction";

/// What is asserted of every task.
const SOME_INPUTS: &str = "a compaction has inputs";
/// Otherwise what is not repaired would count as repaired, or be taken out of its session.
const ONE_STATE: &str = "SSTables that a repair keeps apart are not compacted together";

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

/// Who is told of compactions that ended.
pub type TellEnded = Rc<dyn Fn(Record)>;

/// Does tasks.
pub(super) struct Tasks {
    tables: Rc<NodeTables>,
    failures: Rc<DiskFailures>,
    stats: Rc<NodeStats>,
    throttle: Throttle,
    running: RunningCompactions,
    told: RefCell<Option<TellEnded>>,
}

impl Tasks {
    /// They keep to so many bytes per second together.
    pub fn new(
        tables: &Rc<NodeTables>,
        failures: &Rc<DiskFailures>,
        stats: &Rc<NodeStats>,
        bytes_per_second: u64,
    ) -> Self {
        Self {
            tables: Rc::clone(tables),
            failures: Rc::clone(failures),
            stats: Rc::clone(stats),
            throttle: Throttle::new(bytes_per_second),
            running: RunningCompactions::default(),
            told: RefCell::default(),
        }
    }

    pub fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// Those under way.
    pub fn running(&self) -> &RunningCompactions {
        &self.running
    }

    /// Tells of each that ends from now on.
    pub fn tell(&self, tell: TellEnded) {
        self.told.replace(Some(tell));
    }

    /// Does a task; false if it has to wait for something else.
    pub async fn run(&self, engine: &Rc<Engine>, task: &Task<'_>) -> Result<bool, StorageError> {
        let done = self.run_task(engine, task).await;
        done.inspect_err(|error| self.failures.inspect(error))
    }

    async fn run_task(&self, engine: &Rc<Engine>, task: &Task<'_>) -> Result<bool, StorageError> {
        if task.choice.moves {
            return self.change_levels(engine, task).await.map(|()| true);
        }
        if matches!(task.work, Work::Scrub(..)) {
            space::reduce((&self.tables, &self.running), engine, task).await?;
            return self.try_task(engine, task, false).await.map(|_| true);
        }
        if matches!(task.work, Work::Divide(..)) {
            space::reduce((&self.tables, &self.running), engine, task).await?;
            // nothing is purged, and so nothing is needed back
            while !self.try_task(engine, task, false).await? {}
            return Ok(true);
        }
        // What is put aside may need every tombstone when it comes back.
        let is_whole =
            task.of.node.is_whole() || engine.env().planted("purged_beside_what_is_aside");
        let reduced = space::reduce((&self.tables, &self.running), engine, task).await?;
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
            let _change = task.of.node.change().await;
            if task.of.node.live().tables().iter().any(|t| t.number == input.number) {
                input.set_level(engine.env(), task.choice.level).await?;
            }
            if task.choice.level > 0 {
                task.of.compactions.replaced(&[before], &[candidate(input, 0, false)]);
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
        let options = options_of(engine, task, &splitter)?;
        let of = (&task.of.table, &*task.of.node);
        let operation = match task.work {
            Work::Divide(..) => ANTICOMPACTION,
            _ => "compaction",
        };
        let mut outputs =
            Outputs::new(&self.tables, engine, of, operation, splitter, options).await?;
        if let Work::Divide(division, _) = task.work {
            outputs.divide(division);
        }
        let made = match self.merge(engine, task, purge, &mut outputs).await {
            Ok(made) => made,
            Err(error) => {
                // What cannot be removed now is removed at the next start: the log says so.
                let _ = outputs.abandon().await;
                return Err(error);
            }
        };
        let (id, numbers) = (task.of.table.id, task.numbers());
        let change = task.of.node.change().await;
        let before = task.of.node.live();
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
        assert!(task.is_kept_apart(&made.new), "outputs have the state of their inputs");
        // What came in since the task began may be what a purged tombstone deletes. What other
        // tasks made of what was there then was taken into account.
        // Of a scrubbed SSTable of which nothing is left, the log may well bring back what it still
        // has.
        let is_scrub = matches!(task.work, Work::Scrub(..) | Work::Keep(_));
        let newcomers = before.tables().iter().filter(|table| table.epoch > made.look.epoch);
        let mut oldest = newcomers.map(|table| table.table.statistics.stats.min_timestamp);
        let safe = oldest.all(|oldest| oldest > made.purged)
            && (!made.new.is_empty() || is_scrub || !in_log(engine, &made.intervals).await?);
        if !safe || !self.tables.exchange(id, &before, &after, made.purged).await? {
            drop(after);
            take_back(engine, outputs, made.new).await?;
            return Ok(false);
        }
        // of themselves worlds take outputs back once in hundreds
        let env = engine.env();
        let is_often =
            env.planted("outputs_taken_back_often") || env.planted("outputs_taken_back_at_once");
        if is_often && env.random_u64().is_multiple_of(4) {
            self.tables.exchange(id, &after, &before, i64::MIN).await?;
            drop(after);
            take_back(engine, outputs, made.new).await?;
            return Ok(false);
        }
        let removed: Vec<_> = task.inputs.iter().map(|input| input.place()).collect();
        if engine.env().planted("inputs_removed_before_commit") {
            for input in &task.inputs {
                let descriptor = &input.table.descriptor;
                remove_descriptor(engine.env(), &input.directory, descriptor).await?;
            }
        }
        if let Err(error) = outputs.commit(&removed).await {
            self.tables.exchange(id, &after, &before, i64::MIN).await?;
            drop(after);
            let _ = take_back(engine, outputs, made.new).await;
            return Err(error);
        }
        let transaction = outputs.into_new().into_transaction();
        let (gone, come) = (task.inputs.len(), made.new.len());
        let is_exchange = after.tables().len() + gone == before.tables().len() + come;
        assert!(is_exchange, "a compaction replaces only its inputs by the SSTables that it wrote");
        change.set(&after);
        self.account(engine, task, &made, started);
        engine.env().mark("compaction.done");
        self.tables.remove_later(engine, id, task.inputs.clone(), transaction);
        Ok(true)
    }

    async fn merge(
        &self,
        engine: &Rc<Engine>,
        task: &Task<'_>,
        purge: bool,
        outputs: &mut Outputs<'_>,
    ) -> Result<Made, StorageError> {
        let env = engine.env();
        let (table, compactions) = (&task.of.table, &task.of.compactions);
        let look = Look::at(engine, table, (&task.of.node, compactions)).await?;
        let numbers = task.numbers();
        let candidates = || look.tables.iter().filter(|candidate| numbers.contains(&candidate.id));
        let (allowed, expired) = compactions.strategy(table, |strategy| {
            let allowed = purge && strategy.may_purge(candidates());
            let expired = look.view(|view| strategy.expired(view, &numbers));
            (allowed, if allowed { expired } else { Vec::new() })
        });
        let live = look.live.tables().iter();
        let others: Vec<_> = live.filter(|t| !numbers.contains(&t.number)).cloned().collect();
        let newest = |candidate: &Candidate| candidate.max_timestamp;
        let dropped = candidates().filter(|c| expired.contains(&c.id)).map(newest).max();
        let oldest = candidates().map(|candidate| candidate.min_timestamp);
        let mut purging = Purging {
            now: look.now_seconds,
            gc_before: look.gc_before(),
            others: if env.planted("tombstone_purged_early") { Vec::new() } else { others },
            allowed,
            garbage: match task.work {
                Work::Collect(granularity) => granularity,
                _ => table.params.compaction.tombstone_option(),
            },
            keeps: match task.work {
                Work::Keep(ranges) => Some(ranges.to_vec()),
                _ => None,
            },
            oldest: oldest.min().unwrap_or(i64::MIN),
            purged: Cell::new(dropped.unwrap_or(i64::MIN)),
        };
        if let Work::Divide(division, _) = task.work {
            let loses = env.planted("anticompaction_loses_the_rest");
            let keeps = loses.then(|| division.ranges.clone());
            purging = Purging { keeps, ..Purging::none() };
        }
        let needed = task.inputs.iter().filter(|input| !expired.contains(&input.number));
        let needed: Vec<_> = needed.cloned().collect();
        let unique = env.unique_micros();
        let running = self.running.show(RunningCompaction {
            id: types::Uuid::from_unix_micros(unique, env.random_u64()).to_bytes(),
            table: table.id,
            kind: task.choice.reason.operation(),
            total: needed.iter().map(|input| input.table.data_length).sum(),
            written: Cell::new(0),
            sstables: task.inputs.len(),
            directory: outputs.places().first().cloned().unwrap_or_default(),
            inputs: numbers,
            stop: match task.work {
                Work::Divide(_, stop) => Rc::clone(stop),
                _ => Rc::default(),
            },
        });
        let mut pace = Pace::new(env, &self.throttle, running.shown());
        let mut merged = Merged::new();
        match task.work {
            Work::Merge | Work::Collect(_) | Work::Keep(_) | Work::Divide(..) => {
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
        let new = outputs.finish(epoch).await?;
        let intervals = merged_intervals(engine, &task.inputs);
        let purged = purging.purged.get();
        Ok(Made { id: running.shown().id, look, expired, new, purged, merged, intervals })
    }

    fn account(&self, engine: &Engine, task: &Task<'_>, made: &Made, started: env::Instant) {
        let describe = |tables: &[Arc<SSTable>]| -> Vec<Candidate> {
            tables.iter().map(|sstable| candidate(sstable, 0, false)).collect()
        };
        task.of.compactions.replaced(&describe(&task.inputs), &describe(&made.new));
        let data = |tables: &[Arc<SSTable>]| -> u64 {
            tables.iter().map(|sstable| sstable.table.data_length).sum()
        };
        let bytes: u64 = task.inputs.iter().map(|input| input.bytes_on_disk).sum();
        let stats = &self.stats;
        stats.compactions.set(stats.compactions.get() + 1);
        stats.compacted_bytes.set(stats.compacted_bytes.get() + bytes);
        stats.expired.set(stats.expired.get() + made.expired.len() as u64);
        if matches!(task.work, Work::Scrub(..) | Work::Divide(..)) {
            return;
        }
        if let Ok(store) = engine.store(task.of.table.id) {
            let before = store.stats.compacted_to.get();
            store.stats.compacted_to.set(before + data(&made.new));
        }
        let env = engine.env();
        let told = self.told.borrow().clone();
        let Some(tell) = told else { return };
        tell(Record {
            id: made.id,
            keyspace: task.of.table.keyspace.to_string(),
            table: task.of.table.name.to_string(),
            millis: env.unix_micros() / 1000,
            took: env.now() - started,
            bytes_in: data(&task.inputs),
            bytes_out: data(&made.new),
            merged: made.merged.clone(),
            kind: task.choice.reason.operation(),
        });
    }
}

fn options_of(
    engine: &Engine,
    task: &Task<'_>,
    splitter: &Splitter,
) -> Result<WriterOptions, StorageError> {
    let inputs = &task.inputs;
    let mut options = writer_options(engine, &task.of.table)?;
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
    let status = task.status().expect(ONE_STATE);
    options.repaired_at = status.repaired_at();
    options.pending_repair = status.session().map(Uuid::to_bytes);
    Ok(options)
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
