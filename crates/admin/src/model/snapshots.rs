//! Snapshots.

use serde::{Deserialize, Serialize};

/// A snapshot of a table. Times are since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotDetails {
    /// Its name.
    pub name: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Files that live SSTables do not share.
    pub true_size_bytes: u64,
    /// Files of SSTables among them.
    pub own_tables_bytes: u64,
    /// All its files.
    pub size_on_disk_bytes: u64,
    /// When it was made, if that is known.
    pub created_at_millis: Option<i64>,
    /// When it goes by itself.
    pub expires_at_millis: Option<i64>,
    /// A repair's.
    pub ephemeral: bool,
}
