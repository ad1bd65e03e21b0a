//! Which SSTables to compact: all of it pure.
//!
//! A table's [`Strategy`] sees [`Candidate`]s in a [`View`] and answers with a [`Choice`]. The
//! strategies are size-tiered, leveled, time-window and unified. They have state only where
//! Cassandra's have. `crate::compaction` does what they choose.

mod choice;
mod leveled;
mod levels;
mod long_map;
mod overlaps;
mod ring;
mod size_tiered;
mod splitter;
mod strategy;
mod time_window;
mod tombstones;
mod unified;

pub(crate) use self::choice::Given;
pub use self::choice::{Candidate, Choice, Reason, Split, View};
pub use self::leveled::Leveled;
pub use self::overlaps::Inclusion;
pub use self::ring::{boundary, shard_of};
pub use self::size_tiered::{BucketOptions, SizeTiered, Thresholds};
pub use self::splitter::Splitter;
pub use self::strategy::Strategy;
pub use self::time_window::TimeWindow;
pub use self::tombstones::TombstoneOptions;
pub use self::unified::{Sharding, Unified};
