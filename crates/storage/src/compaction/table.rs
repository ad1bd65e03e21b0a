//! What compactions know of a table: its strategy, what they work on, and what the operator said.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use env::sync::{Acquire, Semaphore};
use schema::{CompactionParams, Table};
use types::Uuid;

use crate::sstables::SSTable;
use crate::strategies::{Candidate, Strategy};

/// How much the last flush counts in the average of them (`ExpMovingAverage.decayBy1000`).
const FLUSH_WEIGHT: f64 = 0.0046;

/// A table's compactions.
pub(crate) struct TableCompactions {
    env: Env,
    strategy: RefCell<Option<Strategy>>,
    /// The moving average of the bytes of data that a flush writes; not a number before the first.
    flush_bytes: Cell<f64>,
    /// SSTables that compactions work on, or that a repair holds: with its session.
    busy: RefCell<BTreeMap<u64, Option<Uuid>>>,
    /// What keeps background compactions from starting.
    pauses: Cell<u32>,
    /// Is it looked at again in a while, for something that had to wait?
    is_awaited: Cell<bool>,
    /// One compaction that the operator asked for at a time.
    on_demand: Semaphore,
    /// What the operator said about background compactions, against the table's `enabled` option.
    auto: Cell<Option<bool>>,
    /// `min_threshold` and `max_threshold` as the operator said, whatever the table's options say.
    thresholds: Cell<Option<(u32, u32)>>,
}

/// SSTables that a task works on.
pub(super) struct Busy {
    table: Rc<TableCompactions>,
    numbers: Vec<u64>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut busy = self.table.busy.borrow_mut();
        for number in &self.numbers {
            assert!(busy.remove(number).is_some(), "an input is busy until its compaction ends");
        }
    }
}

/// Keeps background tasks of a table from starting.
pub(super) struct Paused<'a>(&'a TableCompactions);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.pauses.set(self.0.pauses.get() - 1);
    }
}

impl TableCompactions {
    pub fn new(env: &Env) -> Self {
        Self {
            env: env.clone(),
            strategy: RefCell::default(),
            flush_bytes: Cell::new(f64::NAN),
            busy: RefCell::default(),
            pauses: Cell::new(0),
            is_awaited: Cell::new(false),
            on_demand: Semaphore::new(1),
            auto: Cell::new(None),
            thresholds: Cell::new(None),
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

    /// The moving average of that; not a number before the first.
    pub fn flush_bytes(&self) -> f64 {
        self.flush_bytes.get()
    }

    /// Is the table compacted by itself?
    pub fn is_auto(&self, table: &Table) -> bool {
        self.strategy(table, |_| ());
        self.auto.get().unwrap_or(table.params.compaction.enabled())
    }

    /// Lets it be, or not, until the table's definition of compactions changes.
    pub fn set_auto(&self, enabled: bool) {
        self.auto.set(Some(enabled));
    }

    /// Begins to work on SSTables.
    pub(super) fn busy(self: &Rc<Self>, inputs: &[Arc<SSTable>]) -> Busy {
        self.hold(inputs, None)
    }

    /// The same, for a session of incremental repair.
    pub(super) fn hold(self: &Rc<Self>, inputs: &[Arc<SSTable>], session: Option<Uuid>) -> Busy {
        let numbers: Vec<u64> = inputs.iter().map(|input| input.number).collect();
        let mut busy = self.busy.borrow_mut();
        for number in &numbers {
            let before = busy.insert(*number, session);
            assert!(before.is_none(), "an SSTable is an input of one compaction at a time");
        }
        drop(busy);
        Busy { table: Rc::clone(self), numbers }
    }

    /// The session that holds an SSTable.
    pub(super) fn holder(&self, number: u64) -> Option<Uuid> {
        self.busy.borrow().get(&number).copied().flatten()
    }

    /// Does a compaction work on an SSTable?
    pub fn is_busy(&self, number: u64) -> bool {
        self.busy.borrow().contains_key(&number)
    }

    /// Does no compaction work on any?
    pub fn is_idle(&self) -> bool {
        self.busy.borrow().is_empty()
    }

    /// Keeps background tasks from starting.
    pub(super) fn pause(&self) -> Paused<'_> {
        self.pauses.set(self.pauses.get() + 1);
        Paused(self)
    }

    pub fn is_paused(&self) -> bool {
        self.pauses.get() > 0
    }

    /// Waits until no other compaction runs that the operator asked for.
    pub fn one_at_a_time(&self) -> Acquire {
        self.on_demand.acquire(1)
    }

    /// It is to be looked at again in a while; true if nobody does yet.
    pub fn await_again(&self) -> bool {
        !self.is_awaited.replace(true)
    }

    pub fn awaited(&self) {
        self.is_awaited.set(false);
    }
}
