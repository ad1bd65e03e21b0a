//! Snapshots and backups.

use crate::model::{SnapshotDetails, TableName};

use super::Answer;

/// Snapshots and backups.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait SnapshotsOperator {
    /// Takes a snapshot. One of that name that is there is [`Failed`](crate::Refusal::Failed)
    /// (`Snapshot x already exists.`).
    async fn snapshot(&self, snapshot: NewSnapshot) -> Answer<()>;
    /// All snapshots of all tables, by name.
    async fn snapshots(&self) -> Answer<Vec<SnapshotDetails>>;
    /// Removes the snapshots of keyspaces (of all, if there are none) that have the name, if there
    /// is one, and were made before a time in milliseconds since the epoch, if there is one.
    async fn clear_snapshots(
        &self,
        keyspaces: &[String],
        name: Option<&str>,
        before: Option<i64>,
    ) -> Answer<()>;
    /// Whether links to what is flushed are kept.
    async fn backups(&self) -> Answer<bool>;
    /// Keeps links to what is flushed, or no longer, until the next start.
    async fn set_backups(&self, kept: bool) -> Answer<()>;
}

/// What to take a snapshot of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// All tables of these keyspaces; of all, if there are none.
    Keyspaces(Vec<String>),
    /// These tables.
    Tables(Vec<TableName>),
}

/// A snapshot to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSnapshot {
    /// Of what.
    pub of: Snapshots,
    /// Its name.
    pub name: String,
    /// With what is in memtables.
    pub flush: bool,
    /// Seconds until it goes by itself.
    pub ttl: Option<u64>,
}
