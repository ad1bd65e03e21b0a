//! The commit log: one chain of segments per shard, in Cassandra's format.

mod format;
mod ledger;
mod replay;
mod segment;
mod writer;

pub use self::format::{Position, file_name, parse_file_name};
pub use self::replay::{ReplayError, Replayed, SegmentFile, read_segment, segment_files};
pub use self::writer::{
    CommitLog, Inherited, LogError, LogOptions, LogPending, LogStats, SyncMode, Ticket,
};
