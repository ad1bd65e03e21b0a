//! A repair that this node coordinates, as its operator watches it (`ProgressEvent`): it goes on
//! whoever watches.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use env::Env;
use env::sync::Notify;
use types::Uuid;

/// What an event is, in Cassandra's words (`ProgressEventType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It begins.
    Start,
    /// It got on.
    Progress,
    /// Something to know.
    Notification,
    /// It did what it was to do.
    Success,
    /// Something failed.
    Error,
    /// It is over.
    Complete,
}

/// Something that happened in a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairEvent {
    /// What it is.
    pub kind: EventKind,
    /// In Cassandra's words.
    pub message: String,
    /// How far the repair is, of [`STEPS`].
    pub step: u32,
    /// When, in milliseconds of Unix.
    pub millis: i64,
}

/// The steps of a repair (`CoordinatorState.State`, and the end).
pub const STEPS: u32 = 7;

/// How a repair ended (`ActiveRepairService.recordRepairStatus`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairEnd {
    /// Did it fail?
    pub has_failed: bool,
    /// What there is to say; of one that failed, the reason first.
    pub messages: Vec<String>,
}

/// How far a repair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Setup = 0,
    Start = 1,
    Preparing = 2,
    Repairing = 4,
    Repaired = 5,
    Over = 7,
}

/// Events of a repair that are kept: of more, those in the middle are dropped.
const EVENTS_MAX: usize = 10_000;

/// A repair.
pub struct RepairCommand {
    /// Its number, as `nodetool` says it.
    pub number: u32,
    /// Its name among nodes.
    pub id: Uuid,
    /// The keyspace.
    pub keyspace: String,
    step: Cell<Step>,
    end: RefCell<Option<RepairEnd>>,
    events: RefCell<Vec<RepairEvent>>,
    happened: Notify,
}

impl RepairCommand {
    pub(super) fn new(number: u32, id: Uuid, keyspace: String) -> Self {
        Self {
            number,
            id,
            keyspace,
            step: Cell::new(Step::Setup),
            end: RefCell::default(),
            events: RefCell::default(),
            happened: Notify::new(),
        }
    }

    pub(super) fn reach(&self, step: Step) {
        self.step.set(step);
    }

    pub(super) fn tell(&self, env: &Env, kind: EventKind, message: String) {
        let (step, millis) = (self.step.get() as u32, env.unix_micros() / 1000);
        let mut events = self.events.borrow_mut();
        let is_last = matches!(kind, EventKind::Error | EventKind::Success | EventKind::Complete);
        if events.len() < EVENTS_MAX || is_last {
            events.push(RepairEvent { kind, message, step, millis });
        }
        self.happened.notify_all();
    }

    pub(super) fn end(&self, has_failed: bool, messages: Vec<String>) {
        self.end.replace(Some(RepairEnd { has_failed, messages }));
        self.happened.notify_all();
    }

    /// Is it over?
    pub fn is_over(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<RepairEnd> {
        self.end.borrow().clone()
    }

    /// What the first event that is an error said.
    pub(super) fn first_error(&self) -> Option<String> {
        let events = self.events.borrow();
        let error = events.iter().find(|event| event.kind == EventKind::Error);
        error.map(|event| event.message.clone())
    }

    /// What happened after so many events; waits that long for something.
    pub async fn events(&self, env: &Env, after: usize, wait: Duration) -> Vec<RepairEvent> {
        let by = env.now() + wait;
        loop {
            let happened = self.happened.notified();
            let events = self.events.borrow().get(after..).unwrap_or_default().to_vec();
            if !events.is_empty() || self.is_over() || env.now() >= by {
                return events;
            }
            let _ = env.timeout_at(by, happened).await;
        }
    }
}

impl std::fmt::Debug for RepairCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RepairCommand(#{} of {})", self.number, self.keyspace)
    }
}
