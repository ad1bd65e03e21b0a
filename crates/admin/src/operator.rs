//! What a node must be able to tell and do for its operator: one method a fact, typed; how it is
//! printed is this crate's matter.

use std::net::SocketAddr;
use std::time::Duration;

use crate::network::{NetStats, PoolStats, ProxyHistograms, RingRanges};
use crate::timeout::Timeout;

/// Why a verb was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// The operator asked for what cannot be: exit code 1. Cassandra's `IllegalArgumentException`
    /// and `IllegalStateException` reach nodetool so.
    #[error("{0}")]
    BadUse(String),
    /// It failed: exit code 2.
    #[error("{0}")]
    Failed(String),
}

/// An answer of an [`Operator`].
pub type Answer<T> = Result<T, OperatorError>;

/// The node, as its operator meets it; implemented where the node is composed. Called on one shard.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait Operator: 'static {
    /// The release of Cassandra whose behaviour is served, and this build's commit.
    async fn release(&self) -> Answer<Release>;
    /// Facts of this node.
    async fn node(&self) -> Answer<NodeInfo>;
    /// All keyspaces but virtual ones, in the order to show them in.
    async fn keyspaces(&self) -> Answer<Vec<Replication>>;
    /// The cluster's name and schema versions.
    async fn cluster(&self) -> Answer<Cluster>;
    /// The nodes and what each owns under the replication of `keyspace` (of any, if there is none).
    /// Unknown keyspaces are [`OperatorError::BadUse`] with Cassandra's text (`The keyspace x, does not
    /// exist`).
    async fn ring(&self, keyspace: Option<&str>) -> Answer<Ring>;
    /// What gossip says of all nodes, this one first.
    async fn gossip(&self) -> Answer<Vec<Endpoint>>;
    /// The seeds but this node.
    async fn seeds(&self) -> Answer<Vec<SocketAddr>>;
    /// The nodes that have a partition, in the order of the replication: its key as text.
    async fn endpoints(&self, table: &TableName, key: &str) -> Answer<Vec<SocketAddr>>;
    /// The ranges of a keyspace and who has them.
    async fn ranges(&self, keyspace: &str) -> Answer<RingRanges>;
    /// Takes part in gossip, or does not any more. After a drain: [`OperatorError::BadUse`].
    async fn set_gossip(&self, takes_part: bool) -> Answer<()>;
    /// Reads the seeds from the configuration again: those that are not this node; none if it cannot be read.
    async fn reload_seeds(&self) -> Answer<Option<Vec<SocketAddr>>>;
    /// What is under way, and what came too late.
    async fn pool_stats(&self) -> Answer<PoolStats>;
    /// Messages to other nodes, and repairs of reads.
    async fn net_stats(&self) -> Answer<NetStats>;
    /// Latencies of requests as clients see them.
    async fn proxy_histograms(&self) -> Answer<ProxyHistograms>;
    /// Takes a node that is down out of the ring.
    async fn assassinate(&self, address: &str) -> Answer<()>;
    /// Which hints are kept.
    async fn handoff(&self) -> Answer<Handoff>;
    /// Changes that until the next start.
    async fn set_handoff(&self, change: HandoffChange) -> Answer<()>;
    /// Stops to deliver hints, or goes on with it.
    async fn pause_handoff(&self, is_paused: bool) -> Answer<()>;
    /// What is kept for which node.
    async fn pending_hints(&self) -> Answer<Vec<PendingHints>>;
    /// Throws hints away: all, or those for the node of an address.
    async fn truncate_hints(&self, address: Option<&str>) -> Answer<()>;
    /// Counters of all tables but virtual ones, those of a keyspace together.
    async fn table_stats(&self) -> Answer<Vec<TableStats>>;
    /// What compaction did and does.
    async fn compaction_stats(&self) -> Answer<CompactionStats>;

    /// Flushes tables of a keyspace that exists: all if `tables` is empty. A table that is none is
    /// [`OperatorError::Failed`] (`Unknown keyspace/cf pair (ks.t)`).
    async fn flush(&self, keyspace: &str, tables: &[String]) -> Answer<()>;
    /// Compacts tables, chosen as in [`Operator::flush`], as far as their strategy will; with `split` into several files
    /// where it would make one.
    async fn compact(&self, keyspace: &str, tables: &[String], split: bool) -> Answer<()>;
    /// Compacts the SSTables of these data files; those that are not live are left out.
    async fn compact_files(&self, files: &[String]) -> Answer<()>;
    /// Rewrites the SSTables of tables, chosen as in [`Operator::flush`], in the version that the node writes: those of
    /// others, or `all`.
    async fn upgrade(&self, keyspace: &str, tables: &[String], all: bool) -> Answer<()>;
    /// Rewrites the SSTables of tables, chosen as in [`Operator::flush`], without what cannot be read.
    async fn scrub(&self, keyspace: &str, tables: &[String], how: Scrub) -> Answer<()>;
    /// Looks for damage in the SSTables of tables, chosen as in [`Operator::flush`]. Damage is
    /// [`OperatorError::Failed`].
    async fn verify(&self, keyspace: &str, tables: &[String], how: Verify) -> Answer<()>;
    /// Drops what is deleted, or with `cells` written over, in other SSTables, of tables chosen as in
    /// [`Operator::flush`].
    async fn garbage_collect(&self, keyspace: &str, tables: &[String], cells: bool) -> Answer<()>;
    /// Drops what this node does not own of tables, chosen as in [`Operator::flush`].
    async fn cleanup(&self, keyspace: &str, tables: &[String]) -> Answer<()>;
    /// Moves the SSTables of tables, chosen as in [`Operator::flush`], to the directories where they belong.
    async fn relocate(&self, keyspace: &str, tables: &[String]) -> Answer<()>;
    /// Takes over SSTables; the directories whose were refused. A directory that is not there is
    /// [`OperatorError::Failed`] (`Directory x does not exist`); so is an unknown table.
    async fn import(&self, import: NewImport) -> Answer<Vec<String>>;
    /// Takes over what was put into the directories of a table. One that is none is [`OperatorError::BadUse`].
    async fn refresh(&self, table: &TableName) -> Answer<()>;
    /// How few and how many SSTables of a table are compacted at once; none for a table that is none.
    async fn thresholds(&self, table: &TableName) -> Answer<Option<(u32, u32)>>;
    /// Sets that, until the next start; false for a table that is none.
    async fn set_thresholds(&self, table: &TableName, thresholds: (u32, u32)) -> Answer<bool>;
    /// Percentiles of a table, or of all tables but virtual ones.
    async fn histograms(&self, table: Option<&TableName>) -> Answer<Vec<TableHistograms>>;
    /// The I/O of all shards in the last windows, so many.
    async fn io_stats(&self, windows: u64) -> Answer<IoStats>;
    /// The compactions of the last week, the latest first.
    async fn compaction_history(&self) -> Answer<Vec<PastCompaction>>;
    /// Stops compactions under way: those of a kind, or the one of an id.
    async fn stop_compactions(&self, which: StopWhich) -> Answer<()>;
    /// `compaction_throughput`, in bytes a second; 0 is no limit.
    async fn compaction_throughput(&self) -> Answer<u64>;
    /// Sets it until the next start.
    async fn set_compaction_throughput(&self, bytes_per_second: u64) -> Answer<()>;
    /// Empties a cache.
    async fn invalidate_cache(&self, cache: CacheName) -> Answer<()>;
    /// Sets what caches may hold, in bytes, until the next start.
    async fn set_cache_capacity(&self, cache: CacheName, bytes: u64) -> Answer<()>;
    /// Sets of how many entries of a cache the names are saved, 0 for all, until the next start.
    async fn set_cache_keys_to_save(&self, cache: CacheName, most: u32) -> Answer<()>;
    /// `concurrent_compactors`.
    async fn concurrent_compactors(&self) -> Answer<u64>;
    /// Sets it until the next start.
    async fn set_concurrent_compactors(&self, count: u64) -> Answer<()>;
    /// Lets tables, chosen as in [`Operator::flush`], be compacted by themselves, or not.
    async fn set_autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
        enabled: bool,
    ) -> Answer<()>;
    /// Which tables, chosen as in [`Operator::flush`], are compacted by themselves.
    async fn autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
    ) -> Answer<Vec<(String, bool)>>;
    /// The directories of a table's files; of all tables of a keyspace, if there is no name.
    async fn data_paths(
        &self,
        keyspace: &str,
        table: Option<&str>,
    ) -> Answer<Vec<(String, Vec<String>)>>;
    /// The data files of a table that may hold a partition, with their levels where it is compacted by levels. The key
    /// is text, or hexadecimal digits of its bytes.
    async fn sstables_of(
        &self,
        table: &TableName,
        key: &str,
        hex: bool,
    ) -> Answer<Vec<(Option<usize>, String)>>;
    /// Takes a snapshot. One of that name that is there is [`OperatorError::Failed`] (`Snapshot x already exists.`).
    async fn snapshot(&self, snapshot: NewSnapshot) -> Answer<()>;
    /// All snapshots of all tables, by name.
    async fn snapshots(&self) -> Answer<Vec<SnapshotDetails>>;
    /// Removes the snapshots of keyspaces (of all, if there are none) that have the name, if there is one, and were
    /// made before a time in milliseconds since the epoch, if there is one.
    async fn clear_snapshots(
        &self,
        keyspaces: &[String],
        name: Option<&str>,
        before: Option<i64>,
    ) -> Answer<()>;
    /// Whether links to what is flushed are kept.
    async fn backups(&self) -> Answer<bool>;
    /// Keeps links to what is flushed, or no longer, until the next start.
    async fn set_backups(&self, kept: bool) -> Answer<()>;
    /// Stops accepting writes and flushes everything; again: nothing.
    async fn drain(&self) -> Answer<()>;
    /// Drains, then gives the order to end.
    async fn stop_daemon(&self) -> Answer<()>;

    /// Whether clients are served.
    async fn native_transport(&self) -> Answer<bool>;
    /// Serves clients again. After a drain: [`OperatorError::BadUse`] (`Unable to start native transport
    /// because the node was drained.`).
    async fn start_native_transport(&self) -> Answer<()>;
    /// Stops serving clients; with `force` without waiting for requests that run.
    async fn stop_native_transport(&self, force: bool) -> Answer<()>;

    /// A timeout, in milliseconds.
    async fn timeout(&self, timeout: Timeout) -> Answer<u64>;
    /// Sets a timeout until the next start.
    async fn set_timeout(&self, timeout: Timeout, millis: u64) -> Answer<()>;

    /// Every key of the configuration with its value as it stands.
    async fn settings(&self) -> Answer<Vec<(String, Option<String>)>>;
    /// Sets guardrails until the next start, each as `key=value`: all of them or, where that makes no sense
    /// ([`OperatorError::BadUse`] with Cassandra's text), none.
    async fn set_guardrails(&self, settings: &[String]) -> Answer<()>;

    /// Estimates the sizes of all tables now.
    async fn refresh_size_estimates(&self) -> Answer<()>;

    /// Which share of requests is traced though nobody asked for it.
    async fn trace_probability(&self) -> Answer<f64>;
    /// Sets that share until the next start.
    async fn set_trace_probability(&self, share: f64) -> Answer<()>;
}

