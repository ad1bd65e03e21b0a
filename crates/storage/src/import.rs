//! Taking over SSTables that somebody put into a directory (`SSTableImporter`): refused before they
//! are adopted, or adopted in one step that a crash cannot tear.
//!
//! Foreign SSTables are opened where they are, and their headers are held against the table. With
//! `verify` their digest and every row are read, too. Then one transaction links them under new
//! names. A file that cannot be linked is copied.
//!
//! `refresh` does the same with files in a table's own directory that are not live.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use env::{Env, File, OpenOptions};
use schema::{Table, TableId};
use sstable::descriptor::{Component, Descriptor, Id};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::table_directory;
use crate::node::{Node, NodeTable};
use crate::sstables::SSTable;
use crate::transaction::{Transaction, named_in_logs, remove_descriptor};
use crate::verify::Depth;

/// Bytes that are copied at a time where a file cannot be linked.
const COPY_STEP: usize = 1 << 20;

/// How to take SSTables over.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// They stay where they are, too.
    pub copy: bool,
    /// They keep their levels.
    pub keep_level: bool,
    /// All of each is read before.
    pub verify: bool,
}

/// The SSTables of a directory with their files.
type Found = BTreeMap<Descriptor, BTreeSet<String>>;

impl Node {
    /// Takes over the SSTables in directories, those of each all or none; the directories whose
    /// were refused, with why.
    ///
    /// # Errors
    /// If the table is unknown.
    pub async fn import(
        &self,
        id: TableId,
        directories: &[PathBuf],
        how: Import,
    ) -> Result<Vec<(PathBuf, StorageError)>, StorageError> {
        let engine = self.engine()?;
        let table = engine.store(id)?.table();
        let mut refused = Vec::new();
        for directory in directories {
            let imported = async {
                refuse_tables(&engine, directory).await?;
                let found = sstables_in(engine.env(), directory).await?;
                self.import_from(&engine, &table, (directory, found), how).await
            };
            if let Err(error) = imported.await {
                refused.push((directory.clone(), error));
            }
        }
        Ok(refused)
    }

    /// Takes over what somebody put into the table's own directories, all of a directory's SSTables
    /// or none; they get names that nothing else has.
    ///
    /// # Errors
    /// If one is damaged or is of another table: it stays where it is, and with it all beside it.
    pub async fn refresh(&self, id: TableId) -> Result<(), StorageError> {
        let engine = self.engine()?;
        let table = engine.store(id)?.table();
        let how = Import { copy: false, keep_level: false, verify: true };
        for data in &engine.options.data_directories {
            let directory = table_directory(data, &table);
            let there = engine.env().exists(&directory).await;
            if there.map_err(|e| StorageError::io("cannot stat", &directory, e))? {
                let found = self.strangers(&engine, id, &directory).await?;
                self.import_from(&engine, &table, (&directory, found), how).await?;
            }
        }
        Ok(())
    }

    /// The SSTables of a table's directory that are not live, and that no flush or compaction has
    /// to do with.
    async fn strangers(
        &self,
        engine: &Engine,
        id: TableId,
        directory: &Path,
    ) -> Result<Found, StorageError> {
        let env = engine.env();
        let node_table = self.table(id);
        // Nothing becomes live meanwhile. The log of what goes is there longer than what goes, and
        // that of what comes is there before it: so logs are looked at before the files, and after.
        let _changing = node_table.changing.acquire(1).await;
        let mut ours = named_in_logs(env, directory).await?;
        let mut found = sstables_in(env, directory).await?;
        ours.extend(named_in_logs(env, directory).await?);
        ours.extend(node_table.live.borrow().tables().iter().map(|live| live.table.descriptor));
        found.retain(|descriptor, _| !ours.contains(descriptor));
        for descriptor in found.keys() {
            if let Id::Sequence(taken) = descriptor.id {
                let next = node_table.next_generation.get().max(taken.saturating_add(1));
                node_table.next_generation.set(next);
            }
        }
        Ok(found)
    }

