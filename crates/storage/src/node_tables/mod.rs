//! The node's tables: which SSTables are live, where new ones go, and how shards learn of it. They
//! are the first shard's.
//!
//! All that comes into a table's set of SSTables, or leaves it, comes by here.

mod directories;
mod new_directories;
mod outputs;
mod table;

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::{Class, Env};
use schema::{Table, TableId};
use sstable::descriptor::{Descriptor, Id};
use types::Uuid;
use types::hash::HashMap;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::sstables::{LiveSet, NewSSTables, Numbers, SSTable, Transaction, remove_descriptor};

use self::new_directories::NewDirectories;

pub use self::directories::table_directory;
pub(crate) use self::directories::{sync_parents, table_of};
pub(crate) use self::outputs::{Division, FLUSH, Outputs, writer_options};
pub use self::table::Aside;
pub(crate) use self::table::{Change, NodeTable};

/// How often a removed file's last readers are looked for.
const REMOVAL_POLL: Duration = Duration::from_millis(20);

/// The tables of the node.
pub(crate) struct NodeTables {
    env: Env,
    engine: Weak<Engine>,
    /// Gives SSTables their numbers.
    numbers: Numbers,
    new_directories: NewDirectories,
    tables: RefCell<HashMap<TableId, Rc<NodeTable>>>,
}

