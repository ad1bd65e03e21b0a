//! The typed configuration: what the keys that are served come to, defaults and derived
//! values included.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Result;
use crate::key::{Key, Value};
use crate::origin::Origins;
use crate::section::{
    Auth, BatchlogEndpoints, Beside, Cdc, ClientTls, CommitFailurePolicy, CommitLogSync,
    DiskFailurePolicy, DynamicSnitch, FlushCompression, Given, Hints, Host, Internode,
    InternodeCompression, Joining, LogCompression, NativeTransport, ReadSizes, Repair, SavedCaches,
    ServerTls, Streams, Tables, Timeouts, TlsStores,
};
use crate::table::Index;
use crate::values::{self, Settings, Source, Values};

/// What a node is started with when nothing is configured: Cassandra's defaults, and for the
/// keys that have none, the choices of the file that a release ships.
const SHIPPED: &str = "
num_tokens: 16
disk_failure_policy: stop
commitlog_sync: periodic
commitlog_sync_period: 10s
listen_address: localhost
rpc_address: localhost
endpoint_snitch: SimpleSnitch
seed_provider: { class_name: SimpleSeedProvider, parameters: { seeds: '' } }
";

/// The memory that a node takes where `memory_budget` is not set: small enough for a laptop.
pub(crate) const MEMORY_BUDGET: u64 = 1 << 30;

/// The file of Helenus' own keys, beside `cassandra.yaml`.
pub const OWN_FILE: &str = "helenus.yaml";

const SYNC: &str = "commitlog_sync";
const SYNC_PERIOD: &str = "commitlog_sync_period";

