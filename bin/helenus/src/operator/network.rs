//! Requests under way and messages to other nodes.

use admin::{Answer, NetStats, NetworkOperator, PoolStats, ProxyHistograms, StreamLimits};

use super::Operations;

impl NetworkOperator for Operations {
    async fn pool_stats(&self) -> Answer<PoolStats> {
        self.pools_now().await
    }

    async fn net_stats(&self) -> Answer<NetStats> {
        self.messages_now().await
    }

    async fn stream_limits(&self) -> Answer<StreamLimits> {
        self.limits_of_streams()
    }

    async fn set_stream_limits(&self, limits: StreamLimits) -> Answer<()> {
        self.limit_streams(limits)
    }

    async fn proxy_histograms(&self) -> Answer<ProxyHistograms> {
        self.latencies_now().await
    }
}
