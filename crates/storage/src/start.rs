//! Starting on a data directory: tables found, the log replayed, a new log begun. Runs on the first
//! shard.
//!
//! Old segments stay until their tables are flushed. A replay flushes nothing, unless the memtables
//! are full at a segment's end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rows::codec::{MutationDecoder, Problem};
use rows::{Mutation, PartitionUpdate};
use schema::{Schema, Table, TableId};
use sstable::descriptor::{Component, Descriptor, Id};
use types::Reader;

use crate::commitlog::{
    CommitLog, Inherited, Lists, LogOptions, Position, ReplayError, SegmentFile, Survey,
    VERSION_50, after_replay, read_segment, segment_files, survey,
};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::{sync_parents, table_directory};
use crate::live_set::LiveSet;
use crate::node::Node;
use crate::snapshot::BACKUPS;
use crate::sstables::SSTable;
use crate::transaction;

/// Replayed mutations handed to a shard at a time.
const REPLAY_BATCH: usize = 256;

/// What a replay did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Records applied.
    pub applied: u64,
    /// Records that SSTables or a truncation cover.
    pub covered: u64,
    /// Records of tables that are gone.
    pub unknown: u64,
    /// Segments that broke off, and where: what followed never became durable.
    pub torn: Vec<(PathBuf, u32)>,
    /// Segments that are damaged, and from where on nothing was replayed, which the operator wanted
    /// to be ignored.
    pub damaged: Vec<(PathBuf, u32)>,
    /// Segments that are gone, which the operator wanted to be ignored.
    pub missing: Vec<PathBuf>,
    /// Mutations that are later than what is to be restored (`restore_point_in_time`).
    pub too_late: u64,
    /// What the operator should know: a line each.
    pub notes: Vec<String>,
}

impl From<ReplayError> for StorageError {
    fn from(error: ReplayError) -> Self {
        let path = match &error {
            ReplayError::Io { path, .. } | ReplayError::Header { path, .. } => path.clone(),
        };
        Self::corrupt(path, error)
    }
}

impl Engine {
    /// Makes this shard the one that owns the node's background work.
    pub fn become_first(self: &Rc<Self>) -> Rc<Node> {
        let node = Node::new(self);
        assert!(self.node.set(Rc::clone(&node)).is_ok(), "there is one first shard");
        node
    }

    /// The node's background work; on the first shard only.
    pub fn node(&self) -> Option<&Rc<Node>> {
        self.node.get()
    }
}

impl Node {
    /// Gives all shards a schema; each has it when this returns.
    ///
    /// # Errors
    /// If the node is stopping.
    pub async fn set_schema(&self, schema: &Arc<Schema>) -> Result<(), StorageError> {
        let engine = self.engine()?;
        for shard in 0..engine.shards().count() {
            let schema = Arc::clone(schema);
            engine.shards().call(shard, move |engine| engine.set_schema(&schema)).await?;
        }
        for (id, store) in engine.stores() {
            if self.table(id).differs(&store.table().params.compaction) {
                self.want_compaction(id);
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
        let engine = self.engine()?;
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
        let mut highest = 0;
        let directories = self.directories_at_start(engine, table).await?;
        for directory in directories {
            let failed = |e| StorageError::io("cannot stat", &directory, e);
            for descriptor in tables_in(engine, &directory).await? {
                if let Id::Sequence(id) = descriptor.id {
                    highest = highest.max(id);
                }
                let number = self.numbers.next();
                let counter = table.is_counter();
                match SSTable::open(engine.env(), &directory, &descriptor, number, counter).await {
                    Ok(sstable) => found.push(Arc::new(sstable)),
                    Err(error) => {
                        let path = directory.join(descriptor.file(&Component::Data));
                        self.go_without(engine, table, &path, error)?;
                    }
                }
            }
            // A number that a backup has is not given again: the file's name would be taken.
            let backups = directory.join(BACKUPS);
            if engine.env().exists(&backups).await.map_err(failed)? {
                for descriptor in tables_in(engine, &backups).await? {
                    if let Id::Sequence(id) = descriptor.id {
                        highest = highest.max(id);
                    }
                }
            }
        }
        let node_table = self.table(table.id);
        node_table.next_generation.set(highest + 1);
        let live = LiveSet::new(found);
        *node_table.live.borrow_mut() = Arc::clone(&live);
        let id = table.id;
        for shard in 0..engine.shards().count() {
            let live = Arc::clone(&live);
            let set = move |engine: &Rc<Engine>| engine.swap_live(id, live, i64::MIN);
            engine.shards().call(shard, set).await?;
        }
        Ok(())
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
                    self.go_without(engine, table, &directory, error)?;
                    self.table(table.id).disallowed.borrow_mut().insert(directory.clone());
                    unreachable.push(directory);
                }
                Err(error) => return Err(error),
            }
        }
        transaction::clean_up(engine.env(), &there, &unreachable).await?;
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