/// A configuration that a node can be started with.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `data_dir`.
    pub data_dir: PathBuf,
    /// `data_file_directories`, at least one.
    pub data_file_directories: Vec<PathBuf>,
    /// `commitlog_directory`.
    pub commitlog_directory: PathBuf,
    /// `hints_directory`.
    pub hints_directory: PathBuf,
    /// Hints.
    pub hints: Hints,
    /// Repair.
    pub repair: Repair,
    /// Streams.
    pub streams: Streams,
    /// `saved_caches_directory`.
    pub saved_caches_directory: PathBuf,

    /// `cluster_name`.
    pub cluster_name: String,
    /// `num_tokens`; without it, as many as `initial_token` has, or 1.
    pub num_tokens: u32,
    /// `initial_token`; empty where tokens are to be chosen.
    pub initial_tokens: Vec<i64>,
    /// Addresses of `seed_provider`, as written (`host` or `host:port`); without any the node is
    /// its own seed.
    pub seeds: Vec<String>,
    /// How the node becomes a part of the ring.
    pub joining: Joining,
    /// `internode_compression`.
    pub internode_compression: InternodeCompression,
    /// `phi_convict_threshold`.
    pub phi_convict_threshold: f64,
    /// `serve_index_reads`: may other coordinators ask this node for reads by secondary indexes?
    pub serves_index_reads: bool,
    /// `ring_delay`: how long news takes to be known by all nodes.
    pub ring_delay: Duration,
    /// What is set of connections between nodes.
    pub internode: Internode,
    /// Where this came from.
    pub given: Given,
    /// `endpoint_snitch`, without its package.
    pub snitch: String,
    /// Whether nodes that were slow of late are asked last, and what of that is set. `None` where
    /// `dynamic_snitch` is off.
    pub dynamic_snitch: Option<DynamicSnitch>,
    /// `batchlog_endpoint_strategy`.
    pub batchlog_endpoints: BatchlogEndpoints,
    /// The files beside `cassandra.yaml`.
    pub beside: Beside,
    /// `auth_read_consistency_level` and `auth_write_consistency_level`, by name: of roles and
    /// rights, in a ring of several nodes.
    pub auth_levels: [String; 2],
    /// `default_keyspace_rf`.
    pub default_keyspace_rf: u32,
    /// `drop_compact_storage_enabled`.
    pub drop_compact_storage_enabled: bool,
    /// `dynamic_data_masking_enabled`.
    pub dynamic_data_masking_enabled: bool,

    /// `listen_address`; `localhost` where it is not set.
    pub listen_address: Host,
    /// `broadcast_address`, or `listen_address`.
    pub broadcast_address: Host,
    /// `rpc_address`; `localhost` where it is not set.
    pub rpc_address: Host,
    /// `broadcast_rpc_address`, or `rpc_address`.
    pub broadcast_rpc_address: Host,
    /// `storage_port`.
    pub storage_port: u16,
    /// Who may do what.
    pub auth: Auth,
    /// TLS of clients; none: bytes travel as they are.
    pub client_tls: Option<ClientTls>,
    /// TLS between nodes; none if nothing is encrypted there.
    pub server_tls: Option<ServerTls>,
    /// The native transport's keys.
    pub native_transport: NativeTransport,

    /// `commitlog_sync` and the keys that go with it.
    pub commitlog_sync: CommitLogSync,
    /// `commitlog_segment_size`, in bytes.
    pub commitlog_segment_size: u64,
    /// `commitlog_total_space`, in bytes; `None`: 8 GiB or a quarter of the disk, if less.
    pub commitlog_total_space: Option<u64>,
    /// `max_mutation_size`, in bytes; half a segment where it is not set.
    pub max_mutation_size: u64,
    /// `commitlog_compression`.
    pub commitlog_compression: Option<LogCompression>,
    /// `commitlog_ignore_replay_errors`.
    pub commitlog_ignore_replay_errors: bool,
    /// `cdc_enabled` and the keys that go with it.
    pub cdc: Option<Cdc>,
    /// `disk_failure_policy`.
    pub disk_failure_policy: DiskFailurePolicy,
    /// `commit_failure_policy`.
    pub commit_failure_policy: CommitFailurePolicy,

    /// `memtable_heap_space` and `memtable_offheap_space` together, in bytes; `None` where
    /// neither is set: to be taken from the memory budget.
    pub memtable_space: Option<u64>,
    /// `memtable_keeps_flushed`: reads find what was flushed in memory, while writes do not need
    /// it.
    pub memtable_keeps_flushed: bool,
    /// `file_cache_size`, in bytes; `None`: to be taken from the memory budget.
    pub file_cache_size: Option<u64>,
    /// `key_cache_size`, in bytes; `None`: to be taken from the memory budget.
    pub key_cache_size: Option<u64>,
    /// `row_cache_size`, in bytes.
    pub row_cache_size: u64,
    /// `counter_cache_size`, in bytes; `None`: to be taken from the memory budget.
    pub counter_cache_size: Option<u64>,
    /// `*_cache_save_period` and the keys that go with it.
    pub saved_caches: SavedCaches,
    /// `memtable_cleanup_threshold`: the share of `memtable_space` at which a flush starts.
    pub memtable_cleanup_threshold: f64,
    /// `io_background_access_mode`: is it `direct`?
    pub background_disk_is_direct: bool,
    /// `io_read_access_mode`: is it `mixed`?
    pub reads_pass_page_cache: bool,
    /// `flush_compression`.
    pub flush_compression: FlushCompression,
    /// `concurrent_compactors`; `None`: to be taken from the machine.
    pub concurrent_compactors: Option<u32>,
    /// What is set of tables.
    pub tables: Tables,
    /// `compaction_throughput`, in bytes a second; `None`: no limit.
    pub compaction_throughput: Option<u64>,
    /// `auto_snapshot`.
    pub auto_snapshot: bool,
    /// `incremental_backups`.
    pub incremental_backups: bool,
    /// `auto_snapshot_ttl`; `None`: they stay.
    pub auto_snapshot_ttl: Option<Duration>,
    /// `uuid_sstable_identifiers_enabled`.
    pub uuid_sstable_identifiers: bool,
    /// `column_index_size`, in bytes; `None`: the format's own (64 KiB in `nb`).
    pub column_index_size: Option<u64>,

    /// The timeouts of requests.
    pub timeouts: Timeouts,
    /// `batch_size_warn_threshold`, in bytes.
    pub batch_size_warn: u64,
    /// `batch_size_fail_threshold`, in bytes.
    pub batch_size_fail: u64,
    /// `unlogged_batch_across_partitions_warn_threshold`.
    pub unlogged_batch_partitions_warn: u64,
    /// `tombstone_warn_threshold`.
    pub tombstone_warn: u64,
    /// `tombstone_failure_threshold`.
    pub tombstone_failure: u64,
    /// `coordinator_read_size_*` and `local_read_size_*`, where `read_thresholds_enabled` is true.
    pub read_sizes: Option<ReadSizes>,
    /// `trace_type_query_ttl`.
    pub trace_query_ttl: Duration,
    /// `prepared_statements_cache_size`, in bytes; `None`: a 256th of the memory, 10 MiB at
    /// least.
    pub prepared_statements_cache_size: Option<u64>,

    /// `shards`; `None`: one a core.
    pub shards: Option<u32>,
    /// `release_version`: the ring's.
    pub release_version: String,
    /// `memory_budget`, in bytes; see [`Self::memory`].
    pub memory_budget: Option<u64>,
    /// `commitlog_sync_interval`: at the most between syncs of a log that is synced periodically.
    pub commitlog_sync_interval: Duration,
    /// `memory_pretouch`: it is taken of the machine at the start, and kept.
    pub memory_pretouch: bool,
    /// `io_depth`.
    pub io_depth: u32,
    /// `metrics_address`.
    pub metrics_address: Host,
    /// `metrics_port`; 0 turns it off.
    pub metrics_port: u16,
    /// `admin_address` and `admin_port`, where `admin_enabled` is true.
    pub admin: Option<(Host, u16)>,
    /// `admin_encryption_options`, where they are enabled.
    pub admin_tls: Option<TlsStores>,

    pub(crate) values: Values,
    pub(crate) origins: Origins,
}

