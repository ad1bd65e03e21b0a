//! What is told of a compaction that ended.

use std::time::Duration;

use super::merge::Merged;

/// A compaction that ended: a row of `system.compaction_history`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// A time-UUID.
    pub id: [u8; 16],
    /// The table's keyspace.
    pub keyspace: String,
    /// The table's name.
    pub table: String,
    /// When it ended, in milliseconds.
    pub millis: i64,
    /// How long it took.
    pub took: Duration,
    /// Bytes of its inputs' data, as stored.
    pub bytes_in: u64,
    /// Bytes of its outputs' data, as stored.
    pub bytes_out: u64,
    /// How many partitions were in one input, in two, ...
    pub merged: Merged,
    /// The kind of operation, in Cassandra's words.
    pub kind: &'static str,
}
