//! A node that is not one: the facts that Cassandra 5.0.9 showed in `testdata/nodetool`.

pub mod repair;
mod request_logs;
mod ring;
mod samples;

use admin::{
    AccessOperator, Answer, AuthCacheChange, AuthCacheSettings, AutoCompaction, Cache, CacheName,
    CachesOperator, ClientConnection, Cluster, Command, CompactionOperator, CompactionStats,
    DataFile, Decommission, DroppedMessages, Endpoint, Failing, FailingUnit, FailureChance,
    FailureOdds, FailurePlan, FailureRow, Format, GossipValue, Handoff, HandoffChange,
    HintsOperator, IoStats, Life, Liveness, LoggerLevel, Messages, MovePlan, NetStats,
    NetworkCache, NetworkOperator, NewImport, NewSnapshot, NodeInfo, NodeOperator, NodesOf,
    Outcome, PartitionBytes, PastCompaction, PendingHints, PerRead, PlanChange, PlannedOwnership,
    PlannedRate, PlannedShare, PlannedStream, PlannedTokens, Pool, PoolStats, ProxyHistograms,
    RangeReplica, ReadRepairs, RebuildOrder, RecentClient, Refusal, Release, RepairOrder,
    ReplicatedRange, Replication, Reply, Requests, Ring, RingNode, RingOperator, RoleCache,
    SSTablesOperator, Scrub, Setting, SettingsOperator, SnapshotDetails, SnapshotsOperator,
    StopWhich, StreamFile, StreamLimits, StreamPlan, StreamSession, StreamSum, TableHistograms,
    TableName, TablePaths, TableStats, TablesOperator, Thresholds, Timeout, Verb, Verify, ask,
    wire,
};
use std::cell::{Cell, RefCell};
use std::time::Duration;

use doctor::{Finding, Report, Severity};
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
    /// What a client sees when the order to end is given.
    pub seen_at_the_end: RefCell<Option<Box<dyn Fn() -> String>>>,
    /// Reads of a table that is not shown.
    pub other_reads: Cell<(u64, u64)>,
    /// Facts of `ring`, to be changed by tests.
    pub ring: RefCell<Option<Ring>>,
    pub snapshots: RefCell<Vec<SnapshotDetails>>,
    pub backups: Cell<bool>,
    pub past: RefCell<Vec<PastCompaction>>,
    /// Facts of `compaction_stats`.
    pub compactions: RefCell<Option<CompactionStats>>,
    pub hints: RefCell<Vec<PendingHints>>,
    pub histograms: RefCell<Vec<TableHistograms>>,
    pub seeds_after_reload: RefCell<Option<Vec<std::net::SocketAddr>>>,
    pub repairs: repair::Repairs,
    /// Beside those of Cassandra itself, with their replication.
    pub keyspaces: RefCell<Vec<(&'static str, &'static str)>>,
}

/// What nodetool prints of a command line, and what the node was told to do. The value goes the way
/// of the socket: it is written in JSON and read again.
pub fn say_with(fake: Fake, line: &str) -> (Reply, Vec<String>) {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let command = Command::parse(&words).unwrap();
    let (outcome, done) = answer(fake, command.verb.clone());
    let line = wire::encode_outcome(&outcome);
    let outcome = wire::decode_outcome(line.as_bytes()).unwrap();
    let reply = match command.format {
        Format::Text => Reply::text(&command.verb, &outcome),
        Format::Json => Reply::json(&command.verb, &outcome),
    };
    (reply.unwrap(), done)
}

/// What the node answers to a verb, and what it was told to do.
pub fn answer(fake: Fake, verb: Verb) -> (Outcome, Vec<String>) {
    let world = World::new(1, WorldOptions::default());
    let env = world.client("10.0.0.1".parse().unwrap());
    let inside = env.clone();
    let asked = async move {
        let outcome = ask(&inside, &fake, verb).await;
        (outcome, fake.done.take())
    };
    world.block_on(&env, Duration::from_secs(5), asked).unwrap()
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
        load_bytes: Some(117_443),
        tokens: TOKENS.map(|t| t.to_string()).to_vec(),
        owns_share: Some(1.0),
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
        compacted_bytes: 825,
        compacted_compressed_bytes: 852,
        fifteen_minute_rate_per_second: 0.06 / 60.0,
        mean_rate_per_second: 26.6 / 3600.0,
        throughput_bytes_per_second: 64 << 20,
        ..CompactionStats::default()
    }
}

