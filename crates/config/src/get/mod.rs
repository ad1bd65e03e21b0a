//! From values to fields: how each served key is read, and the rules between keys, which are
//! those of `config.DatabaseDescriptor`.

use std::path::{Path, PathBuf};
use std::time::Duration;

mod hosts;
mod joining;
mod tables;
mod tls;

use crate::config::MEMORY_BUDGET;
use crate::error::{Error, Result};
use crate::key::{Key, Value};
use crate::section::{
    BatchlogEndpoints, Cdc, CommitFailurePolicy, CommitLogSync, DiskFailurePolicy, DynamicSnitch,
    FlushCompression, Hints, Host, Internode, InternodeCapacity, InternodeCompression,
    LogCompression, NativeTransport, ReadSizes, Repair, SavedCache, SavedCaches, StreamLimits,
    Streams, Timeouts,
};
use crate::table::Index;
use crate::values::Values;

/// The snitches that are served.
const SNITCHES: [&str; 8] = [
    "SimpleSnitch",
    "GossipingPropertyFileSnitch",
    "PropertyFileSnitch",
    "RackInferringSnitch",
    "Ec2Snitch",
    "Ec2MultiRegionSnitch",
    "GoogleCloudSnitch",
    "AlibabaCloudSnitch",
];
/// Most tokens of a node.
pub const MAX_TOKENS: i64 = 1536;
/// No request may time out sooner; shorter settings are raised to it, as Cassandra does.
const LEAST_TIMEOUT: Duration = Duration::from_millis(10);
/// Most requests a second that may be asked for: permits lie a nanosecond apart then.
const MAX_REQUEST_RATE: u32 = 1_000_000_000;
/// Segments, and single values, are smaller than this many bytes.
const TWO_GIB: u64 = 2 << 30;
const MIB: u64 = 1 << 20;
/// Merkle trees of a validation may take this part of the memory.
const REPAIR_SHARE: u64 = 16;
/// How deep they are at most, if nothing is set, and what may be set.
const TREE_DEPTH: u32 = 20;
const TREE_DEPTHS: std::ops::RangeInclusive<u32> = 10..=30;

pub(crate) struct Get<'a> {
    pub index: &'a Index,
    pub values: &'a Values,
}

