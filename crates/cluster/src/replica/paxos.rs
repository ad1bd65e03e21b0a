//! PAXOS_PREPARE, PROPOSE and COMMIT of Paxos v1: what is promised, accepted or learnt is durable
//! before it is said.

use std::rc::Rc;
use std::sync::Arc;

use internode::FailureReason;
use internode::payload::{Commit, Promise};
use rows::PartitionUpdate;
use rows::codec::MutationEncoder;
use schema::TableId;
use storage::{PartitionKey, StorageError};
use types::Uuid;

use crate::boot::truncated_at;
use crate::paxos::{Acceptors, Ballot, Proposal, Subject};
use crate::payload::whole;
use crate::peer_request::PeerRequest;
use crate::replica::Replica;
use crate::served::check_updates;
use crate::shard_context::STATEMENT;

/// What is asked, and of which partition.
struct Asked {
    subject: Subject,
    proposal: Proposal,
}

impl Replica {
    fn paxos_asked(&self, request: &PeerRequest<'_>) -> Result<Asked, FailureReason> {
        let schema = self.shard.schema();
        let Commit { ballot, update } = whole(request.payload, &schema, Commit::read)?;
        let checked = check_updates(&schema, std::slice::from_ref(&update))?;
        let key = PartitionKey::new(&*update.key);
        self.check_owned(&checked, key.token)?;
        // what it says of time would be wrong
        if ballot.ticks().is_none() {
            return Err(FailureReason::Unknown);
        }
        let table = schema.table_by_id(&TableId(update.table)).cloned();
        let table = table.ok_or(FailureReason::IncompatibleSchema)?;
        let ballot = Ballot::from_value(&ballot.to_bytes()).ok_or(FailureReason::Unknown)?;
        Ok(Asked {
            subject: Subject { table, key, trace: request.trace.clone() },
            proposal: Proposal { ballot, update },
        })
    }

    /// Runs `run` where a partition's acceptor is.
    async fn with_acceptor<T, F>(
        &self,
        asked: Asked,
        run: impl FnOnce(Rc<Acceptors>, Asked) -> F + Send + 'static,
    ) -> Result<T, FailureReason>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StorageError>> + 'static,
    {
        let shard = self.shard.engine.owner(asked.subject.key.token);
        let run = move |owner: Rc<Acceptors>| run(owner, asked);
        let result = self.acceptors.call_async(shard, STATEMENT, run).await;
        let result = result.map_err(StorageError::from).flatten();
        result.map_err(|error| self.shard.reason_of(&error))
    }

    /// PAXOS_PREPARE.
    pub(super) async fn peer_prepare(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let asked = self.paxos_asked(request)?;
        let nothing = nothing(&asked.proposal.update);
        let run = async |owner: Rc<Acceptors>, asked: Asked| {
            owner.prepare(&asked.subject, asked.proposal.ballot).await
        };
        let promise = self.with_acceptor(asked, run).await?;
        let none = || Proposal { ballot: Ballot::none(), update: nothing.clone() };
        let in_progress = match promise.promised {
            true => promise.in_progress.unwrap_or_else(none),
            false => Proposal { ballot: promise.refused_for, update: nothing.clone() },
        };
        let answer = Promise {
            promised: promise.promised,
            in_progress: commit(in_progress),
            committed: commit(promise.committed.unwrap_or_else(none)),
        };
        let mut out = Vec::new();
        let written = answer.write(&mut MutationEncoder::new(), &mut out);
        written.map(|()| out).map_err(|_| FailureReason::Unknown)
    }

    /// PAXOS_PROPOSE.
    pub(super) async fn peer_propose(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let run = async |owner: Rc<Acceptors>, asked: Asked| {
            owner.propose(&asked.subject, &asked.proposal).await
        };
        let accepted = self.with_acceptor(self.paxos_asked(request)?, run).await?;
        Ok(vec![accepted.into()])
    }

    /// PAXOS_COMMIT. What was decided before a truncation is learnt, and not applied.
    pub(super) async fn peer_commit(
        &self,
        request: &PeerRequest<'_>,
    ) -> Result<Vec<u8>, FailureReason> {
        let mut asked = self.paxos_asked(request)?;
        let truncated =
            truncated_at(&self.shard.engine).await.map_err(|error| self.shard.reason_of(&error))?;
        let decided_at = asked.proposal.ballot.unix_micros() / 1000;
        if truncated.get(&asked.subject.table.id).is_some_and(|at| decided_at <= *at) {
            asked.proposal.update = nothing(&asked.proposal.update);
        }
        let run = async |owner: Rc<Acceptors>, asked: Asked| {
            owner.commit(&asked.subject, &asked.proposal).await
        };
        self.with_acceptor(asked, run).await?;
        Ok(Vec::new())
    }
}

/// An update of the same partition that changes nothing.
fn nothing(update: &PartitionUpdate) -> PartitionUpdate {
    PartitionUpdate::empty(update.table, Arc::clone(&update.layout), &update.key)
}

fn commit(Proposal { ballot, update }: Proposal) -> Commit {
    Commit { ballot: Uuid::from_bytes(ballot.to_bytes()), update }
}
