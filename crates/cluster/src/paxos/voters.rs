//! Who takes part in the rounds at a partition, and what they answer: this node alone, or replicas
//! all over the ring (`StorageProxy.preparePaxos`, `proposePaxos`, `commitPaxos`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use env::sync::Notify;
use internode::payload::{Commit, Promise as PromiseRsp};
use internode::{Flags, Verb};
use messaging::{Answer, Failed};
use protocol::{Consistency, ErrorResponse, WriteType};
use ring::PaxosPlan;
use rows::codec::MutationEncoder;
use rows::{Mutation, PartitionUpdate};
use storage::{StorageError, Trace};
use types::{Address, Uuid};

use super::Paxos;
use super::{Failure, quorum_of};
use crate::answer::invalid;
use crate::encoding::{encoded, unencodable};
use crate::levels::check_replicas;
use crate::paxos::acceptor::{Promise, Proposal};
use crate::paxos::ballot::Ballot;
use crate::paxos::round::{Round, Step};
use crate::paxos::store::Subject;
use crate::payload::whole;
use crate::ring_write::reason_of;
use crate::scope::Scope;
use crate::shard_context::STATEMENT;
use crate::traced::traced;

/// Who takes part.
pub(super) struct Voters {
    /// Those that are asked; none for this node.
    nodes: Vec<Option<Address>>,
    /// How many have to agree.
    pub required: usize,
    /// Where others have what is decided, too.
    pub scope: Option<Scope>,
}

/// Answers as they come, each with the place of who gave it; nothing of who failed.
struct Votes<T> {
    answers: RefCell<VecDeque<(usize, Option<T>)>>,
    bell: Notify,
}

impl<T> Votes<T> {
    fn new() -> Rc<Self> {
        Rc::new(Self { answers: RefCell::default(), bell: Notify::new() })
    }

    fn put(&self, voter: usize, answer: Option<T>) {
        self.answers.borrow_mut().push_back((voter, answer));
        self.bell.notify_one();
    }

    /// The next one, unless none comes in time.
    async fn next(&self, env: &env::Env, deadline: Instant) -> Option<(usize, Option<T>)> {
        loop {
            let next = self.answers.borrow_mut().pop_front();
            if next.is_some() {
                return next;
            }
            env.timeout_at(deadline, self.bell.notified()).await.ok()?;
        }
    }
}

impl Voters {
    fn are_me_alone(&self) -> bool {
        matches!(self.nodes.as_slice(), [None])
    }

    /// A round that they are to decide.
    pub fn round(&self, ballot: Ballot) -> Round {
        Round::new(ballot, self.nodes.len(), self.required)
    }
}

impl Paxos {
    /// Who takes part in rounds at a partition now.
    pub(super) fn voters(
        &self,
        subject: &Subject,
        serial: Consistency,
    ) -> Result<Voters, ErrorResponse> {
        let schema = self.shard.schema();
        let alone = Voters { nodes: vec![None], required: 1, scope: None };
        // dropped meanwhile: this node is not to decide alone what others decide
        let name = &subject.table.keyspace;
        let Some(keyspace) = schema.keyspace(name) else {
            return Err(invalid(format!("Keyspace {name} does not exist")));
        };
        let Some(scope) = self.peers.scope(keyspace)? else {
            // those who promise are most of the nodes that there are; what they read is read at
            // quorum
            check_replicas(keyspace, quorum_of(serial), &self.shard.identity.data_center, true)?;
            return Ok(alone);
        };
        let ring = &scope.ring;
        let plan = PaxosPlan::new(ring, scope.placement.at(subject.key.token), serial)?;
        let of = |node: &ring::NodeIndex| (*node != ring.local()).then(|| ring.node(*node).address);
        let nodes = plan.contacts().iter().map(of).collect();
        let required = match self.shard.env.planted("ring_promise_of_one") {
            true => 1,
            false => plan.required() as usize,
        };
        Ok(Voters { nodes, required, scope: Some(scope) })
    }

