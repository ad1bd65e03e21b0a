//! Who this node is: what `system.local` says and a restart keeps. What may change while it runs is
//! elsewhere: its host id is the engine's, its tokens are those of its part in the ring.

use std::net::{IpAddr, SocketAddr};

/// The release whose answers these are. Drivers switch features by what the node says, which is the
/// ring's release.
pub const RELEASE_VERSION: &str = "5.0.9";
/// Of CQL.
pub const CQL_VERSION: &str = "3.4.7";
/// The newest native protocol that is not beta.
pub const NATIVE_PROTOCOL_VERSION: &str = "5";
/// The partitioner.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// A node's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `cluster_name`.
    pub cluster_name: String,
    /// The release that it says it is: the ring's.
    pub release_version: String,
    /// That release, by which the nodes agree on a schema.
    pub release: schema::Release,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Seconds since the epoch, larger with every start.
    pub generation: i32,
    /// Where it listens for peers.
    pub listen: IpAddr,
    /// Where peers reach it.
    pub broadcast: IpAddr,
    /// `storage_port`.
    pub storage_port: u16,
    /// Where clients reach it.
    pub rpc: SocketAddr,
}
