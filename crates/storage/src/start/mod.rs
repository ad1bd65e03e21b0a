//! Starting on a data directory: tables found, the log replayed, a new log begun. And the end, with
//! everything flushed. Runs on the first shard.

mod archived;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use schema::{Schema, Table, TableId};
use sstable::descriptor::{Component, Descriptor};

use self::archived::restore_log;
pub use self::replay::Replay;
use self::replay::Replayer;
use crate::commitlog::{Inherited, Lists, Position, SegmentFile, after_replay, segment_files};
use crate::compaction::Compactions;
use crate::disk_failures::DiskFailures;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::{BACKUPS, Flushes};
use crate::node_tables::{NodeTables, sync_parents, table_directory};
use crate::sstables::{SSTable, clean_up, refuse_unreadable};

/// The greatest id of a segment of an earlier run: above it the ids must last for good. Ids are
/// milliseconds of the clock, of which nobody has seen a thousandth of these.
const SEGMENT_ID_MAX: i64 = i64::MAX / 2;

/// The node's way from a data directory to serving, and back.
pub(crate) struct Lifecycle {
    tables: Rc<NodeTables>,
    failures: Rc<DiskFailures>,
    compactions: Rc<Compactions>,
    flushes: Rc<Flushes>,
    replayer: Replayer,
}

impl Lifecycle {
    pub fn new(
        (tables, failures): (&Rc<NodeTables>, &Rc<DiskFailures>),
        compactions: &Rc<Compactions>,
        flushes: &Rc<Flushes>,
    ) -> Self {
        Self {
            tables: Rc::clone(tables),
            failures: Rc::clone(failures),
            compactions: Rc::clone(compactions),
            flushes: Rc::clone(flushes),
            replayer: Replayer::new(tables, flushes),
        }
    }

    /// Archives and restores segments, as the operator wants it; see [`restore_log`].
    pub async fn restore_log(&self) -> Result<Vec<String>, StorageError> {
        restore_log(&*self.tables.engine()?).await
    }

    /// Replays the log.
    pub async fn replay(
        &self,
        wanted: &dyn Fn(&Table) -> bool,
        truncated: &BTreeMap<TableId, Position>,
    ) -> Result<Replay, StorageError> {
        self.replayer.replay(wanted, truncated).await
    }

