//! Updates as mutations: each goes to this node alone, or over the ring, and a logged batch by way
//! of the batch log.
//!
//! A keyspace that this node has for itself is checked against the level and written here
//! (`local_writes`). For all others `ring_write` sends the mutation to the replicas of a plan. A
//! logged batch goes by `batch_log`, or by `ring_batch` if other nodes have a part of it.

use std::rc::Rc;

use protocol::{Consistency, ErrorResponse, WriteType};
use rows::{Mutation, PartitionUpdate};
use schema::{Schema, TableId};
use storage::StorageError;
use types::Few;

use crate::answer::write_error;
use crate::batch_log::BatchLog;
use crate::counters::Counters;
use crate::levels::check_replicas;
use crate::local_writes::LocalWrites;
use crate::peers::Peers;
use crate::request::Request;
use crate::ring_batch::{Parts, RingBatches};
use crate::ring_write::{RingWrite, RingWrites};
use crate::shard_context::ShardContext;

/// Applies mutations, wherever they go.
pub(crate) struct Mutations {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    local: Rc<LocalWrites>,
    counters: Rc<Counters>,
    batch_log: Rc<BatchLog>,
    ring: Rc<RingWrites>,
    batches: Rc<RingBatches>,
}

impl Mutations {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        local: &Rc<LocalWrites>,
        counters: &Rc<Counters>,
        batch_log: &Rc<BatchLog>,
        ring: &Rc<RingWrites>,
        batches: &Rc<RingBatches>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            local: Rc::clone(local),
            counters: Rc::clone(counters),
            batch_log: Rc::clone(batch_log),
            ring: Rc::clone(ring),
            batches: Rc::clone(batches),
        })
    }

    /// Applies what a statement or a batch comes to, and waits for as many acknowledgements as its
    /// level asks for.
    pub async fn apply(
        self: &Rc<Self>,
        updates: Few<PartitionUpdate>,
        needs_log: bool,
        write_type: WriteType,
        deadline: env::Instant,
        request: &Request<'_>,
    ) -> Result<(), ErrorResponse> {
        let consistency = request.options.consistency;
        let schema = self.shard.schema();
        let mutations = mutations(&schema, updates);
        let mut all = mutations.iter().flat_map(|(_, mutation)| mutation.updates());
        let counts = all.any(|update| update.layout.counter);
        let (here, over) = self.where_to(&schema, mutations, consistency)?;
        let count = here.len() + over.len();
        if needs_log || count > 1 || !over.is_empty() {
            // one that is alone, and this node's, is refused as a whole where it is logged
            let over = over.iter().map(|write| &write.mutation);
            for mutation in here.iter().map(|(_, mutation)| mutation).chain(over) {
                let checked = self.shard.engine.check_size(mutation);
                checked.map_err(|error| write_error(&error, consistency, write_type))?;
            }
        }
        let trace = request.trace();
        trace.note(&self.shard.env, || "Determining replicas for mutation".to_owned());
        if needs_log && !over.is_empty() {
            let parts = Parts { over, here: here.into(), level: consistency };
            return Box::pin(self.batches.write(parts, deadline, trace)).await;
        }
        if !here.is_empty() {
            let run = async {
                match needs_log {
                    _ if counts => {
                        Box::pin(self.counters.apply_counters(here.into(), deadline, trace)).await
                    }
                    true => Box::pin(self.batch_log.apply(here.into(), deadline, trace)).await,
                    false => self.local.apply_all(here, trace).await,
                }
            };
            let ended = self.shard.env.timeout_at(deadline, std::pin::pin!(run)).await;
            ended.unwrap_or(Err(StorageError::Deadline)).map_err(|error| {
                self.shard.engine.inspect(&error);
                write_error(&error, consistency, write_type)
            })?;
        }
        match counts {
            _ if over.is_empty() => Ok(()),
            true => Box::pin(self.ring.count_over_ring(over, deadline, trace)).await,
            false => {
                let one = if count > 1 { WriteType::UnloggedBatch } else { WriteType::Simple };
                self.ring.write_over_ring(over, one, deadline, trace).await
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
                    check_replicas(keyspace, consistency, &self.shard.identity.data_center, false)?;
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
