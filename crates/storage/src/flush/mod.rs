//! Flushes: memtables of all shards become SSTables.
//!
//! All shards' memtables of a table are frozen together. Directories of several disks take an
//! SSTable each. Its statistics name the log's intervals, segment by segment. Its files are
//! complete and durable before its table of contents, and before any shard sees them.

mod backups;
mod pace;
mod replayed;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::Class;
use env::sync::Notify;
use rows::codec::EncodingStats;
use schema::{Table, TableId};
use sstable::statistics::LogPosition;

pub use self::backups::BACKUPS;
use self::backups::Backups;
pub(crate) use self::pace::Eager;
use self::pace::{FlushPace, Haste};
pub(crate) use self::replayed::Replayed;
use self::write::{compression_of_flush, write_all};
use crate::commitlog::Position;
use crate::compaction::Compactions;
use crate::disk_failures::DiskFailures;
use crate::engine::{Engine, FrozenShare};
use crate::error::StorageError;
use crate::memtable::Memtable;
use crate::node_stats::NodeStats;
use crate::node_tables::{Change, FLUSH, NodeTables, Outputs, writer_options};
use crate::sstables::LiveSet;
use crate::strategies::{Split, Splitter};
use crate::table_store::TableStore;

/// How long after a flush failed it is tried again.
const FLUSH_AGAIN: Duration = Duration::from_secs(5);

/// The node's flushes.
pub struct Flushes {
    me: Weak<Self>,
    tables: Rc<NodeTables>,
    failures: Rc<DiskFailures>,
    compactions: Rc<Compactions>,
    stats: Rc<NodeStats>,
    /// Are links to what is flushed kept?
    backups: Backups,
    replayed: Replayed,
    /// Tables that some shard wants flushed.
    wanted: RefCell<BTreeSet<TableId>>,
    wake: Notify,
    haste: Haste,
    next_flush: Cell<u64>,
    /// Tables whose memtables could not be flushed when that was last tried, with why.
    unflushed: RefCell<BTreeMap<TableId, Arc<str>>>,
}

/// A flush under way, until it ends or whoever waits for it gives up.
struct UnderWay(Rc<TableStore>);

impl UnderWay {
    fn begin(store: Rc<TableStore>) -> Self {
        store.stats.flushing.set(store.stats.flushing.get() + 1);
        Self(store)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.stats.flushing.set(self.0.stats.flushing.get() - 1);
    }
}

