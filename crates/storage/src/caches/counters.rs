//! This node's part of counters, as it was last written: the counter cache of a shard, which saves
//! the read before a write.
//!
//! What is kept must be what a read would find, so nothing is kept that a read has not found alive:
//! of a counter that is new, or that a deletion may cover, the first write keeps nothing. From then
//! on only two can change it. Who counts is one, and keeps what it wrote in the step that reaches
//! the memtable. Whatever else is written to the partition is the other: it changes the number of
//! the partition's group, and what was kept of the group before counts no more, nor does what
//! somebody is about to keep who looked before. TRUNCATE, ALTER, DROP and imports give the table
//! another number, as with rows.

use std::cell::{Cell, RefCell};
use std::hash::BuildHasher;
use std::rc::Rc;

use rows::ClusteringRef;
use types::hash::State;

use super::{CacheStats, Clock};
use crate::table_store::TableStore;

/// Partitions fall into so many groups by their keys; a power of two. They take 32 KiB of each
/// shard.
const GROUPS: usize = 1 << 12;
/// Bytes of the number of a table, before the key in the name of a counter.
const NUMBER_BYTES: usize = size_of::<u64>();
/// Bytes of the length of the key, before it.
const KEY_LENGTH_BYTES: usize = size_of::<u32>();

/// Which counter of a partition: its row, the static one for none, and its column in the table's
/// layout.
#[derive(Clone, Copy, Debug)]
pub struct CounterName<'a> {
    /// Where its row is.
    pub row: Option<ClusteringRef<'a>>,
    /// Its column.
    pub column: u16,
}

/// This node's part of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// When it was written, and how often.
    pub clock: i64,
    /// What it adds to the counter.
    pub count: i64,
}

/// How things stood when somebody began to look at a partition.
#[derive(Clone, Copy, Debug)]
pub struct CounterMark {
    table: u64,
    change: u64,
}

/// What an update of counters comes to, for the cache.
#[derive(Debug)]
pub struct Counted {
    mark: CounterMark,
    parts: Vec<(Box<[u8]>, Part)>,
}

impl Counted {
    /// Nothing so far, of who began to look at the mark.
    pub fn since(mark: CounterMark) -> Self {
        Self { mark, parts: Vec::new() }
    }

    pub(crate) fn mark(&self) -> CounterMark {
        self.mark
    }

    /// A counter that was found alive, and what the update makes of this node's part of it.
    pub fn add(&mut self, name: CounterName<'_>, part: Part) {
        let mut bytes = Vec::new();
        name.write(&mut bytes);
        self.parts.push((bytes.into(), part));
    }
}

impl<'a> CounterName<'a> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.column.to_be_bytes());
        out.push(self.row.is_some().into());
        out.extend(self.row.map(|row| row.as_packed()).unwrap_or_default());
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (column, rest) = bytes.split_first_chunk()?;
        let (is_row, clustering) = rest.split_first()?;
        let row = (*is_row != 0).then(|| ClusteringRef::from_packed(clustering));
        Some(Self { row, column: u16::from_be_bytes(*column) })
    }
}

#[derive(Debug)]
struct Kept {
    part: Part,
    /// The last change of any partition before it was kept.
    change: u64,
}

/// The cache of a shard.
#[derive(Debug)]
pub(crate) struct CounterCache {
    is_on: Cell<bool>,
    entries: RefCell<Clock<Rc<[u8]>, Kept>>,
    name: RefCell<Vec<u8>>,
    /// Counts what changes partitions other than by counting.
    changes: Cell<u64>,
    /// The last change of each group.
    groups: Box<[Cell<u64>]>,
    /// What was kept before this change counts no more, of whatever group.
    floor: Cell<u64>,
}

/// A counter that is kept: the number of its table, its key and its name.
pub(crate) struct KeptName<'a> {
    pub table: u64,
    pub key: &'a [u8],
    pub counter: CounterName<'a>,
}

impl CounterCache {
    pub fn new(limit: usize) -> Self {
        Self {
            is_on: Cell::new(limit > 0),
            entries: RefCell::new(Clock::new(limit, 0)),
            name: RefCell::default(),
            changes: Cell::new(0),
            groups: vec![Cell::new(0); GROUPS].into(),
            floor: Cell::new(0),
        }
    }

    /// May it keep anything?
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Another limit. While there is none, changes are not noted, so nothing that began before is
    /// kept after.
    pub fn set_limit(&self, limit: usize) {
        self.is_on.set(limit > 0);
        self.entries.borrow_mut().set_limit(limit);
        self.floor.set(self.next_change());
    }

    pub fn clear(&self) {
        self.entries.borrow_mut().clear();
    }

