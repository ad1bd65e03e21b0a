//! Keys that earlier releases had and Cassandra 4.0 to 5.0 dropped, with what stands in their
//! place. From class `Config` of 1.2, 2.0, 2.1, 2.2, 3.11, 4.1 and 5.0.

/// A key that is gone.
#[derive(Debug)]
pub struct Dropped {
    /// Its name.
    pub name: &'static str,
    /// The first release without it.
    pub since: &'static str,
    /// What the operator can do.
    pub instead: &'static str,
}

const fn dropped(name: &'static str, since: &'static str, instead: &'static str) -> Dropped {
    Dropped { name, since, instead }
}

const THRIFT: &str = "remove it; clients use the native protocol, of which \
                      native_transport_port and native_transport_* say the rest";
const SCHEDULER: &str = "remove it; native_transport_max_concurrent_connections and \
                         native_transport_max_request_data_in_flight limit requests";
const REMOVE: &str = "remove it; nothing stands in its place";
const CACHES: &str = "remove it; memtable_heap_space and the *_cache_size keys limit memory";

/// Every one.
pub static DROPPED: &[Dropped] = &[
    dropped("authority", "2.0", "set authorizer"),
    dropped("commitlog_periodic_queue_size", "5.0", REMOVE),
    dropped("commitlog_segment_recycling", "2.2", REMOVE),
    dropped(
        "commitlog_sync_batch_window_in_ms",
        "5.0",
        "remove it; batch syncs at once, and group waits for commitlog_sync_group_window",
    ),
    dropped("compaction_preheat_key_cache", "2.1", "set key_cache_size"),
    dropped("concurrent_replicates", "5.0", REMOVE),
    dropped("encryption_options", "4.0", "set server_encryption_options"),
    dropped("flush_largest_memtables_at", "2.0", CACHES),
    dropped("hinted_handoff_enabled_by_dc", "3.0", "set hinted_handoff_disabled_datacenters"),
    dropped("hinted_handoff_enabled_global", "3.0", "set hinted_handoff_enabled"),
    dropped("in_memory_compaction_limit_in_mb", "2.1", REMOVE),
    dropped("index_interval", "4.0", "set min_index_interval of tables"),
    dropped("memory_allocator", "3.0", REMOVE),
    dropped("memtable_allocator", "2.1", "set memtable_allocation_type"),
    dropped("memtable_flush_queue_size", "2.1", REMOVE),
    dropped(
        "memtable_total_space_in_mb",
        "2.1",
        "set memtable_heap_space and memtable_offheap_space",
    ),
    dropped("multithreaded_compaction", "2.1", "set concurrent_compactors"),
    dropped(
        "native_transport_max_negotiable_protocol_version",
        "5.0",
        "set native_transport_allow_older_protocols",
    ),
    dropped("native_transport_min_threads", "2.0", REMOVE),
    dropped("populate_io_cache_on_flush", "2.1", REMOVE),
    dropped("preheat_kernel_page_cache", "2.1", REMOVE),
    dropped("reduce_cache_capacity_to", "2.0", CACHES),
    dropped("reduce_cache_sizes_at", "2.0", CACHES),
    dropped("request_scheduler", "4.0", SCHEDULER),
    dropped("request_scheduler_id", "4.0", SCHEDULER),
    dropped("request_scheduler_options", "4.0", SCHEDULER),
    dropped("row_cache_provider", "2.0", "set row_cache_size"),
    dropped("rpc_listen_backlog", "4.0", THRIFT),
    dropped("rpc_max_threads", "4.0", THRIFT),
    dropped("rpc_min_threads", "4.0", THRIFT),
    dropped("rpc_port", "4.0", THRIFT),
    dropped("rpc_recv_buff_size_in_bytes", "4.0", THRIFT),
    dropped("rpc_send_buff_size_in_bytes", "4.0", THRIFT),
    dropped("rpc_server_type", "4.0", THRIFT),
    dropped("start_rpc", "4.0", "set start_native_transport"),
    dropped("streaming_socket_timeout_in_ms", "4.0", "set streaming_keep_alive_period"),
    dropped("thrift_framed_transport_size_in_mb", "4.0", THRIFT),
    dropped("thrift_max_message_length_in_mb", "4.0", THRIFT),
    dropped(
        "thrift_prepared_statements_cache_size_mb",
        "4.0",
        "set prepared_statements_cache_size",
    ),
    dropped("tombstone_debug_threshold", "2.0", "set tombstone_warn_threshold"),
];

/// What is known of a key that is gone.
pub(crate) fn find(name: &str) -> Option<&'static Dropped> {
    DROPPED.iter().find(|dropped| dropped.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_dropped_key_is_one_of_today_or_an_old_name() {
        let index = crate::table::Index::new();
        for dropped in DROPPED {
            assert!(index.get(dropped.name).is_none(), "{}", dropped.name);
            assert!(!crate::OLD.iter().any(|old| old.name == dropped.name), "{}", dropped.name);
            for word in dropped.instead.split([' ', ',', ';']) {
                let is_key = word.contains('_') && !word.contains('*');
                let is_known = index.get(word).is_some() || index.is_section(word);
                assert!(!is_key || is_known || word == "min_index_interval", "{word}");
            }
        }
    }
}
