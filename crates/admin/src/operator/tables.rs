//! Keyspaces and tables.

use crate::model::{DataFile, Replication, TableHistograms, TableName, TablePaths, TableStats};

use super::Answer;

/// Keyspaces and tables.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait TablesOperator {
    /// All keyspaces but virtual ones, in the order to show them in.
    async fn keyspaces(&self) -> Answer<Vec<Replication>>;
    /// Counters of all tables but virtual ones, those of a keyspace together.
    async fn table_stats(&self) -> Answer<Vec<TableStats>>;
    /// Percentiles of a table, or of all tables but virtual ones.
    async fn histograms(&self, table: Option<&TableName>) -> Answer<Vec<TableHistograms>>;
    /// The directories of a table's files; of all tables of a keyspace, if there is no name.
    async fn data_paths(&self, keyspace: &str, table: Option<&str>) -> Answer<Vec<TablePaths>>;
    /// The data files of a table that may hold a partition. The key is text, or hexadecimal digits
    /// of its bytes.
    async fn sstables_of(&self, table: &TableName, key: &str, hex: bool) -> Answer<Vec<DataFile>>;
    /// Estimates the sizes of all tables now.
    async fn refresh_size_estimates(&self) -> Answer<()>;
}
