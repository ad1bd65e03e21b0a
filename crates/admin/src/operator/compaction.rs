//! Compaction.

use crate::model::{AutoCompaction, CompactionStats, PastCompaction, TableName, Thresholds};

use super::Answer;

/// Compaction.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait CompactionOperator {
    /// What compaction did and does.
    async fn compaction_stats(&self) -> Answer<CompactionStats>;
    /// The compactions of the last week, the latest first.
    async fn compaction_history(&self) -> Answer<Vec<PastCompaction>>;
    /// Compacts tables, chosen as in [`flush`](super::SSTablesOperator::flush), as far as their
    /// strategy will; with `split` into several files where it would make one.
    async fn compact(&self, keyspace: &str, tables: &[String], split: bool) -> Answer<()>;
    /// Compacts the SSTables of these data files; those that are not live are left out.
    async fn compact_files(&self, files: &[String]) -> Answer<()>;
    /// Stops compactions under way: those of a kind, or the one of an id.
    async fn stop_compactions(&self, which: StopWhich) -> Answer<()>;
    /// `compaction_throughput`, in bytes a second; 0 is no limit.
    async fn compaction_throughput(&self) -> Answer<u64>;
    /// Sets it until the next start.
    async fn set_compaction_throughput(&self, bytes_per_second: u64) -> Answer<()>;
    /// `concurrent_compactors`.
    async fn concurrent_compactors(&self) -> Answer<u64>;
    /// Sets it until the next start.
    async fn set_concurrent_compactors(&self, count: u64) -> Answer<()>;
    /// How few and how many SSTables of a table are compacted at once.
    async fn thresholds(&self, table: &TableName) -> Answer<Thresholds>;
    /// Sets that, until the next start.
    async fn set_thresholds(&self, table: &TableName, thresholds: Thresholds) -> Answer<()>;
    /// Which tables, chosen as in [`flush`](super::SSTablesOperator::flush), are compacted by
    /// themselves.
    async fn autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
    ) -> Answer<Vec<AutoCompaction>>;
    /// Lets tables, chosen as in [`flush`](super::SSTablesOperator::flush), be compacted by
    /// themselves, or not.
    async fn set_autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
        enabled: bool,
    ) -> Answer<()>;
}

/// Which compactions to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopWhich {
    /// Those of a kind, as [`kind`](crate::RunningCompaction::kind) names it; all, if there is
    /// none.
    Kind(Option<String>),
    /// The one of an id.
    Id(String),
}
