//! What a node does once for all its shards: flushes, compactions, the set of live SSTables. Lives
//! on the first shard; the others ask it by message.
//!
//! `crates/cluster` has the schema, gossip and hints, which live on the first shard too.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::sync::{Notify, Semaphore};
use env::{Class, Env};
use schema::{CompactionParams, Table, TableId};
use types::hash::HashMap;

use crate::commitlog::Position;
use crate::compaction::{Candidate, Compactions, Strategy};
use crate::disk::Aside;
use crate::engine::Engine;
use crate::engine::FrozenShare;
use crate::error::StorageError;
use crate::flush_pace::Eager;
use crate::live_set::LiveSet;
use crate::sstables::Numbers;

/// How long after a flush failed it is tried again.
const FLUSH_AGAIN: Duration = Duration::from_secs(5);
/// How much the last flush counts in the average of them (`ExpMovingAverage.decayBy1000`).
const FLUSH_WEIGHT: f64 = 0.0046;

/// The part of the engine that the node has once.
pub struct Node {
    env: Env,
    engine: Weak<Engine>,
    me: Weak<Node>,
    /// Gives SSTables their numbers.
    pub(crate) numbers: Numbers,
    pub(crate) compactions: Compactions,
    /// Are links to what is flushed kept?
    backups: Cell<bool>,
    tables: RefCell<HashMap<TableId, Rc<NodeTable>>>,
    /// Tables that some shard wants flushed.
    wanted: RefCell<BTreeSet<TableId>>,
    /// Who ends the segments of all logs at one point holds it.
    pub(crate) cutting: Semaphore,
    wake: Notify,
    /// How many wait for a flush that they asked for.
    pub(crate) flush_waiters: Cell<u32>,
    /// Do writes wait for memory?
    pub(crate) is_memory_short: Cell<bool>,
    pub(crate) next_flush: Cell<u64>,
    /// Segments of an earlier run, by id: the tables whose records in them were replayed and not
    /// flushed since.
    pub(crate) replayed: RefCell<BTreeMap<i64, BTreeSet<TableId>>>,
    /// Up to where those could be read, in bytes of the file.
    pub(crate) replayed_to: RefCell<BTreeMap<i64, u64>>,
    /// The newest segment up to which a table was truncated in an earlier run.
    pub(crate) truncated_in: Cell<i64>,
    /// Segments of an earlier run with mutations that are to be captured, and where the last one
    /// ends.
    pub(crate) replayed_cdc: RefCell<BTreeMap<i64, u32>>,
    /// Tables whose memtables could not be flushed when that was last tried, with why.
    unflushed: RefCell<BTreeMap<TableId, Arc<str>>>,
    /// Why background work failed last, if it did.
    failure: RefCell<Option<StorageError>>,
    /// Counters for metrics.
    pub stats: NodeStats,
}

/// What the node counts about its background work.
#[derive(Debug, Default)]
pub struct NodeStats {
    /// Flushes that wrote a file.
    pub flushes: Cell<u64>,
    /// Bytes that flushes wrote.
    pub flushed_bytes: Cell<u64>,
    /// Compactions that ended.
    pub compactions: Cell<u64>,
    /// Bytes that compactions read.
    pub compacted_bytes: Cell<u64>,
    /// SSTables that were dropped whole, because all in them had expired.
    pub expired: Cell<u64>,
    /// Flushes and compactions that failed.
    pub failures: Cell<u64>,
    /// Failures of disks that were met.
    pub disk_failures: Cell<u64>,
}

/// A compaction under way.
#[derive(Debug)]
pub struct RunningCompaction {
    /// A time-UUID.
    pub id: [u8; 16],
    /// The table.
    pub table: TableId,
    /// The kind of operation, in Cassandra's words.
    pub kind: &'static str,
    /// Bytes of its inputs' data, as stored.
    pub total: u64,
    /// Those of them that are behind, or what is written if that is more.
    pub written: Cell<u64>,
    /// Number of its inputs.
    pub sstables: usize,
    /// Where it writes to.
    pub directory: PathBuf,
    /// It is to stop, and leave the table as it was.
    pub stop: Cell<bool>,
}

