//! What binding needs beside the statement.

use crate::value::Values;

/// Limits that the operator sets (guardrails and thresholds of `cassandra.yaml`).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `batch_size_warn_threshold`, in bytes.
    pub batch_warn_bytes: u64,
    /// `batch_size_fail_threshold`, in bytes.
    pub batch_fail_bytes: u64,
    /// `unlogged_batch_across_partitions_warn_threshold`.
    pub unlogged_batch_partitions_warn: u32,
}

/// One execution of a statement.
pub struct Bind<'a> {
    /// The values of its markers.
    pub values: &'a dyn Values,
    /// The timestamp of what it writes, in microseconds: the request's, else one unique to this node.
    /// `USING TIMESTAMP` comes before it.
    pub timestamp: i64,
    /// "Now", in seconds since the epoch: fixed by the coordinator for the whole request.
    pub now_seconds: i64,
    /// "Now" in milliseconds, for `now()` and its kin.
    pub now_millis: i64,
    /// Version of the native protocol: collections in values have its form.
    pub protocol_version: u8,
    /// Gives version 1 UUIDs that nobody else gives: for `now()` and for the cells of lists.
    pub time_uuid: &'a dyn Fn() -> [u8; 16],
    /// Gives 16 random bytes, for `uuid()`.
    pub random: &'a dyn Fn() -> [u8; 16],
    /// Thresholds of the operator.
    pub limits: &'a Limits,
}