    pub fn stats(&self) -> CacheStats {
        self.entries.borrow().stats()
    }

    fn next_change(&self) -> u64 {
        self.changes.set(self.changes.get() + 1);
        self.changes.get()
    }

    fn group(&self, key: &[u8]) -> Option<&Cell<u64>> {
        self.groups.get(State::default().hash_one(key) as usize % GROUPS)
    }

    /// The last change that may be of a partition of this key.
    fn last_change(&self, key: &[u8]) -> u64 {
        self.group(key).map_or(u64::MAX, Cell::get).max(self.floor.get())
    }

    /// A partition of this key is changed, other than by counting.
    pub fn change(&self, key: &[u8]) {
        let change = self.next_change();
        if let Some(group) = self.group(key) {
            group.set(change);
        }
    }

    /// As [`Clock::page`].
    pub fn page(&self, from: usize, count: usize, is_used: bool) -> (Vec<Rc<[u8]>>, Option<usize>) {
        self.entries.borrow().page(from, count, is_used)
    }

    pub fn mark(&self, store: &TableStore) -> CounterMark {
        CounterMark { table: store.rows_reset(), change: self.changes.get() }
    }

    fn named<T>(
        &self,
        (table, key): (u64, &[u8]),
        f: impl FnOnce(&mut Clock<Rc<[u8]>, Kept>, &mut Vec<u8>) -> T,
    ) -> T {
        let name = &mut *self.name.borrow_mut();
        name.clear();
        name.extend(table.to_be_bytes());
        name.extend((key.len() as u32).to_be_bytes());
        name.extend(key);
        f(&mut self.entries.borrow_mut(), name)
    }

    pub fn get(&self, mark: CounterMark, key: &[u8], counter: CounterName<'_>) -> Option<Part> {
        let last = self.last_change(key);
        self.named((mark.table, key), |entries, name| {
            counter.write(name);
            if entries.peek(name.as_slice()).is_some_and(|kept| kept.change < last) {
                entries.remove(name.as_slice());
            }
            entries.get(name.as_slice()).map(|kept| kept.part)
        })
    }

    /// Was a partition changed since somebody looked at it who is about to keep something?
    pub fn is_overtaken(&self, store: &TableStore, key: &[u8], mark: CounterMark) -> bool {
        mark.change < self.last_change(key) || mark.table != store.rows_reset()
    }

    /// Keeps what an update comes to that reaches the memtable.
    pub fn keep(&self, store: &TableStore, key: &[u8], counted: &Counted) {
        let change = self.changes.get();
        self.named((store.rows_reset(), key), |entries, name| {
            let prefix = name.len();
            for (counter, part) in &counted.parts {
                name.truncate(prefix);
                name.extend_from_slice(counter);
                let kept = Kept { part: *part, change };
                // the map holds names twice, behind one pointer
                let bytes = name.len() + size_of::<[usize; 2]>();
                entries.put(name.as_slice().into(), kept, bytes);
            }
        });
    }
}

impl<'a> KeptName<'a> {
    /// What the name of an entry says.
    pub fn read(name: &'a [u8]) -> Option<Self> {
        let (table, rest) = name.split_first_chunk::<NUMBER_BYTES>()?;
        let (length, rest) = rest.split_first_chunk::<KEY_LENGTH_BYTES>()?;
        let (key, counter) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let counter = CounterName::read(counter)?;
        Some(Self { table: u64::from_be_bytes(*table), key, counter })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use metrics::Weight;
    use proptest::prelude::*;
    use schema::{ColumnKind, Table, TableId};
    use types::CqlType;

    use super::*;
    use crate::commitlog::Position;

    const LIMIT: usize = 4000;
    const KEYS: u8 = 3;
    const COLUMNS: u16 = 3;

    fn store() -> Rc<TableStore> {
        let builder = Table::builder("ks", "t", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("v", CqlType::Counter, ColumnKind::Regular);
        let nowhere = Position { segment: 0, offset: 0 };
        TableStore::new(Arc::new(builder.build()), nowhere, Weight::default(), Rc::default())
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// Somebody looks at a counter, to add to it.
        Begin(u8, u16),
        /// What was begun of a partition is written.
        End(u8),
        /// A partition is deleted, for now or for ever.
        Delete(u8, bool),
        /// Its counters come to have other values.
        Change(u8),
        Reset,
        Clear,
        TurnOff,
        TurnOn,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..KEYS, 0..COLUMNS).prop_map(|(key, column)| Step::Begin(key, column)),
            6 => (0..KEYS).prop_map(Step::End),
            1 => (0..KEYS, any::<bool>()).prop_map(|(key, dead)| Step::Delete(key, dead)),
            1 => (0..KEYS).prop_map(Step::Change),
            1 => Just(Step::Reset),
            1 => Just(Step::Clear),
            1 => Just(Step::TurnOff),
            2 => Just(Step::TurnOn),
        ]
    }

