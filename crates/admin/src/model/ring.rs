//! The nodes of the cluster, and what they own.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Replication;

/// The name of the cluster, and what its nodes run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Class of the snitch.
    pub snitch: String,
    /// Whether slow replicas are avoided.
    pub dynamic_snitch: bool,
    /// Class of the partitioner.
    pub partitioner: String,
    /// Schema versions; unreachable nodes are under `UNREACHABLE`.
    pub schema_versions: Vec<NodesOf>,
    /// Releases.
    pub releases: Vec<NodesOf>,
}

/// The nodes of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodesOf {
    /// The version.
    pub version: String,
    /// Who has it.
    pub nodes: Vec<SocketAddr>,
}

/// For `describecluster`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterView {
    /// Its name, and what its nodes run.
    pub cluster: Cluster,
    /// Its nodes.
    pub ring: Ring,
    /// Its keyspaces.
    pub keyspaces: Vec<Replication>,
}

/// What gossip says of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The node.
    pub address: SocketAddr,
    /// Of its start.
    pub generation: i32,
    /// Of its heartbeat.
    pub version: i32,
    /// Its values; of tokens the version alone is shown.
    pub values: Vec<GossipValue>,
    /// How suspicious its silence is; none of this node, and of one that was never heard of.
    pub phi: Option<f64>,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GossipValue {
    /// Such as `STATUS`.
    pub name: String,
    /// Of the value.
    pub version: i32,
    /// The value.
    pub value: String,
}

/// The nodes of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ring {
    /// In the order to show them in, whatever the data center.
    pub nodes: Vec<RingNode>,
    /// Why [`RingNode::owns_share`] is not that of the replication, if it is not: `Non-system
    /// keyspaces don't have the same replication settings, effective ownership information is
    /// meaningless`.
    pub note: Option<String>,
}

/// Whether a node is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// It answers.
    Up,
    /// It does not.
    Down,
    /// Nobody knows.
    Unknown,
}

/// Where a node stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It serves.
    Normal,
    /// It is leaving.
    Leaving,
    /// It is joining.
    Joining,
    /// It is changing its token.
    Moving,
}

/// A node of the ring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RingNode {
    /// Its broadcast address, with the storage port.
    pub address: SocketAddr,
    /// Whether it is up.
    pub liveness: Liveness,
    /// Where it stands.
    pub life: Life,
    /// Live data, if known.
    pub load_bytes: Option<u64>,
    /// Its tokens.
    pub tokens: Vec<String>,
    /// Share of the data it has (0 to 1, summed over data centers).
    pub owns_share: Option<f64>,
    /// Host ID.
    pub host_id: String,
    /// Data center.
    pub data_center: String,
    /// Rack.
    pub rack: String,
}

/// For `describering`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingRanges {
    /// Of this node.
    pub schema_version: String,
    /// Those of the keyspace.
    pub ranges: Vec<ReplicatedRange>,
}

/// A range of the ring and who has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicatedRange {
    /// Not part of it.
    pub start: String,
    /// Its last token.
    pub end: String,
    /// Who has it, the primary replica first.
    pub replicas: Vec<RangeReplica>,
}

/// A node that has a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeReplica {
    /// Its broadcast address, with the storage port.
    pub address: SocketAddr,
    /// Where clients reach it.
    pub native: SocketAddr,
    /// Data center.
    pub data_center: String,
    /// Rack.
    pub rack: String,
}

/// What came of `decommission`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decommission {
    /// The node has left.
    Done,
    /// It is about to, by an order before.
    UnderWay,
    /// It had left before.
    Before,
}

/// What `rebuild` is told, in the words of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuildOrder {
    /// Only from this data centre.
    pub from_center: Option<String>,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only these ranges: `(1,2],(3,4]`.
    pub tokens: Option<String>,
    /// Only from these nodes, with commas between them; counts only with ranges.
    pub sources: Option<String>,
    /// From no node of this node's data centre.
    pub excludes_local_center: bool,
}
