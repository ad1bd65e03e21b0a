//! A node that is not one: the facts that Cassandra 5.0.9 showed in `testdata/nodetool`.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use admin::{
    Answer, Cache, CacheName, Cluster, CompactionStats, Endpoint, Handoff, HandoffChange, IoStats,
    Life, Liveness, Messages, NetStats, NetworkCache, NewImport, NewSnapshot, NodeInfo, Operator,
    OperatorError, PastCompaction, PendingHints, Pool, PoolStats, ProxyHistograms, RangeReplica,
    ReadRepairs, Release, ReplicatedRange, Replication, Ring, RingNode, RingRanges, Scrub, Setting,
    SnapshotDetails, StopWhich, TableHistograms, TableName, TableStats, Timeout, Verify,
};

use env::sim::{World, WorldOptions};

const TOKENS: [i64; 16] = [
    -8918841385199852466,
    -7675321379519260492,
    -6707957136440724993,
    -5117952583926826355,
    -3498929288229783058,
    -2520783835713668983,
    -742149534890081854,
    353892365344856434,
    1445189476037068693,
    2289566123528230450,
    3729834353430813688,
    4801334969770846501,
    5819186374513273516,
    6636858307125624311,
    7712614188351203850,
    8448529881062097491,
];
const HOST_ID: &str = "7a0ab442-d8a0-4143-a2eb-61643a2b0f1b";

/// Answers, and writes down what it was told to do.
#[derive(Default)]
pub struct Fake {
    pub done: RefCell<Vec<String>>,
    pub drained: Cell<bool>,
    /// Reads of a table that is not shown.
    pub other_reads: Cell<(u64, u64)>,
    /// Facts of `ring`, to be changed by tests.
    pub ring: RefCell<Option<Ring>>,
    pub snapshots: RefCell<Vec<SnapshotDetails>>,
    pub backups: Cell<bool>,
    pub past: RefCell<Vec<PastCompaction>>,
    /// Facts of `compaction_stats`.
    pub compactions: RefCell<Option<CompactionStats>>,
    pub seeds_after_reload: RefCell<Option<Vec<std::net::SocketAddr>>>,
}

impl Fake {
    fn note(&self, what: String) -> Answer<()> {
        self.done.borrow_mut().push(what);
        Ok(())
    }
}

pub fn ring() -> Ring {
    let node = RingNode {
        address: "127.0.0.23:7000".parse().unwrap(),
        liveness: Liveness::Up,
        life: Life::Normal,
        load: Some(117_443),
        tokens: TOKENS.map(|t| t.to_string()).to_vec(),
        owns: Some(1.0),
        host_id: HOST_ID.to_owned(),
        data_center: "datacenter1".to_owned(),
        rack: "rack1".to_owned(),
    };
    Ring { nodes: vec![node], note: None }
}

pub fn compaction_stats() -> CompactionStats {
    CompactionStats {
        concurrent: 2,
        completed: 1,
        bytes: 825,
        compressed_bytes: 852,
        fifteen_minute_rate: 0.06 / 60.0,
        mean_rate: 26.6 / 3600.0,
        throughput: 64 << 20,
        ..CompactionStats::default()
    }
}

impl Operator for Fake {
    async fn release(&self) -> Answer<Release> {
        Ok(Release { version: "5.0.9".into(), git_sha: "0123abc".into() })
    }

    async fn node(&self) -> Answer<NodeInfo> {
        let saved = |size, entries, capacity: u64, hits, requests, hours: u64| Cache {
            entries,
            size,
            capacity: capacity << 20,
            hits,
            requests,
            save_period: Duration::from_secs(hours * 3600),
        };
        Ok(NodeInfo {
            host_id: HOST_ID.to_owned(),
            gossip_active: true,
            native_transport_active: true,
            load: 117_443,
            uncompressed_load: 155_638,
            generation: 1_795_298_978,
            uptime: Duration::from_millis(98_765),
            memory: (140_865_700, 768 << 20),
            off_heap: 41,
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            exceptions: 0,
            key_cache: saved(640, 8, 38, 68, 75, 4),
            row_cache: Cache::default(),
            counter_cache: saved(0, 0, 19, 0, 0, 2),
            chunk_cache: None,
            network_cache: Some(NetworkCache { size: 0, overflow: 0, capacity: 48 << 20 }),
            percent_repaired: 100.0,
            tokens: Some(TOKENS.map(|t| t.to_string()).to_vec()),
            bootstrap_state: "COMPLETED".into(),
            bootstrap_failed: false,
            decommissioning: false,
            decommission_failed: false,
        })
    }

