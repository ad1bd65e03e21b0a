//! The batch log: a logged batch is durable in `system.batches` before any part of it is applied,
//! and goes from there once all are (`batchlog.BatchlogManager`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use env::sync::oneshot;
use rows::codec::{CodecError, MutationDecoder, Problem};
use rows::{CellKind, CellRef, Mutation, RowBuilder, UpdateBuilder};
use rows::{ClusteringRef, Deletion, Liveness};
use schema::{Schema, Table, TableId};
use storage::{Engine, StorageError, Trace};
use types::Reader;

use crate::encoding::encoded as encoded_one;
use crate::internal;
use crate::local_writes::LocalWrites;
use crate::shard_context::{STATEMENT, ShardContext};

/// The version of internode messaging that parts are written in (`MessagingService.VERSION_40`).
const VERSION: i32 = 12;

fn batches(schema: &Schema) -> Result<Arc<Table>, StorageError> {
    let table = schema.table("system", "batches").cloned();
    table.ok_or_else(|| StorageError::Encode("system.batches is missing".into()))
}

/// The row of a batch. The paths of the list `mutations` are `paths`, in order.
fn record(
    table: &Arc<Table>,
    id: &[u8; 16],
    parts: &[&[u8]],
    timestamp: i64,
    path: &dyn Fn() -> [u8; 16],
) -> Mutation {
    let mut row = RowBuilder::new();
    row.start_row(ClusteringRef::EMPTY);
    row.liveness(Liveness::new(timestamp));
    if let Some(version) = table.column("version") {
        row.cell(CellRef::live(version.index, None, timestamp, &VERSION.to_be_bytes()));
    }
    if let Some(mutations) = table.column("mutations") {
        for part in parts {
            row.cell(CellRef::live(mutations.index, Some(&path()), timestamp, part));
        }
    }
    let mut scratch = RowBuilder::new();
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), id);
    update.add(row.finish_row(&table.layout), &mut scratch);
    Mutation::new(update.finish(&mut scratch))
}

/// Parts as they are kept.
pub(crate) fn encoded<'m>(
    parts: impl Iterator<Item = &'m Mutation>,
) -> Result<Vec<Arc<[u8]>>, StorageError> {
    parts.map(encoded_one).collect()
}

/// The deletion of a batch.
fn removal(table: &Arc<Table>, id: &[u8], timestamp: i64) -> Mutation {
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), id);
    update.delete_partition(Deletion::new(timestamp, timestamp / 1_000_000));
    Mutation::new(update.finish(&mut RowBuilder::new()))
}

/// What is kept in `system.batches`.
pub(crate) struct BatchLog {
    shard: Rc<ShardContext>,
    writes: Rc<LocalWrites>,
}

impl BatchLog {
    pub fn new(shard: &Rc<ShardContext>, writes: &Rc<LocalWrites>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), writes: Rc::clone(writes) })
    }

    /// Applies a logged batch: all of it even where its client stops waiting, and what the node
    /// does not get to at its next start.
    pub async fn apply(
        self: &Rc<Self>,
        parts: Vec<(bool, Mutation)>,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), StorageError> {
        let (done, result) = oneshot();
        let (this, trace) = (Rc::clone(self), trace.clone());
        self.shard.env.spawn(STATEMENT, async move {
            // nobody waits any more: it is done all the same
            let _ = done.send(this.log_and_apply(parts, &trace).await);
        });
        match self.shard.env.timeout_at(deadline, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(StorageError::Deadline),
        }
    }

    async fn log_and_apply(
        self: &Rc<Self>,
        parts: Vec<(bool, Mutation)>,
        trace: &Trace,
    ) -> Result<(), StorageError> {
        if self.shard.env.planted("batch_torn_between_shards") {
            return self.writes.apply_all(parts, trace).await;
        }
        let table = batches(&self.shard.schema())?;
        let id = self.shard.time_uuid();
        let timestamp = self.shard.env.unique_micros();
        trace.note(&self.shard.env, || "Writing the batch log".to_owned());
        let encoded = encoded(parts.iter().map(|(_, part)| part))?;
        let encoded: Vec<&[u8]> = encoded.iter().map(AsRef::as_ref).collect();
        let record = record(&table, &id, &encoded, timestamp, &|| self.shard.time_uuid());
        internal::apply(&self.shard.engine, record).await?;
        if self.shard.engine.acknowledges_early() {
            // Each shard has a log of its own: a part must not become durable before the record
            // does.
            internal::sync_owner(&self.shard.engine, &id).await?;
        }
        let owners: BTreeSet<usize> =
            parts.iter().map(|(_, part)| self.shard.engine.owner(part.token())).collect();
        self.writes.apply_all(parts, trace).await?;
        let removal = removal(&table, &id, self.shard.env.unique_micros());
        let engine = Rc::clone(&self.shard.engine);
        self.shard.env.spawn(STATEMENT, async move {
            // What stays is applied again at the next start, which changes nothing.
            let _ = remove(&engine, &owners, removal).await;
        });
        Ok(())
    }

    /// Keeps a batch for another node, which says when it is to go. Its mutations stay as they were
    /// written.
    pub async fn keep(
        &self,
        id: [u8; 16],
        created: i64,
        parts: &[&[u8]],
    ) -> Result<(), StorageError> {
        let table = batches(&self.shard.schema())?;
        let record = record(&table, &id, parts, created, &|| self.shard.time_uuid());
        internal::apply(&self.shard.engine, record).await
    }

    /// The batches that are kept here, less what was truncated since.
    pub async fn kept(&self, truncated: &TruncatedAt) -> Result<Vec<Kept>, StorageError> {
        let kept = kept_batches(&self.shard.engine, truncated).await?;
        let unread = kept.iter().map(|batch| batch.unread).sum();
        self.shard.unread_parts.add(unread);
        Ok(kept)
    }

    /// Forgets a batch that was kept for another node.
    pub async fn forget(&self, id: [u8; 16]) -> Result<(), StorageError> {
        let table = batches(&self.shard.schema())?;
        let removal = removal(&table, &id, self.shard.env.unique_micros());
        internal::apply(&self.shard.engine, removal).await
    }
}

