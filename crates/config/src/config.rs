//! The typed configuration: what the keys that are served come to, defaults and derived
//! values included.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::Result;
use crate::get::Get;
use crate::key::{Key, Standing, Value};
use crate::table::Index;
use crate::values::{self, Values};

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
const MEMORY_BUDGET: u64 = 1 << 30;

const SYNC: &str = "commitlog_sync";
const SYNC_PERIOD: &str = "commitlog_sync_period";

/// A host as configured; names are for the one who starts the node to resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A literal address, or `localhost`.
    Ip(IpAddr),
    /// A name.
    Name(String),
}

/// When the commit log is synced (`commitlog_sync` and the keys that go with it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitLogSync {
    /// Every `period`, in the background; a write waits if the last sync is older than
    /// `lag_block` (default one and a half periods).
    Periodic {
        /// `commitlog_sync_period`.
        period: Duration,
        /// `periodic_commitlog_sync_lag_block`.
        lag_block: Duration,
    },
    /// Before each acknowledgement.
    Batch,
    /// As `Batch`, at most once a window.
    Group {
        /// `commitlog_sync_group_window`.
        window: Duration,
    },
}

/// `disk_failure_policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DiskFailurePolicy {
    BestEffort,
    Stop,
    Ignore,
    StopParanoid,
    Die,
}

/// `commit_failure_policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CommitFailurePolicy {
    Stop,
    StopCommit,
    Ignore,
    Die,
}

/// `commitlog_compression`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCompression {
    /// The compressor's class, with or without its package.
    pub class: String,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
}

/// Change data capture (`cdc_enabled` and the keys that go with it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cdc {
    /// `cdc_raw_directory`.
    pub directory: PathBuf,
    /// `cdc_total_space`, in bytes; `None`: 4 GiB or an eighth of the disk, if less.
    pub total_space: Option<u64>,
    /// `cdc_block_writes`.
    pub blocks_writes: bool,
    /// `cdc_free_space_check_interval`.
    pub check_interval: Duration,
}

/// Hints (`hinted_handoff_enabled` and the keys that go with it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// `hinted_handoff_enabled`.
    pub is_enabled: bool,
    /// `hinted_handoff_disabled_datacenters`.
    pub disabled_datacenters: Vec<String>,
    /// `max_hint_window`.
    pub window: Duration,
    /// `hint_window_persistent_enabled`.
    pub is_window_persistent: bool,
    /// `hinted_handoff_throttle`, in bytes a second for all nodes together, zero for no limit.
    /// `None`, where it is not set: as many as the node that gets them takes without becoming
    /// slower.
    pub throttle: Option<u64>,
    /// `hints_compression`.
    pub compression: Option<LogCompression>,
    /// `max_hints_delivery_threads`: nodes that are sent hints as fast as they can take them at a
    /// time. The others are sent theirs too, no faster than has to be.
    pub deliveries: u32,
    /// `max_hints_file_size`, in bytes.
    pub file_size: u64,
    /// `max_hints_size_per_host`, in bytes; zero for no limit.
    pub size_per_host: u64,
    /// `auto_hints_cleanup_enabled`.
    pub cleans_up: bool,
}

/// Who keeps a logged batch until it is written (`batchlog_endpoint_strategy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchlogEndpoints {
    /// By chance, of other racks.
    #[default]
    RandomRemote,
    /// By chance, one of this rack.
    PreferLocal,
    /// Those that answered fastest of late, of other racks.
    DynamicRemote,
    /// Those that answered fastest of late.
    Dynamic,
}

/// The dynamic snitch (`dynamic_snitch_*`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicSnitch {
    /// `dynamic_snitch_update_interval`.
    pub update_interval: Duration,
    /// `dynamic_snitch_reset_interval`.
    pub reset_interval: Duration,
    /// `dynamic_snitch_badness_threshold`: by what part a near node has to be slower for another
    /// one to be asked.
    pub badness_threshold: f64,
}

