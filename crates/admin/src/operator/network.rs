//! Requests under way and messages to other nodes.

use crate::model::{NetStats, PoolStats, ProxyHistograms, StreamLimits};

use super::Answer;

/// Requests under way and messages to other nodes.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait NetworkOperator {
    /// What is under way, and what came too late.
    async fn pool_stats(&self) -> Answer<PoolStats>;
    /// Messages to other nodes, and repairs of reads.
    async fn net_stats(&self) -> Answer<NetStats>;
    /// How fast files are sent to other nodes.
    async fn stream_limits(&self) -> Answer<StreamLimits>;
    /// Has them sent that fast until the next start.
    async fn set_stream_limits(&self, limits: StreamLimits) -> Answer<()>;
    /// Latencies of requests as clients see them.
    async fn proxy_histograms(&self) -> Answer<ProxyHistograms>;
}
