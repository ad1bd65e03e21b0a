//! The incremental repairs that this node has part in (`LocalSessions`).
//!
//! What a session set apart is released when it ends: repaired, or unrepaired again. That is done
//! again at each start, and each minute, for what a crash or a late stream left behind.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use env::Class;
use internode::{FailureReason, Verb};
use metrics::Level;
use repair::wire::{
    FailSession, FinalizeCommit, FinalizePromise, FinalizePropose, PrepareConsistentRequest,
    PrepareConsistentResponse, SessionState, StatusRequest, StatusResponse,
};
use schema::TableId;
use storage::{Anticompaction, Outcome};
use types::{Address, Reader, TokenRange, Uuid};

use super::session::LocalSession;
use super::store::Store;
use crate::own_cql::OwnCql;
use crate::peers::Peers;
use crate::repair::asks::Asks;
use crate::repair::ongoing::Ongoing;
use crate::repair::parents::Parent;
use crate::shard_context::ShardContext;

/// All of them; on the first shard.
pub struct LocalSessions {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    asks: Rc<Asks>,
    ongoing: Rc<Ongoing>,
    store: Store,
    sessions: RefCell<BTreeMap<Uuid, LocalSession>>,
    /// Sessions that set SSTables apart now: what stops that.
    preparing: RefCell<BTreeMap<Uuid, Rc<Cell<bool>>>>,
    /// Sessions that promised or ended, which the disk does not know yet: nobody is told.
    unsaved: RefCell<BTreeSet<Uuid>>,
    is_loaded: Cell<bool>,
    /// Who wants to know that a session failed: who coordinates it.
    failures: RefCell<Vec<Box<dyn Fn(Uuid)>>>,
}

