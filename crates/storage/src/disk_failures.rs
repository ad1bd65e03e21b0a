//! Disks that fail (`disk_failure_policy`, `DefaultFSErrorHandler`). Each failure is told of; who
//! is told acts on it. Where the node is to make the best of it, SSTables that cannot be used are
//! put aside: nothing is deleted, and until they are back nothing is purged that they may need.
//!
//! The first shard inspects each failure of a read, a flush or a compaction. It tells
//! `bin/helenus/src/failure.rs`, which applies the policies.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use env::Class;
use schema::{Table, TableId};

use crate::disk_event::{DiskEvent, DiskFailure};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::node_stats::NodeStats;
use crate::node_tables::{Aside, NodeTables, table_directory, table_of};
use crate::options::OnDiskFailure;

/// The failures that background work and reads met.
pub struct DiskFailures {
    tables: Rc<NodeTables>,
    stats: Rc<NodeStats>,
    /// Why background work failed last, if it did.
    last: RefCell<Option<StorageError>>,
}

/// May a node run without a part of this table? Not of what says what it has, and a counter that is
/// short of a part would be counted on from there.
fn may_go_without(table: &Table) -> bool {
    !table.is_counter() && !matches!(table.keyspace.as_str(), "system" | "system_schema")
}

impl DiskFailures {
    pub(crate) fn new(tables: &Rc<NodeTables>, stats: &Rc<NodeStats>) -> Rc<Self> {
        Rc::new(Self {
            tables: Rc::clone(tables),
            stats: Rc::clone(stats),
            last: RefCell::default(),
        })
    }

    /// Notes a failure of background work.
    pub(crate) fn failed(&self, error: StorageError) {
        self.stats.failures.set(self.stats.failures.get() + 1);
        *self.last.borrow_mut() = Some(error);
    }

    /// Why background work failed last, if it did.
    pub fn last(&self) -> Option<StorageError> {
        self.last.borrow().clone()
    }

    /// Looks at what something met: has a disk failed? Told of once a failure.
    pub(crate) fn inspect(&self, error: &StorageError) {
        let Ok(engine) = self.tables.engine() else { return };
        if matches!(error, StorageError::NoDirectory { .. }) {
            // each of the failures before was counted
            let what = error.to_string();
            engine.tell_disk(&DiskEvent { failure: DiskFailure::Write, what, is_last: true });
        }
        let Some((failure, path)) = error.disk_failure() else { return };
        self.stats.disk_failures.set(self.stats.disk_failures.get() + 1);
        engine.env().mark("disk.failed");
        let mut event = DiskEvent { failure, what: error.to_string(), is_last: false };
        match (failure, table_of(&engine, path)) {
            (DiskFailure::Corrupt, Some((table, _))) => self.suspect(table.id, path),
            (DiskFailure::Corrupt, None) | (_, None) => {}
            (_, Some((table, directory)))
                if engine.options.disk.on_failure == OnDiskFailure::BestEffort =>
            {
                let can_read = failure != DiskFailure::Read;
                event.is_last = !self.disallow(&engine, &table, &directory, can_read);
                if !event.is_last {
                    let of = if can_read { "writes" } else { "reads and writes" };
                    event.what =
                        format!("{}. Disallowing {} for {of}", event.what, directory.display());
                }
            }
            _ => {}
        }
        engine.tell_disk(&event);
    }

    /// No compaction begins of itself on an SSTable with this file.
    fn suspect(&self, table: TableId, path: &Path) {
        let live = self.tables.table(table).live();
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let Ok((descriptor, _)) = sstable::descriptor::Descriptor::parse(&name) else { return };
        let is_it = |sstable: &&Arc<crate::sstables::SSTable>| {
            sstable.table.descriptor == descriptor && path.starts_with(&sstable.directory)
        };
        if let Some(sstable) = live.tables().iter().find(is_it) {
            sstable.suspect();
        }
    }

    /// Uses a table's directory no more, if there is another. What it has is put aside unless it
    /// can still be read.
    fn disallow(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        directory: &Path,
        can_read: bool,
    ) -> bool {
        let node_table = self.tables.table(table.id);
        let disallowed = node_table.disallowed();
        let is_other = |place: &PathBuf| place != directory && !disallowed.contains(place);
        let mut places =
            engine.options.data_directories.iter().map(|data| table_directory(data, table));
        if !(may_go_without(table) && places.any(|place| is_other(&place))) {
            return false;
        }
        node_table.disallow(directory);
        if !can_read {
            let (tables, id, directory) =
                (Rc::clone(&self.tables), table.id, directory.to_path_buf());
            engine.env().clone().spawn(Class::Background, async move {
                // a node that stops shows nothing any more
                let _ = put_aside(&tables, id, &directory).await;
            });
        }
        true
    }

    /// Goes without something of a table that a start cannot open, where it may.
    ///
    /// # Errors
    /// The same, where it may not.
    pub(crate) fn go_without(
        &self,
        engine: &Engine,
        table: &Table,
        path: &Path,
        error: StorageError,
    ) -> Result<(), StorageError> {
        let failure = match (&error, error.disk_failure()) {
            (StorageError::Incomplete { .. }, _) => DiskFailure::Incomplete,
            (_, Some((failure, _))) => failure,
            (_, None) => return Err(error),
        };
        if engine.options.disk.on_failure == OnDiskFailure::Refuse || !may_go_without(table) {
            return Err(error);
        }
        // Cassandra's words, but for a file that is missing
        let what = match failure {
            DiskFailure::Corrupt => "Corrupt sstable {}; skipping table",
            DiskFailure::Incomplete => "Incomplete sstable {}; skipping table",
            _ => "Cannot read sstable {}; file system error, skipping table",
        };
        let what = format!("{}: {error}", what.replace("{}", &path.display().to_string()));
        self.tables.table(table.id).put_aside(path, error.to_string());
        engine.env().mark("disk.put_aside");
        engine.tell_disk(&DiskEvent { failure, what, is_last: false });
        Ok(())
    }

    /// What of a table is put aside.
    pub fn aside(&self, id: TableId) -> Vec<Aside> {
        self.tables.table(id).aside()
    }

    /// How much of all tables is put aside.
    pub fn aside_count(&self) -> usize {
        self.tables.all().iter().map(|table| table.aside().len()).sum()
    }

    /// Directories of tables that are used no more.
    pub fn disallowed_count(&self) -> usize {
        self.tables.all().iter().map(|table| table.disallowed().len()).sum()
    }
}

/// Lets all shards read without a directory's SSTables.
async fn put_aside(tables: &NodeTables, id: TableId, directory: &Path) -> Result<(), StorageError> {
    let node_table = tables.table(id);
    let change = node_table.change().await;
    let before = node_table.live();
    let gone = before.tables().iter().filter(|sstable| sstable.directory == directory);
    let gone: Vec<u64> = gone.map(|sstable| sstable.number).collect();
    node_table.put_aside(directory, "cannot read the directory".to_owned());
    let live = before.with(&gone, []);
    change.set(&live);
    tables.publish(id, &live).await?;
    tables.env().mark("disk.put_aside");
    Ok(())
}
