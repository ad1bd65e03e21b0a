//! Checksums of Data.db: all plain CRC-32.
//!
//! `Digest.crc32` holds that of the whole file as decimal text. Of an uncompressed Data.db,
//! `CRC.db` holds an `i32` chunk size and then one `i32` a chunk. Chunks of a compressed
//! Data.db have theirs behind them, within the file.

use crate::bytes::Reader;
use crate::error::{Error, Result, corrupt};

/// Largest accepted chunk of CRC.db. Cassandra writes its buffer's size, 64 KiB.
pub const MAX_CHUNK: u32 = 1 << 30;

/// The checksum that a `Digest.crc32` holds.
pub fn parse_digest(text: &str) -> Result<u32> {
    let text = text.trim_end_matches(['\n', '\r']);
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(crc) if is_number => Ok(crc),
        _ => corrupt(
            "Digest.crc32",
            format!("{:?} is not a checksum", text.get(..40).unwrap_or(text)),
        ),
    }
}

/// The text of a `Digest.crc32`.
pub fn encode_digest(crc: u32) -> String {
    crc.to_string()
}

/// What CRC.db holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkChecksums {
    /// Bytes of Data.db in each chunk but the last.
    pub chunk_size: u32,
    /// One a chunk.
    pub checksums: Vec<u32>,
}

const CRC: &str = "CRC.db";

impl ChunkChecksums {
    /// Of a Data.db that is about to be written in chunks.
    pub fn new(chunk_size: u32) -> Self {
        Self { chunk_size, checksums: Vec::new() }
    }

    /// Reads a CRC.db.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(CRC, bytes);
        let chunk_size = reader.u32()?;
        if !(1..=MAX_CHUNK).contains(&chunk_size) {
            return corrupt(CRC, format!("its chunk size of {chunk_size} bytes is invalid"));
        }
        let mut checksums = Vec::with_capacity(reader.left() / 4);
        while reader.left() > 0 {
            checksums.push(reader.u32()?);
        }
        Ok(Self { chunk_size, checksums })
    }

    /// The bytes of a CRC.db.
    pub fn encode(&self) -> Vec<u8> {
        let numbers = std::iter::once(&self.chunk_size).chain(&self.checksums);
        numbers.flat_map(|n| n.to_be_bytes()).collect()
    }

    /// Adds the checksum of the next chunk that was written.
    pub fn push(&mut self, chunk: &[u8]) {
        self.checksums.push(crc32fast::hash(chunk));
    }

    /// Checks chunk number `index`.
    pub fn verify(&self, index: usize, chunk: &[u8]) -> Result<()> {
        let Some(stored) = self.checksums.get(index).copied() else {
            return corrupt(CRC, format!("it has no checksum of chunk {index}"));
        };
        verify("Data.db", || format!("chunk {index}"), chunk, stored)
    }
}

/// Checks `bytes` against the checksum stored for them.
pub fn verify(
    component: &'static str,
    what: impl FnOnce() -> String,
    bytes: &[u8],
    stored: u32,
) -> Result<()> {
    let found = crc32fast::hash(bytes);
    if found == stored {
        return Ok(());
    }
    Err(Error::Checksum { component, what: what(), stored, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cassandras_digests_are_of_the_whole_file() {
        for (data, digest) in [
            (
                &include_bytes!("../testdata/lz4/nb-1-big-Data.db")[..],
                include_str!("../testdata/lz4/nb-1-big-Digest.crc32"),
            ),
            (
                &include_bytes!("../testdata/plain/nb-1-big-Data.db")[..],
                include_str!("../testdata/plain/nb-1-big-Digest.crc32"),
            ),
        ] {
            assert_eq!(parse_digest(digest).unwrap(), crc32fast::hash(data));
            assert_eq!(encode_digest(crc32fast::hash(data)), digest);
        }
    }

    #[test]
    fn cassandras_chunk_checksums_hold() {
        let data = include_bytes!("../testdata/plain/nb-1-big-Data.db");
        let bytes = include_bytes!("../testdata/plain/nb-1-big-CRC.db");
        let read = ChunkChecksums::parse(bytes).unwrap();
        assert_eq!(read.chunk_size, 65536);
        let mut ours = ChunkChecksums::new(65536);
        for (i, chunk) in data.chunks(65536).enumerate() {
            read.verify(i, chunk).unwrap();
            ours.push(chunk);
        }
        assert_eq!(ours.encode(), bytes);
        let mut torn = data.to_vec();
        torn[7] ^= 1;
        assert!(matches!(read.verify(0, &torn), Err(Error::Checksum { .. })));
        assert!(read.verify(1, data).is_err());
    }

    #[test]
    fn refuses_what_is_none() {
        for text in ["", "x", "-1", "+1", "4294967296", "1 2"] {
            assert!(parse_digest(text).is_err(), "{text:?}");
        }
        assert!(ChunkChecksums::parse(&[0, 0, 0, 0]).is_err());
        assert!(ChunkChecksums::parse(&[0, 1, 0, 0, 1]).is_err());
        assert!(ChunkChecksums::parse(&[]).is_err());
    }
}
