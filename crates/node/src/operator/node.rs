//! The node itself, and whether it serves.

use std::path::Path;
use std::rc::Rc;

use admin::{
    Answer, IoStats, NodeInfo, NodeOperator, Refusal, Release, RingOperator, TablesOperator,
};
use cluster::{Bootstrap, Shard, Standing};
use doctor::Report;
use env::{File, IO_WINDOW, OpenOptions};
use storage::CacheKind;
use types::Uuid;

use super::{Operations, failed};
use crate::examination::{baseline, ring_facts};
use crate::figures::NANOS;
use crate::memory::Memory;
use crate::settings::io_depth;

/// Bytes of `/proc/self/statm` that are worth reading, and the page's size it counts in.
const STATM_BYTES: usize = 256;
const PAGE: u64 = 4096;

impl Operations {
    /// Bytes of memory that the process has.
    async fn resident(&self) -> u64 {
        let env = &self.env;
        let Ok(file) = File::open(env, Path::new("/proc/self/statm"), OpenOptions::READ).await
        else {
            return 0;
        };
        let (read, bytes) = file.read_at(Vec::with_capacity(STATM_BYTES), 0, STATM_BYTES).await;
        let text = String::from_utf8_lossy(if read.is_ok() { &bytes } else { &[] }).into_owned();
        let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0).saturating_mul(PAGE)
    }
}

impl NodeOperator for Operations {
    async fn release(&self) -> Answer<Release> {
        let git_sha = option_env!("HELENUS_GIT_SHA").unwrap_or("unknown").to_owned();
        Ok(Release { version: cluster::RELEASE_VERSION.to_owned(), git_sha })
    }

    async fn node(&self) -> Answer<NodeInfo> {
        let identity = self.shard.identity();
        let tables = self.table_stats().await?;
        let engine = self.engine();
        let off_heap = tables.iter().map(|t| {
            t.memtable_off_heap_bytes
                + t.filter_memory_bytes
                + t.summary_memory_bytes
                + t.compression_memory_bytes
        });
        let (repaired, all) = tables.iter().fold((0, 0), |(repaired, all), t| {
            let bytes = t.repaired_bytes + t.unrepaired_bytes + t.pending_repair_bytes;
            (repaired + t.repaired_bytes, all + bytes)
        });
        let failures = self.storage()?.stats.failures.get();
        let place = self.shard.membership().map(|membership| membership.place());
        let mode = self.mode_name();
        let (place, join) = (place.unwrap_or_default(), self.shard.join());
        Ok(NodeInfo {
            host_id: Uuid::from_bytes(engine.host_id()).to_string(),
            gossip_active: self.gossip_active().await?,
            native_transport_active: self.clients.serves(),
            load_bytes: engine.disk_bytes(),
            uncompressed_load_bytes: all,
            generation: identity.generation.into(),
            uptime_seconds: self.env.now().since(self.started).as_secs(),
            memory_used_bytes: self.resident().await,
            memory_budget_bytes: Memory::of(&self.config).budget,
            off_heap_bytes: off_heap.sum(),
            data_center: identity.data_center.clone(),
            rack: identity.rack.clone(),
            exceptions: failures,
            key_cache: self.cache(CacheKind::Keys).await?,
            row_cache: self.cache(CacheKind::Rows).await?,
            counter_cache: self.cache(CacheKind::Counters).await?,
            chunk_cache: Some(self.chunk_cache().await?),
            network_cache: None,
            percent_repaired: if all == 0 { 100.0 } else { repaired as f64 * 100.0 / all as f64 },
            tokens: Some(place.tokens.iter().map(|token| token.to_string()).collect()),
            bootstrap_state: join
                .map_or(Bootstrap::Needed, |join| join.bootstrap())
                .name()
                .to_owned(),
            bootstrap_failed: join.is_some_and(|join| join.standing() == Standing::Broken),
            decommissioning: mode == "LEAVING",
            decommission_failed: mode == "DECOMMISSION_FAILED",
        })
    }

    async fn io_stats(&self, windows: u64) -> Answer<IoStats> {
        let env = &self.env;
        let (now, unix_micros) = (env.now(), env.unix_micros());
        // the window that is being filled is left out
        let end = env.io_window();
        let windows = end.saturating_sub(windows)..end;
        let mut all = env.io_pattern(windows.clone());
        for shard in (0..self.shard.others().count()).filter(|shard| *shard != env.shard()) {
            let of = windows.clone();
            let pattern = move |there: &Rc<Shard>| there.engine().env().io_pattern(of);
            all.merge(&self.shard.others().call(shard, pattern).await.map_err(failed)?);
        }
        let window_millis = i64::try_from(IO_WINDOW.as_millis()).unwrap_or(i64::MAX);
        let starts = i64::try_from(windows.start).unwrap_or(i64::MAX).saturating_mul(window_millis);
        let since = i64::try_from(now.as_nanos() / (NANOS * NANOS)).unwrap_or(i64::MAX) - starts;
        let depth = io_depth(&self.config, self.shard.others().count());
        let bound = (depth * self.shard.others().count()) as u64;
        let baseline = baseline(env, &self.config).await;
        let stats = IoStats::of(&all, unix_micros / 1000 - since, bound);
        Ok(IoStats { baseline, ..stats })
    }

    async fn examination(&self) -> Answer<Report> {
        let Some(examine) = self.examine.get().cloned() else {
            return Err(failed(
                "the node is starting, or nobody told it how to look at its machine",
            ));
        };
        let ring = ring_facts(&self.shard);
        // it reads files as anybody does, and so not on a shard
        Ok(self.env.helper(move || examine(ring)).await)
    }

    async fn drain(&self) -> Answer<()> {
        Ok(self.drain.drain().await?)
    }

    fn terminate(&self) {
        self.env.terminate();
    }

    async fn native_transport(&self) -> Answer<bool> {
        Ok(self.clients.serves())
    }

    async fn start_native_transport(&self) -> Answer<()> {
        if self.mode.is_drained() {
            let text = "Unable to start native transport because the node was drained.";
            return Err(Refusal::BadUse(text.to_owned()));
        }
        Ok(self.clients.start().await?)
    }

    async fn stop_native_transport(&self, force: bool) -> Answer<()> {
        Ok(self.clients.stop(force).await?)
    }
}
