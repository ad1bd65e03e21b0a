//! Logged batches over a ring (`StorageProxy.mutateAtomically`, `BatchlogManager`): two other nodes
//! keep a batch before any part of it is written, and forget it once every part is where its level
//! wants it. Who keeps one for too long writes it itself.
//!
//! The first shard looks for batches that this node has had for too long.

use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use config::BatchlogEndpoints;
use env::Instant;
use env::sync::oneshot;
use internode::payload::Batch;
use internode::{Flags, Verb};
use metrics::Level;
use protocol::{Consistency, ErrorResponse, WriteType};
use ring::{BatchLogChoice, BatchLogPlan, Ring};
use rows::Mutation;
use storage::{StorageError, Trace};
use types::Uuid;

use crate::answer::write_error;
use crate::batch_log::{BatchLog, Kept, encoded};
use crate::boot::truncated_at;
use crate::dynamic_snitch::DynamicSnitch;
use crate::local_writes::LocalWrites;
use crate::peers::Peers;
use crate::ring_write::{RingWrite, RingWrites, Waiting};
use crate::shard_context::{STATEMENT, ShardContext};
use crate::traced::traced;

/// How often a node looks for batches that were kept for too long
/// (`BatchlogManager.BATCHLOG_REPLAY_INTERVAL`).
const REPLAY_INTERVAL: Duration = Duration::from_secs(10);
/// A batch is kept for too long after so many timeouts of a write
/// (`BatchlogManager.BATCHLOG_REPLAY_TIMEOUT`).
const REPLAY_TIMEOUTS: u32 = 2;

/// What a batch is to do.
pub(crate) struct Parts {
    /// Where other nodes have it, too.
    pub over: Vec<RingWrite>,
    /// What this node has for itself.
    pub here: Vec<(bool, Mutation)>,
    pub level: Consistency,
}

/// Writes logged batches to the replicas of their partitions.
pub(crate) struct RingBatches {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    log: Rc<BatchLog>,
    local: Rc<LocalWrites>,
    writes: Rc<RingWrites>,
    snitch: Rc<DynamicSnitch>,
}