/// A table by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
}

/// Values below which a half, 75, 95, 98 and 99 percent of all lie, the least and the greatest.
pub type Percentiles = [f64; 7];

/// For `tablehistograms`.
#[derive(Clone, Debug, PartialEq)]
pub struct TableHistograms {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Of reads of partitions, in microseconds.
    pub read_latency: Percentiles,
    /// Of writes, in microseconds.
    pub write_latency: Percentiles,
    /// Of SSTables that a read of a partition took something from.
    pub sstables: Percentiles,
    /// Bytes and cells of partitions in SSTables; none without SSTables.
    pub partitions: Option<(Sizes, Sizes)>,
}

/// Percentiles of sizes; the first five are not known where a size is beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// They are known.
    Known(Percentiles),
    /// A size is beyond this limit.
    Beyond(i64, Percentiles),
}

/// For `iostats`.
#[derive(Clone, Debug, PartialEq)]
pub struct IoStats {
    /// What was read and written, of all shards.
    pub pattern: env::IoPattern,
    /// When the first window began, in milliseconds since the epoch.
    pub starts_at_millis: i64,
    /// Operations that all shards may have at the device.
    pub depth: u64,
}

/// How to scrub SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrub {
    /// A snapshot is taken first.
    pub snapshot: bool,
    /// What cannot be read is left out of counters too.
    pub skip_corrupted: bool,
    /// Values must be some of their types.
    pub validate: bool,
}

