//! The bytes of a commit log segment: Cassandra's format, version 7 (4.0, 4.1 and 5.0 in its
//! default compatibility mode; `CommitLogDescriptor`, `CommitLogSegment`, `CompressedSegment`).
//! Version 8 (5.0 without compatibility) is read too: its mutations are those of messaging
//! version 13.
//!
//! ```text
//! segment  = header section* zeros
//! header   = i32 version=7 | i64 id | u16 n | n bytes of JSON parameters
//!            | i32 crc(version, id lo, id hi, n, json)
//! section  = i32 offset of the next section's marker
//!            | i32 crc(id lo, id hi, offset of this marker)
//!            | body
//! body     = record*                                            uncompressed
//!          | i32 bytes of the records | the records, compressed
//! record   = i32 size | i32 crc(size) | mutation (messaging version 12) | i32 crc(size, mutation)
//! ```
//!
//! All integers are big endian, all checksums plain CRC-32. A marker of zeros ends an uncompressed
//! segment, the file's end a compressed one. Markers name places in the file; a [`Position`] in a
//! compressed segment is where its record would end if nothing was compressed: header, and for each
//! section its marker and its records.
//!
//! The parameters name the compressor, and of our own segments those that are whole: what they lack
//! now, the disk lost (see [`super::replay`]); and the length that this one has had since before it
//! was written to. Cassandra passes over what it does not know there.
//!
//! Empty sections in a row, before one with records or at the end of what is written, tell that all
//! before was synced, but for the last bytes: the more sections, the fewer bytes ([`LAGS`]). So
//! what cannot be read before that is damaged, and not torn. A part of them, as a crash may leave
//! it, says less than all.

use std::collections::BTreeMap;

use crc32fast::Hasher;
pub use sstable::NamedCompressor as Compression;
use sstable::compressor::Codec;
use thiserror::Error;
use types::Json;

/// The version we write: mutations at messaging version 12.
pub const VERSION: i32 = 7;
/// The other version that we read: mutations at messaging version 13.
pub const VERSION_50: i32 = 8;
/// Bytes of a section's marker.
pub const MARKER_BYTES: usize = 8;
/// Bytes a record adds to its mutation: size and two checksums.
pub const RECORD_OVERHEAD_BYTES: usize = 12;
/// A segment larger than this is refused: positions are 31 bits.
pub const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;
/// The parameter that names the compressor's class.
const CLASS: &str = "compressionClass";
/// The parameter with the compressor's own.
const PARAMETERS: &str = "compressionParameters";
/// The parameter that tells an encrypted segment.
const CIPHER: &str = "encCipher";
/// How many bytes before a mark may not have been synced when it was written, by the number of its
/// empty sections.
pub const LAGS: [u32; 4] = [16 << 20, 1 << 20, 64 << 10, 0];
/// The parameter that tells the length of an uncompressed segment's file.
const LENGTH: &str = "helenusBytes";
/// The parameter with which we name segments that are whole.
const WHOLE: &str = "helenusWhole";

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
    #[error(
        "this release does not read commit log version {0} (only {VERSION} and {VERSION_50}); \
         start the Cassandra that wrote it once more and drain it, so that nothing is left to \
         replay"
    )]
    Version(i32),
    /// An encrypted segment.
    #[error(
        "it is encrypted ({0}), which this release does not read; start the Cassandra that wrote it once more and \
         drain it, so that nothing is left to replay"
    )]
    Encrypted(String),
    /// Parameters that make no sense, or a compressor that is not known.
    #[error("its parameters {parameters} are not supported: {why}")]
    Parameters {
        /// As they stand there.
        parameters: String,
        /// What is wrong with them.
        why: String,
    },
}

/// A place in the log: segment, and the offset after the record named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Segment id.
    pub segment: i64,
    /// Offset in the segment, as if it was not compressed.
    pub offset: u32,
}

/// What a segment's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The format's version.
    pub version: i32,
    /// The segment's id.
    pub id: i64,
    /// How it is compressed.
    pub compression: Option<Compression>,
    /// Earlier segments that were durable to their end when this one was made; `None` if another
    /// program made it.
    pub whole: Option<Vec<i64>>,
    /// The file's length, if we made it at that length.
    pub length: Option<u64>,
    /// Bytes of the header.
    pub bytes: usize,
}

/// The file name of a segment of ours.
pub fn file_name(id: i64) -> String {
    file_name_of(VERSION, id)
}

/// The file name of a segment.
pub fn file_name_of(version: i32, id: i64) -> String {
    format!("CommitLog-{version}-{id}.log")
}

