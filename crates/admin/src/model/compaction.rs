//! Compactions: those that ran, run and wait.

use serde::{Deserialize, Serialize};

/// For `compactionstats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactionStats {
    /// That may run at a time.
    pub concurrent: u64,
    /// Waiting, of tables with any.
    pub pending: Vec<PendingTasks>,
    /// Completed since the start.
    pub completed: u64,
    /// Read.
    pub compacted_bytes: u64,
    /// Read, compressed.
    pub compacted_compressed_bytes: u64,
    /// Given up.
    pub aborted: u64,
    /// Made smaller for want of space.
    pub reduced: u64,
    /// SSTables left out for want of space.
    pub dropped_sstables: u64,
    /// Completed, over the last 15 minutes.
    #[serde(with = "super::float")]
    pub fifteen_minute_rate_per_second: f64,
    /// Completed, since the start.
    #[serde(with = "super::float")]
    pub mean_rate_per_second: f64,
    /// 0 is no limit.
    pub throughput_bytes_per_second: u64,
    /// Under way.
    pub running: Vec<RunningCompaction>,
}

/// Compactions of a table that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTasks {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// How many.
    pub tasks: u64,
}

/// A compaction that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCompaction {
    /// Its time-UUID.
    pub id: String,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// When it ended, since 1970.
    pub compacted_at_millis: i64,
    /// Read.
    pub in_bytes: i64,
    /// Written.
    pub out_bytes: i64,
    /// How many partitions were in so many SSTables: `{1:5, 4:1}`.
    pub rows_merged: String,
    /// `{compaction_type:Compaction}`.
    pub properties: String,
}

/// A compaction under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// How few and how many SSTables of a table are compacted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// How few.
    pub min: u32,
    /// How many.
    pub max: u32,
}

/// Whether a table is compacted by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoCompaction {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Whether.
    pub enabled: bool,
}

/// More was to be done at a time than can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcessJobs {
    /// What was asked for.
    pub jobs: i64,
    /// What can be.
    pub concurrent_compactors: u64,
}
