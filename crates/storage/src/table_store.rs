//! One shard's share of one table: memtables and its view of the node's SSTables.
//!
//! The distributions of `system_views` hang here, and are made when they are first needed.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use metrics::{Histogram, Weight};
use schema::Table;
use types::Token;

use crate::commitlog::Position;
use crate::memtable::{KeptMemtables, Memtable, Slot};
use crate::samples::Samples;
use crate::sstables::LiveSet;

/// A shard's data of one table.
pub struct TableStore {
    table: RefCell<Arc<Table>>,
    active: RefCell<Rc<Slot>>,
    /// Frozen memtables that no SSTable replaces yet, oldest first, by the flush that freed them.
    frozen: RefCell<Vec<(u64, Rc<Slot>)>>,
    /// Those that SSTables have replaced, while there is memory.
    kept: RefCell<KeptMemtables>,
    live: RefCell<Arc<LiveSet>>,
    /// Changes when what a cache keeps of its rows and counters becomes worthless; no other table
    /// of the shard ever has the same.
    rows_reset: Cell<u64>,
    resets: Rc<Cell<u64>>,
    /// Counters for metrics.
    pub stats: TableStats,
    /// What the operator has sampled.
    pub samples: Samples,
}

/// A distribution that a shard keeps of a table: durations in microseconds, or numbers of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Reads of partitions, here.
    LocalRead,
    /// Reads of ranges, here.
    LocalScan,
    /// Writes, here.
    LocalWrite,
    /// Reads of partitions that clients of this shard asked for.
    CoordinatorRead,
    /// Reads of ranges that clients of this shard asked for.
    CoordinatorScan,
    /// Writes that clients of this shard asked for.
    CoordinatorWrite,
    /// Tombstones that a read met.
    TombstonesPerRead,
    /// Live rows that a read met.
    RowsPerRead,
    /// One more than the SSTables that a read of a partition took something from: there is no
    /// bucket for nothing.
    SSTablesPerRead,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::LocalRead,
        Self::LocalScan,
        Self::LocalWrite,
        Self::CoordinatorRead,
        Self::CoordinatorScan,
        Self::CoordinatorWrite,
        Self::TombstonesPerRead,
        Self::RowsPerRead,
        Self::SSTablesPerRead,
    ];
}

/// A step of a conditional request, here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasStep {
    /// A ballot was answered.
    Prepare,
    /// A proposal was answered.
    Propose,
    /// What was decided was done.
    Commit,
}

impl CasStep {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Prepare, Self::Propose, Self::Commit];
}

/// How often something was done, and how long that took.
#[derive(Debug, Default)]
pub struct Timed {
    /// Times.
    pub count: Cell<u64>,
    /// Nanoseconds.
    pub ns: Cell<u64>,
}

/// What a shard counts about a table.
#[derive(Debug, Default)]
pub struct TableStats {
    /// Single-partition reads.
    pub reads: Cell<u64>,
    /// Range reads.
    pub range_reads: Cell<u64>,
    /// Nanoseconds that single-partition reads took.
    pub read_ns: Cell<u64>,
    /// Writes.
    pub writes: Cell<u64>,
    /// Nanoseconds that writes took in the memtable.
    pub write_ns: Cell<u64>,
    /// SSTables that reads asked whether they may hold a key.
    pub filter_checks: Cell<u64>,
    /// Those that said so and did not.
    pub filter_misses: Cell<u64>,
    /// Replicas that a coordinator asked because others might take too long.
    pub speculative_retries: Cell<u64>,
    /// Mutations of other nodes that came too late and were dropped.
    pub dropped_mutations: Cell<u64>,
    /// Flushes that wrote what all shards had; the first shard counts them.
    pub flushes: Cell<u64>,
    /// Flushes under way; the first shard counts them.
    pub flushing: Cell<u64>,
    /// Bytes that compactions wrote; the first shard counts them.
    pub compacted_to: Cell<u64>,
    /// By [`CasStep`].
    cas: [Timed; CasStep::ALL.len()],
    weight: Weight,
    /// By [`Measure`]; made when they are first needed, which of most tables is never.
    measures: [OnceCell<Histogram>; Measure::ALL.len()],
}

