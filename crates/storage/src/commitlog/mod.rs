//! The commit log: one chain of segments per shard, in Cassandra's format.
//!
//! Ids of segments are unique in a node. A segment goes once every table in it is flushed, and once
//! the operator's command has archived it.
//!
//! A start must tell damage from a torn end. Three things help it:
//!
//! - Marks between sections say what was synced (`format.rs`).
//! - A header names earlier segments that were synced to their end: a torn one among them is
//!   damage.
//! - A list of each shard's segments shows which one is gone (`list.rs`).

mod archive;
mod cdc;
mod format;
mod ledger;
mod list;
mod log;
mod pack;
mod reader;
mod replay;
mod replay_error;
mod segment;
mod writer;

pub use self::archive::{Archiving, ArchivingError};
pub use self::cdc::{CdcOptions, after_replay, index_name};
pub use self::format::{
    Compression, Header, HeaderError, Position, RECORD_OVERHEAD_BYTES, VERSION, VERSION_50,
    file_name, file_name_of, parse_file_name, read_header,
};
pub use self::list::Lists;
pub use self::log::{
    Inherited, LogError, LogEvent, LogOptions, LogPending, LogStats, SyncMode, TellLog, Ticket,
};
pub use self::reader::{End, Reader, Record};
pub use self::replay::{Replayed, SegmentFile, Survey, read_segment, segment_files, survey};
pub use self::replay_error::ReplayError;
pub use self::writer::CommitLog;
