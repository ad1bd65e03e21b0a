//! Repair: replicas compare what they have by Merkle trees, and stream to each other what differs
//! (`repair.*`).
//!
//! A node takes part in repairs that others coordinate, and coordinates those that its operator
//! starts. Messages come in at any shard; all but the hashing is done on the first one.

mod asks;
mod command;
mod consistent;
mod coordinator;
mod history;
mod job;
mod life;
mod neighbors;
mod ongoing;
mod parents;
mod participant;
mod preview;
mod replies;
mod validator;

use std::rc::{Rc, Weak};
use std::time::Duration;

use env::Class;
use internode::{FailureReason, Verb};
use repair::wire::{
    FailSession, FinalizePromise, PrepareConsistentResponse, SyncResponse, ValidationResponse,
};
use storage::shards::{Components, Remote};
use streaming::Streaming;
use types::{Address, Reader};

use crate::membership::Membership;
use crate::own_cql::OwnCql;
use crate::peers::Peers;
use crate::shard_context::ShardContext;
use asks::Asks;
pub use command::{EventKind, RepairCommand, RepairEnd, RepairEvent, STEPS};
pub use consistent::{
    CleanedUp, LocalSession, LocalSessions, PendingOf, PendingPart, RepairReport, RepairedParts,
};
use consistent::{Coordinated, Upkeep};
pub use coordinator::RepairCoordinator;
use history::History;
use job::Jobs;
use life::Life;
pub(crate) use ongoing::Ongoing;
use participant::Participant;
use replies::Replies;
use validator::Validator;

/// How often it is looked whether coordinators of repairs still live.
const LOOK: Duration = Duration::from_secs(10);

/// A shard's part in repairs.
pub(crate) struct Repairs {
    shard: Rc<ShardContext>,
    others: Remote<Repairs>,
    life: Rc<Life>,
    participant: Rc<Participant>,
    sessions: Rc<LocalSessions>,
    upkeep: Rc<Upkeep>,
    report: RepairReport,
    replies: Rc<Replies>,
    coordinator: Rc<RepairCoordinator>,
}

