//! When compactions run: tables wait in a queue for one of `concurrent_compactors` slots, in which
//! one task of the table's strategy is chosen and done. What the operator asks for waits for the
//! same slots.
//!
//! All compactions together keep to `compaction_throughput`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Class;
use env::sync::Notify;
use schema::{TableId, TombstoneOption};

use super::choice::{Candidate, Choice, Reason};
use super::look::Look;
use super::record::Record;
use super::ring;
use super::strategy::Strategy;
use super::throttle::Throttle;
use super::work::{Task, Work};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::node::{Node, NodeTable, RunningCompaction};
use crate::sstables::SSTable;

/// A task that has to wait for the log is looked for again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Who is told of compactions that ended.
pub type TellEnded = Rc<dyn Fn(Record)>;

/// The node's compactions.
pub(crate) struct Compactions {
    /// Off while the node drains.
    enabled: Cell<bool>,
    /// `concurrent_compactors`.
    slots: Cell<usize>,
    active: Cell<usize>,
    /// Those who wait for a slot to do what the operator asked for: they go before tables in the
    /// queue.
    waiting: Cell<usize>,
    /// Tables that may have something to do.
    wanted: RefCell<VecDeque<TableId>>,
    /// A slot became free, or a task ended.
    freed: Notify,
    pub throttle: Throttle,
    /// Under way.
    pub running: RefCell<Vec<Rc<RunningCompaction>>>,
    told: RefCell<Option<TellEnded>>,
}

impl Compactions {
    pub fn new(slots: usize, bytes_per_second: u64) -> Self {
        Self {
            enabled: Cell::new(true),
            slots: Cell::new(slots.max(1)),
            active: Cell::new(0),
            waiting: Cell::new(0),
            wanted: RefCell::default(),
            freed: Notify::new(),
            throttle: Throttle::new(bytes_per_second),
            running: RefCell::default(),
            told: RefCell::default(),
        }
    }

    pub fn ended(&self, record: Record) {
        let told = self.told.borrow().clone();
        if let Some(tell) = told {
            tell(record);
        }
    }

    fn is_free(&self) -> bool {
        self.active.get() < self.slots.get()
    }
}

/// A slot, taken.
struct Slot(Rc<Node>);

impl Slot {
    fn take(node: &Rc<Node>) -> Self {
        let active = &node.compactions.active;
        active.set(active.get() + 1);
        Self(Rc::clone(node))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let compactions = &self.0.compactions;
        compactions.active.set(compactions.active.get() - 1);
        compactions.freed.notify_all();
    }
}

/// SSTables that a task works on.
struct Busy<'a> {
    node_table: &'a NodeTable,
    numbers: Vec<u64>,
}

impl<'a> Busy<'a> {
    fn new(node_table: &'a NodeTable, inputs: &[Arc<SSTable>]) -> Self {
        let numbers: Vec<u64> = inputs.iter().map(|input| input.number).collect();
        let mut busy = node_table.busy.borrow_mut();
        let are_free = numbers.iter().all(|number| !busy.contains(number));
        assert!(are_free, "an SSTable is an input of one compaction at a time");
        busy.extend(&numbers);
        drop(busy);
        Self { node_table, numbers }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut busy = self.node_table.busy.borrow_mut();
        for number in &self.numbers {
            busy.remove(number);
        }
    }
}

/// Keeps background tasks of a table from starting.
struct Paused<'a>(&'a NodeTable);

impl<'a> Paused<'a> {
    fn new(node_table: &'a NodeTable) -> Self {
        node_table.pauses.set(node_table.pauses.get() + 1);
        Self(node_table)
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.pauses.set(self.0.pauses.get() - 1);
    }
}

impl Node {
    /// Lets compactions start, or not.
    pub fn enable_compactions(&self, enabled: bool) {
        self.compactions.enabled.set(enabled);
    }

    /// Compactions under way.
    pub fn running(&self) -> Vec<Rc<RunningCompaction>> {
        self.compactions.running.borrow().clone()
    }

    /// Tells of each compaction that ends from now on.
    pub fn tell_compactions(&self, tell: TellEnded) {
        self.compactions.told.replace(Some(tell));
    }

