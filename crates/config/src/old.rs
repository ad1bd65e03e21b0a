//! Names that earlier releases gave to today's keys, and what a value under them means.
//!
//! From the `@Replaces` annotations of `config.Config` and `config.Converters`. Most old names
//! carry their unit, so that their value is a bare number of the new key's smallest unit.

use crate::error::Result;
use crate::key::{Key, Value, int_of};
use crate::quantity::{Quantity, SIZE};
use crate::yaml::{Node, Value as Yaml};

/// A former name.
#[derive(Debug)]
pub struct Old {
    /// The former name.
    pub name: &'static str,
    /// Today's.
    pub new: &'static str,
    /// What its values mean.
    pub unit: Meaning,
}

/// How a value under an old name becomes one of the new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Of the new key's form.
    Same,
    /// A number of the new key's smallest unit.
    Least,
    /// As `Least`, with a fraction, which is rounded.
    LeastDouble,
    /// As `Least`; a negative number is zero.
    LeastOrZero,
    /// As `Least`; a negative number is unset.
    LeastOrOff,
    /// A number of MiB for a key that counts bytes.
    Mebibytes,
    /// A size in MiB at least for a key that counts bytes.
    MebibytesText,
    /// A number of MiB a second.
    MebibytesPerSecond,
    /// A number of 10^6 bits a second.
    MegabitsPerSecond,
    /// A count that included the system's own: this many are taken off.
    BeyondSystem(i64),
}

use Meaning::*;

/// Keyspaces of a 5.0.9 node that are its own, local and replicated.
const SYSTEM_KEYSPACES: i64 = 5;
/// Tables of a 5.0.9 node that are its own.
const SYSTEM_TABLES: i64 = 48;
/// Bytes a second in a megabit a second.
const MEGABIT: u64 = 125_000;

const fn old(name: &'static str, new: &'static str, unit: Meaning) -> Old {
    Old { name, new, unit }
}

impl Old {
    /// Reads a value given under this name for `key`, which is the new one's.
    pub(crate) fn read(&self, key: &Key, node: &Node) -> Result<Value> {
        if self.unit == Same || node.is_null() {
            return key.read(node);
        }
        let Yaml::Scalar { text, .. } = &node.value else { return Err(key.mismatch(&node.show())) };
        self.convert(key, text).ok_or_else(|| crate::error::Error::Value {
            key: self.name.to_string(),
            value: text.clone(),
            expected: self.expected(key),
        })
    }

    fn convert(&self, key: &Key, text: &str) -> Option<Value> {
        let number = int_of(text);
        let count = || number.and_then(|n| u64::try_from(n).ok());
        if let BeyondSystem(own) = self.unit {
            return Some(Value::Int(number?.checked_sub(own)?));
        }
        let crate::key::Kind::Quantity(bound) = key.kind else { return None };
        let quantity = match self.unit {
            Least => bound.of_least(count()?),
            LeastDouble => bound.of_least(round(text)?),
            LeastOrZero => bound.of_least(number?.max(0).unsigned_abs()),
            LeastOrOff if number? < 0 => return Some(Value::Null),
            LeastOrOff => bound.of_least(count()?),
            Mebibytes => bound.of(count()?, "MiB"),
            MebibytesText => {
                bound.of(crate::quantity::MIB_INT.parse(text)?.base(), SIZE.first()?.symbol)
            }
            MebibytesPerSecond => bound.of(count()?, "MiB/s"),
            MegabitsPerSecond => bound.of_least(count()?.checked_mul(MEGABIT)?),
            Same | BeyondSystem(_) => None,
        };
        quantity.map(Value::Quantity)
    }

    fn expected(&self, key: &Key) -> String {
        let crate::key::Kind::Quantity(bound) = key.kind else { return "a whole number".into() };
        let least = bound.units.get(bound.least).map_or("", |u| u.symbol);
        let number = match self.unit {
            Mebibytes => "a whole number of MiB".to_string(),
            MebibytesText => return crate::quantity::MIB_INT.to_string(),
            MebibytesPerSecond => "a whole number of MiB/s".to_string(),
            MegabitsPerSecond => "a whole number of megabits a second".to_string(),
            _ => format!("a whole number of {least}"),
        };
        format!("{number} (or, under its name {}, {bound})", key.name)
    }

