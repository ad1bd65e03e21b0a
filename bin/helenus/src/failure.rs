//! What the node does when a disk fails it.

use std::rc::Rc;

use config::{CommitFailurePolicy, DiskFailurePolicy};
use env::Class;
use storage::commitlog::LogEvent;
use storage::{DiskEvent, DiskFailure};

use crate::node::Node;

/// What is done, besides that it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
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

impl Node {
    /// Says what failed and acts; on any shard. Who calls it has seen to it that nothing wrong is
    /// acknowledged.
    pub(crate) fn act_on_failure(self: &Rc<Self>, action: Action, what: String) {
        // to a node that ends nothing needs to be said
        self.send_to_first(move |node| {
            node.say_seldom("ERROR", what);
            if action == Action::Say {
                return;
            }
            let acting = Rc::clone(node);
            node.env().spawn(Class::Admin, async move {
                // shards that are gone serve nobody
                let _ = acting.stop_clients(true).await;
                if action == Action::End {
                    acting.env().terminate();
                }
            });
        });
    }

    /// Acts on disks that fail as `disk_failure_policy` says; on the first shard.
    pub(crate) fn watch_disks(self: &Rc<Self>) {
        let node = Rc::downgrade(self);
        self.engine().watch_disks(Rc::new(move |event| {
            let Some(node) = node.upgrade() else { return };
            let policy = node.config().disk_failure_policy;
            let action = on_disk_failure(policy, event);
            let done = match action {
                Action::Say => return node.act_on_failure(action, event.what.clone()),
                // Cassandra's words
                Action::StopClients => "Stopping transports",
                Action::End => "Stopping the node",
            };
            let policy = node.config().lookup().word("disk_failure_policy");
            let what = format!("{}. {done} as disk_failure_policy is {policy}", event.what);
            node.act_on_failure(action, what);
        }));
    }

    /// Acts on a failure of this shard's commit log as `commit_failure_policy` says.
    pub(crate) fn watch_log(self: &Rc<Self>) {
        let node = Rc::downgrade(self);
        self.engine().watch_log(Rc::new(move |event| {
            let Some(node) = node.upgrade() else { return };
            let what = match event {
                LogEvent::Failed(what) => what,
                LogEvent::NotArchived(what) => {
                    return node.act_on_failure(Action::Say, what.to_owned());
                }
                LogEvent::Late(what) => {
                    let what = what.to_owned();
                    return node.send_to_first(move |node| node.say_seldom("WARN", what));
                }
            };
            let (action, policy) = match node.config().commit_failure_policy {
                CommitFailurePolicy::Ignore => (Action::Say, "ignore: going on"),
                CommitFailurePolicy::StopCommit => {
                    (Action::Say, "stop_commit: accepting no writes until a restart")
                }
                CommitFailurePolicy::Stop => (
                    Action::StopClients,
                    "stop: accepting no writes until a restart, stopping transports",
                ),
                CommitFailurePolicy::Die => (Action::End, "die: stopping the node"),
            };
            let what = format!(
                "Failed to persist commits to disk: {what}. Commit disk failure policy is {policy}"
            );
            node.act_on_failure(action, what);
        }));
    }
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