impl TableStats {
    fn new(weight: Weight) -> Self {
        Self { weight, ..Self::default() }
    }

    /// Reads of partitions and ranges.
    pub fn all_reads(&self) -> u64 {
        self.reads.get() + self.range_reads.get()
    }

    /// How often a step of conditional requests was taken, and how long that took.
    pub fn cas(&self, step: CasStep) -> &Timed {
        &self.cas[step as usize]
    }

    /// Counts a value.
    pub fn record(&self, measure: Measure, value: u64) {
        let histogram = self.measures[measure as usize].get_or_init(|| self.weight.histogram());
        histogram.record(value);
    }

    /// The distribution of a measure, once there is one.
    pub fn measure(&self, measure: Measure) -> Option<&Histogram> {
        self.measures[measure as usize].get()
    }
}

impl TableStore {
    /// An empty one; `log_position` is where the log stands.
    pub fn new(
        table: Arc<Table>,
        log_position: Position,
        weight: Weight,
        resets: Rc<Cell<u64>>,
    ) -> Rc<Self> {
        let memtable = Memtable::new(Arc::clone(&table), log_position);
        Rc::new(Self {
            table: RefCell::new(table),
            active: RefCell::new(Slot::new(memtable)),
            frozen: RefCell::default(),
            kept: RefCell::default(),
            live: RefCell::default(),
            rows_reset: Cell::new(next(&resets)),
            resets,
            stats: TableStats::new(weight),
            samples: Samples::default(),
        })
    }