    /// The new key's value as `system_views.settings` shows it under this name.
    pub(crate) fn show(&self, key: &Key, value: &Value) -> Option<String> {
        match (self.unit, value) {
            (Same | MebibytesText, _) => value.show(),
            (LeastOrOff, Value::Null) => Some("-1".to_string()),
            (BeyondSystem(own), Value::Int(n)) => Some(n.saturating_add(own).to_string()),
            (_, Value::Quantity(q)) => Some(self.count(key, *q)),
            _ => value.show(),
        }
    }

    fn count(&self, key: &Key, q: Quantity) -> String {
        let base = q.base();
        let crate::key::Kind::Quantity(bound) = key.kind else { return base.to_string() };
        let least = bound.units.get(bound.least).map_or(1, |u| u.scale);
        match self.unit {
            LeastDouble => format!("{:.1}", base as f64 / least as f64),
            Mebibytes | MebibytesPerSecond => (base >> 20).to_string(),
            MegabitsPerSecond => ((base as f64 / MEGABIT as f64).round() as u64).to_string(),
            _ => (base / least).to_string(),
        }
    }
}

/// The nearest whole number, halves upwards; what is no number is zero.
fn round(text: &str) -> Option<u64> {
    let v: f64 = text.parse().ok()?;
    match v {
        v if v.is_nan() => Some(0),
        v if (0.0..9e15).contains(&v) => Some((v + 0.5).floor() as u64),
        _ => None,
    }
}

