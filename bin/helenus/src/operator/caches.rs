//! Caches.

use std::rc::Rc;
use std::sync::Arc;

use admin::{Answer, Cache, CacheName, CachesOperator, ChunkCache};
use config::Config;
use env::{Class, IoKind};
use storage::shards::HasShards;
use storage::{CacheKind, CacheStats};

use super::{Operations, failed};
use crate::node::Node;
use crate::node_metrics::NANOS;
use crate::saved_caches::saving;

/// The cache of that name.
fn kind_of(cache: CacheName) -> CacheKind {
    match cache {
        CacheName::Keys => CacheKind::Keys,
        CacheName::Rows => CacheKind::Rows,
        CacheName::Counters => CacheKind::Counters,
    }
}

impl Operations {
    /// What a cache of all shards holds and did.
    async fn cache_stats(&self, kind: CacheKind) -> Answer<CacheStats> {
        let mut all = CacheStats::default();
        for shard in 0..self.0.shards().count() {
            let look = move |node: &Rc<Node>| node.engine().caches().stats(kind);
            all += self.0.shards().call(shard, look).await.map_err(failed)?;
        }
        Ok(all)
    }

    pub(super) async fn cache(&self, kind: CacheKind) -> Answer<Cache> {
        let stats = self.cache_stats(kind).await?;
        Ok(Cache {
            entries: stats.entries,
            size_bytes: stats.bytes,
            capacity_bytes: stats.capacity,
            hits: stats.hits,
            requests: stats.requests(),
            save_period_seconds: saving(self.0.config(), kind).period.as_secs(),
        })
    }

    pub(super) async fn chunk_cache(&self) -> Answer<ChunkCache> {
        let (mut reads, mut nanos) = (0u64, 0u64);
        for shard in 0..self.0.shards().count() {
            let look = |node: &Rc<Node>| node.env().stats().io(Class::Statement, IoKind::Read);
            let io = self.0.shards().call(shard, look).await.map_err(failed)?;
            reads += io.ops;
            nanos += io.queue_ns + io.device_ns;
        }
        let stats = self.cache_stats(CacheKind::Chunks).await?;
        Ok(ChunkCache {
            entries: stats.entries,
            size_bytes: stats.bytes,
            capacity_bytes: stats.capacity,
            misses: stats.misses,
            requests: stats.requests(),
            miss_latency_micros: nanos as f64 / NANOS as f64 / reads as f64,
        })
    }
}

impl CachesOperator for Operations {
    async fn invalidate_cache(&self, cache: CacheName) -> Answer<()> {
        let kind = kind_of(cache);
        for shard in 0..self.0.shards().count() {
            let empty = move |node: &Rc<Node>| node.engine().caches().clear(kind);
            self.0.shards().call(shard, empty).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn set_cache_capacity(&self, cache: CacheName, bytes: u64) -> Answer<()> {
        let kind = kind_of(cache);
        for shard in 0..self.0.shards().count() {
            let set = move |node: &Rc<Node>| node.engine().caches().set_limit(kind, bytes);
            self.0.shards().call(shard, set).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn set_cache_keys_to_save(&self, cache: CacheName, most: u32) -> Answer<()> {
        let shard = self.shard()?;
        let key = match cache {
            CacheName::Keys => "key_cache_keys_to_save",
            CacheName::Rows => "row_cache_keys_to_save",
            CacheName::Counters => "counter_cache_keys_to_save",
        };
        let mut config = Config::clone(&shard.guardrails().current_config());
        config.set(&format!("{key}={most}")).map_err(failed)?;
        self.0.set_config(Arc::new(config)).await.map_err(failed)?;
        self.0.saved_caches.changed.notify_all();
        Ok(())
    }
}