    /// Replays the log's records of the tables that `wanted` names. `truncated` tells up to where
    /// records of a table were truncated.
    ///
    /// # Errors
    /// If a segment cannot be read, or a record of it.
    pub async fn replay(
        &self,
        wanted: &dyn Fn(&Table) -> bool,
        truncated: &BTreeMap<TableId, Position>,
    ) -> Result<Replay, StorageError> {
        let engine = self.engine()?;
        let directory = &engine.options.commitlog_directory;
        let mut replay = Replay::default();
        let truncated_in = truncated.values().map(|position| position.segment).max();
        self.truncated_in.set(truncated_in.unwrap_or_default());
        let segments = segment_files(engine.env(), directory).await?;
        let survey = survey(engine.env(), directory, &segments).await?;
        nothing_is_missing(&engine, &survey, &mut replay)?;
        for segment in segments {
            let of = (&segment, &survey);
            self.replay_segment(&engine, of, wanted, truncated, &mut replay).await?;
        }
        Ok(replay)
    }

    async fn replay_segment(
        &self,
        engine: &Rc<Engine>,
        (segment, survey): (&SegmentFile, &Survey),
        wanted: &dyn Fn(&Table) -> bool,
        truncated: &BTreeMap<TableId, Position>,
        replay: &mut Replay,
    ) -> Result<(), StorageError> {
        let schema = engine.schema();
        let (records, read_to) = records_of(engine, (segment, survey), replay).await?;
        let mut batches: Vec<Vec<(Position, Mutation)>> =
            (0..engine.shards().count()).map(|_| Vec::new()).collect();
        let mut full = false;
        let archiving = &engine.options.log.archiving;
        for (position, mutation) in records {
            let captured = |update: &PartitionUpdate| {
                schema.table_by_id(&TableId(update.table)).is_some_and(|table| table.params.cdc)
            };
            if engine.options.log.cdc.is_some() && mutation.updates().iter().any(captured) {
                self.replayed_cdc.borrow_mut().insert(segment.id, position.offset);
            }
            let late = |update: &PartitionUpdate| archiving.is_too_late(update.max_timestamp());
            if archiving.point_in_time.is_some() && mutation.updates().iter().any(late) {
                replay.too_late += 1;
                engine.env().mark("replay.too_late");
                continue;
            }
            let Some(mutation) = self.uncovered(&schema, position, mutation, wanted, truncated)
            else {
                replay.covered += 1;
                engine.env().mark("replay.covered");
                continue;
            };
            replay.applied += 1;
            let tables = mutation.updates().iter().map(|update| TableId(update.table));
            self.replayed.borrow_mut().entry(segment.id).or_default().extend(tables);
            engine.env().mark("replay.applied");
            let shard = engine.owner(mutation.token());
            batches[shard].push((position, mutation));
            if batches[shard].len() >= REPLAY_BATCH {
                full |= hand_on(engine, shard, std::mem::take(&mut batches[shard])).await?;
            }
        }
        for (shard, batch) in batches.into_iter().enumerate() {
            full |= hand_on(engine, shard, batch).await?;
        }
        let replayed = self.replayed.borrow().contains_key(&segment.id);
        if replayed && !engine.env().planted("replay_not_synced") {
            sync_segment(engine.env(), segment).await?;
            self.replayed_to.borrow_mut().insert(segment.id, read_to);
        }
        if full {
            // Not before the segment's end: the files say that they have all that it holds of their
            // tables.
            engine.env().mark("replay.flush");
            self.flush_all().await?;
        }
        Ok(())
    }

