//! Facts of the node among others: ranges, requests under way, messages, latencies as clients see them.

use std::net::SocketAddr;

use crate::operator::{OperatorError, Percentiles};

/// For `describering`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingRanges {
    /// Of this node.
    pub schema_version: String,
    /// Those of the keyspace; why there are none, which is said behind the version.
    pub ranges: Result<Vec<ReplicatedRange>, OperatorError>,
}

/// A range of the ring and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedRange {
    /// Not part of it.
    pub start: String,
    /// Its last token.
    pub end: String,
    /// Who has it, the primary replica first.
    pub replicas: Vec<RangeReplica>,
}

/// A node that has a range.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// For `tpstats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// What stands where Cassandra has stages of threads.
    pub pools: Vec<Pool>,
    /// Messages of each verb that came too late to be of use.
    pub dropped: Vec<(&'static str, u64)>,
}

/// Work of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Cassandra's name.
    pub name: String,
    /// Under way.
    pub active: u64,
    /// Waiting.
    pub pending: u64,
    /// Done.
    pub completed: u64,
    /// Waiting for room to wait.
    pub blocked: u64,
    /// The same, ever.
    pub all_time_blocked: u64,
}

/// For `netstats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetStats {
    /// `NORMAL`, `DRAINED`, ...
    pub mode: String,
    /// Reads whose replicas differed: asked again in the background, repaired before the answer, repaired behind it.
    pub read_repair: ReadRepairs,
    /// Messages that are large.
    pub large: Messages,
    /// Others.
    pub small: Messages,
    /// Of gossip, and what must not wait.
    pub gossip: Messages,
}

/// Read repairs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRepairs {
    /// `Attempted`.
    pub attempted: u64,
    /// `RepairedBlocking`.
    pub blocking: u64,
    /// `RepairedBackground`.
    pub background: u64,
}

/// Messages to other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Waiting to be sent.
    pub pending: u64,
    /// Sent.
    pub completed: u64,
    /// That waited too long, or found too many waiting.
    pub dropped: u64,
}

/// For `proxyhistograms`: latencies of requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProxyHistograms {
    /// Of partitions.
    pub read: Percentiles,
    /// Of writes.
    pub write: Percentiles,
    /// Of ranges.
    pub range: Percentiles,
    /// Of serial reads.
    pub cas_read: Percentiles,
    /// Of conditional writes.
    pub cas_write: Percentiles,
    /// Of views.
    pub view_write: Percentiles,
}
