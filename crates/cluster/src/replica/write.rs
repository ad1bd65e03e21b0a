//! MUTATION, READ_REPAIR, HINT, BATCH_STORE, BATCH_REMOVE and COUNTER_MUTATION. An answer says that
//! the write is as durable as one that a client of this node is told of.

use internode::FailureReason;
use internode::payload::{Batch, CounterMutation, Hint};
use rows::{Mutation, PartitionUpdate};
use schema::TableId;
use storage::Trace;
use types::{Reader, Uuid};

use crate::boot::truncated_at;
use crate::payload::unreadable;
use crate::payload::{mutation, whole};
use crate::peer_request::PeerRequest;
use crate::peers::Concern;
use crate::replica::Replica;
use crate::ring_write::Counted;
use crate::served::{Checked, check_updates};

/// A hint of a table that nobody here knows is refused for so long after it was made, in
/// milliseconds: the schema may be on its way. Then its table is gone, and there is nothing to do.
const HINT_PATIENCE: i64 = 600_000;

impl Replica {
    pub(super) fn check_owned(
        &self,
        checked: &Checked,
        token: types::Token,
    ) -> Result<(), FailureReason> {
        match self.peers.may_answer(&checked.keyspace, token, Concern::Write) {
            true => Ok(()),
            false => Err(FailureReason::Unknown),
        }
    }

    async fn apply_checked(
        &self,
        mutation: Mutation,
        checked: &Checked,
        trace: &Trace,
    ) -> Result<Vec<u8>, FailureReason> {
        let applied = self.writes.apply_all(vec![(checked.is_durable, mutation)], trace).await;
        applied.map(|()| Vec::new()).map_err(|error| self.shard.reason_of(&error))
    }

    /// MUTATION and READ_REPAIR.
    pub(super) async fn peer_mutation(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let schema = self.shard.schema();
        let mutation = mutation(request.payload, &schema)?;
        let checked = check_updates(&schema, mutation.updates())?;
        self.check_owned(&checked, mutation.token())?;
        self.apply_checked(mutation, &checked, request.trace).await
    }

    /// HINT. Of what was truncated since, nothing is applied; of what has no table any more there
    /// is nothing to apply.
    pub(super) async fn peer_hint(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let mut reader = Reader::new(request.payload);
        let hint = Hint::read(&mut reader).map_err(unreadable)?;
        let (created, gc_grace) = (hint.created, hint.gc_grace);
        // of a node that leaves and hands on what it kept for a third one
        if hint.host.to_bytes() != self.shard.engine.host_id() {
            match mutation(hint.mutation, &self.shard.schema()) {
                Ok(_) | Err(FailureReason::IncompatibleSchema) => {}
                Err(reason) => return Err(reason),
            }
            let kept = self.handoff.keep(hint.host, created, gc_grace, hint.mutation.into());
            return kept.await.map(|()| Vec::new()).map_err(|_| FailureReason::Unknown);
        }
        let now = self.shard.unix_millis();
        let schema = self.shard.schema();
        let mutation = match mutation(hint.mutation, &schema) {
            Err(FailureReason::IncompatibleSchema)
                if now.saturating_sub(hint.created) > HINT_PATIENCE =>
            {
                return Ok(Vec::new());
            }
            mutation => mutation?,
        };
        let checked = check_updates(&schema, mutation.updates())?;
        if self.check_owned(&checked, mutation.token()).is_err() {
            let given = self.handoff.give_to_replicas(created, gc_grace, hint.mutation).await;
            return given.map(|()| Vec::new());
        }
        let truncated =
            truncated_at(&self.shard.engine).await.map_err(|error| self.shard.reason_of(&error))?;
        let lives = i64::from(hint.gc_grace).saturating_mul(1000);
        let is_late = now.saturating_sub(hint.created) > lives;
        let is_void = |update: &PartitionUpdate| {
            truncated.get(&TableId(update.table)).is_some_and(|at| hint.created <= *at)
        };
        let mut left: Option<Mutation> = None;
        for update in
            mutation.into_updates().into_iter().filter(|update| !is_late && !is_void(update))
        {
            match &mut left {
                None => left = Some(Mutation::new(update)),
                Some(left) => drop(left.push(update)),
            }
        }
        match left {
            Some(mutation) => self.apply_checked(mutation, &checked, &Trace::OFF).await,
            None => Ok(Vec::new()),
        }
    }

    /// BATCH_STORE.
    pub(super) async fn peer_batch(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let mut reader = Reader::new(request.payload);
        let batch = Batch::read(&mut reader).map_err(unreadable)?;
        reader.finish().map_err(unreadable)?;
        let kept = self.batch_log.keep(batch.id.to_bytes(), batch.created, &batch.mutations).await;
        kept.map(|()| Vec::new()).map_err(|error| self.shard.reason_of(&error))
    }

    /// BATCH_REMOVE.
    pub(super) async fn peer_batch_removal(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let id = Uuid::from_value(request.payload).ok_or(FailureReason::Unknown)?;
        let forgotten = self.batch_log.forget(id.to_bytes()).await;
        forgotten.map(|()| Vec::new()).map_err(|error| self.shard.reason_of(&error))
    }

    /// COUNTER_MUTATION: this node leads. It counts, and tells the other replicas what its part
    /// comes to.
    pub(super) async fn peer_counters(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let schema = self.shard.schema();
        let CounterMutation { mutation, consistency } =
            whole(request.payload, &schema, CounterMutation::read)?;
        let checked = check_updates(&schema, mutation.updates())?;
        if !mutation.updates().iter().all(|update| update.layout.counter) {
            return Err(FailureReason::Unknown);
        }
        self.check_owned(&checked, mutation.token())?;
        // while it starts it does not know to whom to tell it: what it counted would be
        // acknowledged by it alone
        if self.peers.messenger().is_some() && self.peers.is_alone() {
            return Err(FailureReason::Unknown);
        }
        let (deadline, trace) = (request.deadline, request.trace.clone());
        let counted = self
            .counters
            .apply_counter(mutation, checked.is_durable, deadline, trace.clone())
            .await;
        let mutation = counted.map_err(|error| self.shard.reason_of(&error))?;
        // who has no way to other nodes is alone
        if self.peers.messenger().is_some() {
            let keyspace = checked.keyspace;
            let counted = Counted { keyspace, mutation, consistency, deadline, trace };
            self.ring_writes.spread_for_peer(counted).await?;
        }
        Ok(Vec::new())
    }
}