/// How much of what nodes send each other may wait, in bytes
/// (`internode_application_{send,receive}_queue_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternodeCapacity {
    /// `..._capacity`.
    pub connection: u64,
    /// `..._reserve_endpoint_capacity`.
    pub endpoint: u64,
    /// `..._reserve_global_capacity`.
    pub global: u64,
}

/// What is set of connections between nodes (`internode_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Internode {
    /// `internode_max_message_size`, in bytes; where it is not set, the smaller reserve of a node.
    pub max_message: u64,
    /// What waits to be sent.
    pub send: InternodeCapacity,
    /// What was received and is not done with.
    pub receive: InternodeCapacity,
    /// `internode_timeout`.
    pub believes_clocks: bool,
}

/// `internode_compression`: messages to which nodes are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InternodeCompression {
    /// To none.
    #[default]
    None,
    /// To those of other data centres.
    OtherDataCenters,
    /// To all.
    All,
}

/// `flush_compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushCompression {
    /// Chunks are framed and stored as they are.
    None,
    /// The table's compressor if it is a fast one, else LZ4.
    Fast,
    /// The table's compressor.
    Table,
}

/// How long each kind of request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// `read_request_timeout`.
    pub read: Duration,
    /// `range_request_timeout`.
    pub range: Duration,
    /// `write_request_timeout`.
    pub write: Duration,
    /// `counter_write_request_timeout`.
    pub counter_write: Duration,
    /// `cas_contention_timeout`.
    pub cas_contention: Duration,
    /// `truncate_request_timeout`.
    pub truncate: Duration,
    /// `repair_request_timeout`.
    pub repair: Duration,
    /// `internode_tcp_connect_timeout`.
    pub internode_connect: Duration,
    /// `internode_tcp_user_timeout`.
    pub internode_user: Duration,
    /// `request_timeout`, of everything else.
    pub other: Duration,
}

/// How a cache is saved for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedCache {
    /// `*_cache_save_period`; zero: it is not saved.
    pub period: Duration,
    /// `*_cache_keys_to_save`: of how many entries the names are saved; 0: of all.
    pub most: u32,
}

/// How caches are saved for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedCaches {
    /// `key_cache_*`.
    pub keys: SavedCache,
    /// `row_cache_*`.
    pub rows: SavedCache,
    /// `counter_cache_*`.
    pub counters: SavedCache,
    /// `cache_load_timeout`: how long a start takes to fill one.
    pub load_timeout: Duration,
}

/// Settings of a cache of what `system_auth` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthCache {
    /// `*_validity`: how long an entry serves; zero: nothing is kept.
    pub validity: Duration,
    /// `*_update_interval`: after how long it is read again in the background.
    pub update_interval: Duration,
    /// `*_cache_max_entries`.
    pub max_entries: usize,
}

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// `authenticator`: must clients log in (`PasswordAuthenticator`)?
    pub authenticates: bool,
    /// `authorizer`: do permissions count (`CassandraAuthorizer`)?
    pub authorizes: bool,
    /// `credentials_*`.
    pub credentials: AuthCache,
    /// `roles_*`.
    pub roles: AuthCache,
    /// `permissions_*`.
    pub permissions: AuthCache,
    /// `auth_bcrypt_gensalt_log2_rounds`.
    pub bcrypt_rounds: u32,
    /// `role_password_update_min_interval`; zero: as often as one likes.
    pub password_update_min_interval: Duration,
    /// `first_superuser` and `first_superuser_password_file`.
    pub first_superuser: Option<(String, PathBuf)>,
    /// `open_without_authentication`.
    pub may_be_open: bool,
}

/// Where keys or certificates are.
#[derive(Clone, PartialEq, Eq)]
pub enum Store {
    /// In a file.
    File(PathBuf),
    /// In the configuration itself, as PEM.
    Inline(String),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Inline(_) => f.write_str("PEM"),
        }
    }
}

/// `client_encryption_options`, where it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// `optional`: may clients do without?
    pub is_optional: bool,
    /// The rest of it.
    pub stores: TlsStores,
}

