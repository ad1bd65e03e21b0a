//! Repair.

use std::rc::Rc;

use admin::{
    Answer, PendingStats, REPAIR_EVENTS_WAIT, Refusal, RepairCleanup, RepairEnd, RepairEvent,
    RepairEventKind, RepairEvents, RepairOperator, RepairOrder, RepairScope, RepairSession,
    RepairStarted, RepairStats,
};
use cluster::repair::{self, EventKind, RepairCommand, STEPS};

use super::Operations;

impl Operations {
    fn repair(&self, command: i32) -> Answer<Rc<RepairCommand>> {
        let number = u32::try_from(command).ok();
        let found = number.and_then(|number| self.shard.repairs().command(number));
        found.ok_or_else(|| Refusal::BadUse(format!("there is no repair command #{command}")))
    }
}

impl RepairOperator for Operations {
    async fn start_repair(&self, order: &RepairOrder) -> Answer<RepairStarted> {
        let started = self.shard.repairs().start(&order.keyspace, &order.options);
        let command = started.map_err(Refusal::BadUse)?;
        let command = command.map_or(0, |command| i32::try_from(command.number).unwrap_or(0));
        Ok(RepairStarted { command })
    }

    async fn repair_events(&self, command: i32, after: u64) -> Answer<RepairEvents> {
        let repair = self.repair(command)?;
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let events = repair.events(&self.env, after, REPAIR_EVENTS_WAIT).await;
        let is_last = |event: &repair::RepairEvent| event.kind == EventKind::Complete;
        let has_last = events.last().is_none_or(is_last);
        let end = repair
            .ended()
            .filter(|_| has_last)
            .map(|end| RepairEnd { has_failed: end.has_failed, messages: end.messages });
        let numbers = (after as u64).saturating_add(1)..;
        let events = numbers.zip(events).map(|(number, event)| RepairEvent {
            number,
            kind: kind(event.kind),
            message: event.message,
            done: event.step,
            total: STEPS,
            at_unix_millis: event.millis,
        });
        Ok(RepairEvents { keyspace: repair.keyspace.clone(), events: events.collect(), end })
    }

    async fn repair_sessions(&self, _: bool, _: Option<&str>) -> Answer<Vec<RepairSession>> {
        Ok(Vec::new())
    }

    async fn cancel_repair_session(&self, session: &str, _: bool) -> Answer<()> {
        Err(Refusal::BadUse(format!("Session {{}} does not exist [{session}]")))
    }

    async fn pending_repairs(&self, _: &RepairScope) -> Answer<Vec<PendingStats>> {
        Ok(Vec::new())
    }

    async fn repair_stats(&self, _: &RepairScope) -> Answer<Vec<RepairStats>> {
        Ok(Vec::new())
    }

    async fn clean_up_repairs(&self, _: &RepairScope, _: bool) -> Answer<Vec<RepairCleanup>> {
        Ok(Vec::new())
    }
}

fn kind(of: EventKind) -> RepairEventKind {
    match of {
        EventKind::Start => RepairEventKind::Start,
        EventKind::Progress => RepairEventKind::Progress,
        EventKind::Notification => RepairEventKind::Notification,
        EventKind::Success => RepairEventKind::Success,
        EventKind::Error => RepairEventKind::Error,
        EventKind::Complete => RepairEventKind::Complete,
    }
}
