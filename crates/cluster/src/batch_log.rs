//! The batch log: a logged batch is durable in `system.batches` before any part of it is applied, and goes from there
//! once all are (`batchlog.BatchlogManager`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use env::sync::oneshot;
use rows::codec::{MutationDecoder, MutationEncoder};
use rows::{CellKind, CellRef, Mutation, RowBuilder, UpdateBuilder};
use rows::{ClusteringRef, Deletion, Liveness};
use schema::{Schema, Table, TableId};
use storage::{Engine, StorageError, Trace};
use types::Reader;

use crate::coordinator::{Coordinator, STATEMENT};
use crate::internal;

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

fn encoded(parts: &[(bool, Mutation)]) -> Result<Vec<Vec<u8>>, StorageError> {
    let mut encoder = MutationEncoder::new();
    let one = |(_, part): &(bool, Mutation)| {
        let mut bytes = Vec::new();
        let encoded = encoder.mutation(part, &mut bytes);
        encoded.map(|()| bytes).map_err(|error| StorageError::Encode(error.to_string()))
    };
    parts.iter().map(one).collect()
}

/// The deletion of a batch.
fn removal(table: &Arc<Table>, id: &[u8], timestamp: i64) -> Mutation {
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), id);
    update.delete_partition(Deletion::new(timestamp, timestamp / 1_000_000));
    Mutation::new(update.finish(&mut RowBuilder::new()))
}

impl Coordinator {
    /// Applies a logged batch: all of it even where its client stops waiting, and what the node does not get to at
    /// its next start.
    pub(crate) async fn apply_logged(
        self: &Rc<Self>,
        parts: Vec<(bool, Mutation)>,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), StorageError> {
        let (done, result) = oneshot();
        let (coordinator, trace) = (Rc::clone(self), trace.clone());
        self.env.spawn(STATEMENT, async move {
            // nobody waits any more: it is done all the same
            let _ = done.send(coordinator.log_and_apply(parts, &trace).await);
        });
        match self.env.timeout_at(deadline, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(StorageError::Deadline),
        }
    }

    async fn log_and_apply(
        self: &Rc<Self>,
        parts: Vec<(bool, Mutation)>,
        trace: &Trace,
    ) -> Result<(), StorageError> {
        if self.env.planted("batch_torn_between_shards") {
            return self.apply_all(parts, trace).await;
        }
        let table = batches(&self.schema())?;
        let id = self.time_uuid();
        let timestamp = self.env.unique_micros();
        trace.note(&self.env, || "Writing the batch log".to_owned());
        let encoded = encoded(&parts)?;
        let encoded: Vec<&[u8]> = encoded.iter().map(Vec::as_slice).collect();
        let record = record(&table, &id, &encoded, timestamp, &|| self.time_uuid());
        internal::apply(&self.engine, record).await?;
        if self.engine.acknowledges_early() {
            // Each shard has a log of its own: a part must not become durable before the record does.
            internal::sync_owner(&self.engine, &id).await?;
        }
        let owners: BTreeSet<usize> =
            parts.iter().map(|(_, part)| self.engine.owner(part.token())).collect();
        self.apply_all(parts, trace).await?;
        let removal = removal(&table, &id, self.env.unique_micros());
        let engine = Rc::clone(&self.engine);
        self.env.spawn(STATEMENT, async move {
            // What stays is applied again at the next start, which changes nothing.
            let _ = remove(&engine, &owners, removal).await;
        });
        Ok(())
    }
}

impl Coordinator {
    /// Keeps a batch for another node, which says when it is to go. Its mutations stay as they were written.
    pub(crate) async fn keep_batch(
        &self,
        id: [u8; 16],
        created: i64,
        parts: &[&[u8]],
    ) -> Result<(), StorageError> {
        let table = batches(&self.schema())?;
        let record = record(&table, &id, parts, created, &|| self.time_uuid());
        internal::apply(&self.engine, record).await
    }

    /// Forgets a batch that was kept for another node.
    pub(crate) async fn forget_batch(&self, id: [u8; 16]) -> Result<(), StorageError> {
        let table = batches(&self.schema())?;
        let removal = removal(&table, &id, self.env.unique_micros());
        internal::apply(&self.engine, removal).await
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

/// Is a batch this node's own? Then who gave its id gave the paths of its parts too. One that is kept for another node is
/// of partitions that others have, too: it stays until those got it.
fn is_own(id: Option<types::Uuid>, path: Option<&[u8]>) -> bool {
    let node = |bytes: [u8; 16]| bytes.last_chunk::<8>().copied();
    let path = path.and_then(types::Uuid::from_value).map(types::Uuid::to_bytes);
    id.map(types::Uuid::to_bytes).and_then(node) == path.and_then(node)
}

/// Applies what the last run of the node left in the batch log of its own batches. Parts that can no longer be read, since their table
/// is gone, are left out, and those of tables that were truncated since.
///
/// # Errors
/// If the log cannot be read, or a part not be applied.
pub(crate) async fn replay(
    engine: &Rc<Engine>,
    truncated: &TruncatedAt,
) -> Result<usize, StorageError> {
    let schema = engine.schema();
    let table = batches(&schema)?;
    let layout_of =
        |id: &[u8; 16]| schema.table_by_id(&TableId(*id)).map(|table| Arc::clone(&table.layout));
    let mut decoder = MutationDecoder::new();
    let mut replayed = Vec::new();
    for batch in internal::read_all(engine, &table).await? {
        let mut parts = Vec::new();
        let id = types::Uuid::from_value(batch.key());
        let mut path = None;
        for update in batch.updates() {
            let mutations = table.column("mutations").map(|column| column.index);
            let cells = update.rows.iter().flat_map(|row| row.cells());
            let cells =
                cells.filter(|cell| Some(cell.column) == mutations && cell.kind == CellKind::Live);
            parts.extend(cells.filter_map(|cell| {
                path = path.take().or(cell.path.map(<[u8]>::to_vec));
                decoder.mutation(&mut Reader::new(cell.value), &layout_of).ok()
            }));
        }
        if parts.is_empty() || !is_own(id, path.as_deref()) {
            continue;
        }
        let written_at = id.and_then(types::Uuid::unix_millis).unwrap_or(i64::MAX);
        for part in parts {
            if let Some(part) = since_truncations(part, written_at, truncated) {
                internal::apply(engine, part).await?;
            }
        }
        engine.env().mark("batch.replayed");
        replayed.push(batch.key().to_vec());
    }
    let all = (0..engine.shards().count()).collect();
    for batch in &replayed {
        let removal = removal(&table, batch, engine.env().unique_micros());
        remove(engine, &all, removal).await?;
    }
    Ok(replayed.len())
}
