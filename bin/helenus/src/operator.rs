//! What `nodetool` asks of the node, answered by its layers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use admin::{
    Answer, Cache, CacheName, ChunkCache, Cluster, CompactionStats, Endpoint, Handoff,
    HandoffChange, IoStats, NetStats, NewImport, NewSnapshot, NodeInfo, Operator, OperatorError,
    PastCompaction, PendingHints, PoolStats, ProxyHistograms, Release, Replication, Ring,
    RingRanges, RunningCompaction, Scrub, SnapshotDetails, StopWhich, TableHistograms, TableName,
    TableStats, Timeout, Verify,
};
use cluster::Identity;
use config::{Config, Timeouts};
use env::{Class, File, IO_WINDOW, IoKind, OpenOptions};
use schema::{Keyspace, TableId, TombstoneOption};
use sstable::descriptor::{Component, NB};
use storage::shards::{HasShards, Stopping};
use storage::{CacheKind, CacheStats, Engine, PartitionKey, StorageError};
use types::{CqlType, Uuid};

use crate::error::NodeError;
use crate::memory::Memory;
use crate::node::Node;
use crate::node_metrics::NANOS;
use crate::ring_view::socket;
use crate::saved_caches::saving;
use crate::settings::io_depth;

/// Why a threshold is not 0.
const NO_THRESHOLD: &str = "Disabling compaction by setting min_compaction_threshold or max_compaction_threshold to 0 is \
     deprecated, set the compaction strategy option 'enabled' to 'false' instead or use the nodetool command \
     'disableautocompaction'.";
/// A file of a table is named by its keyspace's directory, its table's and its own name.
const NAMING_COMPONENTS: usize = 3;
/// Bytes of `/proc/self/statm` that are worth reading, and the page's size it counts in.
const STATM_BYTES: usize = 256;
const PAGE: u64 = 4096;

/// The node of this process, for its operator; on the first shard.
pub(crate) struct Operations(pub Rc<Node>);

impl Node {
    /// What the node answers to a verb of nodetool, as it does at its socket; on the first shard.
    pub async fn carry_out(self: &Rc<Self>, verb: admin::Verb) -> admin::Reply {
        admin::run(self.env(), &Operations(Rc::clone(self)), verb).await
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> OperatorError {
    OperatorError::Failed(error.to_string())
}

impl Operations {
    pub(crate) fn identity(&self) -> Answer<&Identity> {
        let coordinator = self.0.coordinator().ok_or_else(|| failed(Stopping))?;
        Ok(coordinator.identity())
    }

    pub(crate) fn engine(&self) -> &Rc<Engine> {
        self.0.engine()
    }

    fn storage(&self) -> Answer<&Rc<storage::Node>> {
        self.engine().node().ok_or_else(|| failed(Stopping))
    }

    pub(crate) fn address(&self) -> Answer<SocketAddr> {
        let identity = self.identity()?;
        Ok(SocketAddr::new(identity.broadcast, identity.storage_port))
    }

    /// Tables of a keyspace by name; all of them for none.
    pub(crate) fn tables(&self, keyspace: &str, names: &[String]) -> Answer<Vec<TableId>> {
        let schema = self.engine().schema();
        let unknown = |what: &str| OperatorError::Failed(what.to_owned());
        let Some(of) = schema.keyspace(keyspace) else {
            return Err(unknown(&format!("Keyspace [{keyspace}] does not exist.")));
        };
        if names.is_empty() {
            return Ok(of.tables.values().map(|table| table.id).collect());
        }
        let table = |name: &String| match of.tables.get(name) {
            Some(table) => Ok(table.id),
            None => Err(unknown(&format!("Unknown keyspace/cf pair ({keyspace}.{name})"))),
        };
        names.iter().map(table).collect()
    }

    /// A table with files.
    fn stored(&self, name: &TableName) -> Option<TableId> {
        let schema = self.engine().schema();
        let table = schema.table(&name.keyspace, &name.table);
        table.filter(|table| !table.is_virtual()).map(|table| table.id)
    }

    /// Bytes of memory that the process has.
    async fn resident(&self) -> u64 {
        let env = self.0.env();
        let Ok(file) = File::open(env, Path::new("/proc/self/statm"), OpenOptions::READ).await
        else {
            return 0;
        };
        let (read, bytes) = file.read_at(Vec::with_capacity(STATM_BYTES), 0, STATM_BYTES).await;
        let text = String::from_utf8_lossy(if read.is_ok() { &bytes } else { &[] }).into_owned();
        let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0).saturating_mul(PAGE)
    }

    /// What a cache of all shards holds and did.
    async fn cache_stats(&self, kind: CacheKind) -> Answer<CacheStats> {
        let mut all = CacheStats::default();
        for shard in 0..self.0.shards().count() {
            let look = move |node: &Rc<Node>| node.engine().cache_stats(kind);
            all += self.0.shards().call(shard, look).await.map_err(failed)?;
        }
        Ok(all)
    }

    async fn cache(&self, kind: CacheKind) -> Answer<Cache> {
        let stats = self.cache_stats(kind).await?;
        Ok(Cache {
            entries: stats.entries,
            size: stats.bytes,
            capacity: stats.capacity,
            hits: stats.hits,
            requests: stats.requests(),
            save_period: saving(self.0.config(), kind).period,
        })
    }

    async fn chunk_cache(&self) -> Answer<ChunkCache> {
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
            size: stats.bytes,
            capacity: stats.capacity,
            misses: stats.misses,
            requests: stats.requests(),
            miss_latency: nanos as f64 / NANOS as f64 / reads as f64,
        })
    }

    fn timeouts(&self) -> Answer<Timeouts> {
        Ok(self.0.coordinator().ok_or_else(|| failed(Stopping))?.timeouts())
    }
}

