//! What is remembered of plans, those that are over too (`StreamingState`, and the cache of them in
//! `StreamManager`): `system_views.streaming` shows it.
//!
//! Pure: whoever calls says what time it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use env::Instant;
use types::{Address, Uuid};

use crate::progress::{Direction, Progress, Sum};
use crate::session::SessionId;
use crate::wire::Operation;

/// Memory that a plan counts for, without its peers and its message, in bytes.
const STATE_BYTES: u64 = 512;
/// Memory that another node of a plan counts for, in bytes.
const PEER_BYTES: u64 = 112;

/// What an operator says of it (`streaming_stats_enabled`, `streaming_state_expires`,
/// `streaming_state_size`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Is anything remembered?
    pub is_enabled: bool,
    /// How long a plan is remembered after it began or failed.
    pub expires: Duration,
    /// Bytes of memory in all.
    pub bytes: u64,
}

impl Default for Remembered {
    fn default() -> Self {
        Self { is_enabled: true, expires: Duration::from_secs(3 * 24 * 3600), bytes: 40 << 20 }
    }
}

/// How far a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It was made.
    Init,
    /// Its sessions are under way.
    Start,
    /// All of them are complete.
    Success,
    /// One of them failed.
    Failure,
}

impl Status {
    /// All, in their order.
    pub const ALL: [Self; 4] = [Self::Init, Self::Start, Self::Success, Self::Failure];

    /// In Cassandra's words, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Start => "start",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }

    fn is_final(self) -> bool {
        matches!(self, Self::Success | Self::Failure)
    }
}

/// A point in time, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub at: Instant,
    /// Since 1970.
    pub unix_millis: i64,
}

/// A plan, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanView {
    /// A time-UUID.
    pub id: Uuid,
    /// Did another node begin it?
    pub is_follower: bool,
    /// What for.
    pub operation: Operation,
    /// The nodes with which sessions were prepared.
    pub peers: Vec<Address>,
    /// How far it is.
    pub status: Status,
    /// The same, from 0 to 1.
    pub progress: f32,
    /// When something happened to it last, in milliseconds since 1970.
    pub updated_at: i64,
    /// How long it has taken.
    pub duration: Duration,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it came to which status, in milliseconds since 1970.
    pub reached: Vec<(Status, i64)>,
    /// What comes.
    pub receiving: Sum,
    /// What goes.
    pub sending: Sum,
}

/// A plan that is remembered.
struct Plan {
    id: Uuid,
    is_follower: bool,
    operation: Operation,
    began: Moment,
    /// When it was put here; a failure puts it here anew.
    put: Instant,
    updated: Instant,
    status: Status,
    reached: BTreeMap<Status, Instant>,
    peers: Vec<Address>,
    failed: Vec<(Address, String)>,
    under_way: Vec<(SessionId, Rc<Progress>)>,
    /// Of sessions that are over: what came, and what went.
    over: (Sum, Sum),
}

/// Those of a node, on its first shard.
pub(crate) struct States {
    settings: Remembered,
    /// The one that was put here first is first.
    plans: RefCell<Vec<Plan>>,
}

impl States {
    pub fn new(settings: Remembered) -> Self {
        Self { settings, plans: RefCell::default() }
    }

    /// A plan begins, or a session of one that another node began.
    pub fn begin(&self, id: Uuid, operation: Operation, is_follower: bool, now: Moment) {
        if !self.settings.is_enabled {
            return;
        }
        self.forget(now.at);
        let mut plans = self.plans.borrow_mut();
        if let Some(plan) = plans.iter_mut().find(|plan| plan.id == id) {
            return plan.reach(Status::Start, now.at);
        }
        let reached = [(Status::Init, now.at), (Status::Start, now.at)];
        plans.push(Plan {
            id,
            is_follower,
            operation,
            began: now,
            put: now.at,
            updated: now.at,
            status: Status::Start,
            reached: reached.into(),
            peers: Vec::new(),
            failed: Vec::new(),
            under_way: Vec::new(),
            over: Default::default(),
        });
        drop(plans);
        self.bound();
    }

    /// A session of a plan begins.
    pub fn session(&self, id: SessionId, progress: &Rc<Progress>) {
        self.of(id.plan, |plan| plan.under_way.push((id, Rc::clone(progress))));
    }

    /// Both sides of a session know what is to go.
    pub fn prepared(&self, id: SessionId, now: Instant) {
        self.of(id.plan, |plan| {
            plan.updated = now;
            if !plan.peers.contains(&id.peer) {
                plan.peers.push(id.peer);
            }
        });
        self.bound();
    }

