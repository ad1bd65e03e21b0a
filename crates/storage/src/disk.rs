//! Disks that fail (`disk_failure_policy`, `DefaultFSErrorHandler`). Each failure is told of; who
//! is told acts on it. Where the node is to make the best of it, SSTables that cannot be used are
//! put aside: nothing is deleted, and until they are back nothing is purged that they may need.
//!
//! The first shard inspects each failure of a read, a flush or a compaction. It tells
//! `crates/node/src/failure.rs`, which applies the policies.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use env::Class;
use schema::{Table, TableId};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::table_directory;
use crate::node::{Node, NodeTable};

/// What the engine does of itself when a disk fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDiskFailure {
    /// Nothing: a start that cannot open an SSTable fails (`die`, `stop_paranoid`, `stop`).
    #[default]
    Refuse,
    /// A start goes without SSTables that it cannot open (`ignore`).
    GoWithout,
    /// The same, and directories that fail are used no more, where there are others
    /// (`best_effort`).
    BestEffort,
}

/// Settings of the disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskSettings {
    /// `disk_failure_policy`.
    pub on_failure: OnDiskFailure,
    /// `min_free_space_per_drive`, in bytes: compactions leave so much.
    pub min_free_bytes: u64,
    /// `max_space_usable_for_compactions_in_percentage`: their share of the rest.
    pub compaction_share: f64,
}

impl Default for DiskSettings {
    fn default() -> Self {
        Self { on_failure: OnDiskFailure::Refuse, min_free_bytes: 0, compaction_share: 1.0 }
    }
}

/// How a disk failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// What it holds is not what was written (`CorruptSSTableException`).
    Corrupt,
    /// It does not read (`FSReadError`).
    Read,
    /// It does not write (`FSWriteError`).
    Write,
    /// It has no space.
    Full,
    /// It has too little for a compaction, which does not begin.
    NoRoom,
}

/// What there is to say of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEvent {
    /// What kind it is of.
    pub failure: DiskFailure,
    /// The failure, and what was done about it.
    pub what: String,
    /// Nothing is left that the table's data could go to or come from, or it must not go without.
    pub is_last: bool,
}

/// Who is told of failures.
pub type TellDisk = Rc<dyn Fn(&DiskEvent)>;

/// Something of a table that is not used, for it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// An SSTable's data, or a directory.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// What it is said of attempts to read.
const READS: [&str; 4] = ["cannot read", "cannot open", "cannot list", "cannot stat"];

impl StorageError {
    /// The failure of a disk that this is of, and the file; none if it is of something else. The
    /// commit log's are not of them: `commit_failure_policy` is theirs.
    pub fn disk_failure(&self) -> Option<(DiskFailure, &Path)> {
        match self {
            Self::Corrupt { path, .. } => Some((DiskFailure::Corrupt, path)),
            Self::Io { what, path, source } => {
                let failure = match source.kind() {
                    std::io::ErrorKind::UnexpectedEof => DiskFailure::Corrupt,
                    std::io::ErrorKind::StorageFull => DiskFailure::Full,
                    _ if READS.contains(what) => DiskFailure::Read,
                    _ => DiskFailure::Write,
                };
                Some((failure, path))
            }
            _ => None,
        }
    }
}

/// May a node run without a part of this table? Not of what says what it has, and a counter that is
/// short of a part would be counted on from there.
fn may_go_without(table: &Table) -> bool {
    !table.is_counter() && !matches!(table.keyspace.as_str(), "system" | "system_schema")
}

impl Engine {
    /// Tells of disks that fail; on the first shard.
    pub fn watch_disks(&self, tell: TellDisk) {
        self.disk_watcher.replace(Some(tell));
    }

    /// Looks at what a request met: has a disk failed?
    pub fn inspect(&self, error: &StorageError) {
        if error.disk_failure().is_none() {
            return;
        }
        let error = error.clone();
        self.shards().send(0, move |engine| {
            if let Some(node) = engine.node() {
                node.inspect_failure(&error);
            }
        });
    }

    pub(crate) fn tell_disk(&self, event: &DiskEvent) {
        let told = self.disk_watcher.borrow().clone();
        if let Some(tell) = told {
            tell(event);
        }
    }
}

