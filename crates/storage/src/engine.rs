//! The storage engine as one shard sees it.
//!
//! `Engine::apply` waits for memory, encodes at messaging version 12, appends and merges. No await
//! stands between the log's position and the merge.

mod memory;
mod reads;

use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use env::sync::Notify;
use metrics::Weight;
use rows::codec::MutationEncoder;
use rows::{Mutation, PartitionUpdate, RowBuilder};
use schema::{Schema, Table, TableId};
use types::hash::HashMap;

use crate::caches::{CacheKind, CacheStats, Counted, CounterCache, RowCache};
use crate::commitlog::{
    CommitLog, LogError, Position, RECORD_OVERHEAD_BYTES, SyncMode, TellLog, Ticket,
};
use crate::disk::TellDisk;
use crate::error::StorageError;
use crate::live_set::LiveSet;
use crate::memtable::{Memtable, Slot};
use crate::node::Node;
use crate::options::Options;
use crate::read::{KeyScan, ScanStart};
use crate::shards::{HasShards, Shards};
use crate::sstables::Files;
use crate::table_store::{CasStep, Measure, TableStore};
use crate::watch::{Tell, Watch, Watcher, WriteLimits};

/// Nanoseconds in a microsecond.
const NANOS: u64 = 1000;
/// Characters of the keys of a mutation that is too large that are shown, beyond the first.
const TOP_KEYS_SHOWN: usize = 1024;
/// Microseconds in a second.
const MICROS: i64 = 1_000_000;

/// Do memtables read as the SSTables that they were flushed to? What is older than the drop of a
/// column is told apart there only.
fn is_as_flushed(store: &TableStore, slots: &[Rc<Slot>]) -> bool {
    let table = store.table();
    table.layout.dropped.is_empty()
        && slots.iter().all(|slot| slot.read().table().layout == table.layout)
}

/// One shard's engine. Everything a request touches hangs on it; nothing of it is shared.
pub struct Engine {
    pub(crate) env: Env,
    pub(crate) options: Rc<Options>,
    /// This node's host id: SSTables name it beside the log's intervals. Zero until it is known.
    host_id: Cell<[u8; 16]>,
    shards: Shards<Rc<Engine>>,
    log: OnceCell<Rc<CommitLog>>,
    tables: RefCell<HashMap<TableId, Rc<TableStore>>>,
    schema: RefCell<Arc<Schema>>,
    scratch: RefCell<Scratch>,
    /// Bytes in active and frozen memtables of this shard.
    memtable_bytes: Cell<usize>,
    /// Bytes of them in frozen ones, which a flush frees.
    frozen_bytes: Cell<usize>,
    /// Bytes in active ones when the last was frozen, and the part of the flush under way that is
    /// done.
    active_at_freeze: Cell<usize>,
    flush_done: Cell<f64>,
    /// Bytes of memtables that were flushed and are kept for reads.
    kept_bytes: Cell<usize>,
    /// Writes go on without a second look below so many; 0 when the log can take no more either.
    memory_limit: Cell<usize>,
    /// Why memtables cannot be flushed now, if so: writes that find no room are refused.
    unflushed: RefCell<Option<Arc<str>>>,
    /// The log's segment of the last write.
    last_segment: Cell<i64>,
    /// Was a flush asked for since the last one ended?
    asked: Cell<bool>,
    /// Memory became free.
    pub(crate) freed: Notify,
    /// Open SSTables and their cached chunks.
    pub(crate) files: Rc<Files>,
    /// The first rows of partitions.
    pub(crate) rows: RowCache,
    /// This node's parts of counters.
    pub(crate) counters: CounterCache,
    /// Numbers the tables of which those two keep something, and each reset of one.
    resets: Rc<Cell<u64>>,
    /// What only the first shard has: the node's set of SSTables, flushes and compactions.
    pub(crate) node: OnceCell<Rc<Node>>,
    /// Who is told of what is written that is too large.
    watcher: RefCell<Option<Watcher>>,
    /// Who is told of what happens to the commit log.
    pub(crate) log_watcher: RefCell<Option<TellLog>>,
    /// Who is told of disks that fail.
    pub(crate) disk_watcher: RefCell<Option<TellDisk>>,
    /// Of the distributions that tables keep.
    weight: Weight,
    /// Counters for metrics.
    pub stats: EngineStats,
}

