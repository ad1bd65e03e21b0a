//! The node's side of a table: which of its SSTables are live, and what of it is not used.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::sync::{Permit, Semaphore};
use sstable::descriptor::Id;

use crate::sstables::{LiveSet, SSTable};

/// Something of a table that is not used, for it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// An SSTable's data, or a directory.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// The node's side of a table.
pub(crate) struct NodeTable {
    /// The files, as last published to the shards.
    live: RefCell<Arc<LiveSet>>,
    /// Whoever changes `live` holds it: one flush or swap at a time.
    changing: Semaphore,
    /// The number of the next file.
    next_generation: Cell<u32>,
    /// How many times new content came into `live`.
    epoch: Cell<u64>,
    /// What of it is not used, for it cannot be read: nothing that it may need is purged meanwhile.
    aside: RefCell<Vec<Aside>>,
    /// Its directories that nothing is written to any more.
    disallowed: RefCell<BTreeSet<PathBuf>>,
}

/// The right to change a table's set of live SSTables. While somebody has it, none of them goes.
pub(crate) struct Change<'a> {
    table: &'a NodeTable,
    _alone: Permit,
}

impl NodeTable {
    pub fn new() -> Self {
        Self {
            live: RefCell::default(),
            changing: Semaphore::new(1),
            next_generation: Cell::new(1),
            epoch: Cell::new(0),
            aside: RefCell::default(),
            disallowed: RefCell::default(),
        }
    }

    /// The live SSTables. Who holds them keeps their files from going.
    pub fn live(&self) -> Arc<LiveSet> {
        Arc::clone(&self.live.borrow())
    }

    /// How many times new content came into them.
    pub fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// Waits until nobody else changes them.
    pub async fn change(&self) -> Change<'_> {
        Change { table: self, _alone: self.changing.acquire(1).await }
    }

    /// The number of the next file.
    pub fn next_generation(&self) -> u32 {
        let generation = self.next_generation.get();
        let next = generation.checked_add(1);
        self.next_generation.set(next.expect("a table has fewer SSTables than there are numbers"));
        generation
    }

    /// A file has this name: its number is not given again.
    pub fn name_is_taken(&self, id: Id) {
        if let Id::Sequence(taken) = id {
            let next = self.next_generation.get().max(taken.saturating_add(1));
            self.next_generation.set(next);
        }
    }

    /// What of it is put aside.
    pub fn aside(&self) -> Vec<Aside> {
        self.aside.borrow().clone()
    }

    pub fn put_aside(&self, path: &Path, why: String) {
        self.aside.borrow_mut().push(Aside { path: path.to_path_buf(), why });
    }

    /// Does all of the table take part in what is read and merged?
    pub fn is_whole(&self) -> bool {
        self.aside.borrow().is_empty()
    }

    /// Nothing is written to a directory any more.
    pub fn disallow(&self, directory: &Path) {
        self.disallowed.borrow_mut().insert(directory.to_path_buf());
    }

    /// Its directories that nothing is written to any more.
    pub fn disallowed(&self) -> BTreeSet<PathBuf> {
        self.disallowed.borrow().clone()
    }
}

impl Change<'_> {
    /// Of which table.
    pub fn table(&self) -> &NodeTable {
        self.table
    }

    /// Shows these SSTables from now on. This is where an SSTable of a table appears or goes: the
    /// shards are told next (`NodeTables`).
    pub fn set(&self, live: &Arc<LiveSet>) {
        *self.table.live.borrow_mut() = Arc::clone(live);
    }

    /// Takes the SSTables of a start, which nothing has seen before.
    pub fn open(&self, found: Vec<Arc<SSTable>>) -> Arc<LiveSet> {
        assert!(self.table.live.borrow().tables().is_empty(), "a table is opened once");
        let live = LiveSet::new(found);
        self.set(&live);
        live
    }

    /// Adds SSTables with new content: tasks that began before have not seen it.
    pub fn bring(&self, new: Vec<Arc<SSTable>>) -> Arc<LiveSet> {
        let epoch = self.table.epoch.get() + 1;
        let are_newest = new.iter().all(|sstable| sstable.epoch == epoch);
        assert!(are_newest, "what is new in a table is of the change that brings it, {epoch}");
        self.table.epoch.set(epoch);
        let live = self.table.live.borrow().with(&[], new);
        self.set(&live);
        live
    }

    /// Takes all SSTables away.
    pub fn clear(&self) -> Arc<LiveSet> {
        let empty = Arc::<LiveSet>::default();
        self.set(&empty);
        empty
    }
}
