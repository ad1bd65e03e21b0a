//! The first rows of partitions, merged from all that holds a part of them: the row cache of a
//! shard.
//!
//! A write to a partition drops what is kept of it, in the same step as it reaches the memtable.
//! Whoever reads a partition to keep it leaves a mark before, and keeps nothing if the mark is gone
//! when it has read: somebody wrote.
//!
//! TRUNCATE, ALTER, DROP and imports give the table another number. Nothing is kept under that one
//! yet.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use rows::{Bound, Layout, PartitionUpdate, RowBuilder, compare};
use schema::Table;

use super::{CacheStats, Clock};
use crate::commitlog::Position;
use crate::memtable::{KeyRef, Memtable, MemtableCursor, Slot};
use crate::read::Slices;
use crate::table_store::TableStore;

/// No partition takes more than this part of the cache: of a larger one fewer rows are kept.
const PARTITION_PART: usize = 8;
/// Bytes that an empty entry takes beside what is counted of its rows.
const ENTRY_BYTES: usize = size_of::<Memtable>() + size_of::<Slot>() + 64;

/// What is kept of a partition.
#[derive(Debug)]
pub(crate) struct CachedRows {
    slot: Rc<Slot>,
    /// The bound where what is kept ends; `None`: that is all.
    upto: Option<Bound>,
}

/// What the cache has of a partition.
pub(crate) enum Lookup {
    /// These rows.
    Kept(Rc<CachedRows>),
    /// Somebody reads them to keep them.
    Filling,
    /// Nothing.
    Absent,
}

#[derive(Debug)]
enum Entry {
    Kept(Rc<CachedRows>),
    /// The mark of a read that has not ended, by its number.
    Filling(u64),
}

/// The cache of a shard.
#[derive(Debug)]
pub(crate) struct RowCache {
    is_on: Cell<bool>,
    entries: RefCell<Clock<Rc<[u8]>, Entry>>,
    name: RefCell<Vec<u8>>,
    fills: Cell<u64>,
}

/// The mark that a read leaves. Dropped, it is gone.
pub(crate) struct Fill<'a> {
    cache: &'a RowCache,
    name: Rc<[u8]>,
    number: u64,
}

impl RowCache {
    pub fn new(limit: usize) -> Self {
        Self {
            is_on: Cell::new(limit > 0),
            entries: RefCell::new(Clock::new(limit, 0)),
            name: RefCell::default(),
            fills: Cell::new(0),
        }
    }

    /// May it keep anything?
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    pub fn set_limit(&self, limit: usize) {
        self.is_on.set(limit > 0);
        self.entries.borrow_mut().set_limit(limit);
    }

    pub fn clear(&self) {
        self.entries.borrow_mut().clear();
    }

    pub fn stats(&self) -> CacheStats {
        self.entries.borrow().stats()
    }

    /// Bytes that may be kept of one partition.
    pub fn partition_bytes_max(&self) -> usize {
        self.entries.borrow().limit() / PARTITION_PART
    }

    /// Calls `f` with the entries, and the name of a partition among them: the number of its table,
    /// and its key.
    fn named<T>(
        &self,
        store: &TableStore,
        key: &[u8],
        f: impl FnOnce(&mut Clock<Rc<[u8]>, Entry>, &[u8]) -> T,
    ) -> T {
        let name = &mut *self.name.borrow_mut();
        name.clear();
        name.extend_from_slice(&store.rows_reset().to_be_bytes());
        name.extend_from_slice(key);
        f(&mut self.entries.borrow_mut(), name)
    }

    pub fn get(&self, store: &TableStore, key: &[u8]) -> Lookup {
        self.named(store, key, |entries, name| match entries.get(name) {
            Some(Entry::Kept(rows)) => Lookup::Kept(Rc::clone(rows)),
            Some(Entry::Filling(_)) => Lookup::Filling,
            None => Lookup::Absent,
        })
    }

    /// Is nothing kept of a partition, and does nobody read it to keep it?
    pub fn is_absent(&self, store: &TableStore, key: &[u8]) -> bool {
        self.named(store, key, |entries, name| entries.peek(name).is_none())
    }

    /// As [`Clock::page`].
    pub fn page(&self, from: usize, count: usize, is_used: bool) -> (Vec<Rc<[u8]>>, Option<usize>) {
        self.entries.borrow().page(from, count, is_used)
    }

    /// Drops what is kept of a partition, and the mark of who reads it.
    pub fn forget(&self, store: &TableStore, key: &[u8]) {
        self.named(store, key, |entries, name| entries.remove(name));
    }

    /// Leaves a mark, to be kept while a partition is read.
    pub fn fill(&self, store: &TableStore, key: &[u8]) -> Fill<'_> {
        let number = self.fills.get() + 1;
        self.fills.set(number);
        let name = self.named(store, key, |entries, name| {
            let name: Rc<[u8]> = name.into();
            entries.put(Rc::clone(&name), Entry::Filling(number), name.len());
            name
        });
        Fill { cache: self, name, number }
    }
}

