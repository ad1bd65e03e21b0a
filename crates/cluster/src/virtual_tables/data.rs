//! What the virtual tables show, as plain data. Counts and sizes are those of Cassandra's metrics;
//! the field says the unit where the name does not.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What a node knows of itself. `None`: not gathered, and the tables that need it are not served.
#[derive(Clone, Debug, Default)]
pub struct NodeData {
    /// Keys of `cassandra.yaml`, nested ones with dots, and their values as text; passwords as
    /// `<REDACTED>`.
    pub settings: Option<Vec<(String, Option<String>)>>,
    /// The system's properties and environment that Cassandra knows.
    pub system_properties: Option<Vec<(String, Option<String>)>>,
    /// Connections of the native protocol.
    pub clients: Option<Vec<Client>>,
    /// Caches.
    pub caches: Option<Vec<Cache>>,
    /// Stages and executors.
    pub thread_pools: Option<Vec<ThreadPool>>,
    /// Compactions and their kin that are running.
    pub sstable_tasks: Option<Vec<SsTableTask>>,
    /// Snapshots on disk.
    pub snapshots: Option<Vec<Snapshot>>,
    /// Hints that wait.
    pub pending_hints: Option<Vec<PendingHints>>,
    /// Requests that are running.
    pub queries: Option<Vec<RunningQuery>>,
    /// Numbers of each table that is stored, system tables included.
    pub tables: Option<Vec<TableStats>>,
    /// Numbers about statements.
    pub cql: Option<CqlStats>,
    /// Numbers about batches.
    pub batches: Option<BatchStats>,
    /// What gossip says.
    pub gossip: Option<Vec<Endpoint>>,
    /// Messages from peers.
    pub inbound: Option<Vec<Inbound>>,
    /// Messages to peers.
    pub outbound: Option<Vec<Outbound>>,
    /// Keys of the caches of authentication and authorization.
    pub auth_keys: Option<KeySet>,
    /// Plans of streams, those that are over too.
    pub streams: Option<Vec<streaming::PlanView>>,
    /// What the node said, oldest first.
    pub logs: Option<Vec<LogLine>>,
}

/// Something that the node said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When, in milliseconds since the epoch.
    pub at: i64,
    /// `INFO`, `WARN` or `ERROR`.
    pub level: &'static str,
    /// What said it.
    pub logger: &'static str,
    /// What it was.
    pub message: String,
}

/// A connection of a client.
#[derive(Clone, Debug)]
pub struct Client {
    /// The client's end.
    pub address: SocketAddr,
    /// Its host name, or the address again.
    pub hostname: String,
    /// The user, `anonymous` without authentication.
    pub username: Option<String>,
    /// `established`, `authenticating` or `ready`.
    pub stage: &'static str,
    /// Version of the native protocol.
    pub protocol_version: i32,
    /// Options of its STARTUP.
    pub options: Option<BTreeMap<String, String>>,
    /// The driver's name.
    pub driver_name: Option<String>,
    /// The driver's version.
    pub driver_version: Option<String>,
    /// Requests so far.
    pub requests: i64,
    /// Protocol and cipher suite, where it is encrypted.
    pub tls: Option<(String, String)>,
    /// The keyspace that it uses.
    pub keyspace: Option<String>,
}

/// A cache.
#[derive(Clone, Debug)]
pub struct Cache {
    /// `counters`, `keys`, `rows`, `chunks` or `network`.
    pub name: &'static str,
    /// Bytes that it may take.
    pub capacity: i64,
    /// Bytes that it takes.
    pub size: i64,
    /// Entries.
    pub entries: i32,
    /// Look-ups.
    pub requests: i64,
    /// Look-ups that found something.
    pub hits: i64,
    /// Look-ups a second, of late.
    pub request_rate: i64,
    /// Hits a second, of late.
    pub hit_rate: i64,
}

/// A stage or executor.
#[derive(Clone, Debug)]
pub struct ThreadPool {
    /// Its name, as Cassandra's.
    pub name: String,
    /// Tasks that run.
    pub active: i32,
    /// Tasks that may run at once.
    pub limit: i32,
    /// Tasks that wait.
    pub pending: i32,
    /// Tasks done.
    pub completed: i64,
    /// Tasks that wait to be queued.
    pub blocked: i64,
    /// Tasks that ever did.
    pub all_time_blocked: i64,
}

/// A task on SSTables.
#[derive(Clone, Debug)]
pub struct SsTableTask {
    /// Keyspace; none = several.
    pub keyspace: Option<String>,
    /// Table; none = several.
    pub table: Option<String>,
    /// Its id, a time-UUID.
    pub id: [u8; 16],
    /// `compaction`, `cleanup`, `validation` ...
    pub kind: String,
    /// Done, in `unit`s.
    pub progress: i64,
    /// To be done in all, in `unit`s.
    pub total: i64,
    /// The same, compressed.
    pub total_compressed: i64,
    /// `bytes`, `ranges` or `keys`.
    pub unit: &'static str,
    /// SSTables that it reads.
    pub sstables: i32,
    /// Where it writes to.
    pub target_directory: Option<String>,
}

