//! The nodes of the cluster.

use std::net::SocketAddr;

use crate::model::{
    Cluster, Decommission, Endpoint, Failing, FailurePlan, MovePlan, PlanChange, RebuildOrder,
    ReplicatedRange, Ring, TableName,
};

use super::Answer;

/// The nodes of the cluster.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait RingOperator {
    /// The cluster's name, schema versions and releases.
    async fn cluster(&self) -> Answer<Cluster>;
    /// The nodes and what each owns under the replication of `keyspace` (of any, if there is none).
    /// Unknown keyspaces are [`BadUse`](crate::Refusal::BadUse) with Cassandra's text (`The
    /// keyspace x, does not exist`).
    async fn ring(&self, keyspace: Option<&str>) -> Answer<Ring>;
    /// This node's version of the schema.
    async fn schema_version(&self) -> Answer<String>;
    /// The ranges of a keyspace and who has them.
    async fn ranges(&self, keyspace: &str) -> Answer<Vec<ReplicatedRange>>;
    /// The nodes that have a partition, in the order of the replication: its key as text.
    async fn endpoints(&self, table: &TableName, key: &str) -> Answer<Vec<SocketAddr>>;
    /// What gossip says of all nodes, this one first.
    async fn gossip(&self) -> Answer<Vec<Endpoint>>;
    /// Whether this node takes part in it.
    async fn gossip_active(&self) -> Answer<bool>;
    /// Takes part in gossip, or does not any more. After a drain:
    /// [`BadUse`](crate::Refusal::BadUse).
    async fn set_gossip(&self, takes_part: bool) -> Answer<()>;
    /// The seeds but this node.
    async fn seeds(&self) -> Answer<Vec<SocketAddr>>;
    /// Reads the seeds from the configuration again: those that are not this node; none if it
    /// cannot be read.
    async fn reload_seeds(&self) -> Answer<Option<Vec<SocketAddr>>>;
    /// Fetches what this node should have from other nodes, and waits for it.
    async fn rebuild(&self, order: &RebuildOrder) -> Answer<()>;
    /// Goes on with a bootstrap that failed, and waits for it; false if there is none.
    async fn resume_bootstrap(&self) -> Answer<bool>;
    /// Becomes a part of the ring, where the node waits for that, and waits for it.
    async fn join(&self) -> Answer<()>;
    /// Gives all that this node has to others and leaves the ring, and waits for it; `force`: even
    /// if a keyspace has fewer replicas then.
    async fn decommission(&self, force: bool) -> Answer<Decommission>;
    /// Goes to another token, and waits for it.
    async fn move_to(&self, token: &str) -> Answer<()>;
    /// Removes a node that is down, by its host id, and waits until its replicas are elsewhere.
    async fn remove_node(&self, host: &str) -> Answer<()>;
    /// The removal that this node has under way, in Cassandra's words.
    async fn removal_status(&self) -> Answer<String>;
    /// Ends removals without waiting for nodes that have not confirmed them.
    async fn force_removal(&self) -> Answer<()>;
    /// What a change would move, and what would be then; nothing is changed by it.
    async fn plan(&self, change: &PlanChange) -> Answer<MovePlan>;
    /// What keyspaces withstand, now and with another number of tokens.
    async fn failures(&self, failing: Failing) -> Answer<FailurePlan>;
    /// Takes a node that is down out of the ring.
    async fn assassinate(&self, address: &str) -> Answer<()>;
}