    async fn import_from(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        (from, found): (&Path, Found),
        how: Import,
    ) -> Result<(), StorageError> {
        let env = engine.env();
        let depth = if how.verify { Depth::Rows } else { Depth::Header };
        for descriptor in found.keys() {
            self.inspect(engine, table, from, descriptor, (depth, &[])).await?;
        }
        let Some(first) = found.keys().next() else { return Ok(()) };
        let node_table = self.table(table.id);
        let _changing = node_table.changing.acquire(1).await;
        let home = self.directory_of(engine, table).await?;
        let mut places = vec![self.place_of(engine, &node_table, first)];
        let mut transaction = Transaction::begin(env, &home, "write", &places[0]).await?;
        let adopted = async {
            for descriptor in found.keys().skip(1) {
                let place = self.place_of(engine, &node_table, descriptor);
                transaction.add(&home, &place).await?;
                places.push(place);
            }
            let mut new = Vec::new();
            for ((_, names), place) in found.iter().zip(&places) {
                adopt(env, (from, names), (&home, place)).await?;
                let number = self.numbers.next();
                let mut sstable =
                    SSTable::open(env, &home, place, number, table.is_counter()).await?;
                if !how.keep_level {
                    sstable.set_level(env, 0).await?;
                }
                sstable.epoch = node_table.epoch.get() + 1;
                new.push(Arc::new(sstable));
            }
            transaction.commit(&[]).await?;
            Ok::<_, StorageError>(new)
        };
        let new = match adopted.await {
            Ok(new) => new,
            Err(error) => {
                for place in &places {
                    remove_descriptor(env, &home, place).await?;
                }
                transaction.finish().await?;
                return Err(error);
            }
        };
        transaction.finish().await?;
        let live = node_table.live.borrow().with(&[], new);
        *node_table.live.borrow_mut() = Arc::clone(&live);
        node_table.epoch.set(node_table.epoch.get() + 1);
        for shard in 0..engine.shards().count() {
            let (id, live) = (table.id, Arc::clone(&live));
            let publish = move |engine: &Rc<Engine>| {
                engine.forget_rows(id);
                engine.swap_live(id, live, i64::MIN)
            };
            engine.shards().call(shard, publish).await?;
        }
        if !how.copy {
            // What stays costs space only.
            for name in found.values().flatten() {
                let _ = env.remove_file(from.join(name)).await;
            }
        }
        self.want_compaction(table.id);
        Ok(())
    }

    /// The name that an SSTable gets here.
    fn place_of(&self, engine: &Engine, node_table: &NodeTable, of: &Descriptor) -> Descriptor {
        let next = self.next_descriptor(engine, node_table);
        Descriptor { version: of.version, format: of.format, ..next }
    }
}

/// Refuses the directory of a table, by whatever path: its files are in use, and would be gone
/// after they were moved.
async fn refuse_tables(engine: &Engine, from: &Path) -> Result<(), StorageError> {
    let identity = async |path: &Path| {
        let found = engine.env().metadata(path).await;
        let found = found.map_err(|e| StorageError::io("cannot stat", path, e))?;
        Ok::<_, StorageError>(found.map(|found| found.identity))
    };
    let Some(asked) = identity(from).await? else { return Ok(()) };
    let schema = engine.schema();
    for table in schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values()) {
        for data in &engine.options.data_directories {
            if identity(&table_directory(data, table)).await? == Some(asked) {
                let what = format!(
                    "cannot import from it: it is the directory of table {}.{}; copy the SSTables \
                     to another directory",
                    table.keyspace, table.name
                );
                return Err(StorageError::Refused { path: from.to_owned(), what });
            }
        }
    }
    Ok(())
}

async fn sstables_in(env: &Env, directory: &Path) -> Result<Found, StorageError> {
    let entries = env.read_dir(directory).await;
    let entries = entries.map_err(|e| StorageError::io("cannot list", directory, e))?;
    let mut found = Found::new();
    for entry in entries.into_iter().filter(|entry| !entry.is_dir) {
        let Ok((descriptor, _)) = Descriptor::parse(&entry.name) else { continue };
        if !descriptor.version.is_readable(descriptor.format) {
            let Descriptor { version, format, .. } = descriptor;
            let what = format!(
                "this release does not read SSTables of format {version}-{format}; rewrite it with \
                 nodetool upgradesstables of Cassandra 4.1 or 5.0"
            );
            return Err(StorageError::corrupt(directory.join(entry.name), what));
        }
        found.entry(descriptor).or_default().insert(entry.name);
    }
    Ok(found)
}

/// Brings an SSTable's files here, durably, the table of contents last.
async fn adopt(
    env: &Env,
    (from, names): (&Path, &BTreeSet<String>),
    (home, place): (&Path, &Descriptor),
) -> Result<(), StorageError> {
    let contents = Component::Toc.to_string();
    let (last, others): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| name.ends_with(contents.as_str()));
    for name in others.into_iter().chain(last) {
        let Ok((_, component)) = Descriptor::parse(name) else { continue };
        bring(env, &from.join(name), &home.join(place.file(&component))).await?;
    }
    let synced = env.sync_dir(home).await;
    synced.map_err(|e| StorageError::io("cannot sync", home, e))
}

/// Links a file, or copies it from another disk.
async fn bring(env: &Env, from: &Path, to: &Path) -> Result<(), StorageError> {
    let failed = |e| StorageError::io("cannot move or copy an SSTable to", to, e);
    if env.hard_link(from, to).await.is_err() {
        let source = File::open(env, from, OpenOptions::READ).await.map_err(failed)?;
        let target = File::open(env, to, OpenOptions::READ_WRITE).await.map_err(failed)?;
        let (mut at, mut buffer) = (0, Vec::with_capacity(COPY_STEP));
        loop {
            let (read, mut bytes) = source.read_at(buffer, at, COPY_STEP).await;
            let read = read.map_err(failed)?;
            if read == 0 {
                break;
            }
            bytes.truncate(read);
            let (written, bytes) = target.write_all_at(bytes, at).await;
            written.map_err(failed)?;
            at += read as u64;
            buffer = bytes;
        }
    }
    let file = File::open(env, to, OpenOptions::READ).await.map_err(failed)?;
    file.sync_all().await.map_err(failed)
}