impl NodeOperator for Fake {
    async fn release(&self) -> Answer<Release> {
        Ok(Release { version: "5.0.9".into(), git_sha: "0123abc".into() })
    }

    async fn node(&self) -> Answer<NodeInfo> {
        let saved = |size, entries, capacity: u64, hits, requests, hours: u64| Cache {
            entries,
            size_bytes: size,
            capacity_bytes: capacity << 20,
            hits,
            requests,
            save_period_seconds: hours * 3600,
        };
        Ok(NodeInfo {
            host_id: HOST_ID.to_owned(),
            gossip_active: true,
            native_transport_active: true,
            load_bytes: 117_443,
            uncompressed_load_bytes: 155_638,
            generation: 1_795_298_978,
            uptime_seconds: 98,
            memory_used_bytes: 140_865_700,
            memory_budget_bytes: 768 << 20,
            off_heap_bytes: 41,
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            exceptions: 0,
            key_cache: saved(640, 8, 38, 68, 75, 4),
            row_cache: Cache::default(),
            counter_cache: saved(0, 0, 19, 0, 0, 2),
            chunk_cache: None,
            network_cache: Some(NetworkCache {
                size_bytes: 0,
                overflow_bytes: 0,
                capacity_bytes: 48 << 20,
            }),
            percent_repaired: 100.0,
            tokens: Some(TOKENS.map(|t| t.to_string()).to_vec()),
            bootstrap_state: "COMPLETED".into(),
            bootstrap_failed: false,
            decommissioning: false,
            decommission_failed: false,
        })
    }

    async fn io_stats(&self, windows: u64) -> Answer<IoStats> {
        let world = World::new(1, WorldOptions::default());
        let env = world.client("10.0.0.1".parse().unwrap());
        let pattern = env.io_pattern(0..windows);
        Ok(IoStats::of(&pattern, 0, 32))
    }

    async fn examination(&self) -> Answer<Report> {
        let finding = Finding {
            id: "node_down".into(),
            severity: Severity::Warn,
            subject: "10.0.0.2".to_owned(),
            found: "it does not answer".to_owned(),
            why: "Its data has one replica less.".into(),
            fix: "start it".to_owned(),
        };
        let serious = Finding { severity: Severity::Serious, ..finding.clone() };
        let findings = if self.drained.get() { vec![serious] } else { vec![finding] };
        Ok(Report { findings, ok: vec!["swap".into()], unknown: vec!["steal".into()] })
    }

    async fn drain(&self) -> Answer<()> {
        self.drained.set(true);
        self.note("drain".into())
    }

    fn terminate(&self) {
        let seen = self.seen_at_the_end.borrow().as_ref().map(|seen| seen()).unwrap_or_default();
        self.done.borrow_mut().push(format!("terminate {seen}"));
    }

    async fn native_transport(&self) -> Answer<bool> {
        Ok(!self.drained.get())
    }

    async fn start_native_transport(&self) -> Answer<()> {
        match self.drained.get() {
            true => Err(Refusal::BadUse(
                "Unable to start native transport because the node was drained.".into(),
            )),
            false => self.note("start native".into()),
        }
    }

    async fn stop_native_transport(&self, force: bool) -> Answer<()> {
        self.note(format!("stop native {force}"))
    }
}