/// One shard's part of what a flush writes.
pub(crate) struct FrozenShare {
    pub memtables: Vec<Arc<Memtable>>,
    pub intervals: Vec<(Position, Position)>,
    pub upto: Position,
}

/// What a shard's engine counts about itself.
#[derive(Debug, Default)]
pub struct EngineStats {
    /// Mutations applied.
    pub mutations: Cell<u64>,
    /// Mutations that waited for memtable memory (`BlockedOnAllocation`).
    pub waits_for_memory: Cell<u64>,
}

#[derive(Default)]
struct Scratch {
    rows: RowBuilder,
    encoder: MutationEncoder,
    mutation: Vec<u8>,
    tables: Vec<TableId>,
}

impl HasShards for Engine {
    fn shards(&self) -> &Shards<Rc<Self>> {
        &self.shards
    }
}

impl Engine {
    /// An engine without tables and log; see [`crate::start()`].
    pub fn new(
        env: &Env,
        options: Options,
        shards: Shards<Rc<Engine>>,
        schema: Arc<Schema>,
    ) -> Rc<Self> {
        let part = |bytes: u64| (bytes / env.shards() as u64) as usize;
        let files = Files::new(env, &options);
        let rows = RowCache::new(part(options.row_cache_bytes));
        let counters = CounterCache::new(part(options.counter_cache_bytes));
        let memory = part(options.memtable_bytes);
        Rc::new(Self {
            env: env.clone(),
            options: Rc::new(options),
            host_id: Cell::new([0; 16]),
            shards,
            log: OnceCell::new(),
            tables: RefCell::default(),
            schema: RefCell::new(schema),
            scratch: RefCell::default(),
            memtable_bytes: Cell::new(0),
            frozen_bytes: Cell::new(0),
            active_at_freeze: Cell::new(0),
            flush_done: Cell::new(0.0),
            kept_bytes: Cell::new(0),
            memory_limit: Cell::new(memory),
            unflushed: RefCell::default(),
            last_segment: Cell::new(-1),
            asked: Cell::new(false),
            freed: Notify::new(),
            files: Rc::new(files),
            rows,
            counters,
            resets: Rc::default(),
            node: OnceCell::new(),
            watcher: RefCell::default(),
            log_watcher: RefCell::default(),
            disk_watcher: RefCell::default(),
            weight: Weight::default(),
            stats: EngineStats::default(),
        })
    }

    /// This node's host id.
    pub fn host_id(&self) -> [u8; 16] {
        self.host_id.get()
    }

    /// Tells the host id, before anything is replayed or flushed.
    pub fn set_host_id(&self, host_id: [u8; 16]) {
        self.host_id.set(host_id);
    }

    /// Tells of what is written to SSTables from now on and passes these limits; on the first
    /// shard, which writes them.
    pub fn watch_writes(&self, limits: WriteLimits, tell: Tell) {
        self.watcher.replace(Some((limits, tell)));
    }

    /// Tells of what happens to this shard's commit log; to be asked for before the log begins.
    pub fn watch_log(&self, tell: TellLog) {
        self.log_watcher.replace(Some(tell));
    }

    /// Watches over a file of a table.
    pub(crate) fn watch(&self, table: &Arc<Table>, file: PathBuf) -> Option<Watch> {
        let watcher = self.watcher.borrow().clone()?;
        Watch::new(watcher, table, file, self.env.unix_micros() / MICROS)
    }

    /// The outside.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The way to the other shards.
    pub fn shards(&self) -> &Shards<Rc<Engine>> {
        &self.shards
    }

