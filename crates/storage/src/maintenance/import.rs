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
use sstable::descriptor::{Component, Descriptor};

use super::verify::{Depth, Verifier};
use crate::compaction::Compactions;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::node_tables::{NodeTable, NodeTables, table_directory};
use crate::sstables::{NewSSTables, SSTable, named_in_logs, refuse_unreadable};

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

/// Takes SSTables over.
pub struct Importer {
    tables: Rc<NodeTables>,
    verifier: Rc<Verifier>,
    compactions: Rc<Compactions>,
}

impl Importer {
    pub(crate) fn new(
        tables: &Rc<NodeTables>,
        verifier: &Rc<Verifier>,
        compactions: &Rc<Compactions>,
    ) -> Self {
        Self {
            tables: Rc::clone(tables),
            verifier: Rc::clone(verifier),
            compactions: Rc::clone(compactions),
        }
    }

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
        let engine = self.tables.engine()?;
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
        let engine = self.tables.engine()?;
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
        let node_table = self.tables.table(id);
        // Nothing becomes live meanwhile. The log of what goes is there longer than what goes, and
        // that of what comes is there before it: so logs are looked at before the files, and after.
        let _change = node_table.change().await;
        let mut ours = named_in_logs(env, directory).await?;
        let mut found = sstables_in(env, directory).await?;
        ours.extend(named_in_logs(env, directory).await?);
        ours.extend(node_table.live().tables().iter().map(|live| live.table.descriptor));
        found.retain(|descriptor, _| !ours.contains(descriptor));
        for descriptor in found.keys() {
            node_table.name_is_taken(descriptor.id);
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
            self.verifier.inspect(engine, table, from, descriptor, (depth, &[])).await?;
        }
        if found.is_empty() {
            return Ok(());
        }
        let node_table = self.tables.table(table.id);
        let change = node_table.change().await;
        let home = self.tables.directory_of(engine, table).await?;
        let mut new = NewSSTables::new(env, "write");
        let brought = async {
            let mut opened = Vec::new();
            for descriptor in found.keys() {
                new.add(&home, self.name_of(engine, &node_table, descriptor)).await?;
            }
            for ((_, names), (_, name)) in found.iter().zip(new.places()) {
                bring_all(env, (from, names), (&home, name)).await?;
                let number = self.tables.next_number();
                let sstable = SSTable::open(env, &home, name, number, table.is_counter()).await?;
                if !how.keep_level {
                    sstable.set_level(env, 0).await?;
                }
                opened.push(sstable.of_epoch(node_table.epoch() + 1));
            }
            Ok::<_, StorageError>(opened)
        };
        let opened = match brought.await {
            Ok(opened) => opened,
            Err(error) => {
                new.abandon().await?;
                return Err(error);
            }
        };
        assert_eq!(
            opened.len(),
            found.len(),
            "all SSTables of a directory are taken over, or none"
        );
        self.tables.adopt(table, &change, new, opened).await?;
        if !how.copy {
            // What stays costs space only.
            for name in found.values().flatten() {
                let _ = env.remove_file(from.join(name)).await;
            }
        }
        self.compactions.want(table.id);
        Ok(())
    }

    /// The name that an SSTable gets here.
    fn name_of(&self, engine: &Engine, node_table: &NodeTable, of: &Descriptor) -> Descriptor {
        let next = self.tables.next_descriptor(engine, node_table);
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
        refuse_unreadable(&descriptor, directory.join(&entry.name), "")?;
        found.entry(descriptor).or_default().insert(entry.name);
    }
    Ok(found)
}

/// Brings an SSTable's files here, durably, the table of contents last.
async fn bring_all(
    env: &Env,
    (from, names): (&Path, &BTreeSet<String>),
    (home, name): (&Path, &Descriptor),
) -> Result<(), StorageError> {
    let opened = env.open_dir(home).await;
    let directory = opened.map_err(|e| StorageError::io("cannot open", home, e))?;
    let contents = Component::Toc.to_string();
    let (last, others): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| name.ends_with(contents.as_str()));
    for file in others.into_iter().chain(last) {
        let Ok((_, component)) = Descriptor::parse(file) else { continue };
        bring(env, &from.join(file), &home.join(name.file(&component))).await?;
    }
    let synced = directory.sync().await;
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