impl RingBatches {
    pub fn new(
        shard: &Rc<ShardContext>,
        peers: &Rc<Peers>,
        log: &Rc<BatchLog>,
        local: &Rc<LocalWrites>,
        writes: &Rc<RingWrites>,
        snitch: &Rc<DynamicSnitch>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            log: Rc::clone(log),
            local: Rc::clone(local),
            writes: Rc::clone(writes),
            snitch: Rc::clone(snitch),
        })
    }

    /// Writes a logged batch: all of it even where its client stops waiting.
    pub async fn write(
        self: &Rc<Self>,
        parts: Parts,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), ErrorResponse> {
        let level = parts.level;
        let (done, result) = oneshot();
        let (this, trace) = (Rc::clone(self), trace.clone());
        self.shard.env.spawn(STATEMENT, async move {
            // nobody waits any more: it is done all the same
            let _ = done.send(this.keep_and_write(parts, deadline, &trace).await);
        });
        match self.shard.env.timeout_at(deadline, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => {
                Err(write_error(&StorageError::Deadline, level, WriteType::Batch))
            }
        }
    }

    async fn keep_and_write(
        self: &Rc<Self>,
        parts: Parts,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), ErrorResponse> {
        let Parts { over, here, level } = parts;
        let Some(first) = over.first() else { return Ok(()) };
        let ring = Arc::clone(&first.scope.ring);
        let is_any = level == Consistency::Any;
        let plan = {
            let mut random = self.shard.any_below();
            let choice = match self.shard.config.batchlog_endpoints {
                BatchlogEndpoints::RandomRemote => BatchLogChoice::RandomRemote,
                BatchlogEndpoints::PreferLocal => BatchLogChoice::PreferLocal,
                BatchlogEndpoints::DynamicRemote => BatchLogChoice::DynamicRemote,
                BatchlogEndpoints::Dynamic => BatchLogChoice::Dynamic,
            };
            let order = self.snitch.order(&self.shard.env);
            BatchLogPlan::new(&ring, is_any, choice, order.proximity(), &mut random)?
        };
        let id = Uuid::from_bytes(self.shard.time_uuid());
        let failed = |error: &StorageError| write_error(error, level, WriteType::Batch);
        let mutations = over.iter().map(|write| &write.mutation);
        let mutations = mutations.chain(here.iter().map(|(_, mutation)| mutation));
        let encoded = encoded(mutations).map_err(|error| failed(&error))?;
        trace.note(&self.shard.env, || "Writing the batch log".to_owned());
        let kept = self.have_batch_kept(&ring, &plan, id, &encoded, trace);
        kept.ended(&self.shard.env, deadline, plan.level(), WriteType::BatchLog).await?;
        self.local.apply_all(here, trace).await.map_err(|error| failed(&error))?;
        self.writes.write_over_ring(over, WriteType::Batch, deadline, trace).await?;
        self.have_batch_forgotten(&ring, &plan, id, trace);
        Ok(())
    }

    /// Gives a batch to those who keep it.
    fn have_batch_kept(
        self: &Rc<Self>,
        ring: &Arc<Ring>,
        plan: &BatchLogPlan,
        id: Uuid,
        parts: &[Arc<[u8]>],
        trace: &Trace,
    ) -> Rc<Waiting> {
        let waiting = Waiting::new(Arc::clone(ring), plan.acks(ring));
        let created = self.shard.env.unique_micros();
        let mutations: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        let mut payload = Vec::new();
        Batch { id, created, mutations }.write(&mut payload);
        let payload: Arc<[u8]> = payload.into();
        for node in plan.nodes() {
            let (waiting, node) = (Rc::clone(&waiting), *node);
            if node == ring.local() {
                let (this, parts) = (Rc::clone(self), parts.to_vec());
                self.shard.env.spawn(STATEMENT, async move {
                    let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
                    let kept = this.log.keep(id.to_bytes(), created, &parts).await;
                    waiting.ended_here(kept.map_err(|error| this.shard.reason_of(&error)));
                });
                continue;
            }
            let Some(messenger) = self.peers.messenger() else { continue };
            let to = ring.node(node).address;
            messenger.ask(
                to,
                Verb::BatchStoreReq,
                Flags::NONE,
                traced(trace),
                &payload,
                move |answer| {
                    waiting.heard(to, answer);
                },
            );
        }
        waiting
    }

    /// Lets those who keep a batch forget it. If they do not hear of it, they write it once more,
    /// which changes nothing.
    fn have_batch_forgotten(
        self: &Rc<Self>,
        ring: &Ring,
        plan: &BatchLogPlan,
        id: Uuid,
        trace: &Trace,
    ) {
        let payload: Arc<[u8]> = Arc::new(id.to_bytes());
        for node in plan.nodes() {
            if *node == ring.local() {
                let this = Rc::clone(self);
                self.shard.env.spawn(STATEMENT, async move {
                    let _ = this.log.forget(id.to_bytes()).await;
                });
                continue;
            }
            if let Some(messenger) = self.peers.messenger() {
                let to = ring.node(*node).address;
                messenger.ask(
                    to,
                    Verb::BatchRemoveReq,
                    Flags::NONE,
                    traced(trace),
                    &payload,
                    |_| {},
                );
            }
        }
    }

    /// Writes the batches that are kept here for too long.
    pub async fn replay_late_batches(self: &Rc<Self>) -> Result<(), StorageError> {
        let patience = (self.shard.timeouts().write * REPLAY_TIMEOUTS).as_millis() as i64;
        let before = self.shard.unix_millis() - patience;
        let truncated = truncated_at(&self.shard.engine).await?;
        for batch in self.log.kept(&truncated).await? {
            let Kept { id, written_at, parts, .. } = batch;
            if written_at > before {
                continue;
            }
            let mut is_delivered = true;
            for part in parts {
                is_delivered &= self.replay(part, written_at).await?;
            }
            if is_delivered {
                self.shard.env.mark("batch.written_late");
                self.log.forget(id).await?;
            }
        }
        Ok(())
    }

    /// Writes a part of a batch to all of its replicas. Has each of them got it, or will it get it
    /// for sure? After `gc_grace_seconds` it is too late: what was deleted since would be there
    /// again.
    async fn replay(
        self: &Rc<Self>,
        mutation: Mutation,
        written_at: i64,
    ) -> Result<bool, StorageError> {
        let schema = self.shard.schema();
        let worth_until = written_at + 1000 * i64::from(self.writes.gc_grace(&mutation));
        if worth_until <= self.shard.unix_millis() {
            return Ok(true);
        }
        let table = mutation.updates().first().map(|update| schema::TableId(update.table));
        let table = table.and_then(|id| schema.table_by_id(&id));
        let Some(keyspace) = table.and_then(|table| schema.keyspace(&table.keyspace)) else {
            return Ok(true);
        };
        let is_durable = keyspace.durable_writes;
        let scope = match self.peers.scope(keyspace) {
            Ok(Some(scope)) => scope,
            Ok(None) => {
                self.local.apply_all(vec![(is_durable, mutation)], &Trace::OFF).await?;
                return Ok(true);
            }
            Err(_) => return Ok(false),
        };
        // whoever is down: who is up gets it all the same
        let Ok(plan) = scope.write_plan(mutation.token(), Consistency::Any) else {
            return Ok(false);
        };
        let deadline = self.shard.env.now() + self.shard.timeouts().write;
        let write = RingWrite { scope, plan, mutation, is_durable, made_at: written_at };
        let waiting = self.writes.send_write(write, false, &Trace::OFF)?;
        Ok(waiting.all_have_it(&self.shard.env, deadline).await)
    }
}

/// Writes the batches that are kept on a node for too long, again and again; on the first shard.
pub(crate) async fn replay_kept_batches(batches: Weak<RingBatches>) {
    loop {
        let Some(env) = batches.upgrade().map(|batches| batches.shard.env.clone()) else { return };
        env.sleep(REPLAY_INTERVAL).await;
        let Some(batches) = batches.upgrade() else { return };
        if batches.peers.is_alone() {
            continue;
        }
        if let Err(error) = batches.replay_late_batches().await {
            let seconds = REPLAY_INTERVAL.as_secs();
            let text = format!(
                "cannot replay batches from system.batches: {error}; retrying in {seconds} s"
            );
            batches.peers.note(Level::Warn, text);
        }
    }
}
