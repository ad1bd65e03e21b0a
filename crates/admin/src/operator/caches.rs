//! Caches.

use super::Answer;

/// Caches.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait CachesOperator {
    /// Empties a cache.
    async fn invalidate_cache(&self, cache: CacheName) -> Answer<()>;
    /// Sets what a cache may hold, in bytes, until the next start.
    async fn set_cache_capacity(&self, cache: CacheName, bytes: u64) -> Answer<()>;
    /// Sets of how many entries of a cache the names are saved, 0 for all, until the next start.
    async fn set_cache_keys_to_save(&self, cache: CacheName, most: u32) -> Answer<()>;
}

/// Which of the caches that Cassandra saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheName {
    /// Of places of keys in SSTables.
    Keys,
    /// Of the first rows of partitions.
    Rows,
    /// Of counters.
    Counters,
}
