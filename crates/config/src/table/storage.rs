//! Keys of Cassandra 5.0.9 about directories, commit log, memtables, compaction, caches and
//! snapshots.

use crate::key::Kind::*;
use crate::key::Standing::*;
use crate::key::{Key, Standing, key};
use crate::quantity::{
    BYTES, KIB_INT, MIB, MIB_INT, MILLIS_INT, MINUTES_INT, PER_SECOND, SECONDS_INT,
};
use crate::table::words::{
    COMMIT_FAILURE_POLICY, COMMIT_LOG_SYNC, CORRUPTED_TOMBSTONE_STRATEGY, DISK_ACCESS_MODE,
    DISK_FAILURE_POLICY, DISK_OPTIMIZATION_STRATEGY, FLUSH_COMPRESSION, INT, LONG,
    MEMTABLE_ALLOCATION_TYPE,
};

/// It tells a damaged length from a true one.
const CHECKSUMS: Standing =
    Idle("the node verifies the checksum of each block, and checks lengths against the block");

/// Why buffers need no pool.
const ONE_BUFFER: Standing = Idle("each shard compresses its log in one buffer");
/// Why repairs capture nothing.
const NO_REPAIR: Standing = Idle("repair is not supported");

pub(super) static KEYS: &[Key] = &[
    key("auto_snapshot", Bool, "true", Served),
    key("auto_snapshot_ttl", Quantity(&SECONDS_INT), "null", Served),
    key("autocompaction_on_startup_enabled", Bool, "true", NotYet),
    key("automatic_sstable_upgrade", Bool, "false", NotYet),
    key("buffer_pool_use_heap_if_exhausted", Bool, "false", Inert),
    key("cache_load_timeout", Quantity(&SECONDS_INT), "30s", Served),
    key("cdc_block_writes", Bool, "true", Served),
    key("cdc_enabled", Bool, "false", Served),
    key("cdc_free_space_check_interval", Quantity(&MILLIS_INT), "250ms", Served),
    key("cdc_on_repair_enabled", Bool, "true", NO_REPAIR),
    key("cdc_raw_directory", Text, "null", Served),
    key("cdc_total_space", Quantity(&MIB_INT), "0MiB", Served),
    key(
        "column_index_cache_size",
        Quantity(&KIB_INT),
        "2KiB",
        Idle("row indexes are cached within key_cache_size"),
    ),
    key("column_index_size", Quantity(&KIB_INT), "null", Served),
    key("commit_failure_policy", Enum(COMMIT_FAILURE_POLICY), "stop", Served),
    key("commitlog_compression.class_name", Text, "null", Served),
    key("commitlog_compression.parameters", Map, "null", Served),
    key("commitlog_directory", Text, "null", Served),
    key("commitlog_disk_access_mode", Enum(DISK_ACCESS_MODE), "legacy", NotYet),
    key("commitlog_max_compression_buffers_in_pool", INT, "3", ONE_BUFFER),
    key("commitlog_segment_size", Quantity(&MIB_INT), "32MiB", Served),
    key("commitlog_sync", Enum(COMMIT_LOG_SYNC), "null", Served),
    key("commitlog_sync_group_window", Quantity(&MILLIS_INT), "0ms", Served),
    key("commitlog_sync_period", Quantity(&MILLIS_INT), "0ms", Served),
    key("commitlog_total_space", Quantity(&MIB_INT), "null", Served),
    key("compaction_throughput", Quantity(&PER_SECOND), "64MiB/s", Served),
    key("compressed_read_ahead_buffer_size", Quantity(&KIB_INT), "256KiB", NotYet),
    key("concurrent_compactors", INT, "null", Served),
    key("concurrent_index_builders", INT, "2", NotYet),
    key("corrupted_tombstone_strategy", Enum(CORRUPTED_TOMBSTONE_STRATEGY), "disabled", NotYet),
    key("counter_cache_keys_to_save", INT, "2147483647", Served),
    key("counter_cache_save_period", Seconds(&SECONDS_INT), "7200s", Served),
    key("counter_cache_size", Quantity(&MIB), "null", Served),
    key("data_disk_usage_max_disk_size", Quantity(&BYTES), "null", Served),
    key("data_file_directories", List, "null", Served),
    key("disk_access_mode", Enum(DISK_ACCESS_MODE), "mmap_index_only", NotYet),
    key("disk_failure_policy", Enum(DISK_FAILURE_POLICY), "ignore", Served),
    key("disk_optimization_estimate_percentile", Double, "0.95", NotYet),
    key("disk_optimization_page_cross_chance", Double, "0.1", NotYet),
    key("disk_optimization_strategy", Enum(DISK_OPTIMIZATION_STRATEGY), "ssd", NotYet),
    key("dump_heap_on_uncaught_exception", Bool, "false", Jvm),
    key(
        "file_cache_enabled",
        Bool,
        "false",
        Idle("chunks of SSTables are always cached; set file_cache_size to 0 to cache none"),
    ),
    key("file_cache_round_up", Bool, "null", Idle("each cached chunk takes its own size")),
    key("file_cache_size", Quantity(&MIB_INT), "null", Served),
    key("flush_compression", Enum(FLUSH_COMPRESSION), "fast", Served),
    key("gc_log_threshold", Quantity(&MILLIS_INT), "200ms", Jvm),
    key("heap_dump_path", Text, "heapdump", Jvm),
    key("incremental_backups", Bool, "false", Served),
    key("index_summary_capacity", Quantity(&MIB), "null", NotYet),
    key("index_summary_resize_interval", Quantity(&MINUTES_INT), "60m", NotYet),
    key(
        "key_cache_invalidate_after_sstable_deletion",
        Bool,
        "false",
        Idle("cached positions in deleted SSTables are evicted first"),
    ),
    key("key_cache_keys_to_save", INT, "2147483647", Served),
    key(
        "key_cache_migrate_during_compaction",
        Bool,
        "true",
        Idle("positions in a new SSTable are cached when they are first read"),
    ),
    key("key_cache_save_period", Seconds(&SECONDS_INT), "4h", Served),
    key("key_cache_size", Quantity(&MIB), "null", Served),
    key("local_system_data_file_directory", Text, "null", NotYet),
    key("max_concurrent_automatic_sstable_upgrades", INT, "1", NotYet),
    key("max_mutation_size", Quantity(&KIB_INT), "null", Served),
    key("max_space_usable_for_compactions_in_percentage", Double, "0.95", Served),
    key("max_top_size_partition_count", INT, "10", NotYet),
    key("max_top_tombstone_partition_count", INT, "10", NotYet),
    key("max_value_size", Quantity(&MIB_INT), "256MiB", CHECKSUMS),
    key("memtable.configurations", Map, "null", NotYet),
    key("memtable_allocation_type", Enum(MEMTABLE_ALLOCATION_TYPE), "heap_buffers", Jvm),
    key("memtable_cleanup_threshold", Double, "null", Served),
    key("memtable_flush_writers", INT, "0", NotYet),
    key("memtable_heap_space", Quantity(&MIB_INT), "null", Served),
    key("memtable_offheap_space", Quantity(&MIB_INT), "null", Served),
    key("min_free_space_per_drive", Quantity(&MIB_INT), "50MiB", Served),
    key("min_tracked_partition_size", Quantity(&BYTES), "1MiB", NotYet),
    key("min_tracked_partition_tombstone_count", LONG, "5000", NotYet),
    key("periodic_commitlog_sync_lag_block", Quantity(&MILLIS_INT), "null", Served),
    key("row_cache_class_name", Text, "org.apache.cassandra.cache.OHCProvider", Jvm),
    key("row_cache_keys_to_save", INT, "2147483647", Served),
    key("row_cache_save_period", Seconds(&SECONDS_INT), "0s", Served),
    key("row_cache_size", Quantity(&MIB), "0MiB", Served),
    key("sai_options.prioritize_over_legacy_index", Bool, "false", NotYet),
    key("sai_options.segment_write_buffer_size", Quantity(&MIB_INT), "1024MiB", NotYet),
    key("saved_caches_directory", Text, "null", Served),
    key("snapshot_before_compaction", Bool, "false", NotYet),
    key("snapshot_links_per_second", LONG, "0", NotYet),
    key("snapshot_on_duplicate_row_detection", Bool, "false", NotYet),
    key("sstable.format", Map, "{}", NotYet),
    key("sstable.selected_format", Text, "big", NotYet),
    key("sstable_preemptive_open_interval", Quantity(&MIB_INT), "50MiB", NotYet),
    key("trickle_fsync", Bool, "false", NotYet),
    key("trickle_fsync_interval", Quantity(&KIB_INT), "10240KiB", NotYet),
    key("uuid_sstable_identifiers_enabled", Bool, "false", Served),
];