/// Values of keys by their names.
pub struct Lookup<'a> {
    index: Index,
    values: &'a Values,
}

impl Lookup<'_> {
    fn value(&self, name: &str) -> Value {
        let set = self.values.get(name).filter(|value| **value != Value::Null).cloned();
        set.or_else(|| self.index.get(name).map(Key::default_value)).unwrap_or(Value::Null)
    }

    /// A number, or a quantity in bytes or nanoseconds; 0 for null.
    pub fn number(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Int(number) => number,
            Value::Quantity(quantity) => i64::try_from(quantity.base()).unwrap_or(i64::MAX),
            _ => 0,
        }
    }

    /// A number with a fraction; 0 for null.
    pub fn share(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Double(number) => number,
            Value::Int(number) => number as f64,
            _ => 0.0,
        }
    }

    /// A word as it stands there.
    pub fn word(&self, name: &str) -> String {
        self.value(name).or_null()
    }

    /// Is a switch on?
    pub fn flag(&self, name: &str) -> bool {
        self.value(name) == Value::Bool(true)
    }

    /// The texts of a list.
    pub fn words(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Value::List(items) => items.iter().map(Value::or_null).collect(),
            _ => Vec::new(),
        }
    }
}

impl Default for Config {
    /// What a node is started with when nothing is configured.
    fn default() -> Self {
        match Self::from_yaml(SHIPPED) {
            // nobody wrote these lines
            Ok(config) => Self { origins: Origins::new(), ..config },
            // A constant text: a test reads it.
            Err(e) => unreachable!("the built-in configuration is refused: {e}"),
        }
    }
}

impl Config {
    /// Reads the text of a `cassandra.yaml`. What it leaves out has Cassandra's defaults; the
    /// directives that Cassandra insists on (commit log sync, snitch, seeds, partitioner) have
    /// those of a shipped file.
    ///
    /// # Errors
    /// One, of all that stops the start.
    pub fn from_yaml(text: &str) -> Result<Self> {
        Self::from_files(Source { name: None, text }, None)
    }

