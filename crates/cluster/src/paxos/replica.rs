//! This node as a replica of rounds: what a shard answers for the keys that it owns. What it says is durable, as far
//! as `commitlog_sync` makes anything durable, before it is said.

use rows::Mutation;
use storage::{CasStep, StorageError};

use crate::coordinator::Coordinator;
use crate::paxos::acceptor::{Promise, Proposal};
use crate::paxos::ballot::Ballot;
use crate::paxos::store::{self, Subject};

impl Coordinator {
    /// Answers a ballot.
    pub(crate) async fn paxos_prepare(
        &self,
        subject: &Subject,
        ballot: Ballot,
    ) -> Result<Promise, StorageError> {
        let started = self.env.now();
        let turn = self.acceptors.take(&subject.key.bytes).await;
        let mut acceptor = store::load(&self.engine, subject, ballot).await?;
        let promise = acceptor.prepare(ballot);
        subject.trace.note(&self.env, || match promise.promised {
            true => format!("Promising ballot {}", ballot.uuid()),
            false => format!("Promise rejected; {} is not the latest", ballot.uuid()),
        });
        if promise.promised {
            let ticket = store::save_promise(&self.engine, subject, ballot).await?;
            drop(turn);
            ticket.durable().await?;
        }
        self.engine.cas_ended(subject.table.id, CasStep::Prepare, started);
        Ok(promise)
    }

    /// Answers a proposal.
    pub(crate) async fn paxos_propose(
        &self,
        subject: &Subject,
        proposal: &Proposal,
    ) -> Result<bool, StorageError> {
        let started = self.env.now();
        let turn = self.acceptors.take(&subject.key.bytes).await;
        let mut acceptor = store::load(&self.engine, subject, proposal.ballot).await?;
        let accepted = acceptor.propose(proposal);
        subject.trace.note(&self.env, || match accepted {
            true => format!("Accepting proposal {}", proposal.ballot.uuid()),
            false => format!("Rejecting proposal {}", proposal.ballot.uuid()),
        });
        if accepted {
            let ticket = store::save_proposal(&self.engine, subject, proposal).await?;
            drop(turn);
            ticket.durable().await?;
        }
        self.engine.cas_ended(subject.table.id, CasStep::Propose, started);
        Ok(accepted)
    }

    /// Applies what was decided, and learns it.
    pub(crate) async fn paxos_commit(
        &self,
        subject: &Subject,
        proposal: &Proposal,
    ) -> Result<(), StorageError> {
        let started = self.env.now();
        subject.trace.note(&self.env, || format!("Committing proposal {}", proposal.ballot.uuid()));
        let schema = self.schema();
        let keyspace = schema.keyspace(&subject.table.keyspace);
        let durable = keyspace.is_none_or(|keyspace| keyspace.durable_writes);
        let durable = durable && !self.env.planted("cas_commit_unlogged");
        // A chain of the log is cut off at its end alone: with the second record the first one is there too.
        let update = Mutation::new(proposal.update.clone());
        let applied = self.engine.apply(&update, durable).await?;
        let saved = store::save_commit(&self.engine, subject, proposal).await?;
        applied.durable().await?;
        saved.durable().await?;
        self.engine.cas_ended(subject.table.id, CasStep::Commit, started);
        Ok(())
    }
}
