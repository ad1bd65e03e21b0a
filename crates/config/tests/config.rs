//! What is accepted, what is refused, and in which words.

use std::time::Duration;

use config::{
    CommitLogSync, Config, DiskFailurePolicy, Host, InternodeCompression, Kind, Standing, keys,
};
use proptest::prelude::*;

fn refusal(yaml: &str) -> String {
    Config::from_yaml(yaml).unwrap_err().to_string()
}

#[test]
fn nothing_configured_is_one_node_on_loopback() {
    let config = Config::default();
    assert_eq!(config.cluster_name, "Test Cluster");
    assert_eq!(config.listen_address, Host::Ip("127.0.0.1".parse().unwrap()));
    assert_eq!(config.rpc_address, config.listen_address);
    assert_eq!(config.native_transport.port, 9042);
    assert_eq!(config.native_transport.shard_aware_port, Some(19042));
    assert_eq!(config.data_file_directories, [std::path::Path::new("./data/data")]);
    assert_eq!(config.commitlog_directory, std::path::Path::new("./data/commitlog"));
    assert_eq!(config.disk_failure_policy, DiskFailurePolicy::Stop);
    assert_eq!(config.num_tokens, 16);
    assert_eq!(config.max_mutation_size, 16 << 20);
    let period = Duration::from_secs(10);
    let lag_block = Duration::from_secs(15);
    assert_eq!(config.commitlog_sync, CommitLogSync::Periodic { period, lag_block });
    assert_eq!(config.commitlog_sync_interval, Duration::from_secs(1));
}

#[test]
fn old_names_and_units_work() {
    let config = Config::from_yaml(
        "read_request_timeout_in_ms: 7000\ncommitlog_segment_size_in_mb: 16\n\
         compaction_throughput_mb_per_sec: 0\nbatch_size_warn_threshold_in_kb: 6\n",
    )
    .unwrap();
    assert_eq!(config.timeouts.read, Duration::from_secs(7));
    assert_eq!(config.commitlog_segment_size, 16 << 20);
    assert_eq!(config.compaction_throughput, None);
    assert_eq!(config.batch_size_warn, 6 << 10);
}

#[test]
fn levels_of_roles_must_be_some_of_reads_and_of_writes() {
    let any = refusal("auth_read_consistency_level: ANY");
    assert!(any.starts_with("line 1: auth_read_consistency_level: "), "{any}");
    assert!(any.contains("ANY ConsistencyLevel is only supported for writes"), "{any}");
    for level in ["SERIAL", "LOCAL_SERIAL"] {
        let serial = refusal(&format!("auth_write_consistency_level: {level}"));
        assert!(serial.contains("You must use conditional updates"), "{serial}");
    }
    for text in ["auth_read_consistency_level: SERIAL", "auth_write_consistency_level: ANY"] {
        assert!(Config::from_yaml(text).is_ok(), "{text}");
    }
}

#[test]
fn refusals_name_key_value_and_what_is_expected() {
    assert_eq!(
        refusal("read_request_timout: 5s"),
        "line 1: unknown key read_request_timout: did you mean read_request_timeout?"
    );
    assert_eq!(refusal("frobnication: 1"), "line 1: unknown key frobnication");
    assert_eq!(
        refusal("read_request_timeout: 5000"),
        "line 1: read_request_timeout: \"5000\" is not accepted: expected a duration such as 10ms: \
         a whole number and one of ms, s, m, h, d (case matters), less than 9223372036854775807ms"
    );
    assert_eq!(
        refusal("auto_snapshot: maybe"),
        "line 1: auto_snapshot: \"maybe\" is not accepted: expected true or false"
    );
    assert_eq!(
        refusal("disk_failure_policy: Stop"),
        "line 1: disk_failure_policy: \"Stop\" is not accepted: expected one of best_effort, stop, \
         ignore, stop_paranoid, die (case matters)"
    );
    assert_eq!(refusal("num_tokens: 1\nnum_tokens: 2"), "line 2: duplicate key num_tokens");
    assert_eq!(
        refusal("read_request_timeout: 5s\nread_request_timeout_in_ms: 5000"),
        "line 2: read_request_timeout_in_ms is the old name of read_request_timeout, which is set \
         as well: keep read_request_timeout"
    );
    assert_eq!(
        refusal("storage_port: 70000"),
        "line 1: storage_port: \"70000\" is not accepted: expected a whole number from 0 to 65535"
    );
    assert_eq!(
        refusal("commitlog_sync_interval: 0ms"),
        "line 1: commitlog_sync_interval: \"0ms\" is refused: it must be positive"
    );
    assert!(refusal("read_request_timeout_in_ms: 5s").contains("a whole number of ms"));
    assert!(refusal("cluster_name: [a]").contains("expected a text"));
    assert!(refusal("client_encryption_options: 7").contains("expected a mapping"));
    assert!(refusal("data_file_directories: /var/lib").contains("expected a list"));
}