/// Where a timeout of the node is kept; none: nothing that it is of is served yet.
fn place(timeouts: &mut Timeouts, timeout: Timeout) -> Option<&mut Duration> {
    Some(match timeout {
        Timeout::Read => &mut timeouts.read,
        Timeout::Range => &mut timeouts.range,
        Timeout::Write => &mut timeouts.write,
        Timeout::CounterWrite => &mut timeouts.counter_write,
        Timeout::CasContention => &mut timeouts.cas_contention,
        Timeout::Truncate => &mut timeouts.truncate,
        Timeout::Misc => &mut timeouts.other,
        Timeout::InternodeConnect => &mut timeouts.internode_connect,
        Timeout::InternodeUser => &mut timeouts.internode_user,
        Timeout::InternodeStreamingUser => return None,
    })
}

/// The cache of that name.
fn kind_of(cache: CacheName) -> CacheKind {
    match cache {
        CacheName::Keys => CacheKind::Keys,
        CacheName::Rows => CacheKind::Rows,
        CacheName::Counters => CacheKind::Counters,
    }
}

fn unserved(timeout: Timeout) -> OperatorError {
    OperatorError::Failed(format!("{} is not served yet", timeout.config_key()))
}

impl From<NodeError> for OperatorError {
    fn from(error: NodeError) -> Self {
        failed(error)
    }
}

impl Operator for Operations {
    async fn release(&self) -> Answer<Release> {
        let git_sha = option_env!("HELENUS_GIT_SHA").unwrap_or("unknown").to_owned();
        Ok(Release { version: cluster::RELEASE_VERSION.to_owned(), git_sha })
    }