impl NodeTables {
    pub fn new(engine: &Rc<Engine>) -> Rc<Self> {
        Rc::new(Self {
            env: engine.env().clone(),
            engine: Rc::downgrade(engine),
            numbers: Numbers::default(),
            new_directories: NewDirectories::new(),
            tables: RefCell::default(),
        })
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The first shard's engine.
    ///
    /// # Errors
    /// If the node is stopping.
    pub fn engine(&self) -> Result<Rc<Engine>, StorageError> {
        self.engine.upgrade().ok_or(StorageError::Stopping(crate::shards::Stopping))
    }

    pub fn table(&self, id: TableId) -> Rc<NodeTable> {
        let mut tables = self.tables.borrow_mut();
        Rc::clone(tables.entry(id).or_insert_with(|| Rc::new(NodeTable::new())))
    }

    /// All that were ever asked for.
    pub fn all(&self) -> Vec<Rc<NodeTable>> {
        self.tables.borrow().values().cloned().collect()
    }

    /// A number for an SSTable that is opened.
    pub fn next_number(&self) -> u64 {
        self.numbers.next()
    }

    /// A name for the next file of a table.
    pub fn next_descriptor(&self, engine: &Engine, table: &NodeTable) -> Descriptor {
        let id = match engine.options.uuid_identifiers {
            true => {
                let id = Uuid::from_unix_micros(self.env.unique_micros(), self.env.random_u64());
                Id::Uuid(u128::from_be_bytes(id.to_bytes()))
            }
            false => Id::Sequence(table.next_generation()),
        };
        let version = engine.options.sstable_version;
        let descriptor = Descriptor { version, id, format: version.index_format() };
        let is_taken = table.live().tables().iter().any(|live| live.table.descriptor.id == id);
        assert!(!is_taken, "a new SSTable has a name that no live one has: {descriptor}");
        descriptor
    }

    /// Makes new SSTables part of a table, at once and durably, or leaves nothing of them: the one
    /// way in. Afterwards nothing that caches kept of the table's rows counts any more.
    ///
    /// # Errors
    /// If that cannot be made durable, or the node is stopping.
    pub async fn adopt(
        &self,
        table: &Table,
        change: &Change<'_>,
        new: NewSSTables,
        opened: Vec<Arc<SSTable>>,
    ) -> Result<(), StorageError> {
        self.settle(new, &opened).await?;
        let live = change.bring(opened);
        self.publish(table.id, &live).await
    }

    /// Commits new SSTables, or removes what there is of them. Those who wrote memtables publish
    /// them together with what frees these.
    ///
    /// # Errors
    /// If that cannot be made durable: then they are gone, or the next start decides.
    pub async fn settle(
        &self,
        mut new: NewSSTables,
        opened: &[Arc<SSTable>],
    ) -> Result<(), StorageError> {
        let are_those =
            opened.iter().map(|sstable| sstable.place()).eq(new.places().iter().cloned());
        assert!(are_those, "the SSTables that are shown are those that are committed");
        if let Err(error) = new.commit(&[]).await {
            // What cannot be removed now is removed at the next start: the log says so.
            let _ = new.abandon().await;
            return Err(error);
        }
        if let Some(transaction) = new.into_transaction() {
            // The SSTables are there. A log that stays is one that the next start ends.
            let _ = transaction.finish().await;
        }
        Ok(())
    }

    /// Gives all shards a table's set of SSTables that has other content than before: nothing that
    /// caches kept of its rows counts any more.
    ///
    /// # Errors
    /// If the node is stopping.
    pub async fn publish(&self, id: TableId, live: &Arc<LiveSet>) -> Result<(), StorageError> {
        let engine = self.engine()?;
        for shard in 0..engine.shards().count() {
            let live = Arc::clone(live);
            let swap = move |engine: &Rc<Engine>| {
                engine.memtables().forget_rows(id);
                engine.memtables().swap_live(id, live, i64::MIN)
            };
            engine.shards().call(shard, swap).await?;
        }
        Ok(())
    }

    /// Gives all shards a set with the same content as the one before. Where a shard's memtable
    /// holds a write older than a purged tombstone, which deletes it, all take the old set again,
    /// and this is false.
    ///
    /// # Errors
    /// If the node is stopping.
    pub async fn exchange(
        &self,
        id: TableId,
        before: &Arc<LiveSet>,
        after: &Arc<LiveSet>,
        purged: i64,
    ) -> Result<bool, StorageError> {
        let engine = self.engine()?;
        let mut refused = false;
        for shard in 0..engine.shards().count() {
            let after = Arc::clone(after);
            let swap = move |engine: &Rc<Engine>| engine.memtables().swap_live(id, after, purged);
            refused |= !engine.shards().call(shard, swap).await?;
        }
        if refused {
            for shard in 0..engine.shards().count() {
                let before = Arc::clone(before);
                let swap =
                    move |engine: &Rc<Engine>| engine.memtables().swap_live(id, before, i64::MIN);
                engine.shards().call(shard, swap).await?;
            }
        }
        Ok(!refused)
    }

    /// Removes the files of SSTables that are not live any more, once nobody reads them, and then
    /// the log of their removal: the one way out.
    pub fn remove_later(
        &self,
        engine: &Rc<Engine>,
        id: TableId,
        tables: Vec<Arc<SSTable>>,
        transaction: Option<Transaction>,
    ) {
        assert!(
            tables.is_empty() || transaction.as_ref().is_some_and(Transaction::is_committed),
            "SSTables are removed after the transaction that says so is committed"
        );
        let live = self.table(id).live();
        let is_live = |gone: &Arc<SSTable>| live.tables().iter().any(|it| it.number == gone.number);
        assert!(!tables.iter().any(is_live), "the files of a live SSTable stay");
        drop(live);
        let engine = Rc::clone(engine);
        self.env.spawn(Class::Background, async move {
            for sstable in tables {
                forget_everywhere(&engine, &sstable).await;
                let descriptor = &sstable.table.descriptor;
                // What stays is removed at the next start: the log says so.
                if remove_descriptor(engine.env(), &sstable.directory, descriptor).await.is_err() {
                    return;
                }
            }
            if let Some(transaction) = transaction {
                let _ = transaction.finish().await;
            }
        });
    }
}

/// Waits for the last reader of an SSTable that is not live, and lets every shard close it.
pub(crate) async fn forget_everywhere(engine: &Rc<Engine>, sstable: &Arc<SSTable>) {
    while Arc::strong_count(sstable) > 1 {
        engine.env().sleep(REMOVAL_POLL).await;
    }
    // before, a reader could open it again
    for shard in 0..engine.shards().count() {
        let number = sstable.number;
        let forget = move |engine: &Rc<Engine>| engine.files.forget(number);
        let _ = engine.shards().call(shard, forget).await;
    }
}
