//! Memtables: what was written since the last flush, by shard and table.
//!
//! A partition keeps its rows packed: one alone, or sorted in chunks. A static row, range
//! tombstones and a deletion of the partition stand beside them, where there are any. A read shares
//! a row with the memtable and does not copy it.
//!
//! A memtable holds the records of one unbroken part of its shard's log. So the log's intervals
//! of an SSTable say what a replay can leave out.

mod cursor;
mod kept;
mod key;
mod partition;
mod partitions;
mod sorted;

use std::cell::{Ref, RefCell};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use rows::codec::{EncodingStats, StatsCollector};
use rows::{PartitionUpdate, RowBuilder};
use schema::Table;
use types::Token;

pub use self::cursor::MemtableCursor;
pub(crate) use self::kept::KeptMemtables;
pub use self::key::{KeyRef, PartitionKey};
pub use self::partition::Partition;
use self::partitions::Partitions;

use crate::commitlog::Position;

/// Bytes a partition costs beside its key's and its rows: what has them, and its place in the map.
const PARTITION_OVERHEAD_BYTES: usize = 136;

/// One shard's recent writes to one table, in the layout that the table had when it began.
#[derive(Debug)]
pub struct Memtable {
    table: Arc<Table>,
    partitions: Partitions,
    bytes: usize,
    /// Writes applied.
    operations: u64,
    /// Minima of what was written.
    minima: StatsCollector,
    /// The log's position when it began: no record before it is in here.
    began_at: Position,
    /// The log's position of the last record in here.
    last: Position,
}

impl Memtable {
    /// An empty memtable; its records lie after `began_at` in the log.
    pub fn new(table: Arc<Table>, began_at: Position) -> Self {
        let partitions = Partitions::default();
        let minima = StatsCollector::default();
        Self { table, partitions, bytes: 0, operations: 0, minima, began_at, last: began_at }
    }

    /// The table as it was when the memtable began.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Do its rows change where they are read as those of a table?
    pub(crate) fn is_mapped_to(&self, table: &Arc<Table>) -> bool {
        cursor::from_memtable(&self.table, table).is_some()
    }

    /// Bytes of memory in use, as accounted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Was nothing written?
    pub fn is_empty(&self) -> bool {
        self.partitions.len() == 0
    }

    /// Number of partitions.
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Writes applied.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// The part of the log that its records lie in: after the first, up to the second position.
    pub fn log_bounds(&self) -> (Position, Position) {
        (self.began_at, self.last)
    }

    /// Merges an update in; `position` is where its log record ends.
    pub fn apply(
        &mut self,
        update: &PartitionUpdate,
        position: Position,
        scratch: &mut RowBuilder,
    ) {
        // An ALTER came between: the write waited for another shard, for memory or for the log.
        if !update.layout.has_columns_of(&self.table.layout) {
            let altered = update.under(&self.table.layout, scratch);
            return self.apply(&altered, position, scratch);
        }
        let key = KeyRef { token: update.token, bytes: &update.key };
        let layout = &self.table.layout;
        let found = self.partitions.get_or_insert(key);
        let mut more = found.partition.apply(layout, update, scratch).bytes;
        if found.is_new {
            more += (PARTITION_OVERHEAD_BYTES + key.bytes.len()).cast_signed();
        }
        *found.run_bytes = found.run_bytes.saturating_add_signed(more);
        let bytes = self.bytes.checked_add_signed(more);
        self.bytes = bytes.expect("a memtable removes no more bytes than it added for its rows");
        self.operations += 1;
        self.collect(update);
        self.last = self.last.max(position);
    }

    fn collect(&mut self, update: &PartitionUpdate) {
        self.minima.deletion(update.deletion);
        for range in update.ranges.iter() {
            self.minima.deletion(range.deletion);
        }
        for row in update.static_row().into_iter().chain(update.rows.iter()) {
            self.minima.row(row);
        }
    }

    /// Minima of timestamps, deletion times and times to live of all that was written.
    pub fn minima(&self) -> EncodingStats {
        self.minima.finish()
    }