fn failures(one: &str, other: &str) -> Vec<FailureOdds> {
    let row = |unit, failed, missing: &str, shares: [Option<(f64, bool)>; 2]| FailureRow {
        unit,
        failed,
        missing: missing.to_owned(),
        chances: shares.map(|of| of.map(|(share, exact)| FailureChance { share, exact })).to_vec(),
    };
    let (nodes, racks) = (FailingUnit::Nodes, FailingUnit::Racks);
    let of = |keyspace: &str, system| FailureOdds {
        keyspaces: vec![keyspace.to_owned()],
        system,
        rings: vec![one.to_owned(), other.to_owned()],
        rows: vec![
            row(nodes, 1, "QUORUM", [Some((0.0, true)), Some((0.0, true))]),
            row(nodes, 3, "QUORUM", [Some((0.4712, false)), Some((0.1, true))]),
            row(racks, 2, "all replicas", [Some((1.0, true)), None]),
        ],
    };
    vec![of("ks", false), of("system_auth", true)]
}

fn move_plan() -> MovePlan {
    let share = |node: &str, before_share, after_share| PlannedShare {
        node: node.to_owned(),
        data_center: "dc1".to_owned(),
        rack: "r1".to_owned(),
        before_share,
        after_share,
    };
    let stream = |from: &str, keyspace: &str, bytes| PlannedStream {
        step: 1,
        from: from.to_owned(),
        to: "new-1".to_owned(),
        keyspace: keyspace.to_owned(),
        ranges: vec!["(1,2]".to_owned(), "(5,-5]".to_owned()],
        bytes,
    };
    MovePlan {
        title: "add 1 node with 2 tokens to data center dc1".to_owned(),
        refusals: vec!["Other bootstrapping nodes detected".to_owned()],
        notes: vec!["Bytes are estimates.".to_owned()],
        tokens: vec![PlannedTokens {
            node: "new-1".to_owned(),
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            tokens: vec!["-5".to_owned(), "2".to_owned()],
            drawn: false,
        }],
        ownership: vec![
            PlannedOwnership {
                keyspaces: vec!["ks".to_owned(), "other".to_owned()],
                system: false,
                nodes: vec![
                    share("10.0.0.1", Some(1.0), Some(0.6123)),
                    share("10.0.0.10", Some(0.5), None),
                    share("new-1", None, Some(0.8877)),
                ],
            },
            PlannedOwnership {
                keyspaces: vec!["system_auth".to_owned()],
                system: true,
                nodes: vec![share("10.0.0.1", Some(1.0), Some(1.0))],
            },
        ],
        streams: vec![
            stream("10.0.0.1", "ks", 3 << 30),
            stream("10.0.0.1", "other", 1 << 30),
            stream("10.0.0.10", "ks", 0),
        ],
        bytes: 4 << 30,
        seconds: Some(163.84),
        rate: PlannedRate::LimitBytesPerSecond(25 << 20),
        failures: failures("now", "after"),
    }
}

fn streams() -> Vec<StreamPlan> {
    let file = |name: &str, is_sent, bytes, bytes_done| {
        let name = name.to_owned();
        StreamFile { name, is_sent, bytes, bytes_done }
    };
    let session = StreamSession {
        peer: "10.0.0.2:7000".parse().unwrap(),
        index: 0,
        state: "STREAMING".to_owned(),
        receiving: StreamSum { files: 7, bytes: 1000, files_done: 0, bytes_done: 500 },
        sending: StreamSum { files: 2, bytes: 3 << 20, files_done: 1, bytes_done: 2 << 20 },
        bytes_per_second: 3 << 19,
        seconds_left: Some(2),
        files: vec![
            file("/data/ks/t-1/nb-3-big-Data.db", false, 1000, 500),
            file("/data/ks/t-1/nb-1-big-Data.db", true, 2 << 20, 2 << 20),
        ],
    };
    vec![StreamPlan {
        operation: "Rebuild".to_owned(),
        id: "c0ffee00-ca5c-11f0-8000-00000000000a".to_owned(),
        sessions: vec![session],
    }]
}

impl NetworkOperator for Fake {
    async fn stream_limits(&self) -> Answer<StreamLimits> {
        let parts = 200 * 125_000;
        Ok(StreamLimits { parts, far_parts: 24 << 20, whole: 24 << 20, far_whole: 0 })
    }