    /// What is stored, as reads would find it.
    #[derive(Default)]
    struct Model {
        parts: BTreeMap<(u8, u16), Part>,
        /// What is written there is deleted already.
        dead: BTreeMap<u8, bool>,
        /// Who adds to which partition now: since when, to which counter, and what it was.
        adding: BTreeMap<u8, (CounterMark, u16, Option<Part>)>,
    }

    fn name(column: u16) -> CounterName<'static> {
        CounterName { row: None, column }
    }

    fn run(cache: &CounterCache, store: &TableStore, model: &mut Model, step: Step) {
        match step {
            Step::Begin(key, column) => {
                let mark = cache.mark(store);
                let kept = cache.get(mark, &[key], name(column));
                let before = kept.or(model.parts.get(&(key, column)).copied());
                model.adding.entry(key).or_insert((mark, column, before));
            }
            Step::End(key) => {
                let Some((mark, column, before)) = model.adding.remove(&key) else { return };
                let Part { clock, count } = before.unwrap_or(Part { clock: 0, count: 0 });
                let part = Part { clock: clock + 1, count: count + 1 };
                let mut counted = Counted::since(mark);
                if before.is_some() {
                    counted.add(name(column), part);
                }
                if !cache.is_overtaken(store, &[key], mark) {
                    cache.keep(store, &[key], &counted);
                }
                if !model.dead.get(&key).is_some_and(|dead| *dead) {
                    let stored = model.parts.entry((key, column)).or_insert(part);
                    *stored = if stored.clock < part.clock { part } else { *stored };
                }
            }
            Step::Delete(key, dead) => {
                cache.change(&[key]);
                model.parts.retain(|(of, _), _| *of != key);
                model.dead.insert(key, dead);
            }
            Step::Change(key) => {
                cache.change(&[key]);
                let parts = model.parts.iter_mut().filter(|((of, _), _)| *of == key);
                parts.for_each(|(_, part)| part.clock += 10);
            }
            Step::Reset => {
                store.reset_rows();
                model.parts.clear();
            }
            Step::Clear => cache.clear(),
            Step::TurnOff => cache.set_limit(0),
            Step::TurnOn => cache.set_limit(LIMIT),
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_a_read_would_find(
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let (cache, store, mut model) = (CounterCache::new(LIMIT), store(), Model::default());
            for step in steps {
                // while it is off nobody tells it of changes
                let off = CounterCache::new(0);
                let told = matches!(step, Step::TurnOn) || cache.is_on();
                let changes = matches!(step, Step::Delete(..) | Step::Change(_));
                match told || !changes {
                    true => run(&cache, &store, &mut model, step),
                    false => run(&off, &store, &mut model, step),
                }
                for (key, column) in (0..KEYS).flat_map(|key| (0..COLUMNS).map(move |c| (key, c))) {
                    let found = cache.get(cache.mark(&store), &[key], name(column));
                    prop_assert!(
                        found.is_none() || found == model.parts.get(&(key, column)).copied(),
                        "{:?} after {:?}", found, step,
                    );
                }
            }
        }
    }

    #[test]
    fn what_was_counted_twice_is_kept() {
        let (cache, store, mut model) = (CounterCache::new(LIMIT), store(), Model::default());
        for _ in 0..2 {
            run(&cache, &store, &mut model, Step::Begin(1, 2));
            run(&cache, &store, &mut model, Step::End(1));
        }
        let part = cache.get(cache.mark(&store), &[1], name(2));
        assert_eq!(part, Some(Part { clock: 2, count: 2 }));
        assert_eq!(cache.get(cache.mark(&store), &[1], name(1)), None);
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.hits, stats.misses), (1, 1, 3));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let (cache, store) = (CounterCache::new(LIMIT), store());
        let clustering = rows::Clustering::new([Some(&b"c"[..]), None]);
        let counter = CounterName { row: Some(clustering.as_ref()), column: 7 };
        let mut counted = Counted::since(cache.mark(&store));
        counted.add(counter, Part { clock: 1, count: 1 });
        cache.keep(&store, b"key", &counted);
        let (bytes, _) = cache.page(0, 1, false);
        let kept = KeptName::read(&bytes[0]).unwrap();
        assert_eq!((kept.table, kept.key), (store.rows_reset(), &b"key"[..]));
        assert_eq!((kept.counter.column, kept.counter.row.unwrap()), (7, clustering.as_ref()));
        for end in 0..bytes[0].len() {
            let _ = KeptName::read(&bytes[0][..end]);
        }
    }
}
