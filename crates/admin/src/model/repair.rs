//! Repair: what is asked for, what a repair says while it runs, and what is known of the sessions
//! of incremental ones.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What to repair: one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairOrder {
    /// The keyspace.
    pub keyspace: String,
    /// Cassandra's own map: keys and values of `RepairOption`.
    pub options: BTreeMap<String, String>,
}

/// A repair that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairStarted {
    /// Its number on this node, from 1 on; 0 where there is nothing to repair.
    pub command: i32,
}

/// What a repair said, as far as was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairEvents {
    /// The keyspace that is repaired.
    pub keyspace: String,
    /// By their numbers.
    pub events: Vec<RepairEvent>,
    /// How the repair ended, where `events` has its last one; none before.
    pub end: Option<RepairEnd>,
}

impl RepairEvents {
    /// Will nothing follow?
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }
}

/// Something that a repair said (`ProgressEvent`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairEvent {
    /// Which of the repair's, from 1 on.
    pub number: u64,
    /// Of what kind.
    pub kind: RepairEventKind,
    /// In Cassandra's words, without the progress.
    pub message: String,
    /// Steps done.
    pub done: u32,
    /// Steps in all.
    pub total: u32,
    /// When it was said.
    pub at_unix_millis: i64,
}

/// Of what kind an event is (`ProgressEventType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairEventKind {
    /// The first.
    Start,
    /// A step is done.
    Progress,
    /// It failed; more may follow.
    Error,
    /// It was ended by somebody.
    Abort,
    /// It succeeded; more may follow.
    Success,
    /// The last, of a repair that succeeded and of one that failed.
    Complete,
    /// Something to know.
    Notification,
}

/// How a repair ended (`ActiveRepairService.recordRepairStatus`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairEnd {
    /// Did it fail?
    pub has_failed: bool,
    /// What was recorded; of one that failed, the reason first.
    pub messages: Vec<String>,
}

/// A repair as far as it was watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedRepair {
    /// The keyspace.
    pub keyspace: String,
    /// Its number on this node; 0 where there was nothing to repair.
    pub command: i32,
    /// When it was looked at last.
    pub at_unix_millis: i64,
    /// What it said.
    pub events: Vec<RepairEvent>,
    /// What the last event that is an error said, printed or not.
    pub error: Option<String>,
    /// How it ended; none while it runs.
    pub end: Option<RepairEnd>,
}

impl WatchedRepair {
    /// Puts what was seen later behind, if it is of the same repair.
    pub(crate) fn join(&mut self, later: Self) -> Result<(), Self> {
        if self.command != later.command || later.command == 0 {
            return Err(later);
        }
        self.at_unix_millis = later.at_unix_millis;
        self.events.extend(later.events);
        self.error = later.error.or(self.error.take());
        self.end = later.end.or(self.end.take());
        Ok(())
    }
}

/// Which data the verbs of `repair_admin` are about, in the words of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairScope {
    /// All that are replicated, if there is none.
    pub keyspace: Option<String>,
    /// All of the keyspace's, if empty.
    pub tables: Vec<String>,
    /// `start:end`; all ranges that this node replicates, if there is none.
    pub range: Option<String>,
}

/// A session of an incremental repair, as this node knows it (`LocalSession`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairSession {
    /// A time-UUID.
    pub id: String,
    /// `PREPARING` to `FINALIZED`, or `FAILED`.
    pub state: String,
    /// When it began.
    pub started_unix_seconds: i64,
    /// When something last became of it.
    pub updated_unix_seconds: i64,
    /// Seconds from then to now.
    pub idle_seconds: i64,
    /// Who leads it.
    pub coordinator: SocketAddr,
    /// Who takes part.
    pub participants: Vec<SocketAddr>,
    /// `keyspace.table` of each table.
    pub tables: Vec<String>,
}

/// Data that waits for the end of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRepair {
    /// Bytes on disk.
    pub bytes: u64,
    /// SSTables.
    pub sstables: u64,
    /// The sessions that it waits for.
    pub sessions: Vec<String>,
}

/// What of a table waits for the end of a repair (`PendingStats`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStats {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// All of it.
    pub total: PendingRepair,
    /// What belongs to sessions that run.
    pub pending: PendingRepair,
    /// What belongs to sessions that succeeded.
    pub finalized: PendingRepair,
    /// What belongs to sessions that failed.
    pub failed: PendingRepair,
}

/// When data of a table was last repaired incrementally (`RepairStats`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairStats {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Of the part that was repaired the longest time ago; 0 is never.
    pub min_repaired_unix_millis: i64,
    /// Of the part that was repaired last; 0 is never.
    pub max_repaired_unix_millis: i64,
    /// The parts, in the order of the ring.
    pub sections: Vec<RepairedSection>,
}

/// A token range, and when it was repaired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairedSection {
    /// Not part of it.
    pub start: String,
    /// Its last token.
    pub end: String,
    /// 0 is never.
    pub repaired_unix_millis: i64,
}

/// What became of the data of a table whose sessions are over (`CleanupSummary`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairCleanup {
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Sessions whose data waits no more.
    pub successful: Vec<String>,
    /// Sessions whose data still does.
    pub unsuccessful: Vec<String>,
}