    /// Asks for promises until it is known what is to be done next.
    pub(super) async fn ask_promises(
        self: &Rc<Self>,
        subject: &Subject,
        voters: &Voters,
        round: &mut Round,
    ) -> Result<Step, Failure> {
        let ballot = round.ballot();
        if voters.are_me_alone() {
            return Ok(round.promised(0, self.acceptors.prepare(subject, ballot).await?));
        }
        let votes = Votes::new();
        let (table, key, trace) = (&subject.table, &subject.key.bytes, &subject.trace);
        let nothing = PartitionUpdate::empty(table.id.0, Arc::clone(&table.layout), key);
        let payload = written(&Proposal { ballot, update: nothing })?;
        for (voter, node) in voters.nodes.iter().enumerate() {
            let told = Rc::clone(&votes);
            let this = Rc::clone(self);
            let subject = subject.clone();
            match node {
                None => self.shard.env.spawn(STATEMENT, async move {
                    let promise = this.acceptors.prepare(&subject, ballot).await;
                    told.put(voter, this.seen(promise));
                }),
                Some(node) => {
                    self.ask_voter(*node, Verb::PaxosPrepareReq, trace, &payload, move |answer| {
                        told.put(
                            voter,
                            answer.and_then(|payload| this.promise(&payload, &subject)),
                        );
                    })
                }
            }
        }
        let deadline = self.shard.env.now() + self.shard.timeouts().write;
        let (mut failed, mut received) = (0, 0);
        while let Some((voter, promise)) = votes.next(&self.shard.env, deadline).await {
            let Some(promise) = promise else {
                failed += 1;
                if voters.nodes.len() - failed < voters.required {
                    break;
                }
                continue;
            };
            received += 1;
            match round.promised(voter, promise) {
                Step::Wait => {}
                step => return Ok(step),
            }
        }
        Err(Failure::Late { received, required: voters.required })
    }

    /// Asks to accept a proposal until it is known whether it is decided.
    pub(super) async fn ask_acceptances(
        self: &Rc<Self>,
        subject: &Subject,
        voters: &Voters,
        round: &mut Round,
        proposal: &Proposal,
    ) -> Result<Step, Failure> {
        if voters.are_me_alone() {
            return Ok(round.answered(self.acceptors.propose(subject, proposal).await?));
        }
        let (votes, trace) = (Votes::new(), &subject.trace);
        let payload = written(proposal)?;
        for (voter, node) in voters.nodes.iter().enumerate() {
            let told = Rc::clone(&votes);
            match node {
                None => {
                    let (this, subject) = (Rc::clone(self), subject.clone());
                    let proposal = proposal.clone();
                    self.shard.env.spawn(STATEMENT, async move {
                        let accepted = this.acceptors.propose(&subject, &proposal).await;
                        told.put(voter, this.seen(accepted));
                    });
                }
                Some(node) => {
                    self.ask_voter(*node, Verb::PaxosProposeReq, trace, &payload, move |answer| {
                        told.put(voter, answer.map(|payload| payload == [1]));
                    })
                }
            }
        }
        let deadline = self.shard.env.now() + self.shard.timeouts().write;
        let (mut failed, mut accepted) = (0, 0);
        while let Some((_, answer)) = votes.next(&self.shard.env, deadline).await {
            let Some(answer) = answer else {
                failed += 1;
                if failed + usize::from(accepted > 0) > voters.nodes.len() - voters.required {
                    break;
                }
                continue;
            };
            accepted += usize::from(answer);
            match round.answered(answer) {
                Step::Wait => {}
                step => return Ok(step),
            }
        }
        Err(Failure::Late { received: accepted, required: voters.required })
    }

