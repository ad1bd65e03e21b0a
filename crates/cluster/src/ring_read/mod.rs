//! Reads of what other nodes have, too (`StorageProxy.read`): replicas give rows, as many as the
//! level asks for, and what they agree on goes the way that rows of this node go: filtered,
//! projected, grouped here.
//!
//! Rows come in stretches: one ends where the limits of the request cut an answer of a replica, and
//! beyond it nothing is known of that one. So what is merged is never short: where more is wanted,
//! the next stretch is asked for from there.
//!
//! A read at ONE or LOCAL_ONE of keys that this node has does not go over the ring. A table with
//! `speculative_retry = 'ALWAYS'` is the exception.

mod asked;
mod key;
mod range;
mod told;

pub(crate) use key::KeyRows;
pub(crate) use range::Scan;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cql::select::{RowFilter, Target};
use env::Instant;
use internode::payload::read::{
    ColumnFilter, Columns, Limits, ReadCommand, RowChoice, RowsOf, Target as Wanted,
};
use metrics::Registry;
use protocol::{Consistency, ErrorResponse};
use rows::codec::ColumnSet;
use rows::{Bound, BoundKind, Clustering, Unfiltered, compare_clusterings};
use schema::{RetryCombination, SpeculativeRetry, Table};
use storage::{Measure, PartitionKey, Trace};
use types::Few;

use crate::dynamic_snitch::DynamicSnitch;
use crate::local_writes::{LocalWrites, Stored};
use crate::peers::Peers;
use crate::read::shard::{PartitionRows, ReadError, Task};
use crate::replica_read::ReplicaReads;
use crate::request::Request;
use crate::request_metrics::{ReadRepairs, micros};
use crate::scanned::Thresholds;
use crate::scope::Scope;
use crate::shard_context::ShardContext;
use told::Told;

/// Rows that are asked for at once at the most.
const ROWS_AT_ONCE: u32 = 5_000;
/// Where those were too large for an answer, this part of them is asked for.
const FEWER: u32 = 8;
/// This part of the time that a read may take is waited before another replica is asked, while no
/// read of the table was measured.
const UNKNOWN_PATIENCE_DIVISOR: u32 = 2;

/// A read over the ring: what is the same of all its requests.
pub(crate) struct RingRead {
    pub reads: Rc<RingReads>,
    pub scope: Scope,
    pub table: Arc<Table>,
    pub level: Consistency,
    pub deadline: Instant,
    pub trace: Trace,
    columns: ColumnFilter,
    now: i32,
    reversed: bool,
    distinct: bool,
    /// Is every row that a replica counts one of the result?
    counts_as_they_do: bool,
    /// Rows that are asked for at once at the most.
    at_once: Cell<u32>,
    /// Did a replica say that what it was asked for is too large?
    is_too_large: Cell<bool>,
    /// What it is for; none of a write's or a round's own.
    task: Option<Task>,
    /// What replicas may go over.
    pub thresholds: Thresholds,
    /// What they say that they went over, of a partition or of a range.
    told: RefCell<BTreeMap<Option<PartitionKey>, Told>>,
}

impl RingRead {
    pub fn new(
        reads: &Rc<RingReads>,
        scope: Scope,
        task: &Task,
        level: Consistency,
        deadline: Instant,
    ) -> Rc<Self> {
        let (select, read, table) = (&task.select, &task.read, task.table());
        Rc::new(Self {
            reads: Rc::clone(reads),
            scope,
            table: Arc::clone(table),
            level,
            deadline,
            trace: task.trace.clone(),
            columns: columns(table, select.fetched()),
            now: i32::try_from(read.now_seconds).unwrap_or(i32::MAX),
            reversed: read.reversed,
            distinct: select.is_distinct(),
            counts_as_they_do: read.filter.is_none()
                && !select.is_grouped()
                && !select.is_aggregate()
                && !select.is_strict(),
            at_once: Cell::new(ROWS_AT_ONCE),
            is_too_large: Cell::default(),
            task: Some(task.clone()),
            thresholds: Thresholds::of(&reads.shard.config, table),
            told: RefCell::default(),
        })
    }

    /// What replicas said that they went over.
    pub fn told(&self) -> BTreeMap<Option<PartitionKey>, Told> {
        self.told.take()
    }

    /// So many rows, if that is known to be enough.
    fn limits(&self, wanted: u32, per_partition: u32) -> Limits {
        let at_once = self.at_once.get();
        let (rows, per_partition) = match self.counts_as_they_do {
            true => (wanted.min(at_once), per_partition),
            false => (at_once, if self.distinct { per_partition } else { u32::MAX }),
        };
        let int = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        Limits { distinct: self.distinct, ..Limits::of_rows(int(rows), int(per_partition)) }
    }

    /// Is it worth asking again for fewer rows, since a replica had too much to say?
    fn asks_for_fewer(&self) -> bool {
        let at_once = self.at_once.get();
        let is_worth = self.is_too_large.take() && at_once > 1;
        self.at_once.set(if is_worth { (at_once / FEWER).max(1) } else { at_once });
        is_worth
    }

