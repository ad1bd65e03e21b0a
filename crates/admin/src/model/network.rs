//! Requests under way, messages to other nodes, latencies as clients see them.

use serde::{Deserialize, Serialize};

use super::{Percentiles, StreamPlan};

/// For `tpstats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStats {
    /// What stands where Cassandra has stages of threads.
    pub pools: Vec<Pool>,
    /// Messages that came too late to be of use.
    pub dropped: Vec<DroppedMessages>,
}

/// Messages of a verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedMessages {
    /// Cassandra's name of the verb.
    pub verb: String,
    /// How many were dropped.
    pub count: u64,
}

/// Work of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetStats {
    /// `NORMAL`, `DRAINED`, ...
    pub mode: String,
    /// Streams under way.
    pub streams: Vec<StreamPlan>,
    /// Reads whose replicas differed: asked again in the background, repaired before the answer,
    /// repaired behind it.
    pub read_repair: ReadRepairs,
    /// Messages that are large.
    pub large: Messages,
    /// Others.
    pub small: Messages,
    /// Of gossip, and what must not wait.
    pub gossip: Messages,
}

/// Read repairs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRepairs {
    /// `Attempted`.
    pub attempted: u64,
    /// `RepairedBlocking`.
    pub blocking: u64,
    /// `RepairedBackground`.
    pub background: u64,
}

/// Messages to other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Waiting to be sent.
    pub pending: u64,
    /// Sent.
    pub completed: u64,
    /// That waited too long, or found too many waiting.
    pub dropped: u64,
}

/// For `proxyhistograms`: latencies of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxyHistograms {
    /// Of partitions.
    pub read_micros: Percentiles,
    /// Of writes.
    pub write_micros: Percentiles,
    /// Of ranges.
    pub range_micros: Percentiles,
    /// Of serial reads.
    pub cas_read_micros: Percentiles,
    /// Of conditional writes.
    pub cas_write_micros: Percentiles,
    /// Of views.
    pub view_write_micros: Percentiles,
}