    /// A session is over; so is its plan, if another node began it and no other is under way.
    pub fn session_over(&self, id: SessionId, failed: Option<&str>, now: Instant) {
        let mut is_over = false;
        self.of(id.plan, |plan| {
            plan.updated = now;
            plan.under_way.retain(|(of, progress)| {
                if *of == id {
                    let (receiving, sending) = plan.over;
                    plan.over = (
                        receiving.plus(progress.sum(Direction::In)),
                        sending.plus(progress.sum(Direction::Out)),
                    );
                }
                *of != id
            });
            plan.failed.extend(failed.map(|why| (id.peer, why.to_owned())));
            is_over = plan.is_follower && plan.under_way.is_empty();
        });
        if is_over {
            self.end(id.plan, &[], now);
        }
    }

    /// A plan is over: with whom it failed, and why, beyond what its sessions said.
    pub fn end(&self, id: Uuid, failed: &[(Address, String)], now: Instant) {
        self.forget(now);
        let mut plans = self.plans.borrow_mut();
        let Some(place) = plans.iter().position(|plan| plan.id == id) else { return };
        let mut plan = plans.remove(place);
        for (peer, why) in failed {
            if !plan.failed.iter().any(|(before, _)| before == peer) {
                plan.failed.push((*peer, why.clone()));
            }
        }
        if plan.failed.is_empty() {
            plan.reach(Status::Success, now);
            plans.insert(place, plan);
            return;
        }
        plan.reach(Status::Failure, now);
        plan.put = now;
        plans.push(plan);
        drop(plans);
        self.bound();
    }

    /// Part of a file went.
    pub fn went_on(&self, id: Uuid, now: Instant) {
        self.of(id, |plan| plan.updated = now);
    }

    /// All that are remembered.
    pub fn views(&self, now: Instant) -> Vec<PlanView> {
        self.forget(now);
        self.plans.borrow().iter().map(|plan| plan.view(now)).collect()
    }

    fn of(&self, id: Uuid, change: impl FnOnce(&mut Plan)) {
        if let Some(plan) = self.plans.borrow_mut().iter_mut().find(|plan| plan.id == id) {
            change(plan);
        }
    }

    fn forget(&self, now: Instant) {
        let expires = self.settings.expires;
        self.plans.borrow_mut().retain(|plan| now.since(plan.put) < expires);
    }

    /// Forgets the oldest plans where all together take more memory than they may.
    fn bound(&self) {
        let mut plans = self.plans.borrow_mut();
        let mut bytes: u64 = plans.iter().map(Plan::bytes).sum();
        let mut gone = 0;
        for plan in plans.iter() {
            if bytes <= self.settings.bytes {
                break;
            }
            bytes -= plan.bytes();
            gone += 1;
        }
        plans.drain(..gone);
    }
}

impl Plan {
    fn reach(&mut self, status: Status, now: Instant) {
        self.status = status;
        self.updated = now;
        self.reached.insert(status, now);
    }

    fn bytes(&self) -> u64 {
        let failed: usize = self.failed.iter().map(|(_, why)| why.len()).sum();
        STATE_BYTES + self.peers.len() as u64 * PEER_BYTES + failed as u64
    }

    fn view(&self, now: Instant) -> PlanView {
        let sum = |over: Sum, direction| {
            let under_way = self.under_way.iter().map(|(_, progress)| progress.sum(direction));
            under_way.fold(over, Sum::plus)
        };
        let (receiving, sending) =
            (sum(self.over.0, Direction::In), sum(self.over.1, Direction::Out));
        let millis = |at: Instant| {
            let since = at.since(self.began.at).as_millis();
            self.began.unix_millis + i64::try_from(since).unwrap_or(i64::MAX)
        };
        let end = if self.status.is_final() { self.updated } else { now };
        let failure = self.failed.iter().fold("Stream failed: ".to_owned(), |text, (peer, why)| {
            format!("{text}\nSession peer /{peer} {why}")
        });
        PlanView {
            id: self.id,
            is_follower: self.is_follower,
            operation: self.operation,
            peers: self.peers.clone(),
            status: self.status,
            progress: progress(self.status, receiving.plus(sending)),
            updated_at: millis(self.updated),
            duration: end.since(self.began.at),
            failure: (self.status == Status::Failure).then_some(failure),
            reached: self.reached.iter().map(|(status, at)| (*status, millis(*at))).collect(),
            receiving,
            sending,
        }
    }
}

/// No plan that is under way is shown as done, however little is left.
const PROGRESS_MAX: f32 = 0.99;
/// Digits that Cassandra divides to (`StreamingState.Sessions.div`).
const PROGRESS_STEPS: f64 = 10_000.0;