impl Node {
    /// The same, here; told of once a failure.
    pub(crate) fn inspect_failure(&self, error: &StorageError) {
        let (Some((failure, path)), Ok(engine)) = (error.disk_failure(), self.engine()) else {
            return;
        };
        self.stats.disk_failures.set(self.stats.disk_failures.get() + 1);
        engine.env().mark("disk.failed");
        let mut event = DiskEvent { failure, what: error.to_string(), is_last: false };
        let found = self.owner_of(&engine, path);
        match (failure, found) {
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

    /// The table that a file is of, with its directory.
    fn owner_of(&self, engine: &Engine, path: &Path) -> Option<(Arc<Table>, PathBuf)> {
        let tables = engine.stores().into_iter().map(|(_, store)| store.table());
        tables.into_iter().find_map(|table| {
            let places = engine.options.data_directories.iter();
            let mut places = places.map(|data| table_directory(data, &table));
            places.find(|place| path.starts_with(place)).map(|place| (table, place))
        })
    }

    /// No compaction begins of itself on an SSTable with this file.
    fn suspect(&self, table: TableId, path: &Path) {
        let live = Arc::clone(&self.table(table).live.borrow());
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let Ok((descriptor, _)) = sstable::descriptor::Descriptor::parse(&name) else { return };
        let is_it = |sstable: &&Arc<crate::sstables::SSTable>| {
            sstable.table.descriptor == descriptor && path.starts_with(&sstable.directory)
        };
        if let Some(sstable) = live.tables().iter().find(is_it) {
            sstable.is_suspect.store(true, Ordering::Relaxed);
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
        let node_table = self.table(table.id);
        let is_other =
            |place: &PathBuf| place != directory && !node_table.disallowed.borrow().contains(place);
        let mut places =
            engine.options.data_directories.iter().map(|data| table_directory(data, table));
        if !(may_go_without(table) && places.any(|place| is_other(&place))) {
            return false;
        }
        node_table.disallowed.borrow_mut().insert(directory.to_path_buf());
        if !can_read && let Some(node) = self.me() {
            let (id, directory) = (table.id, directory.to_path_buf());
            engine.env().clone().spawn(Class::Background, async move {
                // a node that stops shows nothing any more
                let _ = node.put_aside(id, &directory).await;
            });
        }
        true
    }

    /// Lets all shards read without a directory's SSTables.
    async fn put_aside(&self, id: TableId, directory: &Path) -> Result<(), StorageError> {
        let engine = self.engine()?;
        let node_table = self.table(id);
        let _changing = node_table.changing.acquire(1).await;
        let before = Arc::clone(&node_table.live.borrow());
        let gone = before.tables().iter().filter(|sstable| sstable.directory == directory);
        let gone: Vec<u64> = gone.map(|sstable| sstable.number).collect();
        node_table.put_aside(directory, "cannot read the directory".to_owned());
        let live = before.with(&gone, []);
        *node_table.live.borrow_mut() = Arc::clone(&live);
        for shard in 0..engine.shards().count() {
            let live = Arc::clone(&live);
            let swap = move |engine: &Rc<Engine>| {
                engine.forget_rows(id);
                engine.swap_live(id, live, i64::MIN)
            };
            engine.shards().call(shard, swap).await?;
        }
        engine.env().mark("disk.put_aside");
        Ok(())
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
        let Some((failure, _)) = error.disk_failure() else { return Err(error) };
        if engine.options.disk.on_failure == OnDiskFailure::Refuse || !may_go_without(table) {
            return Err(error);
        }
        // Cassandra's words
        let what = match failure {
            DiskFailure::Corrupt => "Corrupt sstable {}; skipping table",
            _ => "Cannot read sstable {}; file system error, skipping table",
        };
        let what = format!("{}: {error}", what.replace("{}", &path.display().to_string()));
        self.table(table.id).put_aside(path, error.to_string());
        engine.env().mark("disk.put_aside");
        engine.tell_disk(&DiskEvent { failure, what, is_last: false });
        Ok(())
    }

    /// What of a table is put aside.
    pub fn aside(&self, id: TableId) -> Vec<Aside> {
        self.table(id).aside.borrow().clone()
    }

    /// How much of all tables is put aside.
    pub fn aside_count(&self) -> usize {
        self.node_tables().iter().map(|table| table.aside.borrow().len()).sum()
    }

    /// Directories of tables that are used no more.
    pub fn disallowed_count(&self) -> usize {
        self.node_tables().iter().map(|table| table.disallowed.borrow().len()).sum()
    }
}

impl NodeTable {
    pub(crate) fn put_aside(&self, path: &Path, why: String) {
        self.aside.borrow_mut().push(Aside { path: path.to_path_buf(), why });
    }

    /// Does all of the table take part in what is read and merged?
    pub(crate) fn is_whole(&self) -> bool {
        self.aside.borrow().is_empty()
    }
}
