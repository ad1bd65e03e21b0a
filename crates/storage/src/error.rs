//! What can go wrong below a statement.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use schema::TableId;
use thiserror::Error;
use types::Uuid;

use crate::commitlog::LogError;
use crate::shards::Stopping;

/// An error of the storage engine.
#[derive(Clone, Debug, Error)]
pub enum StorageError {
    /// The table is not (or no longer) there.
    #[error("unknown table {0}")]
    UnknownTable(TableId),
    /// A mutation cannot be written in the messaging format.
    #[error("cannot encode or decode data: {0}")]
    Encode(String),
    /// The mutation is larger than `max_mutation_size`.
    #[error("{0}")]
    MutationTooLarge(String),
    /// The mutation is to be captured and there is no space for it.
    #[error("{0}")]
    NotCaptured(String),
    /// The write cannot be logged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// A file's bytes fail a check.
    #[error("corrupt {}: {what}", path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An SSTable is of a version or format that this release does not read.
    #[error("{}: {what}", path.display())]
    UnsupportedVersion {
        /// Its data, or another file of it.
        path: PathBuf,
        /// Which version it is of, and what the operator can do.
        what: String,
    },
    /// An SSTable lacks a file without which it cannot be opened.
    #[error(
        "cannot open the SSTable of {}: {what}; restore it, or move the SSTable's other \
         files away",
        path.display()
    )]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// That it is missing, alone or with another one.
        what: &'static str,
    },
    /// No directory is left for a table's new files.
    #[error(
        "no usable directory in data_file_directories for table {table}: all of them failed; \
         replace the disk and restart the node"
    )]
    NoDirectory {
        /// Keyspace and name of the table.
        table: String,
    },
    /// The table's options say what this release cannot do.
    #[error("table {table}: {what}")]
    UnusableOptions {
        /// Keyspace and name of the table.
        table: String,
        /// Which option, and why.
        what: String,
    },
    /// What the operator asks for would do harm.
    #[error("{}: {what}", path.display())]
    Refused {
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// SSTables that an incremental repair wants are part of another one.
    // Cassandra's words, as those of the next two
    #[error(
        "Prepare phase for incremental repair session {session} has failed because it encountered \
         intersecting sstables belonging to another incremental repair session ({other}). This is \
         caused by starting an incremental repair session before a previous one has completed. \
         Check nodetool repair_admin for hung sessions and fix them."
    )]
    PendingElsewhere {
        /// The session that wants them.
        session: Uuid,
        /// The session that has them.
        other: Uuid,
    },
    /// SSTables that an incremental repair wants are being anticompacted for another one.
    #[error(
        "Prepare phase for incremental repair session {session} has failed because it encountered \
         intersecting sstables belonging to another incremental repair session. This is caused by \
         starting multiple conflicting incremental repairs at the same time. Conflicting \
         anticompactions: {other}"
    )]
    AnticompactedElsewhere {
        /// The session that wants them.
        session: Uuid,
        /// The session that has them.
        other: Uuid,
    },
    /// Compactions of SSTables that an incremental repair wants do not end.
    #[error(
        "Prepare phase for incremental repair session {session} was unable to acquire exclusive \
         access to the neccesary sstables. This is usually caused by running multiple incremental \
         repairs on nodes that share token ranges"
    )]
    NotAcquired {
        /// The session that wants them.
        session: Uuid,
    },
    /// Memtables cannot be flushed, and are full.
    #[error(
        "cannot accept the write: memtables or the commit log are full, and the node cannot flush \
         memtables: {0}"
    )]
    Unflushed(Arc<str>),
    /// The deadline passed.
    #[error("the deadline of the request passed")]
    Deadline,
    /// The operator stopped it.
    #[error("Compaction interrupted")]
    Interrupted,
    /// The node is stopping.
    #[error(transparent)]
    Stopping(#[from] Stopping),
}

impl StorageError {
    /// An I/O error with its file.
    pub fn io(what: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { what, path: path.into(), source: Arc::new(source) }
    }

    /// An SSTable without this file.
    pub(crate) fn incomplete(path: impl Into<PathBuf>) -> Self {
        Self::Incomplete { path: path.into(), what: "the file is missing" }
    }

    /// A corruption with its file.
    pub fn corrupt(path: impl Into<PathBuf>, what: impl std::fmt::Display) -> Self {
        Self::Corrupt { path: path.into(), what: what.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not read, missing, or asked for in vain is neither told as damage nor counted as a
    /// failure of the disk.
    #[test]
    fn what_is_no_failure_of_a_disk_is_not_told_as_one() {
        let table = || "ks.t".to_owned();
        let errors = [
            StorageError::UnsupportedVersion {
                path: "/d/me-1-big-Data.db".into(),
                what: "w".into(),
            },
            StorageError::incomplete("/d/nb-1-big-Index.db"),
            StorageError::NoDirectory { table: table() },
            StorageError::UnusableOptions { table: table(), what: "w".into() },
        ];
        for error in errors {
            assert!(error.disk_failure().is_none(), "{error:?}");
            assert!(!error.to_string().contains("corrupt"), "{error}");
        }
        let none = StorageError::NoDirectory { table: table() }.to_string();
        assert!(none.contains("data_file_directories") && none.contains("ks.t"), "{none}");
    }
}