    async fn set_stream_limits(&self, limits: StreamLimits) -> Answer<()> {
        self.note(format!("stream limits {limits:?}"))
    }

    async fn pool_stats(&self) -> Answer<PoolStats> {
        let pool = |name: &str, completed| Pool { name: name.into(), completed, ..Pool::default() };
        let dropped = |verb: &str, count| DroppedMessages { verb: verb.to_owned(), count };
        Ok(PoolStats {
            pools: vec![pool("MutationStage", 1), pool("Native-Transport-Auth-Requests", 270)],
            dropped: vec![dropped("READ_RSP", 0), dropped("PAXOS2_CLEANUP_FINISH_PREPARE_RSP", 12)],
        })
    }

    async fn net_stats(&self) -> Answer<NetStats> {
        Ok(NetStats {
            streams: streams(),
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
        Ok(ProxyHistograms {
            read_micros: read.into(),
            write_micros: write.into(),
            range_micros: range.into(),
            ..ProxyHistograms::default()
        })
    }
}

impl HintsOperator for Fake {
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
        Ok(self.hints.borrow().clone())
    }

    async fn truncate_hints(&self, address: Option<&str>) -> Answer<()> {
        self.note(format!("truncate_hints {address:?}"))
    }
}

impl AccessOperator for Fake {
    async fn client_connections(&self) -> Answer<Vec<ClientConnection>> {
        Ok(Vec::new())
    }

    async fn recent_clients(&self) -> Answer<Vec<RecentClient>> {
        Ok(Vec::new())
    }

    async fn forget_recent_clients(&self) -> Answer<()> {
        self.note("forget clients".to_owned())
    }

    async fn forget_roles(&self, cache: RoleCache) -> Answer<()> {
        self.note(format!("forget {cache:?}"))
    }

    async fn auth_cache(&self, _: RoleCache) -> Answer<AuthCacheSettings> {
        Ok(AuthCacheSettings {
            validity_millis: 2000,
            update_interval_millis: 2000,
            max_entries: 1000,
            active_update: false,
        })
    }

    async fn set_auth_cache(&self, cache: RoleCache, change: AuthCacheChange) -> Answer<()> {
        self.note(format!("{cache:?} {change:?}"))
    }

    async fn allow_older_protocols(&self, allows: bool) -> Answer<()> {
        self.note(format!("older protocols {allows}"))
    }

    async fn reload_key_stores(&self) -> Answer<()> {
        self.note("reload key stores".to_owned())
    }
}

impl CachesOperator for Fake {
    async fn invalidate_cache(&self, cache: CacheName) -> Answer<()> {
        self.note(format!("invalidate {cache:?}"))
    }

    async fn set_cache_capacity(&self, cache: CacheName, bytes: u64) -> Answer<()> {
        self.note(format!("capacity {cache:?} {bytes}"))
    }

    async fn set_cache_keys_to_save(&self, cache: CacheName, most: u32) -> Answer<()> {
        self.note(format!("keys to save {cache:?} {most}"))
    }
}

impl CompactionOperator for Fake {
    async fn compaction_stats(&self) -> Answer<CompactionStats> {
        Ok(self.compactions.borrow().clone().unwrap_or_else(compaction_stats))
    }

    async fn compaction_history(&self) -> Answer<Vec<PastCompaction>> {
        Ok(self.past.borrow().clone())
    }

    async fn compact(&self, keyspace: &str, tables: &[String], split: bool) -> Answer<()> {
        self.note(format!("compact {keyspace} {tables:?}{}", if split { " split" } else { "" }))
    }