    fn command(&self, limits: Limits, target: Wanted) -> Arc<ReadCommand> {
        Arc::new(ReadCommand {
            table: self.table.id.0,
            digest: None,
            accepts_transient: false,
            needs_reconciliation: false,
            now: self.now,
            columns: self.columns.clone(),
            // what one replica has still and another has changed passes at the one: whether a row
            // does is known once they agree
            filter: Vec::new(),
            limits,
            index: None,
            target,
        })
    }

    /// How long the first that are asked may take, where another one may be asked
    /// (`ColumnFamilyStore.sampleReadLatencyMicros`).
    fn patience(&self) -> Option<Duration> {
        let shard = &self.reads.shard;
        let store = shard.engine.store(self.table.id).ok();
        let taken = store.as_ref().and_then(|of| of.stats.measure(Measure::CoordinatorRead));
        let quantile = |percentile: f64| {
            let micros = taken.as_ref()?.distribution().quantile(percentile / 100.0);
            (micros > 0).then(|| Duration::from_micros(micros))
        };
        let millis = |millis: i32| Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        // nothing is known of a table that nobody has read
        let at_first = shard.timeouts().read / UNKNOWN_PATIENCE_DIVISOR;
        match self.table.params.speculative_retry {
            SpeculativeRetry::Never | SpeculativeRetry::Always => None,
            SpeculativeRetry::Fixed(after) => Some(millis(after)),
            SpeculativeRetry::Percentile(percentile) => {
                Some(quantile(percentile).unwrap_or(at_first))
            }
            SpeculativeRetry::Hybrid { combination, percentile, millis: after } => {
                let Some(taken) = quantile(percentile) else { return Some(at_first) };
                Some(match combination {
                    RetryCombination::Min => taken.min(millis(after)),
                    RetryCombination::Max => taken.max(millis(after)),
                })
            }
        }
    }
}

/// The columns whose values are wanted; the others are fetched without, since rows live by them.
fn columns(table: &Table, fetched: &cql::select::Fetched) -> ColumnFilter {
    let set = |is_static, columns: &[u16]| {
        ColumnSet::of(&table.layout, is_static, columns.iter().copied())
    };
    let queried =
        Columns { statics: set(true, &fetched.statics), regulars: set(false, &fetched.regulars) };
    let all = Columns::all(table);
    if queried == all {
        return ColumnFilter::all(table);
    }
    let known = Columns { statics: queried.statics.clone(), regulars: all.regulars };
    ColumnFilter::some(known, false, queried)
}

/// The rows of a filter, as they are asked for.
pub(crate) fn rows_of(filter: &RowFilter, reversed: bool) -> RowsOf {
    let choice = match filter {
        RowFilter::Slices(slices) => {
            RowChoice::Slices(slices.iter().map(|(a, b)| (a.clone(), b.clone())).collect())
        }
        RowFilter::Names(names) => RowChoice::Names(names.to_vec()),
    };
    RowsOf { reversed, choice }
}

/// What of rows comes after one of them in the direction of reading; none if nothing does.
fn rows_after(table: &Table, rows: &RowsOf, last: &Clustering) -> Option<RowsOf> {
    let (layout, reversed) = (&*table.layout, rows.reversed);
    let choice = match &rows.choice {
        RowChoice::Names(names) => {
            let comes = |name: &&Clustering| {
                let order = compare_clusterings(layout, name.as_ref(), last.as_ref());
                if reversed { order.is_lt() } else { order.is_gt() }
            };
            let left: Vec<_> = names.iter().filter(comes).cloned().collect();
            (!left.is_empty()).then_some(RowChoice::Names(left))
        }
        RowChoice::Slices(slices) => {
            let order = |a: &Bound, b: &Bound| rows::compare(layout, a.as_ref(), b.as_ref());
            let kind = if reversed { BoundKind::ExclEnd } else { BoundKind::ExclStart };
            let from = Bound::new(kind, last.clone());
            let cut = |(start, end): &(Bound, Bound)| match reversed {
                false if order(start, &from).is_lt() => (from.clone(), end.clone()),
                true if order(end, &from).is_gt() => (start.clone(), from.clone()),
                _ => (start.clone(), end.clone()),
            };
            let left = slices.iter().map(cut).filter(|(start, end)| order(start, end).is_lt());
            let left: Vec<_> = left.collect();
            (!left.is_empty()).then_some(RowChoice::Slices(left))
        }
    };
    choice.map(|choice| RowsOf { reversed, choice })
}

/// A partition as what is read.
fn only(key: &PartitionKey) -> Target {
    let key = cql::select::PartitionKey { token: key.token, bytes: key.bytes.clone() };
    Target::Keys(Few::one(key))
}

/// Reads what other nodes have, too.
pub(crate) struct RingReads {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    snitch: Rc<DynamicSnitch>,
    own: Rc<ReplicaReads>,
    writes: Rc<LocalWrites>,
    repairs: ReadRepairs,
}