    async fn gossip(&self) -> Answer<Vec<Endpoint>> {
        let values = vec![("STATUS", 30, "NORMAL,-19".to_owned()), ("TOKENS", 28, String::new())];
        let [one, two] = [1, 2].map(|n| ([127, 0, 0, n], 7000).into());
        Ok(vec![
            Endpoint { address: one, heartbeat: (1_795_298_978, 12), values, phi: None },
            Endpoint { address: two, heartbeat: (0, -1), values: Vec::new(), phi: Some(0.25) },
        ])
    }

    async fn seeds(&self) -> Answer<Vec<std::net::SocketAddr>> {
        Ok(vec![([127, 0, 0, 2], 7000).into()])
    }

    async fn endpoints(&self, table: &TableName, key: &str) -> Answer<Vec<std::net::SocketAddr>> {
        self.note(format!("endpoints {}.{} {key}", table.keyspace, table.table))?;
        Ok(vec![([127, 0, 0, 2], 7000).into()])
    }

    async fn ranges(&self, keyspace: &str) -> Answer<RingRanges> {
        let replica = |n: u8| RangeReplica {
            address: ([127, 0, 0, n], 7000).into(),
            native: ([127, 0, 0, n], 9042).into(),
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
        };
        let range = ReplicatedRange {
            start: "-5".into(),
            end: "7".into(),
            replicas: vec![replica(81), replica(82)],
        };
        let ranges = match keyspace {
            "ks" => Ok(vec![range]),
            _ => Err(OperatorError::Failed(format!("No such keyspace: {keyspace}"))),
        };
        Ok(RingRanges { schema_version: HOST_ID.to_owned(), ranges })
    }

    async fn set_gossip(&self, takes_part: bool) -> Answer<()> {
        self.note(format!("gossip {takes_part}"))
    }

    async fn reload_seeds(&self) -> Answer<Option<Vec<std::net::SocketAddr>>> {
        Ok(self.seeds_after_reload.borrow().clone())
    }

    async fn pool_stats(&self) -> Answer<PoolStats> {
        let pool = |name: &str, completed| Pool { name: name.into(), completed, ..Pool::default() };
        Ok(PoolStats {
            pools: vec![pool("MutationStage", 1), pool("Native-Transport-Auth-Requests", 270)],
            dropped: vec![("READ_RSP", 0), ("PAXOS2_CLEANUP_FINISH_PREPARE_RSP", 12)],
        })
    }

    async fn net_stats(&self) -> Answer<NetStats> {
        Ok(NetStats {
            mode: "NORMAL".into(),
            read_repair: ReadRepairs { attempted: 0, blocking: 3, background: 0 },
            gossip: Messages { pending: 1, completed: 289, dropped: 2 },
            ..NetStats::default()
        })
    }

    async fn proxy_histograms(&self) -> Answer<ProxyHistograms> {
        let read = [9887.0, 88148.0, 88148.0, 88148.0, 88148.0, 8240.0, 88148.0];
        let write = [24601.0, 24601.0, 24601.0, 24601.0, 24601.0, 20502.0, 24601.0];
        let range = [61214.0, 61214.0, 61214.0, 61214.0, 61214.0, 51013.0, 61214.0];
        Ok(ProxyHistograms { read, write, range, ..ProxyHistograms::default() })
    }

    async fn handoff(&self) -> Answer<Handoff> {
        let disabled_datacenters = vec!["dc2".to_owned()];
        Ok(Handoff { is_enabled: true, disabled_datacenters, window_millis: 10_800_000 })
    }

    async fn set_handoff(&self, change: HandoffChange) -> Answer<()> {
        self.note(format!("set_handoff {change:?}"))
    }

