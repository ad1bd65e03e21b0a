//! This node as a replica: what it answers when another node asks (`net.IVerbHandler` of each
//! verb). Any shard may be asked; it hands the work to the shards that own the keys. What changes
//! anything goes the way that a client's own writes go: commit log, caches, turns.
//!
//! `replica_read` answers reads, `repair` what a repair asks. The verbs of Paxos v2 are refused.

mod paxos;
#[cfg(test)]
mod tests;
mod write;

use std::rc::Rc;

use internode::payload::{Truncate, Truncated};
use internode::{FailureReason, Verb};
use storage::shards::Remote;
use types::Reader;

use crate::batch_log::BatchLog;
use crate::counters::Counters;
use crate::hints::Handoff;
use crate::local_writes::LocalWrites;
use crate::paxos::Acceptors;
use crate::payload::unreadable;
use crate::peer_request::{PeerAnswer, PeerRequest};
use crate::peers::Peers;
use crate::repair::Repairs;
use crate::replica_read::{ReplicaReads, Seen};
use crate::ring_write::RingWrites;
use crate::schema_owner::SchemaOwner;
use crate::served::check_writable;
use crate::shard_context::ShardContext;

/// This node as a replica.
pub(crate) struct Replica {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    reads: Rc<ReplicaReads>,
    writes: Rc<LocalWrites>,
    counters: Rc<Counters>,
    ring_writes: Rc<RingWrites>,
    batch_log: Rc<BatchLog>,
    handoff: Rc<Handoff>,
    acceptors: Remote<Acceptors>,
    schema: Rc<SchemaOwner>,
    repairs: Rc<Repairs>,
}

impl Replica {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        reads: &Rc<ReplicaReads>,
        (writes, counters, ring_writes): (&Rc<LocalWrites>, &Rc<Counters>, &Rc<RingWrites>),
        (batch_log, handoff): (&Rc<BatchLog>, &Rc<Handoff>),
        acceptors: Remote<Acceptors>,
        (schema, repairs): (&Rc<SchemaOwner>, &Rc<Repairs>),
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            reads: Rc::clone(reads),
            writes: Rc::clone(writes),
            counters: Rc::clone(counters),
            ring_writes: Rc::clone(ring_writes),
            batch_log: Rc::clone(batch_log),
            handoff: Rc::clone(handoff),
            acceptors,
            schema: Rc::clone(schema),
            repairs: Rc::clone(repairs),
        })
    }

    #[cfg(test)]
    pub fn reads(&self) -> &Rc<ReplicaReads> {
        &self.reads
    }

    /// Answers another node. Nothing is answered to what came too late, or to what nobody answers.
    ///
    /// # Errors
    /// With the reason that the other node is to be told.
    pub async fn serve(
        &self,
        request: PeerRequest<'_>,
    ) -> Result<Option<PeerAnswer>, FailureReason> {
        if self.shard.env.now() >= request.deadline || request.verb.answer().is_none() {
            return Ok(None);
        }
        match self.shard.env.timeout_at(request.deadline, Box::pin(self.answer(&request))).await {
            Ok(answer) => answer.map(Some),
            Err(_) => Err(FailureReason::Timeout),
        }
    }

    async fn answer(&self, request: &PeerRequest<'_>) -> Result<PeerAnswer, FailureReason> {
        let payload = match request.verb {
            Verb::ReadReq | Verb::RangeReq => return self.peer_read(request).await,
            Verb::MutationReq | Verb::ReadRepairReq => self.peer_mutation(request).await?,
            Verb::HintReq => self.peer_hint(request).await?,
            Verb::BatchStoreReq => self.peer_batch(request).await?,
            Verb::BatchRemoveReq => self.peer_batch_removal(request).await?,
            Verb::CounterMutationReq => self.peer_counters(request).await?,
            Verb::TruncateReq => self.peer_truncate(request).await?,
            Verb::PaxosPrepareReq => self.peer_prepare(request).await?,
            Verb::PaxosProposeReq => self.peer_propose(request).await?,
            Verb::PaxosCommitReq => self.peer_commit(request).await?,
            Verb::PingReq | Verb::EchoReq => Vec::new(),
            verb if verb.answer() == Some(Verb::RepairRsp) => {
                self.repairs.serve(request.from, verb, request.payload).await?;
                Vec::new()
            }
            // Snapshots of repaired data that differs, Paxos of the second kind. Gossip and the
            // schema are answered elsewhere.
            _ => return Err(FailureReason::Unknown),
        };
        Ok(PeerAnswer::new(request.verb, payload))
    }

    /// READ or RANGE.
    async fn peer_read(&self, request: &PeerRequest<'_>) -> Result<PeerAnswer, FailureReason> {
        let Seen { answer, params, .. } = self.reads.read_here(request).await?;
        Ok(PeerAnswer::new(request.verb, answer).with(params))
    }

    async fn peer_truncate(&self, request: &PeerRequest<'_>) -> Result<Vec<u8>, FailureReason> {
        let mut reader = Reader::new(request.payload);
        let read = Truncate::read(&mut reader);
        let of = read.and_then(|of| reader.finish().map(|()| of)).map_err(unreadable)?;
        let schema = self.shard.schema();
        let table = schema.table(&of.keyspace, &of.table).ok_or(FailureReason::Unknown)?;
        check_writable(&schema, table)?;
        self.schema.truncate(table).await.result.map_err(|_| FailureReason::Unknown)?;
        let mut out = Vec::new();
        let written = Truncated { of, done: true }.write(&mut out);
        written.map(|()| out).map_err(|_| FailureReason::Unknown)
    }
}
