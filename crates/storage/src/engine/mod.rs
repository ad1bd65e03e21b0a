//! The storage engine as one shard sees it.
//!
//! `Engine::apply` waits for memory, encodes at messaging version 12, appends and merges. No await
//! stands between the log's position and the merge.

mod caches;
mod encoder;
mod memory;
mod memtables;
mod reads;
mod sampling;
mod shard_log;
mod tables;

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use metrics::Weight;
use rows::Mutation;
use schema::{Schema, Table, TableId};
use sstable::descriptor::Version;

pub use self::caches::Caches;
use self::encoder::{Encoder, check_size, not_captured, oversized};
pub(crate) use self::memtables::{FrozenShare, Memtables};
use self::shard_log::ShardLog;
use self::tables::Tables;
use crate::caches::Counted;
use crate::commitlog::{CommitLog, Inherited, LogError, Position, SyncMode, TellLog, Ticket};
use crate::disk_event::{DiskEvent, TellDisk};
use crate::error::StorageError;
use crate::options::Options;
use crate::shards::{HasShards, Shards};
use crate::sstables::{Files, Tell, Watch, Watcher, WriteLimits};
use crate::table_store::{CasStep, Measure, TableStore};

/// Microseconds in a second.
const MICROS: i64 = 1_000_000;
/// While nothing can be flushed, the log grows to so many times its limit: what is overwritten
/// takes no memory.
const LOG_EXCESS: u64 = 2;

/// One shard's engine. Everything a request touches hangs on it; nothing of it is shared.
///
/// It is what the crates above know of a shard, and so has more than 30 methods: most of them are
/// one call to the component whose state it is.
pub struct Engine {
    env: Env,
    pub(crate) options: Rc<Options>,
    shards: Shards<Rc<Engine>>,
    tables: Rc<Tables>,
    log: Rc<ShardLog>,
    memtables: Memtables,
    encoder: Encoder,
    /// Open SSTables and their cached chunks.
    pub(crate) files: Rc<Files>,
    caches: Rc<Caches>,
    watchers: Watchers,
    /// Is anything of a table sampled on this shard?
    is_sampling: Cell<bool>,
    /// On the first shard: what the node has once.
    background: OnceCell<Rc<dyn Background>>,
    /// Counters for metrics.
    pub stats: EngineStats,
}

/// Who is told of what the first shard meets.
#[derive(Default)]
struct Watchers {
    /// Of what is written that is too large.
    writes: RefCell<Option<Watcher>>,
    /// Of disks that fail.
    disks: RefCell<Option<TellDisk>>,
}

/// What the shards ask of the first one. Whoever does it stands above the engines, and knows them.
pub(crate) trait Background: Any {
    /// Has a table flushed soon.
    fn want_flush(&self, table: TableId);
    /// Writes wait for memory: a flush is to make haste.
    fn memory_is_short(&self);
    /// A request met an error: has a disk failed?
    fn inspect(&self, error: &StorageError);
}

/// What a shard's engine counts about itself.
#[derive(Debug, Default)]
pub struct EngineStats {
    /// Mutations applied.
    pub mutations: Cell<u64>,
    /// Mutations that waited for memtable memory (`BlockedOnAllocation`).
    pub waits_for_memory: Cell<u64>,
    /// The log's segment of the last write.
    last_segment: Cell<i64>,
}

impl HasShards for Engine {
    fn shards(&self) -> &Shards<Rc<Self>> {
        &self.shards
    }
}

impl Engine {
    /// An engine without tables and log; see [`crate::NodeStore`].
    pub fn new(
        env: &Env,
        options: Options,
        shards: Shards<Rc<Engine>>,
        schema: Arc<Schema>,
    ) -> Rc<Self> {
        let options = Rc::new(options);
        let files = Rc::new(Files::new(env, &options));
        let (tables, log) = (Tables::new(schema), Rc::<ShardLog>::default());
        let caches = Caches::new(env, &options, &files);
        let memtables = Memtables::new(env, &options, &tables, &log, &caches);
        Rc::new(Self {
            env: env.clone(),
            options,
            shards,
            tables,
            log,
            memtables,
            encoder: Encoder::default(),
            files,
            caches,
            watchers: Watchers::default(),
            is_sampling: Cell::new(false),
            background: OnceCell::new(),
            stats: EngineStats { last_segment: Cell::new(-1), ..EngineStats::default() },
        })
    }