    /// Has what was decided done, and waits until as many have done it as a level asks for; for
    /// nobody at ANY.
    pub(super) async fn commit_decided(
        self: &Rc<Self>,
        subject: &Subject,
        voters: &Voters,
        proposal: &Proposal,
        level: Consistency,
    ) -> Result<(), Failure> {
        let Some(scope) = &voters.scope else {
            return Ok(self.acceptors.commit(subject, proposal).await?);
        };
        let plan = scope
            .write_plan(subject.key.token, level)
            .map_err(|lack| Failure::Answer(lack.into()))?;
        let ring = &scope.ring;
        let mutation = Mutation::new(proposal.update.clone());
        let decided_at = proposal.ballot.unix_micros() / 1000;
        let waiting =
            self.writes.await_write(ring, &plan, &mutation, &encoded(&mutation)?, decided_at);
        let payload = written(proposal)?;
        for node in plan.replicas().iter().copied().filter(|node| ring.is_up(*node)) {
            let told = Rc::clone(&waiting);
            if node == ring.local() {
                let (this, subject) = (Rc::clone(self), subject.clone());
                let proposal = proposal.clone();
                self.shard.env.spawn(STATEMENT, async move {
                    let done = this.acceptors.commit(&subject, &proposal).await;
                    told.ended_here(done.map_err(|error| this.shard.reason_of(&error)));
                });
                continue;
            }
            let to = ring.node(node).address;
            if let Some(messenger) = self.peers.messenger() {
                let params = traced(&subject.trace);
                messenger.ask(
                    to,
                    Verb::PaxosCommitReq,
                    Flags::NONE,
                    params,
                    &payload,
                    move |answer| {
                        told.heard(to, answer);
                    },
                );
            }
        }
        if level == Consistency::Any {
            return Ok(());
        }
        let deadline = self.shard.env.now() + self.shard.timeouts().write;
        let ended = waiting.ended(&self.shard.env, deadline, level, WriteType::Simple).await;
        ended.map_err(Failure::Answer)
    }

    /// Lets those that do not know the latest decision do it.
    pub(super) async fn teach(
        self: &Rc<Self>,
        subject: &Subject,
        voters: &Voters,
        commit: &Proposal,
        behind: &[usize],
    ) -> Result<(), Failure> {
        let payload = written(commit)?;
        for voter in behind {
            match voters
                .nodes
                .get(*voter)
                .expect("a replica that misses a commit is one that promised the ballot")
            {
                None => self.acceptors.commit(subject, commit).await?,
                Some(node) => {
                    self.ask_voter(*node, Verb::PaxosCommitReq, &subject.trace, &payload, |_| {});
                }
            }
        }
        Ok(())
    }

    fn ask_voter(
        &self,
        node: Address,
        verb: Verb,
        trace: &Trace,
        payload: &Arc<[u8]>,
        told: impl FnOnce(Option<Vec<u8>>) + 'static,
    ) {
        let Some(messenger) = self.peers.messenger() else { return told(None) };
        let answered = move |answer: Result<Answer, Failed>| {
            // who fails says so, or says nothing in time: its vote is missing either way
            told(answer.map_err(reason_of).ok().map(|answer| answer.payload));
        };
        messenger.ask(node, verb, Flags::NONE, traced(trace), payload, answered);
    }

    /// This node's own answer; an error that only it has is seen to.
    fn seen<T>(&self, answer: Result<T, StorageError>) -> Option<T> {
        answer.inspect_err(|error| self.shard.engine.inspect(error)).ok()
    }

    /// Another node's answer to a ballot.
    fn promise(&self, payload: &[u8], subject: &Subject) -> Option<Promise> {
        let answer = whole(payload, &self.shard.schema(), PromiseRsp::read).ok()?;
        promise_of(answer, &subject.table.id.0, &subject.key.bytes)
    }
}

/// What another node answered to a ballot about a partition. One that tells of another partition is
/// no answer.
pub(super) fn promise_of(answer: PromiseRsp, table: &[u8; 16], key: &[u8]) -> Option<Promise> {
    let proposal = |commit: Commit| {
        let ballot = Ballot::from_value(&commit.ballot.to_bytes())?;
        let is_some = ballot.is_after(Ballot::none());
        is_some.then_some(Proposal { ballot, update: commit.update })
    };
    let PromiseRsp { promised, in_progress, committed } = answer;
    let in_progress = proposal(in_progress);
    let committed = proposal(committed);
    if [&in_progress, &committed].into_iter().flatten().any(|found| !found.is_of(table, key)) {
        return None;
    }
    Some(match promised {
        true => Promise { promised, refused_for: Ballot::none(), in_progress, committed },
        false => {
            let refused_for = in_progress.map_or(Ballot::none(), |proposal| proposal.ballot);
            Promise { promised, refused_for, in_progress: None, committed }
        }
    })
}

/// A proposal as it goes to other nodes.
fn written(proposal: &Proposal) -> Result<Arc<[u8]>, StorageError> {
    let ballot = Uuid::from_bytes(proposal.ballot.to_bytes());
    let commit = Commit { ballot, update: proposal.update.clone() };
    let mut payload = Vec::new();
    commit.write(&mut MutationEncoder::new(), &mut payload).map_err(unencodable)?;
    Ok(payload.into())
}