/// Version and id that a file name carries; `None` for a name that is no segment's.
pub fn parse_file_name(name: &str) -> Option<(i32, i64)> {
    let rest = name.strip_prefix("CommitLog-")?.strip_suffix(".log")?;
    let (version, id) = rest.split_once('-')?;
    Some((version.parse().ok()?, id.parse().ok()?))
}

pub(super) fn update_i32(crc: &mut Hasher, value: i32) {
    crc.update(&value.to_be_bytes());
}

pub(super) fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn marker_crc(id: i64, offset: u32) -> u32 {
    let mut crc = Hasher::new();
    update_i32(&mut crc, id as i32);
    update_i32(&mut crc, (id >> 32) as i32);
    update_i32(&mut crc, offset as i32);
    crc.finalize()
}

fn header_crc(id: i64, parameters: &[u8]) -> u32 {
    let mut crc = Hasher::new();
    update_i32(&mut crc, VERSION);
    update_i32(&mut crc, id as i32);
    update_i32(&mut crc, (id >> 32) as i32);
    update_i32(&mut crc, parameters.len() as i32);
    crc.update(parameters);
    crc.finalize()
}

/// The parameters of a header, by name as Cassandra's are.
fn parameters(compression: Option<&Compression>, whole: &[i64], length: Option<u32>) -> String {
    let mut members = Vec::new();
    if let Some(compression) = compression {
        members.push(format!("\"{CLASS}\":{}", compression.class_json()));
        members.push(format!("\"{PARAMETERS}\":{}", compression.parameters_json()));
    }
    let whole: Vec<_> = whole.iter().map(i64::to_string).collect();
    members.push(format!("\"{WHOLE}\":\"{}\"", whole.join(",")));
    members.extend(length.map(|length| format!("\"{LENGTH}\":\"{length}\"")));
    format!("{{{}}}", members.join(","))
}

/// Appends a segment's header, which says that the segments `whole` are durable to their end, and
/// of how many bytes its file was made.
pub fn write_header(
    id: i64,
    compression: Option<&Compression>,
    whole: &[i64],
    length: Option<u32>,
    out: &mut Vec<u8>,
) {
    let parameters = parameters(compression, whole, length);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    let length = u16::try_from(parameters.len());
    let length = length.expect("a header's parameters are shorter than 64 KiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(parameters.as_bytes());
    out.extend_from_slice(&header_crc(id, parameters.as_bytes()).to_be_bytes());
}

/// Reads the header at the beginning of a segment's `bytes`.
///
/// # Errors
/// See [`HeaderError`].
pub fn read_header(bytes: &[u8]) -> Result<Header, HeaderError> {
    let (fixed, rest) = bytes.split_first_chunk::<14>().ok_or(HeaderError::Truncated)?;
    let (version, id) = fixed.split_first_chunk::<4>().ok_or(HeaderError::Truncated)?;
    let version = i32::from_be_bytes(*version);
    let (id, length) = id.split_first_chunk::<8>().ok_or(HeaderError::Truncated)?;
    let id = i64::from_be_bytes(*id);
    let n = length.first_chunk::<2>().map_or(0, |two| usize::from(u16::from_be_bytes(*two)));
    let parameters = rest.get(..n).ok_or(HeaderError::Truncated)?;
    let stored = read_i32(rest, n).ok_or(HeaderError::Truncated)?;
    let mut crc = Hasher::new();
    crc.update(fixed.get(..4).unwrap_or_default());
    update_i32(&mut crc, id as i32);
    update_i32(&mut crc, (id >> 32) as i32);
    update_i32(&mut crc, n as i32);
    crc.update(parameters);
    if stored as u32 != crc.finalize() {
        return Err(HeaderError::Checksum);
    }
    if !matches!(version, VERSION | VERSION_50) {
        return Err(HeaderError::Version(version));
    }
    let Read { compression, whole, length } = read_parameters(parameters)?;
    Ok(Header { version, id, compression, whole, length, bytes: fixed.len() + n + 4 })
}

/// What parameters say.
#[derive(Default)]
struct Read {
    compression: Option<Compression>,
    whole: Option<Vec<i64>>,
    length: Option<u64>,
}

fn read_parameters(bytes: &[u8]) -> Result<Read, HeaderError> {
    if bytes.is_empty() {
        return Ok(Read::default());
    }
    let text = String::from_utf8_lossy(bytes);
    let refuse = |why: String| HeaderError::Parameters { parameters: text.to_string(), why };
    let members = match Json::parse(&text) {
        Ok(Json::Object(members)) => members,
        Ok(_) => return Err(refuse("they are not a JSON object".into())),
        Err(error) => return Err(refuse(error.to_string())),
    };
    let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, v)| v);
    if let Some(Json::Text(cipher)) = member(CIPHER) {
        return Err(HeaderError::Encrypted(cipher.clone()));
    }
    let whole = match member(WHOLE) {
        Some(Json::Text(ids)) => Some(ids.split(',').filter_map(|id| id.parse().ok()).collect()),
        _ => None,
    };
    let length = match member(LENGTH) {
        Some(Json::Text(length)) => length.parse().ok(),
        _ => None,
    };
    let class = match member(CLASS) {
        None | Some(Json::Null) => return Ok(Read { compression: None, whole, length }),
        Some(Json::Text(class)) => class,
        Some(_) => return Err(refuse("the compressor's class is not a string".into())),
    };
    let mut own = BTreeMap::new();
    if let Some(Json::Object(given)) = member(PARAMETERS) {
        for (name, value) in given {
            let Json::Text(value) = value else {
                return Err(refuse(format!("{name} is not a string")));
            };
            own.insert(name.clone(), value.clone());
        }
    }
    let compression = Compression::new(class, own).map_err(|e| refuse(e.to_string()))?;
    Ok(Read { compression: Some(compression), whole, length })
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
    assert!(i32::try_from(size).is_ok(), "a record is smaller than half of its segment");
    let mut crc = Hasher::new();
    update_i32(&mut crc, size as i32);
    let size_crc = crc.clone().finalize();
    out[start..start + 4].copy_from_slice(&(size as i32).to_be_bytes());
    out[start + 4..start + 8].copy_from_slice(&size_crc.to_be_bytes());
    crc.update(&out[start + 8..]);
    out.extend_from_slice(&crc.finalize().to_be_bytes());
    out.len() - start
}

