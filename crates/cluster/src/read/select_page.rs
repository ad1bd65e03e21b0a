//! One page of a SELECT: planned, run, finished.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cql::CqlError;
use cql::select::{Aggregation, PageRequest, Read, Select, Target};
use env::Instant;
use protocol::{Consistency, ErrorResponse, ResultMetadata};
use rows::Clustering;
use storage::{PartitionKey, StorageError};

use crate::answer::{Page, cql_error, invalid, read_error};
use crate::binding::Now;
use crate::paging::{paging_state, position};
use crate::paxos::quorum_of;
use crate::read::Reads;
use crate::read::limits::{Size, Warnings};
use crate::read::page::Merged;
use crate::read::shard::{Aggregate, Over, ReadError, Task};
use crate::request::Request;
use crate::ring_read::RingRead;
use crate::scanned::{Thresholds, unpaged_bytes_max};
use crate::scope::Scope;
use crate::values::Bound as Bindings;

/// A page ends early at this many bytes of cells, where the client asked for pages.
pub(super) const PAGE_BYTES_MAX: usize = 4 << 20;

/// A page that a client asked for.
pub(super) struct SelectPage<'a> {
    pub reads: &'a Rc<Reads>,
    pub select: &'a Arc<Select>,
    pub values: &'a Bindings<'a>,
    pub metadata: &'a Arc<ResultMetadata>,
    pub request: &'a Request<'a>,
    pub now: Now,
    /// What the client is warned of, also beside an error.
    pub warnings: Warnings,
}

/// What is read for it.
pub(super) struct Planned {
    task: Task,
    /// The replicas, where it goes over the ring.
    scope: Option<Scope>,
    deadline: Instant,
    /// The last row that the client has.
    before: Option<Clustering>,
    /// Do paging states name the partition? That must not change from page to page.
    resumed_by_key: bool,
}

impl Planned {
    /// Does it go over a range of the ring, not over partitions by key?
    pub fn is_range(&self) -> bool {
        matches!(self.task.read.target, Target::Range { .. })
    }
}