    async fn pause_handoff(&self, is_paused: bool) -> Answer<()> {
        self.note(format!("pause_handoff {is_paused}"))
    }

    async fn pending_hints(&self) -> Answer<Vec<PendingHints>> {
        Ok(Vec::new())
    }

    async fn truncate_hints(&self, address: Option<&str>) -> Answer<()> {
        self.note(format!("truncate_hints {address:?}"))
    }

    async fn assassinate(&self, address: &str) -> Answer<()> {
        self.note(format!("assassinate {address}"))
    }

    async fn settings(&self) -> Answer<Vec<Setting>> {
        Ok(vec![("group_by_enabled".to_owned(), Some("true".to_owned()))])
    }

    async fn set_guardrails(&self, settings: &[String]) -> Answer<()> {
        match settings {
            [_, fail] if fail.ends_with("=10") => Err(OperatorError::BadUse("no".to_owned())),
            settings => self.note(format!("set {settings:?}")),
        }
    }

    async fn keyspaces(&self) -> Answer<Vec<Replication>> {
        let keyspaces = [
            ("system_traces", "SimpleStrategy {replication_factor=2}"),
            ("system_distributed", "SimpleStrategy {replication_factor=3}"),
            ("system_auth", "SimpleStrategy {replication_factor=1}"),
            ("system_schema", "LocalStrategy {}"),
            ("system", "LocalStrategy {}"),
        ];
        let replication = |(keyspace, replication): (&str, &str)| Replication {
            keyspace: keyspace.to_owned(),
            replication: replication.to_owned(),
        };
        Ok(keyspaces.map(replication).to_vec())
    }

    async fn cluster(&self) -> Answer<Cluster> {
        let nodes = vec!["127.0.0.23:7000".parse().unwrap()];
        Ok(Cluster {
            name: "peer".into(),
            snitch: "org.apache.cassandra.locator.GossipingPropertyFileSnitch".into(),
            dynamic_snitch: true,
            partitioner: "org.apache.cassandra.dht.Murmur3Partitioner".into(),
            schema_versions: vec![("d03783d7-b468-3c1a-82f1-8e30b2edde8b".into(), nodes.clone())],
            releases: vec![("5.0.9".into(), nodes)],
        })
    }

    async fn ring(&self, keyspace: Option<&str>) -> Answer<Ring> {
        match keyspace {
            Some("nosuch") => {
                Err(OperatorError::BadUse("The keyspace nosuch, does not exist".into()))
            }
            _ => Ok(self.ring.borrow().clone().unwrap_or_else(ring)),
        }
    }

    async fn table_stats(&self) -> Answer<Vec<TableStats>> {
        // The keyspace's sums hold reads and writes of tables that are not shown.
        let reads = match self.other_reads.get() {
            (0, _) => (1, 66_077),
            reads => reads,
        };
        let other = TableStats { reads, writes: (15, 17_914), ..empty("IndexInfo") };
        Ok(vec![other, local(), empty("peers")])
    }

    async fn compaction_stats(&self) -> Answer<CompactionStats> {
        Ok(self.compactions.borrow().clone().unwrap_or_else(compaction_stats))
    }

    async fn snapshot(&self, snapshot: NewSnapshot) -> Answer<()> {
        match snapshot.name.as_str() {
            "there" => Err(OperatorError::Failed("Snapshot there already exists.".to_owned())),
            _ => self.note(format!("{snapshot:?}")),
        }
    }

    async fn snapshots(&self) -> Answer<Vec<SnapshotDetails>> {
        Ok(self.snapshots.borrow().clone())
    }

    async fn clear_snapshots(
        &self,
        keyspaces: &[String],
        name: Option<&str>,
        before: Option<i64>,
    ) -> Answer<()> {
        self.note(format!("clear {keyspaces:?} {name:?} {before:?}"))
    }

    async fn backups(&self) -> Answer<bool> {
        Ok(self.backups.get())
    }

    async fn set_backups(&self, kept: bool) -> Answer<()> {
        self.backups.set(kept);
        Ok(())
    }