/// A snapshot of a table.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its tag.
    pub name: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// When it was made, in milliseconds since the epoch, if that is known.
    pub created_at: Option<i64>,
    /// When it goes, in milliseconds since the epoch.
    pub expires_at: Option<i64>,
    /// Does it go at the next start?
    pub ephemeral: bool,
    /// Bytes of its files.
    pub size_on_disk: i64,
    /// Bytes of those that live SSTables do not share.
    pub true_size: i64,
    /// Bytes of those of them that are files of SSTables.
    pub own_tables: i64,
}

/// Hints for one node.
#[derive(Clone, Debug)]
pub struct PendingHints {
    /// The node.
    pub host_id: [u8; 16],
    /// Its address, if it is known.
    pub address: Option<SocketAddr>,
    /// Its datacenter, or `Unknown`.
    pub datacenter: String,
    /// Its rack, or `Unknown`.
    pub rack: String,
    /// `UP`, `DOWN` or `Unknown`.
    pub status: &'static str,
    /// Files of hints.
    pub files: i32,
    /// Time of the youngest file, in milliseconds since the epoch.
    pub newest: i64,
    /// Time of the oldest file, in milliseconds since the epoch.
    pub oldest: i64,
}

/// A request that is running.
#[derive(Clone, Debug)]
pub struct RunningQuery {
    /// What runs it.
    pub thread: String,
    /// Microseconds that it waited.
    pub queued: i64,
    /// Microseconds since it began.
    pub running: i64,
    /// What it is, in words.
    pub task: String,
}

/// Requests and how long they took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    /// How many.
    pub count: i64,
    /// The longest, in nanoseconds.
    pub max: f64,
    /// The median, in nanoseconds.
    pub median: f64,
    /// 99 of 100 took no longer, in nanoseconds.
    pub p99: f64,
    /// How many a second, averaged over five minutes.
    pub per_second: f64,
}

/// A distribution of numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Histogram {
    /// How many.
    pub count: i64,
    /// The largest.
    pub max: f64,
    /// The median.
    pub median: f64,
    /// 99 of 100 are no larger.
    pub p99: f64,
    /// 999 of 1000 are no larger.
    pub p999: f64,
}

/// Numbers of one table.
#[derive(Clone, Debug, Default)]
pub struct TableStats {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Reads of partitions, here.
    pub local_read: Latency,
    /// Reads of ranges, here.
    pub local_scan: Latency,
    /// Writes, here.
    pub local_write: Latency,
    /// Reads of partitions, coordinated.
    pub coordinator_read: Latency,
    /// Reads of ranges, coordinated.
    pub coordinator_scan: Latency,
    /// Writes, coordinated.
    pub coordinator_write: Latency,
    /// Tombstones that a read met.
    pub tombstones_per_read: Histogram,
    /// Live rows that a read met.
    pub rows_per_read: Histogram,
    /// Bytes on disk, files that wait for removal included.
    pub disk_usage: i64,
    /// Bytes of the largest partition.
    pub max_partition_size: i64,
    /// Bytes of the largest SSTable.
    pub max_sstable_size: i64,
    /// The longest span of timestamps in an SSTable, in microseconds.
    pub max_sstable_duration: i64,
}

/// Numbers about statements.
#[derive(Clone, Copy, Debug, Default)]
pub struct CqlStats {
    /// Prepared statements in the cache.
    pub prepared: u64,
    /// Those that were dropped from it.
    pub evicted: u64,
    /// Executions of prepared statements.
    pub prepared_executed: u64,
    /// Executions of others.
    pub regular_executed: u64,
}

/// Partitions of batches by kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchStats {
    /// Of counter batches.
    pub counter: Histogram,
    /// Of logged batches.
    pub logged: Histogram,
    /// Of unlogged batches.
    pub unlogged: Histogram,
}

/// An application state of a node.
#[derive(Clone, Debug)]
pub struct EndpointState {
    /// Its name in lower case, as the column's.
    pub name: String,
    /// Its value; of `tokens` only the version is shown.
    pub value: String,
    /// Its version.
    pub version: i32,
}

/// What gossip says of a node.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The node.
    pub address: SocketAddr,
    /// Its host name, or the address again.
    pub hostname: String,
    /// Generation of its heartbeat.
    pub generation: i32,
    /// Version of its heartbeat.
    pub heartbeat: i32,
    /// Its states.
    pub states: Vec<EndpointState>,
}

/// Messages from a peer.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// The peer.
    pub address: SocketAddr,
    /// Its datacenter.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
    /// Numbers by the name of their column.
    pub numbers: Vec<(&'static str, i64)>,
}

/// Messages to a peer.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The peer.
    pub address: SocketAddr,
    /// Its datacenter.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
    /// Numbers by the name of their column.
    pub numbers: Vec<(&'static str, i64)>,
}

/// Keys of the caches of authentication and authorization.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    /// Roles whose credentials are cached.
    pub credentials: Vec<String>,
    /// Roles whose permissions on operations are cached.
    pub jmx_permissions: Vec<String>,
    /// Roles whose datacenters are cached.
    pub network_permissions: Vec<String>,
    /// Roles and resources.
    pub permissions: Vec<(String, String)>,
    /// Roles whose roles are cached.
    pub roles: Vec<String>,
}
