//! Reads: plans run on the shards that own the partitions, rows projected there, pages put together
//! here.
//!
//! A task goes to each shard that owns wanted keys, at most one a shard and round. The shard merges
//! memtables and SSTables and writes live rows as protocol cells. The coordinator puts the blocks
//! in order and cuts the page. Keys that this shard alone owns are read in place.

pub(crate) mod limits;
mod made_up;
mod over_ring;
mod page;
mod select_page;
pub(crate) mod shard;

use std::rc::Rc;
use std::sync::Arc;

use cql::select::{Aggregation, Read, Select, Target};
use protocol::{Consistency, ErrorResponse, ResultMetadata};
use rows::Clustering;
use schema::Table;
use storage::{Engine, Measure, PartitionKey, StorageError};
use types::Few;

use crate::answer::{Answer, Outcome, invalid};
use crate::binding::Binder;
use crate::guardrails::Guardrails;
use crate::levels::check_replicas;
use crate::paxos::{Paxos, quorum_of};
use crate::peers::Peers;
use crate::request::Request;
use crate::request_metrics::{ClientRequests, micros};
use crate::ring_read::{RingRead, RingReads};
use crate::scanned::WARNINGS_MAX;
use crate::scope::Scope;
use crate::shard_context::{STATEMENT, ShardContext};
use crate::values::Bound as Bindings;
use crate::virtual_tables::VirtualTables;
use limits::Warnings;
use made_up::{MadeUp, is_resumed, wanted};
use page::{Cut, Merged, clustering_of, cut, next_page};
use select_page::{PAGE_BYTES_MAX, SelectPage};
use shard::{
    Aggregate, Block, Noticed, Over, ReadError, Sink, Task, budget, merge, read_keys, read_range,
    read_rows,
};

/// Rows that are fetched at once for an aggregation that has to take them in order (Cassandra's
/// page size for its aggregations).
const AGGREGATION_PAGE_ROWS: u32 = 10_000;
/// So many blocks are put together without giving others a turn.
const BLOCKS_AT_ONCE: usize = 64;

/// What shards found, put together: blocks in order, and of an aggregation its pages with too many
/// tombstones.
type Gathered = (Few<(usize, Block)>, Option<Aggregation>, Vec<Noticed>);

/// Reads for clients: plans bound, run, and put together to pages.
pub(crate) struct Reads {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    ring_reads: Rc<RingReads>,
    paxos: Rc<Paxos>,
    binder: Rc<Binder>,
    guardrails: Rc<Guardrails>,
    virtual_tables: Rc<VirtualTables>,
    requests: Rc<ClientRequests>,
}