    /// A mutation without the updates that need no replay.
    fn uncovered(
        &self,
        schema: &Schema,
        position: Position,
        mutation: Mutation,
        wanted: &dyn Fn(&Table) -> bool,
        truncated: &BTreeMap<TableId, Position>,
    ) -> Option<Mutation> {
        let snapshot = self.engine().ok().and_then(|engine| engine.options.log.archiving.snapshot);
        of_updates(mutation, |update| {
            let id = TableId(update.table);
            let Some(table) = schema.table_by_id(&id) else { return false };
            let is_covered = match snapshot {
                // what the operator says of the snapshot counts, whatever its files say
                Some(snapshot) => position <= snapshot,
                None => {
                    truncated.get(&id).is_some_and(|at| position <= *at)
                        || self.is_flushed(id, position)
                }
            };
            wanted(table) && !is_covered
        })
    }

    /// Does an SSTable that this node wrote hold what the log has at a position?
    fn is_flushed(&self, id: TableId, position: Position) -> bool {
        let node_table = self.table(id);
        let live = node_table.live.borrow();
        let own = match self.engine() {
            Ok(engine) => engine.host_id(),
            Err(_) => return false,
        };
        let covers = |sstable: &Arc<SSTable>| {
            let stats = &sstable.table.statistics.stats;
            stats.host_id == Some(own)
                && stats.log_intervals.iter().any(|(from, to)| {
                    from.segment == position.segment
                        && to.segment == position.segment
                        && i64::from(from.offset) < i64::from(position.offset)
                        && i64::from(position.offset) <= i64::from(to.offset)
                })
        };
        live.tables().iter().any(covers)
    }

    /// The newest segment of which an SSTable that this node wrote holds something; zero for none.
    fn newest_flushed(&self) -> i64 {
        let Ok(engine) = self.engine() else { return 0 };
        let own = engine.host_id();
        let of = |id: TableId| {
            let live = Arc::clone(&self.table(id).live.borrow());
            let stats = live.tables().iter().map(|sstable| &sstable.table.statistics.stats);
            let own = stats.filter(|stats| stats.host_id == Some(own));
            own.flat_map(|stats| stats.log_intervals.iter().map(|(_, to)| to.segment)).max()
        };
        engine.stores().into_iter().filter_map(|(id, _)| of(id)).max().unwrap_or_default()
    }

