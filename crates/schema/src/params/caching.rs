//! What of a table is cached (`schema.CachingParams`).

/// Rows of a partition kept in the row cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsPerPartition {
    /// None: the partition is not cached.
    None,
    /// So many from its head.
    Head(i32),
    /// The whole partition.
    All,
}

/// What of a table is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingParams {
    /// Positions of keys?
    pub keys: bool,
    /// Rows of partitions.
    pub rows_per_partition: RowsPerPartition,
}

impl Default for CachingParams {
    fn default() -> Self {
        Self { keys: true, rows_per_partition: RowsPerPartition::None }
    }
}