/// Removes a compaction from those under way when it ends, however it does.
pub(crate) struct Running<'a>(&'a Node, pub Rc<RunningCompaction>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.compactions.running.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.1));
    }
}

/// The node's side of a table.
pub(crate) struct NodeTable {
    /// The files, as last published to the shards.
    pub live: RefCell<Arc<LiveSet>>,
    /// Whoever changes `live` holds it: one flush or swap at a time.
    pub changing: Semaphore,
    /// The number of the next file.
    pub next_generation: Cell<u32>,
    /// How many times new content came into `live`.
    pub epoch: Cell<u64>,
    /// The moving average of the bytes of data that a flush writes; not a number before the first.
    pub flush_bytes: Cell<f64>,
    /// What of it is not used, for it cannot be read: nothing that it may need is purged meanwhile.
    pub aside: RefCell<Vec<Aside>>,
    /// Its directories that nothing is written to any more.
    pub disallowed: RefCell<BTreeSet<PathBuf>>,
    /// SSTables that compactions work on.
    pub busy: RefCell<BTreeSet<u64>>,
    /// What keeps background compactions from starting.
    pub pauses: Cell<u32>,
    /// Is it looked at again in a while, for something that had to wait?
    pub is_awaited: Cell<bool>,
    /// One compaction that the operator asked for at a time.
    pub on_demand: Semaphore,
    /// What the operator said about background compactions, against the table's `enabled` option.
    pub auto: Cell<Option<bool>>,
    /// `min_threshold` and `max_threshold` as the operator said, whatever the table's options say.
    thresholds: Cell<Option<(u32, u32)>>,
    strategy: RefCell<Option<Strategy>>,
    env: Env,
}

impl NodeTable {
    fn new(env: &Env) -> Self {
        Self {
            env: env.clone(),
            live: RefCell::default(),
            changing: Semaphore::new(1),
            next_generation: Cell::new(1),
            epoch: Cell::new(0),
            flush_bytes: Cell::new(f64::NAN),
            aside: RefCell::default(),
            disallowed: RefCell::default(),
            busy: RefCell::default(),
            pauses: Cell::new(0),
            is_awaited: Cell::new(false),
            on_demand: Semaphore::new(1),
            auto: Cell::new(None),
            thresholds: Cell::new(None),
            strategy: RefCell::default(),
        }
    }

    /// Asks the strategy that the table's definition names; it begins anew where that changed.
    pub fn strategy<T>(&self, table: &Table, ask: impl FnOnce(&mut Strategy) -> T) -> T {
        let mut strategy = self.strategy.borrow_mut();
        let params = &table.params.compaction;
        if strategy.as_ref().is_some_and(|strategy| strategy.params() != params) {
            *strategy = None;
            self.auto.set(None);
        }
        let now_millis = self.env.unix_micros() / 1000;
        ask(strategy.get_or_insert_with(|| Strategy::of(params, self.thresholds.get(), now_millis)))
    }

    /// How few and how many SSTables are compacted at once.
    pub fn thresholds(&self, table: &Table) -> (u32, u32) {
        let params = &table.params.compaction;
        self.thresholds.get().unwrap_or((params.min_threshold(), params.max_threshold()))
    }

    /// Sets that; the strategy begins anew.
    pub fn set_thresholds(&self, thresholds: (u32, u32)) {
        self.thresholds.set(Some(thresholds));
        *self.strategy.borrow_mut() = None;
    }

    /// Has its strategy another definition than this?
    pub fn differs(&self, params: &CompactionParams) -> bool {
        self.strategy.borrow().as_ref().is_some_and(|strategy| strategy.params() != params)
    }

    /// Tells the strategy that a task is done.
    pub fn replaced(&self, removed: &[Candidate], added: &[Candidate]) {
        if let Some(strategy) = &mut *self.strategy.borrow_mut() {
            strategy.replaced(removed, added);
        }
    }

    /// Counts what a flush wrote.
    pub fn flushed(&self, bytes: u64) {
        let average = self.flush_bytes.get();
        let bytes = bytes as f64;
        let next =
            if average.is_nan() { bytes } else { average + FLUSH_WEIGHT * (bytes - average) };
        self.flush_bytes.set(next);
    }
}