    async fn node(&self) -> Answer<NodeInfo> {
        let identity = self.identity()?;
        let tables = self.table_stats().await?;
        let engine = self.engine();
        let off_heap = tables.iter().map(|t| {
            t.memtable_off_heap + t.filter_memory + t.summary_memory + t.compression_memory
        });
        let (repaired, all) = tables.iter().fold((0, 0), |(repaired, all), t| {
            let bytes = t.bytes_repaired + t.bytes_unrepaired + t.bytes_pending_repair;
            (repaired + t.bytes_repaired, all + bytes)
        });
        let failures = self.storage()?.stats.failures.get();
        Ok(NodeInfo {
            host_id: Uuid(u128::from_be_bytes(identity.host_id)).to_string(),
            gossip_active: self.membership().is_ok_and(|membership| membership.is_running()),
            native_transport_active: self.0.serves_clients(),
            load: engine.disk_bytes(),
            uncompressed_load: all,
            generation: identity.generation.into(),
            uptime: self.0.env().now().since(self.0.started),
            memory: (self.resident().await, Memory::of(self.0.config()).budget),
            off_heap: off_heap.sum(),
            data_center: identity.data_center.clone(),
            rack: identity.rack.clone(),
            exceptions: failures,
            key_cache: self.cache(CacheKind::Keys).await?,
            row_cache: self.cache(CacheKind::Rows).await?,
            counter_cache: self.cache(CacheKind::Counters).await?,
            chunk_cache: Some(self.chunk_cache().await?),
            network_cache: None,
            percent_repaired: if all == 0 { 100.0 } else { repaired as f64 * 100.0 / all as f64 },
            tokens: Some(identity.tokens.iter().map(|token| token.to_string()).collect()),
            bootstrap_state: "COMPLETED".to_owned(),
            bootstrap_failed: false,
            decommissioning: false,
            decommission_failed: false,
        })
    }

    async fn keyspaces(&self) -> Answer<Vec<Replication>> {
        let schema = self.engine().schema();
        let show = |keyspace: &std::sync::Arc<Keyspace>| {
            let replication = &keyspace.replication;
            let class = replication.class.rsplit('.').next().unwrap_or_default();
            let options = replication.options.iter().map(|(key, value)| format!("{key}={value}"));
            let options = options.collect::<Vec<_>>().join(", ");
            Replication {
                keyspace: keyspace.name.clone(),
                replication: format!("{class} {{{options}}}"),
            }
        };
        Ok(schema.keyspaces().values().filter(|ks| !ks.is_virtual).map(show).collect())
    }

    async fn cluster(&self) -> Answer<Cluster> {
        self.cluster_facts()
    }

    async fn ring(&self, keyspace: Option<&str>) -> Answer<Ring> {
        self.ring_of(keyspace)
    }

    async fn gossip(&self) -> Answer<Vec<Endpoint>> {
        self.endpoints_of_gossip()
    }

    async fn seeds(&self) -> Answer<Vec<SocketAddr>> {
        Ok(self.membership()?.seeds().into_iter().map(socket).collect())
    }

    async fn endpoints(&self, table: &TableName, key: &str) -> Answer<Vec<SocketAddr>> {
        self.replicas_of(table, key)
    }

    async fn handoff(&self) -> Answer<Handoff> {
        self.handoff_now()
    }

    async fn set_handoff(&self, change: HandoffChange) -> Answer<()> {
        self.change_handoff(change)
    }

    async fn pause_handoff(&self, is_paused: bool) -> Answer<()> {
        self.0.coordinator().ok_or_else(|| failed(Stopping))?.handoff().pause(is_paused);
        Ok(())
    }

    async fn pending_hints(&self) -> Answer<Vec<PendingHints>> {
        self.hints_that_wait()
    }

    async fn truncate_hints(&self, address: Option<&str>) -> Answer<()> {
        self.throw_hints_away(address).await
    }

    async fn ranges(&self, keyspace: &str) -> Answer<RingRanges> {
        self.ranges_of(keyspace)
    }

    async fn set_gossip(&self, takes_part: bool) -> Answer<()> {
        self.switch_gossip(takes_part)
    }

    async fn reload_seeds(&self) -> Answer<Option<Vec<SocketAddr>>> {
        self.seeds_anew().await
    }

    async fn pool_stats(&self) -> Answer<PoolStats> {
        self.pools_now().await
    }

    async fn net_stats(&self) -> Answer<NetStats> {
        self.messages_now().await
    }

    async fn proxy_histograms(&self) -> Answer<ProxyHistograms> {
        self.latencies_now().await
    }

    async fn assassinate(&self, address: &str) -> Answer<()> {
        self.take_out(address)
    }