impl Reads {
    pub fn new(
        shard: &Rc<ShardContext>,
        peers: &Rc<Peers>,
        (ring_reads, paxos): (&Rc<RingReads>, &Rc<Paxos>),
        (binder, guardrails): (&Rc<Binder>, &Rc<Guardrails>),
        virtual_tables: &Rc<VirtualTables>,
        requests: &Rc<ClientRequests>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            ring_reads: Rc::clone(ring_reads),
            paxos: Rc::clone(paxos),
            binder: Rc::clone(binder),
            guardrails: Rc::clone(guardrails),
            virtual_tables: Rc::clone(virtual_tables),
            requests: Rc::clone(requests),
        })
    }

    /// SELECT.
    pub async fn select(
        self: &Rc<Self>,
        select: &Arc<Select>,
        values: &Bindings<'_>,
        metadata: &Arc<ResultMetadata>,
        request: &Request<'_>,
    ) -> Outcome {
        let started = self.shard.env.now();
        let now = self.binder.now(request);
        let warnings = Warnings::default();
        let mut page = SelectPage { reads: self, select, values, metadata, request, now, warnings };
        let planned = page.plan();
        let (kind, measure) = match &planned {
            Ok(planned) if planned.is_range() => (&self.requests.range, Measure::CoordinatorScan),
            _ => (&self.requests.read, Measure::CoordinatorRead),
        };
        let result = match planned {
            Ok(mut planned) => match page.run(&mut planned).await {
                Ok((merged, aggregation)) => page.finish(&planned, merged, aggregation),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let took = self.shard.env.now().since(started);
        kind.ended(took, result.as_ref().err());
        self.shard.engine.measured(select.table().id, &[(measure, micros(took))]);
        Outcome::new(result.map(Answer::Rows), page.warnings.all())
    }

    /// Can a read be served at its consistency level? Gives the replicas, where it goes over the
    /// ring.
    fn check_read(
        &self,
        read: &Read,
        table: &Table,
        consistency: Consistency,
    ) -> Result<Option<Scope>, ErrorResponse> {
        let keys = match &read.target {
            Target::Keys(keys) => Some(keys.len()),
            Target::Range { .. } => None,
        };
        // A serial read of a partition is one at quorum, after a round of Paxos.
        let consistency = match (consistency, keys) {
            (_, Some(0)) => return Ok(None),
            (Consistency::Serial | Consistency::LocalSerial, Some(1)) => quorum_of(consistency),
            (Consistency::Serial | Consistency::LocalSerial, Some(_)) => {
                return Err(invalid(
                    "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
                ));
            }
            _ => consistency,
        };
        let schema = self.shard.schema();
        let Some(keyspace) = schema.keyspace(&table.keyspace) else { return Ok(None) };
        let scope = if table.is_virtual() { None } else { self.peers.scope(keyspace)? };
        let Some(scope) = scope else {
            check_replicas(keyspace, consistency, &self.shard.identity.data_center, true)?;
            return Ok(None);
        };
        let asks_others = self.ring_reads.asks_others(&scope, table, &read.target, consistency);
        Ok(asks_others.then_some(scope))
    }

    /// How an aggregation takes its rows in.
    fn aggregate(&self, select: &Select, read: &Read) -> Aggregate {
        let one_owner = match &read.target {
            _ if !select.is_aggregate() => true,
            _ if select.table().is_virtual() || self.shard.env.shards() == 1 => true,
            Target::Range { .. } => false,
            Target::Keys(keys) => {
                let mut owners = keys.iter().map(|key| self.shard.engine.owner(key.token));
                let first = owners.next();
                owners.all(|owner| Some(owner) == first)
            }
        };
        match one_owner {
            true => Aggregate::Whole,
            false if select.merges() => Aggregate::Parts,
            false => Aggregate::InOrder,
        }
    }

    async fn run_read(
        self: &Rc<Self>,
        task: &Task,
        ring: Option<&Rc<RingRead>>,
    ) -> Result<(Merged, Option<Aggregation>), ReadError> {
        if task.select.is_aggregate() && task.aggregate == Aggregate::InOrder {
            return Box::pin(self.aggregate_in_order(task, ring)).await;
        }
        let table = task.table();
        if table.is_virtual() {
            return Box::pin(self.read_virtual(task)).await;
        }
        let (mut blocks, aggregation, noticed) = self.gather(task, ring).await?;
        let mut merged = match blocks.len() > BLOCKS_AT_ONCE && task.select.post_order().is_none() {
            true => Box::pin(self.in_order_with_turns(task, blocks)).await,
            false => self.in_order(task, &mut blocks),
        };
        if aggregation.is_some() {
            merged.scanned = noticed;
        }
        Ok((merged, aggregation))
    }

    /// Fetches what an aggregation takes of the rows page after page, in the order of the ring, and
    /// takes it in here.
    async fn aggregate_in_order(
        self: &Rc<Self>,
        task: &Task,
        ring: Option<&Rc<RingRead>>,
    ) -> Result<(Merged, Option<Aggregation>), ReadError> {
        let mut aggregation = task.select.begin();
        let mut read = Read::clone(&task.read);
        let mut scanned = Vec::new();
        read.page_size = Some(AGGREGATION_PAGE_ROWS);
        loop {
            let page =
                Task { read: Arc::new(read.clone()), bytes_max: PAGE_BYTES_MAX, ..task.clone() };
            let (blocks, ..) = self.gather(&page, ring).await?;
            let merged = cut(blocks, &page);
            let over = |(_, one): &Noticed| task.thresholds.warns(*one);
            scanned.extend(merged.commands(&page.read, false).into_iter().filter(over));
            scanned.truncate(WARNINGS_MAX);
            let mut cells = merged.cells.as_slice();
            for _ in 0..merged.rows {
                task.select.aggregate_inputs(&mut aggregation, &mut cells)?;
                self.shard.env.maybe_yield().await;
            }
            let (Some(last), true) = (merged.last, merged.full) else { break };
            let Some(next) = next_page(read, &last, task.table())? else { break };
            read = next;
        }
        Ok((Merged { scanned, ..Merged::default() }, Some(aggregation)))
    }

    fn in_order(&self, task: &Task, blocks: &mut Few<(usize, Block)>) -> Merged {
        let read = &task.read;
        match task.select.post_order() {
            None => {
                let merged = cut(std::mem::take(blocks), task);
                self.planted_loss(merged)
            }
            Some(order) => {
                let table = task.table();
                let mut rows: Vec<(Clustering, usize, std::ops::Range<usize>)> = Vec::new();
                for (n, (_, block)) in blocks.iter().enumerate() {
                    let mut start = (0, 0);
                    for row in &block.rows {
                        let mark = clustering_of(&block.marks[start.1..row.mark]);
                        rows.push((mark, n, start.0..row.cells));
                        start = (row.cells, row.mark);
                    }
                }
                rows.sort_by(|a, b| order.compare(table, a.0.as_ref(), b.0.as_ref()));
                let all = rows.len();
                rows.truncate(read.result_limit as usize);
                let mut cells = Vec::new();
                for (_, block, range) in &rows {
                    cells.extend_from_slice(&blocks[*block].1.cells[range.clone()]);
                }
                let read_bytes: usize = blocks.iter().map(|(_, block)| block.cells.len()).sum();
                let left_out = ((all - rows.len()) as u32, read_bytes - cells.len());
                let last_row = cells.len() - rows.last().map_or(0, |(.., range)| range.len());
                let rows = rows.len() as u32;
                let mut merged = Merged { cells, rows, last_row, left_out, ..Merged::default() };
                blocks.iter().for_each(|(_, block)| merged.scan(&block.key, block.scanned));
                merged
            }
        }
    }

    /// The same of very many blocks: others have their turn meanwhile.
    async fn in_order_with_turns(&self, task: &Task, blocks: Few<(usize, Block)>) -> Merged {
        let mut cut = Cut::new(&blocks, task);
        for (place, block) in blocks {
            self.shard.env.maybe_yield().await;
            if !cut.take(place, block) {
                break;
            }
        }
        self.planted_loss(cut.end())
    }

    fn planted_loss(&self, mut merged: Merged) -> Merged {
        if merged.full && self.shard.env.planted("paging_drops_row") {
            merged.cells.truncate(merged.last_row);
            merged.rows -= 1;
        }
        merged
    }

    /// What there is, wherever it is.
    async fn gather(
        self: &Rc<Self>,
        task: &Task,
        ring: Option<&Rc<RingRead>>,
    ) -> Result<Gathered, ReadError> {
        // what is not the commonest has its own memory: a future is moved, whole, with the largest
        // that may be in it
        match (&task.read.target, ring) {
            (Target::Keys(keys), None) => match self.only_here(keys) {
                true => self.read_keys_here(task, keys).await,
                false => Box::pin(self.read_all_keys(task, keys)).await,
            },
            (Target::Range { .. }, None) => Box::pin(self.read_all_shards(task)).await,
            (Target::Keys(keys), Some(ring)) => {
                Box::pin(self.read_ring_keys(task, ring, keys)).await
            }
            (Target::Range { .. }, Some(ring)) => Box::pin(self.read_ring_range(task, ring)).await,
        }
    }

    /// Has this shard all of the keys?
    fn only_here(&self, keys: &[cql::select::PartitionKey]) -> bool {
        let me = self.shard.env.shard();
        !keys.is_empty() && keys.iter().all(|key| self.shard.engine.owner(key.token) == me)
    }

    /// Reads keys of this shard: there is nothing to put together.
    async fn read_keys_here(
        &self,
        task: &Task,
        keys: &[cql::select::PartitionKey],
    ) -> Result<Gathered, ReadError> {
        let own = keys.iter().enumerate().map(|(place, key)| {
            self.shard.count_owner(self.shard.env.shard());
            (place, PartitionKey { token: key.token, bytes: key.bytes.clone() })
        });
        let part = read_keys(&self.shard.engine, task, own.collect()).await?;
        Ok((part.blocks, part.aggregation, part.noticed))
    }

    async fn read_all_keys(
        self: &Rc<Self>,
        task: &Task,
        keys: &[cql::select::PartitionKey],
    ) -> Result<Gathered, ReadError> {
        let mut by_shard: Few<(usize, Few<(usize, PartitionKey)>)> = Few::new();
        for (place, key) in keys.iter().enumerate() {
            let key = PartitionKey { token: key.token, bytes: key.bytes.clone() };
            let owner = self.shard.engine.owner(key.token);
            self.shard.count_owner(owner);
            match by_shard.iter_mut().find(|(shard, _)| *shard == owner) {
                Some((_, keys)) => keys.push((place, key)),
                None => by_shard.push((owner, Few::one((place, key)))),
            }
        }
        by_shard.sort_by_key(|(shard, _)| *shard);
        let mut found = Few::new();
        let (mut parts, mut remote) = (Few::new(), Vec::new());
        let mut aggregation = None;
        let mut noticed = Vec::new();
        for (shard, keys) in by_shard {
            if shard == self.shard.env.shard() {
                parts.push(read_keys(&self.shard.engine, task, keys).await);
                continue;
            }
            let (engine, task) = (Rc::clone(&self.shard.engine), task.clone());
            task.trace
                .note(&self.shard.env, || format!("Sending READ_REQ message to shard-{shard}"));
            remote.push(self.shard.env.spawn_task(STATEMENT, async move {
                let read = async move |engine: Rc<Engine>| read_keys(&engine, &task, keys).await;
                engine.shards().call_async(shard, STATEMENT, read).await
            }));
        }
        for result in remote {
            parts.push(result.await.map_err(StorageError::from)?);
        }
        let mut over: Option<Box<Over>> = None;
        for part in parts {
            match part {
                Ok(part) => {
                    found.extend(part.blocks);
                    noticed.extend(part.noticed);
                    merge(&mut aggregation, part.aggregation)?;
                }
                // the first partition that is too much is the one to tell of
                Err(ReadError::Over(one)) => match &over {
                    Some(first) if first.place < one.place => {}
                    _ => over = Some(one),
                },
                Err(error) => return Err(error),
            }
        }
        found.sort_by_key(|(place, _)| *place);
        if let Some(over) = over {
            return Err(ReadError::Over(over.after(&found)));
        }
        if aggregation.is_none() {
            // there was no key to read
            aggregation = task.aggregation();
        }
        Ok((found, aggregation, noticed))
    }

    async fn read_all_shards(self: &Rc<Self>, task: &Task) -> Result<Gathered, ReadError> {
        task.trace.note(&self.shard.env, || "Computing ranges to query".to_owned());
        let mut remote = Vec::new();
        for shard in (0..self.shard.env.shards()).filter(|shard| *shard != self.shard.env.shard()) {
            let task = task.clone();
            let engine = Rc::clone(&self.shard.engine);
            task.trace
                .note(&self.shard.env, || format!("Sending READ_REQ message to shard-{shard}"));
            remote.push(self.shard.env.spawn_task(STATEMENT, async move {
                let read = move |engine: Rc<Engine>| read_range(engine, task);
                engine.shards().call_async(shard, STATEMENT, read).await
            }));
        }
        let mut found = vec![read_range(Rc::clone(&self.shard.engine), task.clone()).await?];
        for result in remote {
            found.push(result.await.map_err(StorageError::from)??);
        }
        let mut aggregation = None;
        // A shard that stopped at the page's limit may have more partitions: what others found
        // after its last one waits for a later page.
        let bound = found
            .iter()
            .filter(|part| part.full)
            .filter_map(|part| part.blocks.last().and_then(|block| block.key.clone()));
        let bound = bound.min();
        let mut blocks = Vec::new();
        let mut noticed = Vec::new();
        for part in found {
            noticed.extend(part.noticed);
            merge(&mut aggregation, part.aggregation)?;
            blocks.extend(part.blocks);
        }
        blocks.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(bound) = bound {
            blocks.retain(|block| block.key.as_ref().is_some_and(|key| *key <= bound));
        }
        let blocks: Few<_> = blocks.into_iter().enumerate().collect();
        noticed.sort_by(|a, b| a.0.cmp(&b.0));
        Ok((blocks, aggregation, noticed))
    }

    /// Reads a virtual table: its partitions are made up here.
    async fn read_virtual(
        self: &Rc<Self>,
        task: &Task,
    ) -> Result<(Merged, Option<Aggregation>), ReadError> {
        let partitions = self.virtual_tables.partitions(task.table()).await?;
        let mut aggregation = task.aggregation();
        let mut budget = budget(task);
        let mut blocks = Few::new();
        let wanted = wanted(task.table(), &task.read.target, partitions);
        for (place, key, update) in wanted {
            let read = &task.read;
            let first = is_resumed(read, &key);
            let resumed = read.first_rows.as_ref().filter(|_| first);
            let filter = resumed.unwrap_or(&read.rows);
            let left = if first { read.first_limit } else { read.per_partition_limit };
            let block = Block::of(&key, left);
            let aggregation = aggregation.as_mut();
            let (engine, budget) = (&*self.shard.engine, &mut budget);
            let mut sink = Sink { task, engine, budget, aggregation, block, left, group: None };
            let mut rows = MadeUp::new(task.table(), &update, filter, read.reversed);
            read_rows(&mut sink, &key, &mut rows, resumed.is_some()).await?;
            sink.block.full = sink.left == 0 || sink.budget.is_spent();
            blocks.push((place, sink.block));
            if budget.is_spent() {
                break;
            }
        }
        Ok((self.in_order(task, &mut blocks), aggregation))
    }
}