    /// `concurrent_compactors`.
    pub fn concurrent_compactors(&self) -> usize {
        self.compactions.slots.get()
    }

    /// Changes `concurrent_compactors`, from now on.
    pub fn set_concurrent_compactors(&self, slots: usize) {
        self.compactions.slots.set(slots.max(1));
        self.compactions.freed.notify_all();
        self.dispatch();
    }

    /// `compaction_throughput`, in bytes per second; 0 for no limit.
    pub fn compaction_throughput(&self) -> u64 {
        self.compactions.throttle.rate()
    }

    /// Changes `compaction_throughput`, from now on.
    pub fn set_compaction_throughput(&self, bytes_per_second: u64) {
        self.compactions.throttle.set_rate(bytes_per_second);
    }

    /// Lets a table be compacted by itself, or not, whatever its `enabled` option says: until that
    /// changes.
    pub fn set_autocompaction(&self, id: TableId, enabled: bool) {
        self.table(id).auto.set(Some(enabled));
        self.want_compaction(id);
    }

    /// Is a table compacted by itself?
    pub fn autocompaction(&self, id: TableId) -> bool {
        let node_table = self.table(id);
        let table = self.engine().and_then(|engine| engine.store(id)).map(|store| store.table());
        table.is_ok_and(|table| {
            node_table.strategy(&table, |_| ());
            node_table.auto.get().unwrap_or(table.params.compaction.enabled())
        })
    }

    /// How few and how many SSTables of a table are compacted at once.
    ///
    /// # Errors
    /// If the table is unknown.
    pub fn compaction_thresholds(&self, id: TableId) -> Result<(u32, u32), StorageError> {
        let table = self.engine()?.store(id)?.table();
        Ok(self.table(id).thresholds(&table))
    }

    /// Sets that, until the next start.
    pub fn set_compaction_thresholds(&self, id: TableId, thresholds: (u32, u32)) {
        self.table(id).set_thresholds(thresholds);
        self.want_compaction(id);
    }

    /// Stops compactions under way that `which` names; how many. They leave the table as it was.
    pub fn stop_compactions(&self, which: impl Fn(&RunningCompaction) -> bool) -> usize {
        let running = self.compactions.running.borrow();
        let stopped = running.iter().filter(|running| which(running));
        stopped.map(|running| running.stop.set(true)).count()
    }

    /// About how many tasks a table's strategy has to do.
    ///
    /// # Errors
    /// If the table is unknown.
    pub async fn pending_compactions(&self, id: TableId) -> Result<usize, StorageError> {
        let engine = self.engine()?;
        let table = engine.store(id)?.table();
        let node_table = self.table(id);
        let look = Look::at(&engine, &table, &node_table).await?;
        Ok(node_table.strategy(&table, |strategy| look.view(|view| strategy.pending(view))))
    }

    /// Starts a compaction of a table soon, if one is worth it.
    pub(crate) fn want_compaction(&self, id: TableId) {
        if !self.compactions.wanted.borrow().contains(&id) {
            self.compactions.wanted.borrow_mut().push_back(id);
        }
        self.dispatch();
    }

    fn dispatch(&self) {
        let (Some(node), Ok(engine)) = (self.me(), self.engine()) else { return };
        // While the log is replayed, nobody knows yet what a tombstone still deletes.
        if engine.log().is_none() {
            return;
        }
        while self.compactions.is_free() && self.compactions.waiting.get() == 0 {
            let Some(id) = self.compactions.wanted.borrow_mut().pop_front() else { return };
            let slot = Slot::take(&node);
            let engine = Rc::clone(&engine);
            engine.env().clone().spawn(Class::Compaction, async move {
                let node = Rc::clone(&slot.0);
                let more = match node.compact_next(&engine, id).await {
                    Ok(more) => more,
                    Err(StorageError::UnknownTable(_) | StorageError::Stopping(_)) => false,
                    // The operator wanted it so; the next flush brings it back.
                    Err(StorageError::Interrupted) => false,
                    Err(error) => {
                        node.failed(error);
                        false
                    }
                };
                drop(slot);
                if more && !engine.env().is_terminated() {
                    node.want_compaction(id);
                }
                node.dispatch();
            });
        }
    }