/// Removes a batch, once the logs of these shards have its parts.
async fn remove(
    engine: &Rc<Engine>,
    owners: &BTreeSet<usize>,
    removal: Mutation,
) -> Result<(), StorageError> {
    if engine.acknowledges_early() {
        for owner in owners {
            internal::sync_shard(engine, *owner).await?;
        }
    }
    internal::apply(engine, removal).await
}

/// When tables were truncated last, in milliseconds since 1970.
pub(crate) type TruncatedAt = BTreeMap<TableId, i64>;

/// A part without what a truncation after its batch has emptied; `None` if nothing is left.
fn since_truncations(part: Mutation, written_at: i64, truncated: &TruncatedAt) -> Option<Mutation> {
    let mut left: Option<Mutation> = None;
    for update in part.into_updates() {
        if truncated.get(&TableId(update.table)).is_some_and(|at| written_at <= *at) {
            continue;
        }
        match &mut left {
            None => left = Some(Mutation::new(update)),
            // updates of one mutation are of one key and of different tables
            Some(left) => drop(left.push(update)),
        }
    }
    left
}

/// Is a batch this node's own? Then who gave its id gave the paths of its parts too.
fn is_own(id: types::Uuid, path: Option<&[u8]>) -> bool {
    let node = |bytes: [u8; 16]| bytes.last_chunk::<8>().copied();
    let path = path.and_then(types::Uuid::from_value).map(types::Uuid::to_bytes);
    node(id.to_bytes()) == path.and_then(node)
}

/// A batch that is kept.
pub(crate) struct Kept {
    pub id: [u8; 16],
    /// Milliseconds since 1970.
    pub written_at: i64,
    /// Was it made here?
    pub is_own: bool,
    /// Parts that can no longer be read, since their table is gone, are not among them, nor those
    /// of tables that were truncated since.
    pub parts: Vec<Mutation>,
    /// How many cannot be read though their table is there.
    pub unread: u64,
}

async fn kept_batches(
    engine: &Rc<Engine>,
    truncated: &TruncatedAt,
) -> Result<Vec<Kept>, StorageError> {
    let schema = engine.schema();
    let table = batches(&schema)?;
    let layout_of =
        |id: &[u8; 16]| schema.table_by_id(&TableId(*id)).map(|table| Arc::clone(&table.layout));
    let mutations = table.column("mutations").map(|column| column.index);
    let mut decoder = MutationDecoder::new();
    let mut kept = Vec::new();
    for batch in internal::read_all(engine, &table).await? {
        let Some(id) = types::Uuid::from_value(batch.key()) else { continue };
        let written_at = id.unix_millis().unwrap_or(i64::MAX);
        let cells = batch.updates().iter().flat_map(|update| update.rows.iter());
        let cells = cells.flat_map(|row| row.cells());
        let cells =
            cells.filter(|cell| Some(cell.column) == mutations && cell.kind == CellKind::Live);
        let mut path = None;
        let (mut parts, mut unread) = (Vec::new(), 0);
        for cell in cells {
            path = path.or(cell.path);
            match decoder.mutation(&mut Reader::new(cell.value), &layout_of) {
                Ok(part) => parts.extend(since_truncations(part, written_at, truncated)),
                Err(CodecError { problem: Problem::UnknownTable(_), .. }) => {}
                Err(_) => unread += 1,
            }
        }
        if path.is_some() {
            let is_own = is_own(id, path);
            kept.push(Kept { id: id.to_bytes(), written_at, is_own, parts, unread });
        }
    }
    Ok(kept)
}

/// Applies what the last run of a node that was alone left in its batch log. Where there are
/// others, parts are theirs too: they are written once the node is a part of the ring.
///
/// # Errors
/// If the log cannot be read, or a part not be applied.
pub(crate) async fn replay(
    engine: &Rc<Engine>,
    truncated: &TruncatedAt,
) -> Result<usize, StorageError> {
    let schema = engine.schema();
    let table = batches(&schema)?;
    if let Some(peers) = schema.table("system", "peers_v2")
        && !internal::read_all(engine, peers).await?.is_empty()
    {
        return Ok(0);
    }
    let all = (0..engine.shards().count()).collect();
    let mut batches = kept_batches(engine, truncated).await?;
    // one that is kept for another node is of partitions that others have, too: it stays until
    // those got it
    batches.retain(|batch| batch.is_own);
    let count = batches.len();
    for Kept { id, parts, .. } in batches {
        for part in parts {
            internal::apply(engine, part).await?;
        }
        engine.env().mark("batch.replayed");
        let removal = removal(&table, &id, engine.env().unique_micros());
        remove(engine, &all, removal).await?;
    }
    Ok(count)
}