impl RingReads {
    pub fn new(
        shard: &Rc<ShardContext>,
        peers: &Rc<Peers>,
        snitch: &Rc<DynamicSnitch>,
        own: &Rc<ReplicaReads>,
        writes: &Rc<LocalWrites>,
        registry: &Registry,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            snitch: Rc::clone(snitch),
            own: Rc::clone(own),
            writes: Rc::clone(writes),
            repairs: ReadRepairs::new(registry),
        })
    }

    /// Some rows of a partition, and its static one, as replicas agree on them at a request's
    /// level; none if nobody else is to be asked.
    pub async fn read_ring_rows(
        self: &Rc<Self>,
        table: &Arc<Table>,
        key: &PartitionKey,
        rows: &[Clustering],
        request: &Request<'_>,
    ) -> Result<Option<Stored>, ErrorResponse> {
        let level = request.options.consistency;
        let schema = self.shard.schema();
        let Some(keyspace) = schema.keyspace(&table.keyspace) else { return Ok(None) };
        let scope = self.peers.scope(keyspace)?;
        let scope = scope.filter(|scope| self.asks_others(scope, table, &only(key), level));
        let Some(scope) = scope else { return Ok(None) };
        let trace = request.trace();
        let mut found = self.open_rows(scope, table, key, Some(rows), level, trace).await?;
        let mut stored: Stored = (found.static_row(), Vec::new());
        loop {
            match found.next().await {
                Ok(Some(Unfiltered::Row(row))) => stored.1.push(row.as_packed().to_vec()),
                Ok(Some(Unfiltered::Marker(_))) => {}
                Ok(None) => return Ok(Some(stored)),
                Err(ReadError::Ring(error)) => return Err(error),
                Err(_) => return Err(ErrorResponse::read_failure(level, 0, 1, false, &[])),
            }
        }
    }

    /// Rows of a partition for a round of Paxos; all of it for none. None if nobody else has it.
    pub async fn see_over_ring(
        self: &Rc<Self>,
        table: &Arc<Table>,
        key: &PartitionKey,
        rows: Option<&[Clustering]>,
        level: Consistency,
        trace: &Trace,
    ) -> Result<Option<KeyRows>, ErrorResponse> {
        let schema = self.shard.schema();
        let Some(keyspace) = schema.keyspace(&table.keyspace) else { return Ok(None) };
        let Some(scope) = self.peers.scope(keyspace)? else { return Ok(None) };
        self.open_rows(scope, table, key, rows, level, trace).await.map(Some)
    }

    async fn open_rows(
        self: &Rc<Self>,
        scope: Scope,
        table: &Arc<Table>,
        key: &PartitionKey,
        rows: Option<&[Clustering]>,
        level: Consistency,
        trace: &Trace,
    ) -> Result<KeyRows, ErrorResponse> {
        let read = Rc::new(RingRead {
            reads: Rc::clone(self),
            scope,
            table: Arc::clone(table),
            level,
            deadline: self.shard.env.now() + self.shard.timeouts().read,
            trace: trace.clone(),
            columns: ColumnFilter::all(table),
            now: i32::try_from(self.shard.env.unix_micros() / 1_000_000).unwrap_or(i32::MAX),
            reversed: false,
            distinct: false,
            counts_as_they_do: true,
            at_once: Cell::new(ROWS_AT_ONCE),
            is_too_large: Cell::default(),
            task: None,
            thresholds: Thresholds::NONE,
            told: RefCell::default(),
        });
        let filter = rows.map_or(RowFilter::all(), |rows| RowFilter::Names(rows.to_vec().into()));
        let started = self.shard.env.now();
        let most = ROWS_AT_ONCE;
        let opened = KeyRows::open(&read, key.clone(), rows_of(&filter, false), most, u32::MAX);
        let opened = opened.await;
        // these tell how long replicas take, like the reads of clients
        let took = micros(self.shard.env.now().since(started));
        self.shard.engine.measured(table.id, &[(Measure::CoordinatorRead, took)]);
        opened
    }

    /// Does a read go over the ring? Not if this node has all that is wanted, and the level asks
    /// for no more than one.
    pub fn asks_others(
        &self,
        scope: &Scope,
        table: &Table,
        target: &Target,
        level: Consistency,
    ) -> bool {
        let is_one = matches!(level, Consistency::One | Consistency::LocalOne);
        let local = scope.ring.local();
        let is_here = |key: &cql::select::PartitionKey| {
            scope.placement.at(key.token).natural.contains(&local)
        };
        let has_all = match target {
            Target::Keys(keys) => keys.iter().all(is_here),
            Target::Range { .. } => false,
        };
        let may_ask_one = is_one || self.shard.env.planted("ring_reads_own_only");
        let is_always = table.params.speculative_retry == SpeculativeRetry::Always;
        !may_ask_one || !has_all || is_always
    }
}
