//! Reading the log back after a stop.
//!
//! Each header names earlier segments that were synced to their end. A torn segment among them is
//! damaged: a crash cannot have cut it off.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use env::{Env, File, OpenOptions};

use super::format::{self, Header, HeaderError, MARKER_BYTES, Position, SEGMENT_BYTES_MAX};
use super::list::Lists;
use super::reader::{End, Reader};
use super::replay_error::ReplayError;

/// Bytes of a segment that hold its header and the marker after it.
const SURVEY_BYTES: u64 = 4 << 10;

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

/// What the headers of all segments together say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Segments that were durable to their end while we wrote others: what they lack now, the disk
    /// lost.
    whole: BTreeSet<i64>,
    /// The last segment that is not empty.
    last: Option<i64>,
    /// What our lists of segments say.
    lists: Lists,
    /// Segments that are listed and gone.
    pub missing: Vec<PathBuf>,
}

/// Reads the headers of the segments in a directory, oldest first, and our lists of them.
///
/// # Errors
/// If one cannot be read. What is wrong with a header, its segment's replay tells.
pub async fn survey(
    env: &Env,
    directory: &Path,
    files: &[SegmentFile],
) -> Result<Survey, ReplayError> {
    let lists = Lists::read(env, directory).await?;
    let mut survey = Survey { lists, ..Survey::default() };
    let mut foreign = None;
    for file in files {
        let bytes = read_part(env, file, SURVEY_BYTES).await?;
        let Ok(header) = format::read_header(&bytes) else {
            survey.last = survey.last.max(Some(file.id).filter(|_| !is_blank(&bytes)));
            continue;
        };
        if header.whole.is_none() {
            foreign = foreign.max(Some(file.id));
        }
        survey.whole.extend(header.whole.into_iter().flatten());
        let marker = bytes.get(header.bytes..).unwrap_or_default();
        let marker = marker.get(..MARKER_BYTES).unwrap_or(marker);
        if !marker.iter().all(|byte| *byte == 0) {
            survey.last = Some(file.id);
        }
    }
    let there = files.iter().map(|file| file.id).collect();
    let missing = survey.lists.missing(&there, foreign);
    survey.missing = missing.into_iter().map(|name| directory.join(name)).collect();
    Ok(survey)
}

/// What came of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Records handed on.
    pub records: u64,
    /// Offset at which the segment broke off, if it did: the rest never became durable.
    pub torn_at: Option<u32>,
    /// Offset at which it is damaged, if it broke off where no crash breaks it off.
    pub damaged_at: Option<u32>,
    /// Bytes of the file up to where it could be read.
    pub read: u64,
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Reads up to `part` bytes at the beginning of a segment.
async fn read_part(env: &Env, file: &SegmentFile, part: u64) -> Result<Vec<u8>, ReplayError> {
    let failed = |source| ReplayError::Io { path: file.path.clone(), source };
    let opened = File::open(env, &file.path, OpenOptions::READ).await.map_err(failed)?;
    let length = opened.len().await.map_err(failed)?.min(part);
    let (read, bytes) = opened.read_exact_at(Vec::new(), 0, length as usize).await;
    read.map_err(failed)?;
    Ok(bytes)
}

