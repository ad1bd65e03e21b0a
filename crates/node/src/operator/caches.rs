//! Caches.

use std::rc::Rc;
use std::sync::Arc;

use admin::{Answer, Cache, CacheName, CachesOperator, ChunkCache};
use cluster::Shard;
use config::Config;
use env::{Class, IoKind};
use storage::CacheKind;

use super::{Operations, failed};
use crate::all_shards::ask_all;
use crate::figures::NANOS;
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
    pub(super) async fn cache(&self, kind: CacheKind) -> Answer<Cache> {
        let (stats, _) = self.caches.of_all(kind).await.map_err(failed)?;
        Ok(Cache {
            entries: stats.entries,
            size_bytes: stats.bytes,
            capacity_bytes: stats.capacity,
            hits: stats.hits,
            requests: stats.requests(),
            save_period_seconds: saving(&self.config, kind).period.as_secs(),
        })
    }

    pub(super) async fn chunk_cache(&self) -> Answer<ChunkCache> {
        let look =
            |shard: &Rc<Shard>| shard.engine().env().stats().io(Class::Statement, IoKind::Read);
        let (mut reads, mut nanos) = (0u64, 0u64);
        for io in ask_all(self.shard.others(), look).await.map_err(failed)? {
            reads += io.ops;
            nanos += io.queue_ns + io.device_ns;
        }
        let (stats, _) = self.caches.of_all(CacheKind::Chunks).await.map_err(failed)?;
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
        self.caches.clear(kind_of(cache)).await.map_err(failed)
    }

    async fn set_cache_capacity(&self, cache: CacheName, bytes: u64) -> Answer<()> {
        self.caches.set_limit(kind_of(cache), bytes).await.map_err(failed)
    }

    async fn set_cache_keys_to_save(&self, cache: CacheName, most: u32) -> Answer<()> {
        let key = match cache {
            CacheName::Keys => "key_cache_keys_to_save",
            CacheName::Rows => "row_cache_keys_to_save",
            CacheName::Counters => "counter_cache_keys_to_save",
        };
        let mut config = Config::clone(&self.shard.guardrails().current_config());
        config.set(&format!("{key}={most}")).map_err(failed)?;
        self.guardrails.set_config(Arc::new(config)).await.map_err(failed)?;
        self.saved_caches.begin_periods_anew();
        Ok(())
    }
}