/// Which nodes connections are encrypted with (`internode_encryption`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternodeEncryption {
    /// None.
    None,
    /// Those of other data centres.
    OtherDataCenters,
    /// Those of other racks.
    OtherRacks,
    /// All.
    All,
}

/// TLS between nodes (`server_encryption_options`).
#[derive(Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// `internode_encryption`.
    pub encrypts: InternodeEncryption,
    /// `optional`: may nodes that should encrypt do without?
    pub is_optional: bool,
    /// The rest of it.
    pub stores: TlsStores,
    /// `outbound_keystore`: what other nodes are shown, where that is not `keystore`.
    pub outbound_keystore: Option<Store>,
    /// `outbound_keystore_password`.
    pub outbound_keystore_password: String,
    /// `require_endpoint_verification`: must certificates be of the address of who shows them?
    pub verifies_address: bool,
    /// `ssl_storage_port`, where `legacy_ssl_storage_port_enabled`: a port that takes nothing but
    /// TLS.
    pub tls_port: Option<u16>,
    /// `internode_plaintext_checks_address`: is who does without TLS believed to be a node at the
    /// node's own address only?
    pub checks_plain_address: bool,
}

/// Keys, and whom to trust (`*_encryption_options`).
#[derive(Clone, PartialEq, Eq)]
pub struct TlsStores {
    /// `keystore`.
    pub keystore: Store,
    /// `keystore_password`.
    pub keystore_password: String,
    /// `truststore`.
    pub truststore: Store,
    /// `truststore_password`.
    pub truststore_password: String,
    /// `require_client_auth`: must clients show a certificate?
    pub requires_client_auth: bool,
    /// `client_certificates_may_expire`: may it be one that has expired, if it is in the truststore
    /// itself?
    pub takes_expired: bool,
    /// `accepted_protocols`, or `protocol`; empty: all that are safe.
    pub protocols: Vec<String>,
    /// `cipher_suites`; empty: all that are safe.
    pub cipher_suites: Vec<String>,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ServerTls");
        shown
            .field("encrypts", &self.encrypts)
            .field("stores", &self.stores)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TlsStores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsStores").field("keystore", &self.keystore).finish_non_exhaustive()
    }
}

/// The native transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeTransport {
    /// `start_native_transport`.
    pub start: bool,
    /// `native_transport_port`.
    pub port: u16,
    /// `native_transport_port_shard_aware`, where `shard_aware` is true.
    pub shard_aware_port: Option<u16>,
    /// `native_transport_max_frame_size`, in bytes.
    pub max_frame_size: u64,
    /// `native_transport_max_message_size`, in bytes; `None`: the least of the frame size
    /// and both limits of requests in flight.
    pub max_message_size: Option<u64>,
    /// `native_transport_max_request_data_in_flight`, in bytes; `None`: a tenth of the memory.
    pub max_in_flight: Option<u64>,
    /// `native_transport_max_request_data_in_flight_per_ip`, in bytes; `None`: a fortieth.
    pub max_in_flight_per_ip: Option<u64>,
    /// `native_transport_max_concurrent_connections`; `None`: no limit.
    pub max_connections: Option<u64>,
    /// `native_transport_max_concurrent_connections_per_ip`; `None`: no limit.
    pub max_connections_per_ip: Option<u64>,
    /// `native_transport_max_requests_per_second`, where `native_transport_rate_limiting_enabled`.
    pub max_requests_per_second: Option<u32>,
    /// `native_transport_timeout`.
    pub request_timeout: Duration,
    /// `native_transport_queue_wait`.
    pub queue_wait: Duration,
    /// `native_transport_allow_older_protocols`.
    pub allow_older_protocols: bool,
    /// `native_transport_idle_timeout`; `None`: never.
    pub idle_timeout: Option<Duration>,
    /// `rpc_keepalive`.
    pub keepalive: bool,
}

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
    /// `auto_bootstrap`.
    pub auto_bootstrap: bool,
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
    /// The file that this was read from, if there is one.
    pub file: Option<PathBuf>,
    /// What was set over it, each as `key=value`.
    pub overrides: Vec<String>,
    /// `endpoint_snitch`, without its package.
    pub snitch: String,
    /// Whether nodes that were slow of late are asked last, and what of that is set. `None` where
    /// `dynamic_snitch` is off.
    pub dynamic_snitch: Option<DynamicSnitch>,
    /// `batchlog_endpoint_strategy`.
    pub batchlog_endpoints: BatchlogEndpoints,
    /// The text of `cassandra-rackdc.properties`, if it is there.
    pub rack_dc: Option<String>,
    /// The text of `cassandra-topology.properties`, if it is there.
    pub topology: Option<String>,
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
    /// The text of `commitlog_archiving.properties`, if there is one.
    pub commitlog_archiving: String,
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

    pub(crate) values: Values,
}