#[test]
fn compression_and_capture_of_the_log_are_read() {
    let config = Config::from_yaml(
        "commitlog_compression:\n  - class_name: ZstdCompressor\n    parameters:\n      - compression_level: \"7\"\n\
         cdc_enabled: true\ncdc_total_space: 64MiB\ncdc_block_writes: false\n",
    )
    .unwrap();
    let compression = config.commitlog_compression.unwrap();
    assert_eq!(compression.class, "ZstdCompressor");
    assert_eq!(compression.parameters.get("compression_level").map(String::as_str), Some("7"));
    let cdc = config.cdc.unwrap();
    assert_eq!(cdc.directory, std::path::Path::new("./data/cdc_raw"));
    assert_eq!((cdc.total_space, cdc.blocks_writes), (Some(64 << 20), false));
    assert!(cdc.captures_streams, "cdc_on_repair_enabled");
    let plain = Config::from_yaml("commitlog_compression:\n").unwrap();
    assert_eq!((plain.commitlog_compression, plain.cdc), (None, None));
    let text = refusal("cdc_enabled: true\ncdc_raw_directory: x\ncommitlog_directory: x");
    assert!(text.contains("another setting has this directory too"), "{text}");
}

#[test]
fn what_we_do_not_serve_stops_the_start() {
    for yaml in [
        "authenticator: MutualTlsAuthenticator",
        "authorizer: { class_name: com.example.Mine }",
        "network_authorizer: CassandraNetworkAuthorizer",
        "role_manager: { class_name: com.example.Roles }",
        "partitioner: org.apache.cassandra.dht.RandomPartitioner",
        "endpoint_snitch: CloudstackSnitch",
        "storage_compatibility_mode: NONE",
        "client_encryption_options: { enabled: true, require_endpoint_verification: true }",
        "client_encryption_options: { optional: true, store_type: BCFKS }",
        "server_encryption_options: { internode_encryption: all, store_type: BCFKS }",
        "server_encryption_options: { optional: true, ssl_context_factory: { class_name: com.example.Mine } }",
        "sstable: { selected_format: bti }",
        "paxos_variant: v2",
        "partition_denylist_enabled: true",
        "audit_logging_options: { enabled: true, archive_command: x }",
        "full_query_logging_options: { archive_command: x }",
        "default_secondary_index_enabled: false",
        "startup_checks: { check_data_resurrection: { enabled: true } }",
    ] {
        let text = refusal(yaml);
        assert!(text.contains("is not supported: only"), "{yaml}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn who_may_do_what_is_read_in_both_forms_of_a_class() {
    let open = Config::default();
    assert!(!open.auth.authenticates && !open.auth.authorizes && open.client_tls.is_none());
    assert_eq!(open.auth.roles.validity, Duration::from_secs(2));
    for yaml in [
        "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer",
        "authenticator: { class_name: org.apache.cassandra.auth.PasswordAuthenticator }\n\
         authorizer:\n  class_name: CassandraAuthorizer\n  parameters: {}",
    ] {
        let config = Config::from_yaml(yaml).unwrap_or_else(|e| panic!("{yaml}: {e}"));
        assert!(config.auth.authenticates && config.auth.authorizes);
    }
    // permissions of whom?
    assert!(refusal("authorizer: CassandraAuthorizer").contains("enable authentication"));
    let config = Config::from_yaml("roles_validity: 9s\nroles_update_interval: 3s").unwrap();
    assert_eq!(config.auth.roles.update_interval, Duration::from_secs(3));
    assert_eq!(config.auth.permissions.update_interval, config.auth.permissions.validity);
    assert!(refusal("first_superuser: a").contains("first_superuser_password_file"));
}

#[test]
fn secrets_of_tls_are_shown_nowhere() {
    let yaml = "client_encryption_options: { enabled: true, keystore_password: secret, \
                ssl_context_factory: { class_name: org.apache.cassandra.security.PEMBasedSslContextFactory, \
                parameters: { private_key: secret, private_key_password: secret } } }\n\
                server_encryption_options: { internode_encryption: all, keystore_password: secret, \
                outbound_keystore_password: secret, truststore_password: secret }";
    let config = Config::from_yaml(yaml).unwrap();
    assert!(!format!("{:?}", config.server_tls).contains("secret"));
    let tls = config.client_tls.as_ref().unwrap();
    assert_eq!(tls.stores.keystore, config::Store::Inline("secret".to_owned()));
    assert!(!format!("{tls:?}").contains("secret"));
    let shown = config
        .entries()
        .into_iter()
        .find(|(_, value)| value.as_deref().is_some_and(|value| value.contains("secret")));
    assert_eq!(shown, None);
}

#[test]
fn tls_between_nodes_is_what_cassandra_makes_of_its_options() {
    use config::InternodeEncryption as Of;
    let of = |options: &str| {
        let yaml = format!("server_encryption_options: {{ {options} }}");
        Config::from_yaml(&yaml).unwrap_or_else(|e| panic!("{yaml}: {e}")).server_tls
    };
    // a key store that lies there, or `enabled`, switches nothing on
    for off in ["keystore: k, keystore_password: p", "enabled: true", "optional: false"] {
        assert_eq!(of(off), None, "{off}");
    }
    let modes = [("all", Of::All), ("dc", Of::OtherDataCenters), ("rack", Of::OtherRacks)];
    for (word, encrypts) in modes {
        let tls = of(&format!("internode_encryption: {word}")).unwrap();
        assert_eq!((tls.encrypts, tls.is_optional, tls.tls_port), (encrypts, false, None));
    }
    let tls = of("optional: true, require_client_auth: true, require_endpoint_verification: true");
    let tls = tls.unwrap();
    assert_eq!((tls.encrypts, tls.is_optional), (Of::None, true));
    assert!(tls.stores.requires_client_auth && tls.verifies_address && !tls.checks_plain_address);
    // under its present name and its former one
    for key in ["legacy_ssl_storage_port_enabled", "enable_legacy_ssl_storage_port"] {
        assert_eq!(of(&format!("{key}: true")).unwrap().tls_port, Some(7001), "{key}");
    }
    let tls = of("internode_encryption: all, keystore_password: p, outbound_keystore: o").unwrap();
    assert_eq!(tls.outbound_keystore, Some(config::Store::File("o".into())));
    assert_eq!(tls.outbound_keystore_password, "p");
    let tls = of("internode_encryption: all, outbound_keystore: o, outbound_keystore_password: q");
    assert_eq!(tls.unwrap().outbound_keystore_password, "q");
    let yaml = "internode_plaintext_checks_address: true\nssl_storage_port: 9\n\
                server_encryption_options: { internode_encryption: dc, \
                legacy_ssl_storage_port_enabled: true }";
    let tls = Config::from_yaml(yaml).unwrap().server_tls.unwrap();
    assert!(tls.checks_plain_address && tls.tls_port == Some(9));
}

#[test]
fn what_a_switch_leaves_without_meaning_passes() {
    for yaml in [
        "client_encryption_options: { enabled: false, keystore: k, keystore_password: p }",
        "server_encryption_options: { internode_encryption: none, keystore: k }",
        "cdc_raw_directory: /cdc",
        "dump_heap_on_uncaught_exception: true",
        "otc_coalescing_strategy: FIXED",
        "permissions_validity: 9s",
        "authenticator: org.apache.cassandra.auth.AllowAllAuthenticator",
    ] {
        Config::from_yaml(yaml).unwrap_or_else(|e| panic!("{yaml}: {e}"));
    }
}

#[test]
fn rules_between_keys_are_cassandras() {
    for (yaml, why) in [
        ("commitlog_sync: batch\ncommitlog_sync_period: 10s", "which only periodic has"),
        ("commitlog_sync: group", "set commitlog_sync_group_window too"),
        ("commitlog_sync: periodic", "set commitlog_sync_period too"),
        ("max_mutation_size: 20MiB", "at least twice"),
        ("commitlog_directory: x\nhints_directory: x", "it is also hints_directory"),
        ("data_file_directories: [x]\nhints_directory: x", "data_file_directories"),
        ("listen_address: 0.0.0.0", "wildcard"),
        ("rpc_address: 0.0.0.0", "set broadcast_rpc_address"),
        ("initial_token: 1,2", "num_tokens must be set"),
        (
            "initial_token: 1,2\nnum_tokens: 3",
            "it must be the number of tokens in initial_token, 2",
        ),
        ("initial_token: x", "is not a token"),
        ("num_tokens: 1537", "from 1 to 1536"),
        ("memtable_cleanup_threshold: 1.5", "from 0.01 to 0.99"),
        ("concurrent_compactors: 0", "positive"),
        ("native_transport_port: 19042", "native_transport_port is the same port"),
    ] {
        let text = refusal(yaml);
        assert!(text.contains(why), "{yaml}: {text}");
    }
    let any = "rpc_address: 0.0.0.0\nbroadcast_rpc_address: 10.0.0.1";
    assert!(Config::from_yaml(any).is_ok());
    let tokens = Config::from_yaml("initial_token: -5, 7\nnum_tokens: 2").unwrap();
    assert_eq!(tokens.initial_tokens, [-5, 7]);
}

#[test]
fn another_way_to_sync_needs_no_word_about_the_period() {
    let mut config = Config::default();
    config.set("commitlog_sync=batch").unwrap();
    assert_eq!(config.commitlog_sync, CommitLogSync::Batch);
    let group = ["commitlog_sync=group", "commitlog_sync_group_window=5ms"];
    let window = Duration::from_millis(5);
    for order in [group, [group[1], group[0]]] {
        let mut config = Config::default();
        config.set_all(order).unwrap();
        assert_eq!(config.commitlog_sync, CommitLogSync::Group { window });
        let together = config.set_all(["commitlog_sync=batch", "commitlog_sync_period=10s"]);
        assert!(together.is_err());
        assert_eq!(config.commitlog_sync, CommitLogSync::Group { window }, "nothing has changed");
    }
}

#[test]
fn a_set_overrides_under_any_name_and_changes_nothing_on_error() {
    let mut config = Config::default();
    config.set("read_request_timeout_in_ms=9000").unwrap();
    config.set("data_dir=/d").unwrap();
    config.set("authenticator=AllowAllAuthenticator").unwrap();
    config.set("seed_provider.parameters={seeds: '10.0.0.1,10.0.0.2:7001'}").unwrap();
    config.set("shards=3").unwrap();
    config.set("cluster_name=a: b # c").unwrap();
    assert_eq!(config.timeouts.read, Duration::from_secs(9));
    assert_eq!(config.hints_directory, std::path::Path::new("/d/hints"));
    assert_eq!(config.seeds, ["10.0.0.1", "10.0.0.2:7001"]);
    assert_eq!(config.shards, Some(3));
    assert_eq!(config.cluster_name, "a: b # c");
    let before = config.clone();
    for bad in ["shards", "shards=0", "shard=1", "paxos_variant=v2", "rpc_address=a b"] {
        assert!(config.set(bad).is_err(), "{bad}");
        assert_eq!(config, before);
    }
    let entries = config.entries();
    let shown = entries.iter().find(|(name, _)| name == "read_request_timeout").unwrap();
    assert_eq!(shown.1.as_deref(), Some("9000ms"));
}

#[test]
fn what_has_no_effect_here_is_accepted_and_said() {
    let yaml = "sai_string_term_size_warn_threshold: 2KiB\nsecondary_indexes_per_table_fail_threshold: -1\n\
                materialized_views_per_table_warn_threshold: 3\nkeyspaces_warn_threshold: 3\n\
                inter_dc_tcp_nodelay: true\ninternode_compression: dc";
    let config = Config::from_yaml(yaml).unwrap();
    let idle = [
        (
            "materialized_views_per_table_warn_threshold",
            "materialized views are not supported, and CREATE MATERIALIZED VIEW is refused",
        ),
        ("sai_string_term_size_warn_threshold", "storage-attached indexes are not supported"),
    ];
    assert_eq!(config.idle(), idle);
    assert_eq!(config.internode_compression, InternodeCompression::OtherDataCenters);
}

#[test]
fn only_what_needs_a_jvm_is_passed_over_for_it() {
    let mut jvm: Vec<_> = keys().filter(|k| k.standing == Standing::Jvm).map(|k| k.name).collect();
    jvm.sort_unstable();
    assert_eq!(
        jvm,
        [
            "client_encryption_options.algorithm",
            "crypto_provider.class_name",
            "crypto_provider.parameters",
            "dump_heap_on_uncaught_exception",
            "gc_log_threshold",
            "gc_warn_threshold",
            "heap_dump_path",
            "memtable_allocation_type",
            "row_cache_class_name",
            "server_encryption_options.algorithm",
            "use_offheap_merkle_trees",
        ]
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = Config::from_yaml(&text);
        let _ = Config::default().set(&text);
    }

    #[test]
    fn no_value_of_a_known_key_panics(index in 0usize..500, value in "[-0-9a-zA-Z./:]{0,12}") {
        let key = keys().nth(index).unwrap();
        let _ = Config::from_yaml(&format!("{}: {value}", key.name));
        let _ = Config::default().set(&format!("{}={value}", key.name));
    }

    #[test]
    fn a_shown_value_reads_as_itself(index in 0usize..500, n in 0u64..100_000) {
        let key = keys().nth(index).unwrap();
        if key.standing == Standing::Served && matches!(key.kind, Kind::Int(..)) {
            let mut config = Config::default();
            if config.set(&format!("{}={n}", key.name)).is_ok() {
                let shown = config.entries().into_iter().find(|(name, _)| name == key.name);
                prop_assert_eq!(shown.unwrap().1.unwrap(), n.to_string());
            }
        }
    }
}
