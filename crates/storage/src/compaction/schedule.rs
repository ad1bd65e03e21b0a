//! When compactions run: tables wait in a queue for one of `concurrent_compactors` slots, in which
//! one task of the table's strategy is chosen and done. What the operator asks for waits for the
//! same slots.
//!
//! All compactions together keep to `compaction_throughput`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use env::Class;
use schema::TableId;
use types::hash::HashMap;

use super::look::Look;
use super::running::{RunningCompaction, RunningCompactions};
use super::slots::Slots;
use super::table::TableCompactions;
use super::task::{Tasks, TellEnded};
use super::work::{OfTable, Task, Work};
use crate::disk_failures::DiskFailures;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::io::Throttle;
use crate::node_stats::NodeStats;
use crate::node_tables::NodeTables;
use crate::strategies::{Choice, Reason, Strategy};

/// A task that has to wait for the log is looked for again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The node's compactions.
pub struct Compactions {
    me: Weak<Self>,
    pub(super) tables: Rc<NodeTables>,
    failures: Rc<DiskFailures>,
    by_table: RefCell<HashMap<TableId, Rc<TableCompactions>>>,
    pub(super) tasks: Tasks,
    /// Off while the node drains.
    enabled: Cell<bool>,
    /// `concurrent_compactors`.
    pub(super) slots: Rc<Slots>,
    /// Tables that may have something to do.
    wanted: RefCell<VecDeque<TableId>>,
}