/// How many bytes reads may have before the client is warned, and before they fail; `None`: no
/// matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadSizes {
    /// Of a result: warning and failure.
    pub coordinator: [Option<u64>; 2],
    /// Of what is read for it: warning and failure.
    pub local: [Option<u64>; 2],
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
            Ok(config) => config,
            // A constant text: a test reads it.
            Err(e) => unreachable!("the built-in configuration is refused: {e}"),
        }
    }
}

impl Config {
    /// Reads the text of a `cassandra.yaml`. What it leaves out has Cassandra's defaults; the
    /// directives that Cassandra insists on (commit log sync, snitch, seeds, partitioner) have
    /// those of a shipped file.
    pub fn from_yaml(text: &str) -> Result<Self> {
        let index = Index::new();
        let values = values::read(&index, text)?;
        Self::build(&index, values)
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
        let mut values = self.values.clone();
        if set.get(SYNC).is_some_and(|mode| Some(mode) != values.get(SYNC)) {
            values.remove(SYNC_PERIOD);
        }
        values.append(&mut set);
        *self = Self::build(&index, values)?;
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
        let index = Index::new();
        let set = self.values.iter().filter_map(|(name, value)| Some((index.get(name)?, value)));
        let idle = |(key, value): (&'static Key, &Value)| match key.standing {
            Standing::Idle(why) if *value != key.default_value() => Some((key.name, why)),
            _ => None,
        };
        set.filter_map(idle).collect()
    }

    /// Every key with its effective value, sorted by name, as `SELECT * FROM
    /// system_views.settings` shows them: Cassandra's names of today, the old ones, and ours.
    /// `None` is that table's null.
    pub fn entries(&self) -> Vec<(String, Option<String>)> {
        crate::settings::entries(self)
    }