    /// Gives all shards a schema; each has it when this returns.
    ///
    /// # Errors
    /// If the node is stopping.
    pub async fn set_schema(&self, schema: &Arc<Schema>) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        for shard in 0..engine.shards().count() {
            let schema = Arc::clone(schema);
            engine.shards().call(shard, move |engine| engine.set_schema(&schema)).await?;
        }
        for (id, store) in engine.stores() {
            if self.compactions.table(id).differs(&store.table().params.compaction) {
                self.compactions.want(id);
            }
        }
        Ok(())
    }

    /// Finds the SSTables of these tables and shows them to all shards.
    ///
    /// # Errors
    /// If a directory cannot be read or a table be opened: a node does not start on half its data.
    pub async fn open_tables<'a>(
        &self,
        tables: impl IntoIterator<Item = &'a Arc<Table>>,
    ) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        for table in tables {
            if !table.is_virtual() {
                self.open_table(&engine, table).await?;
            }
        }
        Ok(())
    }

    async fn open_table(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
    ) -> Result<(), StorageError> {
        let mut found = Vec::new();
        let node_table = self.tables.table(table.id);
        let directories = self.directories_at_start(engine, table).await?;
        for directory in directories {
            let failed = |e| StorageError::io("cannot stat", &directory, e);
            for descriptor in tables_in(engine, &directory).await? {
                node_table.name_is_taken(descriptor.id);
                let number = self.tables.next_number();
                let counter = table.is_counter();
                match SSTable::open(engine.env(), &directory, &descriptor, number, counter).await {
                    Ok(sstable) => found.push(Arc::new(sstable)),
                    Err(error) => {
                        let path = directory.join(descriptor.file(&Component::Data));
                        self.failures.go_without(engine, table, &path, error)?;
                    }
                }
            }
            // A number that a backup has is not given again: the file's name would be taken.
            let backups = directory.join(BACKUPS);
            if engine.env().exists(&backups).await.map_err(failed)? {
                for descriptor in tables_in(engine, &backups).await? {
                    node_table.name_is_taken(descriptor.id);
                }
            }
        }
        let change = node_table.change().await;
        let live = change.open(found);
        self.tables.exchange(table.id, &Arc::default(), &live, i64::MIN).await.map(drop)
    }

    /// The directories that a table has, with no transaction of an earlier life in them.
    async fn directories_at_start(
        &self,
        engine: &Engine,
        table: &Arc<Table>,
    ) -> Result<Vec<PathBuf>, StorageError> {
        let (mut there, mut unreachable) = (Vec::new(), Vec::new());
        let all = &engine.options.data_directories;
        for data in all {
            let directory = table_directory(data, table);
            match look_at(engine, data, &directory).await {
                Ok(true) => there.push(directory),
                Ok(false) => {}
                Err(error) if unreachable.len() + 1 < all.len() => {
                    self.failures.go_without(engine, table, &directory, error)?;
                    self.tables.table(table.id).disallow(&directory);
                    unreachable.push(directory);
                }
                Err(error) => return Err(error),
            }
        }
        clean_up(engine.env(), &there, &unreachable).await?;
        // Numbers of tables that are gone are given again. The log that removed them must not come
        // back: in one directory the sync that makes a new table count sees to that, in another
        // nothing does.
        if there.len() > 1 && !engine.env().planted("ended_logs_not_synced") {
            for directory in &there {
                let failed = |e| StorageError::io("cannot sync", directory, e);
                engine.env().sync_dir(directory).await.map_err(failed)?;
            }
        }
        Ok(there)
    }

    /// The newest segment of which an SSTable that this node wrote holds something; zero for none.
    fn newest_flushed(&self) -> i64 {
        let Ok(engine) = self.tables.engine() else { return 0 };
        let own = engine.host_id();
        let of = |id: TableId| {
            let live = self.tables.table(id).live();
            let stats = live.tables().iter().map(|sstable| &sstable.table.statistics.stats);
            let own = stats.filter(|stats| stats.host_id == Some(own));
            own.flat_map(|stats| stats.log_intervals.iter().map(|(_, to)| to.segment)).max()
        };
        engine.stores().into_iter().filter_map(|(id, _)| of(id)).max().unwrap_or_default()
    }

    /// Begins a new log on all shards, and then background work. The old segments stay until what
    /// was replayed from them is flushed.
    ///
    /// # Errors
    /// If the log cannot be begun.
    pub async fn begin_log(&self) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let directory = engine.options.commitlog_directory.clone();
        let mut inherited = Vec::new();
        let (mut last, replayed) = (0, self.flushes.replayed());
        for segment in segment_files(engine.env(), &directory).await? {
            let tables = replayed.tables(segment.id).into_iter().collect();
            let bytes = u64::from(engine.options.segment_bytes);
            if let Some(cdc) = &engine.options.log.cdc {
                let contains = replayed.captured(segment.id);
                let failed =
                    |e| StorageError::io("cannot link into cdc_raw_directory", &segment.path, e);
                after_replay(engine.env(), cdc, &segment, contains).await.map_err(failed)?;
            }
            let read = replayed.read_to(segment.id);
            let SegmentFile { id, version, .. } = segment;
            inherited.push(Inherited { id, version, bytes, read, tables });
            last = last.max(segment.id);
        }
        // The lists of an earlier run may be of more shards, and name what this one is to remove.
        let listed = inherited.iter().filter_map(Inherited::listed).collect();
        let listed = Lists::replace(engine.env(), &directory, listed, last).await?;
        // They must exceed those of all segments ever, which may be gone while SSTables and
        // truncations still tell of them: what those cover would cover what is written now, once
        // more.
        let told = listed.max(self.newest_flushed()).max(replayed.truncated_in());
        let told = if engine.env().planted("segment_ids_given_again") { last } else { told };
        if told > SEGMENT_ID_MAX {
            let what = format!(
                "cannot begin a commit log here: a segment, SSTable or truncation names segment \
                 {told}, and ids end at {SEGMENT_ID_MAX}; remove what names it, or restore it from \
                 a snapshot"
            );
            return Err(StorageError::Refused { path: directory, what });
        }
        // Cassandra's start at the clock.
        let first = (told + 1).max(engine.env().unix_micros() / 1000);
        assert!(first > last, "a new segment has an id above those of all that are there: {first}");
        for shard in 0..engine.shards().count() {
            let id = first + shard as i64;
            // one shard's log looks after them: a flush is of all shards
            let inherited = if shard == 0 { std::mem::take(&mut inherited) } else { Vec::new() };
            let begin =
                move |engine: Rc<Engine>| async move { engine.begin_log(id, inherited).await };
            engine.shards().call_async(shard, env::Class::CommitLog, begin).await??;
        }
        self.flushes.start();
        for (id, _) in engine.stores() {
            self.compactions.want(id);
        }
        Ok(())
    }

    /// Stops for good: everything flushed, the log closed and empty.
    ///
    /// # Errors
    /// If something cannot be flushed: it is still in the log.
    pub async fn drain(&self) -> Result<(), StorageError> {
        self.compactions.enable(false);
        self.compactions.stop(|_| true);
        let engine = self.tables.engine()?;
        for shard in 0..engine.shards().count() {
            let sync = |engine: Rc<Engine>| async move {
                match engine.log().filter(|log| !log.gave_up()) {
                    Some(log) => log.sync().await,
                    None => Ok(()),
                }
            };
            engine.shards().call_async(shard, env::Class::CommitLog, sync).await??;
        }
        self.flushes.flush_all().await?;
        for shard in 0..engine.shards().count() {
            let close = |engine: Rc<Engine>| async move {
                match engine.log() {
                    Some(log) => log.close().await,
                    None => Ok(()),
                }
            };
            engine.shards().call_async(shard, env::Class::CommitLog, close).await??;
        }
        engine.env().mark("node.drained");
        Ok(())
    }
}