    async fn table_stats(&self) -> Answer<Vec<TableStats>> {
        self.0.table_stats().await.map_err(failed)
    }

    async fn compaction_stats(&self) -> Answer<CompactionStats> {
        let node = self.storage()?;
        let schema = self.engine().schema();
        let running = node.running().into_iter().map(|compaction| {
            let table = schema.table_by_id(&compaction.table);
            let name = |of: fn(&schema::Table) -> &String| table.map(|t| of(t).clone());
            RunningCompaction {
                id: Uuid(u128::from_be_bytes(compaction.id)).to_string(),
                kind: compaction.kind.to_owned(),
                keyspace: name(|table| &table.keyspace).unwrap_or_default(),
                table: name(|table| &table.name).unwrap_or_default(),
                completed: compaction.written.get(),
                total: compaction.total,
                total_compressed: Some(compaction.total),
                unit: "bytes".to_owned(),
                sstables: compaction.sstables as u64,
                directory: compaction.directory.display().to_string(),
            }
        });
        let mut pending = Vec::new();
        for (id, store) in self.engine().stores() {
            let tasks = node.pending_compactions(id).await.unwrap_or_default() as u64;
            if tasks > 0 {
                let table = store.table();
                pending.push((table.keyspace.clone(), table.name.clone(), tasks));
            }
        }
        let completed = node.stats.compactions.get();
        let uptime = self.0.env().now().since(self.0.started).as_secs_f64();
        let rate = if uptime > 0.0 { completed as f64 / uptime } else { 0.0 };
        Ok(CompactionStats {
            concurrent: node.concurrent_compactors() as u64,
            pending,
            completed,
            bytes: node.stats.compacted_bytes.get(),
            compressed_bytes: node.stats.compacted_bytes.get(),
            aborted: node.stats.failures.get(),
            fifteen_minute_rate: rate,
            mean_rate: rate,
            throughput: node.compaction_throughput(),
            running: running.collect(),
            ..CompactionStats::default()
        })
    }

