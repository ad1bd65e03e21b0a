//! Hints.

use crate::model::{Handoff, PendingHints};

use super::Answer;

/// Hints.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait HintsOperator {
    /// Which hints are kept.
    async fn handoff(&self) -> Answer<Handoff>;
    /// Changes that until the next start.
    async fn set_handoff(&self, change: HandoffChange) -> Answer<()>;
    /// Stops to deliver hints, or goes on with it.
    async fn pause_handoff(&self, is_paused: bool) -> Answer<()>;
    /// What is kept for which node.
    async fn pending_hints(&self) -> Answer<Vec<PendingHints>>;
    /// Throws hints away: all, or those for the node of an address.
    async fn truncate_hints(&self, address: Option<&str>) -> Answer<()>;
}

/// A change of hinted handoff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoffChange {
    /// Hints are kept, or not.
    Enabled(bool),
    /// They are kept for the nodes of a data center, or not.
    Center(String, bool),
    /// They are sent with so many bytes a second; 0 is no limit.
    Throttle(u64),
    /// They are kept for a node that is down for so long, in milliseconds.
    Window(u64),
}
