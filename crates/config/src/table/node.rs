//! Keys of Cassandra 5.0.9 about identity, tokens, timeouts, concurrency and the rest.

use crate::key::Kind::*;
use crate::key::Standing::*;
use crate::key::{Key, key};
use crate::quantity::{MIB, MILLIS, SECONDS_INT};
use crate::table::reasons::{
    ALWAYS_WARNS, DUPLICATES, INDEX_STATUS, NEW_IDS, NO_FIGURE, NO_FUNCTION, NO_QUEUE,
    NO_REPAIR_TRACE, NO_VIEW, PACKED, THREADS,
};
use crate::table::words::{
    CONSISTENCY_LEVEL, CQL_START_TIME, INT, STORAGE_COMPATIBILITY_MODE,
    USER_FUNCTION_TIMEOUT_POLICY,
};

pub(super) static KEYS: &[Key] = &[
    key("allocate_tokens_for_keyspace", Text, "null", Served),
    key("allocate_tokens_for_local_replication_factor", INT, "null", Served),
    key("allow_extra_insecure_udfs", Bool, "false", NO_FUNCTION),
    key("allow_insecure_udfs", Bool, "false", NO_FUNCTION),
    key("auto_bootstrap", Bool, "true", Served),
    key("available_processors", INT, "-1", THREADS),
    key("cas_contention_timeout", Quantity(&MILLIS), "1800ms", Served),
    key("check_for_duplicate_rows_during_compaction", Bool, "true", DUPLICATES),
    key("check_for_duplicate_rows_during_reads", Bool, "true", DUPLICATES),
    key("cluster_name", Text, "Test Cluster", Served),
    key("concurrent_counter_writes", INT, "32", THREADS),
    key("concurrent_materialized_view_builders", INT, "1", NO_VIEW),
    key("concurrent_materialized_view_writes", INT, "32", NO_VIEW),
    key("concurrent_reads", INT, "32", THREADS),
    key("concurrent_writes", INT, "32", THREADS),
    key("counter_write_request_timeout", Quantity(&MILLIS), "5000ms", Served),
    key("cql_start_time", Enum(CQL_START_TIME), "REQUEST", NO_QUEUE),
    key("default_compaction.class_name", Text, "null", Served),
    key("default_compaction.parameters", Map, "null", Served),
    key("default_keyspace_rf", INT, "1", Served),
    key("default_secondary_index", Text, "legacy_local_table", NotYet),
    key("enforce_native_deadline_for_hints", Bool, "false", NO_QUEUE),
    key("force_new_prepared_statement_behaviour", Bool, "false", NEW_IDS),
    key("force_optimized_index_status_format", Bool, "false", INDEX_STATUS),
    key("ideal_consistency_level", Enum(CONSISTENCY_LEVEL), "null", NO_FIGURE),
    key("initial_range_tombstone_list_allocation_size", INT, "1", PACKED),
    key("initial_token", Text, "null", Served),
    key("log_out_of_token_range_requests", Bool, "true", ALWAYS_WARNS),
    key("num_tokens", INT, "null", Served),
    key("partitioner", Text, "null", Served),
    key("prepared_statements_cache_size", Quantity(&MIB), "null", Served),
    key("range_request_timeout", Quantity(&MILLIS), "10000ms", Served),
    key("range_tombstone_list_growth_factor", Double, "1.5", PACKED),
    key("read_request_timeout", Quantity(&MILLIS), "5000ms", Served),
    key("reject_out_of_token_range_requests", Bool, "false", NotYet),
    key("request_timeout", Quantity(&MILLIS), "10000ms", Served),
    key("slow_query_log_timeout", Quantity(&MILLIS), "500ms", Served),
    key("startup_checks", Map, "{}", Served),
    key("storage_compatibility_mode", Enum(STORAGE_COMPATIBILITY_MODE), "CASSANDRA_4", Served),
    key("trace_type_query_ttl", Quantity(&SECONDS_INT), "1d", Served),
    key("trace_type_repair_ttl", Quantity(&SECONDS_INT), "7d", NO_REPAIR_TRACE),
    key("truncate_request_timeout", Quantity(&MILLIS), "60000ms", Served),
    key("use_deterministic_table_id", Bool, "false", Served),
    key("user_defined_functions_fail_timeout", Quantity(&MILLIS), "1500ms", NO_FUNCTION),
    key("user_defined_functions_warn_timeout", Quantity(&MILLIS), "500ms", NO_FUNCTION),
    key("user_function_timeout_policy", Enum(USER_FUNCTION_TIMEOUT_POLICY), "die", NO_FUNCTION),
    key("write_request_timeout", Quantity(&MILLIS), "2000ms", Served),
];
