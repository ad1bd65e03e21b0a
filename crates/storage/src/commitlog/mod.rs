//! The commit log: one chain of segments per shard, in Cassandra's format.

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
