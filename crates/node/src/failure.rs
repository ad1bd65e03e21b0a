//! What the node does when a disk fails it.

use std::rc::Rc;
use std::sync::Arc;

use config::{CommitFailurePolicy, Config, DiskFailurePolicy};
use env::{Class, Env};
use metrics::Level;
use storage::commitlog::LogEvent;
use storage::shards::Remote;
use storage::{DiskEvent, DiskFailure};

use crate::client_server::ClientServer;
use crate::context::Context;
use crate::journal::Journal;

/// What is done, besides that it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Nothing.
    Say,
    /// Clients are served no more; nodetool is.
    StopClients,
    /// The node ends, with an error.
    End,
}

/// What is done about a disk that failed, in `DefaultFSErrorHandler`'s way.
fn on_disk_failure(policy: DiskFailurePolicy, event: &DiskEvent) -> Action {
    let is_corrupt = event.failure == DiskFailure::Corrupt;
    if matches!(event.failure, DiskFailure::NoRoom | DiskFailure::Incomplete) {
        return Action::Say;
    }
    match policy {
        DiskFailurePolicy::Die => Action::End,
        DiskFailurePolicy::StopParanoid => Action::StopClients,
        DiskFailurePolicy::Stop if !is_corrupt => Action::StopClients,
        DiskFailurePolicy::BestEffort if event.is_last => Action::StopClients,
        DiskFailurePolicy::Stop | DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore => {
            Action::Say
        }
    }
}

/// Acts on failures of any shard; those of the first one do.
pub(crate) struct Failures {
    env: Env,
    journal: Rc<Journal>,
    clients: Rc<ClientServer>,
}

impl Failures {
    pub fn new(env: &Env, journal: &Rc<Journal>, clients: &Rc<ClientServer>) -> Rc<Self> {
        let (env, journal, clients) = (env.clone(), Rc::clone(journal), Rc::clone(clients));
        Rc::new(Self { env, journal, clients })
    }

    /// Says what failed and acts. Who calls it has seen to it that nothing wrong is acknowledged.
    fn act(&self, action: Action, what: String) {
        self.journal.say_seldom(Level::Error, what);
        if action == Action::Say {
            return;
        }
        let (env, clients) = (self.env.clone(), Rc::clone(&self.clients));
        self.env.spawn(Class::Admin, async move {
            // shards that are gone serve nobody
            let _ = clients.stop(true).await;
            if action == Action::End {
                env.terminate();
            }
        });
    }
}

/// Has the first shard's failures act on disks that fail, as `disk_failure_policy` says. What
/// fails before the node is open is acted on then.
pub(crate) fn watch_disks(context: &Context, failures: Remote<Failures>) {
    let config = Arc::clone(&context.config);
    context.engine.watch_disks(Rc::new(move |event| {
        let action = on_disk_failure(config.disk_failure_policy, event);
        let done = match action {
            Action::Say => None,
            // Cassandra's words
            Action::StopClients => Some("Stopping transports"),
            Action::End => Some("Stopping the node"),
        };
        let policy = config.lookup().word("disk_failure_policy");
        let what = match done {
            None => event.what.clone(),
            Some(done) => format!("{}. {done} as disk_failure_policy is {policy}", event.what),
        };
        failures.send(0, move |first| first.act(action, what));
    }));
}

/// Has the first shard's failures act on one of this shard's commit log, as
/// `commit_failure_policy` says.
pub(crate) fn watch_log(context: &Context, failures: Remote<Failures>) {
    let (config, journal) = (Arc::clone(&context.config), Rc::clone(&context.journal));
    context.engine.watch_log(Rc::new(move |event| {
        let (action, what) = match event {
            LogEvent::Failed(what) => on_log_failure(&config, what),
            LogEvent::NotArchived(what) => (Action::Say, what.to_owned()),
            LogEvent::Late(what) => return journal.say_seldom(Level::Warn, what.to_owned()),
        };
        // to a node that ends nothing needs to be said
        failures.send(0, move |first| first.act(action, what));
    }));
}

fn on_log_failure(config: &Config, what: &str) -> (Action, String) {
    let (action, policy) = match config.commit_failure_policy {
        CommitFailurePolicy::Ignore => (Action::Say, "ignore: going on"),
        CommitFailurePolicy::StopCommit => {
            (Action::Say, "stop_commit: accepting no writes until a restart")
        }
        CommitFailurePolicy::Stop => {
            (Action::StopClients, "stop: accepting no writes until a restart, stopping transports")
        }
        CommitFailurePolicy::Die => (Action::End, "die: stopping the node"),
    };
    let what = format!(
        "Failed to persist commits to disk: {what}. Commit disk failure policy is {policy}"
    );
    (action, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_its_actions() {
        use Action::{End, Say, StopClients as Stop};
        use DiskFailurePolicy as P;
        let event = |failure, is_last| DiskEvent { failure, what: String::new(), is_last };
        // what is corrupt, what fails while there is another directory, and what fails where there
        // is none
        let events = [
            event(DiskFailure::Corrupt, false),
            event(DiskFailure::Read, false),
            event(DiskFailure::Full, true),
        ];
        for (policy, actions) in [
            (P::Die, [End, End, End]),
            (P::StopParanoid, [Stop, Stop, Stop]),
            (P::Stop, [Say, Stop, Stop]),
            (P::BestEffort, [Say, Say, Stop]),
            (P::Ignore, [Say, Say, Say]),
        ] {
            let found = events.each_ref().map(|event| on_disk_failure(policy, event));
            assert_eq!(found, actions, "{policy:?}");
        }
    }
}
