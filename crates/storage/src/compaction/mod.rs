//! Compaction: which files to merge, and their merge.
//!
//! A table's [`Strategy`] sees [`Candidate`]s in a [`View`] and answers with a [`Choice`]: all of
//! that is pure. What the node does with it is in the other half: `schedule`, `task`, `merge`.
//!
//! The strategies are size-tiered, leveled, time-window and unified. They have state only where
//! Cassandra's have. Compaction reads files of any format and writes `nb`.
//!
//! An SSTable in which all has expired goes whole, without a merge. If the log still has what was
//! in it, it goes later: a replay would bring that back.

mod choice;
mod garbage;
mod leveled;
mod levels;
mod long_map;
mod look;
mod merge;
mod outputs;
mod overlaps;
mod record;
mod ring;
mod schedule;
mod size_tiered;
mod space;
mod splitter;
mod strategy;
mod task;
mod throttle;
mod time_window;
mod tombstones;
mod unified;
mod work;

pub use self::choice::{Candidate, Choice, Reason, Split, View};
pub use self::leveled::Leveled;
pub(crate) use self::look::Look;
pub(crate) use self::merge::{Pace, Purging, write_partition};
pub(crate) use self::outputs::{FLUSH, Outputs};
pub use self::overlaps::Inclusion;
pub use self::record::Record;
pub use self::ring::{boundary, shard_of};
pub(crate) use self::schedule::Compactions;
pub use self::schedule::TellEnded;
pub use self::size_tiered::{BucketOptions, SizeTiered, Thresholds};
pub use self::splitter::Splitter;
pub use self::strategy::Strategy;
pub(crate) use self::task::{estimated_partitions, forget_everywhere};
pub use self::throttle::Throttle;
pub use self::time_window::TimeWindow;
pub use self::tombstones::TombstoneOptions;
pub use self::unified::{Sharding, Unified};
pub(crate) use self::work::Work;
