//! The rows of `system_views.settings` (`db.virtual.SettingsTable`): every key under its name
//! of today, its old names, and the underscored names that release 4.0 gave to nested keys.

use crate::section::CommitLogSync;
use std::collections::BTreeMap;

use crate::config::Config;
use crate::key::{Key, Kind, Value};
use crate::old::OLD;
use crate::table::Index;

/// What stands in place of a secret.
const REDACTED: &str = "<REDACTED>";
/// Nested keys whose values are never shown.
const SECRET: &[&str] = &["keystore", "keystore_password", "truststore", "truststore_password"];

/// Names of release 4.0 that are not their key's with `_` for `.`.
const RENAMED_40: &[(&str, &str)] = &[
    ("audit_logging_options_logger", "audit_logging_options.logger.class_name"),
    ("authenticator", "authenticator.class_name"),
    ("authorizer", "authorizer.class_name"),
    ("internode_authenticator", "internode_authenticator.class_name"),
    ("network_authorizer", "network_authorizer.class_name"),
    ("role_manager", "role_manager.class_name"),
    ("server_encryption_options_client_auth", "server_encryption_options.require_client_auth"),
    (
        "server_encryption_options_endpoint_verification",
        "server_encryption_options.require_endpoint_verification",
    ),
    (
        "server_encryption_options_legacy_ssl_storage_port",
        "server_encryption_options.legacy_ssl_storage_port_enabled",
    ),
    ("server_encryption_options_protocol", "server_encryption_options.accepted_protocols"),
];

/// Nested keys that release 4.0 showed with `_` for `.`, by section.
const UNDERSCORED_40: &[(&str, &[&str])] = &[
    (
        "audit_logging_options",
        &[
            "audit_logs_dir",
            "enabled",
            "excluded_categories",
            "excluded_keyspaces",
            "excluded_users",
            "included_categories",
            "included_keyspaces",
            "included_users",
        ],
    ),
    (
        "server_encryption_options",
        &["algorithm", "cipher_suites", "enabled", "internode_encryption", "optional"],
    ),
    ("transparent_data_encryption_options", &["chunk_length_kb", "cipher", "enabled", "iv_length"]),
];

/// Keys that the table shows in another spelling than the yaml takes.
const RESPELLED: &[(&str, &str)] = &[
    ("repair.retries.base_sleep_time", "repair.retries.baseSleepTime"),
    ("repair.retries.max_attempts", "repair.retries.maxAttempts.value"),
    ("repair.retries.max_sleep_time", "repair.retries.maxSleepTime"),
    (
        "repair.retries.merkle_tree_response.base_sleep_time",
        "repair.retries.merkle_tree_response.baseSleepTime",
    ),
    (
        "repair.retries.merkle_tree_response.max_attempts",
        "repair.retries.merkle_tree_response.maxAttempts.value",
    ),
    (
        "repair.retries.merkle_tree_response.max_sleep_time",
        "repair.retries.merkle_tree_response.maxSleepTime",
    ),
];

impl Config {
    /// Every key with its effective value, sorted by name, as `SELECT * FROM
    /// system_views.settings` shows them: Cassandra's names of today, the old ones, and ours.
    /// `None` is that table's null.
    pub fn entries(&self) -> Vec<(String, Option<String>)> {
        entries(self)
    }
}

fn entries(config: &Config) -> Vec<(String, Option<String>)> {
    let index = Index::new();
    let mut rows = BTreeMap::new();
    for key in index.iter() {
        let name = RESPELLED.iter().find(|(yaml, _)| *yaml == key.name).map_or(key.name, |r| r.1);
        rows.insert(name.to_string(), show(config, key));
    }
    for old in OLD.iter().filter(|o| !o.name.contains('.')) {
        if let Some(key) = index.get(old.new) {
            rows.insert(old.name.to_string(), old.show(key, &effective(config, key)));
        }
    }
    let underscored = UNDERSCORED_40.iter().flat_map(|(section, names)| {
        names.iter().map(move |n| (format!("{section}_{n}"), format!("{section}.{n}")))
    });
    let renamed = RENAMED_40.iter().map(|(a, b)| ((*a).to_string(), (*b).to_string()));
    for (name, of) in underscored.chain(renamed) {
        if let Some(key) = index.get(&of) {
            rows.insert(name, show(config, key));
        }
    }
    rows.into_iter().collect()
}