    async fn flush(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(self.storage()?.flush(table).await.map(drop))?;
        }
        Ok(())
    }

    async fn compact(&self, keyspace: &str, tables: &[String], split: bool) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(self.storage()?.major_compaction(table, split).await)?;
        }
        Ok(())
    }

    async fn compact_files(&self, files: &[String]) -> Answer<()> {
        let node = self.storage()?;
        for (id, store) in self.engine().stores() {
            // Keyspace, table and name say which: files of that name may be in many tables.
            let is_named = |sstable: &storage::SSTable| {
                let path = sstable.path(&Component::Data);
                files.iter().map(|file| Path::new(file.trim())).any(|file| {
                    file.components().count() >= NAMING_COMPONENTS && path.ends_with(file)
                })
            };
            if store.live().tables().iter().any(|sstable| is_named(sstable)) {
                ignore_dropped(node.compact_these(id, is_named).await.map(drop))?;
            }
        }
        Ok(())
    }

    async fn upgrade(&self, keyspace: &str, tables: &[String], all: bool) -> Answer<()> {
        for id in self.tables(keyspace, tables)? {
            let Ok(store) = self.engine().store(id) else { continue };
            let is_old =
                |table: &&Arc<storage::SSTable>| all || table.table.descriptor.version != NB;
            let live = store.live();
            let old: Vec<u64> = live.tables().iter().filter(is_old).map(|t| t.number).collect();
            for number in old {
                // one by one: what a compaction replaced meanwhile is new by now
                let only = self.storage()?.compact_these(id, |table| table.number == number);
                ignore_dropped(only.await.map(drop))?;
            }
        }
        Ok(())
    }

    async fn scrub(&self, keyspace: &str, tables: &[String], how: Scrub) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            self.0.scrub(table, how).await?;
        }
        Ok(())
    }

    async fn verify(&self, keyspace: &str, tables: &[String], how: Verify) -> Answer<()> {
        let mut first = Ok(());
        for table in self.tables(keyspace, tables)? {
            first = first.and(self.0.verify(table, how).await);
        }
        first
    }

    async fn garbage_collect(&self, keyspace: &str, tables: &[String], cells: bool) -> Answer<()> {
        let granularity = if cells { TombstoneOption::Cell } else { TombstoneOption::Row };
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(self.storage()?.collect_garbage(table, granularity).await)?;
        }
        Ok(())
    }

    /// A node that is the only one owns all: nothing is to be dropped. In a ring it may not, and to say that it is done would be
    /// wrong.
    async fn cleanup(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        let tables = self.tables(keyspace, tables)?;
        let is_alone = self.0.coordinator().is_none_or(|it| it.peers().is_alone());
        match is_alone || tables.is_empty() {
            true => Ok(()),
            false => Err(failed(
                "cleanup is not served in a ring of several nodes yet: nothing was dropped",
            )),
        }
    }

    async fn relocate(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(self.storage()?.relocate(table).await)?;
        }
        Ok(())
    }

    async fn import(&self, import: NewImport) -> Answer<Vec<String>> {
        let NewImport { of, directories, keep_level, copy, verify } = import;
        let schema = self.engine().schema();
        let table = schema.table(&of.keyspace, &of.table).filter(|table| !table.is_virtual());
        let Some(table) = table else {
            let text = format!("ColumnFamilyStore for {}/{} not found.", of.keyspace, of.table);
            return Err(failed(text));
        };
        let mut places = Vec::new();
        for directory in directories {
            let there = self.0.env().metadata(&directory).await.map_err(failed)?;
            if !there.is_some_and(|metadata| metadata.is_dir) {
                return Err(failed(format!("Directory {directory} does not exist")));
            }
            places.push(PathBuf::from(directory));
        }
        let how = storage::Import { copy, keep_level, verify };
        let refused = self.storage()?.import(table.id, &places, how).await.map_err(failed)?;
        let tell = |(directory, error): (PathBuf, StorageError)| {
            self.0.say_seldom("ERROR", format!("import from {}: {error}", directory.display()));
            directory.display().to_string()
        };
        Ok(refused.into_iter().map(tell).collect())
    }

    async fn refresh(&self, table: &TableName) -> Answer<()> {
        let schema = self.engine().schema();
        let refused = |what: String| Err(OperatorError::BadUse(what));
        let TableName { keyspace, table } = table;
        if schema.keyspace(keyspace).is_none_or(|keyspace| keyspace.is_virtual) {
            return refused(format!("Keyspace {keyspace} does not exist"));
        }
        let Some(table) = schema.table(keyspace, table) else {
            return refused(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
        };
        ignore_dropped(self.storage()?.refresh(table.id).await)
    }

    async fn thresholds(&self, table: &TableName) -> Answer<Option<(u32, u32)>> {
        let Some(id) = self.stored(table) else { return Ok(None) };
        Ok(self.storage()?.compaction_thresholds(id).ok())
    }

    async fn set_thresholds(&self, table: &TableName, thresholds: (u32, u32)) -> Answer<bool> {
        let Some(id) = self.stored(table) else { return Ok(false) };
        if thresholds.0 == 0 || thresholds.1 == 0 {
            return Err(failed(NO_THRESHOLD));
        }
        self.storage()?.set_compaction_thresholds(id, thresholds);
        Ok(true)
    }

    async fn histograms(&self, table: Option<&TableName>) -> Answer<Vec<TableHistograms>> {
        let wanted = match table {
            None => None,
            Some(name) => Some(self.stored(name).ok_or_else(|| {
                OperatorError::BadUse(format!("Unknown table {}.{}", name.keyspace, name.table))
            })?),
        };
        let is_wanted = |id| wanted.is_none_or(|wanted| wanted == id);
        self.0.histograms(is_wanted).await.map_err(failed)
    }

    async fn io_stats(&self, windows: u64) -> Answer<IoStats> {
        let env = self.0.env();
        let (now, unix_micros) = (env.now(), env.unix_micros());
        // the window that is being filled is left out
        let end = env.io_window();
        let windows = end.saturating_sub(windows)..end;
        let mut all = env.io_pattern(windows.clone());
        for shard in (0..self.0.shards().count()).filter(|shard| *shard != env.shard()) {
            let of = windows.clone();
            let pattern = move |node: &Rc<Node>| node.env().io_pattern(of);
            all.merge(&self.0.shards().call(shard, pattern).await.map_err(failed)?);
        }
        let window_millis = i64::try_from(IO_WINDOW.as_millis()).unwrap_or(i64::MAX);
        let starts = i64::try_from(windows.start).unwrap_or(i64::MAX).saturating_mul(window_millis);
        let since = i64::try_from(now.as_nanos() / (NANOS * NANOS)).unwrap_or(i64::MAX) - starts;
        let depth = io_depth(self.0.config(), self.0.shards().count());
        Ok(IoStats {
            pattern: all,
            starts_at_millis: unix_micros / 1000 - since,
            depth: (depth * self.0.shards().count()) as u64,
        })
    }

    async fn compaction_history(&self) -> Answer<Vec<PastCompaction>> {
        let coordinator = self.0.coordinator().ok_or_else(|| failed(Stopping))?;
        let past = |row: cluster::CompactionRow| PastCompaction {
            id: row.id,
            keyspace: row.keyspace,
            table: row.table,
            compacted_at: row.compacted_at,
            bytes_in: row.bytes_in,
            bytes_out: row.bytes_out,
            rows_merged: row.rows_merged,
            properties: row.properties,
        };
        let rows = coordinator.compaction_history().await.map_err(|e| failed(e.message))?;
        Ok(rows.into_iter().map(past).collect())
    }

    async fn stop_compactions(&self, which: StopWhich) -> Answer<()> {
        self.storage()?.stop_compactions(|running| match &which {
            StopWhich::Kind(kind) => kind.as_ref().is_none_or(|kind| kind == running.kind),
            StopWhich::Id(id) => Uuid(u128::from_be_bytes(running.id)).to_string() == *id,
        });
        Ok(())
    }

    async fn compaction_throughput(&self) -> Answer<u64> {
        Ok(self.storage()?.compaction_throughput())
    }

    async fn set_compaction_throughput(&self, bytes_per_second: u64) -> Answer<()> {
        self.storage()?.set_compaction_throughput(bytes_per_second);
        Ok(())
    }

    async fn invalidate_cache(&self, cache: CacheName) -> Answer<()> {
        let kind = kind_of(cache);
        for shard in 0..self.0.shards().count() {
            let empty = move |node: &Rc<Node>| node.engine().clear_cache(kind);
            self.0.shards().call(shard, empty).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn set_cache_capacity(&self, cache: CacheName, bytes: u64) -> Answer<()> {
        let kind = kind_of(cache);
        for shard in 0..self.0.shards().count() {
            let set = move |node: &Rc<Node>| node.engine().set_cache_limit(kind, bytes);
            self.0.shards().call(shard, set).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn set_cache_keys_to_save(&self, cache: CacheName, most: u32) -> Answer<()> {
        let coordinator = self.0.coordinator().ok_or_else(|| failed(Stopping))?;
        let key = match cache {
            CacheName::Keys => "key_cache_keys_to_save",
            CacheName::Rows => "row_cache_keys_to_save",
            CacheName::Counters => "counter_cache_keys_to_save",
        };
        let mut config = Config::clone(&coordinator.rails().current_config());
        config.set(&format!("{key}={most}")).map_err(failed)?;
        self.0.set_config(Arc::new(config)).await.map_err(failed)?;
        self.0.saved_caches.changed.notify_all();
        Ok(())
    }

    async fn concurrent_compactors(&self) -> Answer<u64> {
        Ok(self.storage()?.concurrent_compactors() as u64)
    }

    async fn set_concurrent_compactors(&self, count: u64) -> Answer<()> {
        self.storage()?.set_concurrent_compactors(count as usize);
        Ok(())
    }

    async fn set_autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
        enabled: bool,
    ) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            self.storage()?.set_autocompaction(table, enabled);
        }
        Ok(())
    }

    async fn autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
    ) -> Answer<Vec<(String, bool)>> {
        let schema = self.engine().schema();
        let mut found = Vec::new();
        for id in self.tables(keyspace, tables)? {
            let Some(table) = schema.table_by_id(&id) else { continue };
            found.push((table.name.clone(), self.storage()?.autocompaction(id)));
        }
        Ok(found)
    }

    async fn data_paths(
        &self,
        keyspace: &str,
        table: Option<&str>,
    ) -> Answer<Vec<(String, Vec<String>)>> {
        let names: Vec<String> = table.iter().map(|name| (*name).to_owned()).collect();
        let schema = self.engine().schema();
        let mut found = Vec::new();
        for id in self.tables(keyspace, &names)? {
            let Some(table) = schema.table_by_id(&id) else { continue };
            let directories = self.0.config().data_file_directories.iter();
            let paths = directories.map(|data| storage::table_directory(data, table));
            found.push((table.name.clone(), paths.map(|p| p.display().to_string()).collect()));
        }
        Ok(found)
    }

    async fn sstables_of(
        &self,
        table: &TableName,
        key: &str,
        hex: bool,
    ) -> Answer<Vec<(Option<usize>, String)>> {
        let [id] = self.tables(&table.keyspace, std::slice::from_ref(&table.table))?[..] else {
            return Ok(Vec::new());
        };
        let schema = self.engine().schema();
        let Some(table) = schema.table_by_id(&id) else { return Ok(Vec::new()) };
        let key = key_bytes(table, key, hex)?;
        let key = PartitionKey::new(key.as_slice());
        let by_levels = table.params.compaction.class.ends_with("LeveledCompactionStrategy");
        let found = self.engine().sstables_with(id, key.as_ref()).await.map_err(failed)?;
        let line = |sstable: &Arc<storage::SSTable>| {
            let path = sstable.path(&Component::Data).display().to_string();
            (by_levels.then(|| sstable.level()), path)
        };
        Ok(found.iter().map(line).collect())
    }

    async fn snapshot(&self, snapshot: NewSnapshot) -> Answer<()> {
        self.0.take_snapshot(snapshot).await
    }

    async fn snapshots(&self) -> Answer<Vec<SnapshotDetails>> {
        let details = |of: cluster::virtual_tables::Snapshot| SnapshotDetails {
            name: of.name,
            keyspace: of.keyspace,
            table: of.table,
            true_size: of.true_size.unsigned_abs(),
            own_tables: of.own_tables.unsigned_abs(),
            size_on_disk: of.size_on_disk.unsigned_abs(),
            created_at: of.created_at,
            expires_at: of.expires_at,
            ephemeral: of.ephemeral,
        };
        let mut all: Vec<_> = self.0.snapshots().await.into_iter().map(details).collect();
        all.sort_by(|a, b| (&a.name, &a.keyspace, &a.table).cmp(&(&b.name, &b.keyspace, &b.table)));
        Ok(all)
    }

    async fn clear_snapshots(
        &self,
        keyspaces: &[String],
        name: Option<&str>,
        before: Option<i64>,
    ) -> Answer<()> {
        let goes = |of: &cluster::virtual_tables::Snapshot| {
            (keyspaces.is_empty() || keyspaces.contains(&of.keyspace))
                && name.is_none_or(|name| name == of.name)
                && before.is_none_or(|before| of.created_at.is_none_or(|at| at < before))
        };
        self.0.clear_snapshots(goes).await.map_err(failed)
    }

    async fn backups(&self) -> Answer<bool> {
        Ok(self.storage()?.backs_up())
    }

    async fn set_backups(&self, kept: bool) -> Answer<()> {
        self.storage()?.enable_backups(kept);
        Ok(())
    }

    async fn drain(&self) -> Answer<()> {
        Ok(self.0.drain().await?)
    }

    async fn stop_daemon(&self) -> Answer<()> {
        self.0.drain().await?;
        // The answer leaves before this shard sees the order: it is written without waiting.
        self.0.env().terminate();
        Ok(())
    }

    async fn native_transport(&self) -> Answer<bool> {
        Ok(self.0.serves_clients())
    }

    async fn start_native_transport(&self) -> Answer<()> {
        if self.0.is_empty() {
            let text = "Unable to start native transport because the node was drained.";
            return Err(OperatorError::BadUse(text.to_owned()));
        }
        Ok(self.0.start_clients().await?)
    }

    async fn stop_native_transport(&self, force: bool) -> Answer<()> {
        Ok(self.0.stop_clients(force).await?)
    }

    async fn timeout(&self, timeout: Timeout) -> Answer<u64> {
        let mut timeouts = self.timeouts()?;
        let kept = place(&mut timeouts, timeout).ok_or_else(|| unserved(timeout))?;
        Ok(u64::try_from(kept.as_millis()).unwrap_or(u64::MAX))
    }

    async fn set_timeout(&self, timeout: Timeout, millis: u64) -> Answer<()> {
        let mut timeouts = self.timeouts()?;
        *place(&mut timeouts, timeout).ok_or_else(|| unserved(timeout))? =
            Duration::from_millis(millis);
        for shard in 0..self.0.shards().count() {
            let set = move |node: &Rc<Node>| {
                if let Some(coordinator) = node.coordinator() {
                    coordinator.set_timeouts(timeouts);
                }
            };
            self.0.shards().call(shard, set).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn settings(&self) -> Answer<Vec<(String, Option<String>)>> {
        Ok(self.0.coordinator().ok_or_else(|| failed(Stopping))?.virtual_tables().settings())
    }

    async fn set_guardrails(&self, settings: &[String]) -> Answer<()> {
        let coordinator = self.0.coordinator().ok_or_else(|| failed(Stopping))?;
        let mut config = Config::clone(&coordinator.rails().current_config());
        let set = config.set_all(settings.iter().map(String::as_str));
        set.map_err(|refusal| OperatorError::BadUse(refusal.to_string()))?;
        self.0.check_disk(&config).await.map_err(OperatorError::BadUse)?;
        self.0.set_config(Arc::new(config)).await.map_err(failed)
    }

    async fn refresh_size_estimates(&self) -> Answer<()> {
        let coordinator = self.0.coordinator().ok_or_else(|| failed(Stopping))?;
        coordinator.refresh_estimates().await.map_err(failed)
    }

    async fn trace_probability(&self) -> Answer<f64> {
        Ok(self.0.coordinator().ok_or_else(|| failed(Stopping))?.tracer().probability())
    }

    async fn set_trace_probability(&self, share: f64) -> Answer<()> {
        for shard in 0..self.0.shards().count() {
            let set = move |node: &Rc<Node>| {
                if let Some(coordinator) = node.coordinator() {
                    coordinator.tracer().set_probability(share);
                }
            };
            self.0.shards().call(shard, set).await.map_err(failed)?;
        }
        Ok(())
    }
}

/// The bytes of a partition's key from what the operator wrote: its values, with colons between them, or their digits.
pub(crate) fn key_bytes(table: &schema::Table, text: &str, hex: bool) -> Answer<Vec<u8>> {
    let refused = |what: String| OperatorError::BadUse(what);
    if hex {
        let digits = CqlType::Blob.parse_text(text, 0);
        return digits.map_err(|e| refused(e.to_string()));
    }
    let texts: Vec<&str> = match table.partition_key.len() {
        1 => vec![text],
        _ => text.split(':').collect(),
    };
    let columns = table.partition_key.iter();
    let values = columns.zip(&texts).map(|(column, text)| column.ty.parse_text(text, 0));
    let values: Result<Vec<_>, _> = values.collect();
    let values = values.map_err(|e| refused(e.to_string()))?;
    let key = table.partition_key_bytes(&values).map_err(|e| refused(e.to_string()))?;
    Ok(key.into())
}

/// A table that was dropped meanwhile is nothing to complain about.
fn ignore_dropped(result: Result<(), StorageError>) -> Answer<()> {
    match result {
        Ok(()) | Err(StorageError::UnknownTable(_)) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