    /// Reads `cassandra.yaml` and, where it is there, `helenus.yaml`, which has Helenus' own keys.
    /// The former may have these keys too, which is worth a warning.
    ///
    /// # Errors
    /// One, of all that stops the start.
    pub fn from_files(cassandra: Source<'_>, own: Option<Source<'_>>) -> Result<Self> {
        let index = Index::new();
        let (settings, misplaced) = values::read_both(&index, cassandra, own);
        let mut config = Self::build(&index, settings)?;
        if !misplaced.is_empty() {
            config.given.warnings.push(format!(
                "cassandra.yaml has keys that are not Cassandra's, which refuses them: {}; they \
                 have effect; move them to {OWN_FILE} beside it",
                misplaced.join(", ")
            ));
        }
        Ok(config)
    }

    /// Overrides one key by `key=value`, in any of its names; lists and mappings as yaml flow.
    /// On an error nothing has changed.
    pub fn set(&mut self, text: &str) -> Result<()> {
        self.set_all([text])
    }

    /// Overrides keys in order, as [`Self::set`] does one; only what all of them come to has to
    /// make sense. Another `commitlog_sync` than before leaves the period behind that went with it.
    pub fn set_all<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) -> Result<()> {
        let index = Index::new();
        let mut set = Values::new();
        for text in texts {
            values::set(&index, &mut set, text)?;
        }
        let (mut values, mut origins) = (self.values.clone(), self.origins.clone());
        origins.retain(|name, _| !set.contains_key(name));
        if set.get(SYNC).is_some_and(|mode| Some(mode) != values.get(SYNC)) {
            values.remove(SYNC_PERIOD);
        }
        // an address takes the place of an interface, and the other way round
        for of in ["listen", "rpc"] {
            let keys = [format!("{of}_address"), format!("{of}_interface")];
            match keys.each_ref().map(|key| set.contains_key(key.as_str())) {
                [true, false] => values.remove(keys[1].as_str()),
                [false, true] => values.remove(keys[0].as_str()),
                _ => None,
            };
        }
        values.append(&mut set);
        let built = Self::build(&index, Settings { values, origins, errors: Vec::new() })?;
        let old = std::mem::replace(self, built);
        self.given.warnings = old.given.warnings;
        Ok(())
    }

    /// The memory that the node takes, in bytes: `memory_budget`, or 1 GiB.
    pub fn memory(&self) -> u64 {
        self.memory_budget.unwrap_or(MEMORY_BUDGET)
    }

    /// Did the file or an override set this key, by its name of today?
    pub fn is_set(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|value| *value != crate::key::Value::Null)
    }

    /// Looks keys up by name, for those that have no field here.
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup { index: Index::new(), values: &self.values }
    }

    /// Keys that are set to other than their default and have no effect here, by name, and why.
    pub fn idle(&self) -> Vec<(&'static str, &'static str)> {
        idle(&Index::new(), &self.values)
    }

    /// What the operator should know of the configuration, a line each: what has no effect, by
    /// reason, and the warnings.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = no_effect(self.idle());
        notes.extend(self.given.warnings.iter().cloned());
        notes
    }

    /// What has no effect of the same texts that [`Self::from_files`] takes, be they refused or
    /// not: whoever mends a file wants to know all of it at once.
    pub fn notes_of_files(cassandra: Source<'_>, own: Option<Source<'_>>) -> Vec<String> {
        let index = Index::new();
        let (settings, _) = values::read_both(&index, cassandra, own);
        no_effect(idle(&index, &settings.values))
    }
}

fn idle(index: &Index, values: &Values) -> Vec<(&'static str, &'static str)> {
    let set = values.iter().filter_map(|(name, value)| Some((index.get(name)?, value)));
    let idle = |(key, value): (&'static Key, &Value)| {
        let why = key.standing.no_effect()?;
        (*value != Value::Null && *value != key.default_value()).then_some((key.name, why))
    };
    set.filter_map(idle).collect()
}

/// A line for each reason.
fn no_effect(idle: Vec<(&'static str, &'static str)>) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, why) in idle {
        match by_reason.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, keys)) => keys.push(key),
            None => by_reason.push((why, vec![key])),
        }
    }
    let line = |(why, keys): &(&str, Vec<&str>)| match keys.as_slice() {
        [key] => format!("the setting {key} has no effect: {why}"),
        keys => format!("the settings {} have no effect: {why}", keys.join(", ")),
    };
    by_reason.iter().map(line).collect()
}
