//! The bytes of a commit log segment: Cassandra's format, version 7 (4.0, 4.1 and 5.0 in its default
//! compatibility mode; `CommitLogDescriptor`, `CommitLogSegment`, `CommitLogReader`).
//!
//! ```text
//! segment  = header section* zeros
//! header   = i32 version=7 | i64 id | u16 n | n bytes of JSON parameters | i32 crc(version, id lo, id hi, n, json)
//! section  = i32 offset of the next section's marker | i32 crc(id lo, id hi, offset of this marker) | record*
//! record   = i32 size | i32 crc(size) | mutation (messaging version 12) | i32 crc(size, mutation)
//! ```
//!
//! All integers are big endian, all checksums plain CRC-32. A marker of zeros ends the segment. We write a
//! section with every batch of records, so a reader finds all that reached the file, synced or not.

use crc32fast::Hasher;
use thiserror::Error;

/// The version we write: mutations at messaging version 12.
pub const VERSION: i32 = 7;
/// Bytes of a section's marker.
pub const MARKER_BYTES: usize = 8;
/// Bytes a record adds to its mutation: size and two checksums.
pub const RECORD_OVERHEAD_BYTES: usize = 12;
/// No mutation is shorter; guards against a checksum that zeros or garbage happen to satisfy.
const MUTATION_BYTES_MIN: usize = 10;
/// A segment larger than this is refused: positions are 31 bits.
pub const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;

/// Why a file is not a segment that we can replay.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum HeaderError {
    /// Shorter than its header.
    #[error("the segment ends inside its header")]
    Truncated,
    /// The header's checksum does not fit.
    #[error("the segment's header fails its checksum")]
    Checksum,
    /// Another release's format.
    #[error("commit log version {0} is not one this release reads ({VERSION})")]
    Version(i32),
    /// Compressed or encrypted segments.
    #[error("commit log parameters {0} are not served yet")]
    Parameters(String),
}

/// A place in the log: segment, and the offset after the record named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Segment id.
    pub segment: i64,
    /// Offset in the segment's file.
    pub offset: u32,
}

/// The file name of a segment.
pub fn file_name(id: i64) -> String {
    format!("CommitLog-{VERSION}-{id}.log")
}

/// Version and id that a file name carries; `None` for a name that is no segment's.
pub fn parse_file_name(name: &str) -> Option<(i32, i64)> {
    let rest = name.strip_prefix("CommitLog-")?.strip_suffix(".log")?;
    let (version, id) = rest.split_once('-')?;
    Some((version.parse().ok()?, id.parse().ok()?))
}

fn update_i32(crc: &mut Hasher, value: i32) {
    crc.update(&value.to_be_bytes());
}

fn marker_crc(id: i64, offset: u32) -> u32 {
    let mut crc = Hasher::new();
    update_i32(&mut crc, id as i32);
    update_i32(&mut crc, (id >> 32) as i32);
    update_i32(&mut crc, offset as i32);
    crc.finalize()
}

/// Appends a segment's header.
pub fn write_header(id: i64, out: &mut Vec<u8>) {
    const PARAMETERS: &[u8] = b"{}";
    let mut crc = Hasher::new();
    update_i32(&mut crc, VERSION);
    update_i32(&mut crc, id as i32);
    update_i32(&mut crc, (id >> 32) as i32);
    update_i32(&mut crc, PARAMETERS.len() as i32);
    crc.update(PARAMETERS);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&(PARAMETERS.len() as u16).to_be_bytes());
    out.extend_from_slice(PARAMETERS);
    out.extend_from_slice(&crc.finalize().to_be_bytes());
}

/// Leaves room for a section's marker at the end of `out`.
pub fn begin_section(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; MARKER_BYTES]);
}

/// Appends a record whose mutation `write` appends; returns the record's bytes.
pub fn append_record(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    write(out);
    let size = out.len() - start - 8;
    let mut crc = Hasher::new();
    update_i32(&mut crc, size as i32);
    let size_crc = crc.clone().finalize();
    out[start..start + 4].copy_from_slice(&(size as i32).to_be_bytes());
    out[start + 4..start + 8].copy_from_slice(&size_crc.to_be_bytes());
    crc.update(&out[start + 8..]);
    out.extend_from_slice(&crc.finalize().to_be_bytes());
    out.len() - start
}

