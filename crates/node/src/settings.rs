//! From `cassandra.yaml` to the settings of each layer.
//!
//! A sync in periodic mode begins after `commitlog_sync_interval`. The rest of
//! `commitlog_sync_period` goes to the lag, so that writes wait no sooner than the two together
//! allow.

use std::net::{IpAddr, SocketAddr};

use config::{CommitFailurePolicy, CommitLogSync, Config, DiskFailurePolicy, Host};
use storage::commitlog::{Archiving, CdcOptions, Compression, SyncMode};
use storage::{DiskSettings, FlushCompression, LogSettings, OnDiskFailure};

use crate::error::NodeError;
use crate::memory::Memory;

/// The log's size where the configuration does not say: Cassandra's.
const COMMITLOG_BYTES: u64 = 8 << 30;
/// The block of a promoted index where the configuration does not say: Cassandra's for `nb`.
pub(crate) const COLUMN_INDEX_BYTES: u64 = 64 << 10;

/// Operations of a shard at the disk at a time: its part of `io_depth`, and one at least.
pub fn io_depth(config: &Config, shards: usize) -> usize {
    (config.io_depth as usize / shards.max(1)).max(1)
}

/// The address of `metrics_address` and `metrics_port`; none: no endpoint. And whether the operator
/// asked for it.
///
/// # Errors
/// If the address is none.
pub(crate) fn metrics_address(config: &Config) -> Result<Option<(SocketAddr, bool)>, NodeError> {
    let ip = ip("metrics_address", &config.metrics_address)?;
    let is_asked_for = config.is_set("metrics_address") || config.is_set("metrics_port");
    let address = SocketAddr::new(ip, config.metrics_port);
    Ok((config.metrics_port != 0).then_some((address, is_asked_for)))
}

/// The address of a key.
///
/// # Errors
/// If it is a name.
pub(crate) fn ip(key: &'static str, host: &Host) -> Result<IpAddr, NodeError> {
    match host {
        Host::Ip(ip) => Ok(*ip),
        Host::Name(name) | Host::Interface { name, .. } => {
            Err(NodeError::Address { key, value: name.clone() })
        }
    }
}

fn log_settings(config: &Config) -> Result<LogSettings, NodeError> {
    let compression = config.commitlog_compression.as_ref().map(|compression| {
        Compression::new(&compression.class, compression.parameters.clone())
            .map_err(|error| NodeError::LogCompression(error.to_string()))
    });
    Ok(LogSettings {
        compression: compression.transpose()?,
        mutation_bytes_max: Some(config.max_mutation_size as usize),
        goes_on_after_failure: config.commit_failure_policy == CommitFailurePolicy::Ignore,
        archiving: Archiving::parse(&config.beside.commitlog_archiving)?,
        cdc: config.cdc.as_ref().map(|cdc| CdcOptions {
            directory: cdc.directory.clone(),
            total_bytes: cdc.total_space,
            blocks_writes: cdc.blocks_writes,
            captures_streams: cdc.captures_streams,
            check_interval: cdc.check_interval,
        }),
        ignore_replay_errors: config.commitlog_ignore_replay_errors,
    })
}

fn disk_settings(config: &Config) -> DiskSettings {
    let look = config.lookup();
    let on_failure = match config.disk_failure_policy {
        DiskFailurePolicy::BestEffort => OnDiskFailure::BestEffort,
        DiskFailurePolicy::Ignore => OnDiskFailure::GoWithout,
        DiskFailurePolicy::Stop | DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Die => {
            OnDiskFailure::Refuse
        }
    };
    DiskSettings {
        on_failure,
        min_free_bytes: u64::try_from(look.number("min_free_space_per_drive")).unwrap_or(0),
        compaction_share: look.share("max_space_usable_for_compactions_in_percentage"),
    }
}

/// When the log is synced. What a sync may be late by counts from when Cassandra would have begun
/// it.
fn sync_mode(config: &Config) -> SyncMode {
    match config.commitlog_sync {
        CommitLogSync::Periodic { period, lag_block } => {
            let interval = period.min(config.commitlog_sync_interval);
            SyncMode::Periodic { period: interval, lag_block: period + lag_block - interval }
        }
        CommitLogSync::Batch => SyncMode::Batch,
        CommitLogSync::Group { window } => SyncMode::Group { window },
    }
}