    fn may_compact(&self, id: TableId, node_table: &NodeTable) -> bool {
        self.compactions.enabled.get() && node_table.pauses.get() == 0 && self.autocompaction(id)
    }

    /// Does the next task of a table's strategy. False if there is none that can be done now.
    async fn compact_next(&self, engine: &Rc<Engine>, id: TableId) -> Result<bool, StorageError> {
        let node_table = self.table(id);
        let table = engine.store(id)?.table();
        if !self.may_compact(id, &node_table) {
            return Ok(false);
        }
        let look = Look::at(engine, &table, &node_table).await?;
        self.settle_levels(engine, &table, &node_table, &look).await?;
        // It may have been paused since, and another task may have begun.
        let mut look = Look::at(engine, &table, &node_table).await?;
        look.leave_out_suspects();
        if !self.may_compact(id, &node_table) {
            return Ok(false);
        }
        let next = |strategy: &mut Strategy| look.view(|view| strategy.next(view));
        let Some(choice) = node_table.strategy(&table, next) else { return Ok(false) };
        let task = task_of(&look, &table, &node_table, choice, Work::Merge);
        let Some(task) = task else { return Ok(false) };
        let _busy = Busy::new(&node_table, &task.inputs);
        // another one, beside this, if there is a slot
        self.want_compaction(id);
        let is_done = self.run(engine, &task).await?;
        if !is_done && !node_table.is_awaited.replace(true) {
            let (env, me) = (engine.env().clone(), self.me().as_ref().map(Rc::downgrade));
            let node_table = Rc::clone(&node_table);
            engine.env().spawn(Class::Compaction, async move {
                env.sleep(AGAIN_AFTER).await;
                node_table.is_awaited.set(false);
                if let Some(node) = me.and_then(|me| me.upgrade()) {
                    node.want_compaction(id);
                }
            });
        }
        Ok(is_done)
    }

    /// Writes level 0 into the metadata of SSTables that cannot stay in their level.
    async fn settle_levels(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<schema::Table>,
        node_table: &Rc<NodeTable>,
        look: &Look,
    ) -> Result<(), StorageError> {
        let displaced =
            node_table.strategy(table, |strategy| look.view(|view| strategy.displaced(view)));
        let is_busy = |id: &u64| node_table.busy.borrow().contains(id);
        let inputs: Vec<u64> = displaced.into_iter().filter(|id| !is_busy(id)).collect();
        if inputs.is_empty() {
            return Ok(());
        }
        let choice = Choice { moves: true, ..Choice::merge(inputs, Reason::Level) };
        let task = task_of(look, table, node_table, choice, Work::Merge);
        let Some(task) = task else { return Ok(()) };
        let _busy = Busy::new(node_table, &task.inputs);
        self.run(engine, &task).await.map(drop)
    }

    /// Merges all SSTables of a table into one, or as few as its strategy has: `nodetool compact`.
    ///
    /// # Errors
    /// If one cannot be read or the new one not be written: the old ones stay.
    pub async fn compact_all(&self, id: TableId) -> Result<(), StorageError> {
        self.major_compaction(id, false).await
    }

    /// The same; `split` is `--split-output`.
    ///
    /// # Errors
    /// If an SSTable cannot be read or a new one not be written: the old ones stay.
    pub async fn major_compaction(&self, id: TableId, split: bool) -> Result<(), StorageError> {
        let all = |strategy: &Strategy, look: &Look| look.view(|view| strategy.major(view, split));
        self.compact_on_demand(id, Work::Merge, all).await
    }

    /// Merges the SSTables that `which` names: `nodetool compact --user-defined`. How many there
    /// were.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written: the old ones stay.
    pub async fn compact_these(
        &self,
        id: TableId,
        which: impl Fn(&SSTable) -> bool,
    ) -> Result<usize, StorageError> {
        let count = Cell::new(0);
        self.compact_on_demand(id, Work::Merge, |strategy, look| {
            let named = look.live.tables().iter().filter(|sstable| which(sstable));
            let named: Vec<u64> = named.map(|sstable| sstable.number).collect();
            count.set(named.len());
            look.view(|view| strategy.user_defined(view, &named))
        })
        .await?;
        Ok(count.get())
    }

