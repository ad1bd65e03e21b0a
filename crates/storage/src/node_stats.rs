//! What the node counts about its background work.

use std::cell::Cell;

/// Counters for metrics.
#[derive(Debug, Default)]
pub struct NodeStats {
    /// Flushes that wrote a file.
    pub flushes: Cell<u64>,
    /// Bytes that flushes wrote.
    pub flushed_bytes: Cell<u64>,
    /// Compactions that ended.
    pub compactions: Cell<u64>,
    /// Bytes that compactions read.
    pub compacted_bytes: Cell<u64>,
    /// SSTables that were dropped whole, because all in them had expired.
    pub expired: Cell<u64>,
    /// Flushes and compactions that failed.
    pub failures: Cell<u64>,
    /// Failures of disks that were met.
    pub disk_failures: Cell<u64>,
}
