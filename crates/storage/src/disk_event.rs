//! Which errors are failures of a disk, and what there is to say of one.

use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;

use crate::error::StorageError;

/// How a disk failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// What it holds is not what was written (`CorruptSSTableException`).
    Corrupt,
    /// It does not read (`FSReadError`).
    Read,
    /// It does not write (`FSWriteError`).
    Write,
    /// It has no space.
    Full,
    /// It has too little for a compaction, which does not begin.
    NoRoom,
    /// An SSTable lacks a file: somebody removed it, or a copy is not complete. Nothing says that
    /// the disk failed.
    Incomplete,
}

/// What there is to say of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEvent {
    /// What kind it is of.
    pub failure: DiskFailure,
    /// The failure, and what was done about it.
    pub what: String,
    /// Nothing is left that the table's data could go to or come from, or it must not go without.
    pub is_last: bool,
}

/// Who is told of failures.
pub type TellDisk = Rc<dyn Fn(&DiskEvent)>;

/// What it is said of attempts to read.
const READS: [&str; 4] = ["cannot read", "cannot open", "cannot list", "cannot stat"];

impl StorageError {
    /// The failure of a disk that this is of, and the file; none if it is of something else. The
    /// commit log's are not of them: `commit_failure_policy` is theirs.
    pub fn disk_failure(&self) -> Option<(DiskFailure, &Path)> {
        match self {
            Self::Corrupt { path, .. } => Some((DiskFailure::Corrupt, path)),
            Self::Io { what, path, source } => {
                let failure = match source.kind() {
                    ErrorKind::UnexpectedEof => DiskFailure::Corrupt,
                    ErrorKind::StorageFull => DiskFailure::Full,
                    _ if READS.contains(what) => DiskFailure::Read,
                    _ => DiskFailure::Write,
                };
                Some((failure, path))
            }
            _ => None,
        }
    }
}
