//! Writes: updates bound, and applied on the shards that own their keys.
//!
//! The coordinator binds a statement once. A statement that reads first, or has conditions, becomes
//! a bound modification with the values of all its terms.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use cql::ast::BatchKind;
use cql::modify::{
    Batch, BatchUpdates, Before, BoundModify, CellContext, Modify, Part, finish_bound, finish_parts,
};
use protocol::{Consistency, ErrorResponse, WriteType};
use rows::{ClusteringRef, PartitionUpdate, RowRef};
use schema::TableId;
use storage::{Engine, Measure, PartitionKey, StorageError};
use types::Few;

use crate::answer::{Answer, Outcome, cql_error, invalid};
use crate::binding::{BatchPart, Binder, Now};
use crate::counters::check_consistency;
use crate::guardrails::Guardrails;
use crate::local_writes::read_rows;
use crate::mutations::Mutations;
use crate::paxos::Paxos;
use crate::request::Request;
use crate::request_metrics::{Batches, ClientRequests};
use crate::ring_read::RingReads;
use crate::shard_context::{STATEMENT, ShardContext};
use crate::values::Bound;
use metrics::Registry;

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

/// Writes for clients: statements bound, and what they come to applied.
pub(crate) struct Writes {
    shard: Rc<ShardContext>,
    mutations: Rc<Mutations>,
    ring_reads: Rc<RingReads>,
    paxos: Rc<Paxos>,
    binder: Rc<Binder>,
    guardrails: Rc<Guardrails>,
    requests: Rc<ClientRequests>,
    batches: Batches,
}

impl Writes {
    pub fn new(
        shard: &Rc<ShardContext>,
        mutations: &Rc<Mutations>,
        (ring_reads, paxos): (&Rc<RingReads>, &Rc<Paxos>),
        (binder, guardrails): (&Rc<Binder>, &Rc<Guardrails>),
        requests: &Rc<ClientRequests>,
        registry: &Registry,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            mutations: Rc::clone(mutations),
            ring_reads: Rc::clone(ring_reads),
            paxos: Rc::clone(paxos),
            binder: Rc::clone(binder),
            guardrails: Rc::clone(guardrails),
            requests: Rc::clone(requests),
            batches: Batches::new(registry),
        })
    }

    /// INSERT, UPDATE, DELETE.
    pub async fn modify(
        self: &Rc<Self>,
        modify: &Arc<Modify>,
        values: &Bound<'_>,
        request: &Request<'_>,
    ) -> Outcome {
        if modify.is_conditional() {
            return self.paxos.cas(&[(modify, values)], false, request).await;
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
        self.guardrails.guard_disk(request)?;
        let now = self.binder.now(request);
        let updates = if modify.needs_read() {
            let bound = self.binder.with_bind(values, request, &now, |bind| modify.bind(bind));
            let bound = bound.map_err(cql_error)?;
            let before = self.read_before(&bound, request).await?;
            self.binder.with_cells(request, |cells| bound.updates(cells, &before))
        } else {
            self.binder.with_bind(values, request, &now, |bind| modify.updates(bind))
        };
        let updates = updates.map_err(cql_error)?;
        Ok(Write { updates: updates.updates, warnings: updates.warnings, needs_log: false })
    }

    /// BATCH as a statement.
    pub async fn batch_statement(
        self: &Rc<Self>,
        batch: &Batch,
        values: &Bound<'_>,
        request: &Request<'_>,
    ) -> Outcome {
        if let Err(refused) =
            request.guard_write().and_then(|()| self.guardrails.guard_disk(request))
        {
            return refused.into();
        }
        let parts = || batch.statements().iter().map(|modify| (modify, values)).collect::<Vec<_>>();
        if batch.is_conditional() {
            return self.paxos.cas(&parts(), true, request).await;
        }
        if batch.statements().iter().any(|modify| modify.needs_read()) {
            let mut now = self.binder.now(request);
            let timestamp =
                self.binder.with_bind(values, request, &now, |bind| batch.timestamp(&bind));
            match timestamp {
                Ok(timestamp) => now.timestamp = timestamp,
                Err(error) => return cql_error(error).into(),
            }
            return self.run_batch(batch.kind(), &parts(), request, now).await;
        }
        let now = self.binder.now(request);
        let bound = self.binder.with_bind(values, request, &now, |bind| batch.updates(bind));
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
    pub async fn run_batch(
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
            let bound =
                self.binder.with_parts(parts, request, now, |parts| finish_parts(kind, &parts));
            return bound.map(Write::from).map_err(cql_error);
        }
        let bind = |parts: Vec<Part<'_>>| {
            parts.into_iter().map(|part| part.modify.bind(part.bind)).collect::<Result<Vec<_>, _>>()
        };
        let parts = self.binder.with_parts(parts, request, now, bind).map_err(cql_error)?;
        let mut befores = Vec::with_capacity(parts.len());
        for part in &parts {
            befores.push(self.read_before(part, request).await?);
        }
        let before: Vec<&dyn Before> = befores.iter().map(|rows| rows as &dyn Before).collect();
        let finish = |cells: CellContext<'_>| {
            finish_bound(kind, &parts, &before, cells, self.binder.limits())
        };
        self.binder.with_cells(request, finish).map(Write::from).map_err(cql_error)
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
        let started = self.shard.env.now();
        let tables: Few<TableId> = updates.iter().map(|update| TableId(update.table)).collect();
        let deadline = self.write_deadline(write_type, request, started);
        let result = self.mutations.apply(updates, needs_log, write_type, deadline, request).await;
        let took = self.shard.env.now().since(started);
        self.requests.write.ended(took, result.as_ref().err());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        for table in tables {
            self.shard.engine.measured(table, &[(Measure::CoordinatorWrite, micros)]);
        }
        Outcome::new(result.map(|()| Answer::Void), warnings)
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
        request
            .trace()
            .note(&self.shard.env, || "Reading existing values before the write".to_owned());
        let mut read = ReadRows::default();
        let table = bound.modify().table();
        for key in first.keys {
            let partition = PartitionKey::new(key.as_slice());
            if let Some(stored) =
                self.ring_reads.read_ring_rows(table, &partition, &first.rows, request).await?
            {
                read.0.push((key, stored.0, stored.1));
                continue;
            }
            let (id, rows) = (table.id, first.rows.clone());
            let shard = self.shard.engine.owner(partition.token);
            let run = move |engine: Rc<Engine>| read_rows(engine, id, partition, rows);
            let result = self.shard.engine.shards().call_async(shard, STATEMENT, run).await;
            let result = result.map_err(StorageError::from).and_then(|result| result);
            let (static_row, rows) =
                result
                    .inspect_err(|error| self.shard.engine.inspect(error))
                    .map_err(|error| crate::answer::read_error(&error, consistency))?;
            read.0.push((key, static_row, rows));
        }
        Ok(read)
    }
}

/// The kind that errors of a batch name.
fn batch_write_type(kind: cql::ast::BatchKind) -> WriteType {
    match kind {
        cql::ast::BatchKind::Logged => WriteType::Batch,
        cql::ast::BatchKind::Unlogged => WriteType::UnloggedBatch,
        cql::ast::BatchKind::Counter => WriteType::Counter,
    }
}

fn refuse_serial(consistency: Consistency) -> Result<(), ErrorResponse> {
    if consistency.is_serial() {
        return Err(invalid("You must use conditional updates for serializable writes"));
    }
    Ok(())
}