    fn build(index: &Index, values: Values) -> Result<Self> {
        values::check_standing(index, &values)?;
        let get = Get { index, values: &values };
        get.check_max_value_size()?;
        let data_dir = PathBuf::from(get.text("data_dir"));
        let under = |name: &str, folder: &str| {
            get.some_text(name).map_or_else(|| data_dir.join(folder), PathBuf::from)
        };
        let mut directories: Vec<_> =
            get.list("data_file_directories").into_iter().map(PathBuf::from).collect();
        if directories.is_empty() {
            directories.push(data_dir.join("data"));
        }
        let listen_address = get.host("listen_address")?;
        let rpc_address = get.host("rpc_address")?;
        let initial_tokens = get.tokens()?;
        let config = Self {
            commitlog_directory: under("commitlog_directory", "commitlog"),
            hints_directory: under("hints_directory", "hints"),
            hints: get.hints()?,
            saved_caches_directory: under("saved_caches_directory", "saved_caches"),
            memtable_cleanup_threshold: get.cleanup_threshold()?,
            data_file_directories: directories,
            cluster_name: get.text("cluster_name"),
            num_tokens: get.num_tokens(initial_tokens.len())?,
            initial_tokens,
            seeds: get.seeds()?,
            auto_bootstrap: get.bool("auto_bootstrap"),
            internode_compression: get.internode_compression(),
            phi_convict_threshold: get.phi_convict_threshold()?,
            internode: get.internode(),
            serves_index_reads: get.bool("serve_index_reads"),
            ring_delay: get.duration("ring_delay"),
            snitch: get.snitch()?,
            dynamic_snitch: get.dynamic_snitch()?,
            batchlog_endpoints: get.batchlog_endpoints(),
            file: None,
            overrides: Vec::new(),
            rack_dc: None,
            topology: None,
            auth_levels: get.auth_levels()?,
            default_keyspace_rf: get.count("default_keyspace_rf")?,
            drop_compact_storage_enabled: get.bool("drop_compact_storage_enabled"),
            dynamic_data_masking_enabled: get.bool("dynamic_data_masking_enabled"),
            broadcast_address: get
                .some_host("broadcast_address")?
                .unwrap_or(listen_address.clone()),
            broadcast_rpc_address: get.broadcast_rpc(&rpc_address)?,
            listen_address,
            rpc_address,
            storage_port: get.port("storage_port"),
            auth: get.auth()?,
            client_tls: get.client_tls()?,
            server_tls: get.server_tls()?,
            native_transport: get.native_transport()?,
            commitlog_sync: get.commitlog_sync()?,
            commitlog_segment_size: get.segment_size()?,
            commitlog_total_space: get.some_base("commitlog_total_space"),
            max_mutation_size: get.max_mutation_size()?,
            commitlog_compression: get.commitlog_compression(),
            commitlog_archiving: String::new(),
            commitlog_ignore_replay_errors: get.bool("commitlog_ignore_replay_errors"),
            cdc: get.cdc(&data_dir),
            disk_failure_policy: get.disk_failure_policy(),
            commit_failure_policy: get.commit_failure_policy(),
            memtable_space: get.memtable_space(),
            memtable_keeps_flushed: get.bool("memtable_keeps_flushed"),
            file_cache_size: get.some_base("file_cache_size"),
            key_cache_size: get.some_base("key_cache_size"),
            row_cache_size: get.base("row_cache_size"),
            counter_cache_size: get.some_base("counter_cache_size"),
            saved_caches: get.saved_caches()?,
            reads_pass_page_cache: get.text("io_read_access_mode") == "mixed",
            background_disk_is_direct: get.text("io_background_access_mode") == "direct",
            flush_compression: get.flush_compression(),
            concurrent_compactors: get.compactors()?,
            compaction_throughput: get.some_base("compaction_throughput").filter(|v| *v != 0),
            auto_snapshot: get.bool("auto_snapshot"),
            incremental_backups: get.bool("incremental_backups"),
            auto_snapshot_ttl: get.some_base("auto_snapshot_ttl").map(Duration::from_nanos),
            uuid_sstable_identifiers: get.bool("uuid_sstable_identifiers_enabled"),
            column_index_size: get.some_base("column_index_size"),
            timeouts: get.timeouts(),
            batch_size_warn: get.base("batch_size_warn_threshold"),
            batch_size_fail: get.base("batch_size_fail_threshold"),
            unlogged_batch_partitions_warn: get
                .count("unlogged_batch_across_partitions_warn_threshold")?
                .into(),
            tombstone_warn: get.count("tombstone_warn_threshold")?.into(),
            tombstone_failure: get.count("tombstone_failure_threshold")?.into(),
            read_sizes: get.read_sizes(),
            trace_query_ttl: get.duration("trace_type_query_ttl"),
            prepared_statements_cache_size: get.prepared_cache()?,
            shards: get.some_count("shards")?,
            io_depth: get.count("io_depth")?,
            release_version: get.text("release_version"),
            memory_budget: get.some_base("memory_budget"),
            commitlog_sync_interval: get.commitlog_sync_interval()?,
            memory_pretouch: get.bool("memory_pretouch"),
            metrics_address: get.host("metrics_address")?,
            metrics_port: get.port("metrics_port"),
            admin: get.admin()?,
            data_dir,
            values: Values::new(),
        };
        crate::guardrails::check(&get)?;
        get.check_directories(&config)?;
        get.check_classes()?;
        Ok(Self { values, ..config })
    }
}