    /// The version of the SSTables that it writes.
    pub fn sstable_version(&self) -> Version {
        self.options.sstable_version
    }

    /// This node's host id.
    pub fn host_id(&self) -> [u8; 16] {
        self.log.host_id()
    }

    /// Tells the host id, before anything is replayed or flushed.
    pub fn set_host_id(&self, host_id: [u8; 16]) {
        self.log.set_host_id(host_id);
    }

    /// Tells of what is written to SSTables from now on and passes these limits; on the first
    /// shard, which writes them.
    pub fn watch_writes(&self, limits: WriteLimits, tell: Tell) {
        self.watchers.writes.replace(Some((limits, tell)));
    }

    /// Tells of what happens to this shard's commit log; to be asked for before the log begins.
    pub fn watch_log(&self, tell: TellLog) {
        self.log.tell(tell);
    }

    /// Tells of disks that fail; on the first shard.
    pub fn watch_disks(&self, tell: TellDisk) {
        self.watchers.disks.replace(Some(tell));
    }

    pub(crate) fn tell_disk(&self, event: &DiskEvent) {
        let told = self.watchers.disks.borrow().clone();
        if let Some(tell) = told {
            tell(event);
        }
    }

    /// Watches over a file of a table.
    pub(crate) fn watch(&self, table: &Arc<Table>, file: PathBuf) -> Option<Watch> {
        let watcher = self.watchers.writes.borrow().clone()?;
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
        self.tables.schema()
    }

    /// This shard's commit log, once it is open.
    pub fn log(&self) -> Option<&Rc<CommitLog>> {
        self.log.get()
    }

    /// What this shard keeps of what it read.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// This shard's memtables.
    pub(crate) fn memtables(&self) -> &Memtables {
        &self.memtables
    }

    /// Is a write acknowledged before it is durable (`commitlog_sync: periodic`)?
    pub fn acknowledges_early(&self) -> bool {
        matches!(self.options.sync, SyncMode::Periodic { .. })
    }

    /// Begins this shard's log with a segment of this id.
    pub(crate) async fn begin_log(
        &self,
        first_id: i64,
        inherited: Vec<Inherited>,
    ) -> Result<(), StorageError> {
        self.log.begin(&self.env, &self.options, first_id, inherited).await?;
        self.memtables.restart();
        Ok(())
    }

    /// The shard that owns a token.
    pub fn owner(&self, token: types::Token) -> usize {
        token.shard(self.env.shards() as u32) as usize
    }

    /// Takes the schema of another epoch: new tables appear, dropped ones vanish, altered ones go
    /// on with their new columns.
    pub fn set_schema(&self, schema: &Arc<Schema>) {
        self.memtables.set_schema(schema);
    }