/// How to verify SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verify {
    /// All rows are read.
    pub extended: bool,
    /// They are of the version that is written.
    pub check_version: bool,
    /// What is damaged does not count as repaired any more.
    pub mutate_repaired: bool,
    /// No data is read.
    pub quick: bool,
    /// Keys must be of ranges that this node has.
    pub check_tokens: bool,
}

/// What to take a snapshot of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// All tables of these keyspaces; of all, if there are none.
    Keyspaces(Vec<String>),
    /// These tables.
    Tables(Vec<TableName>),
}

/// A snapshot to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSnapshot {
    /// Of what.
    pub of: Snapshots,
    /// Its name.
    pub name: String,
    /// With what is in memtables.
    pub flush: bool,
    /// Seconds until it goes by itself.
    pub ttl: Option<u64>,
}

/// A snapshot of a table. Sizes are bytes, times milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDetails {
    /// Its name.
    pub name: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Files that live SSTables do not share.
    pub true_size: u64,
    /// Files of SSTables among them.
    pub own_tables: u64,
    /// All its files.
    pub size_on_disk: u64,
    /// When it was made, if that is known.
    pub created_at: Option<i64>,
    /// When it goes by itself.
    pub expires_at: Option<i64>,
    /// A repair's.
    pub ephemeral: bool,
}

