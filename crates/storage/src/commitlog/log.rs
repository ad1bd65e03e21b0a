//! What there is to say to a log and to hear of it.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sync::OneshotReceiver;
use schema::TableId;
use thiserror::Error;

use super::cdc::CdcOptions;
use super::format::{Compression, Position};

/// When a write is acknowledged (`commitlog_sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// At once; the log is synced every `period`. Where a sync is overdue by `lag_block`, writes
    /// wait.
    Periodic {
        /// `commitlog_sync_period`.
        period: Duration,
        /// `periodic_commitlog_sync_lag_block`.
        lag_block: Duration,
    },
    /// After a sync, which starts at once.
    Batch,
    /// After a sync, which starts at most `window` after the write.
    Group {
        /// `commitlog_sync_group_window`.
        window: Duration,
    },
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// `commitlog_directory`.
    pub directory: PathBuf,
    /// `commitlog_sync`.
    pub mode: SyncMode,
    /// `commitlog_segment_size`, in bytes.
    pub segment_bytes: u32,
    /// `commitlog_compression`.
    pub compression: Option<Compression>,
    /// `max_mutation_size`, in bytes with what a record adds.
    pub mutation_bytes_max: usize,
    /// `cdc_enabled` and what goes with it.
    pub cdc: Option<CdcOptions>,
    /// The command that archives a segment (`archive_command`).
    pub archive_command: Option<String>,
    /// Does the log go on in another segment after a failed write or sync (`commit_failure_policy:
    /// ignore`)?
    pub goes_on_after_failure: bool,
    /// This shard's part of `commitlog_total_space`, in bytes: past it, the tables that hold the
    /// oldest segment are to be flushed.
    pub total_bytes: u64,
}

/// Something that the operator is to know of the log, with a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent<'a> {
    /// A write or sync failed, or a segment could not be made.
    Failed(&'a str),
    /// A segment could not be archived.
    NotArchived(&'a str),
    /// A sync took so long that writes wait, or soon would.
    Late(&'a str),
}

/// Who is told of the log's events.
pub type TellLog = Rc<dyn Fn(LogEvent<'_>)>;

/// Why a write cannot be logged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LogError {
    /// An earlier write or sync failed; the log takes no more.
    #[error("the commit log failed: {0}")]
    Failed(Arc<str>),
    /// The mutation is larger than `max_mutation_size`.
    #[error("a mutation of {bytes} bytes exceeds max_mutation_size, {max} bytes")]
    TooLarge {
        /// Its size, with what a record adds.
        bytes: usize,
        /// The largest.
        max: usize,
    },
    /// The write is to be captured, and there is no space for it in the directory of captured
    /// segments.
    #[error(
        "the segments in cdc_raw_directory have {used} bytes and leave no space for another; \
         process and delete them, or raise cdc_total_space"
    )]
    CdcFull {
        /// Bytes there.
        used: u64,
    },
    /// The log was closed.
    #[error("the commit log is closed")]
    Closed,
}

/// A segment of an earlier run whose records are in memtables again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// Its id.
    pub id: i64,
    /// The version of its format.
    pub version: i32,
    /// Its size.
    pub bytes: u64,
    /// Bytes of its file that the next start must find; none where nothing was replayed.
    pub read: u64,
    /// The tables whose flush it waits for.
    pub tables: Vec<TableId>,
}

/// A logged write: where it ends, and what its acknowledgement waits for.
#[derive(Debug)]
#[must_use = "the write is not durable before `durable` says so"]
pub struct Ticket {
    /// Where its record ends.
    pub position: Position,
    pub(super) wait: Option<OneshotReceiver<Result<(), LogError>>>,
}

impl Ticket {
    /// Of a write that is not logged: a keyspace without durable writes.
    pub(crate) fn without_log(position: Position) -> Self {
        Self { position, wait: None }
    }

    /// May the write be acknowledged without waiting?
    pub fn is_ready(&self) -> bool {
        self.wait.is_none()
    }

    /// Waits until the write may be acknowledged.
    ///
    /// # Errors
    /// If it did not become durable.
    pub async fn durable(self) -> Result<(), LogError> {
        match self.wait {
            None => Ok(()),
            Some(wait) => wait.await.unwrap_or(Err(LogError::Closed)),
        }
    }
}

/// What the log counts about itself.
#[derive(Debug, Default)]
pub struct LogStats {
    /// Records appended.
    pub records: Cell<u64>,
    /// Bytes appended.
    pub bytes: Cell<u64>,
    /// Syncs that ended.
    pub syncs: Cell<u64>,
    /// Writes that found no free segment and waited (`WaitingOnSegmentAllocation`).
    pub waits_for_segment: Cell<u64>,
    /// Writes that waited because the files were far behind.
    pub waits_for_writing: Cell<u64>,
    /// Writes that waited for a sync (`WaitingOnCommit`).
    pub waits_for_sync: Cell<u64>,
}

/// What a log has on its way to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPending {
    /// Bytes appended and not synced.
    pub bytes: u64,
    /// Bytes of them that are in no file yet.
    pub unwritten: u64,
    /// Sections not written.
    pub sections: usize,
    /// Writes that wait for a sync.
    pub waiters: usize,
}
