//! Settings of the storage engine, from `cassandra.yaml`.

use std::path::PathBuf;

use sstable::descriptor::Version;

use crate::commitlog::{Archiving, CdcOptions, Compression, SyncMode};

/// What the engine needs of the node's configuration. Sizes are per node; each shard takes its
/// part.
#[derive(Clone, Debug)]
pub struct Options {
    /// `data_file_directories`, each for an equal part of the ring.
    pub data_directories: Vec<PathBuf>,
    /// What is made of them when they fail or fill.
    pub disk: DiskSettings,
    /// `commitlog_directory`.
    pub commitlog_directory: PathBuf,
    /// `commitlog_sync` with its period or window.
    pub sync: SyncMode,
    /// `commitlog_segment_size`, in bytes.
    pub segment_bytes: u32,
    /// The rest of what there is to say of the commit log.
    pub log: LogSettings,
    /// `commitlog_total_space`, in bytes.
    pub commitlog_bytes: u64,
    /// `memtable_heap_space`, in bytes: writes wait while memtables hold more.
    pub memtable_bytes: u64,
    /// `memtable_keeps_flushed`: reads find what was flushed in the memory that writes do not need
    /// yet.
    pub keeps_flushed: bool,
    /// `memtable_cleanup_threshold`: the share of `memtable_bytes` at which the largest memtable is
    /// flushed.
    pub cleanup_threshold: f64,
    /// `column_index_size`, in bytes.
    pub column_index_bytes: u32,
    /// Bytes of decompressed chunks that the shards' caches hold together (`file_cache_size`).
    pub chunk_cache_bytes: u64,
    /// `key_cache_size`, in bytes.
    pub key_cache_bytes: u64,
    /// `row_cache_size`, in bytes; 0: no rows are kept.
    pub row_cache_bytes: u64,
    /// `counter_cache_size`, in bytes; 0: no counters are kept.
    pub counter_cache_bytes: u64,
    /// `concurrent_compactors`.
    pub concurrent_compactors: usize,
    /// `compaction_throughput`, in bytes per second; 0 for no limit.
    pub compaction_bytes_per_second: u64,
    /// `incremental_backups`: links to all that is flushed are kept, until somebody asks for
    /// something else.
    pub incremental_backups: bool,
    /// `flush_compression`.
    pub flush_compression: FlushCompression,
    /// `io_background_access_mode: direct`: what is flushed, compacted and the like passes the page
    /// cache by.
    pub passes_page_cache: bool,
    /// `io_read_access_mode: mixed`: a chunk passes the page cache by when it is read for the first
    /// time. What the kernel may have in it, in bytes: of so much is known whether it was read of
    /// late. `None`: `standard`.
    pub page_cache_bytes: Option<u64>,
    /// The version of the SSTables that are written: `nb`, `oa` or `da`.
    pub sstable_version: Version,
    /// `uuid_sstable_identifiers_enabled`: new files are told apart by time-UUIDs instead of
    /// numbers.
    pub uuid_identifiers: bool,
}

impl Options {
    /// `max_mutation_size`, in bytes.
    pub(crate) fn mutation_bytes_max(&self) -> usize {
        self.log.mutation_bytes_max.unwrap_or(self.segment_bytes as usize / 2)
    }
}

/// What the engine does of itself when a disk fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDiskFailure {
    /// Nothing: a start that cannot open an SSTable fails (`die`, `stop_paranoid`, `stop`).
    #[default]
    Refuse,
    /// A start goes without SSTables that it cannot open (`ignore`).
    GoWithout,
    /// The same, and directories that fail are used no more, where there are others
    /// (`best_effort`).
    BestEffort,
}

/// Settings of the disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskSettings {
    /// `disk_failure_policy`.
    pub on_failure: OnDiskFailure,
    /// `min_free_space_per_drive`, in bytes: compactions leave so much.
    pub min_free_bytes: u64,
    /// `max_space_usable_for_compactions_in_percentage`: their share of the rest.
    pub compaction_share: f64,
}

impl Default for DiskSettings {
    fn default() -> Self {
        Self { on_failure: OnDiskFailure::Refuse, min_free_bytes: 0, compaction_share: 1.0 }
    }
}

/// With what a flush compresses the files of compressed tables (`Config.FlushCompression`): it must
/// keep up with writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushCompression {
    /// Chunks are framed and stored as they are.
    None,
    /// The table's compressor if it is a fast one, else LZ4.
    #[default]
    Fast,
    /// The table's compressor.
    Table,
}

/// Settings of the commit log that have a plain default.
#[derive(Clone, Debug, Default)]
pub struct LogSettings {
    /// `commitlog_compression`.
    pub compression: Option<Compression>,
    /// `max_mutation_size`, in bytes; `None`: half a segment.
    pub mutation_bytes_max: Option<usize>,
    /// `commit_failure_policy: ignore`: after a failed write or sync the log goes on in another
    /// segment. Otherwise it takes nothing any more.
    pub goes_on_after_failure: bool,
    /// `commitlog_archiving.properties`.
    pub archiving: Archiving,
    /// `cdc_enabled` and what goes with it.
    pub cdc: Option<CdcOptions>,
    /// `commitlog_ignore_replay_errors`: what is damaged in the log, or gone from it, does not end
    /// the start.
    pub ignore_replay_errors: bool,
}