/// For `version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Such as `5.0.9`.
    pub version: String,
    /// The commit this was built from.
    pub git_sha: String,
}

/// For `info`. Sizes are bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeInfo {
    /// The host ID.
    pub host_id: String,
    /// Whether gossip runs.
    pub gossip_active: bool,
    /// Whether clients are served.
    pub native_transport_active: bool,
    /// Live SSTables on disk.
    pub load: u64,
    /// The same before compression.
    pub uncompressed_load: u64,
    /// Of gossip.
    pub generation: i64,
    /// Since the start.
    pub uptime: Duration,
    /// Memory in use, and its budget: where Cassandra has its heap.
    pub memory: (u64, u64),
    /// Memory of memtables, filters, summaries and compression offsets.
    pub off_heap: u64,
    /// Data center.
    pub data_center: String,
    /// Rack.
    pub rack: String,
    /// Errors that nobody caught.
    pub exceptions: u64,
    /// Of SSTable positions.
    pub key_cache: Cache,
    /// Of rows.
    pub row_cache: Cache,
    /// Of counters.
    pub counter_cache: Cache,
    /// Of blocks of SSTables, if there is one.
    pub chunk_cache: Option<ChunkCache>,
    /// Of network buffers, if there is one.
    pub network_cache: Option<NetworkCache>,
    /// Share of the data that is repaired, in percent.
    pub percent_repaired: f64,
    /// The tokens; `None` while the node has not joined.
    pub tokens: Option<Vec<String>>,
    /// Such as `COMPLETED`.
    pub bootstrap_state: String,
    /// Whether joining failed.
    pub bootstrap_failed: bool,
    /// Whether the node is leaving.
    pub decommissioning: bool,
    /// Whether leaving failed.
    pub decommission_failed: bool,
}

/// Which of the caches that Cassandra saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheName {
    /// Of places of keys in SSTables.
    Keys,
    /// Of the first rows of partitions.
    Rows,
    /// Of counters.
    Counters,
}

/// A cache that Cassandra saves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cache {
    /// Entries.
    pub entries: u64,
    /// Bytes in use.
    pub size: u64,
    /// Bytes at most.
    pub capacity: u64,
    /// Requests answered.
    pub hits: u64,
    /// Requests.
    pub requests: u64,
    /// Between two savings.
    pub save_period: Duration,
}

/// The cache of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChunkCache {
    /// Entries.
    pub entries: u64,
    /// Bytes in use.
    pub size: u64,
    /// Bytes at most.
    pub capacity: u64,
    /// Requests not answered.
    pub misses: u64,
    /// Requests.
    pub requests: u64,
    /// Mean time of a miss, in microseconds.
    pub miss_latency: f64,
}

/// The cache of network buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCache {
    /// Bytes in use.
    pub size: u64,
    /// Bytes in use beyond the capacity.
    pub overflow: u64,
    /// Bytes at most.
    pub capacity: u64,
}

/// A keyspace and its replication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// The keyspace.
    pub keyspace: String,
    /// Class and options as Cassandra's `ReplicationParams` prints them for operators: `SimpleStrategy
    /// {replication_factor=1}`.
    pub replication: String,
}

