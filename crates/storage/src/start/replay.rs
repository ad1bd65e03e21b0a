//! Replaying the log of earlier runs, on the first shard.
//!
//! Old segments stay until their tables are flushed. A replay flushes nothing, unless the memtables
//! are full at a segment's end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use rows::codec::{MutationDecoder, Problem};
use rows::{Mutation, PartitionUpdate};
use schema::{Schema, Table, TableId};
use types::Reader;

use crate::commitlog::{
    Position, ReplayError, SegmentFile, Survey, VERSION_50, read_segment, segment_files, survey,
};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::{Flushes, Replayed};
use crate::node_tables::NodeTables;
use crate::sstables::SSTable;

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

/// Replays the log.
pub(super) struct Replayer {
    tables: Rc<NodeTables>,
    flushes: Rc<Flushes>,
}

impl Replayer {
    pub fn new(tables: &Rc<NodeTables>, flushes: &Rc<Flushes>) -> Self {
        Self { tables: Rc::clone(tables), flushes: Rc::clone(flushes) }
    }

    fn replayed(&self) -> &Replayed {
        self.flushes.replayed()
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
        let engine = self.tables.engine()?;
        let directory = &engine.options.commitlog_directory;
        let mut replay = Replay::default();
        let truncated_in = truncated.values().map(|position| position.segment).max();
        self.replayed().note_truncated(truncated_in.unwrap_or_default());
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
        let mut before = None;
        for (position, mutation) in records {
            assert!(
                before <= Some(position) && position.segment == segment.id,
                "records of a segment are replayed in their order: {before:?}, {position:?}"
            );
            before = Some(position);
            let captured = |update: &PartitionUpdate| {
                schema.table_by_id(&TableId(update.table)).is_some_and(|table| table.params.cdc)
            };
            if engine.options.log.cdc.is_some() && mutation.updates().iter().any(captured) {
                self.replayed().note_captured(segment.id, position.offset);
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
            self.replayed().note(segment.id, tables);
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
        if self.replayed().has(segment.id) && !engine.env().planted("replay_not_synced") {
            sync_segment(engine.env(), segment).await?;
            self.replayed().note_read(segment.id, read_to);
        }
        if full {
            // Not before the segment's end: the files say that they have all that it holds of their
            // tables.
            engine.env().mark("replay.flush");
            self.flushes.flush_all().await?;
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
        let snapshot =
            self.tables.engine().ok().and_then(|engine| engine.options.log.archiving.snapshot);
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
        let live = self.tables.table(id).live();
        let own = match self.tables.engine() {
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
            let is_ours = engine.owner(mutation.token()) == engine.env().shard();
            assert!(is_ours, "a shard replays the partitions that it owns");
            engine.merge(mutation, *position, &[])?;
        }
        Ok(engine.memtables().are_over_threshold())
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
