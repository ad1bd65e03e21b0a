//! Snapshots and incremental backups: hard links to the files of tables, at the places where
//! Cassandra keeps them (`Directories`), with the manifest and the statements that its tools look
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
use sstable::descriptor::{Component, Descriptor};
use types::time::{TimestampStyle, format_timestamp};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::node::Node;
use crate::sstables::SSTable;

/// The directory of a table that holds one directory for each of its snapshots.
pub const SNAPSHOTS: &str = "snapshots";
/// The directory of a table that collects links to all that was flushed.
pub const BACKUPS: &str = "backups";
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

impl Node {
    /// Takes a snapshot of a table; what is in memtables is written before, unless `flush` is
    /// false.
    ///
    /// # Errors
    /// If the memtables cannot be written or the links not be made: then the snapshot is not there.
    pub async fn snapshot(
        &self,
        id: TableId,
        snapshot: &Snapshot,
        flush: bool,
    ) -> Result<(), StorageError> {
        if flush {
            self.flush(id).await?;
        }
        let engine = self.engine()?;
        let table = engine.store(id)?.table();
        let node_table = self.table(id);
        // Nothing that is live now goes while its files are linked.
        let _changing = node_table.changing.acquire(1).await;
        let live = Arc::clone(&node_table.live.borrow());
        self.take(&engine, &table, live.tables(), snapshot).await
    }

    /// Links tables into a snapshot, durably. Who calls this sees to it that none of them goes
    /// meanwhile.
    pub(crate) async fn take(
        &self,
        engine: &Rc<Engine>,
        table: &Table,
        tables: &[Arc<SSTable>],
        snapshot: &Snapshot,
    ) -> Result<(), StorageError> {
        let env = engine.env();
        let home = self.directory_of(engine, table).await?;
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

    /// Links a table that was flushed into the directory of backups, where that is wanted.
    pub(crate) async fn back_up(
        &self,
        engine: &Rc<Engine>,
        table: &Table,
        sstable: &SSTable,
    ) -> Result<(), StorageError> {
        if !(self.backs_up() && table.params.incremental_backups) {
            return Ok(());
        }
        let env = engine.env();
        let to = sstable.directory.join(BACKUPS);
        let failed = |e| StorageError::io("cannot create a backup in", &to, e);
        if !env.exists(&to).await.map_err(failed)? {
            env.create_dir_all(&to).await.map_err(failed)?;
            env.sync_dir(&sstable.directory).await.map_err(failed)?;
        }
        link_table(env, &sstable.directory, &sstable.table.descriptor, &to).await?;
        env.sync_dir(&to).await.map_err(failed)
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
        link_table(env, &sstable.directory, &sstable.table.descriptor, &to).await?;
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

async fn link_table(
    env: &Env,
    from: &Path,
    descriptor: &Descriptor,
    to: &Path,
) -> Result<(), StorageError> {
    let failed = |e| StorageError::io("cannot link the files of", from, e);
    for entry in env.read_dir(from).await.map_err(failed)? {
        let ours = Descriptor::parse(&entry.name).is_ok_and(|(of, _)| of == *descriptor);
        if ours && !entry.is_dir {
            env.hard_link(from.join(&entry.name), to.join(&entry.name)).await.map_err(failed)?;
        }
    }
    Ok(())
}