impl LocalSessions {
    pub(in crate::repair) fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        (asks, ongoing): (&Rc<Asks>, &Rc<Ongoing>),
        cql: &Rc<OwnCql>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            asks: Rc::clone(asks),
            ongoing: Rc::clone(ongoing),
            store: Store::new(shard, cql),
            sessions: RefCell::default(),
            preparing: RefCell::default(),
            unsaved: RefCell::default(),
            is_loaded: Cell::default(),
            failures: RefCell::default(),
        })
    }

    /// Tells of sessions that fail from now on.
    pub(in crate::repair) fn watch_failures(&self, told: impl Fn(Uuid) + 'static) {
        self.failures.borrow_mut().push(Box::new(told));
    }

    #[track_caller]
    pub(super) fn note(&self, level: Level, text: String) {
        self.peers.note(level, text);
    }

    pub(super) fn now(&self) -> i64 {
        self.shard.env.unix_micros() / 1_000_000
    }

    pub(super) fn local(&self) -> Option<Address> {
        self.peers.messenger().map(|messenger| messenger.settings().local)
    }

    /// A session.
    pub fn get(&self, id: Uuid) -> Option<LocalSession> {
        self.sessions.borrow().get(&id).cloned()
    }

    /// All sessions.
    pub fn all(&self) -> Vec<LocalSession> {
        self.sessions.borrow().values().cloned().collect()
    }

    /// Loads what was saved, and ends what this node's last end left open; once.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) async fn load(&self) -> Result<(), String> {
        if self.is_loaded.get() {
            return Ok(());
        }
        let loaded = self.store.load().await?;
        let sessions = loaded.into_iter().map(|session| (session.id, session));
        self.sessions.borrow_mut().extend(sessions);
        self.is_loaded.set(true);
        for session in self.all() {
            match session.state {
                SessionState::Finalized | SessionState::Failed => {}
                // who coordinates it commits first: nobody has
                SessionState::FinalizePromised if self.local() == Some(session.coordinator) => {
                    self.fail(session.id, true).await;
                }
                // it may be that all others have committed it
                SessionState::FinalizePromised
                    if !self.shard.env.planted("repair_fails_after_promise") =>
                {
                    self.ongoing.begin(session.id);
                }
                _ => self.fail(session.id, true).await,
            }
        }
        Ok(())
    }

    /// Changes a session's state. False if it is in another one than expected, or cannot get there.
    async fn reach(
        &self,
        id: Uuid,
        from: Option<SessionState>,
        to: SessionState,
    ) -> Result<bool, String> {
        let changed = {
            let mut sessions = self.sessions.borrow_mut();
            let Some(session) = sessions.get_mut(&id) else { return Ok(false) };
            if from.is_some_and(|from| session.state != from) || !session.state.can_become(to) {
                return Ok(false);
            }
            let was_over = session.is_over();
            session.state = to;
            session.updated = self.now();
            (session.clone(), was_over)
        };
        let (session, was_over) = changed;
        // what was promised must be known after a crash, and how the session ended too: others may
        // have forgotten it by then
        let is_durable = session.is_over() || to == SessionState::FinalizePromised;
        if is_durable {
            self.unsaved.borrow_mut().insert(id);
        }
        self.store.save(&session, is_durable).await?;
        self.unsaved.borrow_mut().remove(&id);
        if session.is_over() && !was_over {
            self.ongoing.end(id);
            if let Some(stop) = self.preparing.borrow_mut().remove(&id) {
                stop.set(true);
            }
            if to == SessionState::Failed {
                self.failures.borrow().iter().for_each(|told| told(id));
            }
            self.release(&session).await;
        }
        Ok(true)
    }

    /// Gives what a session that is over set apart to where it belongs.
    pub(super) async fn release(&self, session: &LocalSession) -> bool {
        let counts_all = || self.shard.env.planted("repair_failed_session_counts_as_repaired");
        let outcome = match session.state {
            SessionState::Finalized => Outcome::Repaired(session.repaired_at),
            _ if counts_all() => Outcome::Repaired(session.repaired_at),
            _ => Outcome::Failed,
        };
        self.release_as(session.id, outcome).await
    }

    pub(super) async fn release_as(&self, id: Uuid, outcome: Outcome) -> bool {
        let Some(node) = self.shard.engine.node() else { return false };
        match node.repairs().release(id, outcome).await {
            Ok(()) => true,
            Err(error) => {
                let text = format!(
                    "cannot release the SSTables of incremental repair {id}, which is over: \
                     {error}. It is tried again each minute, and by nodetool repair_admin cleanup"
                );
                self.note(Level::Error, text);
                false
            }
        }
    }

    /// A session fails here. `tells` its coordinator.
    pub(in crate::repair) async fn fail(&self, id: Uuid, tells: bool) {
        let session = self.get(id);
        let Some(session) = session.filter(|session| !session.is_over()) else { return };
        if let Err(why) = self.reach(id, None, SessionState::Failed).await {
            self.note(Level::Error, format!("cannot save that repair {id} failed: {why}"));
        }
        if tells && self.local() != Some(session.coordinator) {
            let mut payload = Vec::new();
            FailSession { session: id }.write(&mut payload);
            let (asks, to) = (Rc::clone(&self.asks), session.coordinator);
            self.shard.env.spawn(Class::Streaming, async move {
                // who does not hear it finds out that nothing comes of the repair
                let _ = asks.ask(to, Verb::FailedSessionMsg, payload).await;
            });
        }
    }

    /// Another node says something of a session.
    ///
    /// # Errors
    /// What it is to be told.
    pub(in crate::repair) async fn serve(
        self: &Rc<Self>,
        from: Address,
        verb: Verb,
        payload: &[u8],
        parent: impl Fn(Uuid) -> Option<Parent>,
    ) -> Result<(), FailureReason> {
        if !self.is_loaded.get() {
            return Err(FailureReason::Unknown);
        }
        let mut reader = Reader::new(payload);
        let unreadable = |_| FailureReason::Unknown;
        let done = match verb {
            Verb::PrepareConsistentReq => {
                let of = PrepareConsistentRequest::read(&mut reader).map_err(unreadable)?;
                self.prepare(from, of, parent)
            }
            Verb::FinalizeProposeMsg => {
                let of = FinalizePropose::read(&mut reader).map_err(unreadable)?;
                self.propose(from, of.session)
            }
            Verb::FinalizeCommitMsg => {
                let of = FinalizeCommit::read(&mut reader).map_err(unreadable)?;
                self.known(from, of.session).map(drop)?;
                self.commit(of.session).await
            }
            Verb::FailedSessionMsg => {
                let of = FailSession::read(&mut reader).map_err(unreadable)?;
                // one that is not known failed before it began
                if self.known(from, of.session).is_ok() {
                    self.fail(of.session, false).await;
                }
                Ok(())
            }
            Verb::StatusReq => {
                let of = StatusRequest::read(&mut reader).map_err(unreadable)?;
                self.tell_status(from, of.session);
                Ok(())
            }
            Verb::StatusRsp => {
                let of = StatusResponse::read(&mut reader).map_err(unreadable)?;
                self.known(from, of.session).map(drop)?;
                self.learn(of.session, of.state).await
            }
            _ => return Err(FailureReason::Unknown),
        };
        done.map_err(|why| {
            let text = format!("{} from /{from} cannot be followed: {why}", verb.name());
            self.note(Level::Warn, text);
            FailureReason::Unknown
        })
    }

    /// A session that this node and another know of.
    fn known(&self, from: Address, id: Uuid) -> Result<LocalSession, FailureReason> {
        let session = self.get(id).filter(|session| session.knows(from));
        session.ok_or(FailureReason::Unknown)
    }

    /// What is to be repaired is set apart.
    fn prepare(
        self: &Rc<Self>,
        from: Address,
        of: PrepareConsistentRequest,
        parent: impl Fn(Uuid) -> Option<Parent>,
    ) -> Result<(), String> {
        let id = of.session;
        if let Some(known) = self.get(id) {
            // it was asked before: the answer is under way, or comes
            return match known.coordinator == from {
                true => Ok(()),
                false => Err("the repair is another node's".to_owned()),
            };
        }
        let parent = parent(id).filter(|parent| parent.is_incremental);
        let parent = parent.filter(|parent| parent.coordinator == from && of.coordinator == from);
        let parent = parent.ok_or("there is no such incremental repair")?;
        let now = self.now();
        let session = LocalSession {
            id,
            state: SessionState::Preparing,
            coordinator: from,
            tables: parent.tables.clone(),
            repaired_at: parent.repaired_at,
            ranges: parent.ranges.iter().copied().collect(),
            participants: of.participants.into_iter().collect(),
            started: now,
            updated: now,
        };
        self.begin(session);
        Ok(())
    }

    /// Takes part in a session from now on.
    pub(in crate::repair) fn begin(self: &Rc<Self>, session: LocalSession) {
        let id = session.id;
        self.sessions.borrow_mut().insert(id, session.clone());
        self.ongoing.begin(id);
        let stop = Rc::new(Cell::new(false));
        self.preparing.borrow_mut().insert(id, Rc::clone(&stop));
        let this = Rc::clone(self);
        self.shard.env.spawn(Class::Streaming, async move {
            let prepared = this.set_apart(&session, stop).await;
            this.preparing.borrow_mut().remove(&id);
            if let Err(why) = &prepared {
                let text = format!("[repair #{id}] cannot be prepared: {why}");
                this.note(Level::Error, text);
                this.fail(id, false).await;
            }
            let is_success = prepared.is_ok();
            this.prepared(session.coordinator, id, is_success).await;
        });
    }

    async fn set_apart(&self, session: &LocalSession, stop: Rc<Cell<bool>>) -> Result<(), String> {
        self.store.save(session, false).await?;
        self.shard.env.mark("repair.set_apart");
        let node = self.shard.engine.node().ok_or("the node is stopping")?;
        let mut tables = BTreeMap::new();
        for id in &session.tables {
            tables.insert(*id, self.own_ranges(*id, session));
        }
        let finalized =
            self.all().into_iter().filter(|other| other.state == SessionState::Finalized);
        let finalized = finalized.map(|other| other.id).collect();
        let wanted = Anticompaction { session: session.id, tables, finalized };
        node.repairs().anticompact(wanted, stop).await.map_err(|error| error.to_string())?;
        match self.reach(session.id, Some(SessionState::Preparing), SessionState::Prepared).await? {
            true => Ok(()),
            false => {
                // it failed meanwhile: what was set apart since is released
                self.release_as(session.id, Outcome::Failed).await;
                Err("it failed before all was set apart".to_owned())
            }
        }
    }

    /// What of a session's ranges this node has of a table.
    fn own_ranges(&self, table: TableId, session: &LocalSession) -> Vec<TokenRange> {
        let schema = self.shard.schema();
        let asked = TokenRange::normalize(session.ranges.iter().copied());
        let keyspace = schema.table_by_id(&table).and_then(|of| schema.keyspace(&of.keyspace));
        let scope = keyspace.and_then(|keyspace| self.peers.scope(keyspace).ok().flatten());
        let Some(scope) = scope else { return asked };
        let own = TokenRange::normalize(scope.placement.ranges_of(scope.ring.local()));
        let rest: Vec<_> = asked.iter().flat_map(|range| range.without(&own)).collect();
        asked.iter().flat_map(|range| range.without(&rest)).collect()
    }

    async fn prepared(&self, coordinator: Address, session: Uuid, is_success: bool) {
        let Some(participant) = self.local().filter(|local| *local != coordinator) else { return };
        let mut payload = Vec::new();
        PrepareConsistentResponse { session, participant, is_success }.write(&mut payload);
        let told = self.asks.ask(coordinator, Verb::PrepareConsistentRsp, payload).await;
        if let Err(why) = told {
            let text = format!("[repair #{session}] its coordinator did not hear of it: {why}");
            self.note(Level::Warn, text);
        }
    }

    /// Validation begins.
    pub(in crate::repair) async fn set_repairing(&self, id: Uuid) -> Result<(), String> {
        let Some(session) = self.get(id) else { return Ok(()) };
        if session.state == SessionState::Repairing {
            return Ok(());
        }
        match self.reach(id, None, SessionState::Repairing).await? {
            true => Ok(()),
            false => Err(format!("incremental repair {id} is {}", session.state)),
        }
    }

    /// The coordinator wants to know whether this node will commit.
    fn propose(self: &Rc<Self>, from: Address, id: Uuid) -> Result<(), String> {
        let session = self.get(id).filter(|session| session.coordinator == from);
        session.ok_or("there is no such repair")?;
        if self.unsaved.borrow().contains(&id) {
            // it was asked before: the answer is under way
            return Ok(());
        }
        let this = Rc::clone(self);
        self.shard.env.spawn(Class::Streaming, async move {
            let promised = this.promise(id).await;
            if let Err(why) = &promised {
                this.note(Level::Error, format!("[repair #{id}] is not promised: {why}"));
                this.fail(id, false).await;
            }
            let Some(participant) = this.local() else { return };
            let mut payload = Vec::new();
            let is_promised = promised.is_ok();
            FinalizePromise { session: id, participant, is_promised }.write(&mut payload);
            if let Err(why) = this.asks.ask(from, Verb::FinalizePromiseMsg, payload).await {
                let text = format!("[repair #{id}] its coordinator did not hear a promise: {why}");
                this.note(Level::Warn, text);
            }
        });
        Ok(())
    }

    /// From now on this node does as the coordinator decides.
    pub(in crate::repair) async fn promise(&self, id: Uuid) -> Result<(), String> {
        let session = self.get(id).ok_or("there is no such repair")?;
        if session.state == SessionState::FinalizePromised {
            return Ok(());
        }
        let from = Some(SessionState::Repairing);
        match self.reach(id, from, SessionState::FinalizePromised).await? {
            true => {
                self.shard.env.mark("repair.promise");
                if self.shard.env.planted("repair_releases_before_commit") {
                    self.release_as(id, Outcome::Repaired(session.repaired_at)).await;
                }
                Ok(())
            }
            false => Err(format!("it is {}", session.state)),
        }
    }

    /// What was set apart is repaired.
    pub(in crate::repair) async fn commit(&self, id: Uuid) -> Result<(), String> {
        let session = self.get(id).ok_or("there is no such repair")?;
        if session.state == SessionState::Finalized {
            return Ok(());
        }
        let from = Some(SessionState::FinalizePromised);
        self.shard.env.mark("repair.commit");
        match self.reach(id, from, SessionState::Finalized).await? {
            true => Ok(()),
            false => Err(format!("it is {}", session.state)),
        }
    }

    fn tell_status(&self, to: Address, id: Uuid) {
        // one that nobody knows was never committed
        let state = self.get(id).map_or(SessionState::Failed, |session| session.state);
        let state = match state {
            SessionState::Finalized if self.unsaved.borrow().contains(&id) => {
                SessionState::FinalizePromised
            }
            state => state,
        };
        let mut payload = Vec::new();
        StatusResponse { session: id, state }.write(&mut payload);
        let asks = Rc::clone(&self.asks);
        self.shard.env.spawn(Class::Streaming, async move {
            let _ = asks.ask(to, Verb::StatusRsp, payload).await;
        });
    }

    /// Another node says how a session ended, or that it has not.
    async fn learn(&self, id: Uuid, state: SessionState) -> Result<(), String> {
        let Some(session) = self.get(id).filter(|session| !session.is_over()) else {
            return Ok(());
        };
        match state {
            SessionState::Failed => self.fail(id, false).await,
            SessionState::Finalized if session.state == SessionState::FinalizePromised => {
                self.commit(id).await?;
            }
            // who has not promised has nothing that may be committed
            SessionState::Finalized => self.fail(id, false).await,
            _ => {}
        }
        Ok(())
    }

    /// Saves how a session ended, if the disk did not take that before. False if it does not yet.
    pub(super) async fn is_saved(&self, session: &LocalSession) -> bool {
        if !self.unsaved.borrow().contains(&session.id) {
            return true;
        }
        if let Err(why) = self.store.save(session, true).await {
            let text = format!("cannot save how repair {} ended: {why}", session.id);
            self.note(Level::Error, text);
            return false;
        }
        self.unsaved.borrow_mut().remove(&session.id);
        self.ongoing.end(session.id);
        true
    }

    /// Releases what those of some sessions that are over left.
    pub(in crate::repair) async fn release_ended(&self, sessions: &[Uuid]) {
        for session in sessions.iter().filter_map(|id| self.get(*id)) {
            if session.is_over() {
                self.release(&session).await;
            }
        }
    }

    pub(super) fn has_data(&self, id: Uuid) -> bool {
        self.shard.engine.node().is_some_and(|node| !node.repairs().pending(id).is_empty())
    }

    /// Forgets a session that is over.
    pub(super) async fn forget(&self, id: Uuid) {
        if self.store.delete(id).await.is_ok() {
            self.sessions.borrow_mut().remove(&id);
        }
    }

    /// Ends a session as failed, for the operator.
    ///
    /// # Errors
    /// In Cassandra's words, if there is none, or it is another node's.
    pub async fn cancel(&self, id: Uuid, force: bool) -> Result<(), String> {
        let session = self.get(id);
        let session = session.ok_or_else(|| format!("Session {{}} does not exist [{id}]"))?;
        let local = self.local();
        if !force && local != Some(session.coordinator) {
            let coordinator = session.coordinator;
            return Err(format!(
                "Cancel session {id} from it's coordinator (/{coordinator}) or use --force"
            ));
        }
        if session.state == SessionState::Finalized {
            return Err("Invalid state transition FINALIZED -> FAILED".to_owned());
        }
        self.fail(id, false).await;
        let mut payload = Vec::new();
        FailSession { session: id }.write(&mut payload);
        for node in session.participants.into_iter().filter(|node| Some(*node) != local) {
            let (asks, payload) = (Rc::clone(&self.asks), payload.clone());
            self.shard.env.spawn(Class::Streaming, async move {
                let _ = asks.ask(node, Verb::FailedSessionMsg, payload).await;
            });
        }
        Ok(())
    }
}