fn progress(status: Status, sum: Sum) -> f32 {
    match status {
        Status::Init => 0.0,
        Status::Start if sum.bytes == 0 => 0.0,
        Status::Start => {
            let done = sum.bytes_done as f64 / sum.bytes as f64;
            ((done * PROGRESS_STEPS).round() / PROGRESS_STEPS).min(PROGRESS_MAX.into()) as f32
        }
        Status::Success | Status::Failure => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::{FileKey, FileView, TableView};
    use schema::TableId;

    const PEER: [u8; 4] = [10, 0, 0, 2];

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn moment(seconds: u64) -> Moment {
        Moment { at: at(seconds), unix_millis: 1_000_000 + seconds as i64 * 1000 }
    }

    fn session(plan: u128) -> SessionId {
        SessionId { plan: Uuid(plan), peer: Address::new(PEER, 7000), session: 0 }
    }

    /// A plan with one session that brings 1000 bytes.
    fn begun(states: &States, plan: u128, is_follower: bool) -> Rc<Progress> {
        states.begin(Uuid(plan), Operation::Rebuild, is_follower, moment(10));
        let progress = Rc::new(Progress::new(at(10)));
        states.session(session(plan), &progress);
        let table = TableId([1; 16]);
        progress.announce(Direction::In, TableView::new(table, 2, 1000));
        progress.begin(key(), FileView::new("f".to_owned(), 2, 1000));
        states.prepared(session(plan), at(11));
        progress
    }

    fn key() -> FileKey {
        FileKey { direction: Direction::In, table: TableId([1; 16]), sequence: 0 }
    }

    fn only(states: &States, now: u64) -> PlanView {
        let mut views = states.views(at(now));
        assert_eq!(views.len(), 1);
        views.remove(0)
    }

    #[test]
    fn a_plan_goes_from_start_to_success() {
        let states = States::new(Remembered::default());
        let progress = begun(&states, 1, false);
        progress.went_on(key(), 123, at(12));
        states.went_on(Uuid(1), at(12));
        let view = only(&states, 13);
        assert_eq!((view.status, view.progress), (Status::Start, 0.123));
        assert_eq!((view.updated_at, view.duration), (1_012_000, Duration::from_secs(3)));
        assert_eq!(view.peers, [Address::new(PEER, 7000)]);
        let sum = Sum { files: 2, bytes: 1000, files_done: 0, bytes_done: 123 };
        assert_eq!((view.receiving, view.sending), (sum, Sum::default()));
        progress.went_on(key(), 877, at(14));
        assert_eq!(only(&states, 14).progress, 0.99, "it is not over yet");
        states.session_over(session(1), None, at(15));
        assert_eq!(only(&states, 15).status, Status::Start, "others may be under way");
        states.end(Uuid(1), &[], at(16));
        let view = only(&states, 30);
        assert_eq!((view.status, view.progress, view.failure), (Status::Success, 1.0, None));
        assert_eq!(view.duration, Duration::from_secs(6));
        assert_eq!((view.receiving.files_done, view.receiving.bytes_done), (2, 1000));
        let reached =
            [(Status::Init, 1_010_000), (Status::Start, 1_010_000), (Status::Success, 1_016_000)];
        assert_eq!(view.reached, reached);
    }

    #[test]
    fn who_follows_is_done_with_its_last_session() {
        let states = States::new(Remembered::default());
        begun(&states, 1, true);
        states.session_over(session(1), Some("it closed"), at(12));
        let view = only(&states, 20);
        assert_eq!((view.is_follower, view.status, view.progress), (true, Status::Failure, 1.0));
        let text = "Stream failed: \nSession peer /10.0.0.2:7000 it closed";
        assert_eq!(view.failure.as_deref(), Some(text));
    }

    #[test]
    fn plans_expire_and_a_failure_is_kept_anew() {
        let expires = Duration::from_secs(100);
        let states = States::new(Remembered { expires, ..Remembered::default() });
        begun(&states, 1, false);
        begun(&states, 2, false);
        states.end(Uuid(1), &[(Address::new(PEER, 7000), "no".to_owned())], at(60));
        assert_eq!(states.views(at(109)).len(), 2);
        assert_eq!(only(&states, 110).id, Uuid(1));
        assert_eq!(states.views(at(160)).len(), 0);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let bytes = 3 * (STATE_BYTES + PEER_BYTES);
        let states = States::new(Remembered { bytes, ..Remembered::default() });
        (1..=5).for_each(|plan| drop(begun(&states, plan, false)));
        let ids: Vec<_> = states.views(at(20)).into_iter().map(|view| view.id.0).collect();
        assert_eq!(ids, [3, 4, 5]);
        // what a failure says counts too
        states.end(Uuid(3), &[(Address::new(PEER, 7000), "x".repeat(100))], at(20));
        let ids: Vec<_> = states.views(at(20)).into_iter().map(|view| view.id.0).collect();
        assert_eq!(ids, [5, 3]);
    }

    #[test]
    fn nothing_is_remembered_where_it_is_off() {
        let states = States::new(Remembered { is_enabled: false, ..Remembered::default() });
        begun(&states, 1, false);
        assert_eq!(states.views(at(20)), []);
    }
}
