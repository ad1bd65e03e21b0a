//! A shard's memtables of all tables: what writes merge into, what a flush freezes, and what
//! SSTables replace.
//!
//! A key's memtable and its view of the SSTables are one shard's: no write slips between the two.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use env::{Env, Instant};
use rows::{Mutation, PartitionUpdate, RowBuilder};
use schema::{Schema, TableId};

use super::caches::Caches;
use super::memory::Memory;
use super::shard_log::ShardLog;
use super::tables::Tables;
use crate::caches::Counted;
use crate::commitlog::Position;
use crate::error::StorageError;
use crate::memtable::{Memtable, Slot};
use crate::options::Options;
use crate::samples::{Sampler, data_size};
use crate::sstables::LiveSet;
use crate::table_store::{Measure, TableStore};

/// Nanoseconds in a microsecond.
pub(super) const NANOS: u64 = 1000;

/// One shard's part of what a flush writes.
pub(crate) struct FrozenShare {
    pub memtables: Vec<Arc<Memtable>>,
    pub intervals: Vec<(Position, Position)>,
    pub upto: Position,
}

/// The memtables of one shard.
pub(crate) struct Memtables {
    env: Env,
    options: Rc<Options>,
    tables: Rc<Tables>,
    log: Rc<ShardLog>,
    caches: Rc<Caches>,
    memory: Memory,
    rows: RefCell<RowBuilder>,
}

/// Do memtables read as the SSTables that they were flushed to? What is older than the drop of a
/// column is told apart there only.
fn is_as_flushed(store: &TableStore, slots: &[Rc<Slot>]) -> bool {
    let table = store.table();
    table.layout.dropped.is_empty()
        && slots.iter().all(|slot| slot.read().table().layout == table.layout)
}

/// Gives a write to the samples of its table.
#[cold]
fn sample(store: &TableStore, update: &PartitionUpdate, now: Instant) {
    store.samples.take(Sampler::Writes, now, 1, &update.key);
    if store.samples.has(Sampler::WriteSize) {
        store.samples.take(Sampler::WriteSize, now, data_size(update), &update.key);
    }
}

impl Memtables {
    pub(super) fn new(
        env: &Env,
        options: &Rc<Options>,
        tables: &Rc<Tables>,
        log: &Rc<ShardLog>,
        caches: &Rc<Caches>,
    ) -> Self {
        Self {
            env: env.clone(),
            options: Rc::clone(options),
            tables: Rc::clone(tables),
            log: Rc::clone(log),
            caches: Rc::clone(caches),
            memory: Memory::new(env, options, tables),
            rows: RefCell::default(),
        }
    }

    /// The memory that they take.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Lets them begin where the log does; nothing may be in them.
    pub fn restart(&self) {
        let position = self.log.position();
        self.tables.for_each(|_, store| store.restart(position));
    }

    /// Takes the schema of another epoch.
    pub(super) fn set_schema(&self, schema: &Arc<Schema>) {
        let left = self.tables.set_schema(schema, self.log.position());
        self.memory.free(left.slots);
        for id in left.dropped {
            if let Some(log) = self.log.get() {
                log.dropped(id);
            }
        }
        self.memory.count();
    }

    /// Merges a mutation, as a record that ends at `position`; `counted` is what its updates of
    /// counters come to. All that enters a memtable comes by here, and with it what caches had of
    /// its partitions goes.
    pub fn merge(
        &self,
        mutation: &Mutation,
        position: Position,
        counted: &[Option<Counted>],
    ) -> Result<(), StorageError> {
        let mut rows = self.rows.borrow_mut();
        let mut started = self.env.now();
        for (place, update) in mutation.updates().iter().enumerate() {
            let store = self.tables.store(TableId(update.table))?;
            let grown = store.active().write(|memtable| {
                let before = memtable.bytes();
                memtable.apply(update, position, &mut rows);
                memtable.bytes() as isize - before as isize
            });
            let grown = grown.expect("the active memtable of a table takes writes");
            self.caches.written(&store, update, counted.get(place).and_then(Option::as_ref));
            self.memory.grew(grown);
            store.stats.writes.set(store.stats.writes.get() + 1);
            let ended = self.env.now();
            let took = ended.as_nanos().saturating_sub(started.as_nanos());
            store.stats.write_ns.set(store.stats.write_ns.get() + took);
            store.stats.record(Measure::LocalWrite, took / NANOS);
            if store.samples.is_on() {
                sample(&store, update, ended);
            }
            started = ended;
        }
        Ok(())
    }