    async fn compact_files(&self, files: &[String]) -> Answer<()> {
        self.note(format!("compact files {files:?}"))
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

    async fn concurrent_compactors(&self) -> Answer<u64> {
        Ok(2)
    }

    async fn set_concurrent_compactors(&self, count: u64) -> Answer<()> {
        self.note(format!("compactors {count}"))
    }

    async fn thresholds(&self, table: &TableName) -> Answer<Thresholds> {
        match table.table.as_str() {
            "nosuch" => Err(Refusal::UnknownTable(table.clone())),
            _ => Ok(Thresholds { min: 4, max: 32 }),
        }
    }

    async fn set_thresholds(&self, table: &TableName, thresholds: Thresholds) -> Answer<()> {
        match table.table.as_str() {
            "nosuch" => Err(Refusal::UnknownTable(table.clone())),
            _ => self.note(format!("thresholds {table:?} {thresholds:?}")),
        }
    }

    async fn autocompaction(&self, keyspace: &str, _: &[String]) -> Answer<Vec<AutoCompaction>> {
        let enabled = keyspace != "system";
        Ok(vec![AutoCompaction { keyspace: keyspace.to_owned(), table: "t".to_owned(), enabled }])
    }

    async fn set_autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
        enabled: bool,
    ) -> Answer<()> {
        self.note(format!("auto {keyspace} {tables:?} {enabled}"))
    }
}

impl SSTablesOperator for Fake {
    async fn flush(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        match tables {
            [table] if table == "nosuch" => {
                Err(Refusal::Failed(format!("Unknown keyspace/cf pair ({keyspace}.{table})")))
            }
            _ => self.note(format!("flush {keyspace} {tables:?}")),
        }
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
}

impl TablesOperator for Fake {
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
        let others = self.keyspaces.borrow();
        Ok(keyspaces.iter().chain(&*others).copied().map(replication).collect())
    }

    async fn table_stats(&self) -> Answer<Vec<TableStats>> {
        // The keyspace's sums hold reads and writes of tables that are not shown.
        let reads = match self.other_reads.get() {
            (0, _) => requests(1, 66_077),
            (count, micros) => requests(count, micros),
        };
        let other = TableStats { reads, writes: requests(15, 17_914), ..empty("IndexInfo") };
        Ok(vec![other, local(), empty("peers")])
    }

    async fn histograms(&self, table: Option<&TableName>) -> Answer<Vec<TableHistograms>> {
        self.note(format!("histograms {table:?}"))?;
        Ok(self.histograms.borrow().clone())
    }

    async fn data_paths(&self, keyspace: &str, table: Option<&str>) -> Answer<Vec<TablePaths>> {
        let table = table.unwrap_or("t").to_owned();
        let paths = vec![format!("/data/{keyspace}/{table}-1")];
        Ok(vec![TablePaths { table, paths }])
    }

    async fn sstables_of(&self, _: &TableName, key: &str, _: bool) -> Answer<Vec<DataFile>> {
        Ok(vec![DataFile { level: Some(2), path: format!("/data/{key}/nb-1-big-Data.db") }])
    }

