//! Keyspaces and tables: what they count, and their files.

use serde::{Deserialize, Serialize};

/// A table by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableName {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
}

/// A keyspace and its replication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replication {
    /// The keyspace.
    pub keyspace: String,
    /// Class and options as Cassandra's `ReplicationParams` prints them for operators:
    /// `SimpleStrategy {replication_factor=1}`.
    pub replication: String,
}

/// A keyspace's part of `tablestats`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyspaceStats {
    /// The keyspace.
    pub keyspace: String,
    /// Reads of all its tables, shown or not.
    pub reads: Requests,
    /// Writes, likewise.
    pub writes: Requests,
    /// Flushes under way or waiting, likewise.
    pub pending_flushes: u64,
    /// The tables that are shown.
    pub tables: Vec<TableStats>,
}

/// Requests and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// The sum of their times.
    pub total_micros: u64,
}

impl std::ops::Add for Requests {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            total_micros: self.total_micros.saturating_add(other.total_micros),
        }
    }
}

/// For `tablestats`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableStats {
    /// Keyspace.
    pub keyspace: String,
    /// Table; of an index `table.index`.
    pub table: String,
    /// SSTables.
    pub sstables: u64,
    /// Those of older formats.
    pub old_sstables: u64,
    /// The largest.
    pub max_sstable_bytes: u64,
    /// `1 DAYS, max duration: 0 seconds`, of TimeWindowCompactionStrategy.
    pub time_window: Option<String>,
    /// Of LeveledCompactionStrategy.
    pub levels: Option<Vec<Level>>,
    /// Live SSTables.
    pub space_live_bytes: u64,
    /// With those that wait to be deleted.
    pub space_total_bytes: u64,
    /// Snapshots.
    pub space_snapshots_bytes: u64,
    /// Compressed by uncompressed size; -1 where nothing is.
    #[serde(with = "super::float")]
    pub compression_ratio: f64,
    /// Partitions, about.
    pub partitions: i64,
    /// Cells in the memtable.
    pub memtable_cells: u64,
    /// Data in the memtable.
    pub memtable_data_bytes: u64,
    /// Of the memtable outside of a heap.
    pub memtable_off_heap_bytes: u64,
    /// Flushes.
    pub memtable_switches: u64,
    /// Requests sent twice.
    pub speculative_retries: u64,
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Mean time of a recent read; `NaN` without any.
    #[serde(with = "super::float")]
    pub recent_read_micros: f64,
    /// Mean time of a recent write; `NaN` without any.
    #[serde(with = "super::float")]
    pub recent_write_micros: f64,
    /// Flushes under way or waiting.
    pub pending_flushes: u64,
    /// Of the data.
    #[serde(with = "super::float")]
    pub percent_repaired: f64,
    /// Data that is repaired.
    pub repaired_bytes: u64,
    /// Data that is not.
    pub unrepaired_bytes: u64,
    /// Data in repair.
    pub pending_repair_bytes: u64,
    /// Filters that were wrong.
    pub filter_false_positives: u64,
    /// Share of such answers.
    #[serde(with = "super::float")]
    pub filter_false_ratio: f64,
    /// Filters on disk.
    pub filter_space_bytes: u64,
    /// Filters in memory.
    pub filter_memory_bytes: u64,
    /// Summaries in memory.
    pub summary_memory_bytes: u64,
    /// Offsets of compressed chunks in memory.
    pub compression_memory_bytes: u64,
    /// Sizes of partitions.
    pub partition_bytes: PartitionBytes,
    /// Live cells.
    pub live_cells: PerRead,
    /// Tombstones.
    pub tombstones: PerRead,
    /// Share of tombstones that compaction could drop.
    #[serde(with = "super::float")]
    pub droppable_tombstone_ratio: f64,
}

/// SSTables of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// How many.
    pub sstables: u64,
    /// How many there should be at most.
    pub max_sstables: u64,
    /// All together.
    pub size_bytes: u64,
}

/// Sizes of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionBytes {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// On average.
    pub mean: u64,
}

/// What a read saw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerRead {
    /// On average; `NaN` without reads.
    #[serde(with = "super::float")]
    pub mean: f64,
    /// At most.
    pub max: u64,
}

/// Values below which a half, 75, 95, 98 and 99 percent of all lie, the least and the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// A half.
    #[serde(with = "super::float")]
    pub p50: f64,
    /// 75 percent.
    #[serde(with = "super::float")]
    pub p75: f64,
    /// 95 percent.
    #[serde(with = "super::float")]
    pub p95: f64,
    /// 98 percent.
    #[serde(with = "super::float")]
    pub p98: f64,
    /// 99 percent.
    #[serde(with = "super::float")]
    pub p99: f64,
    /// The least.
    #[serde(with = "super::float")]
    pub min: f64,
    /// The greatest.
    #[serde(with = "super::float")]
    pub max: f64,
}

impl Percentiles {
    /// How the values are called where they are listed.
    pub const NAMES: [&str; 7] = ["50%", "75%", "95%", "98%", "99%", "Min", "Max"];

    /// In the order of their names.
    pub fn values(&self) -> [f64; 7] {
        [self.p50, self.p75, self.p95, self.p98, self.p99, self.min, self.max]
    }
}

impl From<[f64; 7]> for Percentiles {
    fn from([p50, p75, p95, p98, p99, min, max]: [f64; 7]) -> Self {
        Self { p50, p75, p95, p98, p99, min, max }
    }
}

/// For `tablehistograms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableHistograms {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Of reads of partitions.
    pub read_micros: Percentiles,
    /// Of writes.
    pub write_micros: Percentiles,
    /// Of SSTables that a read of a partition took something from.
    pub sstables_per_read: Percentiles,
    /// Of partitions in SSTables; none without SSTables.
    pub partitions: Option<PartitionHistograms>,
}

/// Of partitions in SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionHistograms {
    /// Their sizes.
    pub bytes: Sizes,
    /// Their cells.
    pub cells: Sizes,
}

/// Percentiles of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// The first five are not known where a size is beyond a limit.
    pub percentiles: Percentiles,
    /// The limit, if a size is beyond it.
    pub beyond: Option<i64>,
}

/// A keyspace's part of `datapaths`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyspacePaths {
    /// The keyspace.
    pub keyspace: String,
    /// Its tables.
    pub tables: Vec<TablePaths>,
}

/// The directories of a table's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablePaths {
    /// The table.
    pub table: String,
    /// One a data directory.
    pub paths: Vec<String>,
}

/// The data file of an SSTable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Where the table is compacted by levels.
    pub level: Option<u64>,
    /// The file.
    pub path: String,
}