    /// Freezes this shard's memtables of a table for a flush: they, their intervals of the log, and
    /// the position up to which the log will not need this table's records any more.
    pub fn freeze(&self, id: TableId, flush: u64) -> Result<FrozenShare, StorageError> {
        let store = self.tables.store(id)?;
        let position = self.log.position();
        let memtables = store.freeze(flush, position);
        self.memory.flush_began();
        let mut intervals = Vec::new();
        let mut before = None;
        for memtable in &memtables {
            let (from, to) = memtable.log_bounds();
            assert!(
                from <= to,
                "a memtable's part of the log ends at or after its start: {from:?} to {to:?}"
            );
            // what is replayed is of earlier logs, before this one stands anywhere
            let Some(log) = self.log.get() else { continue };
            assert!(
                before <= Some(from) && to <= position,
                "memtables have parts of the log one after the other, up to where it stands: \
                 {before:?}, {from:?} to {to:?}, {position:?}"
            );
            before = Some(to);
            if from < to {
                intervals.extend(log.intervals(from, to));
            }
        }
        Ok(FrozenShare { memtables, intervals, upto: position })
    }

    /// Ends the log's segment and the memtables of a table at one point: what the memtables hold is
    /// in segments up to `floor`, what comes later is not.
    pub fn cut(&self, id: TableId, flush: u64, floor: i64) -> Result<FrozenShare, StorageError> {
        if let Some(log) = self.log.get() {
            log.leave_behind(floor)?;
        }
        self.freeze(id, flush)
    }

    /// The oldest timestamp in memtables of a table; `i64::MAX` for none.
    pub fn oldest(&self, id: TableId) -> i64 {
        let mut oldest = i64::MAX;
        if let Ok(store) = self.tables.store(id) {
            store.for_each_memtable(|slot| {
                let memtable = slot.read();
                if !memtable.is_empty() {
                    oldest = oldest.min(memtable.minima().min_timestamp);
                }
            });
        }
        oldest
    }

    /// Takes another set of SSTables of a table, unless a memtable holds a write as old as a
    /// tombstone that they no longer have.
    pub fn swap_live(&self, id: TableId, live: Arc<LiveSet>, purged: i64) -> bool {
        let Ok(store) = self.tables.store(id) else { return true };
        if self.oldest(id) <= purged {
            return false;
        }
        let outdated = store.set_live(live);
        self.memory.free(outdated);
        self.memory.measure();
        true
    }

    /// SSTables have what a flush froze: takes their new set, frees memory and log.
    pub fn flushed(&self, id: TableId, flush: u64, live: Arc<LiveSet>, upto: Position) {
        if let Ok(store) = self.tables.store(id) {
            let before = store.live();
            let is_new = |number: &u64| before.tables().iter().all(|table| table.number != *number);
            let numbers = live.tables().iter().map(|table| table.number);
            let new: Vec<u64> = numbers.filter(is_new).collect();
            if !self.env.planted("stale_cache_after_flush") {
                self.memory.free(store.set_live(live));
            }
            let slots = store.retire(flush);
            match self.options.keeps_flushed && !new.is_empty() && is_as_flushed(&store, &slots) {
                true => store.kept().borrow_mut().keep(flush, slots, new),
                false => self.memory.free(slots),
            }
        }
        self.log.flushed(id, upto);
        self.memory.flush_ended();
    }

    /// From now on nothing that was kept of a table's rows and counters is taken for what is there.
    pub fn forget_rows(&self, id: TableId) {
        if let Ok(store) = self.tables.store(id) {
            store.reset_rows();
        }
    }

    /// So much of the flush under way is done, 1 for all.
    pub fn flush_gets_on(&self, done: f64) {
        self.memory.flush_gets_on(done);
    }

    /// Memtables cannot be flushed, or can again.
    pub fn set_unflushed(&self, why: Option<Arc<str>>) {
        self.memory.set_unflushed(why);
    }

    /// Do they take so much that a replay has to flush them?
    pub fn are_over_threshold(&self) -> bool {
        self.memory.is_over_threshold()
    }
}