/// For `describecluster`, beside [`Ring`] and keyspaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Class of the snitch.
    pub snitch: String,
    /// Whether slow replicas are avoided.
    pub dynamic_snitch: bool,
    /// Class of the partitioner.
    pub partitioner: String,
    /// Schema versions, each with the nodes that have it; unreachable ones under `UNREACHABLE`.
    pub schema_versions: Vec<(String, Vec<SocketAddr>)>,
    /// Releases, each with the nodes that run it.
    pub releases: Vec<(String, Vec<SocketAddr>)>,
}

/// What gossip says of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// The node.
    pub address: SocketAddr,
    /// Generation and version of its heartbeat.
    pub heartbeat: (i32, i32),
    /// Its values by name, each with its version; of tokens the version alone is shown.
    pub values: Vec<(&'static str, i32, String)>,
    /// How suspicious its silence is; none of this node, and of one that was never heard of.
    pub phi: Option<f64>,
}

/// The nodes of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// In the order to show them in, whatever the data center.
    pub nodes: Vec<RingNode>,
    /// Why [`RingNode::owns`] is not that of the replication, if it is not: `Non-system keyspaces don't
    /// have the same replication settings, effective ownership information is meaningless`.
    pub note: Option<String>,
}

/// Whether a node is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It answers.
    Up,
    /// It does not.
    Down,
    /// Nobody knows.
    Unknown,
}

/// Where a node stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It serves.
    Normal,
    /// It is leaving.
    Leaving,
    /// It is joining.
    Joining,
    /// It is changing its token.
    Moving,
}

/// A node of the ring.
#[derive(Clone, Debug, PartialEq)]
pub struct RingNode {
    /// Its broadcast address, with the storage port.
    pub address: SocketAddr,
    /// Whether it is up.
    pub liveness: Liveness,
    /// Where it stands.
    pub life: Life,
    /// Bytes of live data, if known.
    pub load: Option<u64>,
    /// Its tokens.
    pub tokens: Vec<String>,
    /// Share of the data it has (0 to 1, summed over data centers).
    pub owns: Option<f64>,
    /// Host ID.
    pub host_id: String,
    /// Data center.
    pub data_center: String,
    /// Rack.
    pub rack: String,
}

/// For `tablestats`. Sizes are bytes, latencies microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStats {
    /// Keyspace.
    pub keyspace: String,
    /// Table; of an index `table.index`.
    pub table: String,
    /// SSTables.
    pub sstables: u64,
    /// Those of older formats.
    pub old_sstables: u64,
    /// Size of the largest.
    pub max_sstable_size: u64,
    /// `1 DAYS, max duration: 0 seconds`, of TimeWindowCompactionStrategy.
    pub time_window: Option<String>,
    /// Of LeveledCompactionStrategy: SSTables of each level (`12/10` beyond its maximum), and bytes.
    pub levels: Option<Vec<(String, u64)>>,
    /// Live SSTables.
    pub space_live: u64,
    /// With those that wait to be deleted.
    pub space_total: u64,
    /// Snapshots.
    pub space_snapshots: u64,
    /// Compressed by uncompressed size; -1 where nothing is.
    pub compression_ratio: f64,
    /// Partitions, about.
    pub partitions: i64,
    /// Cells in the memtable.
    pub memtable_cells: u64,
    /// Bytes of data in the memtable.
    pub memtable_size: u64,
    /// Bytes of the memtable outside of a heap.
    pub memtable_off_heap: u64,
    /// Flushes.
    pub memtable_switches: u64,
    /// Requests sent twice.
    pub speculative_retries: u64,
    /// Reads, and the sum of their times.
    pub reads: (u64, u64),
    /// Writes, and the sum of their times.
    pub writes: (u64, u64),
    /// Mean time of a recent read; NaN without any.
    pub recent_read_latency: f64,
    /// Mean time of a recent write; NaN without any.
    pub recent_write_latency: f64,
    /// Flushes under way or waiting.
    pub pending_flushes: u64,
    /// Percent of the data that is repaired.
    pub percent_repaired: f64,
    /// Repaired data.
    pub bytes_repaired: u64,
    /// Data not repaired.
    pub bytes_unrepaired: u64,
    /// Data in repair.
    pub bytes_pending_repair: u64,
    /// Filters that were wrong.
    pub filter_false_positives: u64,
    /// Share of such answers.
    pub filter_false_ratio: f64,
    /// Filters on disk.
    pub filter_space: u64,
    /// Filters in memory.
    pub filter_memory: u64,
    /// Summaries in memory.
    pub summary_memory: u64,
    /// Offsets of compressed chunks in memory.
    pub compression_memory: u64,
    /// Smallest, largest and mean partition.
    pub partition_sizes: (u64, u64, u64),
    /// Live cells a read saw: mean and maximum.
    pub live_cells: (f64, u64),
    /// Tombstones a read saw: mean and maximum.
    pub tombstones: (f64, u64),
    /// Share of tombstones that compaction could drop.
    pub droppable_tombstones: f64,
}

