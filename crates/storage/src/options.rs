//! Settings of the storage engine, from `cassandra.yaml`.

use std::path::PathBuf;

use sstable::compression_params::CompressionParams;
use sstable::compressor::Compressor;

use crate::commitlog::SyncMode;

/// What the engine needs of the node's configuration. Sizes are per node; each shard takes its part.
#[derive(Clone, Debug)]
pub struct Options {
    /// `data_file_directories`: the first takes new files for now.
    pub data_directories: Vec<PathBuf>,
    /// `commitlog_directory`.
    pub commitlog_directory: PathBuf,
    /// `commitlog_sync` with its period or window.
    pub sync: SyncMode,
    /// `commitlog_segment_size`, in bytes.
    pub segment_bytes: u32,
    /// `commitlog_total_space`, in bytes.
    pub commitlog_bytes: u64,
    /// `memtable_heap_space`, in bytes: writes wait while memtables hold more.
    pub memtable_bytes: u64,
    /// `memtable_cleanup_threshold`: the share of `memtable_bytes` at which the largest memtable is flushed.
    pub cleanup_threshold: f64,
    /// `column_index_size`, in bytes.
    pub column_index_bytes: u32,
    /// `flush_compression`.
    pub flush_compression: FlushCompression,
    /// Bytes of decompressed chunks that the shards' caches hold together (`file_cache_size`).
    pub chunk_cache_bytes: u64,
    /// `concurrent_compactors`.
    pub concurrent_compactors: usize,
    /// `compaction_throughput`, in bytes per second; 0 for no limit.
    pub compaction_bytes_per_second: u64,
    /// `incremental_backups`: links to all that is flushed are kept, until somebody asks for something else.
    pub incremental_backups: bool,
}

/// How flushes are compressed (`flush_compression`): writes may wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushCompression {
    /// Chunks are framed and stored as they are.
    None,
    /// By the table's compressor if it is a fast one, else by LZ4.
    Fast,
    /// By the table's compressor.
    Table,
}

impl FlushCompression {
    /// What becomes of a table's compression; a table that has none stays without.
    pub(crate) fn of(self, table: Option<CompressionParams>) -> Option<CompressionParams> {
        let table = table?;
        Some(match self {
            Self::None => {
                CompressionParams { compressor: Compressor::Noop, ..CompressionParams::default() }
            }
            Self::Fast if table.compressor.is_slow() => CompressionParams::default(),
            Self::Fast | Self::Table => table,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_does_not_wait_for_a_slow_compressor() {
        let of = |compressor| {
            Some(CompressionParams { compressor, chunk_length: 4 << 10, ..Default::default() })
        };
        let fast = |compressor| FlushCompression::Fast.of(of(compressor));
        assert_eq!(fast(Compressor::Deflate), Some(CompressionParams::default()));
        assert_eq!(fast(Compressor::Snappy), of(Compressor::Snappy));
        assert_eq!(fast(Compressor::Noop), of(Compressor::Noop));
        assert_eq!(FlushCompression::Table.of(of(Compressor::Deflate)), of(Compressor::Deflate));
        let none = FlushCompression::None.of(of(Compressor::Lz4));
        assert_eq!(none.map(|params| params.compressor), Some(Compressor::Noop));
        assert_eq!(FlushCompression::None.of(None), None);
    }
}
