//! Words and bounds that several keys share.

use crate::key::{Kind, Standing};

/// A Java `int`.
pub(super) const INT: Kind = Kind::Int(i32::MIN as i64, i32::MAX as i64);
/// A Java `long`.
pub(super) const LONG: Kind = Kind::Int(i64::MIN, i64::MAX);
/// About packets between nodes.
pub(super) const SENT_AT_ONCE: Standing =
    Standing::Idle("the node sends messages to other nodes at once, without waiting for more");
/// A port; Cassandra binds it, so anything beyond 16 bits cannot serve.
pub(super) const PORT: Kind = Kind::Int(0, u16::MAX as i64);

pub(super) static BATCHLOG_ENDPOINT_STRATEGY: &[&str] =
    &["random_remote", "prefer_local", "dynamic_remote", "dynamic"];
pub(super) static COMMIT_FAILURE_POLICY: &[&str] = &["stop", "stop_commit", "ignore", "die"];
pub(super) static COMMIT_LOG_SYNC: &[&str] = &["periodic", "batch", "group"];
pub(crate) static CONSISTENCY_LEVEL: &[&str] = &[
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "SERIAL",
    "LOCAL_SERIAL",
    "LOCAL_ONE",
    "NODE_LOCAL",
];
pub(super) static METRICS_PER_TABLE: &[&str] = &["default", "all"];
pub(super) static LOG_TO: &[&str] = &["stdout", "file", "both"];
pub(super) static LOG_FORMAT: &[&str] = &["pattern", "json"];
pub(super) static LOG_LEVEL: &[&str] = &["ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"];
pub(super) static TOKEN_ALLOCATION: &[&str] = &["even", "cassandra", "random"];
pub(super) static READ_ACCESS_MODE: &[&str] = &["mixed", "standard"];
pub(super) static BACKGROUND_ACCESS_MODE: &[&str] = &["direct", "standard"];
pub(super) static CORRUPTED_TOMBSTONE_STRATEGY: &[&str] = &["disabled", "warn", "exception"];
pub(super) static CQL_START_TIME: &[&str] = &["REQUEST", "QUEUE"];
pub(super) static DISK_ACCESS_MODE: &[&str] =
    &["auto", "mmap", "mmap_index_only", "standard", "legacy", "direct"];
pub(super) static DISK_FAILURE_POLICY: &[&str] =
    &["best_effort", "stop", "ignore", "stop_paranoid", "die"];
pub(super) static DISK_OPTIMIZATION_STRATEGY: &[&str] = &["ssd", "spinning"];
pub(super) static FLUSH_COMPRESSION: &[&str] = &["none", "fast", "table"];
pub(super) static INTERNODE_COMPRESSION: &[&str] = &["all", "none", "dc"];
pub(super) static INTERNODE_ENCRYPTION: &[&str] = &["all", "none", "dc", "rack"];
pub(super) static MEMTABLE_ALLOCATION_TYPE: &[&str] = &[
    "unslabbed_heap_buffers",
    "unslabbed_heap_buffers_logged",
    "heap_buffers",
    "offheap_buffers",
    "offheap_objects",
];
pub(super) static PAXOS_ON_LINEARIZABILITY_VIOLATION: &[&str] = &["fail", "log", "ignore"];
pub(super) static PAXOS_STATE_PURGING: &[&str] = &["legacy", "gc_grace", "repaired"];
pub(super) static PAXOS_VARIANT: &[&str] = &[
    "v1_without_linearizable_reads_or_rejected_writes",
    "v1",
    "v2_without_linearizable_reads",
    "v2_without_linearizable_reads_or_rejected_writes",
    "v2",
];
pub(super) static REPAIR_COMMAND_POOL_FULL_STRATEGY: &[&str] = &["queue", "reject"];
pub(super) static STORAGE_COMPATIBILITY_MODE: &[&str] = &["CASSANDRA_4", "UPGRADING", "NONE"];
pub(super) static USER_FUNCTION_TIMEOUT_POLICY: &[&str] = &["ignore", "die", "die_immediate"];
