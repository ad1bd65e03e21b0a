//! The configuration that values make, if they go together.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::get::Get;
use crate::guardrails;
use crate::origin::{Origins, located};
use crate::section::{Beside, Given};
use crate::served::check_standing;
use crate::table::Index;
use crate::values::{Settings, Values};

impl Config {
    /// A configuration of values that may stand beside each other.
    ///
    /// # Errors
    /// One, of all that is wrong: a value that is refused is left out, and the rest is looked at.
    pub(crate) fn build(index: &Index, settings: Settings) -> Result<Self> {
        let Settings { values, origins, mut errors } = settings;
        let mut left = values.clone();
        for error in check_standing(index, &values) {
            error.key().map(|key| left.remove(key));
            errors.push(located(&origins, error));
        }
        let made = loop {
            match Self::of_values(index, &left) {
                Ok(config) => break Some(config),
                Err(error) => {
                    let set =
                        error.key().and_then(|key| left.remove_entry(key)).map(|(key, _)| key);
                    let is_first = errors.is_empty();
                    if is_first || set.is_some_and(|key| !hangs_on(key, &left, &values)) {
                        errors.push(located(&origins, error));
                    }
                    if set.is_none() {
                        break None;
                    }
                }
            }
        };
        match (Error::of_all(errors), made) {
            (None, Some(config)) => Ok(Self { values, origins, ..config }),
            (Some(error), _) => Err(error),
            (None, None) => unreachable!("without a configuration there is an error"),
        }
    }

    fn of_values(index: &Index, values: &Values) -> Result<Self> {
        let get = Get { index, values };
        get.check_max_value_size()?;
        let config = Self::of(&get)?;
        guardrails::check(&get)?;
        check_directories(&get, &config)?;
        get.check_classes()?;
        get.check_access_mode()?;
        get.check_startup_checks()?;
        Ok(config)
    }

    /// Every field by its keys, whatever the others are.
    fn of(get: &Get<'_>) -> Result<Self> {
        let ([listen_address, rpc_address], data_dir) = (get.own_hosts()?, get.data_dir());
        Ok(Self {
            commitlog_directory: under(get, &data_dir, "commitlog_directory", "commitlog"),
            hints_directory: under(get, &data_dir, "hints_directory", "hints"),
            hints: get.hints()?,
            repair: get.repair()?,
            streams: get.streams()?,
            saved_caches_directory: under(get, &data_dir, "saved_caches_directory", "saved_caches"),
            memtable_cleanup_threshold: get.cleanup_threshold()?,
            data_file_directories: data_directories(get, &data_dir),
            cluster_name: get.text("cluster_name"),
            num_tokens: get.num_tokens(get.tokens()?.len())?,
            initial_tokens: get.tokens()?,
            seeds: get.seeds()?,
            joining: get.joining()?,
            internode_compression: get.internode_compression(),
            phi_convict_threshold: get.phi_convict_threshold()?,
            internode: get.internode(),
            serves_index_reads: get.bool("serve_index_reads"),
            ring_delay: get.duration("ring_delay"),
            snitch: get.snitch()?,
            dynamic_snitch: get.dynamic_snitch()?,
            batchlog_endpoints: get.batchlog_endpoints(),
            given: Given::default(),
            beside: Beside::default(),
            auth_levels: get.auth_levels()?,
            default_keyspace_rf: get.count("default_keyspace_rf")?,
            drop_compact_storage_enabled: get.bool("drop_compact_storage_enabled"),
            dynamic_data_masking_enabled: get.bool("dynamic_data_masking_enabled"),
            broadcast_address: get.broadcast(&listen_address)?,
            broadcast_rpc_address: get.broadcast_rpc(&rpc_address)?,
            listen_address,
            rpc_address,
            storage_port: get.port("storage_port"),
            auth: get.auth()?,
            client_tls: get.client_tls()?,
            server_tls: get.server_tls()?,
            native_transport: get.native_transport()?,
            commitlog_sync: get.commitlog_sync()?,
            commitlog_segment_size: get.segment_size()?,
            commitlog_total_space: get.some_base("commitlog_total_space"),
            max_mutation_size: get.max_mutation_size()?,
            commitlog_compression: get.commitlog_compression(),
            commitlog_ignore_replay_errors: get.bool("commitlog_ignore_replay_errors"),
            cdc: get.cdc(&data_dir),
            disk_failure_policy: get.disk_failure_policy(),
            commit_failure_policy: get.commit_failure_policy(),
            memtable_space: get.memtable_space(),
            memtable_keeps_flushed: get.bool("memtable_keeps_flushed"),
            file_cache_size: get.some_base("file_cache_size"),
            key_cache_size: get.some_base("key_cache_size"),
            row_cache_size: get.base("row_cache_size"),
            counter_cache_size: get.some_base("counter_cache_size"),
            saved_caches: get.saved_caches()?,
            reads_pass_page_cache: get.text("io_read_access_mode") == "mixed",
            background_disk_is_direct: get.text("io_background_access_mode") == "direct",
            flush_compression: get.flush_compression(),
            concurrent_compactors: get.compactors()?,
            tables: get.tables()?,
            compaction_throughput: get.some_base("compaction_throughput").filter(|v| *v != 0),
            auto_snapshot: get.bool("auto_snapshot"),
            incremental_backups: get.bool("incremental_backups"),
            auto_snapshot_ttl: get.some_base("auto_snapshot_ttl").map(Duration::from_nanos),
            uuid_sstable_identifiers: get.bool("uuid_sstable_identifiers_enabled"),
            column_index_size: get.some_base("column_index_size"),
            timeouts: get.timeouts(),
            batch_size_warn: get.base("batch_size_warn_threshold"),
            batch_size_fail: get.base("batch_size_fail_threshold"),
            unlogged_batch_partitions_warn: get.unlogged_batch_partitions_warn()?,
            tombstone_warn: get.count("tombstone_warn_threshold")?.into(),
            tombstone_failure: get.count("tombstone_failure_threshold")?.into(),
            read_sizes: get.read_sizes(),
            trace_query_ttl: get.duration("trace_type_query_ttl"),
            prepared_statements_cache_size: get.prepared_cache()?,
            shards: get.some_count("shards")?,
            io_depth: get.count("io_depth")?,
            release_version: get.text("release_version"),
            memory_budget: get.some_base("memory_budget"),
            commitlog_sync_interval: get.commitlog_sync_interval()?,
            memory_pretouch: get.bool("memory_pretouch"),
            metrics_address: get.host("metrics_address")?,
            metrics_port: get.port("metrics_port"),
            admin: get.admin()?,
            admin_tls: get.admin_tls()?,
            data_dir,
            values: Values::new(),
            origins: Origins::new(),
        })
    }
}

