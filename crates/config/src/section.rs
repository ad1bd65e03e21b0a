//! What a part of the configuration says, where that is more than a number or a text: a type for
//! each group of keys that go together.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// A host as configured; names are for the one who starts the node to resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A literal address, or `localhost`.
    Ip(IpAddr),
    /// A name.
    Name(String),
    /// The address of an interface.
    Interface {
        /// Its name.
        name: String,
        /// Is it the first IPv6 address rather than the first IPv4 address?
        prefers_ipv6: bool,
    },
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

/// Where a configuration came from, and what there is to say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// `cassandra.yaml`, if there is one.
    pub file: Option<PathBuf>,
    /// What was set over it, each as `key=value`.
    pub overrides: Vec<String>,
    /// What the operator should know of it, a line each.
    pub warnings: Vec<String>,
    /// Labels of metrics that the environment gives: where Kubernetes runs this node.
    pub metric_labels: Vec<(&'static str, String)>,
}

/// The texts of files that stand beside `cassandra.yaml`, of those that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// `cassandra-rackdc.properties`, or what a cloud said in its place.
    pub rack_dc: Option<String>,
    /// `cassandra-topology.properties`.
    pub topology: Option<String>,
    /// `commitlog_archiving.properties`.
    pub commitlog_archiving: String,
}

/// What is set of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// `default_compaction`: the options of those that name no compaction, `class` among them.
    pub default_compaction: Option<BTreeMap<String, String>>,
    /// `autocompaction_on_startup_enabled`: are they compacted from the start?
    pub compact_from_start: bool,
    /// `use_deterministic_table_id`: does the id of a new one follow from its name?
    pub have_ids_by_name: bool,
    /// Names of `memtable.configurations` besides `default`.
    pub memtables: Vec<String>,
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
    /// `cdc_on_repair_enabled`: does what other nodes stream go through the commit log?
    pub captures_streams: bool,
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

/// How the node becomes a part of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// `auto_bootstrap`: does a new node fetch the data of its tokens?
    pub bootstraps: bool,
    /// How a new node chooses its tokens.
    pub tokens: TokenAllocation,
    /// `join_ring`: when it starts; else at the operator's word.
    pub at_start: bool,
    /// `write_survey`: does it take writes, and serve no reads, once it has its data?
    pub surveys_writes: bool,
    /// `consistent_rangemovement`: is each range fetched from who gives it up?
    pub is_consistent: bool,
    /// Whose place it takes.
    pub replaces: Option<Replaces>,
}

/// How a new node chooses its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenAllocation {
    /// `token_allocation`.
    pub method: TokenMethod,
    /// `allocate_tokens_for_keyspace`: for its replicas in the data centre of the node.
    pub keyspace: Option<String>,
    /// `allocate_tokens_for_local_replication_factor`.
    pub local_replicas: Option<u32>,
}

/// `token_allocation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMethod {
    /// As evenly as can be.
    Even,
    /// As Cassandra does.
    Cassandra,
    /// At random.
    Random,
}

/// Whose place a node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaces {
    /// `replace_address` or `replace_address_first_boot`.
    pub address: SocketAddr,
    /// May the setting stay once the node has its data?
    pub at_first_start_only: bool,
}

/// Streams between nodes (`stream_*`, `streaming_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// `stream_entire_sstables`: are SSTables sent whole where all of them is asked for?
    pub whole_files: bool,
    /// What this node sends, in bytes a second; zero for no limit.
    pub limits: StreamLimits,
    /// `streaming_keep_alive_period`; zero for never.
    pub keep_alive: Duration,
    /// `internode_streaming_tcp_user_timeout`.
    pub tcp_user: Duration,
    /// `skip_stream_disk_space_check`.
    pub skips_space_check: bool,
    /// `streaming_stats_enabled`: are plans remembered?
    pub remembers: bool,
    /// `streaming_state_expires`: for how long.
    pub remembered_for: Duration,
    /// `streaming_state_size`: in how much memory.
    pub remembered_bytes: u64,
    /// `stream_transfer_task_timeout`.
    pub transfer_timeout: Duration,
    /// `streaming_connections_per_host`; at least one.
    pub connections: usize,
    /// `streaming_slow_events_log_timeout`.
    pub slow_event: Duration,
}

/// Repair (`repair_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// `repair_session_space`: bytes of Merkle trees that a validation may build.
    pub session_space: u64,
    /// `repair_session_max_tree_depth`.
    pub max_tree_depth: u8,
    /// `auto_optimise_inc_repair_streams`.
    pub optimises_incremental: bool,
    /// `auto_optimise_full_repair_streams`.
    pub optimises_full: bool,
    /// `auto_optimise_preview_repair_streams`.
    pub optimises_preview: bool,
    /// `validation_preview_purge_head_start`: a preview of what is repaired takes the present to be
    /// so much later.
    pub preview_head_start: Duration,
}

/// How fast a node sends files, in bytes a second; zero for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// `stream_throughput_outbound`: parts of SSTables, to all nodes together.
    pub parts: u64,
    /// `inter_dc_stream_throughput_outbound`: the same to nodes of other data centres.
    pub far_parts: u64,
    /// `entire_sstable_stream_throughput_outbound`: whole SSTables, to all nodes together.
    pub whole: u64,
    /// `entire_sstable_inter_dc_stream_throughput_outbound`: the same to nodes of other data
    /// centres.
    pub far_whole: u64,
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

/// How many bytes reads may have before the client is warned, and before they fail; `None`: no
/// matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadSizes {
    /// Of a result: warning and failure.
    pub coordinator: [Option<u64>; 2],
    /// Of what is read for it: warning and failure.
    pub local: [Option<u64>; 2],
}
