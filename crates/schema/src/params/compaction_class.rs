//! The strategies of compaction, by class.

/// Package of the strategies that Cassandra comes with.
pub(crate) const COMPACTION: &str = "org.apache.cassandra.db.compaction.";

/// A compaction strategy, as understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionClass {
    /// `SizeTieredCompactionStrategy`.
    SizeTiered,
    /// `LeveledCompactionStrategy`.
    Leveled,
    /// `TimeWindowCompactionStrategy`.
    TimeWindow,
    /// `UnifiedCompactionStrategy`.
    Unified,
    /// None of these: kept and described.
    Custom,
}
