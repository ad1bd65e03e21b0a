//! The nodes of the cluster.

use std::net::SocketAddr;

use admin::{
    Answer, Cluster, Endpoint, RebuildOrder, ReplicatedRange, Ring, RingOperator, TableName,
};
use types::Uuid;

use super::Operations;
use crate::ring_view::socket;

impl RingOperator for Operations {
    async fn cluster(&self) -> Answer<Cluster> {
        self.cluster_facts()
    }

    async fn ring(&self, keyspace: Option<&str>) -> Answer<Ring> {
        self.ring_of(keyspace)
    }

    async fn schema_version(&self) -> Answer<String> {
        Ok(Uuid::from_bytes(self.engine().schema().version()).to_string())
    }

    async fn ranges(&self, keyspace: &str) -> Answer<Vec<ReplicatedRange>> {
        self.ranges_of(keyspace)
    }

    async fn endpoints(&self, table: &TableName, key: &str) -> Answer<Vec<SocketAddr>> {
        self.replicas_of(table, key)
    }

    async fn gossip(&self) -> Answer<Vec<Endpoint>> {
        self.endpoints_of_gossip()
    }

    async fn gossip_active(&self) -> Answer<bool> {
        Ok(self.membership().is_ok_and(|membership| membership.is_running()))
    }

    async fn set_gossip(&self, takes_part: bool) -> Answer<()> {
        self.switch_gossip(takes_part)
    }

    async fn seeds(&self) -> Answer<Vec<SocketAddr>> {
        Ok(self.membership()?.seeds().into_iter().map(socket).collect())
    }

    async fn reload_seeds(&self) -> Answer<Option<Vec<SocketAddr>>> {
        self.seeds_anew().await
    }

    async fn rebuild(&self, order: &RebuildOrder) -> Answer<()> {
        self.fetch_from_others(order).await
    }

    async fn assassinate(&self, address: &str) -> Answer<()> {
        self.take_out(address)
    }
}