impl Repairs {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        components: &Components,
        (streaming, ongoing): (&Rc<Streaming>, &Rc<Ongoing>),
        cql: &Rc<OwnCql>,
    ) -> Rc<Self> {
        let validator = Validator::new(&shard.engine);
        components.add(&validator);
        let (of, life) = ((shard, peers), Life::new(shard));
        let asks = Asks::new(of, &life);
        let sessions = LocalSessions::new(of, (&asks, ongoing), cql);
        let upkeep = Upkeep::new(shard, &sessions, (&life, &asks));
        let report = RepairReport::new(&shard.engine, &sessions);
        let validators = components.remote();
        let participant = Participant::new(of, streaming, validators, (&asks, &sessions));
        let replies = Replies::new(&life);
        let history = Rc::new(History::new(cql, peers));
        let jobs = Jobs::new(of, &participant, &asks, &replies, &history);
        let coordinated = Coordinated::new(of, &sessions, &asks, &replies);
        let part = (&participant, &coordinated);
        let coordinator = RepairCoordinator::new(of, part, &jobs, &asks, &history);
        let shard = Rc::clone(shard);
        let others = components.remote();
        let repairs = Rc::new(Self {
            shard,
            others,
            life,
            participant,
            sessions,
            upkeep,
            report,
            replies,
            coordinator,
        });
        components.add(&repairs);
        repairs
    }

    /// This node is about to be in a ring; on the first shard.
    pub fn join(self: &Rc<Self>, membership: &Rc<Membership>) {
        self.life.know(membership);
        self.upkeep.start();
        let watched = Rc::downgrade(self);
        self.shard.env.spawn(Class::Background, watch(watched));
    }

    /// The incremental repairs that it has part in; on the first shard.
    pub fn sessions(&self) -> &Rc<LocalSessions> {
        &self.sessions
    }

    /// What is known of them; on the first shard.
    pub fn report(&self) -> &RepairReport {
        &self.report
    }

    /// What coordinates repairs; on the first shard.
    pub fn coordinator(&self) -> &Rc<RepairCoordinator> {
        &self.coordinator
    }

    /// Another node says something of a repair.
    ///
    /// # Errors
    /// What it is to be told.
    pub async fn serve(
        &self,
        from: Address,
        verb: Verb,
        payload: &[u8],
    ) -> Result<(), FailureReason> {
        let payload = payload.to_vec();
        let heard = self
            .others
            .call_async(0, Class::Streaming, move |first: Rc<Self>| async move {
                first.hear(from, verb, payload).await
            })
            .await;
        heard.unwrap_or(Err(FailureReason::Unknown))
    }

    async fn hear(&self, from: Address, verb: Verb, payload: Vec<u8>) -> Result<(), FailureReason> {
        // a stranger has no part in what a ring repairs
        if !self.participant.knows(from) {
            return Err(FailureReason::Unknown);
        }
        if verb == Verb::ValidationRsp {
            return self.hear_trees(from, payload).await;
        }
        let payload = payload.as_slice();
        let mut reader = Reader::new(payload);
        match verb {
            Verb::SyncRsp => {
                let of = SyncResponse::read(&mut reader);
                self.replies.synced(from, of.map_err(|_| FailureReason::Unknown)?);
                Ok(())
            }
            Verb::FailedSessionMsg => {
                let of = FailSession::read(&mut reader).map_err(|_| FailureReason::Unknown)?;
                self.participant.end_of(from, of.session);
                self.replies.phase(of.session, from, false);
                self.sessions.serve(from, verb, payload, |_| None).await
            }
            Verb::PrepareConsistentRsp => {
                let of = PrepareConsistentResponse::read(&mut reader);
                let of = of.map_err(|_| FailureReason::Unknown)?;
                self.replies.phase(of.session, from, of.is_success);
                Ok(())
            }
            Verb::FinalizePromiseMsg => {
                let of = FinalizePromise::read(&mut reader).map_err(|_| FailureReason::Unknown)?;
                self.replies.phase(of.session, from, of.is_promised);
                Ok(())
            }
            Verb::PrepareConsistentReq
            | Verb::FinalizeProposeMsg
            | Verb::FinalizeCommitMsg
            | Verb::StatusReq
            | Verb::StatusRsp => {
                let parent = |id| self.participant.parent(id);
                self.sessions.serve(from, verb, payload, parent).await
            }
            verb => self.participant.serve(from, verb, payload).await,
        }
    }
}

impl Repairs {
    /// A node sends its trees. Deep ones take longer to read than a shard's other tasks may wait.
    async fn hear_trees(&self, from: Address, payload: Vec<u8>) -> Result<(), FailureReason> {
        // what nobody waits for is not worth reading
        if !self.replies.is_expected(from) {
            return Ok(());
        }
        let read = move || ValidationResponse::read(&mut Reader::new(&payload));
        let of = self.shard.env.helper(read).await.map_err(|_| FailureReason::Unknown)?;
        self.replies.validated(from, of);
        Ok(())
    }
}

/// Forgets repairs whose coordinators died or started again.
async fn watch(repairs: Weak<Repairs>) {
    let mut starts = std::collections::BTreeMap::new();
    loop {
        let Some(this) = repairs.upgrade() else { return };
        let env = this.shard.env.clone();
        let coordinators = this.participant.coordinators();
        starts.retain(|node, _| coordinators.contains(node));
        for node in coordinators {
            let now = (this.life.start(node), this.life.is_up(node));
            let before = *starts.entry(node).or_insert(now);
            let is_own = this.participant.is_local(node);
            let is_gone = !is_own && (before.0 != now.0 || (!before.1 && !now.1));
            starts.insert(node, now);
            if is_gone {
                this.participant.lost(node);
            }
        }
        drop(this);
        env.sleep(LOOK).await;
    }
}
