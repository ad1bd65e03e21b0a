//! This node as a replica of rounds: what a shard answers for the keys that it owns. What it says
//! is durable, as far as `commitlog_sync` makes anything durable, before it is said.

use std::rc::Rc;

use rows::Mutation;
use storage::{CasStep, StorageError};

use crate::paxos::acceptor::{Promise, Proposal};
use crate::paxos::ballot::Ballot;
use crate::paxos::store::{self, Subject};
use crate::shard_context::ShardContext;
use crate::turns::Turns;

/// Promises, accepts and learns.
pub(crate) struct Acceptors {
    shard: Rc<ShardContext>,
    /// Who changes the state in `system.paxos` of which partition.
    turns: Turns,
}

impl Acceptors {
    pub fn new(shard: &Rc<ShardContext>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), turns: Turns::default() })
    }

    /// Answers a ballot.
    pub async fn prepare(
        &self,
        subject: &Subject,
        ballot: Ballot,
    ) -> Result<Promise, StorageError> {
        let started = self.shard.env.now();
        let turn = self.turns.take(&subject.key.bytes).await;
        let mut acceptor = store::load(&self.shard.engine, subject, ballot).await?;
        let promise = acceptor.prepare(ballot);
        subject.trace.note(&self.shard.env, || match promise.promised {
            true => format!("Promising ballot {}", ballot.uuid()),
            false => format!("Promise rejected; {} is not the latest", ballot.uuid()),
        });
        if promise.promised {
            let ticket = store::save_promise(&self.shard.engine, subject, ballot).await?;
            drop(turn);
            ticket.durable().await?;
        }
        self.shard.engine.cas_ended(subject.table.id, CasStep::Prepare, started);
        Ok(promise)
    }

    /// Answers a proposal.
    pub async fn propose(
        &self,
        subject: &Subject,
        proposal: &Proposal,
    ) -> Result<bool, StorageError> {
        let started = self.shard.env.now();
        let turn = self.turns.take(&subject.key.bytes).await;
        let mut acceptor = store::load(&self.shard.engine, subject, proposal.ballot).await?;
        let accepted = acceptor.propose(proposal);
        subject.trace.note(&self.shard.env, || match accepted {
            true => format!("Accepting proposal {}", proposal.ballot.uuid()),
            false => format!("Rejecting proposal {}", proposal.ballot.uuid()),
        });
        if accepted {
            let ticket = store::save_proposal(&self.shard.engine, subject, proposal).await?;
            drop(turn);
            ticket.durable().await?;
        }
        self.shard.engine.cas_ended(subject.table.id, CasStep::Propose, started);
        Ok(accepted)
    }

    /// Applies what was decided, and learns it.
    pub async fn commit(&self, subject: &Subject, proposal: &Proposal) -> Result<(), StorageError> {
        let started = self.shard.env.now();
        subject
            .trace
            .note(&self.shard.env, || format!("Committing proposal {}", proposal.ballot.uuid()));
        let schema = self.shard.schema();
        let keyspace = schema.keyspace(&subject.table.keyspace);
        let durable = keyspace.is_none_or(|keyspace| keyspace.durable_writes);
        let durable = durable && !self.shard.env.planted("cas_commit_unlogged");
        // A chain of the log is cut off at its end alone: with the second record the first one is
        // there too.
        let update = Mutation::new(proposal.update.clone());
        let applied = self.shard.engine.apply(&update, durable).await?;
        let saved = store::save_commit(&self.shard.engine, subject, proposal).await?;
        applied.durable().await?;
        saved.durable().await?;
        self.shard.engine.cas_ended(subject.table.id, CasStep::Commit, started);
        Ok(())
    }
}