/// Keys that a rule about the first one looks at: it says nothing once one of these was left out.
const HANGS_ON: &[(&str, &[&str])] = &[
    ("authorizer.class_name", &["authenticator.class_name"]),
    ("commitlog_sync", &["commitlog_sync_period", "commitlog_sync_group_window"]),
    ("initial_token", &["num_tokens"]),
    ("max_mutation_size", &["commitlog_segment_size"]),
    ("num_tokens", &["initial_token"]),
    ("rpc_address", &["broadcast_rpc_address"]),
];

/// Does a refusal of `key` follow from another one, whose value is not among those `left`?
fn hangs_on(key: &str, left: &Values, all: &Values) -> bool {
    let is_out = |other: &&str| all.contains_key(*other) && !left.contains_key(*other);
    HANGS_ON.iter().any(|(of, others)| *of == key && others.iter().any(is_out))
}

/// The folder that a key names, else one below the node's own.
fn under(get: &Get<'_>, data_dir: &Path, name: &str, folder: &str) -> PathBuf {
    get.some_text(name).map_or_else(|| data_dir.join(folder), PathBuf::from)
}

/// At least one.
fn data_directories(get: &Get<'_>, data_dir: &Path) -> Vec<PathBuf> {
    let mut directories: Vec<_> =
        get.list("data_file_directories").into_iter().map(PathBuf::from).collect();
    if directories.is_empty() {
        directories.push(data_dir.join("data"));
    }
    directories
}

/// No directory may serve two purposes.
fn check_directories(get: &Get<'_>, config: &Config) -> Result<()> {
    let single: [(&str, &Path); 3] = [
        ("commitlog_directory", &config.commitlog_directory),
        ("hints_directory", &config.hints_directory),
        ("saved_caches_directory", &config.saved_caches_directory),
    ];
    for (i, (name, path)) in single.iter().enumerate() {
        if config.data_file_directories.iter().any(|d| d == path) {
            return get
                .refuse(name, "it is also in data_file_directories; set a directory of its own");
        }
        if let Some((other, _)) = single.iter().skip(i + 1).find(|(_, p)| p == path) {
            return get.refuse(name, format!("it is also {other}; set a directory of its own"));
        }
    }
    if let Some(cdc) = &config.cdc {
        let data = config.data_file_directories.iter().map(PathBuf::as_path);
        if data.chain(single.map(|(_, path)| path)).any(|other| other == cdc.directory) {
            return get.refuse(
                "cdc_raw_directory",
                "another setting has this directory too; set a directory of its own",
            );
        }
    }
    let mut data = config.data_file_directories.clone();
    data.sort();
    if data.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
        return get.refuse("data_file_directories", "it has the same directory twice");
    }
    Ok(())
}