    /// The table as of the schema's present epoch.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.borrow())
    }

    /// Takes another definition of the table. Where the columns differ, writing goes on in a new
    /// memtable: the old one keeps its layout until it is flushed, and those that were flushed are
    /// given away.
    #[must_use = "the returned memtables may be large"]
    pub fn set_table(&self, table: &Arc<Table>, log_position: Position) -> Vec<Rc<Slot>> {
        if !Arc::ptr_eq(&self.table.borrow(), table) {
            self.reset_rows();
        }
        let differs = self.table.borrow().layout != table.layout;
        *self.table.borrow_mut() = Arc::clone(table);
        if !differs {
            return Vec::new();
        }
        let is_empty = self.active.borrow().read().is_empty();
        match is_empty {
            true => self.restart(log_position),
            false => drop(self.freeze(ALTERED, log_position)),
        }
        let is_altered = self.active.borrow().read().table().layout == table.layout;
        assert!(is_altered, "after an ALTER, writes go to a memtable with the new columns");
        // what was flushed reads as SSTables do (see `MemtableCursor`)
        self.kept.borrow_mut().take_all()
    }

    /// What a cache keeps of its rows and counters is kept under this number.
    pub(crate) fn rows_reset(&self) -> u64 {
        self.rows_reset.get()
    }

    /// What a cache keeps of its rows and counters is worthless from now on.
    pub(crate) fn reset_rows(&self) {
        self.rows_reset.set(next(&self.resets));
    }

    /// The memtable that takes writes.
    pub fn active(&self) -> Ref<'_, Rc<Slot>> {
        self.active.borrow()
    }

    /// Bytes in memtables: the active one, and those frozen.
    pub fn memtable_bytes(&self) -> (usize, usize) {
        let frozen = self.frozen.borrow();
        let frozen = frozen.iter().map(|(_, slot)| slot.read().bytes()).sum();
        (self.active.borrow().read().bytes(), frozen)
    }

    /// Is anything in a memtable?
    pub fn has_unflushed(&self) -> bool {
        !self.active.borrow().read().is_empty() || !self.frozen.borrow().is_empty()
    }

    /// Calls `each` with all memtables, newest first.
    pub fn for_each_memtable(&self, mut each: impl FnMut(&Rc<Slot>)) {
        each(&self.active.borrow());
        for (_, slot) in self.frozen.borrow().iter().rev() {
            each(slot);
        }
    }

    /// Calls `each` with all memtables that a read of a token's partitions has to look at: those,
    /// and the ones that stand for SSTables there.
    pub(crate) fn for_each_read(&self, token: Token, mut each: impl FnMut(&Rc<Slot>)) {
        self.for_each_memtable(&mut each);
        self.kept.borrow().slots_of(token).for_each(each);
    }

    /// The same for who reads all partitions: those that stand for whole SSTables.
    pub(crate) fn for_each_scanned(&self, mut each: impl FnMut(&Rc<Slot>)) {
        self.for_each_memtable(&mut each);
        self.kept.borrow().whole().for_each(each);
    }

    /// Does a memtable stand for an SSTable from a token on ([`Token::MIN`]: for all of it)?
    /// Whoever asks after [`Self::for_each_read`] about an SSTable that was there then is not told
    /// so of one that it did not see: memtables stand for new ones only, and for ever less of them.
    pub(crate) fn is_kept(&self, sstable: u64, from: Token) -> bool {
        self.kept.borrow().has(sstable, from)
    }

    /// Flushed memtables that are kept: what they are for, and what they take.
    pub(crate) fn kept(&self) -> &RefCell<KeptMemtables> {
        &self.kept
    }

    /// The SSTables.
    pub fn live(&self) -> Arc<LiveSet> {
        Arc::clone(&self.live.borrow())
    }

    /// Another set of SSTables from now on. Gives the memtables away that stood for others.
    #[must_use = "the returned memtables may be large"]
    pub fn set_live(&self, live: Arc<LiveSet>) -> Vec<Rc<Slot>> {
        let outdated = self.kept.borrow_mut().take_outdated(&live);
        *self.live.borrow_mut() = live;
        outdated
    }

    /// Freezes the active memtable for a flush; gives all memtables that this flush is to write.
    pub fn freeze(&self, flush: u64, log_position: Position) -> Vec<Arc<Memtable>> {
        let fresh = Slot::new(Memtable::new(self.table(), log_position));
        let old = std::mem::replace(&mut *self.active.borrow_mut(), fresh);
        let mut frozen = self.frozen.borrow_mut();
        let is_fresh = self.active.borrow().read().is_empty();
        assert!(is_fresh, "a memtable that replaces another one is empty");
        let memtable = old.freeze();
        if !memtable.is_empty() {
            frozen.push((flush, old));
        }
        if flush == ALTERED {
            return Vec::new();
        }
        for (of, _) in frozen.iter_mut() {
            assert!(*of <= flush, "a flush takes what earlier ones left: {of}, {flush}");
            *of = flush;
        }
        frozen.iter().map(|(_, slot)| slot.freeze()).collect()
    }

    /// Gives the memtables of a flush away: SSTables have their data. Readers that hold one keep
    /// it.
    pub fn retire(&self, flush: u64) -> Vec<Rc<Slot>> {
        assert!(
            flush != ALTERED,
            "a memtable that an ALTER froze is retired by the flush that writes it"
        );
        let of_flush = |frozen: &mut (u64, Rc<Slot>)| frozen.0 == flush;
        let mut frozen = self.frozen.borrow_mut();
        let retired = frozen.extract_if(.., of_flush).map(|(_, slot)| slot).collect();
        let are_later = frozen.iter().all(|(of, _)| *of == ALTERED);
        assert!(are_later, "what is frozen still was frozen after the flush began");
        retired
    }

    /// Begins the empty active memtable anew at a position of the log.
    pub fn restart(&self, log_position: Position) {
        if self.active.borrow().read().is_empty() {
            let fresh = Memtable::new(self.table(), log_position);
            *self.active.borrow_mut() = Slot::new(fresh);
        }
    }

    /// Takes all that is in memory and all SSTables from view, for DROP, and gives the memtables
    /// away.
    #[must_use = "the returned memtables may be large"]
    pub fn clear(&self, log_position: Position) -> Vec<Rc<Slot>> {
        self.reset_rows();
        let fresh = Slot::new(Memtable::new(self.table(), log_position));
        let mut gone = self.set_live(Arc::default());
        gone.push(self.active.replace(fresh));
        gone.extend(self.frozen.borrow_mut().drain(..).map(|(_, slot)| slot));
        gone
    }
}

fn next(numbers: &Cell<u64>) -> u64 {
    numbers.set(numbers.get() + 1);
    numbers.get()
}

/// Marks a memtable that an ALTER froze: the next flush takes it along.
const ALTERED: u64 = 0;