    async fn refresh_size_estimates(&self) -> Answer<()> {
        self.note("estimate".to_owned())
    }
}

impl SnapshotsOperator for Fake {
    async fn snapshot(&self, snapshot: NewSnapshot) -> Answer<()> {
        match snapshot.name.as_str() {
            "there" => Err(Refusal::Failed("Snapshot there already exists.".to_owned())),
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
}

impl SettingsOperator for Fake {
    async fn column_index_bytes(&self) -> Answer<Option<u64>> {
        Ok(Some(64 << 10))
    }

    async fn default_replication(&self) -> Answer<u64> {
        Ok(3)
    }

    async fn set_default_replication(&self, factor: i32) -> Answer<()> {
        self.note(format!("default rf {factor}"))
    }

    async fn replay_batches(&self) -> Answer<()> {
        self.note("replay".to_owned())
    }

    async fn timeout(&self, _: Timeout) -> Answer<u64> {
        Ok(5000)
    }

    async fn set_timeout(&self, timeout: Timeout, millis: u64) -> Answer<()> {
        self.note(format!("set {timeout} {millis}"))
    }

    async fn settings(&self) -> Answer<Vec<Setting>> {
        let name = "group_by_enabled".to_owned();
        Ok(vec![Setting { name, value: Some("true".to_owned()) }])
    }

    async fn set_guardrails(&self, settings: &[String]) -> Answer<()> {
        match settings {
            [_, fail] if fail.ends_with("=10") => Err(Refusal::BadUse("no".to_owned())),
            settings => self.note(format!("set {settings:?}")),
        }
    }

    async fn logging_levels(&self) -> Answer<Vec<LoggerLevel>> {
        let level = |logger: &str, level: &str| LoggerLevel {
            logger: logger.to_owned(),
            level: level.to_owned(),
        };
        Ok(vec![level("ROOT", "INFO"), level("org.apache.cassandra.gms", "DEBUG")])
    }

    async fn set_logging_level(&self, target: &str, level: &str) -> Answer<Vec<String>> {
        self.note(format!("level '{target}' '{level}'"))?;
        Ok(if target == "com.example" { vec![target.to_owned()] } else { Vec::new() })
    }

    async fn trace_probability(&self) -> Answer<f64> {
        Ok(0.0)
    }

    async fn set_trace_probability(&self, share: f64) -> Answer<()> {
        self.note(format!("trace {share}"))
    }
}

fn requests(count: u64, total_micros: u64) -> Requests {
    Requests { count, total_micros }
}

/// `system.local` as captured.
fn local() -> TableStats {
    TableStats {
        sstables: 1,
        max_sstable_bytes: 6838,
        space_live_bytes: 6838,
        space_total_bytes: 6838,
        compression_ratio: 0.951_079_136_690_647_5,
        partitions: 1,
        memtable_switches: 7,
        reads: requests(29, 281_715),
        writes: requests(11, 6_864),
        recent_read_micros: 9714.0,
        recent_write_micros: 624.0,
        percent_repaired: 0.0,
        unrepaired_bytes: 695,
        filter_space_bytes: 16,
        filter_memory_bytes: 8,
        summary_memory_bytes: 17,
        compression_memory_bytes: 16,
        partition_bytes: PartitionBytes { min: 643, max: 770, mean: 770 },
        live_cells: PerRead { mean: 1.0, max: 1 },
        tombstones: PerRead { mean: 1.0, max: 1 },
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
        max_sstable_bytes: 0,
        time_window: None,
        levels: None,
        space_live_bytes: 0,
        space_total_bytes: 0,
        space_snapshots_bytes: 0,
        compression_ratio: -1.0,
        partitions: 0,
        memtable_cells: 0,
        memtable_data_bytes: 0,
        memtable_off_heap_bytes: 0,
        memtable_switches: 0,
        speculative_retries: 0,
        reads: Requests::default(),
        writes: Requests::default(),
        recent_read_micros: f64::NAN,
        recent_write_micros: f64::NAN,
        pending_flushes: 0,
        percent_repaired: 100.0,
        repaired_bytes: 0,
        unrepaired_bytes: 0,
        pending_repair_bytes: 0,
        filter_false_positives: 0,
        filter_false_ratio: 0.0,
        filter_space_bytes: 0,
        filter_memory_bytes: 0,
        summary_memory_bytes: 0,
        compression_memory_bytes: 0,
        partition_bytes: PartitionBytes::default(),
        live_cells: PerRead { mean: f64::NAN, max: 0 },
        tombstones: PerRead { mean: f64::NAN, max: 0 },
        droppable_tombstone_ratio: 0.0,
    }
}

/// What repairs the node was told to do by a command line.
pub fn orders(fake: std::rc::Rc<Fake>, line: &str) -> Vec<RepairOrder> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let verb = Command::parse(&words).unwrap().verb;
    let world = World::new(1, WorldOptions::default());
    let env = world.client("10.0.0.1".parse().unwrap());
    let (inside, asked) = (env.clone(), fake.clone());
    let asked = async move {
        ask(&inside, asked.as_ref(), verb).await;
    };
    world.block_on(&env, Duration::from_secs(5), asked).unwrap();
    fake.repairs.orders.take()
}