/// Why a segment that is there cannot be what was written, if so: from where on.
fn damage_in(bytes: &[u8], header: &Header, ended_at: usize, survey: &Survey) -> Option<u32> {
    let is_used = |from: usize| bytes.get(from..).is_some_and(|rest| !is_blank(rest));
    let behind = format::synced_behind(bytes, header.id, ended_at);
    let is_short = header.length.is_some_and(|length| (bytes.len() as u64) < length);
    let whole = header.whole.is_some() && survey.whole.contains(&header.id);
    // The length was durable before anything was written; and nothing follows the end of a segment
    // that is whole.
    let is_damaged =
        behind.is_some() || (is_short && is_used(header.bytes)) || (whole && is_used(ended_at));
    is_damaged.then_some(ended_at as u32)
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
    survey: &Survey,
    mut apply: impl FnMut(Position, &[u8]),
) -> Result<Replayed, ReplayError> {
    let refuse = |source| Err(ReplayError::Header { path: file.path.clone(), source });
    if !matches!(file.version, format::VERSION | format::VERSION_50) {
        return refuse(HeaderError::Version(file.version));
    }
    let bytes = read_part(env, file, SEGMENT_BYTES_MAX).await?;
    let mut reader = match Reader::new(&bytes) {
        Ok(reader) => reader,
        // A header is durable before its segment is listed.
        Err(HeaderError::Truncated | HeaderError::Checksum)
            if survey.lists.synced(file.id).is_some() =>
        {
            return Ok(Replayed { damaged_at: Some(0), ..Replayed::default() });
        }
        Err(HeaderError::Truncated) => return Ok(Replayed::default()),
        Err(HeaderError::Checksum) if is_blank(&bytes) => return Ok(Replayed::default()),
        Err(HeaderError::Checksum) => {
            return Ok(Replayed { damaged_at: Some(0), ..Replayed::default() });
        }
        Err(source) => return refuse(source),
    };
    let (id, mut replayed) = (reader.header().id, Replayed::default());
    if id != file.id || reader.header().version != file.version {
        // another segment's content
        replayed.damaged_at = Some(0);
        return Ok(replayed);
    }
    while let Some(record) = reader.next_record() {
        apply(Position { segment: id, offset: record.end }, record.mutation);
        replayed.records += 1;
        if replayed.records.is_multiple_of(64) {
            env.maybe_yield().await;
        }
    }
    if let Some(End::Torn { at, is_inner }) = reader.end() {
        match survey.tolerates(reader.header(), is_inner) {
            true => replayed.torn_at = Some(at),
            false => replayed.damaged_at = Some(at),
        }
    }
    let is_plain = reader.header().compression.is_none();
    let ended_at = reader.readable();
    replayed.read = ended_at as u64;
    if survey.lists.synced(id).is_some_and(|synced| replayed.read < synced) {
        (replayed.torn_at, replayed.damaged_at) =
            (None, replayed.damaged_at.or(Some(ended_at as u32)));
    } else if is_plain && reader.header().whole.is_some() {
        let damaged_at = damage_in(&bytes, reader.header(), ended_at, survey);
        if damaged_at.is_some() {
            (replayed.torn_at, replayed.damaged_at) = (None, replayed.damaged_at.or(damaged_at));
        }
    }
    Ok(replayed)
}

impl Survey {
    /// Lists of segments that cannot be read, and why.
    pub fn damaged_lists(&self) -> &[(PathBuf, String)] {
        &self.lists.damaged
    }

    /// May a crash have broken off a segment so?
    ///
    /// We sync many sections at a time, and a crash leaves any of them: but not in a segment that
    /// was known to be whole. A Cassandra that compresses syncs each section before the next one is
    /// written, and each segment before the next.
    fn tolerates(&self, header: &Header, is_inner: bool) -> bool {
        match (&header.whole, &header.compression) {
            (Some(_), _) => !self.whole.contains(&header.id),
            (None, Some(_)) => !is_inner && self.last == Some(header.id),
            (None, None) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id: i64, ours: bool, compressed: bool) -> Header {
        let lz4 = || format::Compression::new("LZ4Compressor", Default::default()).expect("known");
        let compression = compressed.then(lz4);
        let whole = ours.then(Vec::new);
        Header { version: format::VERSION, id, compression, whole, length: None, bytes: 0 }
    }

    #[test]
    fn what_a_crash_leaves_is_tolerated() {
        let survey = Survey { whole: [5].into(), last: Some(7), ..Survey::default() };
        for compressed in [false, true] {
            assert!(!survey.tolerates(&header(5, true, compressed), false));
            assert!(survey.tolerates(&header(6, true, compressed), true));
        }
        assert!(survey.tolerates(&header(6, false, false), false));
        assert!(!survey.tolerates(&header(6, false, true), false), "not Cassandra's last");
        assert!(survey.tolerates(&header(7, false, true), false));
        assert!(!survey.tolerates(&header(7, false, true), true), "not the last section");
    }
}