impl Get<'_> {
    pub fn value(&self, name: &str) -> Value {
        let set = self.values.get(name).filter(|v| **v != Value::Null).cloned();
        set.or_else(|| self.index.get(name).map(Key::default_value)).unwrap_or(Value::Null)
    }

    pub fn refuse<T>(&self, name: &str, why: impl Into<String>) -> Result<T> {
        let value = self.value(name).or_null();
        Err(Error::Refused { key: name.to_string(), value, why: why.into() })
    }

    fn not_served<T>(&self, name: &str, default: &str) -> Result<T> {
        let value = self.value(name).or_null();
        Err(Error::NotServed { key: name.to_string(), value, default: default.to_string() })
    }

    pub fn bool(&self, name: &str) -> bool {
        self.value(name) == Value::Bool(true)
    }

    pub fn some_text(&self, name: &str) -> Option<String> {
        match self.value(name) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> String {
        self.some_text(name).unwrap_or_default()
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Value::List(items) => items.iter().filter_map(Value::show).collect(),
            _ => Vec::new(),
        }
    }

    fn int(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    pub fn some_count(&self, name: &str) -> Result<Option<u32>> {
        match self.int(name) {
            None => Ok(None),
            Some(n) => match u32::try_from(n) {
                Ok(n) => Ok(Some(n)),
                Err(_) => self.refuse(name, "it must not be negative"),
            },
        }
    }

    pub fn count(&self, name: &str) -> Result<u32> {
        Ok(self.some_count(name)?.unwrap_or(0))
    }

    /// The table bounds ports to 16 bits.
    pub fn port(&self, name: &str) -> u16 {
        self.int(name).and_then(|n| u16::try_from(n).ok()).unwrap_or(0)
    }

    pub fn some_base(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Value::Quantity(q) => Some(q.base()),
            _ => None,
        }
    }

    pub fn read_sizes(&self) -> Option<ReadSizes> {
        let sides = |name: &str| {
            ["warn", "fail"]
                .map(|side| self.some_base(&format!("{name}_read_size_{side}_threshold")))
        };
        let sizes = || ReadSizes { coordinator: sides("coordinator"), local: sides("local") };
        self.bool("read_thresholds_enabled").then(sizes)
    }

    pub fn base(&self, name: &str) -> u64 {
        self.some_base(name).unwrap_or(0)
    }

    pub fn saved_caches(&self) -> Result<SavedCaches> {
        let cache = |name: &str| -> Result<SavedCache> {
            Ok(SavedCache {
                period: self.duration(&format!("{name}_cache_save_period")),
                most: self.count(&format!("{name}_cache_keys_to_save"))?,
            })
        };
        Ok(SavedCaches {
            keys: cache("key")?,
            rows: cache("row")?,
            counters: cache("counter")?,
            load_timeout: self.duration("cache_load_timeout"),
        })
    }

    pub fn duration(&self, name: &str) -> Duration {
        Duration::from_nanos(self.base(name))
    }

    pub fn tokens(&self) -> Result<Vec<i64>> {
        let name = "initial_token";
        let text = self.text(name);
        let words = text.split(',').map(str::trim).filter(|w| !w.is_empty());
        let mut tokens = Vec::new();
        for word in words {
            match word.parse() {
                Ok(token) if !tokens.contains(&token) => tokens.push(token),
                Ok(_) => return self.refuse(name, format!("it has token {word} twice")),
                Err(_) => return self.refuse(name, format!("{word:?} is not a token")),
            }
            if tokens.len() as i64 > MAX_TOKENS {
                return self.refuse(name, format!("a node has at most {MAX_TOKENS} tokens"));
            }
        }
        Ok(tokens)
    }

    pub fn num_tokens(&self, initial: usize) -> Result<u32> {
        let name = "num_tokens";
        match self.int(name) {
            None if initial > 1 => {
                self.refuse("initial_token", "with several tokens, num_tokens must be set")
            }
            None => Ok(1),
            Some(n) if !(1..=MAX_TOKENS).contains(&n) => {
                self.refuse(name, format!("it must be from 1 to {MAX_TOKENS}"))
            }
            Some(n) if initial > 0 && n != initial as i64 => self.refuse(
                name,
                format!("it must be the number of tokens in initial_token, {initial}"),
            ),
            Some(_) => self.count(name),
        }
    }

    pub fn seeds(&self) -> Result<Vec<String>> {
        let Value::Map(entries) = self.value("seed_provider.parameters") else {
            return Ok(Vec::new());
        };
        let seeds = entries.iter().find(|(k, _)| k == "seeds").and_then(|(_, v)| v.show());
        let text = seeds.unwrap_or_default();
        Ok(text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_string).collect())
    }

    /// Cassandra starts with a level that is none of reads, or of writes, and refuses whatever it
    /// asks for by it.
    pub fn auth_levels(&self) -> Result<[String; 2]> {
        let (read, write) = ("auth_read_consistency_level", "auth_write_consistency_level");
        let levels = [read, write].map(|name| self.text(name).to_ascii_uppercase());
        let [of_reads, of_writes] = &levels;
        if of_reads == "ANY" {
            return self.refuse(read, "ANY ConsistencyLevel is only supported for writes");
        }
        if matches!(of_writes.as_str(), "SERIAL" | "LOCAL_SERIAL") {
            let why = "You must use conditional updates for serializable writes";
            return self.refuse(write, why);
        }
        Ok(levels)
    }

    pub fn internode(&self) -> Internode {
        let bytes = |name: &str| self.some_base(name).unwrap_or_default();
        let capacity = |direction: &str| {
            let of = |what: &str| bytes(&format!("internode_application_{direction}_queue_{what}"));
            InternodeCapacity {
                connection: of("capacity"),
                endpoint: of("reserve_endpoint_capacity"),
                global: of("reserve_global_capacity"),
            }
        };
        let (send, receive) = (capacity("send"), capacity("receive"));
        let max_message = self.some_base("internode_max_message_size");
        Internode {
            max_message: max_message.unwrap_or(send.endpoint.min(receive.endpoint)),
            send,
            receive,
            believes_clocks: self.bool("internode_timeout"),
        }
    }

    pub fn snitch(&self) -> Result<String> {
        let name = "endpoint_snitch";
        match class(&self.text(name), "org.apache.cassandra.locator.") {
            "" => Ok("SimpleSnitch".to_owned()),
            known if SNITCHES.contains(&known) => Ok(known.to_owned()),
            _ => self.not_served(name, &SNITCHES.join(" or ")),
        }
    }

    /// Classes of which one alone is served.
    pub fn check_classes(&self) -> Result<()> {
        for (name, package, served) in [
            ("partitioner", "org.apache.cassandra.dht.", "Murmur3Partitioner"),
            ("seed_provider.class_name", "org.apache.cassandra.locator.", "SimpleSeedProvider"),
            ("storage_compatibility_mode", "", "CASSANDRA_4"),
        ] {
            let text = self.text(name);
            if !text.is_empty() && class(&text, package) != served {
                return self.not_served(name, served);
            }
        }
        Ok(())
    }

    /// As Cassandra resolves it (`DatabaseDescriptor.applySimpleConfig`).
    pub fn check_access_mode(&self) -> Result<()> {
        match self.text("disk_access_mode").as_str() {
            "direct" => self.refuse("disk_access_mode", "DiskAccessMode 'direct' is not supported"),
            _ => Ok(()),
        }
    }

    /// `startup_checks` that are switched off, or always done.
    pub fn check_startup_checks(&self) -> Result<()> {
        let Value::Map(checks) = self.value("startup_checks") else { return Ok(()) };
        let is_on = |(name, options): &&(String, Value)| {
            let enabled = match options {
                Value::Map(options) => options.iter().find(|(key, _)| key == "enabled"),
                _ => None,
            };
            let text = enabled.map(|(_, value)| value.or_null());
            // these two the node always does
            !matches!(name.as_str(), "check_dc" | "check_rack") && text.as_deref() == Some("true")
        };
        match checks.iter().find(is_on) {
            Some(_) => self.not_served("startup_checks", "checks with enabled: false"),
            None => Ok(()),
        }
    }

    pub fn flush_compression(&self) -> FlushCompression {
        match self.text("flush_compression").as_str() {
            "none" => FlushCompression::None,
            "table" => FlushCompression::Table,
            _ => FlushCompression::Fast,
        }
    }

    pub fn dynamic_snitch(&self) -> Result<Option<DynamicSnitch>> {
        let name = "dynamic_snitch_badness_threshold";
        let badness_threshold = match self.value(name) {
            Value::Double(v) if v.is_finite() && v >= 0.0 => v,
            _ => return self.refuse(name, "it must be 0 or more"),
        };
        Ok(self.bool("dynamic_snitch").then(|| DynamicSnitch {
            update_interval: self.duration("dynamic_snitch_update_interval"),
            reset_interval: self.duration("dynamic_snitch_reset_interval"),
            badness_threshold,
        }))
    }

    pub fn batchlog_endpoints(&self) -> BatchlogEndpoints {
        match self.text("batchlog_endpoint_strategy").as_str() {
            "prefer_local" => BatchlogEndpoints::PreferLocal,
            "dynamic_remote" => BatchlogEndpoints::DynamicRemote,
            "dynamic" => BatchlogEndpoints::Dynamic,
            _ => BatchlogEndpoints::RandomRemote,
        }
    }

    pub fn internode_compression(&self) -> InternodeCompression {
        match self.text("internode_compression").as_str() {
            "all" => InternodeCompression::All,
            "dc" => InternodeCompression::OtherDataCenters,
            _ => InternodeCompression::None,
        }
    }

    pub fn disk_failure_policy(&self) -> DiskFailurePolicy {
        match self.text("disk_failure_policy").as_str() {
            "best_effort" => DiskFailurePolicy::BestEffort,
            "ignore" => DiskFailurePolicy::Ignore,
            "stop_paranoid" => DiskFailurePolicy::StopParanoid,
            "die" => DiskFailurePolicy::Die,
            _ => DiskFailurePolicy::Stop,
        }
    }

    pub fn commit_failure_policy(&self) -> CommitFailurePolicy {
        match self.text("commit_failure_policy").as_str() {
            "stop_commit" => CommitFailurePolicy::StopCommit,
            "ignore" => CommitFailurePolicy::Ignore,
            "die" => CommitFailurePolicy::Die,
            _ => CommitFailurePolicy::Stop,
        }
    }

    pub fn native_transport(&self) -> Result<NativeTransport> {
        let limit = |name: &str| self.int(name).and_then(|n| u64::try_from(n).ok());
        let idle = self.duration("native_transport_idle_timeout");
        let shard_aware_port = self.port("native_transport_port_shard_aware");
        let port = self.port("native_transport_port");
        let is_shard_aware = self.bool("shard_aware");
        if is_shard_aware && shard_aware_port == port && port != 0 {
            return self.refuse(
                "native_transport_port_shard_aware",
                "native_transport_port is the same port",
            );
        }
        let max_message_size = self.some_base("native_transport_max_message_size");
        for name in [
            "native_transport_max_request_data_in_flight",
            "native_transport_max_request_data_in_flight_per_ip",
        ] {
            if let (Some(message), Some(flight)) = (max_message_size, self.some_base(name))
                && message > flight
            {
                let why = format!("it must not exceed {name}");
                return self.refuse("native_transport_max_message_size", why);
            }
        }
        Ok(NativeTransport {
            start: self.bool("start_native_transport"),
            port,
            shard_aware_port: is_shard_aware.then_some(shard_aware_port),
            max_frame_size: self.frame_size()?,
            max_message_size,
            max_in_flight: self.some_base("native_transport_max_request_data_in_flight"),
            max_in_flight_per_ip: self
                .some_base("native_transport_max_request_data_in_flight_per_ip"),
            max_connections: limit("native_transport_max_concurrent_connections"),
            max_connections_per_ip: limit("native_transport_max_concurrent_connections_per_ip"),
            max_requests_per_second: self.request_rate()?,
            request_timeout: self.duration("native_transport_timeout"),
            queue_wait: self.duration("native_transport_queue_wait"),
            allow_older_protocols: self.bool("native_transport_allow_older_protocols"),
            idle_timeout: (!idle.is_zero()).then_some(idle),
            keepalive: self.bool("rpc_keepalive"),
        })
    }

    fn request_rate(&self) -> Result<Option<u32>> {
        let name = "native_transport_max_requests_per_second";
        if !self.bool("native_transport_rate_limiting_enabled") {
            return Ok(None);
        }
        match self.count(name)? {
            rate if (1..=MAX_REQUEST_RATE).contains(&rate) => Ok(Some(rate)),
            _ => self.refuse(name, "permits/second must be positive, and no more than 1000000000"),
        }
    }

    fn frame_size(&self) -> Result<u64> {
        let name = "native_transport_max_frame_size";
        match self.base(name) {
            0 => self.refuse(name, "it must be positive"),
            n if n >= TWO_GIB => self.refuse(name, "it must be smaller than 2048MiB"),
            n => Ok(n),
        }
    }

    pub fn commitlog_sync(&self) -> Result<CommitLogSync> {
        let period = self.duration("commitlog_sync_period");
        let window = self.duration("commitlog_sync_group_window");
        let found = "commitlog_sync_period is set, which only periodic has";
        match self.text("commitlog_sync").as_str() {
            "batch" if !period.is_zero() => self.refuse("commitlog_sync", found),
            "batch" => Ok(CommitLogSync::Batch),
            "group" if window.is_zero() => {
                self.refuse("commitlog_sync", "set commitlog_sync_group_window too")
            }
            "group" if !period.is_zero() => self.refuse("commitlog_sync", found),
            "group" => Ok(CommitLogSync::Group { window }),
            "periodic" if period.is_zero() => {
                self.refuse("commitlog_sync", "set commitlog_sync_period too")
            }
            _ => {
                let period = if period.is_zero() { Duration::from_secs(10) } else { period };
                let lag = self.some_base("periodic_commitlog_sync_lag_block");
                let lag_block = lag.map_or(period * 3 / 2, Duration::from_nanos);
                Ok(CommitLogSync::Periodic { period, lag_block })
            }
        }
    }

    pub fn commitlog_sync_interval(&self) -> Result<Duration> {
        match self.duration("commitlog_sync_interval") {
            Duration::ZERO => self.refuse("commitlog_sync_interval", "it must be positive"),
            interval => Ok(interval),
        }
    }

    pub fn commitlog_compression(&self) -> Option<LogCompression> {
        self.compression("commitlog_compression")
    }

    fn compression(&self, name: &str) -> Option<LogCompression> {
        let class = self.some_text(&format!("{name}.class_name")).filter(|c| !c.is_empty())?;
        let given = match self.value(&format!("{name}.parameters")) {
            Value::Map(entries) => entries,
            _ => Vec::new(),
        };
        let shown = given.into_iter().filter_map(|(name, value)| Some((name, value.show()?)));
        Some(LogCompression { class, parameters: shown.collect() })
    }

    pub fn hints(&self) -> Result<Hints> {
        let deliveries = match self.count("max_hints_delivery_threads")? {
            0 => return self.refuse("max_hints_delivery_threads", "it must be positive"),
            n => n,
        };
        let is_throttled =
            self.values.get("hinted_handoff_throttle").is_some_and(|v| *v != Value::Null);
        Ok(Hints {
            is_enabled: self.bool("hinted_handoff_enabled"),
            disabled_datacenters: self.list("hinted_handoff_disabled_datacenters"),
            window: self.duration("max_hint_window"),
            is_window_persistent: self.bool("hint_window_persistent_enabled"),
            throttle: is_throttled.then(|| self.base("hinted_handoff_throttle")),
            compression: self.compression("hints_compression"),
            deliveries,
            file_size: self.base("max_hints_file_size"),
            size_per_host: self.base("max_hints_size_per_host"),
            cleans_up: self.bool("auto_hints_cleanup_enabled"),
        })
    }

    pub fn data_dir(&self) -> PathBuf {
        PathBuf::from(self.text("data_dir"))
    }

    pub fn streams(&self) -> Result<Streams> {
        Ok(Streams {
            whole_files: self.bool("stream_entire_sstables"),
            limits: StreamLimits {
                parts: self.base("stream_throughput_outbound"),
                far_parts: self.base("inter_dc_stream_throughput_outbound"),
                whole: self.base("entire_sstable_stream_throughput_outbound"),
                far_whole: self.base("entire_sstable_inter_dc_stream_throughput_outbound"),
            },
            keep_alive: self.duration("streaming_keep_alive_period"),
            tcp_user: self.duration("internode_streaming_tcp_user_timeout"),
            skips_space_check: self.bool("skip_stream_disk_space_check"),
            remembers: self.bool("streaming_stats_enabled"),
            remembered_for: self.duration("streaming_state_expires"),
            remembered_bytes: self.base("streaming_state_size"),
            transfer_timeout: self.duration("stream_transfer_task_timeout"),
            connections: (self.count("streaming_connections_per_host")? as usize).max(1),
            slow_event: self.duration("streaming_slow_events_log_timeout"),
        })
    }

    /// As in Cassandra, where the heap is what the memory is here.
    pub fn repair(&self) -> Result<Repair> {
        let memory = self.some_base("memory_budget").unwrap_or(MEMORY_BUDGET);
        let space = match self.some_base("repair_session_space") {
            Some(bytes) if bytes < MIB => {
                return self.refuse("repair_session_space", "it must be at least 1MiB");
            }
            Some(bytes) => bytes,
            None => (memory / REPAIR_SHARE).max(MIB),
        };
        let depth = self.some_count("repair_session_max_tree_depth")?;
        let depth = match depth.unwrap_or(TREE_DEPTH) {
            depth if !TREE_DEPTHS.contains(&depth) => {
                return self.refuse("repair_session_max_tree_depth", "it must be from 10 to 30");
            }
            depth => depth as u8,
        };
        Ok(Repair {
            session_space: space,
            max_tree_depth: depth,
            optimises_incremental: self.bool("auto_optimise_inc_repair_streams"),
            optimises_full: self.bool("auto_optimise_full_repair_streams"),
            optimises_preview: self.bool("auto_optimise_preview_repair_streams"),
            preview_head_start: self.duration("validation_preview_purge_head_start"),
        })
    }

    pub fn cdc(&self, data_dir: &Path) -> Option<Cdc> {
        let directory = self.some_text("cdc_raw_directory");
        self.bool("cdc_enabled").then(|| Cdc {
            directory: directory.map_or_else(|| data_dir.join("cdc_raw"), PathBuf::from),
            total_space: self.some_base("cdc_total_space").filter(|bytes| *bytes != 0),
            blocks_writes: self.bool("cdc_block_writes"),
            captures_streams: self.bool("cdc_on_repair_enabled"),
            check_interval: self.duration("cdc_free_space_check_interval"),
        })
    }

    pub fn segment_size(&self) -> Result<u64> {
        self.below_two_gib("commitlog_segment_size")
    }

    pub fn check_max_value_size(&self) -> Result<()> {
        self.below_two_gib("max_value_size").map(drop)
    }

    fn below_two_gib(&self, name: &str) -> Result<u64> {
        match self.base(name) {
            0 => self.refuse(name, "it must be positive"),
            n if n >= TWO_GIB => self.refuse(name, "it must be smaller than 2048MiB"),
            n => Ok(n),
        }
    }

    pub fn max_mutation_size(&self) -> Result<u64> {
        let name = "max_mutation_size";
        let half = self.base("commitlog_segment_size") / 2;
        match self.some_base(name) {
            Some(size) if size > half => {
                self.refuse(name, "commitlog_segment_size must be at least twice as large")
            }
            Some(size) => Ok(size),
            None => Ok(half),
        }
    }

    pub fn memtable_space(&self) -> Option<u64> {
        let heap = self.some_base("memtable_heap_space");
        match (heap, self.some_base("memtable_offheap_space")) {
            (None, None) => None,
            (heap, offheap) => Some(heap.unwrap_or(0).saturating_add(offheap.unwrap_or(0))),
        }
    }

    pub fn cleanup_threshold(&self) -> Result<f64> {
        let name = "memtable_cleanup_threshold";
        match self.value(name) {
            Value::Double(v) if !(0.01..=0.99).contains(&v) => {
                self.refuse(name, "it must be from 0.01 to 0.99")
            }
            Value::Double(v) => Ok(v),
            // One over one more than the flush writers, of which there is one.
            _ => Ok(0.5),
        }
    }

    /// The bounds are Cassandra's.
    pub fn phi_convict_threshold(&self) -> Result<f64> {
        let name = "phi_convict_threshold";
        match self.value(name) {
            Value::Double(v) if (5.0..=16.0).contains(&v) => Ok(v),
            _ => self.refuse(name, "it must be from 5 to 16"),
        }
    }

    pub fn compactors(&self) -> Result<Option<u32>> {
        let name = "concurrent_compactors";
        match self.some_count(name)? {
            Some(0) => self.refuse(name, "it must be positive"),
            other => Ok(other),
        }
    }

    pub fn prepared_cache(&self) -> Result<Option<u64>> {
        let name = "prepared_statements_cache_size";
        match self.some_base(name) {
            Some(0) => self.refuse(name, "it must be positive"),
            other => Ok(other),
        }
    }

    pub fn unlogged_batch_partitions_warn(&self) -> Result<u64> {
        Ok(self.count("unlogged_batch_across_partitions_warn_threshold")?.into())
    }

    pub fn timeouts(&self) -> Timeouts {
        let of = |name: &str| self.duration(name).max(LEAST_TIMEOUT);
        Timeouts {
            read: of("read_request_timeout"),
            range: of("range_request_timeout"),
            write: of("write_request_timeout"),
            counter_write: of("counter_write_request_timeout"),
            cas_contention: of("cas_contention_timeout"),
            truncate: of("truncate_request_timeout"),
            repair: self.duration("repair_request_timeout"),
            internode_connect: self.duration("internode_tcp_connect_timeout"),
            internode_user: self.duration("internode_tcp_user_timeout"),
            other: of("request_timeout"),
        }
    }

    pub fn admin(&self) -> Result<Option<(Host, u16)>> {
        let address = self.host("admin_address")?;
        Ok(self.bool("admin_enabled").then(|| (address, self.port("admin_port"))))
    }
}

fn class<'a>(text: &'a str, package: &str) -> &'a str {
    text.strip_prefix(package).unwrap_or(text)
}
