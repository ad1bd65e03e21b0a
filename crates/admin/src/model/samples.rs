//! Samples of partitions.

use serde::{Deserialize, Serialize};

/// What is sampled (`Sampler.SamplerType`), in Cassandra's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampler {
    /// Which partitions are read most often.
    Reads,
    /// Which partitions are written to most often.
    Writes,
    /// Which reads take longest.
    LocalReadTime,
    /// Of which partitions reads give most rows.
    ReadRowCount,
    /// In which partitions reads meet most tombstones.
    ReadTombstoneCount,
    /// Which partitions are read from most SSTables.
    ReadSstableCount,
    /// To which partitions the largest mutations go.
    WriteSize,
    /// At which partitions conditional requests are in each other's way most often.
    CasContentions,
}

impl Sampler {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Reads,
        Self::Writes,
        Self::LocalReadTime,
        Self::ReadRowCount,
        Self::ReadTombstoneCount,
        Self::ReadSstableCount,
        Self::WriteSize,
        Self::CasContentions,
    ];

    /// Cassandra's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reads => "READS",
            Self::Writes => "WRITES",
            Self::LocalReadTime => "LOCAL_READ_TIME",
            Self::ReadRowCount => "READ_ROW_COUNT",
            Self::ReadTombstoneCount => "READ_TOMBSTONE_COUNT",
            Self::ReadSstableCount => "READ_SSTABLE_COUNT",
            Self::WriteSize => "WRITE_SIZE",
            Self::CasContentions => "CAS_CONTENTIONS",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sampler| sampler.name() == name)
    }
}

/// One of the most frequent, or largest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// `keyspace.table`
    pub table: String,
    /// A partition's key, or the text of a read.
    pub value: String,
    /// How often it came, or how large it was.
    pub count: u64,
    /// So much of the count may be others'.
    pub error: u64,
}

/// What a sampler found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// Which one.
    pub sampler: Sampler,
    /// The most frequent or largest first.
    pub samples: Vec<Sample>,
}

/// What is to be sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleOrder {
    /// Where.
    pub of: SampledTables,
    /// The most counters of a sampler, a table and shard.
    pub capacity: u32,
    /// How many to show.
    pub top: u32,
    /// For how long.
    pub duration_millis: u32,
    /// By what.
    pub samplers: Vec<Sampler>,
}

/// Tables that are sampled; nothing stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SampledTables {
    /// Of this keyspace.
    pub keyspace: Option<String>,
    /// This one.
    pub table: Option<String>,
}