/// Closes the section that begins at `section` in `buffer` and ends with it; `file_offset` is where
/// the section's marker goes in the segment.
pub fn end_section(buffer: &mut [u8], section: usize, id: i64, file_offset: u32) {
    let next = file_offset + (buffer.len() - section) as u32;
    buffer[section..section + 4].copy_from_slice(&next.to_be_bytes());
    buffer[section + 4..section + 8].copy_from_slice(&marker_crc(id, file_offset).to_be_bytes());
}

/// One record of a segment.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset after the record.
    pub end: u32,
    /// The mutation at messaging version 12.
    pub mutation: &'a [u8],
}

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At a marker of zeros, or exactly at the file's end.
    Clean,
    /// At a section or record that never reached the disk whole, at this offset.
    Torn(u32),
}

/// Reads a segment's records in order; stops at the first byte that fails a check.
pub struct Reader<'a> {
    bytes: &'a [u8],
    id: i64,
    section_end: usize,
    at: usize,
    end: Option<End>,
}

fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

impl<'a> Reader<'a> {
    /// Checks the header of a segment's `bytes`.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        let version = read_i32(bytes, 0).ok_or(HeaderError::Truncated)?;
        let id = bytes.get(4..12).ok_or(HeaderError::Truncated)?;
        let id = i64::from_be_bytes(id.try_into().map_err(|_| HeaderError::Truncated)?);
        let n = bytes.get(12..14).ok_or(HeaderError::Truncated)?;
        let n = usize::from(u16::from_be_bytes([n[0], n[1]]));
        let parameters = bytes.get(14..14 + n).ok_or(HeaderError::Truncated)?;
        let mut crc = Hasher::new();
        update_i32(&mut crc, version);
        update_i32(&mut crc, id as i32);
        update_i32(&mut crc, (id >> 32) as i32);
        update_i32(&mut crc, n as i32);
        crc.update(parameters);
        let stored = read_i32(bytes, 14 + n).ok_or(HeaderError::Truncated)?;
        if stored as u32 != crc.finalize() {
            return Err(HeaderError::Checksum);
        }
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        if !matches!(parameters, b"{}" | b"") {
            return Err(HeaderError::Parameters(String::from_utf8_lossy(parameters).into_owned()));
        }
        let start = 18 + n;
        Ok(Self { bytes, id, section_end: start, at: start, end: None })
    }

    /// The segment's id.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Did a marker of zeros end the segment? Then nothing follows, whatever the file's length.
    pub fn ended_at_marker(&self) -> bool {
        self.end == Some(End::Clean) && self.section_end + MARKER_BYTES <= self.bytes.len()
    }

    /// How the segment ended; known once `next` gave `None`.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Moves into the section whose marker lies at `section_end`. False when the segment ended.
    fn enter_section(&mut self) -> bool {
        let marker = self.section_end;
        let (Some(next), Some(crc)) =
            (read_i32(self.bytes, marker), read_i32(self.bytes, marker + 4))
        else {
            let tail = self.bytes.get(marker..).unwrap_or_default();
            let clean = tail.iter().all(|byte| *byte == 0);
            self.end = Some(if clean { End::Clean } else { End::Torn(marker as u32) });
            return false;
        };
        if next == 0 && crc == 0 {
            self.end = Some(End::Clean);
            return false;
        }
        let first = marker + MARKER_BYTES;
        let next = next as u32 as usize;
        if crc as u32 != marker_crc(self.id, marker as u32) || next < first {
            self.end = Some(End::Torn(marker as u32));
            return false;
        }
        self.at = first;
        self.section_end = next;
        true
    }

    /// The next record, or `None` at the segment's end (see [`Reader::end`]).
    pub fn next_record(&mut self) -> Option<Record<'a>> {
        while self.end.is_none() {
            if self.at + 4 > self.section_end {
                self.enter_section();
                continue;
            }
            let at = self.at;
            match read_i32(self.bytes, at) {
                // Cassandra ends a section early with a zero size when its last allocation went
                // unused; where no section follows, the bytes were lost.
                Some(0) => {
                    if self.section_end > self.bytes.len() || !self.enter_section() {
                        self.end = Some(End::Torn(at as u32));
                    }
                }
                Some(size) => match self.checked_record(at, size) {
                    Some(record) => {
                        self.at = record.end as usize;
                        return Some(record);
                    }
                    None => self.end = Some(End::Torn(at as u32)),
                },
                None => self.end = Some(End::Torn(at as u32)),
            }
        }
        None
    }

    fn checked_record(&self, at: usize, size: i32) -> Option<Record<'a>> {
        let size_bytes = usize::try_from(size).ok().filter(|size| *size >= MUTATION_BYTES_MIN)?;
        let mut crc = Hasher::new();
        update_i32(&mut crc, size);
        if read_i32(self.bytes, at + 4)? as u32 != crc.clone().finalize() {
            return None;
        }
        let start = at + 8;
        let end = start.checked_add(size_bytes)?;
        let mutation = self.bytes.get(start..end)?;
        crc.update(mutation);
        if read_i32(self.bytes, end)? as u32 != crc.finalize() {
            return None;
        }
        Some(Record { end: (end + 4) as u32, mutation })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(id: i64, sections: &[Vec<Vec<u8>>]) -> Vec<u8> {
        let mut file = Vec::new();
        write_header(id, &mut file);
        for records in sections {
            let section = file.len();
            begin_section(&mut file);
            for record in records {
                append_record(&mut file, |out| out.extend_from_slice(record));
            }
            end_section(&mut file, section, id, section as u32);
        }
        file
    }

    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, End) {
        let mut reader = Reader::new(bytes).expect("header");
        let mut records = Vec::new();
        while let Some(record) = reader.next_record() {
            records.push(record.mutation.to_vec());
        }
        (records, reader.end().expect("ended"))
    }

    #[test]
    fn names_carry_version_and_id() {
        assert_eq!(file_name(1700), "CommitLog-7-1700.log");
        assert_eq!(parse_file_name("CommitLog-7-1700.log"), Some((7, 1700)));
        assert_eq!(parse_file_name("CommitLog-7-1700_cdc.idx"), None);
    }

    #[test]
    fn another_version_is_refused() {
        let mut file = Vec::new();
        write_header(5, &mut file);
        file[3] = 8;
        assert_eq!(Reader::new(&file).err(), Some(HeaderError::Checksum));
        assert_eq!(Reader::new(&file[..9]).err(), Some(HeaderError::Truncated));
    }

    proptest! {
        #[test]
        fn every_record_comes_back(
            sections in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 10..200), 1..4), 0..5),
            zeros in 0usize..64,
        ) {
            let mut file = segment(77, &sections);
            file.resize(file.len() + zeros, 0);
            let (records, end) = read(&file);
            prop_assert_eq!(records, sections.concat());
            prop_assert_eq!(end, End::Clean);
        }

        /// Whatever is cut or flipped, what comes back is a prefix of what was written.
        #[test]
        fn damage_yields_a_prefix(
            sections in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 10..60), 1..4), 1..5),
            at in any::<prop::sample::Index>(),
            flip in 1u8..,
            cut in any::<bool>(),
        ) {
            let mut file = segment(77, &sections);
            let header = 20;
            let at = header + at.index(file.len() - header);
            if cut { file.truncate(at); } else { file[at] ^= flip; }
            let (records, _) = read(&file);
            let all = sections.concat();
            prop_assert!(records.len() <= all.len());
            prop_assert_eq!(&all[..records.len()], &records[..]);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut file = Vec::new();
            write_header(1, &mut file);
            file.extend_from_slice(&bytes);
            let _ = read(&file);
            let _ = Reader::new(&bytes);
        }
    }
}
