//! Reading the log back after a stop.

use std::io;
use std::path::{Path, PathBuf};

use env::{Env, File, OpenOptions};
use thiserror::Error;

use super::format::{self, End, HeaderError, Position, Reader, SEGMENT_BYTES_MAX};

/// Bytes of a segment that are read at first.
const FIRST_READ_BYTES: u64 = 256 << 10;

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

/// A segment found in the log's directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentFile {
    /// Its id: segments are replayed in this order.
    pub id: i64,
    /// The format its name claims.
    pub version: i32,
    /// Where it is.
    pub path: PathBuf,
}

/// The segments in a directory, oldest first.
///
/// # Errors
/// If the directory cannot be listed.
pub async fn segment_files(env: &Env, directory: &Path) -> Result<Vec<SegmentFile>, ReplayError> {
    let entries = env
        .read_dir(directory)
        .await
        .map_err(|source| ReplayError::Io { path: directory.into(), source })?;
    let mut files: Vec<SegmentFile> = entries
        .iter()
        .filter_map(|entry| {
            let (version, id) = format::parse_file_name(&entry.name)?;
            Some(SegmentFile { id, version, path: directory.join(&entry.name) })
        })
        .collect();
    files.sort();
    Ok(files)
}

/// What came of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Records handed on.
    pub records: u64,
    /// Offset at which the segment broke off, if it did: the rest never became durable.
    pub torn_at: Option<u32>,
}

/// Reads the part of a segment that was written to: segments are made at full size, and most hold little.
async fn read_written(env: &Env, file: &SegmentFile) -> Result<Vec<u8>, ReplayError> {
    let failed = |source| ReplayError::Io { path: file.path.clone(), source };
    let opened = File::open(env, &file.path, OpenOptions::READ).await.map_err(failed)?;
    let length = opened.len().await.map_err(failed)?.min(SEGMENT_BYTES_MAX);
    let mut part = FIRST_READ_BYTES.min(length);
    loop {
        let (read, bytes) = opened.read_exact_at(Vec::new(), 0, part as usize).await;
        read.map_err(failed)?;
        let ended = Reader::new(&bytes).is_ok_and(|mut reader| {
            while reader.next_record().is_some() {}
            reader.ended_at_marker()
        });
        if ended || part == length {
            return Ok(bytes);
        }
        part = (part * 8).min(length);
    }
}

/// Reads a segment and hands each record, with its position, to `apply`.
///
/// A segment that ends inside its header was never written to; it holds nothing.
///
/// # Errors
/// See [`ReplayError`].
pub async fn read_segment(
    env: &Env,
    file: &SegmentFile,
    mut apply: impl FnMut(Position, &[u8]),
) -> Result<Replayed, ReplayError> {
    if file.version != format::VERSION {
        let source = HeaderError::Version(file.version);
        return Err(ReplayError::Header { path: file.path.clone(), source });
    }
    let bytes = read_written(env, file).await?;
    let mut reader = match Reader::new(&bytes) {
        Ok(reader) => reader,
        Err(HeaderError::Truncated) => return Ok(Replayed::default()),
        Err(HeaderError::Checksum) if bytes.iter().all(|byte| *byte == 0) => {
            return Ok(Replayed::default());
        }
        Err(source) => return Err(ReplayError::Header { path: file.path.clone(), source }),
    };
    let mut replayed = Replayed::default();
    while let Some(record) = reader.next_record() {
        apply(Position { segment: reader.id(), offset: record.end }, record.mutation);
        replayed.records += 1;
        if replayed.records.is_multiple_of(64) {
            env.maybe_yield().await;
        }
    }
    if let Some(End::Torn(at)) = reader.end() {
        replayed.torn_at = Some(at);
    }
    Ok(replayed)
}