/// Every old name.
pub static OLD: &[Old] = &[
    old("batch_size_fail_threshold_in_kb", "batch_size_fail_threshold", Least),
    old("batch_size_warn_threshold_in_kb", "batch_size_warn_threshold", Least),
    old("batchlog_replay_throttle_in_kb", "batchlog_replay_throttle", Least),
    old("cache_load_timeout_seconds", "cache_load_timeout", LeastOrZero),
    old("cas_contention_timeout_in_ms", "cas_contention_timeout", Least),
    old("cdc_free_space_check_interval_ms", "cdc_free_space_check_interval", Least),
    old("cdc_total_space_in_mb", "cdc_total_space", Least),
    old("column_index_cache_size_in_kb", "column_index_cache_size", Least),
    old("column_index_size_in_kb", "column_index_size", Least),
    old("commitlog_segment_size_in_mb", "commitlog_segment_size", Least),
    old("commitlog_sync_group_window_in_ms", "commitlog_sync_group_window", LeastDouble),
    old("commitlog_sync_period_in_ms", "commitlog_sync_period", Least),
    old("commitlog_total_space_in_mb", "commitlog_total_space", Least),
    old(
        "compaction_large_partition_warning_threshold",
        "partition_size_warn_threshold",
        MebibytesText,
    ),
    old(
        "compaction_large_partition_warning_threshold_mb",
        "partition_size_warn_threshold",
        Mebibytes,
    ),
    old("compaction_throughput_mb_per_sec", "compaction_throughput", MebibytesPerSecond),
    old("compaction_tombstone_warning_threshold", "partition_tombstones_warn_threshold", Same),
    old("counter_cache_size_in_mb", "counter_cache_size", Least),
    old("counter_write_request_timeout_in_ms", "counter_write_request_timeout", Least),
    old("credentials_update_interval_in_ms", "credentials_update_interval", LeastOrOff),
    old("credentials_validity_in_ms", "credentials_validity", Least),
    old("cross_node_timeout", "internode_timeout", Same),
    old("dynamic_snitch_reset_interval_in_ms", "dynamic_snitch_reset_interval", Least),
    old("dynamic_snitch_update_interval_in_ms", "dynamic_snitch_update_interval", Least),
    old("enable_drop_compact_storage", "drop_compact_storage_enabled", Same),
    old("enable_materialized_views", "materialized_views_enabled", Same),
    old("enable_sasi_indexes", "sasi_indexes_enabled", Same),
    old("enable_scripted_user_defined_functions", "scripted_user_defined_functions_enabled", Same),
    old("enable_transient_replication", "transient_replication_enabled", Same),
    old("enable_user_defined_functions", "user_defined_functions_enabled", Same),
    old("enable_user_defined_functions_threads", "user_defined_functions_threads_enabled", Same),
    old("file_cache_size_in_mb", "file_cache_size", Least),
    old("gc_log_threshold_in_ms", "gc_log_threshold", Least),
    old("gc_warn_threshold_in_ms", "gc_warn_threshold", Least),
    old("hinted_handoff_throttle_in_kb", "hinted_handoff_throttle", Least),
    old("hints_flush_period_in_ms", "hints_flush_period", Least),
    old("index_summary_capacity_in_mb", "index_summary_capacity", Least),
    old("index_summary_resize_interval_in_minutes", "index_summary_resize_interval", LeastOrOff),
    old(
        "inter_dc_stream_throughput_outbound_megabits_per_sec",
        "inter_dc_stream_throughput_outbound",
        MegabitsPerSecond,
    ),
    old(
        "internode_application_receive_queue_capacity_in_bytes",
        "internode_application_receive_queue_capacity",
        Least,
    ),
    old(
        "internode_application_receive_queue_reserve_endpoint_capacity_in_bytes",
        "internode_application_receive_queue_reserve_endpoint_capacity",
        Least,
    ),
    old(
        "internode_application_receive_queue_reserve_global_capacity_in_bytes",
        "internode_application_receive_queue_reserve_global_capacity",
        Least,
    ),
    old(
        "internode_application_send_queue_capacity_in_bytes",
        "internode_application_send_queue_capacity",
        Least,
    ),
    old(
        "internode_application_send_queue_reserve_endpoint_capacity_in_bytes",
        "internode_application_send_queue_reserve_endpoint_capacity",
        Least,
    ),
    old(
        "internode_application_send_queue_reserve_global_capacity_in_bytes",
        "internode_application_send_queue_reserve_global_capacity",
        Least,
    ),
    old("internode_max_message_size_in_bytes", "internode_max_message_size", Least),
    old("internode_recv_buff_size_in_bytes", "internode_socket_receive_buffer_size", Least),
    old("internode_send_buff_size_in_bytes", "internode_socket_send_buffer_size", Least),
    old(
        "internode_socket_receive_buffer_size_in_bytes",
        "internode_socket_receive_buffer_size",
        Least,
    ),
    old("internode_socket_send_buffer_size_in_bytes", "internode_socket_send_buffer_size", Least),
    old(
        "internode_streaming_tcp_user_timeout_in_ms",
        "internode_streaming_tcp_user_timeout",
        Least,
    ),
    old("internode_tcp_connect_timeout_in_ms", "internode_tcp_connect_timeout", Least),
    old("internode_tcp_user_timeout_in_ms", "internode_tcp_user_timeout", Least),
    old("key_cache_size_in_mb", "key_cache_size", Least),
    old(
        "keyspace_count_warn_threshold",
        "keyspaces_warn_threshold",
        BeyondSystem(SYSTEM_KEYSPACES),
    ),
    old("max_hint_window_in_ms", "max_hint_window", Least),
    old("max_hints_file_size_in_mb", "max_hints_file_size", Least),
    old("max_mutation_size_in_kb", "max_mutation_size", Least),
    old("max_value_size_in_mb", "max_value_size", Least),
    old("memtable_heap_space_in_mb", "memtable_heap_space", Least),
    old("memtable_offheap_space_in_mb", "memtable_offheap_space", Least),
    old("min_free_space_per_drive_in_mb", "min_free_space_per_drive", Least),
    old("native_transport_idle_timeout_in_ms", "native_transport_idle_timeout", Least),
    old(
        "native_transport_max_concurrent_requests_in_bytes",
        "native_transport_max_request_data_in_flight",
        LeastOrOff,
    ),
    old(
        "native_transport_max_concurrent_requests_in_bytes_per_ip",
        "native_transport_max_request_data_in_flight_per_ip",
        LeastOrOff,
    ),
    old("native_transport_max_frame_size_in_mb", "native_transport_max_frame_size", Least),
    old(
        "native_transport_receive_queue_capacity_in_bytes",
        "native_transport_receive_queue_capacity",
        Least,
    ),
    old("networking_cache_size_in_mb", "networking_cache_size", Least),
    old("periodic_commitlog_sync_lag_block_in_ms", "periodic_commitlog_sync_lag_block", Least),
    old("permissions_update_interval_in_ms", "permissions_update_interval", LeastOrOff),
    old("permissions_validity_in_ms", "permissions_validity", Least),
    old("prepared_statements_cache_size_mb", "prepared_statements_cache_size", Least),
    old("range_request_timeout_in_ms", "range_request_timeout", Least),
    old("read_request_timeout_in_ms", "read_request_timeout", Least),
    old("repair_request_timeout_in_ms", "repair_request_timeout", Least),
    old("repair_session_space_in_mb", "repair_session_space", Least),
    old("request_timeout_in_ms", "request_timeout", Least),
    old("roles_update_interval_in_ms", "roles_update_interval", LeastOrOff),
    old("roles_validity_in_ms", "roles_validity", Least),
    old("row_cache_size_in_mb", "row_cache_size", Least),
    old(
        "server_encryption_options.enable_legacy_ssl_storage_port",
        "server_encryption_options.legacy_ssl_storage_port_enabled",
        Same,
    ),
    old("slow_query_log_timeout_in_ms", "slow_query_log_timeout", Least),
    old("sstable_preemptive_open_interval_in_mb", "sstable_preemptive_open_interval", LeastOrOff),
    old(
        "stream_throughput_outbound_megabits_per_sec",
        "stream_throughput_outbound",
        MegabitsPerSecond,
    ),
    old("streaming_keep_alive_period_in_secs", "streaming_keep_alive_period", Least),
    old("table_count_warn_threshold", "tables_warn_threshold", BeyondSystem(SYSTEM_TABLES)),
    old("tracetype_query_ttl", "trace_type_query_ttl", Least),
    old("tracetype_repair_ttl", "trace_type_repair_ttl", Least),
    old("trickle_fsync_interval_in_kb", "trickle_fsync_interval", Least),
    old("truncate_request_timeout_in_ms", "truncate_request_timeout", Least),
    old("user_defined_function_fail_timeout", "user_defined_functions_fail_timeout", Least),
    old("user_defined_function_warn_timeout", "user_defined_functions_warn_timeout", Least),
    old(
        "validation_preview_purge_head_start_in_sec",
        "validation_preview_purge_head_start",
        LeastOrZero,
    ),
    old("write_request_timeout_in_ms", "write_request_timeout", Least),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn every_old_name_leads_to_a_key_that_its_meaning_fits() {
        let index = table::Index::new();
        for old in OLD {
            let key = index.get(old.new).unwrap_or_else(|| panic!("{} -> {}", old.name, old.new));
            assert!(index.get(old.name).is_none(), "{} is a name of today", old.name);
            if old.unit != Same {
                let text = if old.unit == MebibytesText { "7MiB" } else { "7" };
                assert!(old.convert(key, text).is_some(), "{}", old.name);
            }
        }
    }

    #[test]
    fn old_numbers_mean_the_units_of_their_names() {
        let index = table::Index::new();
        let read = |name: &str, text: &str| {
            let old = OLD.iter().find(|o| o.name == name).unwrap();
            old.convert(index.get(old.new).unwrap(), text).unwrap().or_null()
        };
        assert_eq!(read("read_request_timeout_in_ms", "5000"), "5000ms");
        assert_eq!(read("commitlog_segment_size_in_mb", "32"), "32MiB");
        assert_eq!(read("compaction_throughput_mb_per_sec", "16"), "16MiB/s");
        assert_eq!(read("stream_throughput_outbound_megabits_per_sec", "200"), "25000000B/s");
        assert_eq!(read("credentials_update_interval_in_ms", "-1"), "null");
        assert_eq!(read("commitlog_sync_group_window_in_ms", "1.5"), "2ms");
        assert_eq!(read("keyspace_count_warn_threshold", "40"), "35");
        assert_eq!(read("compaction_large_partition_warning_threshold_mb", "100"), "100MiB");
        assert_eq!(read("compaction_large_partition_warning_threshold", "1GiB"), "1073741824B");
    }
}
