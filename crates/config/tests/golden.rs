//! Defaults and shown values against a running Cassandra 5.0.9.

use std::collections::BTreeMap;

use config::{Config, keys};

/// `SELECT * FROM system_views.settings` of the node that was started with `NODE`, heap 768 MiB,
/// 2 processors; its own directory spelled `/cassandra`.
const SETTINGS: &str = include_str!("../testdata/settings-5.0.9.txt");
/// Every key that has a default.
const DEFAULTS: &str = include_str!("../testdata/defaults-5.0.9.yaml");

/// What the node of `SETTINGS` was configured with, but for what we do not serve yet.
const NODE: &str = r#"
cluster_name: peer
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: [ "/cassandra/data/data" ]
commitlog_directory: "/cassandra/data/commitlog"
hints_directory: "/cassandra/data/hints"
saved_caches_directory: "/cassandra/data/saved_caches"
cdc_raw_directory: "/cassandra/data/cdc_raw"
listen_address: 127.0.0.14
rpc_address: 127.0.0.14
storage_port: 7000
native_transport_port: 9042
start_native_transport: true
endpoint_snitch: GossipingPropertyFileSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [ { seeds: "127.0.0.14" } ]
commitlog_sync: periodic
authenticator: AllowAllAuthenticator
authorizer: AllowAllAuthorizer
allocate_tokens_for_local_replication_factor: 1
commitlog_sync_period: 10s
sasi_indexes_enabled: false
drop_compact_storage_enabled: true
storage_compatibility_mode: CASSANDRA_4
concurrent_compactors: 2
memtable_cleanup_threshold: 0.3333333333333333
"#;

/// Keys that the node was given other values for, which we would not start with; and the number of
/// its flush writers, by which it has the threshold above: of ours there is one.
const NOT_SERVED: &[&str] =
    &["memtable_flush_writers", "materialized_views_enabled", "user_defined_functions_enabled"];

/// Keys whose value the JVM derives from its heap, its disk or its folders.
const OF_THE_JVM: &[&str] = &[
    "audit_logging_options.audit_logs_dir",
    "commitlog_total_space",
    "counter_cache_size",
    "crypto_provider.class_name",
    "crypto_provider.parameters",
    "file_cache_size",
    "index_summary_capacity",
    "key_cache_size",
    "memtable_heap_space",
    "memtable_offheap_space",
    "native_transport_max_message_size",
    "native_transport_max_request_data_in_flight",
    "native_transport_max_request_data_in_flight_per_ip",
    "networking_cache_size",
    "prepared_statements_cache_size",
    "repair_session_space",
];

fn golden() -> BTreeMap<&'static str, Option<&'static str>> {
    SETTINGS
        .lines()
        .map(|line| {
            let (name, value) = line.split_once('\t').unwrap();
            (name, Some(value).filter(|v| *v != "null"))
        })
        .collect()
}

/// Today's name of an old or underscored one.
fn today(name: &str) -> String {
    let old = config::OLD.iter().find(|o| o.name == name).map(|o| o.new.to_string());
    let dotted = name.replacen("_options_", "_options.", 1);
    old.unwrap_or_else(|| if keys().any(|k| k.name == dotted) { dotted } else { name.into() })
}

#[test]
fn shows_what_cassandra_shows() {
    let config = Config::from_yaml(NODE).unwrap();
    let ours: BTreeMap<_, _> = config.entries().into_iter().collect();
    let mut wrong = Vec::new();
    for (name, value) in golden() {
        let today = today(name);
        if NOT_SERVED.contains(&today.as_str()) || OF_THE_JVM.contains(&today.as_str()) {
            assert!(ours.contains_key(name), "{name}");
        } else if ours.get(name).map(Option::as_deref) != Some(value) {
            wrong.push(format!("{name}: {:?}, Cassandra {value:?}", ours.get(name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shows_nothing_that_cassandra_does_not_but_our_own() {
    let golden = golden();
    let own: Vec<_> = Config::default()
        .entries()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !golden.contains_key(name.as_str()))
        .collect();
    assert_eq!(
        own,
        [
            "admin_address",
            "admin_enabled",
            "admin_encryption_options.accepted_protocols",
            "admin_encryption_options.cipher_suites",
            "admin_encryption_options.enabled",
            "admin_encryption_options.keystore",
            "admin_encryption_options.keystore_password",
            "admin_encryption_options.protocol",
            "admin_encryption_options.require_client_auth",
            "admin_encryption_options.ssl_context_factory.class_name",
            "admin_encryption_options.ssl_context_factory.parameters",
            "admin_encryption_options.store_type",
            "admin_encryption_options.truststore",
            "admin_encryption_options.truststore_password",
            "admin_port",
            "auth_bcrypt_gensalt_log2_rounds",
            "client_certificates_may_expire",
            "commitlog_ignore_replay_errors",
            "commitlog_sync_interval",
            "consistent_rangemovement",
            "data_dir",
            "first_superuser",
            "first_superuser_password_file",
            "internode_plaintext_checks_address",
            "io_background_access_mode",
            "io_depth",
            "io_read_access_mode",
            "join_ring",
            "log_directory",
            "log_file_size",
            "log_format",
            "log_history_days",
            "log_level",
            "log_to",
            "log_total_size",
            "memory_budget",
            "memory_pretouch",
            "memtable_keeps_flushed",
            "metrics_address",
            "metrics_per_table",
            "metrics_port",
            "native_transport_port_shard_aware",
            "native_transport_queue_wait",
            "open_without_authentication",
            "release_version",
            "replace_address",
            "replace_address_first_boot",
            "ring_delay",
            "role_password_update_min_interval",
            "serve_index_reads",
            "shard_aware",
            "shards",
            "token_allocation",
            "write_survey"
        ]
    );
}

#[test]
fn every_default_may_be_spelled_out() {
    // Cassandra's default period is 0ms, which its periodic sync refuses.
    let spelled = Config::from_yaml(&format!("{DEFAULTS}\ncommitlog_sync: periodic\n"));
    assert!(spelled.unwrap_err().to_string().contains("set commitlog_sync_period too"));
    let spelled = Config::from_yaml(DEFAULTS).unwrap().entries();
    for (ours, unset) in spelled.iter().zip(Config::from_yaml("").unwrap().entries()) {
        assert_eq!(*ours, unset);
    }
}
