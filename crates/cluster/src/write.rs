//! Writes: updates bound, and applied on the shards that own their keys.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use cql::ast::BatchKind;
use cql::modify::{
    Batch, BatchUpdates, Before, BoundModify, CellContext, Modify, Part, finish_bound, finish_parts,
};
use protocol::{Consistency, ErrorResponse, WriteType};
use rows::{ClusteringRef, Mutation, PartitionUpdate, RowRef};
use schema::{Schema, TableId};
use storage::{Engine, Measure, PartitionKey, StorageError};
use types::Few;

use crate::answer::{Answer, Outcome, cql_error, invalid, write_error};
use crate::binding::{BatchPart, Now};
use crate::coordinator::{Coordinator, Request, STATEMENT, batch_write_type, check_replicas};
use crate::counters::check_consistency;
use crate::local_writes::read_rows;
use crate::ring_batch::Parts;
use crate::ring_write::RingWrite;
use crate::values::Bound;

/// Rows that were read before a write that depends on them.
#[derive(Default)]
struct ReadRows(Vec<ReadPartition>);

/// Of one partition: its key, its static row and its rows, packed.
type ReadPartition = (Vec<u8>, Option<Vec<u8>>, Vec<Vec<u8>>);

impl Before for ReadRows {
    fn row(&self, key: &[u8], clustering: Option<ClusteringRef<'_>>) -> Option<RowRef<'_>> {
        let (_, static_row, rows) = self.0.iter().find(|(of, ..)| of == key)?;
        let Some(clustering) = clustering else {
            return static_row.as_deref().map(RowRef::from_packed);
        };
        let mut rows = rows.iter().map(|row| RowRef::from_packed(row));
        rows.find(|row| row.clustering().as_packed() == clustering.as_packed())
    }
}

/// What a write came to before it is applied.
struct Write {
    updates: Few<PartitionUpdate>,
    warnings: Vec<String>,
    needs_log: bool,
}

impl From<BatchUpdates> for Write {
    fn from(bound: BatchUpdates) -> Self {
        let BatchUpdates { updates, warnings, needs_log } = bound;
        Self { updates: updates.into(), warnings, needs_log }
    }
}

impl Coordinator {
    /// INSERT, UPDATE, DELETE.
    pub(crate) async fn modify(
        self: &Rc<Self>,
        modify: &Arc<Modify>,
        values: &Bound<'_>,
        request: &Request<'_>,
    ) -> Outcome {
        if modify.is_conditional() {
            return self.cas(&[(modify, values)], false, request).await;
        }
        let level = request.options.consistency;
        // Cassandra asks this of a single statement only
        let allowed = match modify.table().is_counter() {
            true => check_consistency(level, &modify.table().name),
            false => refuse_serial(level),
        };
        if let Err(refused) = allowed {
            self.requests.write.ended(std::time::Duration::ZERO, Some(&refused));
            return refused.into();
        }
        let bound = self.bind_modify(modify, values, request).await;
        let is_counter = modify.table().is_counter();
        let write_type = if is_counter { WriteType::Counter } else { WriteType::Simple };
        self.write(bound, write_type, request).await
    }

    async fn bind_modify(
        self: &Rc<Self>,
        modify: &Arc<Modify>,
        values: &Bound<'_>,
        request: &Request<'_>,
    ) -> Result<Write, ErrorResponse> {
        request.guard_write()?;
        self.guard_disk(request)?;
        let now = self.now(request.options);
        let updates = if modify.needs_read() {
            let bound = self.with_bind(values, request, &now, |bind| modify.bind(bind));
            let bound = bound.map_err(cql_error)?;
            let before = self.read_before(&bound, request).await?;
            self.with_cells(request, |cells| bound.updates(cells, &before))
        } else {
            self.with_bind(values, request, &now, |bind| modify.updates(bind))
        };
        let updates = updates.map_err(cql_error)?;
        Ok(Write { updates: updates.updates, warnings: updates.warnings, needs_log: false })
    }

    /// BATCH as a statement.
    pub(crate) async fn batch_statement(
        self: &Rc<Self>,
        batch: &Batch,
        values: &Bound<'_>,
        request: &Request<'_>,
    ) -> Outcome {
        if let Err(refused) = request.guard_write().and_then(|()| self.guard_disk(request)) {
            return refused.into();
        }
        let parts = || batch.statements().iter().map(|modify| (modify, values)).collect::<Vec<_>>();
        if batch.is_conditional() {
            return self.cas(&parts(), true, request).await;
        }
        if batch.statements().iter().any(|modify| modify.needs_read()) {
            let mut now = self.now(request.options);
            let timestamp = self.with_bind(values, request, &now, |bind| batch.timestamp(&bind));
            match timestamp {
                Ok(timestamp) => now.timestamp = timestamp,
                Err(error) => return cql_error(error).into(),
            }
            return self.run_batch(batch.kind(), &parts(), request, now).await;
        }
        let now = self.now(request.options);
        let bound = self.with_bind(values, request, &now, |bind| batch.updates(bind));
        let bound = bound.map(Write::from).map_err(cql_error);
        self.count_batch(batch.kind(), &bound);
        self.write(bound, batch_write_type(batch.kind()), request).await
    }

