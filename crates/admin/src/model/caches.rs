//! Caches of the node.

use serde::{Deserialize, Serialize};

/// A cache that Cassandra saves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Entries.
    pub entries: u64,
    /// In use.
    pub size_bytes: u64,
    /// At most.
    pub capacity_bytes: u64,
    /// Requests answered.
    pub hits: u64,
    /// Requests.
    pub requests: u64,
    /// Between two savings.
    pub save_period_seconds: u64,
}

/// The cache of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChunkCache {
    /// Entries.
    pub entries: u64,
    /// In use.
    pub size_bytes: u64,
    /// At most.
    pub capacity_bytes: u64,
    /// Requests not answered.
    pub misses: u64,
    /// Requests.
    pub requests: u64,
    /// Mean time of a miss; `NaN` without any.
    #[serde(with = "super::float")]
    pub miss_latency_micros: f64,
}

/// The cache of network buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkCache {
    /// In use.
    pub size_bytes: u64,
    /// In use beyond the capacity.
    pub overflow_bytes: u64,
    /// At most.
    pub capacity_bytes: u64,
}