    async fn flush(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        match tables {
            [table] if table == "nosuch" => {
                Err(OperatorError::Failed(format!("Unknown keyspace/cf pair ({keyspace}.{table})")))
            }
            _ => self.note(format!("flush {keyspace} {tables:?}")),
        }
    }

    async fn compact(&self, keyspace: &str, tables: &[String], split: bool) -> Answer<()> {
        self.note(format!("compact {keyspace} {tables:?}{}", if split { " split" } else { "" }))
    }

    async fn compact_files(&self, files: &[String]) -> Answer<()> {
        self.note(format!("compact files {files:?}"))
    }

    async fn upgrade(&self, keyspace: &str, tables: &[String], all: bool) -> Answer<()> {
        self.note(format!("upgrade {keyspace} {tables:?} {all}"))
    }

    async fn scrub(&self, keyspace: &str, tables: &[String], how: Scrub) -> Answer<()> {
        self.note(format!("scrub {keyspace} {tables:?} {how:?}"))
    }

    async fn verify(&self, keyspace: &str, tables: &[String], how: Verify) -> Answer<()> {
        self.note(format!("verify {keyspace} {tables:?} {how:?}"))
    }

    async fn garbage_collect(&self, keyspace: &str, tables: &[String], cells: bool) -> Answer<()> {
        self.note(format!("garbage_collect {keyspace} {tables:?} {cells}"))
    }

    async fn cleanup(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        self.note(format!("cleanup {keyspace} {tables:?}"))
    }

    async fn relocate(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        self.note(format!("relocate {keyspace} {tables:?}"))
    }

    async fn import(&self, import: NewImport) -> Answer<Vec<String>> {
        let refused = import.directories.iter().filter(|name| name.contains("bad")).cloned();
        let refused = refused.collect();
        self.note(format!("{import:?}"))?;
        Ok(refused)
    }

    async fn refresh(&self, table: &TableName) -> Answer<()> {
        self.note(format!("refresh {table:?}"))
    }

    async fn thresholds(&self, table: &TableName) -> Answer<Option<(u32, u32)>> {
        Ok((table.table != "nosuch").then_some((4, 32)))
    }

    async fn set_thresholds(&self, table: &TableName, thresholds: (u32, u32)) -> Answer<bool> {
        self.note(format!("thresholds {table:?} {thresholds:?}"))?;
        Ok(table.table != "nosuch")
    }

    async fn histograms(&self, table: Option<&TableName>) -> Answer<Vec<TableHistograms>> {
        self.note(format!("histograms {table:?}"))?;
        Ok(Vec::new())
    }

    async fn compaction_history(&self) -> Answer<Vec<PastCompaction>> {
        Ok(self.past.borrow().clone())
    }

    async fn stop_compactions(&self, which: StopWhich) -> Answer<()> {
        self.note(format!("stop {which:?}"))
    }

    async fn compaction_throughput(&self) -> Answer<u64> {
        Ok(64 << 20)
    }

    async fn set_compaction_throughput(&self, bytes_per_second: u64) -> Answer<()> {
        self.note(format!("throughput {bytes_per_second}"))
    }

    async fn invalidate_cache(&self, cache: CacheName) -> Answer<()> {
        self.note(format!("invalidate {cache:?}"))
    }

    async fn set_cache_capacity(&self, cache: CacheName, bytes: u64) -> Answer<()> {
        self.note(format!("capacity {cache:?} {bytes}"))
    }

    async fn set_cache_keys_to_save(&self, cache: CacheName, most: u32) -> Answer<()> {
        self.note(format!("keys to save {cache:?} {most}"))
    }

    async fn concurrent_compactors(&self) -> Answer<u64> {
        Ok(2)
    }

    async fn set_concurrent_compactors(&self, count: u64) -> Answer<()> {
        self.note(format!("compactors {count}"))
    }