    /// This shard's data of a table.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn store(&self, id: TableId) -> Result<Rc<TableStore>, StorageError> {
        self.tables.store(id)
    }

    /// All tables of this shard.
    pub fn stores(&self) -> Vec<(TableId, Rc<TableStore>)> {
        self.tables.all()
    }

    /// Bytes of the node's live SSTables.
    pub fn disk_bytes(&self) -> u64 {
        let bytes =
            |store: &TableStore| store.live().tables().iter().map(|t| t.bytes_on_disk).sum::<u64>();
        self.stores().iter().map(|(_, store)| bytes(store)).sum()
    }

    /// This shard's lease of the node's memtable memory, in bytes.
    pub fn memory_lease(&self) -> usize {
        self.memtables.memory().lease()
    }

    /// Bytes in memtables, active and frozen.
    pub fn memtable_bytes(&self) -> usize {
        self.memtables.memory().held()
    }

    /// Bytes in memtables that were flushed and are kept for reads.
    pub fn kept_bytes(&self) -> usize {
        self.memtables.memory().kept()
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
                for update in mutation.updates() {
                    self.store(TableId(update.table))?;
                }
                let (tables, bytes) = self.encoder.encode(mutation)?;
                let is_captured = self.options.log.cdc.is_some() && self.is_captured(&tables);
                let ticket = log.append(&tables, &bytes, is_captured).await;
                self.encoder.give_back(tables, bytes);
                match ticket {
                    Err(LogError::TooLarge { bytes, max }) => {
                        return Err(oversized(mutation, &self.schema(), bytes, max));
                    }
                    Err(LogError::CdcFull { used }) => {
                        return Err(not_captured(mutation, &self.schema(), &self.options, used));
                    }
                    ticket => ticket?,
                }
            }
            None => Ticket::without_log(self.log.position()),
        };
        // No await between the log's position and the memtable: a memtable holds the records of one
        // unbroken stretch of the log.
        self.merge(mutation, ticket.position, counted)?;
        let segment = self.stats.last_segment.replace(ticket.position.segment);
        self.watch_limits(segment != ticket.position.segment);
        Ok(ticket)
    }

    /// Merges a mutation into the memtables, as a record that ends at `position`.
    pub(crate) fn merge(
        &self,
        mutation: &Mutation,
        position: Position,
        counted: &[Option<Counted>],
    ) -> Result<(), StorageError> {
        self.memtables.merge(mutation, position, counted)?;
        self.stats.mutations.set(self.stats.mutations.get() + 1);
        Ok(())
    }

    /// Does a table among these have `cdc = true`?
    fn is_captured(&self, tables: &[TableId]) -> bool {
        tables.iter().any(|id| self.store(*id).is_ok_and(|store| store.table().params.cdc))
    }

    /// Refuses a mutation that is too large, before any part of its batch is applied.
    ///
    /// # Errors
    /// If it is.
    pub fn check_size(&self, mutation: &Mutation) -> Result<(), StorageError> {
        check_size(mutation, &self.schema(), &self.options)
    }

    async fn wait_for_memory(&self) -> Result<(), StorageError> {
        let memory = self.memtables.memory();
        if memory.has_room() {
            return Ok(());
        }
        self.stats.waits_for_memory.set(self.stats.waits_for_memory.get() + 1);
        self.env.mark("memtable.full");
        while !memory.has_room() {
            // The node tries again by itself: no write waits for what may take the operator.
            if let Some(why) = memory.unflushed() {
                self.env.mark("memtable.refused");
                return Err(StorageError::Unflushed(why));
            }
            self.ask(|background| background.memory_is_short());
            if let Some(table) = memory.largest().filter(|_| memory.is_full()) {
                self.ask_for_flush(table);
            }
            memory.wait().await;
        }
        Ok(())
    }

    /// Asks for flushes where memory or the log's space runs short. Called after writes.
    fn watch_limits(&self, log_grew_segment: bool) {
        let memory = self.memtables.memory();
        memory.trim_kept();
        if let Some(table) = memory.wants_flush() {
            self.ask_for_flush(table);
        }
        if log_grew_segment && let Some(log) = self.log.get() {
            if memory.unflushed().is_none() {
                log.over_limit().into_iter().for_each(|table| self.ask_for_flush(table));
            } else if log.size().0 / LOG_EXCESS >= log.limit() {
                memory.take_no_more();
            }
        }
    }

    /// Asks the first shard to flush a table, some time soon.
    fn ask_for_flush(&self, table: TableId) {
        self.ask(move |background| background.want_flush(table));
    }

    fn ask(&self, ask: impl FnOnce(&dyn Background) + Send + 'static) {
        self.shards.send(0, |engine| {
            if let Some(background) = engine.background.get() {
                ask(&**background);
            }
        });
    }

    /// Looks at what a request met: has a disk failed?
    pub fn inspect(&self, error: &StorageError) {
        if error.disk_failure().is_some() {
            let error = error.clone();
            self.ask(move |background| background.inspect(&error));
        }
    }

    /// Makes this shard the first one.
    pub(crate) fn set_background(&self, background: Rc<dyn Background>) {
        assert!(self.background.set(background).is_ok(), "there is one first shard");
    }

    /// On the first shard: what the node has once.
    pub(crate) fn background(&self) -> Option<&Rc<dyn Background>> {
        self.background.get()
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
        self.tables.weight()
    }

    /// Reads of partitions and ranges on this shard, also of tables that are gone.
    pub fn reads(&self) -> u64 {
        self.tables.reads()
    }

    /// SSTables that this shard has open.
    pub fn open_sstables(&self) -> usize {
        self.files.open_count()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({:?})", self.env)
    }
}
