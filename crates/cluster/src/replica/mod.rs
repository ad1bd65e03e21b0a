//! This node as a replica: what it answers when another node asks (`net.IVerbHandler` of each verb). Any shard may be
//! asked; it hands the work to the shards that own the keys. What changes anything goes the way that a client's own
//! writes go: commit log, caches, turns.

pub(crate) mod conditions;
pub(crate) mod fetched;
pub(crate) mod limit;
mod paxos;
pub(crate) mod payload;
mod read;
mod scan;
pub(crate) mod served;
pub(crate) mod slices;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::{ReplicaReads, Seen};

use std::cell::OnceCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use env::Instant;
use internode::payload::{Truncate, Truncated};
use internode::{FailureReason, Flags, Params, Verb};
use rows::Mutation;
use storage::Trace;
use types::{Address, Reader, Token};

use crate::coordinator::Coordinator;
use crate::replica::payload::unreadable;
use crate::replica::served::check_writable;

/// What another node asks of this one as a replica.
#[derive(Clone, Copy, Debug)]
pub struct PeerRequest<'a> {
    /// Who asks.
    pub from: Address,
    /// For what.
    pub verb: Verb,
    /// What its message says besides.
    pub params: &'a Params,
    /// The flags of its message.
    pub flags: Flags,
    /// The payload, in messaging 12.
    pub payload: &'a [u8],
    /// When the answer is worth nothing any more.
    pub deadline: Instant,
    /// Where what happens is noted.
    pub trace: &'a Trace,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAnswer {
    /// What it is.
    pub verb: Verb,
    /// Its payload.
    pub payload: Vec<u8>,
    /// What its message is to say besides: warnings.
    pub params: Params,
}

impl PeerAnswer {
    fn new(request: Verb, payload: Vec<u8>) -> Self {
        let verb = request.answer().unwrap_or(Verb::FailureRsp);
        Self { verb, payload, params: Params::NONE }
    }

    fn with(mut self, params: Params) -> Self {
        self.params = params;
        self
    }
}

/// What a request is about a key for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// To read: replicas have it.
    Read,
    /// To write: those that are about to be replicas have it too.
    Write,
}

/// Is this node a replica of a keyspace at a token?
pub type Owns = Box<dyn Fn(&str, Token, Concern) -> bool>;

/// A write of counters that this node leads, for the other replicas.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Its keyspace.
    pub keyspace: String,
    /// This node's parts of the counters, which it has itself.
    pub mutation: Mutation,
    /// Name of the consistency level, as `LOCAL_QUORUM`.
    pub consistency: String,
    /// When its coordinator stops waiting.
    pub deadline: Instant,
    /// Where what happens is noted.
    pub trace: Trace,
}

/// Sends a write of counters to the other replicas, and waits for as many as its level asks for.
pub type Replicate =
    Box<dyn Fn(Counted) -> Pin<Box<dyn Future<Output = Result<(), FailureReason>>>>>;

/// What a replica must know of the ring, and ask of it. As long as nobody says so, all is this node's, and there is
/// nobody else.
#[derive(Default)]
pub(crate) struct Replica {
    owns: OnceCell<Owns>,
    replicate: OnceCell<Replicate>,
}

impl Replica {
    /// Is this node a replica at a token?
    fn has(&self, keyspace: &str, token: Token, concern: Concern) -> bool {
        self.owns.get().is_none_or(|owns| owns(keyspace, token, concern))
    }
}

impl Coordinator {
    /// Refuses requests for keys that this node is no replica of (`reject_out_of_token_range_requests`). Once.
    pub fn refuse_foreign_keys(&self, owns: Owns) {
        let _ = self.replica.owns.set(owns);
    }

    /// Tells how writes of counters get to other replicas. Once.
    pub fn replicate_counters(&self, replicate: Replicate) {
        let _ = self.replica.replicate.set(replicate);
    }

    /// Answers another node. Nothing is answered to what came too late, or to what nobody answers.
    ///
    /// # Errors
    /// With the reason that the other node is to be told.
    pub async fn serve_peer(
        self: &Rc<Self>,
        request: PeerRequest<'_>,
    ) -> Result<Option<PeerAnswer>, FailureReason> {
        if self.env.now() >= request.deadline || request.verb.answer().is_none() {
            return Ok(None);
        }
        match self.env.timeout_at(request.deadline, Box::pin(self.serve(&request))).await {
            Ok(answer) => answer.map(Some),
            Err(_) => Err(FailureReason::Timeout),
        }
    }

    async fn serve(
        self: &Rc<Self>,
        request: &PeerRequest<'_>,
    ) -> Result<PeerAnswer, FailureReason> {
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
            // Repair, streams, snapshots for repair, Paxos of the second kind: a coordinator of Cassandra's ends at once on
            // this (`RepairMessageVerbHandler.sendFailureResponse`). Gossip and the schema are answered elsewhere.
            _ => return Err(FailureReason::Unknown),
        };
        Ok(PeerAnswer::new(request.verb, payload))
    }

    /// READ or RANGE.
    async fn peer_read(
        self: &Rc<Self>,
        request: &PeerRequest<'_>,
    ) -> Result<PeerAnswer, FailureReason> {
        let Seen { answer, params, .. } = self.replica_reads.read_here(request).await?;
        Ok(PeerAnswer::new(request.verb, answer).with(params))
    }

    async fn peer_truncate(
        self: &Rc<Self>,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let mut reader = Reader::new(request.payload);
        let read = Truncate::read(&mut reader);
        let of = read.and_then(|of| reader.finish().map(|()| of)).map_err(unreadable)?;
        let schema = self.schema();
        let table = schema.table(&of.keyspace, &of.table).ok_or(FailureReason::Unknown)?;
        check_writable(&schema, table)?;
        self.truncate(table).await.result.map_err(|_| FailureReason::Unknown)?;
        let mut out = Vec::new();
        let written = Truncated { of, done: true }.write(&mut out);
        written.map(|()| out).map_err(|_| FailureReason::Unknown)
    }

    /// Lets the ring in where this node serves as a replica: which keys are its own, and how its counters get to others.
    pub(crate) fn be_a_replica_of_the_ring(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        self.refuse_foreign_keys(Box::new(move |keyspace, token, concern| {
            this.upgrade().is_none_or(|this| this.is_replica(keyspace, token, concern))
        }));
        let this = Rc::downgrade(self);
        self.replicate_counters(Box::new(move |counted| {
            let this = this.upgrade();
            Box::pin(async move {
                match this {
                    Some(this) => this.ring_writes.spread_for_peer(counted).await,
                    None => Err(FailureReason::Unknown),
                }
            })
        }));
    }

    /// Is this node a replica of a keyspace at a token? It says yes as long as it does not know.
    fn is_replica(&self, keyspace: &str, token: Token, concern: Concern) -> bool {
        let (schema, ring) = (self.schema(), self.peers.ring());
        let (Some(ring), Some(keyspace)) = (ring, schema.keyspace(keyspace)) else { return true };
        let Some(placement) = ring.placement(&keyspace.replication.strategy) else { return true };
        let (replicas, local) = (placement.at(token), ring.local());
        let is_pending = concern == Concern::Write && replicas.pending.contains(&local);
        is_pending || replicas.natural.contains(&local)
    }
}
