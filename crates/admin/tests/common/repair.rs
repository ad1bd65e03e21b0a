//! Repairs of a node that is not one: what each says is set beforehand.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::task::Poll;

use admin::{
    Answer, PendingStats, Refusal, RepairCleanup, RepairEnd, RepairEvent, RepairEventKind,
    RepairEvents, RepairOperator, RepairOrder, RepairScope, RepairSession, RepairStarted,
    RepairStats,
};

use super::Fake;

/// When events are said.
pub const AT_MILLIS: i64 = 1_795_333_375_904;

/// What a node knows of repairs.
#[derive(Default)]
pub struct Repairs {
    /// By keyspace; others need none.
    pub scripts: RefCell<BTreeMap<String, Script>>,
    /// Events in an answer.
    pub batch: Cell<usize>,
    pub orders: RefCell<Vec<RepairOrder>>,
    pub sessions: RefCell<Vec<RepairSession>>,
    pub pending: RefCell<Vec<PendingStats>>,
    pub stats: RefCell<Vec<RepairStats>>,
    pub cleanups: RefCell<Vec<RepairCleanup>>,
    /// Keyspaces of commands, from 1 on.
    commands: RefCell<Vec<String>>,
}

/// What a repair says.
#[derive(Clone)]
pub enum Script {
    /// Nothing: it is refused.
    Refused(Refusal),
    /// Events and how it ends; it does not end for none.
    Runs(Vec<RepairEvent>, Option<RepairEnd>),
}

/// An event, with its progress.
pub fn event(kind: RepairEventKind, message: &str, done: u32, total: u32) -> RepairEvent {
    let message = message.to_owned();
    RepairEvent { number: 0, kind, message, done, total, at_unix_millis: AT_MILLIS }
}

/// As a node waits for events: other tasks run.
async fn wait() {
    let mut waited = false;
    let wait = std::future::poll_fn(|context| match std::mem::replace(&mut waited, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    });
    wait.await;
}

impl RepairOperator for Fake {
    async fn start_repair(&self, order: &RepairOrder) -> Answer<RepairStarted> {
        self.repairs.orders.borrow_mut().push(order.clone());
        let mut commands = self.repairs.commands.borrow_mut();
        match self.repairs.scripts.borrow().get(&order.keyspace) {
            None => Ok(RepairStarted { command: 0 }),
            Some(Script::Refused(refusal)) => Err(refusal.clone()),
            Some(Script::Runs(..)) => {
                commands.push(order.keyspace.clone());
                Ok(RepairStarted { command: i32::try_from(commands.len()).unwrap() })
            }
        }
    }

    async fn repair_events(&self, command: i32, after: u64) -> Answer<RepairEvents> {
        wait().await;
        let commands = self.repairs.commands.borrow();
        let keyspace = usize::try_from(command - 1).ok().and_then(|at| commands.get(at));
        let unknown = || Refusal::BadUse(format!("There is no repair command #{command}"));
        let keyspace = keyspace.ok_or_else(unknown)?.clone();
        let scripts = self.repairs.scripts.borrow();
        let Some(Script::Runs(events, end)) = scripts.get(&keyspace) else { unreachable!() };
        let numbered = (1..).zip(events).map(|(number, of)| RepairEvent { number, ..of.clone() });
        let batch = self.repairs.batch.get().max(1);
        let all = events.len() as u64;
        let events: Vec<_> = numbered.filter(|of| of.number > after).take(batch).collect();
        let is_last = events.last().map_or(after, |of| of.number) == all;
        Ok(RepairEvents { keyspace, events, end: end.clone().filter(|_| is_last) })
    }

    async fn repair_sessions(&self, all: bool, range: Option<&str>) -> Answer<Vec<RepairSession>> {
        self.note(format!("sessions {all} {range:?}"))?;
        Ok(self.repairs.sessions.borrow().clone())
    }

    async fn cancel_repair_session(&self, session: &str, force: bool) -> Answer<()> {
        match session {
            "nosuch" => Err(Refusal::BadUse("Session {} does not exist [nosuch]".to_owned())),
            session => self.note(format!("cancel {session} {force}")),
        }
    }

    async fn pending_repairs(&self, scope: &RepairScope) -> Answer<Vec<PendingStats>> {
        self.note(format!("pending {scope:?}"))?;
        Ok(self.repairs.pending.borrow().clone())
    }

    async fn repair_stats(&self, scope: &RepairScope) -> Answer<Vec<RepairStats>> {
        self.note(format!("repaired {scope:?}"))?;
        Ok(self.repairs.stats.borrow().clone())
    }

    async fn clean_up_repairs(
        &self,
        scope: &RepairScope,
        force: bool,
    ) -> Answer<Vec<RepairCleanup>> {
        self.note(format!("clean up {scope:?} {force}"))?;
        Ok(self.repairs.cleanups.borrow().clone())
    }
}
