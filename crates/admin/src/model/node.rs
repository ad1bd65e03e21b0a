//! The node itself.

use serde::{Deserialize, Serialize};

use super::{Cache, ChunkCache, NetworkCache};

/// For `version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Such as `5.0.9`.
    pub version: String,
    /// The commit this was built from.
    pub git_sha: String,
}

/// For `info`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The host ID.
    pub host_id: String,
    /// Whether gossip runs.
    pub gossip_active: bool,
    /// Whether clients are served.
    pub native_transport_active: bool,
    /// Live SSTables on disk.
    pub load_bytes: u64,
    /// The same before compression.
    pub uncompressed_load_bytes: u64,
    /// Of gossip.
    pub generation: i64,
    /// Since the start.
    pub uptime_seconds: u64,
    /// Memory in use, where Cassandra has its heap.
    pub memory_used_bytes: u64,
    /// Its budget.
    pub memory_budget_bytes: u64,
    /// Memory of memtables, filters, summaries and compression offsets.
    pub off_heap_bytes: u64,
    /// Data center.
    pub data_center: String,
    /// Rack.
    pub rack: String,
    /// Errors that nobody caught.
    pub exceptions: u64,
    /// Of SSTable positions.
    pub key_cache: Cache,
    /// Of rows.
    pub row_cache: Cache,
    /// Of counters.
    pub counter_cache: Cache,
    /// Of blocks of SSTables, if there is one.
    pub chunk_cache: Option<ChunkCache>,
    /// Of network buffers, if there is one.
    pub network_cache: Option<NetworkCache>,
    /// Share of the data that is repaired.
    #[serde(with = "super::float")]
    pub percent_repaired: f64,
    /// The tokens; `None` while the node has not joined.
    pub tokens: Option<Vec<String>>,
    /// Such as `COMPLETED`.
    pub bootstrap_state: String,
    /// Whether joining failed.
    pub bootstrap_failed: bool,
    /// Whether the node is leaving.
    pub decommissioning: bool,
    /// Whether leaving failed.
    pub decommission_failed: bool,
}
