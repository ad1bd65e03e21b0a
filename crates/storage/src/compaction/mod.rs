//! Compaction: what the node does with what `crate::strategies` choose, and the merge.
//!
//! Compaction reads files of any format and writes `nb`.
//!
//! An SSTable in which all has expired goes whole, without a merge. If the log still has what was
//! in it, it goes later: a replay would bring that back.

mod divide;
mod garbage;
mod hold;
mod look;
mod merge;
mod on_demand;
mod record;
mod running;
mod schedule;
mod scrub;
mod slots;
mod space;
mod table;
mod task;
mod work;

pub(crate) use self::divide::doubt;
pub(crate) use self::hold::{Held, Holder};
pub(crate) use self::look::sampled_keys;
pub(crate) use self::merge::Pace;
pub use self::record::Record;
pub use self::running::RunningCompaction;
pub use self::schedule::Compactions;
pub use self::scrub::{Scrub, Scrubbed};
pub use self::task::TellEnded;
pub(crate) use self::task::estimated_partitions;
pub use crate::strategies::*;