impl Fill<'_> {
    fn stands(&self) -> bool {
        let entries = self.cache.entries.borrow();
        matches!(entries.peek(&self.name), Some(Entry::Filling(number)) if *number == self.number)
    }

    /// Keeps what was read, unless somebody wrote meanwhile.
    pub fn end(self, rows: &Rc<CachedRows>, env: &Env) {
        let stands = self.stands();
        env.mark(if stands { "rows.kept" } else { "rows.overtaken" });
        if stands || env.planted("row_cache_filled_with_old") {
            let bytes = self.name.len() + rows.slot.read().bytes() + ENTRY_BYTES;
            let entry = Entry::Kept(Rc::clone(rows));
            self.cache.entries.borrow_mut().put(Rc::clone(&self.name), entry, bytes);
        }
    }
}

impl Drop for Fill<'_> {
    fn drop(&mut self) {
        if self.stands() {
            self.cache.entries.borrow_mut().remove(&self.name);
        }
    }
}

impl CachedRows {
    /// Of what was read of a partition; an update of nothing: there is none.
    pub fn new(table: &Arc<Table>, update: Option<&PartitionUpdate>, upto: Option<Bound>) -> Self {
        let nowhere = Position { segment: 0, offset: 0 };
        let mut memtable = Memtable::new(Arc::clone(table), nowhere);
        if let Some(update) = update {
            memtable.apply(update, nowhere, &mut RowBuilder::new());
        }
        Self { slot: Slot::frozen(Arc::new(memtable)), upto }
    }

    /// Of slices the parts that are kept, and those that are not, which come after them; `None` if
    /// nothing of them is kept, or what is not comes first.
    pub fn split(&self, layout: &Layout, slices: &Slices) -> Option<(Slices, Option<Slices>)> {
        let Some(upto) = &self.upto else { return Some((slices.clone(), None)) };
        let (mut kept, mut rest) = (Vec::new(), Vec::new());
        for (start, end) in slices.ranges() {
            let begins = compare(layout, start, upto) == Ordering::Less;
            let ends = compare(layout, end, upto) != Ordering::Greater;
            match (begins, ends) {
                (_, true) => kept.push((start.clone(), end.clone())),
                (false, false) => rest.push((start.clone(), end.clone())),
                (true, false) => {
                    kept.push((start.clone(), upto.clone()));
                    rest.push((upto.as_ref().invert().to_owned(), end.clone()));
                }
            }
        }
        let is_usable = !kept.is_empty() && (rest.is_empty() || !slices.reversed());
        let rest = (!rest.is_empty()).then(|| Slices::new(rest, false));
        is_usable.then(|| (Slices::new(kept, slices.reversed()), rest))
    }

    /// Reads slices of them; `None` if there is no such partition.
    pub fn read(
        &self,
        key: KeyRef<'_>,
        table: &Arc<Table>,
        slices: Slices,
    ) -> Option<MemtableCursor> {
        MemtableCursor::open(&self.slot, key, table, slices)
    }
}

#[cfg(test)]
mod tests {
    use rows::{BoundKind, Clustering};
    use schema::{ColumnKind, TableId};
    use types::CqlType;

    use super::*;

    fn bound(kind: BoundKind, value: i32) -> Bound {
        Bound::new(kind, Clustering::new([Some(&value.to_be_bytes()[..])]))
    }

    fn kept(upto: Option<i32>) -> (CachedRows, Arc<Table>) {
        let builder = Table::builder("ks", "t", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Int, ColumnKind::Clustering);
        let table = Arc::new(builder.build());
        let upto = upto.map(|value| bound(BoundKind::InclEnd, value));
        (CachedRows::new(&table, None, upto), table)
    }

    type Range = (Bound, Bound);

    /// What is kept and what is not of ranges, where rows up to 10 are.
    fn split(ranges: &[Range], reversed: bool) -> Option<(Vec<Range>, Vec<Range>)> {
        let (rows, table) = kept(Some(10));
        let slices = Slices::new(ranges.to_vec(), reversed);
        let (kept, rest) = rows.split(&table.layout, &slices)?;
        assert_eq!(kept.reversed(), reversed);
        Some((kept.ranges().to_vec(), rest.map(|rest| rest.ranges().to_vec()).unwrap_or_default()))
    }

    #[test]
    fn what_is_not_kept_comes_after_what_is_or_nothing_is_of_use() {
        use BoundKind::{ExclEnd, ExclStart, InclEnd, InclStart};
        let inside = (bound(InclStart, 1), bound(InclEnd, 10));
        let over = (bound(InclStart, 10), bound(ExclEnd, 12));
        let after = (bound(ExclStart, 10), bound(InclEnd, 11));
        assert_eq!(
            split(std::slice::from_ref(&inside), true),
            Some((vec![inside.clone()], Vec::new()))
        );
        let parts = (
            vec![(bound(InclStart, 10), bound(InclEnd, 10))],
            vec![(bound(ExclStart, 10), bound(ExclEnd, 12))],
        );
        assert_eq!(split(std::slice::from_ref(&over), false), Some(parts));
        assert_eq!(split(&[over], true), None);
        assert_eq!(split(std::slice::from_ref(&after), false), None);
        assert_eq!(
            split(&[inside.clone(), after.clone()], false),
            Some((vec![inside.clone()], vec![after.clone()]))
        );
        assert_eq!(split(&[inside, after], true), None);
    }

    #[test]
    fn of_a_partition_that_is_kept_whole_everything_is() {
        let (rows, table) = kept(None);
        for reversed in [false, true] {
            let (slices, rest) = rows.split(&table.layout, &Slices::all(reversed)).unwrap();
            assert_eq!((slices.ranges().len(), rest.is_none()), (1, true));
        }
    }
}