    /// Drops of each SSTable of a table, alone, what the others make needless: `nodetool
    /// garbagecollect`.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written: the old one stays.
    pub async fn collect_garbage(
        &self,
        id: TableId,
        granularity: TombstoneOption,
    ) -> Result<(), StorageError> {
        let each = |strategy: &Strategy, look: &Look| {
            let mut tables: Vec<_> =
                look.tables.iter().filter(|table| strategy.may_purge([*table])).collect();
            tables.sort_by_key(|table| table.max_timestamp);
            let alone = |table: &&Candidate| Choice {
                level: table.level,
                ..Choice::merge(vec![table.id], Reason::Garbage)
            };
            tables.iter().map(alone).collect()
        };
        self.compact_on_demand(id, Work::Collect(granularity), each).await
    }

    /// Rewrites the SSTables of a table that are not in the directories where their keys belong:
    /// `nodetool relocatesstables`.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written: the old one stays.
    pub async fn relocate(&self, id: TableId) -> Result<(), StorageError> {
        let engine = self.engine()?;
        let table = engine.store(id)?.table();
        let places = self.places_of(&engine, &table).await?;
        let parts = places.len() as u32;
        let place = |token| places.get(ring::shard_of(token, parts) as usize);
        let is_displaced = |sstable: &&Arc<SSTable>| {
            let (first, last) = sstable.table.tokens();
            let home = Some(&sstable.directory);
            place(first) != home || place(last) != home
        };
        let each = |_: &Strategy, look: &Look| {
            let alone = |sstable: &Arc<SSTable>| Choice {
                level: sstable.level(),
                ..Choice::merge(vec![sstable.number], Reason::Relocate)
            };
            look.live.tables().iter().filter(is_displaced).map(alone).collect()
        };
        self.compact_on_demand(id, Work::Merge, each).await
    }

    async fn wait_for_slot(&self, node: &Rc<Self>) -> Slot {
        let compactions = &self.compactions;
        compactions.waiting.set(compactions.waiting.get() + 1);
        while !compactions.is_free() {
            compactions.freed.notified().await;
        }
        compactions.waiting.set(compactions.waiting.get() - 1);
        Slot::take(node)
    }

    /// Does what the operator asked for: the table's tasks under way are stopped, and none begins
    /// before it is done.
    pub(crate) async fn compact_on_demand(
        &self,
        id: TableId,
        work: Work<'_>,
        choose: impl Fn(&Strategy, &Look) -> Vec<Choice>,
    ) -> Result<(), StorageError> {
        let engine = self.engine()?;
        let Some(node) = self.me() else { return Ok(()) };
        let node_table = self.table(id);
        let one_at_a_time = node_table.on_demand.acquire(1).await;
        let paused = Paused::new(&node_table);
        self.stop_compactions(|running| running.table == id);
        while !node_table.busy.borrow().is_empty() {
            let ended = self.compactions.freed.notified();
            ended.await;
        }
        let slot = self.wait_for_slot(&node).await;
        let table = engine.store(id)?.table();
        let look = Look::at(&engine, &table, &node_table).await?;
        let choices = node_table.strategy(&table, |strategy| choose(strategy, &look));
        let mut result = Ok(());
        for choice in choices {
            let Some(task) = task_of(&look, &table, &node_table, choice, work) else { continue };
            let _busy = Busy::new(&node_table, &task.inputs);
            result = self.run(&engine, &task).await.map(drop);
            if result.is_err() {
                break;
            }
        }
        drop((slot, paused, one_at_a_time));
        self.want_compaction(id);
        result
    }
}

fn task_of<'a>(
    look: &Look,
    table: &Arc<schema::Table>,
    node_table: &Rc<NodeTable>,
    choice: Choice,
    work: Work<'a>,
) -> Option<Task<'a>> {
    let busy = node_table.busy.borrow();
    let find = |number: &u64| {
        let live = look.live.tables().iter().find(|sstable| sstable.number == *number);
        live.filter(|_| !busy.contains(number)).cloned()
    };
    let inputs: Option<Vec<_>> = choice.inputs.iter().map(find).collect();
    let inputs = inputs.filter(|inputs| !inputs.is_empty())?;
    Some(Task { table: Arc::clone(table), node_table: Rc::clone(node_table), choice, inputs, work })
}