/// Is a table's directory there, and can it be read?
async fn look_at(engine: &Engine, data: &Path, directory: &Path) -> Result<bool, StorageError> {
    let env = engine.env();
    let failed = |e| StorageError::io("cannot stat", directory, e);
    if !env.exists(directory).await.map_err(failed)? {
        return Ok(false);
    }
    // Whoever made it may have been killed before its name was durable.
    sync_parents(env, data, directory).await?;
    let listed = env.read_dir(directory).await;
    listed.map_err(|e| StorageError::io("cannot list", directory, e))?;
    Ok(true)
}

/// The tables in a directory. A crash leaves no parts of one: transactions have ended before. A
/// table without its list of contents is one like the others, as for Cassandra; what else may be
/// missing is missed when it is opened.
///
/// # Errors
/// If a table is of a version or format that is not read, so that nothing of it is passed over in
/// silence.
async fn tables_in(engine: &Engine, directory: &Path) -> Result<Vec<Descriptor>, StorageError> {
    let entries = engine.env().read_dir(directory).await;
    let entries = entries.map_err(|e| StorageError::io("cannot list", directory, e))?;
    let mut tables = BTreeSet::new();
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        let Ok((descriptor, _)) = Descriptor::parse(&entry.name) else { continue };
        let path = directory.join(descriptor.file(&Component::Data));
        refuse_unreadable(&descriptor, path, ", or move it away")?;
        tables.insert(descriptor);
    }
    Ok(tables.into_iter().collect())
}
