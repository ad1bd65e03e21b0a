//! Looks after the incremental repairs that this node has part in (`LocalSessions.cleanup`): ends
//! what nothing becomes of, asks how others ended, and releases what they left.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::time::Duration;

use env::Class;
use internode::Verb;
use metrics::Level;
use repair::wire::{SessionState, StatusRequest};
use storage::Outcome;
use types::Uuid;

use super::report::finalized;
use super::sections::is_superseded;
use super::session::LocalSession;
use super::sessions::LocalSessions;
use crate::repair::asks::Asks;
use crate::repair::life::Life;
use crate::shard_context::ShardContext;

/// How often sessions are looked at that nothing becomes of.
const LOOK: Duration = Duration::from_secs(60);
/// A coordinator that is down so many looks in a row is gone.
const LOOKS_DOWN: u32 = 5;
/// One of which nothing was heard for so long is asked about, in seconds.
const ASKED_AFTER: i64 = 300;
/// One that has not ended by then fails, in seconds (`LocalSessions.AUTO_FAIL_TIMEOUT`).
const FAILED_AFTER: i64 = 24 * 3_600;
/// One that ended is forgotten after so long, in seconds (`LocalSessions.AUTO_DELETE_TIMEOUT`).
const FORGOTTEN_AFTER: i64 = 24 * 3_600;

/// Does it; on the first shard.
pub(in crate::repair) struct Upkeep {
    shard: Rc<ShardContext>,
    sessions: Rc<LocalSessions>,
    life: Rc<Life>,
    asks: Rc<Asks>,
    /// Of sessions that are not over: when their coordinators were started, and how often in a row
    /// they were down.
    coordinators: RefCell<BTreeMap<Uuid, (Option<i32>, u32)>>,
}

impl Upkeep {
    pub fn new(
        shard: &Rc<ShardContext>,
        sessions: &Rc<LocalSessions>,
        (life, asks): (&Rc<Life>, &Rc<Asks>),
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            sessions: Rc::clone(sessions),
            life: Rc::clone(life),
            asks: Rc::clone(asks),
            coordinators: RefCell::default(),
        })
    }

    /// Loads sessions, and looks after them from now on.
    pub fn start(self: &Rc<Self>) {
        self.shard.env.spawn(Class::Background, keep_up(Rc::downgrade(self)));
    }

    /// Ends what nothing becomes of.
    async fn look(&self) {
        let now = self.sessions.now();
        for session in self.sessions.all() {
            let idle = now - session.updated;
            match session.is_over() {
                true => self.look_at_ended(&session, idle).await,
                false => {
                    let is_lost = self.is_lost(&session);
                    let is_free = session.state != SessionState::FinalizePromised;
                    if is_free && (is_lost || idle > FAILED_AFTER) {
                        let why = if is_lost { "its coordinator is gone" } else { "nothing came" };
                        let text = format!("[repair #{}] failed: {why}", session.id);
                        self.sessions.note(Level::Warn, text);
                        self.sessions.fail(session.id, false).await;
                    } else if is_lost || idle > ASKED_AFTER {
                        self.ask_about(&session).await;
                    }
                }
            }
        }
        let is_open = |id: &Uuid| self.sessions.get(*id).is_some_and(|session| !session.is_over());
        self.coordinators.borrow_mut().retain(|id, _| is_open(id));
        self.release_strangers().await;
    }

    /// Is the coordinator of a session gone for good, or has it started again? Then it knows
    /// nothing of it, or that it failed, unless all had promised.
    fn is_lost(&self, session: &LocalSession) -> bool {
        let node = session.coordinator;
        if self.sessions.local() == Some(node) {
            return false;
        }
        let now = self.life.start(node);
        let mut coordinators = self.coordinators.borrow_mut();
        let (start, looks) = coordinators.entry(session.id).or_insert((now, 0));
        *looks = if self.life.is_up(node) { 0 } else { *looks + 1 };
        *looks >= LOOKS_DOWN || *start != now
    }

    /// What one that is over left is released; then it is forgotten, some time.
    async fn look_at_ended(&self, session: &LocalSession, idle: i64) {
        if !self.sessions.is_saved(session).await {
            return;
        }
        let forgets = self.shard.env.planted("repair_release_not_tried_again");
        let has_data = self.sessions.has_data(session.id) && !forgets;
        if has_data && !self.sessions.release(session).await {
            return;
        }
        let is_superseded = session.tables.iter().all(|table| {
            let others = finalized(&self.sessions, *table);
            is_superseded(&session.ranges, session.repaired_at, &others)
        });
        // it says when a table was repaired last
        let is_needed =
            session.state == SessionState::Finalized && session.repaired_at != 0 && !is_superseded;
        if idle > FORGOTTEN_AFTER && !is_needed {
            self.sessions.forget(session.id).await;
        }
    }

    /// Asks the others how a session ended.
    async fn ask_about(&self, session: &LocalSession) {
        let mut payload = Vec::new();
        StatusRequest { session: session.id }.write(&mut payload);
        let local = self.sessions.local();
        for node in session.participants.iter().copied() {
            if Some(node) == local || !self.life.is_up(node) {
                continue;
            }
            let (asks, payload) = (Rc::clone(&self.asks), payload.clone());
            self.shard.env.spawn(Class::Streaming, async move {
                let _ = asks.ask(node, Verb::StatusReq, payload).await;
            });
        }
    }

    /// SSTables of sessions that nobody knows are unrepaired.
    async fn release_strangers(&self) {
        let Some(node) = self.shard.engine.node() else { return };
        let pending: BTreeSet<Uuid> = node.repairs().pending_sessions().into_keys().collect();
        for id in pending {
            if self.sessions.get(id).is_none() {
                self.sessions.release_as(id, Outcome::Failed).await;
            }
        }
    }
}

/// Loads sessions, and looks after them.
async fn keep_up(upkeep: Weak<Upkeep>) {
    loop {
        let Some(this) = upkeep.upgrade() else { return };
        let env = this.shard.env.clone();
        match this.sessions.load().await {
            Ok(()) => this.look().await,
            Err(why) => {
                let text = format!(
                    "cannot read system.repairs: this node takes no part in incremental repairs \
                     until it can, and tries each minute: {why}"
                );
                this.sessions.note(Level::Error, text);
            }
        }
        drop(this);
        env.sleep(LOOK).await;
    }
}
