//! What the engine's tests share.

use std::path::PathBuf;

use storage::commitlog::SyncMode;
use storage::{DiskSettings, FlushCompression, LogSettings, Options};

/// Options of an engine with small files and small caches, and with room for what is written.
pub fn options() -> Options {
    Options {
        data_directories: vec![PathBuf::from("/data")],
        disk: DiskSettings::default(),
        commitlog_directory: PathBuf::from("/commitlog"),
        sync: SyncMode::Batch,
        segment_bytes: 16 << 10,
        log: LogSettings::default(),
        commitlog_bytes: 16 << 20,
        memtable_bytes: 16 << 20,
        keeps_flushed: false,
        cleanup_threshold: 0.5,
        column_index_bytes: 4 << 10,
        chunk_cache_bytes: 64 << 10,
        key_cache_bytes: 16 << 10,
        row_cache_bytes: 16 << 10,
        counter_cache_bytes: 64 << 10,
        concurrent_compactors: 2,
        compaction_bytes_per_second: 0,
        incremental_backups: false,
        flush_compression: FlushCompression::Fast,
        passes_page_cache: true,
        page_cache_bytes: Some(1 << 20),
        sstable_version: sstable::descriptor::NB,
        uuid_identifiers: false,
    }
}
