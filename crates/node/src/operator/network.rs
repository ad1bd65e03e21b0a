//! Requests under way and messages to other nodes.

use admin::{Answer, NetStats, NetworkOperator, PoolStats, ProxyHistograms};

use super::Operations;

impl NetworkOperator for Operations {
    async fn pool_stats(&self) -> Answer<PoolStats> {
        self.pools_now().await
    }

    async fn net_stats(&self) -> Answer<NetStats> {
        self.messages_now().await
    }

    async fn proxy_histograms(&self) -> Answer<ProxyHistograms> {
        self.latencies_now().await
    }
}