    /// Flushes every table.
    ///
    /// # Errors
    /// If one cannot be flushed.
    pub async fn flush_all(&self) -> Result<(), StorageError> {
        let engine = self.engine()?;
        for (id, _) in engine.stores() {
            match self.flush(id).await {
                Err(StorageError::UnknownTable(_)) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Begins a new log on all shards, and then background work. The old segments stay until what
    /// was replayed from them is flushed.
    ///
    /// # Errors
    /// If the log cannot be begun.
    pub async fn begin_log(&self) -> Result<(), StorageError> {
        let engine = self.engine()?;
        let directory = engine.options.commitlog_directory.clone();
        let mut inherited = Vec::new();
        let mut last = 0;
        for segment in segment_files(engine.env(), &directory).await? {
            let tables = self.replayed.borrow().get(&segment.id).cloned().unwrap_or_default();
            let tables = tables.into_iter().collect();
            let bytes = u64::from(engine.options.segment_bytes);
            if let Some(cdc) = &engine.options.log.cdc {
                let contains = self.replayed_cdc.borrow().get(&segment.id).copied();
                let failed =
                    |e| StorageError::io("cannot link into cdc_raw_directory", &segment.path, e);
                after_replay(engine.env(), cdc, &segment, contains).await.map_err(failed)?;
            }
            let read = self.replayed_to.borrow().get(&segment.id).copied().unwrap_or_default();
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
        let told = listed.max(self.newest_flushed()).max(self.truncated_in.get());
        let told = if engine.env().planted("segment_ids_given_again") { last } else { told };
        // Cassandra's start at the clock.
        let first = told.saturating_add(1).max(engine.env().unix_micros() / 1000);
        for shard in 0..engine.shards().count() {
            let id = first + shard as i64;
            // one shard's log looks after them: a flush is of all shards
            let inherited = if shard == 0 { std::mem::take(&mut inherited) } else { Vec::new() };
            let begin =
                move |engine: Rc<Engine>| async move { engine.begin_log(id, inherited).await };
            engine.shards().call_async(shard, env::Class::CommitLog, begin).await??;
        }
        if let Some(node) = self.me() {
            node.start(&engine);
        }
        for (id, _) in engine.stores() {
            self.want_compaction(id);
        }
        Ok(())
    }

    /// Stops for good: everything flushed, the log closed and empty.
    ///
    /// # Errors
    /// If something cannot be flushed: it is still in the log.
    pub async fn drain(&self) -> Result<(), StorageError> {
        self.enable_compactions(false);
        self.stop_compactions(|_| true);
        let engine = self.engine()?;
        for shard in 0..engine.shards().count() {
            let sync = |engine: Rc<Engine>| async move {
                match engine.log().filter(|log| !log.gave_up()) {
                    Some(log) => log.sync().await,
                    None => Ok(()),
                }
            };
            engine.shards().call_async(shard, env::Class::CommitLog, sync).await??;
        }
        self.flush_all().await?;
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

impl Engine {
    async fn begin_log(
        self: &Rc<Self>,
        first_id: i64,
        inherited: Vec<Inherited>,
    ) -> Result<(), StorageError> {
        let shards = self.env().shards() as u64;
        let options = LogOptions {
            directory: self.options.commitlog_directory.clone(),
            mode: self.options.sync,
            segment_bytes: self.options.segment_bytes,
            compression: self.options.log.compression.clone(),
            mutation_bytes_max: self.mutation_bytes_max(),
            cdc: self.options.log.cdc.clone(),
            archive_command: self.options.log.archiving.archive_command.clone(),
            goes_on_after_failure: self.options.log.goes_on_after_failure,
            total_bytes: self.options.commitlog_bytes / shards,
        };
        let directory = options.directory.clone();
        let log = CommitLog::start(self.env(), options, first_id, inherited).await;
        let log =
            log.map_err(|e| StorageError::io("cannot create the commit log in", directory, e))?;
        log.tell_events(self.log_watcher.borrow().clone());
        self.set_log(log);
        self.restart_memtables();
        Ok(())
    }
}

/// A mutation with those of its updates that are wanted.
fn of_updates(
    mutation: Mutation,
    mut wanted: impl FnMut(&PartitionUpdate) -> bool,
) -> Option<Mutation> {
    let mut left: Option<Mutation> = None;
    for update in mutation.into_updates() {
        match &mut left {
            _ if !wanted(&update) => {}
            None => left = Some(Mutation::new(update)),
            // updates of one mutation are of one key and of different tables
            Some(left) => drop(left.push(update)),
        }
    }
    left
}

/// What of a mutation ever took effect. Cassandra logs `DELETE ... WHERE c > null`, and then its
/// memtable cannot take the range: the client hears of a timeout, no read shows a deletion, and its
/// own replay of that record fails. Here the statement is INVALID, so that the log of Helenus has
/// none.
fn what_took_effect(mutation: Mutation) -> Option<Mutation> {
    match mutation.updates().iter().any(|update| update.ranges.has_null_bound()) {
        false => Some(mutation),
        true => of_updates(mutation, |update| !update.ranges.has_null_bound()),
    }
}

/// Stops a start where a segment is gone that was there, unless the operator wants to go on without
/// it.
fn nothing_is_missing(
    engine: &Engine,
    survey: &Survey,
    replay: &mut Replay,
) -> Result<(), StorageError> {
    let ignores = engine.options.log.ignore_replay_errors;
    for (path, why) in survey.damaged_lists() {
        let what = format!(
            "{why}; the file lists the segments of the commit log, so that the start notices a \
             missing one. To start without this check, delete the file"
        );
        if !ignores {
            return Err(StorageError::corrupt(path, what));
        }
        replay.notes.push(format!(
            "segment list {}: {why}; ignored it, as commitlog_ignore_replay_errors is true",
            path.display()
        ));
    }
    if let (Some(path), false) = (survey.missing.first(), ignores) {
        let what = "the segment is missing, which no crash explains, and may have held \
                    acknowledged writes. Replay stopped. Restore the file, or set \
                    commitlog_ignore_replay_errors to true to start without its writes";
        return Err(StorageError::corrupt(path, what));
    }
    replay.missing.clone_from(&survey.missing);
    Ok(())
}

/// Merges replayed mutations into a shard's memtables. True if those are full then.
async fn hand_on(
    engine: &Engine,
    shard: usize,
    batch: Vec<(Position, Mutation)>,
) -> Result<bool, StorageError> {
    if batch.is_empty() {
        return Ok(false);
    }
    let merge = move |engine: &Rc<Engine>| {
        for (position, mutation) in &batch {
            engine.merge(mutation, *position, &[])?;
        }
        let threshold = engine.memory_lease() as f64 * engine.options.cleanup_threshold;
        Ok(engine.memtable_bytes() as f64 > threshold)
    };
    engine.shards().call(shard, merge).await?
}

/// Makes durable what was replayed from a segment: a process that was killed may have left it to
/// the page cache alone, and soon clients read it, and flushes make parts of it durable.
async fn sync_segment(env: &env::Env, segment: &SegmentFile) -> Result<(), StorageError> {
    let failed = |e| StorageError::io("cannot sync", &segment.path, e);
    let file = env::File::open(env, &segment.path, env::OpenOptions::READ).await.map_err(failed)?;
    file.sync_all().await.map_err(failed)
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
        if !descriptor.version.is_readable(descriptor.format) {
            let path = directory.join(descriptor.file(&Component::Data));
            let Descriptor { version, format, .. } = descriptor;
            let what = format!(
                "this release does not read SSTables of format {version}-{format}; rewrite it with \
                 nodetool upgradesstables of Cassandra 4.1 or 5.0, or move it away"
            );
            return Err(StorageError::corrupt(path, what));
        }
        tables.insert(descriptor);
    }
    Ok(tables.into_iter().collect())
}

/// The mutations of a segment, and how far it was read. What cannot be read is noted, or ends the
/// replay.
async fn records_of(
    engine: &Engine,
    (segment, survey): (&SegmentFile, &Survey),
    replay: &mut Replay,
) -> Result<(Vec<(Position, Mutation)>, u64), StorageError> {
    let schema = engine.schema();
    let layout_of =
        |id: &[u8; 16]| schema.table_by_id(&TableId(*id)).map(|table| Arc::clone(&table.layout));
    let mut decoder = match segment.version {
        VERSION_50 => MutationDecoder::of_messaging_13(),
        _ => MutationDecoder::new(),
    };
    let mut records: Vec<(Position, Mutation)> = Vec::new();
    let mut senseless = None;
    let mut without_effect = 0;
    let read = read_segment(engine.env(), segment, survey, |position, bytes| {
        match decoder.mutation(&mut Reader::new(bytes), &layout_of) {
            Ok(mutation) => {
                let before = mutation.updates().len();
                let left = what_took_effect(mutation);
                without_effect += before - left.as_ref().map_or(0, |left| left.updates().len());
                records.extend(left.map(|left| (position, left)));
            }
            Err(error) if matches!(error.problem, Problem::UnknownTable(_)) => {
                replay.unknown += 1;
            }
            Err(error) => senseless = senseless.take().or(Some((position.offset, error))),
        }
    });
    let read = read.await?;
    // Its checksum is right, and a schema is durable before what is written under it.
    if let Some((end, error)) = senseless {
        let what = format!("cannot decode the record that ends at byte {end}: {error}");
        if !engine.options.log.ignore_replay_errors {
            let what = format!(
                "{what}. Replay stopped. To start without this record, set \
                 commitlog_ignore_replay_errors to true"
            );
            return Err(StorageError::corrupt(&segment.path, what));
        }
        replay.notes.push(format!(
            "commit log segment {}: {what}; ignored it, as commitlog_ignore_replay_errors is true",
            segment.path.display()
        ));
    }
    if without_effect > 0 {
        replay.notes.push(format!(
            "commit log segment {}: skipped {without_effect} updates that delete a range with a \
             null bound, as the Cassandra that logged them never applied them",
            segment.path.display()
        ));
    }
    if let Some(at) = read.damaged_at {
        if !engine.options.log.ignore_replay_errors {
            let what = format!(
                "it is damaged from byte {at} on, in a way that no crash explains. Replay stopped. \
                 To start without the writes after this byte, set commitlog_ignore_replay_errors \
                 to true"
            );
            return Err(StorageError::corrupt(&segment.path, what));
        }
        replay.damaged.push((segment.path.clone(), at));
    }
    if let Some(at) = read.torn_at {
        replay.torn.push((segment.path.clone(), at));
        engine.env().mark("replay.torn");
    }
    if engine.env().planted("replay_skips_last") {
        records.pop();
    }
    Ok((records, read.read))
}
