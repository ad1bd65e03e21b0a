//! Verbs of repair.

use env::Env;

use super::{MICROS_PER_MILLI, Watcher, keyspaces};
use crate::model::{Outcome, Refusal, RepairEventKind, RepairOrder, Shown, WatchedRepair};
use crate::nodetool::{RepairArguments, RepairVerb};
use crate::operator::{Answer, NodeOperator, RepairOperator, TablesOperator};

/// Its keyspace is repaired only where it is named (CASSANDRA-9621).
const ONLY_BY_NAME: &str = "system_distributed";
/// The class of keyspaces that each node has for itself.
const LOCAL_STRATEGY: &str = "LocalStrategy";

/// Carries out a verb; what is seen of a repair while it runs goes to `watcher`.
pub(super) async fn ask(
    env: &Env,
    operator: &(impl NodeOperator + RepairOperator + TablesOperator),
    verb: RepairVerb,
    watcher: &mut impl Watcher,
) -> Outcome {
    match verb {
        RepairVerb::Repair(of) => Watch { env, operator, watcher }.run(&of).await.into(),
        RepairVerb::Watch { command } => {
            Watch { env, operator, watcher }.until_end(command).await.into()
        }
        verb => admin(operator, verb).await.into(),
    }
}

async fn admin(operator: &impl RepairOperator, verb: RepairVerb) -> Answer<Option<Shown>> {
    Ok(Some(match verb {
        RepairVerb::Sessions { all, range } => {
            Shown::RepairSessions(operator.repair_sessions(all, range.as_deref()).await?)
        }
        RepairVerb::Cancel { session, force } => {
            operator.cancel_repair_session(&session, force).await?;
            return Ok(None);
        }
        RepairVerb::CleanUp { scope, force } => {
            let mut all = operator.clean_up_repairs(&scope, force).await?;
            all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
            Shown::RepairCleanups(all)
        }
        RepairVerb::Pending { scope, .. } => {
            let mut all = operator.pending_repairs(&scope).await?;
            all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
            Shown::PendingRepairs(all)
        }
        RepairVerb::Repaired { scope, .. } => {
            let mut all = operator.repair_stats(&scope).await?;
            all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
            Shown::RepairStats(all)
        }
        // they are watched above
        RepairVerb::Repair(_) | RepairVerb::Watch { .. } => return Ok(None),
    }))
}

/// Repairs with somebody who watches.
struct Watch<'a, O, W> {
    env: &'a Env,
    operator: &'a O,
    watcher: &'a mut W,
}

impl<O: NodeOperator + RepairOperator + TablesOperator, W: Watcher> Watch<'_, O, W> {
    /// Repairs one keyspace after the other, until one fails.
    async fn run(mut self, of: &RepairArguments) -> Answer<Option<Shown>> {
        let keyspaces = self.keyspaces(of).await?;
        if of.leaves_primary_ranges() {
            let text = "Primary range repair should be performed on all nodes in the cluster.";
            return Err(Refusal::Failed(text.to_owned()));
        }
        let local_center = match of.needs_local_center() {
            true => self.operator.node().await?.data_center,
            false => String::new(),
        };
        for keyspace in keyspaces {
            match self.repair(&of.order(keyspace, &local_center)).await {
                Ok(Watching::Goes) => {}
                Ok(Watching::Left) => break,
                Err(refusal) => return Err(failed(refusal)),
            }
        }
        Ok(None)
    }

    async fn keyspaces(&self, of: &RepairArguments) -> Answer<Vec<String>> {
        if of.of.keyspace.is_some() {
            return keyspaces(self.operator, &of.of).await;
        }
        let all = self.operator.keyspaces().await?.into_iter();
        let is_meant = |name: &str, replication: &str| {
            let class = replication.split(' ').next().unwrap_or_default();
            class != LOCAL_STRATEGY && name != ONLY_BY_NAME
        };
        let meant = all.filter(|of| is_meant(&of.keyspace, &of.replication));
        Ok(meant.map(|of| of.keyspace).collect())
    }

    async fn repair(&mut self, order: &RepairOrder) -> Answer<Watching> {
        let started = self.operator.start_repair(order).await?;
        if started.command > 0 {
            return self.watch(started.command).await;
        }
        let none = WatchedRepair {
            keyspace: order.keyspace.clone(),
            command: 0,
            at_unix_millis: self.now(),
            events: Vec::new(),
            error: None,
            end: None,
        };
        Ok(self.show(none).await)
    }

    async fn until_end(mut self, command: i32) -> Answer<Option<Shown>> {
        self.watch(command).await.map(|_| None)
    }

    /// Shows what a repair says until it is over or nobody listens any more.
    async fn watch(&mut self, command: i32) -> Answer<Watching> {
        let (mut after, mut error) = (0, None);
        loop {
            let said = self.operator.repair_events(command, after).await?;
            after = said.events.last().map_or(after, |last| last.number);
            let found = said.events.iter().rfind(|of| of.kind == RepairEventKind::Error);
            error = found.map(|of| of.message.clone()).or(error);
            let end = said.end.clone();
            let seen = WatchedRepair {
                keyspace: said.keyspace,
                command,
                at_unix_millis: self.now(),
                events: said.events,
                error: error.clone(),
                end: said.end,
            };
            let watching = self.show(seen).await;
            let Some(end) = end else {
                match watching {
                    Watching::Goes => continue,
                    Watching::Left => return Ok(watching),
                }
            };
            return match (error, end.has_failed) {
                (Some(error), _) => Err(Refusal::Failed(format!(
                    "Repair job has failed with the error message: {error}. Check the logs on the \
                     repair participants for further details"
                ))),
                (None, true) => {
                    let reason = end.messages.into_iter().next();
                    Err(Refusal::Failed(reason.unwrap_or_else(|| "Some repair failed".to_owned())))
                }
                (None, false) => Ok(watching),
            };
        }
    }

    async fn show(&mut self, seen: WatchedRepair) -> Watching {
        match self.watcher.show(Shown::Repairs(vec![seen])).await {
            true => Watching::Goes,
            false => Watching::Left,
        }
    }

    fn now(&self) -> i64 {
        self.env.unix_micros() / MICROS_PER_MILLI
    }
}

/// Does somebody watch?
#[derive(Clone, Copy)]
enum Watching {
    Goes,
    Left,
}

/// nodetool wraps what a repair fails at, so that nothing of it is bad use.
fn failed(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::BadUse(why) => Refusal::Failed(why),
        refusal => refusal,
    }
}