/// For `compactionstats`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionStats {
    /// That may run at a time.
    pub concurrent: u64,
    /// Waiting, by keyspace and table: those with any.
    pub pending: Vec<(String, String, u64)>,
    /// Completed since the start.
    pub completed: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes read, compressed.
    pub compressed_bytes: u64,
    /// Given up.
    pub aborted: u64,
    /// Made smaller for want of space.
    pub reduced: u64,
    /// SSTables left out for want of space.
    pub dropped_sstables: u64,
    /// Completed a second, over the last 15 minutes.
    pub fifteen_minute_rate: f64,
    /// Completed a second, since the start.
    pub mean_rate: f64,
    /// Bytes a second; 0 is no limit.
    pub throughput: u64,
    /// Under way.
    pub running: Vec<RunningCompaction>,
}

/// SSTables to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImport {
    /// Into which table.
    pub of: TableName,
    /// Where they are.
    pub directories: Vec<String>,
    /// They keep their levels.
    pub keep_level: bool,
    /// They stay where they are, too.
    pub copy: bool,
    /// All of each is read before.
    pub verify: bool,
}

/// Which compactions to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopWhich {
    /// Those of a kind, as [`RunningCompaction::kind`] names it; all, if there is none.
    Kind(Option<String>),
    /// The one of an id.
    Id(String),
}

/// A compaction that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastCompaction {
    /// Its time-UUID.
    pub id: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// When it ended, in milliseconds since the epoch.
    pub compacted_at: i64,
    /// Bytes read.
    pub bytes_in: i64,
    /// Bytes written.
    pub bytes_out: i64,
    /// How many partitions were in so many SSTables: `{1:5, 4:1}`.
    pub rows_merged: String,
    /// `{compaction_type:Compaction}`.
    pub properties: String,
}

/// A compaction under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningCompaction {
    /// Its time-UUID.
    pub id: String,
    /// `Compaction`, `Validation`, ...
    pub kind: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Done, in `unit`.
    pub completed: u64,
    /// To do in all, in `unit`.
    pub total: u64,
    /// To do in all, compressed, if known.
    pub total_compressed: Option<u64>,
    /// `bytes`, `keys`, `ranges`, ...
    pub unit: String,
    /// SSTables it reads.
    pub sstables: u64,
    /// Directory it writes to.
    pub directory: String,
}

/// Which hints are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handoff {
    /// Are any?
    pub is_enabled: bool,
    /// Data centers for whose nodes none are.
    pub disabled_datacenters: Vec<String>,
    /// For how long a node may be down, in milliseconds.
    pub window_millis: u64,
}

/// A change of hinted handoff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoffChange {
    /// Hints are kept, or not.
    Enabled(bool),
    /// They are kept for the nodes of a data center, or not.
    Center(String, bool),
    /// They are sent with so many bytes a second; 0 is no limit.
    Throttle(u64),
    /// They are kept for a node that is down for so long, in milliseconds.
    Window(u64),
}

/// Hints for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingHints {
    /// The node's id.
    pub host_id: String,
    /// Where it is, if it is in the ring.
    pub node: Option<HintedNode>,
    /// Files of hints.
    pub files: u64,
    /// When the newest was begun, in milliseconds since 1970.
    pub newest: i64,
    /// When the oldest was.
    pub oldest: i64,
}

/// A node for which hints are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintedNode {
    /// Its address.
    pub address: SocketAddr,
    /// Its data center.
    pub datacenter: String,
    /// Its rack.
    pub rack: String,
    /// Is it up?
    pub is_up: bool,
}