/// Closes a section, whose marker goes to `file_offset` of the segment.
pub fn end_section(section: &mut [u8], id: i64, file_offset: u32) {
    let next = file_offset + section.len() as u32;
    assert!(section.len() >= MARKER_BYTES, "a section begins with the space for its marker");
    section[..4].copy_from_slice(&next.to_be_bytes());
    section[4..8].copy_from_slice(&marker_crc(id, file_offset).to_be_bytes());
}

/// Appends a mark: all of the segment before is synced, but for the last `lag` bytes. Gives its
/// bytes; none if they are too many.
pub fn append_mark(out: &mut Vec<u8>, id: i64, file_offset: u32, lag: u32) -> usize {
    let sections = LAGS.iter().take_while(|most| **most >= lag).count();
    for section in 0..sections {
        let start = out.len();
        begin_section(out);
        end_section(&mut out[start..], id, file_offset + (section * MARKER_BYTES) as u32);
    }
    sections * MARKER_BYTES
}

/// Bytes that a mark takes at the most.
pub const MARK_BYTES_MAX: usize = LAGS.len() * MARKER_BYTES;

/// Up to where marks behind `from` say that a segment's bytes were synced, as far as that is
/// further.
pub fn synced_behind(bytes: &[u8], id: i64, from: usize) -> Option<usize> {
    /// Most of a segment is zeros, which no marker begins with.
    const BLANK: usize = 4 << 10;
    let is_mark = |at: usize| {
        let next = u32::try_from(at + MARKER_BYTES).ok();
        read_i32(bytes, at).map(|found| found as u32) == next
            && read_i32(bytes, at + 4).map(|found| found as u32) == Some(marker_crc(id, at as u32))
    };
    let mut at = from;
    let mut synced = None;
    while at < bytes.len() {
        let ahead = bytes.get(at..bytes.len().min(at + BLANK)).unwrap_or_default();
        if ahead.iter().all(|byte| *byte == 0) {
            // a marker may begin within the last bytes, with zeros
            at += ahead.len().saturating_sub(MARKER_BYTES).max(1);
            continue;
        }
        let end = at + ahead.len();
        while at < end {
            let mut sections = 0;
            while sections < LAGS.len() && is_mark(at + sections * MARKER_BYTES) {
                sections += 1;
            }
            if let Some(lag) = sections.checked_sub(1).and_then(|last| LAGS.get(last)) {
                let claim = at.saturating_sub(*lag as usize);
                synced = synced.max(Some(claim).filter(|claim| *claim > from));
            }
            at += (sections * MARKER_BYTES).max(1);
        }
    }
    synced
}

