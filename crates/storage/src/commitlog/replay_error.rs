//! Why the log cannot be replayed.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::format::HeaderError;

/// Why the log cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A file or the directory cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// What was read.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A segment whose header says that it is not ours to replay.
    #[error("cannot replay {path}: {source}")]
    Header {
        /// The segment's file.
        path: PathBuf,
        /// What is wrong with it.
        source: HeaderError,
    },
}