fn show(config: &Config, key: &Key) -> Option<String> {
    if let Some((section, last)) = key.name.rsplit_once('.')
        && section.ends_with("_encryption_options")
        && SECRET.contains(&last)
    {
        return Some(REDACTED.to_string());
    }
    // a private key may stand there in full; and a password that Cassandra shows
    let may_be_secret = [".ssl_context_factory.parameters", ".outbound_keystore_password"];
    if may_be_secret.iter().any(|end| key.name.ends_with(end))
        && config.values.get(key.name).is_some_and(|value| *value != key.default_value())
    {
        return Some(REDACTED.to_string());
    }
    match (effective(config, key), key.kind) {
        (Value::Quantity(q), Kind::Seconds(_)) => Some((q.base() / 1_000_000_000).to_string()),
        (Value::Double(v), _) if key.name == "memtable_cleanup_threshold" => {
            Some((v as f32).to_string())
        }
        (value, _) => value.show(),
    }
}

/// As set, else as derived, else the default; to spell out the default sets nothing.
fn effective(config: &Config, key: &Key) -> Value {
    let default = key.default_value();
    match config.values.get(key.name) {
        Some(value) if *value != Value::Null && *value != default => value.clone(),
        set => derived(config, key).or(set.cloned()).unwrap_or(default),
    }
}

/// What the node derives for a key that is not set, as far as the configuration alone tells.
fn derived(config: &Config, key: &Key) -> Option<Value> {
    let text = |v: &str| Some(Value::Text(v.to_string()));
    let path = |p: &std::path::Path| Some(Value::Text(p.display().to_string()));
    let quantity = |v: String| match key.kind {
        Kind::Quantity(bound) => bound.parse(&v).map(Value::Quantity),
        _ => None,
    };
    let int = |n: u64| i64::try_from(n).ok().map(Value::Int);
    match key.name {
        "authenticator.class_name" => text("AllowAllAuthenticator"),
        "authorizer.class_name" => text("AllowAllAuthorizer"),
        "authenticator.parameters" | "authorizer.parameters" => Some(Value::Map(Vec::new())),
        "cdc_raw_directory" => config.cdc.as_ref().and_then(|cdc| path(&cdc.directory)),
        "commitlog_directory" => path(&config.commitlog_directory),
        "commitlog_sync" => text("periodic"),
        "commitlog_sync_period" => match config.commitlog_sync {
            CommitLogSync::Periodic { period, .. } => quantity(format!("{}ms", period.as_millis())),
            CommitLogSync::Batch | CommitLogSync::Group { .. } => None,
        },
        "concurrent_compactors" | "concurrent_validations" | "repair_command_pool_size" => {
            config.concurrent_compactors.and_then(|n| int(n.into()))
        }
        "data_file_directories" => {
            let paths = config.data_file_directories.iter();
            Some(Value::List(paths.map(|p| Value::Text(p.display().to_string())).collect()))
        }
        "disk_access_mode" => text("standard"),
        "file_cache_round_up" => Some(Value::Bool(false)),
        "hints_directory" => path(&config.hints_directory),
        "internode_max_message_size" => quantity(format!("{}B", 128 << 20)),
        "max_mutation_size" => quantity(format!("{}KiB", config.max_mutation_size >> 10)),
        "memtable_cleanup_threshold" => Some(Value::Double(config.memtable_cleanup_threshold)),
        "memtable_flush_writers" => int(1),
        "num_tokens" => int(config.num_tokens.into()),
        "partitioner" => text("org.apache.cassandra.dht.Murmur3Partitioner"),
        "paxos_repair_parallelism" => int(4),
        "paxos_state_purging" => text("legacy"),
        "repair_session_max_tree_depth" => int(20),
        "saved_caches_directory" => path(&config.saved_caches_directory),
        "client_encryption_options.optional"
        | "server_encryption_options.optional"
        | "server_encryption_options.enabled" => Some(Value::Bool(false)),
        _ => None,
    }
}