/// The compressed form of a section, not closed.
///
/// # Errors
/// If there is too much of it.
pub fn compress_section(
    section: &[u8],
    codec: &mut Codec,
    out: &mut Vec<u8>,
) -> Result<(), sstable::Error> {
    let records = section.get(MARKER_BYTES..);
    let records = records.expect("a section begins with the space for its marker");
    out.clear();
    begin_section(out);
    out.extend_from_slice(&(records.len() as i32).to_be_bytes());
    codec.compress(records, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_with(parameters: &str) -> Result<Header, HeaderError> {
        let mut file = VERSION.to_be_bytes().to_vec();
        file.extend(5i64.to_be_bytes());
        file.extend((parameters.len() as u16).to_be_bytes());
        file.extend(parameters.as_bytes());
        file.extend(header_crc(5, parameters.as_bytes()).to_be_bytes());
        read_header(&file)
    }

    #[test]
    fn names_carry_version_and_id() {
        assert_eq!(file_name(1700), "CommitLog-7-1700.log");
        assert_eq!(parse_file_name("CommitLog-7-1700.log"), Some((7, 1700)));
        assert_eq!(parse_file_name("CommitLog-7-1700_cdc.idx"), None);
    }

    #[test]
    fn headers_read_back() {
        let level = [("compression_level".to_owned(), "7".to_owned())];
        let zstd = Compression::new("ZstdCompressor", level.into()).expect("known");
        let mut file = Vec::new();
        write_header(5, Some(&zstd), &[3, 4], None, &mut file);
        assert_eq!(
            std::str::from_utf8(&file[14..file.len() - 4]),
            Ok("{\"compressionClass\":\"ZstdCompressor\",\
                \"compressionParameters\":{\"compression_level\":\"7\"},\"helenusWhole\":\"3,4\"}")
        );
        let header = read_header(&file).expect("a header");
        assert_eq!(header.bytes, file.len());
        assert_eq!((header.compression, header.whole), (Some(zstd), Some(vec![3, 4])));
    }

    #[test]
    fn an_uncompressed_segment_tells_its_length() {
        let mut file = Vec::new();
        write_header(5, None, &[], Some(4096), &mut file);
        assert_eq!(read_header(&file).map(|header| header.length), Ok(Some(4096)));
    }

    #[test]
    fn marks_tell_what_was_synced_and_a_part_of_one_no_more_than_all() {
        for lag in [0, 1, 5000, 64 << 10, 70_000, 2 << 20, 16 << 20] {
            let mut file = vec![0; 20 << 20];
            file[3] = 1;
            let at = file.len();
            let bytes = append_mark(&mut file, 9, at as u32, lag);
            assert!((MARKER_BYTES..=MARK_BYTES_MAX).contains(&bytes));
            let synced = synced_behind(&file, 9, 100).expect("a mark");
            assert!(synced <= at - lag as usize && (lag > 0 || synced == at), "{lag}: {synced}");
            assert_eq!(synced_behind(&file, 8, 100), None, "another segment's");
            for lost in 0..bytes / MARKER_BYTES {
                for range in [at..at + lost * MARKER_BYTES, at + lost * MARKER_BYTES..file.len()] {
                    let mut torn = file.clone();
                    torn[range].fill(0);
                    assert!(
                        synced_behind(&torn, 9, 100).is_none_or(|part| part <= synced),
                        "{lag}"
                    );
                }
            }
        }
        assert_eq!(append_mark(&mut Vec::new(), 9, 0, u32::MAX), 0);
    }

    #[test]
    fn cassandras_parameters_are_read() {
        assert_eq!(header_with("{}").map(|h| (h.compression, h.whole)), Ok((None, None)));
        let lz4 = Compression::new("LZ4Compressor", BTreeMap::new()).expect("known");
        for parameters in [
            r#"{"compressionClass":"LZ4Compressor","compressionParameters":null}"#,
            r#"{"compressionClass":"LZ4Compressor","compressionParameters":{}}"#,
        ] {
            let header = header_with(parameters).expect("a header");
            assert_eq!((header.compression, header.whole), (Some(lz4.clone()), None));
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let encrypted = r#"{"encCipher":"AES/CBC/PKCS5Padding","encIV":"00","encKeyAlias":"a:1"}"#;
        let cipher = "AES/CBC/PKCS5Padding".to_owned();
        assert_eq!(header_with(encrypted), Err(HeaderError::Encrypted(cipher)));
        let unknown = header_with(r#"{"compressionClass":"Foo"}"#).map_err(|e| e.to_string());
        assert_eq!(
            unknown.expect_err("unknown"),
            "its parameters {\"compressionClass\":\"Foo\"} are not supported: Could not create Compression for type \
             org.apache.cassandra.io.compress.Foo"
        );
        assert!(header_with("{").is_err());
    }
}
