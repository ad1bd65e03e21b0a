//! The node itself, and whether it serves.

use doctor::Report;

use crate::model::{IoStats, NodeInfo, Release};

use super::Answer;

/// The node itself, and whether it serves.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait NodeOperator {
    /// The release of Cassandra whose behaviour is served, and this build's commit.
    async fn release(&self) -> Answer<Release>;
    /// Facts of this node.
    async fn node(&self) -> Answer<NodeInfo>;
    /// The I/O of all shards in the last windows, so many.
    async fn io_stats(&self, windows: u64) -> Answer<IoStats>;
    /// What to change on the machine and in the ring.
    async fn examination(&self) -> Answer<Report>;
    /// Stops accepting writes and flushes everything; again: nothing.
    async fn drain(&self) -> Answer<()>;
    /// Gives the order to end.
    fn terminate(&self);
    /// Whether clients are served.
    async fn native_transport(&self) -> Answer<bool>;
    /// Serves clients again. After a drain: [`BadUse`](crate::Refusal::BadUse) (`Unable to start
    /// native transport because the node was drained.`).
    async fn start_native_transport(&self) -> Answer<()>;
    /// Stops serving clients; with `force` without waiting for requests that run.
    async fn stop_native_transport(&self, force: bool) -> Answer<()>;
}