/// Settings of the storage engine, on a machine with so much memory, in bytes.
///
/// # Errors
/// If the commit log's compressor is unknown.
pub fn storage_options(
    config: &Config,
    machine: Option<u64>,
) -> Result<storage::Options, NodeError> {
    let memory = Memory::of(config);
    Ok(storage::Options {
        data_directories: config.data_file_directories.clone(),
        disk: disk_settings(config),
        commitlog_directory: config.commitlog_directory.clone(),
        sync: sync_mode(config),
        segment_bytes: config.commitlog_segment_size as u32,
        log: log_settings(config)?,
        commitlog_bytes: config.commitlog_total_space.unwrap_or(COMMITLOG_BYTES),
        memtable_bytes: memory.memtables,
        keeps_flushed: config.memtable_keeps_flushed,
        cleanup_threshold: config.memtable_cleanup_threshold,
        column_index_bytes: config.column_index_size.unwrap_or(COLUMN_INDEX_BYTES) as u32,
        chunk_cache_bytes: memory.chunks,
        key_cache_bytes: memory.keys,
        row_cache_bytes: memory.rows,
        counter_cache_bytes: memory.counters,
        concurrent_compactors: compactors(config),
        compaction_bytes_per_second: config.compaction_throughput.unwrap_or(0),
        incremental_backups: config.incremental_backups,
        flush_compression: match config.flush_compression {
            config::FlushCompression::None => FlushCompression::None,
            config::FlushCompression::Fast => FlushCompression::Fast,
            config::FlushCompression::Table => FlushCompression::Table,
        },
        passes_page_cache: config.background_disk_is_direct,
        page_cache_bytes: config.reads_pass_page_cache.then(|| memory.page_cache(machine)),
        sstable_version: sstable::descriptor::NB,
        uuid_identifiers: config.uuid_sstable_identifiers,
    })
}

/// How many compactions run at a time: as many as there are data directories, where the
/// configuration does not say, but two at least and eight at most.
fn compactors(config: &Config) -> usize {
    let directories = config.data_file_directories.len().clamp(2, 8);
    config.concurrent_compactors.map_or(directories, |count| count as usize)
}

/// Settings of the native transport.
///
/// # Errors
/// If an address is none.
pub fn server_settings(config: &Config) -> Result<server::Settings, NodeError> {
    let transport = &config.native_transport;
    let listen = ip("rpc_address", &config.rpc_address)?;
    if !(listen.is_loopback() || config.auth.authenticates || config.auth.may_be_open) {
        return Err(NodeError::Open { address: listen });
    }
    let memory = Memory::of(config);
    let mut settings = server::Settings::new(SocketAddr::new(listen, transport.port));
    settings.shard_aware = transport.shard_aware_port.map(|port| SocketAddr::new(listen, port));
    settings.max_frame_size = transport.max_frame_size.min(u64::from(u32::MAX)) as u32;
    settings.max_in_flight = memory.in_flight;
    settings.max_in_flight_per_ip = memory.in_flight_per_ip;
    let most = settings.max_in_flight.min(settings.max_in_flight_per_ip);
    let message = transport.max_message_size.unwrap_or(most.min(transport.max_frame_size));
    settings.max_message_size = message.min(u64::from(u32::MAX)) as u32;
    settings.max_connections = transport.max_connections;
    settings.max_connections_per_ip = transport.max_connections_per_ip;
    settings.max_requests_per_second = transport.max_requests_per_second;
    settings.request_timeout = transport.request_timeout;
    settings.queue_wait = transport.queue_wait;
    settings.allow_older_protocols = transport.allow_older_protocols;
    settings.idle_timeout = transport.idle_timeout;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use config::Config;
    use storage::commitlog::SyncMode;

    use super::sync_mode;

    /// However early a sync of the log may begin, writes wait where Cassandra's would.
    #[test]
    fn a_sync_that_begins_early_may_take_longer() {
        let sync = |yaml| sync_mode(&Config::from_yaml(yaml).expect("it is sound"));
        let ms = Duration::from_millis;
        let periodic = |period, lag| SyncMode::Periodic { period: ms(period), lag_block: ms(lag) };
        assert_eq!(sync(""), periodic(1_000, 24_000));
        assert_eq!(sync("commitlog_sync_period: 200ms"), periodic(200, 300));
        assert_eq!(sync("commitlog_sync_interval: 10s"), periodic(10_000, 15_000));
        assert_eq!(sync("commitlog_sync_interval: 1m"), periodic(10_000, 15_000));
        let no_lag = "periodic_commitlog_sync_lag_block: 0ms\ncommitlog_sync_interval: 10ms";
        assert_eq!(sync(no_lag), periodic(10, 9_990));
    }
}