impl Node {
    pub(crate) fn new(engine: &Rc<Engine>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            env: engine.env().clone(),
            engine: Rc::downgrade(engine),
            me: Weak::clone(me),
            numbers: Numbers::default(),
            compactions: Compactions::new(
                engine.options.concurrent_compactors,
                engine.options.compaction_bytes_per_second,
            ),
            backups: Cell::new(engine.options.incremental_backups),
            tables: RefCell::default(),
            wanted: RefCell::default(),
            cutting: Semaphore::new(1),
            wake: Notify::new(),
            flush_waiters: Cell::new(0),
            is_memory_short: Cell::new(false),
            next_flush: Cell::new(1),
            replayed: RefCell::default(),
            replayed_to: RefCell::default(),
            truncated_in: Cell::new(0),
            replayed_cdc: RefCell::default(),
            unflushed: RefCell::default(),
            failure: RefCell::default(),
            stats: NodeStats::default(),
        })
    }

    /// Starts the background work.
    pub(crate) fn start(self: &Rc<Self>, engine: &Rc<Engine>) {
        engine.env().spawn(Class::Flush, Rc::clone(self).flush_wanted());
    }

    pub(crate) fn table(&self, id: TableId) -> Rc<NodeTable> {
        let mut tables = self.tables.borrow_mut();
        Rc::clone(tables.entry(id).or_insert_with(|| Rc::new(NodeTable::new(&self.env))))
    }

    /// All of them.
    pub(crate) fn node_tables(&self) -> Vec<Rc<NodeTable>> {
        self.tables.borrow().values().cloned().collect()
    }

    pub(crate) fn me(&self) -> Option<Rc<Self>> {
        self.me.upgrade()
    }

    pub(crate) fn engine(&self) -> Result<Rc<Engine>, StorageError> {
        self.engine.upgrade().ok_or(StorageError::Stopping(crate::shards::Stopping))
    }

    /// Are links to what is flushed kept, as backups?
    pub fn backs_up(&self) -> bool {
        self.backups.get()
    }

    /// Lets links to what is flushed be kept, or not.
    pub fn enable_backups(&self, enabled: bool) {
        self.backups.set(enabled);
    }

    /// Shows a compaction among those under way.
    pub(crate) fn runs(&self, compaction: RunningCompaction) -> Running<'_> {
        let compaction = Rc::new(compaction);
        self.compactions.running.borrow_mut().push(Rc::clone(&compaction));
        Running(self, compaction)
    }

    /// Tables that wait to be flushed.
    pub fn wanted_flushes(&self) -> usize {
        self.wanted.borrow().len()
    }

    /// Notes a failure of background work.
    pub(crate) fn failed(&self, error: StorageError) {
        self.stats.failures.set(self.stats.failures.get() + 1);
        *self.failure.borrow_mut() = Some(error);
    }

    /// Why background work failed last, if it did.
    pub fn failure(&self) -> Option<StorageError> {
        self.failure.borrow().clone()
    }

    /// Has a table flushed soon.
    pub fn want_flush(&self, table: TableId) {
        if self.wanted.borrow_mut().insert(table) {
            self.wake.notify_one();
        }
    }

    async fn flush_wanted(self: Rc<Self>) {
        loop {
            let next = self.wanted.borrow_mut().pop_first();
            let Some(table) = next else {
                self.wake.notified().await;
                continue;
            };
            match self.flush_in_time(table).await {
                Ok(_) | Err(StorageError::UnknownTable(_) | StorageError::Stopping(_)) => {}
                Err(error) => self.failed(error),
            }
        }
    }

    /// Writes what all shards hold of a table in memory to an SSTable. True if there was anything.
    ///
    /// # Errors
    /// If the file cannot be written: the memtables stay, and so does what the log has of them; it
    /// is tried again.
    pub async fn flush(&self, id: TableId) -> Result<bool, StorageError> {
        let _eager = Eager::new(&self.flush_waiters);
        self.flush_in_time(id).await
    }

    /// The same, as fast as memory is needed, unless somebody waits for a flush.
    async fn flush_in_time(&self, id: TableId) -> Result<bool, StorageError> {
        let flushed = self.try_flush(id).await;
        match &flushed {
            Err(error) if error.disk_failure().is_some() => self.flush_failed(id, error),
            // a table that is gone needs none
            Ok(_) | Err(StorageError::UnknownTable(_)) => self.flush_succeeded(id),
            Err(_) => {}
        }
        flushed
    }

    /// Tables that could not be flushed when that was last tried.
    pub fn unflushed(&self) -> usize {
        self.unflushed.borrow().len()
    }

    fn flush_failed(&self, id: TableId, error: &StorageError) {
        self.inspect_failure(error);
        let why: Arc<str> = error.to_string().into();
        let is_new = self.unflushed.borrow_mut().insert(id, Arc::clone(&why)).is_none();
        self.tell_unflushed(Some(&why));
        self.env.mark("flush.failed");
        if let Some(node) = self.me().filter(|_| is_new) {
            let env = self.env.clone();
            self.env.spawn(Class::Flush, async move {
                while node.unflushed.borrow().contains_key(&id) {
                    env.sleep(FLUSH_AGAIN).await;
                    node.want_flush(id);
                }
            });
        }
    }

    fn flush_succeeded(&self, id: TableId) {
        let mut unflushed = self.unflushed.borrow_mut();
        if unflushed.remove(&id).is_some() {
            self.tell_unflushed(unflushed.values().next());
        }
    }

    /// Lets all shards know whether memtables can be flushed.
    fn tell_unflushed(&self, why: Option<&Arc<str>>) {
        let Ok(engine) = self.engine() else { return };
        for shard in 0..engine.shards().count() {
            let why = why.cloned();
            engine.shards().send(shard, move |engine| engine.set_unflushed(why));
        }
    }

    async fn try_flush(&self, id: TableId) -> Result<bool, StorageError> {
        let engine = self.engine()?;
        let table = engine.store(id)?.table();
        let node_table = self.table(id);
        let _changing = node_table.changing.acquire(1).await;
        let flush = self.next_flush.get();
        self.next_flush.set(flush + 1);
        let shares = freeze_all(&engine, id, flush).await?;
        let upto: Vec<Position> = shares.iter().map(|share| share.upto).collect();
        if shares.iter().all(|share| share.memtables.is_empty()) {
            // Of what was flushed while it was replayed the log does not know yet.
            for (shard, upto) in upto.into_iter().enumerate() {
                let release = move |engine: &Rc<Engine>| {
                    if let Some(log) = engine.log() {
                        log.flushed(id, upto);
                    }
                };
                engine.shards().call(shard, release).await?;
            }
            return Ok(false);
        }
        sync_logs(&engine).await?;
        let live = self.write_memtables(&engine, &table, &node_table, shares).await?;
        *node_table.live.borrow_mut() = Arc::clone(&live);
        node_table.epoch.set(node_table.epoch.get() + 1);
        self.replayed.borrow_mut().values_mut().for_each(|tables| tables.retain(|t| *t != id));
        for (shard, upto) in upto.into_iter().enumerate() {
            let live = Arc::clone(&live);
            let publish = move |engine: &Rc<Engine>| engine.flushed(id, flush, live, upto);
            engine.shards().call(shard, publish).await?;
        }
        self.is_memory_short.set(false);
        self.stats.flushes.set(self.stats.flushes.get() + 1);
        engine.env().mark("flush.done");
        self.want_compaction(id);
        Ok(true)
    }
}

/// Makes durable in the logs what a flush is about to make durable in a file. Else a crash might
/// leave of a mutation what it does to this table, and not what it does to another.
pub(crate) async fn sync_logs(engine: &Engine) -> Result<(), StorageError> {
    for shard in 0..engine.shards().count() {
        let sync = |engine: Rc<Engine>| async move {
            if let Some(log) = engine.log() {
                // A log that failed acknowledges nothing more; what it has is the better for being
                // flushed.
                let _ = log.sync().await;
            }
        };
        engine.shards().call_async(shard, Class::CommitLog, sync).await?;
    }
    Ok(())
}

async fn freeze_all(
    engine: &Engine,
    id: TableId,
    flush: u64,
) -> Result<Vec<FrozenShare>, StorageError> {
    let mut shares = Vec::with_capacity(engine.shards().count());
    for shard in 0..engine.shards().count() {
        let share = engine.shards().call(shard, move |engine| engine.freeze(id, flush)).await?;
        shares.push(share?);
    }
    Ok(shares)
}