    async fn set_autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
        enabled: bool,
    ) -> Answer<()> {
        self.note(format!("auto {keyspace} {tables:?} {enabled}"))
    }

    async fn autocompaction(&self, keyspace: &str, _: &[String]) -> Answer<Vec<(String, bool)>> {
        Ok(vec![("t".to_owned(), keyspace != "system")])
    }

    async fn data_paths(
        &self,
        keyspace: &str,
        table: Option<&str>,
    ) -> Answer<Vec<(String, Vec<String>)>> {
        let table = table.unwrap_or("t").to_owned();
        Ok(vec![(table.clone(), vec![format!("/data/{keyspace}/{table}-1")])])
    }

    async fn sstables_of(
        &self,
        _: &TableName,
        key: &str,
        _: bool,
    ) -> Answer<Vec<(Option<usize>, String)>> {
        Ok(vec![(Some(2), format!("/data/{key}/nb-1-big-Data.db"))])
    }

    async fn drain(&self) -> Answer<()> {
        self.drained.set(true);
        self.note("drain".into())
    }

    async fn stop_daemon(&self) -> Answer<()> {
        self.note("stop".into())
    }

    async fn io_stats(&self, windows: u64) -> Answer<IoStats> {
        let world = World::new(1, WorldOptions::default());
        let env = world.client("10.0.0.1".parse().unwrap());
        let pattern = env.io_pattern(0..windows);
        Ok(IoStats { pattern, starts_at_millis: 0, depth: 32 })
    }

    async fn native_transport(&self) -> Answer<bool> {
        Ok(!self.drained.get())
    }

    async fn start_native_transport(&self) -> Answer<()> {
        match self.drained.get() {
            true => Err(OperatorError::BadUse(
                "Unable to start native transport because the node was drained.".into(),
            )),
            false => self.note("start native".into()),
        }
    }

    async fn stop_native_transport(&self, force: bool) -> Answer<()> {
        self.note(format!("stop native {force}"))
    }

    async fn timeout(&self, _: Timeout) -> Answer<u64> {
        Ok(5000)
    }

    async fn set_timeout(&self, timeout: Timeout, millis: u64) -> Answer<()> {
        self.note(format!("set {timeout} {millis}"))
    }

    async fn refresh_size_estimates(&self) -> Answer<()> {
        self.note("estimate".to_owned())
    }

    async fn trace_probability(&self) -> Answer<f64> {
        Ok(0.0)
    }

    async fn set_trace_probability(&self, share: f64) -> Answer<()> {
        self.note(format!("trace {share}"))
    }
}

/// `system.local` as captured.
fn local() -> TableStats {
    TableStats {
        sstables: 1,
        max_sstable_size: 6838,
        space_live: 6838,
        space_total: 6838,
        compression_ratio: 0.951_079_136_690_647_5,
        partitions: 1,
        memtable_switches: 7,
        reads: (29, 281_715),
        writes: (11, 6_864),
        recent_read_latency: 9714.0,
        recent_write_latency: 624.0,
        percent_repaired: 0.0,
        bytes_unrepaired: 695,
        filter_space: 16,
        filter_memory: 8,
        summary_memory: 17,
        compression_memory: 16,
        partition_sizes: (643, 770, 770),
        live_cells: (1.0, 1),
        tombstones: (1.0, 1),
        ..empty("local")
    }
}

/// A table of `system` without anything.
fn empty(table: &str) -> TableStats {
    TableStats {
        keyspace: "system".into(),
        table: table.to_owned(),
        sstables: 0,
        old_sstables: 0,
        max_sstable_size: 0,
        time_window: None,
        levels: None,
        space_live: 0,
        space_total: 0,
        space_snapshots: 0,
        compression_ratio: -1.0,
        partitions: 0,
        memtable_cells: 0,
        memtable_size: 0,
        memtable_off_heap: 0,
        memtable_switches: 0,
        speculative_retries: 0,
        reads: (0, 0),
        writes: (0, 0),
        recent_read_latency: f64::NAN,
        recent_write_latency: f64::NAN,
        pending_flushes: 0,
        percent_repaired: 100.0,
        bytes_repaired: 0,
        bytes_unrepaired: 0,
        bytes_pending_repair: 0,
        filter_false_positives: 0,
        filter_false_ratio: 0.0,
        filter_space: 0,
        filter_memory: 0,
        summary_memory: 0,
        compression_memory: 0,
        partition_sizes: (0, 0, 0),
        live_cells: (f64::NAN, 0),
        tombstones: (f64::NAN, 0),
        droppable_tombstones: 0.0,
    }
}