    /// The partition of a key.
    pub fn get(&self, key: KeyRef<'_>) -> Option<&Partition> {
        self.partitions.get(key)
    }

    /// The partitions in token order from a bound on.
    pub fn range(
        &self,
        from: Bound<KeyRef<'_>>,
    ) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        self.partitions.range(from)
    }

    /// Frees so many partitions at most; false if none is left.
    pub(crate) fn free_some(&mut self, count: usize) -> bool {
        self.partitions.remove_first(count);
        !self.is_empty()
    }

    /// Takes all out, into memtables of so many bytes at most in token order, but for partitions
    /// that are larger; with each the token that none in it is less than.
    fn cut(&mut self, most: usize) -> Vec<(Token, Self)> {
        let held = self.len();
        let cut = self.partitions.cut(most).into_iter().map(|(from, bytes, partitions)| {
            let table = Arc::clone(&self.table);
            let minima = self.minima;
            let (began_at, last, operations) = (self.began_at, self.last, self.operations);
            (from, Self { table, partitions, bytes, operations, minima, began_at, last })
        });
        let cut: Vec<(Token, Self)> = cut.collect();
        self.bytes = 0;
        let kept: usize = cut.iter().map(|(_, memtable)| memtable.len()).sum();
        assert_eq!(kept, held, "a memtable that is cut loses no partitions");
        cut
    }

    /// All partitions in token order, for who reads all of them.
    pub fn walk(&self) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        self.partitions.walk()
    }
}

/// A memtable as readers hold it: written by its shard until it is frozen, then shared with the
/// flush.
#[derive(Debug)]
pub struct Slot(RefCell<State>);

#[derive(Debug)]
enum State {
    Active(Memtable),
    Frozen(Arc<Memtable>),
}

impl Slot {
    /// Around a new memtable.
    pub fn new(memtable: Memtable) -> Rc<Self> {
        Rc::new(Self(RefCell::new(State::Active(memtable))))
    }

    /// Around a frozen memtable.
    pub fn frozen(memtable: Arc<Memtable>) -> Rc<Self> {
        Rc::new(Self(RefCell::new(State::Frozen(memtable))))
    }

    /// The frozen memtable itself, if nobody else holds it.
    pub(crate) fn into_memtable(slot: Rc<Self>) -> Option<Memtable> {
        match Rc::into_inner(slot)?.0.into_inner() {
            State::Active(memtable) => Some(memtable),
            State::Frozen(memtable) => Arc::into_inner(memtable),
        }
    }

    /// Cuts a frozen memtable that nobody else holds into slots of so many bytes at most, as
    /// [`Memtable::cut`] does.
    fn cut(slot: &mut Rc<Self>, most: usize) -> Option<Vec<(Token, Rc<Self>)>> {
        let State::Frozen(memtable) = Rc::get_mut(slot)?.0.get_mut() else { return None };
        let cut = Arc::get_mut(memtable)?.cut(most).into_iter();
        Some(cut.map(|(from, memtable)| (from, Self::frozen(Arc::new(memtable)))).collect())
    }

    /// The memtable, to be read until the next write or yield.
    pub fn read(&self) -> Ref<'_, Memtable> {
        Ref::map(self.0.borrow(), |state| match state {
            State::Active(memtable) => memtable,
            State::Frozen(memtable) => memtable,
        })
    }

    /// Writes; `None` if the memtable is frozen.
    pub fn write<T>(&self, write: impl FnOnce(&mut Memtable) -> T) -> Option<T> {
        match &mut *self.0.borrow_mut() {
            State::Active(memtable) => Some(write(memtable)),
            State::Frozen(_) => None,
        }
    }

    /// Ends writing; the memtable may go to another thread.
    pub fn freeze(&self) -> Arc<Memtable> {
        let mut state = self.0.borrow_mut();
        if let State::Active(memtable) = &mut *state {
            let empty = Memtable::new(Arc::clone(&memtable.table), memtable.began_at);
            *state = State::Frozen(Arc::new(std::mem::replace(memtable, empty)));
        }
        match &*state {
            State::Frozen(memtable) => Arc::clone(memtable),
            State::Active(_) => unreachable!("frozen above"),
        }
    }
}
