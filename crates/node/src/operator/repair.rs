//! Repair.

use std::rc::Rc;

use admin::{
    Answer, PendingRepair, PendingStats, REPAIR_EVENTS_WAIT, Refusal, RepairCleanup, RepairEnd,
    RepairEvent, RepairEventKind, RepairEvents, RepairOperator, RepairOrder, RepairScope,
    RepairSession, RepairStarted, RepairStats, RepairedSection,
};
use cluster::repair::{self, EventKind, LocalSession, PendingPart, RepairCommand, STEPS};
use schema::{Keyspace, Strategy, TableId};
use types::{Token, TokenRange, Uuid};

use super::Operations;
use crate::addresses::socket;

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

    async fn repair_sessions(&self, all: bool, range: Option<&str>) -> Answer<Vec<RepairSession>> {
        let ranges = range.map(range_of).transpose()?;
        let now = self.env.unix_micros() / 1_000_000;
        let sessions = self.shard.repair_sessions().all().into_iter();
        let is_meant = |session: &LocalSession| {
            (all || !session.is_over()) && ranges.is_none_or(|range| session.meets(&[range]))
        };
        Ok(sessions.filter(is_meant).map(|session| self.shown(session, now)).collect())
    }

    async fn cancel_repair_session(&self, session: &str, force: bool) -> Answer<()> {
        let id = Uuid::parse(session);
        let id = id.ok_or_else(|| Refusal::BadUse(format!("Invalid UUID string: {session}")))?;
        self.shard.repair_sessions().cancel(id, force).await.map_err(Refusal::BadUse)
    }

    async fn pending_repairs(&self, scope: &RepairScope) -> Answer<Vec<PendingStats>> {
        let report = self.shard.repair_report();
        let of = |(keyspace, table, id, ranges): Scoped| {
            let pending = report.pending_of(id, &ranges);
            PendingStats {
                keyspace,
                table,
                total: part(pending.total),
                pending: part(pending.pending),
                finalized: part(pending.finalized),
                failed: part(pending.failed),
            }
        };
        Ok(self.scoped(scope)?.into_iter().map(of).collect())
    }

    async fn repair_stats(&self, scope: &RepairScope) -> Answer<Vec<RepairStats>> {
        let report = self.shard.repair_report();
        let of = |(keyspace, table, id, ranges): Scoped| {
            let parts = report.repaired(id, &ranges);
            let times = || parts.iter().map(|(_, at)| *at);
            let section = |(range, at): &(TokenRange, i64)| RepairedSection {
                start: range.left.to_string(),
                end: range.right.to_string(),
                repaired_unix_millis: *at,
            };
            RepairStats {
                keyspace,
                table,
                min_repaired_unix_millis: times().min().unwrap_or_default(),
                max_repaired_unix_millis: times().max().unwrap_or_default(),
                sections: parts.iter().map(section).collect(),
            }
        };
        Ok(self.scoped(scope)?.into_iter().map(of).collect())
    }

    async fn clean_up_repairs(&self, scope: &RepairScope, _: bool) -> Answer<Vec<RepairCleanup>> {
        let mut all = Vec::new();
        for (keyspace, table, id, ranges) in self.scoped(scope)? {
            let cleaned = self.shard.repair_report().clean_up(id, &ranges).await;
            let texts = |ids: Vec<Uuid>| ids.iter().map(Uuid::to_string).collect();
            let (successful, unsuccessful) = (texts(cleaned.done), texts(cleaned.left));
            all.push(RepairCleanup { keyspace, table, successful, unsuccessful });
        }
        Ok(all)
    }
}

/// A table, and which ranges of it.
type Scoped = (String, String, TableId, Vec<TokenRange>);

impl Operations {
    /// The tables that a verb is about.
    fn scoped(&self, scope: &RepairScope) -> Answer<Vec<Scoped>> {
        let range = scope.range.as_deref().map(range_of).transpose()?;
        let schema = self.shard.schema();
        let mut all = Vec::new();
        for keyspace in schema.keyspaces().values() {
            let is_named = scope.keyspace.as_ref().is_none_or(|name| *name == *keyspace.name);
            if !is_named || keyspace.replication.strategy == Strategy::Local {
                continue;
            }
            let ranges = match range {
                Some(range) => vec![range],
                None => self.own_ranges(keyspace),
            };
            let asked = &scope.tables;
            if let Some(name) = asked.iter().find(|name| !keyspace.tables.contains_key(&***name)) {
                let keyspace = &keyspace.name;
                let text = format!("Unknown keyspace/cf pair ({keyspace}.{name})");
                return Err(Refusal::BadUse(text));
            }
            for (name, table) in &keyspace.tables {
                if asked.is_empty() || asked.iter().any(|asked| **asked == **name) {
                    let names = (keyspace.name.to_string(), name.to_string());
                    all.push((names.0, names.1, table.id, ranges.clone()));
                }
            }
        }
        match (&scope.keyspace, all.is_empty()) {
            (Some(name), true) => {
                Err(Refusal::BadUse(format!("Keyspace [{name}] does not exist.")))
            }
            _ => Ok(all),
        }
    }

    fn own_ranges(&self, keyspace: &Keyspace) -> Vec<TokenRange> {
        let ring = self.shard.peers().ring();
        let placement = ring
            .as_ref()
            .and_then(|ring| Some((ring.local(), ring.placement(&keyspace.replication.strategy)?)));
        let own = placement.map(|(local, placement)| placement.ranges_of(local).collect());
        own.unwrap_or_else(|| vec![TokenRange::ALL])
    }

    fn shown(&self, session: LocalSession, now: i64) -> RepairSession {
        let schema = self.shard.schema();
        let name = |id: &TableId| match schema.table_by_id(id) {
            Some(table) => format!("{}.{}", table.keyspace, table.name),
            None => "<dropped>".to_owned(),
        };
        RepairSession {
            id: session.id.to_string(),
            state: session.state.name().to_owned(),
            started_unix_seconds: session.started,
            updated_unix_seconds: session.updated,
            idle_seconds: now - session.updated,
            coordinator: socket(session.coordinator),
            participants: session.participants.into_iter().map(socket).collect(),
            tables: session.tables.iter().map(name).collect(),
        }
    }
}

fn part(of: PendingPart) -> PendingRepair {
    let sessions = of.sessions.iter().map(Uuid::to_string).collect();
    PendingRepair { bytes: of.bytes, sstables: of.sstables, sessions }
}

/// `start:end`.
fn range_of(text: &str) -> Answer<TokenRange> {
    let token = |text: &str| text.trim().parse().map(Token).ok();
    let range = text
        .split_once(':')
        .and_then(|(left, right)| Some(TokenRange { left: token(left)?, right: token(right)? }));
    range.ok_or_else(|| Refusal::BadUse(format!("{text} is no range of tokens")))
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