impl Compactions {
    pub(crate) fn new(
        engine: &Engine,
        tables: &Rc<NodeTables>,
        failures: &Rc<DiskFailures>,
        stats: &Rc<NodeStats>,
    ) -> Rc<Self> {
        let options = &engine.options;
        Rc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            tables: Rc::clone(tables),
            failures: Rc::clone(failures),
            by_table: RefCell::default(),
            tasks: Tasks::new(tables, failures, stats, options.compaction_bytes_per_second),
            enabled: Cell::new(true),
            slots: Slots::new(options.concurrent_compactors),
            wanted: RefCell::default(),
        })
    }

    /// What compactions know of a table.
    pub(crate) fn table(&self, id: TableId) -> Rc<TableCompactions> {
        let mut tables = self.by_table.borrow_mut();
        let new = || Rc::new(TableCompactions::new(self.tables.env()));
        Rc::clone(tables.entry(id).or_insert_with(new))
    }

    pub(super) fn of(&self, engine: &Engine, id: TableId) -> Result<OfTable, StorageError> {
        let (node, compactions) = (self.tables.table(id), self.table(id));
        Ok(OfTable { table: engine.store(id)?.table(), node, compactions })
    }

    /// Lets compactions start, or not.
    pub(crate) fn enable(&self, enabled: bool) {
        self.enabled.set(enabled);
    }

    /// Compactions under way.
    pub fn running(&self) -> Vec<Rc<RunningCompaction>> {
        self.tasks.running().all()
    }

    /// Those under way, for what is shown among them and keeps to the same throughput.
    pub(crate) fn pace(&self) -> (&RunningCompactions, &Throttle) {
        (self.tasks.running(), self.tasks.throttle())
    }

    /// Tells of each compaction that ends from now on.
    pub fn tell(&self, tell: TellEnded) {
        self.tasks.tell(tell);
    }

    /// `concurrent_compactors`.
    pub fn concurrent(&self) -> usize {
        self.slots.count()
    }

    /// Changes `concurrent_compactors`, from now on.
    pub fn set_concurrent(&self, slots: usize) {
        self.slots.set_count(slots);
        self.dispatch();
    }

    /// `compaction_throughput`, in bytes per second; 0 for no limit.
    pub fn throughput(&self) -> u64 {
        self.tasks.throttle().rate()
    }

    /// Changes `compaction_throughput`, from now on.
    pub fn set_throughput(&self, bytes_per_second: u64) {
        self.tasks.throttle().set_rate(bytes_per_second);
    }

    /// Lets a table be compacted by itself, or not, whatever its `enabled` option says: until that
    /// changes.
    pub fn set_auto(&self, id: TableId, enabled: bool) {
        self.table(id).set_auto(enabled);
        self.want(id);
    }

    /// Is a table compacted by itself?
    pub fn is_auto(&self, id: TableId) -> bool {
        let table = self.tables.engine().and_then(|engine| engine.store(id));
        table.is_ok_and(|store| self.table(id).is_auto(&store.table()))
    }

    /// How few and how many SSTables of a table are compacted at once.
    ///
    /// # Errors
    /// If the table is unknown.
    pub fn thresholds(&self, id: TableId) -> Result<(u32, u32), StorageError> {
        let table = self.tables.engine()?.store(id)?.table();
        Ok(self.table(id).thresholds(&table))
    }

    /// Sets that, until the next start.
    pub fn set_thresholds(&self, id: TableId, thresholds: (u32, u32)) {
        self.table(id).set_thresholds(thresholds);
        self.want(id);
    }

    /// Stops compactions under way that `which` names; how many. They leave the table as it was.
    pub fn stop(&self, which: impl Fn(&RunningCompaction) -> bool) -> usize {
        self.tasks.running().stop(which)
    }

    /// About how many tasks a table's strategy has to do.
    ///
    /// # Errors
    /// If the table is unknown.
    pub async fn pending(&self, id: TableId) -> Result<usize, StorageError> {
        let engine = self.tables.engine()?;
        let of = self.of(&engine, id)?;
        let look = Look::at(&engine, &of.table, (&of.node, &of.compactions)).await?;
        let pending = |strategy: &mut Strategy| look.view(|view| strategy.pending(view));
        Ok(of.compactions.strategy(&of.table, pending))
    }

    /// Starts a compaction of a table soon, if one is worth it.
    pub(crate) fn want(&self, id: TableId) {
        if !self.wanted.borrow().contains(&id) {
            self.wanted.borrow_mut().push_back(id);
        }
        self.dispatch();
    }

    fn dispatch(&self) {
        let (Some(me), Ok(engine)) = (self.me.upgrade(), self.tables.engine()) else { return };
        // While the log is replayed, nobody knows yet what a tombstone still deletes.
        if engine.log().is_none() {
            return;
        }
        while !self.wanted.borrow().is_empty() {
            let Some(slot) = self.slots.try_take() else { return };
            let Some(id) = self.wanted.borrow_mut().pop_front() else { return };
            let (me, engine) = (Rc::clone(&me), Rc::clone(&engine));
            engine.env().clone().spawn(Class::Compaction, async move {
                let more = match me.compact_next(&engine, id).await {
                    Ok(more) => more,
                    Err(StorageError::UnknownTable(_) | StorageError::Stopping(_)) => false,
                    // The operator wanted it so; the next flush brings it back.
                    Err(StorageError::Interrupted) => false,
                    Err(error) => {
                        me.failures.failed(error);
                        false
                    }
                };
                drop(slot);
                if more && !engine.env().is_terminated() {
                    me.want(id);
                }
                me.dispatch();
            });
        }
    }

    fn may_compact(&self, of: &OfTable) -> bool {
        let compactions = &of.compactions;
        self.enabled.get() && !compactions.is_paused() && self.is_auto(of.table.id)
    }

    /// Does the next task of a table's strategy. False if there is none that can be done now.
    async fn compact_next(&self, engine: &Rc<Engine>, id: TableId) -> Result<bool, StorageError> {
        let of = self.of(engine, id)?;
        if !self.may_compact(&of) {
            return Ok(false);
        }
        let look = Look::at(engine, &of.table, (&of.node, &of.compactions)).await?;
        self.settle_levels(engine, &of, &look).await?;
        // It may have been paused since, and another task may have begun.
        let mut look = Look::at(engine, &of.table, (&of.node, &of.compactions)).await?;
        look.leave_out_suspects();
        if !self.may_compact(&of) {
            return Ok(false);
        }
        let next = |strategy: &mut Strategy| look.view(|view| strategy.next(view));
        let Some(choice) = of.compactions.strategy(&of.table, next) else { return Ok(false) };
        let Some(task) = Task::new(&look, &of, choice, Work::Merge) else { return Ok(false) };
        let _busy = of.compactions.busy(&task.inputs);
        // another one, beside this, if there is a slot
        self.want(id);
        let is_done = self.tasks.run(engine, &task).await?;
        if !is_done && of.compactions.await_again() {
            let (env, me) = (engine.env().clone(), Weak::clone(&self.me));
            let compactions = Rc::clone(&of.compactions);
            engine.env().spawn(Class::Compaction, async move {
                env.sleep(AGAIN_AFTER).await;
                compactions.awaited();
                if let Some(me) = me.upgrade() {
                    me.want(id);
                }
            });
        }
        Ok(is_done)
    }

    /// Writes level 0 into the metadata of SSTables that cannot stay in their level.
    async fn settle_levels(
        &self,
        engine: &Rc<Engine>,
        of: &OfTable,
        look: &Look,
    ) -> Result<(), StorageError> {
        let displaced = |strategy: &mut Strategy| look.view(|view| strategy.displaced(view));
        let displaced = of.compactions.strategy(&of.table, displaced).into_iter();
        let inputs: Vec<u64> = displaced.filter(|id| !of.compactions.is_busy(*id)).collect();
        if inputs.is_empty() {
            return Ok(());
        }
        let choice = Choice { moves: true, ..Choice::merge(inputs, Reason::Level) };
        let Some(task) = Task::new(look, of, choice, Work::Merge) else { return Ok(()) };
        let _busy = of.compactions.busy(&task.inputs);
        self.tasks.run(engine, &task).await.map(drop)
    }
}