impl Flushes {
    pub(crate) fn new(
        engine: &Engine,
        (tables, failures): (&Rc<NodeTables>, &Rc<DiskFailures>),
        compactions: &Rc<Compactions>,
        stats: &Rc<NodeStats>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            tables: Rc::clone(tables),
            failures: Rc::clone(failures),
            compactions: Rc::clone(compactions),
            stats: Rc::clone(stats),
            backups: Backups::new(engine.options.incremental_backups),
            replayed: Replayed::default(),
            wanted: RefCell::default(),
            wake: Notify::new(),
            haste: Haste::default(),
            next_flush: Cell::new(1),
            unflushed: RefCell::default(),
        })
    }

    /// Starts the background work.
    pub(crate) fn start(self: &Rc<Self>) {
        self.tables.env().spawn(Class::Flush, Rc::clone(self).flush_wanted());
    }

    /// Are links to what is flushed kept, as backups?
    pub fn backs_up(&self) -> bool {
        self.backups.are_on()
    }

    /// Lets links to what is flushed be kept, or not.
    pub fn enable_backups(&self, enabled: bool) {
        self.backups.enable(enabled);
    }

    /// What memtables have of the logs of earlier runs.
    pub(crate) fn replayed(&self) -> &Replayed {
        &self.replayed
    }

    /// Tables that wait to be flushed.
    pub fn wanted(&self) -> usize {
        self.wanted.borrow().len()
    }

    /// Flushes of a table that wait or are under way.
    pub fn pending(&self, table: TableId) -> u64 {
        let store = self.tables.engine().and_then(|engine| engine.store(table));
        let under_way = store.map_or(0, |store| store.stats.flushing.get());
        under_way + u64::from(self.wanted.borrow().contains(&table))
    }

    /// Tables that could not be flushed when that was last tried.
    pub fn unflushed(&self) -> usize {
        self.unflushed.borrow().len()
    }

    /// Has a table flushed soon.
    pub fn want(&self, table: TableId) {
        if self.wanted.borrow_mut().insert(table) {
            self.wake.notify_one();
        }
    }

    /// Writes wait for memory: the flush under way makes haste.
    pub(crate) fn memory_is_short(&self) {
        self.haste.memory_is_short();
    }

    /// No flush takes its time while somebody has this.
    pub(crate) fn eager(&self) -> Eager<'_> {
        self.haste.eager()
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
                Err(error) => self.failures.failed(error),
            }
        }
    }

    /// Writes what all shards hold of a table in memory to an SSTable. True if there was anything.
    ///
    /// # Errors
    /// If the file cannot be written: the memtables stay, and so does what the log has of them; it
    /// is tried again.
    pub async fn flush(&self, id: TableId) -> Result<bool, StorageError> {
        let _eager = self.eager();
        self.flush_in_time(id).await
    }

    /// Flushes every table.
    ///
    /// # Errors
    /// If one cannot be flushed.
    pub async fn flush_all(&self) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        for (id, _) in engine.stores() {
            match self.flush(id).await {
                Err(StorageError::UnknownTable(_)) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The same, as fast as memory is needed, unless somebody waits for a flush.
    async fn flush_in_time(&self, id: TableId) -> Result<bool, StorageError> {
        let flushed = self.try_flush(id).await;
        match &flushed {
            Err(error) if keeps_from_flushing(error) => self.flush_failed(id, error),
            // a table that is gone needs none
            Ok(_) | Err(StorageError::UnknownTable(_)) => self.flush_succeeded(id),
            Err(_) => {}
        }
        flushed
    }

    fn flush_failed(&self, id: TableId, error: &StorageError) {
        self.failures.inspect(error);
        let why: Arc<str> = error.to_string().into();
        let is_new = self.unflushed.borrow_mut().insert(id, Arc::clone(&why)).is_none();
        self.tell_unflushed(Some(&why));
        let env = self.tables.env();
        env.mark("flush.failed");
        if let Some(me) = self.me.upgrade().filter(|_| is_new) {
            let again = env.clone();
            env.spawn(Class::Flush, async move {
                while me.unflushed.borrow().contains_key(&id) {
                    again.sleep(FLUSH_AGAIN).await;
                    me.want(id);
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
        let Ok(engine) = self.tables.engine() else { return };
        for shard in 0..engine.shards().count() {
            let why = why.cloned();
            engine.shards().send(shard, move |engine| engine.memtables().set_unflushed(why));
        }
    }

    /// A number for the next flush.
    pub(crate) fn next_number(&self) -> u64 {
        let flush = self.next_flush.get();
        self.next_flush.set(flush + 1);
        flush
    }

    async fn try_flush(&self, id: TableId) -> Result<bool, StorageError> {
        let engine = self.tables.engine()?;
        let store = engine.store(id)?;
        let table = store.table();
        let _under_way = UnderWay::begin(Rc::clone(&store));
        let node_table = self.tables.table(id);
        let change = node_table.change().await;
        let flush = self.next_number();
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
        let live = self.write(&engine, &table, &change, shares).await?;
        self.replayed.flushed(id);
        for (shard, upto) in upto.into_iter().enumerate() {
            let live = Arc::clone(&live);
            let publish =
                move |engine: &Rc<Engine>| engine.memtables().flushed(id, flush, live, upto);
            engine.shards().call(shard, publish).await?;
        }
        self.haste.flushed();
        self.stats.flushes.set(self.stats.flushes.get() + 1);
        store.stats.flushes.set(store.stats.flushes.get() + 1);
        engine.env().mark("flush.done");
        self.compactions.want(id);
        Ok(true)
    }

    /// Writes what the shards gave to a flush, and adds it to the table; its new set of SSTables,
    /// which the shards are to be given.
    pub(crate) async fn write(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        change: &Change<'_>,
        shares: Vec<FrozenShare>,
    ) -> Result<Arc<LiveSet>, StorageError> {
        let mut intervals: Vec<_> = shares
            .iter()
            .flat_map(|share| share.intervals.iter())
            .map(|(from, to)| (log_position(*from), log_position(*to)))
            .collect();
        intervals.extend(self.replayed.intervals(table.id));
        intervals.sort();
        let are_stretches = intervals.iter().all(|(from, to)| from <= to);
        assert!(are_stretches, "an SSTable's parts of the log end at or after their starts");
        let memtables: Vec<Arc<Memtable>> =
            shares.into_iter().flat_map(|share| share.memtables).collect();
        let mut options = writer_options(engine, table)?;
        options.partitions = memtables.iter().map(|memtable| memtable.len() as u64).sum();
        let bytes: u64 = memtables.iter().map(|memtable| memtable.bytes() as u64).sum();
        options.bytes = bytes;
        options.log_intervals = intervals;
        let how = engine.options.flush_compression;
        options.compression = options.compression.map(|of| compression_of_flush(how, of));
        let minima =
            memtables.iter().map(|memtable| memtable.minima()).reduce(EncodingStats::merge);
        options.stats = minima.unwrap_or(EncodingStats::NONE);

        let compactions = self.compactions.table(table.id);
        let shards = compactions
            .strategy(table, |strategy| strategy.flush_shards(compactions.flush_bytes()));
        let splitter = Splitter::new(Split::Shards(shards), 0);
        let of = (table, change.table());
        let pace = FlushPace::new(&self.haste, engine, options.partitions, bytes);
        let mut outputs = Outputs::new(&self.tables, engine, of, FLUSH, splitter, options).await?;
        let written = async {
            write_all(engine, table, &memtables, &mut outputs, pace).await?;
            let new = outputs.finish(change.table().epoch() + 1).await?;
            for sstable in &new {
                self.backups.take(engine.env(), table, sstable).await?;
            }
            Ok::<_, StorageError>(new)
        };
        let new = match written.await {
            Ok(new) => new,
            Err(error) => {
                // It is tried again, and what is left takes space.
                let _ = outputs.abandon().await;
                return Err(error);
            }
        };
        assert_eq!(
            memtables.iter().all(|memtable| memtable.is_empty()),
            new.is_empty(),
            "a flush of something makes an SSTable"
        );
        self.tables.settle(outputs.into_new(), &new).await?;
        let bytes = new.iter().map(|sstable| sstable.bytes_on_disk).sum::<u64>();
        self.stats.flushed_bytes.set(self.stats.flushed_bytes.get() + bytes);
        if !new.is_empty() {
            compactions.flushed(new.iter().map(|sstable| sstable.table.data_length).sum());
        }
        Ok(change.bring(new))
    }
}

/// Does an error keep a table from being flushed, until something is done about it?
fn keeps_from_flushing(error: &StorageError) -> bool {
    let is_of_table =
        matches!(error, StorageError::NoDirectory { .. } | StorageError::UnusableOptions { .. });
    is_of_table || error.disk_failure().is_some()
}

fn log_position(position: Position) -> LogPosition {
    LogPosition { segment: position.segment, offset: position.offset as i32 }
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
        let share =
            engine.shards().call(shard, move |engine| engine.memtables().freeze(id, flush)).await?;
        shares.push(share?);
    }
    Ok(shares)
}