impl SelectPage<'_> {
    fn consistency(&self) -> Consistency {
        self.request.options.consistency
    }

    /// Binds it, and finds out who is asked.
    pub fn plan(&mut self) -> Result<Planned, ErrorResponse> {
        let (reads, request, consistency) = (self.reads, self.request, self.consistency());
        let table = self.select.table();
        request.guarded(|guard| guard.read_level(consistency.name()))?;
        if consistency == Consistency::Any {
            return Err(invalid("ANY ConsistencyLevel is only supported for writes"));
        }
        if let Some(rows) = request.options.rows_per_page() {
            request.guarded(|guard| guard.page_size(&table.name, rows as usize))?;
        }
        let state = request.options.paging_state;
        let after = state.map(|state| position(&state, table)).transpose()?;
        let page = PageRequest { size: request.options.rows_per_page(), after };
        let read = self.bind(&page)?;
        if read.filter.as_ref().is_some_and(|filter| filter.is_mutable_intersection()) {
            reads.guardrails.guard_intersection(&table.keyspace, request)?;
        }
        if self.select.uses_index() {
            reads.requests.index_scans.inc();
        }
        let scope = reads.check_read(&read, table, consistency)?;
        let timeouts = reads.shard.timeouts();
        let timeout = match &read.target {
            Target::Keys(_) => timeouts.read,
            Target::Range { .. } => timeouts.range,
        };
        let timeout = read.timeout_nanos.map_or(timeout, Duration::from_nanos);
        Ok(Planned {
            deadline: request.deadline.min(reads.shard.env.now() + timeout),
            before: page.after.and_then(|after| after.row),
            resumed_by_key: state.is_some_and(|state| state.partition_key.is_some()),
            task: self.task(read, scope.is_some()),
            scope,
        })
    }

    fn bind(&mut self, page: &PageRequest<'_>) -> Result<Read, ErrorResponse> {
        let select = self.select;
        let bind = |bind: cql::Bind<'_>| select.bind(&bind, page);
        let read = self.reads.binder.with_bind(self.values, self.request, &self.now, bind);
        // Cassandra warns of an aggregation before it finds that it cannot page
        if matches!(read, Ok(_) | Err(CqlError::CannotPage)) {
            self.warnings.first.extend(select.aggregation_warning().map(str::to_owned));
        }
        read.map_err(cql_error)
    }

    fn task(&self, read: Read, is_over_ring: bool) -> Task {
        let config = &self.reads.shard.config;
        let is_paged = read.page_size.is_some();
        Task {
            select: Arc::clone(self.select),
            version: self.request.version.number(),
            now_millis: self.now.millis,
            bytes_max: if is_paged { PAGE_BYTES_MAX } else { unpaged_bytes_max(config) },
            aggregate: match is_over_ring {
                true => Aggregate::InOrder,
                false => self.reads.aggregate(self.select, &read),
            },
            // replicas look at what they go over themselves
            thresholds: match is_over_ring {
                true => Thresholds::NONE,
                false => Thresholds::of(config, self.select.table()),
            },
            trace: self.request.trace().clone(),
            read: Arc::new(read),
        }
    }

    /// Reads it.
    pub async fn run(
        &mut self,
        planned: &mut Planned,
    ) -> Result<(Merged, Option<Aggregation>), ErrorResponse> {
        let (reads, consistency) = (self.reads, self.consistency());
        let (scope, task, deadline) = (planned.scope.take(), &planned.task, planned.deadline);
        if consistency.is_serial()
            && let Target::Keys(keys) = &task.read.target
            && let [key] = keys.as_slice()
        {
            let key = PartitionKey { token: key.token, bytes: key.bytes.clone() };
            let (table, trace) = (self.select.table(), self.request.trace());
            let round = reads.paxos.serial_round(table, key, consistency, deadline, trace);
            Box::pin(round).await?;
        }
        let level = if consistency.is_serial() { quorum_of(consistency) } else { consistency };
        let ring =
            scope.map(|scope| RingRead::new(&reads.ring_reads, scope, task, level, deadline));
        // stays where it is: moving it would cost more than much of what it does
        let run = std::pin::pin!(reads.run_read(task, ring.as_ref()));
        let ran = reads.shard.env.timeout_at(deadline, run).await;
        ring.iter().for_each(|ring| self.warnings.of_ring(task, ring));
        match ran {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(ReadError::Cql(error))) => Err(cql_error(error)),
            Ok(Err(ReadError::Ring(error))) => Err(error),
            Ok(Err(ReadError::Storage(error))) => {
                reads.shard.engine.inspect(&error);
                Err(read_error(&error, consistency))
            }
            Ok(Err(ReadError::Over(over))) => {
                Err(reads.aborted(&over, task, consistency, &mut self.warnings))
            }
            Err(_) => Err(read_error(&StorageError::Deadline, consistency)),
        }
    }

    /// Makes the answer of what was read.
    pub fn finish(
        &mut self,
        planned: &Planned,
        merged: Merged,
        aggregation: Option<Aggregation>,
    ) -> Result<Page, ErrorResponse> {
        self.check_scanned(&planned.task, &merged)?;
        let columns = self.metadata.column_count();
        if let Some(aggregation) = aggregation {
            let cells = self.finish_aggregation(&planned.task, &aggregation)?;
            self.check_size(|| Size::of_row(&cells, columns))?;
            let metadata = Arc::clone(self.metadata);
            return Ok(Page { metadata, rows: 1, cells, paging_state: None });
        }
        let Planned { task: Task { read, bytes_max, .. }, before, resumed_by_key, .. } = planned;
        let (table, is_paged) = (self.select.table(), read.page_size.is_some());
        if !is_paged && merged.cells.len() + merged.left_out.1 >= *bytes_max {
            return Err(self.reads.unpaged_too_large(table, *bytes_max, self.consistency()));
        }
        self.check_size(|| Size::of(&merged, columns))?;
        let last = merged.last.as_ref().filter(|_| is_paged && merged.full);
        let paging_state = last.and_then(|last| {
            let names_key =
                *resumed_by_key || matches!(&read.target, Target::Keys(keys) if keys.len() > 1);
            let version = self.request.version;
            paging_state(read, table, last, merged.rows, names_key, before.as_ref(), version)
        });
        let metadata = Arc::clone(self.metadata);
        Ok(Page { metadata, rows: merged.rows, cells: merged.cells, paging_state })
    }

    /// Warns of tombstones and sizes that it went over; an error where these are too many.
    fn check_scanned(&mut self, task: &Task, merged: &Merged) -> Result<(), ErrorResponse> {
        for (key, scanned) in merged.commands(&task.read, self.select.is_aggregate()) {
            if let Some(excess) = task.thresholds.excess(scanned) {
                let over = Over { excess, key: Some(key), place: 0, scanned, before: Vec::new() };
                let consistency = self.consistency();
                return Err(self.reads.aborted(&over, task, consistency, &mut self.warnings));
            }
            self.warnings.of_command(task, &key, scanned);
        }
        Ok(())
    }

    fn finish_aggregation(
        &self,
        task: &Task,
        aggregation: &Aggregation,
    ) -> Result<Vec<u8>, ErrorResponse> {
        let mut cells = Vec::new();
        let finished = task.with_bind(&self.reads.shard.engine, |bind| {
            self.select.finish(aggregation, &task.read, bind, &mut cells)
        });
        finished.map(|()| cells).map_err(cql_error)
    }

    /// `coordinator_read_size_*`.
    fn check_size(&mut self, size: impl FnOnce() -> Size) -> Result<(), ErrorResponse> {
        let Some(sizes) = self.reads.shard.config.read_sizes else { return Ok(()) };
        let Self { reads, select, values, request, now, .. } = self;
        let of = || reads.restricted_to(select, values, request, now);
        let consistency = request.options.consistency;
        reads.check_size(size(), sizes, select.table(), of, consistency, &mut self.warnings)
    }
}