    /// Counts how many partitions a batch is of.
    fn count_batch(&self, kind: BatchKind, bound: &Result<Write, ErrorResponse>) {
        let Ok(Write { updates, .. }) = bound else { return };
        let keys: BTreeSet<&[u8]> = updates.iter().map(|update| &*update.key).collect();
        self.batches.of(kind).record(keys.len() as u64);
    }

    /// The parts of a batch, each with its own values.
    pub(crate) async fn run_batch(
        self: &Rc<Self>,
        kind: BatchKind,
        parts: &[BatchPart<'_>],
        request: &Request<'_>,
        now: Now,
    ) -> Outcome {
        let bound = self.bind_parts(kind, parts, request, &now).await;
        self.count_batch(kind, &bound);
        self.write(bound, batch_write_type(kind), request).await
    }

    async fn bind_parts(
        self: &Rc<Self>,
        kind: BatchKind,
        parts: &[BatchPart<'_>],
        request: &Request<'_>,
        now: &Now,
    ) -> Result<Write, ErrorResponse> {
        if !parts.iter().any(|(modify, _)| modify.needs_read()) {
            let bound = self.with_parts(parts, request, now, |parts| finish_parts(kind, &parts));
            return bound.map(Write::from).map_err(cql_error);
        }
        let bind = |parts: Vec<Part<'_>>| {
            parts.into_iter().map(|part| part.modify.bind(part.bind)).collect::<Result<Vec<_>, _>>()
        };
        let parts = self.with_parts(parts, request, now, bind).map_err(cql_error)?;
        let mut befores = Vec::with_capacity(parts.len());
        for part in &parts {
            befores.push(self.read_before(part, request).await?);
        }
        let before: Vec<&dyn Before> = befores.iter().map(|rows| rows as &dyn Before).collect();
        let finish =
            |cells: CellContext<'_>| finish_bound(kind, &parts, &before, cells, &self.limits);
        self.with_cells(request, finish).map(Write::from).map_err(cql_error)
    }

    async fn write(
        self: &Rc<Self>,
        bound: Result<Write, ErrorResponse>,
        write_type: WriteType,
        request: &Request<'_>,
    ) -> Outcome {
        let Write { updates, warnings, needs_log } = match bound {
            Ok(bound) => bound,
            Err(error) => return error.into(),
        };
        let started = self.env.now();
        let tables: Few<TableId> = updates.iter().map(|update| TableId(update.table)).collect();
        let deadline = self.write_deadline(write_type, request, started);
        let result = self.apply(updates, needs_log, write_type, deadline, request).await;
        let took = self.env.now().since(started);
        self.requests.write.ended(took, result.as_ref().err());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        for table in tables {
            self.engine.measured(table, &[(Measure::CoordinatorWrite, micros)]);
        }
        Outcome::new(result.map(|()| Answer::Void), warnings)
    }

    async fn apply(
        self: &Rc<Self>,
        updates: Few<PartitionUpdate>,
        needs_log: bool,
        write_type: WriteType,
        deadline: env::Instant,
        request: &Request<'_>,
    ) -> Result<(), ErrorResponse> {
        let consistency = request.options.consistency;
        let schema = self.schema();
        let mutations = mutations(&schema, updates);
        let mut all = mutations.iter().flat_map(|(_, mutation)| mutation.updates());
        let counts = all.any(|update| update.layout.counter);
        let (here, over) = self.where_to(&schema, mutations, consistency)?;
        let count = here.len() + over.len();
        if needs_log || count > 1 || !over.is_empty() {
            // one that is alone, and this node's, is refused as a whole where it is logged
            let over = over.iter().map(|write| &write.mutation);
            for mutation in here.iter().map(|(_, mutation)| mutation).chain(over) {
                let checked = self.engine.check_size(mutation);
                checked.map_err(|error| write_error(&error, consistency, write_type))?;
            }
        }
        let trace = request.trace();
        trace.note(&self.env, || "Determining replicas for mutation".to_owned());
        if needs_log && !over.is_empty() {
            let parts = Parts { over, here: here.into(), level: consistency };
            return Box::pin(self.ring_batches.write(parts, deadline, trace)).await;
        }
        if !here.is_empty() {
            let run = async {
                match needs_log {
                    _ if counts => {
                        Box::pin(self.counters.apply_counters(here.into(), deadline, trace)).await
                    }
                    true => Box::pin(self.batch_log.apply(here.into(), deadline, trace)).await,
                    false => self.local_writes.apply_all(here, trace).await,
                }
            };
            let ended = self.env.timeout_at(deadline, std::pin::pin!(run)).await;
            ended.unwrap_or(Err(StorageError::Deadline)).map_err(|error| {
                self.engine.inspect(&error);
                write_error(&error, consistency, write_type)
            })?;
        }
        match counts {
            _ if over.is_empty() => Ok(()),
            true => Box::pin(self.ring_writes.count_over_ring(over, deadline, trace)).await,
            false => {
                let one = if count > 1 { WriteType::UnloggedBatch } else { WriteType::Simple };
                self.ring_writes.write_over_ring(over, one, deadline, trace).await
            }
        }
    }

    /// Which mutations are this node's alone, and who else has the others.
    fn where_to(
        &self,
        schema: &Schema,
        mutations: Few<(&str, Mutation)>,
        consistency: Consistency,
    ) -> Result<(Few<(bool, Mutation)>, Vec<RingWrite>), ErrorResponse> {
        let (mut here, mut over) = (Few::with_capacity(mutations.len()), Vec::new());
        for (keyspace, mutation) in mutations {
            let Some(keyspace) = schema.keyspace(keyspace) else {
                here.push((true, mutation));
                continue;
            };
            let is_durable = keyspace.durable_writes;
            match self.peers.scope(keyspace)? {
                None => {
                    check_replicas(keyspace, consistency, &self.identity.data_center, false)?;
                    here.push((is_durable, mutation));
                }
                Some(scope) => {
                    let plan = scope.write_plan(mutation.token(), consistency)?;
                    let made_at = self.shard.unix_millis();
                    over.push(RingWrite { scope, plan, mutation, is_durable, made_at });
                }
            }
        }
        Ok((here, over))
    }

    fn write_deadline(
        &self,
        write_type: WriteType,
        request: &Request<'_>,
        started: env::Instant,
    ) -> env::Instant {
        let timeouts = self.shard.timeouts();
        let timeout = match write_type {
            WriteType::Counter => timeouts.counter_write,
            _ => timeouts.write,
        };
        request.deadline.min(started + timeout)
    }

    /// Reads the rows that a write on lists depends on.
    async fn read_before(
        self: &Rc<Self>,
        bound: &BoundModify,
        request: &Request<'_>,
    ) -> Result<ReadRows, ErrorResponse> {
        let Some(first) = bound.read_first() else { return Ok(ReadRows::default()) };
        let consistency = request.options.consistency;
        if consistency == Consistency::Any {
            return Err(invalid(
                "Write operation require a read but consistency ANY is not supported on reads",
            ));
        }
        request.trace().note(&self.env, || "Reading existing values before the write".to_owned());
        let mut read = ReadRows::default();
        let table = bound.modify().table();
        for key in first.keys {
            let partition = PartitionKey::new(key.as_slice());
            if let Some(stored) =
                self.read_ring_rows(table, &partition, &first.rows, request).await?
            {
                read.0.push((key, stored.0, stored.1));
                continue;
            }
            let (id, rows) = (table.id, first.rows.clone());
            let shard = self.engine.owner(partition.token);
            let run = move |engine: Rc<Engine>| read_rows(engine, id, partition, rows);
            let result = self.engine.shards().call_async(shard, STATEMENT, run).await;
            let result = result.map_err(StorageError::from).and_then(|result| result);
            let (static_row, rows) = result
                .inspect_err(|error| self.engine.inspect(error))
                .map_err(|error| crate::answer::read_error(&error, consistency))?;
            read.0.push((key, static_row, rows));
        }
        Ok(read)
    }
}

/// Updates of one keyspace and key as one mutation, with the keyspace.
fn mutations(schema: &Schema, updates: Few<PartitionUpdate>) -> Few<(&str, Mutation)> {
    let mut mutations: Few<(&str, Mutation)> = Few::with_capacity(updates.len());
    for update in updates {
        let table = schema.table_by_id(&TableId(update.table));
        let keyspace = table.map_or("", |table| table.keyspace.as_str());
        let mut update = Some(update);
        for (of, mutation) in &mut mutations {
            if *of == keyspace
                && let Some(taken) = update.take()
                && let Err(back) = mutation.push(taken)
            {
                update = Some(*back);
            }
        }
        if let Some(update) = update {
            mutations.push((keyspace, Mutation::new(update)));
        }
    }
    mutations
}

fn refuse_serial(consistency: Consistency) -> Result<(), ErrorResponse> {
    if consistency.is_serial() {
        return Err(invalid("You must use conditional updates for serializable writes"));
    }
    Ok(())
}
