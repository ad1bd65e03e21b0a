//! What the node does when a disk fails it.

use std::rc::Rc;

use config::CommitFailurePolicy;
use env::Class;
use storage::commitlog::LogEvent;

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

impl Node {
    /// Says what failed and acts; on any shard. Who calls it has seen to it that nothing wrong is acknowledged.
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
            };
            let (action, policy) = match node.config().commit_failure_policy {
                CommitFailurePolicy::Ignore => (Action::Say, "ignore"),
                CommitFailurePolicy::StopCommit => (Action::Say, "stop_commit"),
                CommitFailurePolicy::Stop => (Action::StopClients, "stop"),
                CommitFailurePolicy::Die => (Action::End, "die"),
            };
            let what = format!(
                "Failed to persist commits to disk: {what}. Commit disk failure policy is {policy}"
            );
            node.act_on_failure(action, what);
        }));
    }
}
