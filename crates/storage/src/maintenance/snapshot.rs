//! Snapshots: hard links to the files of tables, at the places where Cassandra keeps them
//! (`Directories`), with the manifest and the statements that its tools look
//! for (`SnapshotManifest`).
//!
//! The links are made while nothing that is live can go. `crates/node/src/snapshots.rs` removes
//! snapshots whose time to live is over.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use schema::{Table, TableId};
use sstable::descriptor::Component;
use types::time::{TimestampStyle, format_timestamp};

use crate::engine::Engine;
use crate::error::StorageError;
pub use crate::flush::BACKUPS;
use crate::flush::Flushes;
use crate::node_tables::NodeTables;
use crate::sstables::{SSTable, link_sstable};

/// The directory of a table that holds one directory for each of its snapshots.
pub const SNAPSHOTS: &str = "snapshots";
/// What a snapshot says of itself.
pub const MANIFEST: &str = "manifest.json";
/// The statements that make a snapshot's table again.
pub const SCHEMA: &str = "schema.cql";

/// A snapshot to take.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its name, of no more than what a file's name may hold.
    pub name: String,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// When it may go, in milliseconds since the epoch.
    pub expires_at: Option<i64>,
    /// The statements that make the table; none for tables that every node has.
    pub schema: Option<String>,
}

impl Snapshot {
    /// What the manifest says, as Cassandra's JSON writer lays it out.
    fn manifest(&self, tables: &[Arc<SSTable>]) -> String {
        let file =
            |table: &Arc<SSTable>| format!("\"{}\"", table.table.descriptor.file(&Component::Data));
        let files = tables.iter().map(file).collect::<Vec<_>>().join(", ");
        let files = if files.is_empty() { "[ ]".to_owned() } else { format!("[ {files} ]") };
        let moment =
            |millis: i64| format!("\"{}\"", format_timestamp(millis, TimestampStyle::Literal));
        let (created, expires) =
            (moment(self.created_at), self.expires_at.map_or("null".to_owned(), moment));
        format!(
            "{{\n  \"files\" : {files},\n  \"created_at\" : {created},\n  \"expires_at\" : {expires},\n  \
             \"ephemeral\" : false\n}}"
        )
    }
}

/// Takes snapshots.
pub struct Snapshots {
    tables: Rc<NodeTables>,
    flushes: Rc<Flushes>,
}

impl Snapshots {
    pub(crate) fn new(tables: &Rc<NodeTables>, flushes: &Rc<Flushes>) -> Rc<Self> {
        Rc::new(Self { tables: Rc::clone(tables), flushes: Rc::clone(flushes) })
    }

    /// Takes a snapshot of a table; what is in memtables is written before, unless `flush` is
    /// false.
    ///
    /// # Errors
    /// If the memtables cannot be written or the links not be made: then the snapshot is not there.
    pub async fn take(
        &self,
        id: TableId,
        snapshot: &Snapshot,
        flush: bool,
    ) -> Result<(), StorageError> {
        if flush {
            self.flushes.flush(id).await?;
        }
        let engine = self.tables.engine()?;
        let table = engine.store(id)?.table();
        let node_table = self.tables.table(id);
        // Nothing that is live now goes while its files are linked.
        let _change = node_table.change().await;
        let live = node_table.live();
        self.link(&engine, &table, live.tables(), snapshot).await
    }

    /// Links tables into a snapshot, durably. Who calls this sees to it that none of them goes
    /// meanwhile.
    pub(crate) async fn link(
        &self,
        engine: &Rc<Engine>,
        table: &Table,
        tables: &[Arc<SSTable>],
        snapshot: &Snapshot,
    ) -> Result<(), StorageError> {
        let env = engine.env();
        let home = self.tables.directory_of(engine, table).await?;
        let mut directories: BTreeSet<&Path> =
            tables.iter().map(|table| table.directory.as_path()).collect();
        directories.insert(&home);
        let mut places = Vec::new();
        for directory in &directories {
            let place = directory.join(SNAPSHOTS).join(&snapshot.name);
            let there = env.exists(&place).await;
            if there.map_err(|e| StorageError::io("cannot stat", &place, e))? {
                let what = format!("snapshot {} already exists", snapshot.name);
                return Err(StorageError::Refused { path: place, what });
            }
            places.push(place);
        }
        let taken = async {
            for directory in directories {
                make_place(env, directory, &snapshot.name).await?;
            }
            link_and_describe(env, &home, tables, snapshot).await
        };
        let taken = taken.await;
        if taken.is_err() {
            for place in places {
                let _ = env.remove_dir_all(&place).await;
            }
        }
        taken
    }
}

/// Makes the directory of a snapshot.
async fn make_place(env: &Env, directory: &Path, name: &str) -> Result<(), StorageError> {
    let all = directory.join(SNAPSHOTS);
    let place = all.join(name);
    let failed = |e| StorageError::io("cannot create a snapshot in", &place, e);
    if !env.exists(&all).await.map_err(failed)? {
        env.create_dir_all(&all).await.map_err(failed)?;
        env.sync_dir(directory).await.map_err(failed)?;
    }
    env.create_dir_all(&place).await.map_err(failed)?;
    env.sync_dir(&all).await.map_err(failed)
}

async fn link_and_describe(
    env: &Env,
    home: &Path,
    tables: &[Arc<SSTable>],
    snapshot: &Snapshot,
) -> Result<(), StorageError> {
    let place = |directory: &Path| directory.join(SNAPSHOTS).join(&snapshot.name);
    let mut linked = BTreeSet::new();
    for sstable in tables {
        let to = place(&sstable.directory);
        link_sstable(env, &sstable.directory, &sstable.table.descriptor, &to).await?;
        linked.insert(to);
    }
    let synced = !env.planted("snapshot_described_before_linked");
    for directory in linked.into_iter().filter(|_| synced) {
        let synced = env.sync_dir(&directory).await;
        synced.map_err(|e| StorageError::io("cannot create a snapshot in", &directory, e))?;
    }
    let own = place(home);
    let manifest = (MANIFEST, Some(snapshot.manifest(tables)));
    for (name, text) in [manifest, (SCHEMA, snapshot.schema.clone())] {
        let (Some(text), path) = (text, own.join(name)) else { continue };
        let written = env.write_file_atomically(&path, text.into_bytes()).await;
        written.map_err(|e| StorageError::io("cannot write", &path, e))?;
    }
    Ok(())
}
