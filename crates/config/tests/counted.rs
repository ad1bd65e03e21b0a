//! How many of Cassandra's keys may stop the start, and that the tuning that is usual does not.

use std::collections::BTreeSet;

use config::{Config, Key, Kind, Standing, keys};

/// The names of the public fields of class `Config` of Cassandra 5.0.9.
const FIELDS: &str = include_str!("../testdata/fields-5.0.9.txt");
/// Each field that may stop the start has a line there.
const SETTINGS: &str = include_str!("../../../docs/settings.md");

/// Fewer than that many fields may have values that Cassandra starts with and this node refuses.
const REFUSED_MAX: usize = 60;

/// Keys that are served with some of Cassandra's values only: `docs/settings.md`, "Values with one
/// choice".
const LIMITED: &[&str] = &[
    "audit_logging_options",
    "authenticator",
    "authorizer",
    "cidr_authorizer",
    "client_encryption_options",
    "endpoint_snitch",
    "internode_authenticator",
    "memtable",
    "network_authorizer",
    "partitioner",
    "role_manager",
    "seed_provider",
    "server_encryption_options",
    "startup_checks",
    "storage_compatibility_mode",
];

fn top(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// A value other than the default that Cassandra would start with.
fn another(key: &Key) -> Option<String> {
    Some(match key.kind {
        Kind::Bool => if key.default == "true" { "false" } else { "true" }.to_owned(),
        Kind::Int(least, most) => {
            let default = key.default.parse().unwrap_or(least.max(1));
            let other = if default < most { default + 1 } else { default - 1 };
            other.max(1).to_string()
        }
        Kind::Double => "0.5".to_owned(),
        Kind::Quantity(bound) | Kind::Seconds(bound) => {
            let unit = bound.units.get(bound.least)?.symbol;
            format!("7{unit}")
        }
        Kind::Enum(words) => words.iter().find(|word| **word != key.default)?.to_string(),
        Kind::Text => "com.example.Other".to_owned(),
        Kind::List => "[a]".to_owned(),
        Kind::Map => "{ a: { b: c } }".to_owned(),
    })
}

/// The fields that may stop the start: by a key that is not served, set by itself, or with a value
/// that is not.
fn refused() -> BTreeSet<&'static str> {
    let not_served = keys().filter(|key| key.standing == Standing::NotYet).filter(|key| {
        let set = another(key).map(|value| format!("{}={value}", key.name));
        set.is_some_and(|set| Config::default().set(&set).is_err())
    });
    not_served.map(|key| top(key.name)).chain(LIMITED.iter().copied()).collect()
}

#[test]
fn every_field_of_cassandras_is_known() {
    let known: BTreeSet<&str> = keys().map(|key| top(key.name)).collect();
    let fields: Vec<&str> = FIELDS.lines().collect();
    assert_eq!(fields.len(), 409);
    let unknown: Vec<_> = fields.iter().filter(|field| !known.contains(**field)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn few_fields_may_stop_the_start_and_the_documentation_names_them() {
    let fields: BTreeSet<&str> = FIELDS.lines().collect();
    let refused = refused();
    let refused: Vec<_> = refused.iter().filter(|name| fields.contains(**name)).collect();
    assert!(refused.len() < REFUSED_MAX, "{}: {refused:?}", refused.len());
    let silent: Vec<_> =
        refused.iter().filter(|name| !SETTINGS.contains(&format!("`{name}"))).collect();
    assert!(silent.is_empty(), "docs/settings.md does not name {silent:?}");
    let said = format!("{} of the 409 fields", refused.len());
    assert!(SETTINGS.contains(&said), "docs/settings.md does not say: {said}");
}

/// The tuning that operators do, as they write it.
const USUAL: &[&str] = &[
    "concurrent_reads: 64",
    "concurrent_writes: 128",
    "concurrent_counter_writes: 16",
    "concurrent_materialized_view_writes: 16",
    "concurrent_compactors: 4",
    "concurrent_validations: 2",
    "native_transport_max_threads: 256",
    "native_transport_max_concurrent_connections: 1000",
    "native_transport_max_frame_size: 32MiB",
    "memtable_flush_writers: 4",
    "memtable_allocation_type: offheap_objects",
    "memtable_heap_space: 512MiB",
    "memtable_offheap_space: 512MiB",
    "memtable_cleanup_threshold: 0.2",
    "memtable: { configurations: { default: { class_name: TrieMemtable } } }",
    "compaction_throughput: 128MiB/s",
    "stream_throughput_outbound: 50MiB/s",
    "inter_dc_stream_throughput_outbound: 10MiB/s",
    "stream_entire_sstables: false",
    "read_request_timeout: 10s",
    "range_request_timeout: 20s",
    "write_request_timeout: 5s",
    "request_timeout: 20s",
    "truncate_request_timeout: 2m",
    "slow_query_log_timeout: 200ms",
    "internode_tcp_user_timeout: 20s",
    "key_cache_size: 200MiB",
    "row_cache_size: 100MiB",
    "counter_cache_size: 20MiB",
    "file_cache_size: 1024MiB",
    "prepared_statements_cache_size: 50MiB",
    "max_hint_window: 6h",
    "hinted_handoff_throttle: 4096KiB",
    "max_hints_delivery_threads: 4",
    "hints_flush_period: 5s",
    "endpoint_snitch: GossipingPropertyFileSnitch",
    "dynamic_snitch_badness_threshold: 0.1",
    "phi_convict_threshold: 12",
    "trickle_fsync: true",
    "trickle_fsync_interval: 20480KiB",
    "disk_access_mode: mmap_index_only",
    "commitlog_disk_access_mode: direct",
    "disk_optimization_strategy: spinning",
    "commitlog_segment_size: 64MiB",
    "commitlog_total_space: 16GiB",
    "commitlog_sync: batch",
    "commitlog_compression: [ { class_name: LZ4Compressor } ]",
    "column_index_size: 16KiB",
    "column_index_cache_size: 4KiB",
    "batch_size_warn_threshold: 64KiB",
    "batch_size_fail_threshold: 640KiB",
    "tombstone_warn_threshold: 5000",
    "tombstone_failure_threshold: 200000",
    "gc_warn_threshold: 500ms",
    "gc_log_threshold: 100ms",
    "index_summary_capacity: 100MiB",
    "sstable_preemptive_open_interval: 100MiB",
    "auto_snapshot: false",
    "snapshot_before_compaction: true",
    "incremental_backups: true",
    "internode_compression: all",
    "inter_dc_tcp_nodelay: true",
    "disk_failure_policy: die",
    "tables_warn_threshold: 200",
    "page_size_fail_threshold: 20000",
    "user_defined_functions_enabled: true",
    "materialized_views_enabled: true",
    "storage_compatibility_mode: NONE",
    "paxos_variant: v2",
    "audit_logging_options: { enabled: true }",
];

/// How many of these may stop the start.
const USUAL_REFUSED_MAX: usize = 8;

#[test]
fn usual_tuning_does_not_stop_the_start() {
    let refused: Vec<_> = USUAL.iter().filter(|yaml| Config::from_yaml(yaml).is_err()).collect();
    assert!(USUAL.len() >= 55);
    assert!(refused.len() <= USUAL_REFUSED_MAX, "{refused:?}");
    assert_eq!(
        refused,
        [
            &"snapshot_before_compaction: true",
            &"storage_compatibility_mode: NONE",
            &"paxos_variant: v2",
        ]
    );
}
