//! Options of a table (`schema.TableParams`).

pub mod caching;
pub mod compaction;
pub mod compaction_class;
pub mod compression;
pub(crate) mod from_properties;
pub mod retry;
pub(crate) mod strategies;

use std::collections::BTreeMap;

use caching::CachingParams;
use compaction::CompactionParams;
use compression::CompressionParams;
use retry::SpeculativeRetry;

/// Does a read mend replicas that it finds differing?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadRepair {
    /// Yes, before it answers.
    #[default]
    Blocking,
    /// No.
    None,
}

impl ReadRepair {
    /// Reads what [`ReadRepair::name`] writes, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Blocking, Self::None].into_iter().find(|r| r.name().eq_ignore_ascii_case(text))
    }

    /// `BLOCKING` or `NONE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocking => "BLOCKING",
            Self::None => "NONE",
        }
    }
}

/// Options of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableParams {
    /// Comment for people.
    pub comment: String,
    /// Is a snapshot taken before a truncation or drop?
    pub allow_auto_snapshot: bool,
    /// Aimed rate of a Bloom filter's false positives, above 0 and up to 1.
    pub bloom_filter_fp_chance: f64,
    /// Chance that a chunk's checksum is verified when read.
    pub crc_check_chance: f64,
    /// How long tombstones are kept, in seconds.
    pub gc_grace_seconds: i32,
    /// Are new SSTables hard-linked, where the node makes incremental backups?
    pub incremental_backups: bool,
    /// TTL of writes without one, in seconds; 0 = none.
    pub default_time_to_live: i32,
    /// A memtable older than this is flushed, in milliseconds; 0 = not for its age.
    pub memtable_flush_period_in_ms: i32,
    /// Sampling of a BIG index's summary at full size: one key in so many.
    pub min_index_interval: i32,
    /// Sampling of a BIG index's summary at smallest size: one key in so many.
    pub max_index_interval: i32,
    /// When a read asks another replica.
    pub speculative_retry: SpeculativeRetry,
    /// When a write asks another (transient) replica.
    pub additional_write_policy: SpeculativeRetry,
    /// What is cached.
    pub caching: CachingParams,
    /// Compaction's strategy and options.
    pub compaction: CompactionParams,
    /// SSTable compression.
    pub compression: CompressionParams,
    /// Name of a memtable configuration of `cassandra.yaml`.
    pub memtable: String,
    /// Private to tools of users.
    pub extensions: BTreeMap<String, Vec<u8>>,
    /// Are commit-log segments kept for change data capture?
    pub cdc: bool,
    /// What a read does about differing replicas.
    pub read_repair: ReadRepair,
}

impl Default for TableParams {
    fn default() -> Self {
        Self {
            comment: String::new(),
            allow_auto_snapshot: true,
            bloom_filter_fp_chance: 0.01,
            crc_check_chance: 1.0,
            gc_grace_seconds: 864_000,
            incremental_backups: true,
            default_time_to_live: 0,
            memtable_flush_period_in_ms: 0,
            min_index_interval: 128,
            max_index_interval: 2048,
            speculative_retry: SpeculativeRetry::DEFAULT,
            additional_write_policy: SpeculativeRetry::DEFAULT,
            caching: CachingParams::default(),
            compaction: CompactionParams::default(),
            compression: CompressionParams::default(),
            memtable: "default".to_owned(),
            extensions: BTreeMap::new(),
            cdc: false,
            read_repair: ReadRepair::Blocking,
        }
    }
}