    /// The schema of the present epoch.
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema.borrow())
    }

    /// This shard's commit log, once it is open.
    pub fn log(&self) -> Option<&Rc<CommitLog>> {
        self.log.get()
    }

    /// Lets the memtables begin where the log does; nothing may be in them.
    pub(crate) fn restart_memtables(&self) {
        let position = self.log_position();
        for store in self.tables.borrow().values() {
            store.restart(position);
        }
    }

    /// Is a write acknowledged before it is durable (`commitlog_sync: periodic`)?
    pub fn acknowledges_early(&self) -> bool {
        matches!(self.options.sync, SyncMode::Periodic { .. })
    }

    pub(crate) fn set_log(&self, log: Rc<CommitLog>) {
        assert!(self.log.set(log).is_ok(), "the log is opened once");
    }

    /// Where the log stands; before it is open, before everything.
    pub(crate) fn log_position(&self) -> Position {
        self.log.get().map_or(Position { segment: -1, offset: 0 }, |log| log.position())
    }

    /// The shard that owns a token.
    pub fn owner(&self, token: types::Token) -> usize {
        token.shard(self.env.shards() as u32) as usize
    }

    /// Takes the schema of another epoch: new tables appear, dropped ones vanish, altered ones go
    /// on with their new columns.
    pub fn set_schema(&self, schema: &Arc<Schema>) {
        let mut tables = self.tables.borrow_mut();
        let position = self.log_position();
        let dropped: Vec<TableId> =
            tables.keys().filter(|id| schema.table_by_id(id).is_none()).copied().collect();
        for id in dropped {
            if let Some(store) = tables.remove(&id) {
                self.free(store.clear(position));
            }
            if let Some(log) = self.log.get() {
                log.dropped(id);
            }
        }
        let keyspaces = schema.keyspaces().values();
        let defined = keyspaces.flat_map(|keyspace| keyspace.tables.values());
        for table in defined.filter(|table| !table.is_virtual()) {
            match tables.get(&table.id) {
                Some(store) => self.free(store.set_table(table, position)),
                None => {
                    let (weight, resets) = (self.weight.clone(), Rc::clone(&self.resets));
                    let store = TableStore::new(Arc::clone(table), position, weight, resets);
                    tables.insert(table.id, store);
                }
            }
        }
        drop(tables);
        *self.schema.borrow_mut() = Arc::clone(schema);
        self.count_memory();
    }

    /// This shard's data of a table.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn store(&self, id: TableId) -> Result<Rc<TableStore>, StorageError> {
        self.tables.borrow().get(&id).cloned().ok_or(StorageError::UnknownTable(id))
    }

    /// All tables of this shard.
    pub fn stores(&self) -> Vec<(TableId, Rc<TableStore>)> {
        let tables = self.tables.borrow();
        let mut stores: Vec<_> = tables.iter().map(|(id, store)| (*id, Rc::clone(store))).collect();
        stores.sort_by_key(|(id, _)| *id);
        stores
    }

    /// Bytes of the node's live SSTables.
    pub fn disk_bytes(&self) -> u64 {
        let bytes =
            |store: &TableStore| store.live().tables().iter().map(|t| t.bytes_on_disk).sum::<u64>();
        self.stores().iter().map(|(_, store)| bytes(store)).sum()
    }

    /// Logs a mutation and merges it into the memtables. The key must be this shard's. The write is
    /// visible when this returns, and may be acknowledged when the ticket says so.
    ///
    /// # Errors
    /// If a table is unknown or the log failed.
    pub fn apply(
        &self,
        mutation: &Mutation,
        durable: bool,
    ) -> impl Future<Output = Result<Ticket, StorageError>> {
        self.apply_counted(mutation, durable, &[])
    }

    /// As [`Self::apply`], for counters: `counted` says of each update what it comes to, if it does
    /// nothing but add to counters.
    ///
    /// # Errors
    /// As there.
    pub async fn apply_counted(
        &self,
        mutation: &Mutation,
        durable: bool,
        counted: &[Option<Counted>],
    ) -> Result<Ticket, StorageError> {
        // elsewhere nobody would read it until a flush
        assert_eq!(
            self.owner(mutation.token()),
            self.env.shard(),
            "a shard writes to the partitions that it owns"
        );
        let is_of_each = counted.is_empty() || counted.len() == mutation.updates().len();
        assert!(is_of_each, "either each update of a mutation has a count, or none has");
        self.wait_for_memory().await?;
        let ticket = match self.log.get().filter(|_| durable) {
            Some(log) => {
                let (tables, bytes) = self.encode(mutation)?;
                let is_captured = self.options.log.cdc.is_some() && self.is_captured(&tables);
                let ticket = log.append(&tables, &bytes, is_captured).await;
                self.give_back(tables, bytes);
                match ticket {
                    Err(LogError::TooLarge { bytes, max }) => {
                        return Err(self.oversized(mutation, bytes, max));
                    }
                    Err(LogError::CdcFull { used }) => {
                        return Err(self.not_captured(mutation, used));
                    }
                    ticket => ticket?,
                }
            }
            None => Ticket::without_log(self.log_position()),
        };
        // No await between the log's position and the memtable: a memtable holds the records of one
        // unbroken stretch of the log.
        self.merge(mutation, ticket.position, counted)?;
        let segment = self.last_segment.replace(ticket.position.segment);
        self.watch_limits(segment != ticket.position.segment);
        Ok(ticket)
    }

    /// Does a table among these have `cdc = true`?
    fn is_captured(&self, tables: &[TableId]) -> bool {
        let stores = self.tables.borrow();
        tables.iter().any(|id| stores.get(id).is_some_and(|store| store.table().params.cdc))
    }

    fn not_captured(&self, mutation: &Mutation, used: u64) -> StorageError {
        let schema = self.schema();
        let table = mutation.updates().first();
        let table = table.and_then(|update| schema.table_by_id(&TableId(update.table)));
        let cdc = self.options.log.cdc.as_ref();
        StorageError::NotCaptured(format!(
            "Rejecting mutation to keyspace {}. Free up space in {} by processing CDC logs. Total CDC bytes on disk is \
             {used}.",
            table.map_or("", |table| table.keyspace.as_str()),
            cdc.map(|cdc| cdc.directory.display().to_string()).unwrap_or_default()
        ))
    }

    /// Refuses a mutation that is too large, before any part of its batch is applied.
    ///
    /// # Errors
    /// If it is.
    pub fn check_size(&self, mutation: &Mutation) -> Result<(), StorageError> {
        /// A mutation takes less than so many times what it takes in memory.
        const ENCODED_PART: usize = 4;
        let max = self.mutation_bytes_max();
        let about: usize = mutation.updates().iter().map(PartitionUpdate::size).sum();
        if about.saturating_mul(ENCODED_PART) < max {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let encoded = MutationEncoder::new().mutation(mutation, &mut bytes);
        encoded.map_err(|error| StorageError::Encode(error.to_string()))?;
        match bytes.len() + RECORD_OVERHEAD_BYTES {
            bytes if bytes > max => Err(self.oversized(mutation, bytes, max)),
            _ => Ok(()),
        }
    }

    /// `max_mutation_size`, in bytes.
    pub(crate) fn mutation_bytes_max(&self) -> usize {
        let half = self.options.segment_bytes as usize / 2;
        self.options.log.mutation_bytes_max.unwrap_or(half)
    }

    /// What is said of a mutation that is too large (`MutationExceededMaxSizeException`): its
    /// partitions, the largest first.
    fn oversized(&self, mutation: &Mutation, bytes: usize, max: usize) -> StorageError {
        let schema = self.schema();
        let mut encoder = MutationEncoder::new();
        let mut keyspace = String::new();
        let mut keys: Vec<(usize, String)> = Vec::new();
        for update in mutation.updates() {
            let Some(table) = schema.table_by_id(&TableId(update.table)) else { continue };
            let mut alone = Vec::new();
            // of a mutation that was encoded already, each part can be
            let _ = encoder.mutation(&Mutation::new(update.clone()), &mut alone);
            keyspace.clone_from(&table.keyspace);
            let key = table.key_text(mutation.key());
            keys.push((alone.len(), format!("{}.{key}", table.name)));
        }
        keys.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut shown = String::new();
        let mut left = keys.len();
        for (_, key) in &keys {
            if left < keys.len() && shown.len() + key.len() + 2 > TOP_KEYS_SHOWN {
                break;
            }
            let comma = if shown.is_empty() { "" } else { ", " };
            shown = format!("{shown}{comma}{key}");
            left -= 1;
        }
        if left > 0 {
            shown = format!("{shown} and {left} more.");
        }
        StorageError::MutationTooLarge(format!(
            "Rejected an oversized mutation ({bytes}/{max}) for keyspace: {keyspace}. Top keys are: {shown}"
        ))
    }

    fn encode(&self, mutation: &Mutation) -> Result<(Vec<TableId>, Vec<u8>), StorageError> {
        let mut scratch = self.scratch.borrow_mut();
        let mut tables = std::mem::take(&mut scratch.tables);
        let mut bytes = std::mem::take(&mut scratch.mutation);
        drop(scratch);
        tables.clear();
        bytes.clear();
        for update in mutation.updates() {
            tables.push(TableId(update.table));
            self.store(TableId(update.table))?;
        }
        let encoded = self.scratch.borrow_mut().encoder.mutation(mutation, &mut bytes);
        encoded.map_err(|error| StorageError::Encode(error.to_string()))?;
        Ok((tables, bytes))
    }

    fn give_back(&self, tables: Vec<TableId>, bytes: Vec<u8>) {
        /// A buffer that one huge mutation grew is not kept.
        const KEEP_BYTES_MAX: usize = 256 << 10;
        let mut scratch = self.scratch.borrow_mut();
        scratch.tables = tables;
        if bytes.capacity() <= KEEP_BYTES_MAX {
            scratch.mutation = bytes;
        }
    }

    /// Merges a mutation into the memtables, as a record that ends at `position`; `counted` is what
    /// its updates of counters come to.
    pub(crate) fn merge(
        &self,
        mutation: &Mutation,
        position: Position,
        counted: &[Option<Counted>],
    ) -> Result<(), StorageError> {
        let mut scratch = self.scratch.borrow_mut();
        let mut started = self.env.now();
        for (place, update) in mutation.updates().iter().enumerate() {
            let store = self.store(TableId(update.table))?;
            let grown = store.active().write(|memtable| {
                let before = memtable.bytes();
                memtable.apply(update, position, &mut scratch.rows);
                memtable.bytes() as isize - before as isize
            });
            let grown = grown.expect("the active memtable of a table takes writes");
            if self.rows.is_on() && !self.env.planted("row_cache_survives_write") {
                self.rows.forget(&store, &update.key);
            }
            if update.layout.counter && self.counters.is_on() {
                // what was counted names columns as the update does
                let is_as_made = update.layout.has_columns_of(&store.table().layout);
                let counted = counted.get(place).and_then(Option::as_ref).filter(|_| is_as_made);
                self.counters_written(&store, update, counted);
            }
            self.memtable_bytes.set(self.memtable_bytes.get().saturating_add_signed(grown));
            store.stats.writes.set(store.stats.writes.get() + 1);
            let ended = self.env.now();
            let took = ended.as_nanos().saturating_sub(started.as_nanos());
            store.stats.write_ns.set(store.stats.write_ns.get() + took);
            store.stats.record(Measure::LocalWrite, took / NANOS);
            started = ended;
        }
        self.stats.mutations.set(self.stats.mutations.get() + 1);
        Ok(())
    }

    /// Counts a read of a partition that began at `started` and took something from so many
    /// SSTables.
    pub fn read_ended(&self, table: TableId, started: env::Instant, sstables: usize) {
        if let Ok(store) = self.store(table) {
            let took = self.env.now().as_nanos().saturating_sub(started.as_nanos());
            store.stats.read_ns.set(store.stats.read_ns.get() + took);
            store.stats.record(Measure::LocalRead, took / NANOS);
            store.stats.record(Measure::SSTablesPerRead, sstables as u64 + 1);
        }
    }

    /// Counts a step of a conditional request.
    pub fn cas_ended(&self, table: TableId, step: CasStep, started: env::Instant) {
        if let Ok(store) = self.store(table) {
            let timed = store.stats.cas(step);
            let took = self.env.now().as_nanos().saturating_sub(started.as_nanos());
            timed.count.set(timed.count.get() + 1);
            timed.ns.set(timed.ns.get() + took);
        }
    }

    /// Counts what a request measured at a table.
    pub fn measured(&self, table: TableId, values: &[(Measure, u64)]) {
        if let Ok(store) = self.store(table) {
            values.iter().for_each(|(measure, value)| store.stats.record(*measure, *value));
        }
    }

    /// What values of this shard's distributions weigh; the registry that lets them fade shares it.
    pub fn weight(&self) -> &Weight {
        &self.weight
    }

    /// What a cache of this shard holds and did.
    pub fn cache_stats(&self, kind: CacheKind) -> CacheStats {
        match kind {
            CacheKind::Chunks => self.files.chunk_stats(),
            CacheKind::Keys => self.files.key_stats(),
            CacheKind::Rows => self.rows.stats(),
            CacheKind::Counters => self.counters.stats(),
        }
    }

    /// Gives a cache another limit, of which this shard takes its part.
    pub fn set_cache_limit(&self, kind: CacheKind, node_bytes: u64) {
        let limit = (node_bytes / self.env.shards() as u64) as usize;
        match kind {
            CacheKind::Chunks => self.files.set_chunk_limit(limit),
            CacheKind::Keys => self.files.set_key_limit(limit),
            CacheKind::Rows => self.rows.set_limit(limit),
            CacheKind::Counters => self.counters.set_limit(limit),
        }
    }

    /// Empties a cache.
    pub fn clear_cache(&self, kind: CacheKind) {
        match kind {
            CacheKind::Chunks => self.files.clear_chunks(),
            CacheKind::Keys => self.files.clear_keys(),
            CacheKind::Rows => self.rows.clear(),
            CacheKind::Counters => self.counters.clear(),
        }
    }

    /// SSTables that this shard has open.
    pub fn open_sstables(&self) -> usize {
        self.files.open_count()
    }

    /// The keys of this shard's partitions of a table, in the order of tokens.
    ///
    /// # Errors
    /// If the table is unknown or an SSTable cannot be read.
    pub async fn scan(
        self: &Rc<Self>,
        table: &Table,
        start: ScanStart,
    ) -> Result<KeyScan, StorageError> {
        let store = self.store(table.id)?;
        store.stats.range_reads.set(store.stats.range_reads.get() + 1);
        KeyScan::start(self, &store, start).await
    }

    /// Freezes this shard's memtables of a table for a flush: they, their intervals of the log, and
    /// the position up to which the log will not need this table's records any more.
    pub(crate) fn freeze(&self, id: TableId, flush: u64) -> Result<FrozenShare, StorageError> {
        let store = self.store(id)?;
        let position = self.log_position();
        let memtables = store.freeze(flush, position);
        self.measure_memory();
        self.flush_begins();
        let mut intervals = Vec::new();
        for memtable in &memtables {
            let (from, to) = memtable.log_bounds();
            assert!(
                from <= to,
                "a memtable's part of the log ends at or after its start: {from:?} to {to:?}"
            );
            if let Some(log) = self.log.get().filter(|_| from < to) {
                intervals.extend(log.intervals(from, to));
            }
        }
        Ok(FrozenShare { memtables, intervals, upto: position })
    }

    /// Ends the log's segment and the memtables of a table at one point: what the memtables hold is
    /// in segments up to `floor`, what comes later is not.
    pub(crate) fn cut(
        &self,
        id: TableId,
        flush: u64,
        floor: i64,
    ) -> Result<FrozenShare, StorageError> {
        if let Some(log) = self.log.get() {
            log.leave_behind(floor)?;
        }
        self.freeze(id, flush)
    }

    /// The oldest timestamp in this shard's memtables of a table; `i64::MAX` for none.
    pub(crate) fn oldest_in_memory(&self, id: TableId) -> i64 {
        let mut oldest = i64::MAX;
        if let Ok(store) = self.store(id) {
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
    pub(crate) fn swap_live(&self, id: TableId, live: Arc<LiveSet>, purged: i64) -> bool {
        let Ok(store) = self.store(id) else { return true };
        if self.oldest_in_memory(id) <= purged {
            return false;
        }
        let outdated = store.set_live(live);
        self.free(outdated);
        self.measure_memory();
        true
    }

    /// SSTables have what a flush froze: takes their new set, frees memory and log.
    pub(crate) fn flushed(&self, id: TableId, flush: u64, live: Arc<LiveSet>, upto: Position) {
        if let Ok(store) = self.store(id) {
            let before = store.live();
            let is_new = |number: &u64| before.tables().iter().all(|table| table.number != *number);
            let numbers = live.tables().iter().map(|table| table.number);
            let new: Vec<u64> = numbers.filter(is_new).collect();
            if !self.env.planted("stale_cache_after_flush") {
                self.free(store.set_live(live));
            }
            let slots = store.retire(flush);
            match self.options.keeps_flushed && !new.is_empty() && is_as_flushed(&store, &slots) {
                true => store.kept().borrow_mut().keep(flush, slots, new),
                false => self.free(slots),
            }
        }
        if let Some(log) = self.log.get() {
            log.flushed(id, upto);
        }
        self.asked.set(false);
        self.count_memory();
        self.trim_kept();
    }

    /// From now on nothing that was kept of a table's rows and counters is taken for what is there.
    pub(crate) fn forget_rows(&self, id: TableId) {
        if let Ok(store) = self.store(id) {
            store.reset_rows();
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({:?})", self.env)
    }
}
