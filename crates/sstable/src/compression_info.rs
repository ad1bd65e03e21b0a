//! `CompressionInfo.db`: how Data.db was compressed, and where each chunk starts
//! (`io.compress.CompressionMetadata`).
//!
//! UTF class name; `i32` number of options, each two UTFs; `i32` chunk length; from version
//! `na` on `i32` greatest compressed length; `i64` uncompressed length; `i32` number of chunks;
//! an `i64` offset each. A chunk's stored bytes are followed by their CRC-32.
//!
//! Cassandra's compaction flushes once more when a table ends: then an empty chunk follows the
//! last one that holds data (0 bytes of Deflate, an empty frame of Zstd, and a checksum).

use crate::bytes::{Reader, put_int, put_utf};
use crate::descriptor::Version;
use crate::error::{Result, corrupt};

const INFO: &str = "CompressionInfo.db";
/// Largest accepted chunk, in bytes: it bounds what decompression may allocate on the word of a
/// file without a checksum. Cassandra has no such limit; its default is 16 KiB.
pub const MAX_CHUNK_LENGTH: u32 = 128 << 20;
/// More options than any compressor has.
const MAX_OPTIONS: usize = 64;
/// Bytes of the checksum behind each chunk.
const CHECKSUM: u64 = 4;

/// The map of a compressed Data.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionInfo {
    /// Simple name of the compressor's class, as `LZ4Compressor`.
    pub class: String,
    /// Its options, in the file's order.
    pub options: Vec<(String, String)>,
    /// Bytes of uncompressed data in each chunk but the last: a power of two.
    pub chunk_length: u32,
    /// A chunk that would not become shorter than this is stored as it is.
    pub max_compressed_length: u32,
    /// Bytes of uncompressed data in all.
    pub uncompressed_length: u64,
    /// Where each chunk starts in Data.db, ascending; empty ones at the end included.
    pub offsets: Vec<u64>,
}

/// Where a chunk lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its first byte in Data.db.
    pub offset: u64,
    /// How many bytes are stored, without the checksum behind them.
    pub stored: u32,
    /// How many they become.
    pub uncompressed: u32,
    /// Whether they are stored as they are.
    pub is_raw: bool,
}

impl CompressionInfo {
    /// Reads a CompressionInfo.db of a table of version `version`.
    pub fn parse(bytes: &[u8], version: Version) -> Result<Self> {
        let mut reader = Reader::new(INFO, bytes);
        let class = reader.utf()?.to_string();
        let count = reader.count(4)?;
        if count > MAX_OPTIONS {
            return corrupt(INFO, format!("{count} options"));
        }
        let mut options = Vec::with_capacity(count);
        for _ in 0..count {
            options.push((reader.utf()?.to_string(), reader.utf()?.to_string()));
        }
        let chunk_length = reader.u32()?;
        if !chunk_length.is_power_of_two() || chunk_length > MAX_CHUNK_LENGTH {
            return corrupt(INFO, format!("its chunk length of {chunk_length} bytes is invalid"));
        }
        let max_compressed_length = match version.has_max_compressed_length() {
            true => reader.u32()?,
            false => i32::MAX.unsigned_abs(),
        };
        let uncompressed_length = reader.u64()?;
        let chunks = reader.count(8)?;
        let mut offsets = Vec::with_capacity(chunks);
        for _ in 0..chunks {
            offsets.push(reader.u64()?);
        }
        reader.end()?;
        let info = Self {
            class,
            options,
            chunk_length,
            max_compressed_length,
            uncompressed_length,
            offsets,
        };
        info.check()?;
        Ok(info)
    }

    fn check(&self) -> Result<()> {
        if self.max_compressed_length > i32::MAX.unsigned_abs() {
            return corrupt(INFO, "its greatest compressed length is negative");
        }
        let wanted = self.data_chunks();
        if wanted > self.offsets.len() as u64 {
            return corrupt(
                INFO,
                format!("it has {} chunks instead of {wanted}", self.offsets.len()),
            );
        }
        if self.offsets.first().is_some_and(|first| *first != 0) {
            return corrupt(INFO, "the first chunk does not start the file");
        }
        let grows = |a: &u64, b: &u64| a.checked_add(CHECKSUM).is_some_and(|end| end <= *b);
        match self.offsets.is_sorted_by(grows) {
            true => Ok(()),
            false => corrupt(INFO, "the chunks overlap"),
        }
    }

    /// The bytes of a CompressionInfo.db, as of version `na`. `None` if a name or an option has
    /// more than 65535 bytes.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(64 + 8 * self.offsets.len());
        put_utf(&mut out, &self.class)?;
        put_int(&mut out, self.options.len());
        for (key, value) in &self.options {
            put_utf(&mut out, key)?;
            put_utf(&mut out, value)?;
        }
        out.extend(self.chunk_length.to_be_bytes());
        out.extend(self.max_compressed_length.to_be_bytes());
        out.extend(self.uncompressed_length.to_be_bytes());
        put_int(&mut out, self.offsets.len());
        out.extend(self.offsets.iter().flat_map(|offset| offset.to_be_bytes()));
        Some(out)
    }

    /// How many chunks hold data; those after them are empty.
    pub fn data_chunks(&self) -> u64 {
        self.uncompressed_length.div_ceil(self.chunk_length.into())
    }

    /// The number of the chunk that holds the uncompressed position `at`.
    pub fn index_of(&self, at: u64) -> usize {
        usize::try_from(at >> self.chunk_length.trailing_zeros()).unwrap_or(usize::MAX)
    }

    /// Chunk number `index` of a Data.db of `file_length` bytes.
    pub fn chunk(&self, index: usize, file_length: u64) -> Result<Chunk> {
        let Some(offset) = self.offsets.get(index).copied() else {
            return corrupt(INFO, format!("there is no chunk {index}"));
        };
        let end = self.offsets.get(index + 1).copied().unwrap_or(file_length);
        let stored = end.checked_sub(offset).and_then(|n| n.checked_sub(CHECKSUM));
        let stored = stored.and_then(|n| u32::try_from(n).ok());
        let Some(stored) = stored.filter(|n| *n <= self.longest_stored()) else {
            return corrupt(
                INFO,
                format!("its chunk {index} has the invalid bounds {offset} and {end}"),
            );
        };
        let start = index as u64 * u64::from(self.chunk_length);
        let rest = self.uncompressed_length.saturating_sub(start).min(self.chunk_length.into());
        let uncompressed = rest as u32;
        let is_raw = stored >= self.max_compressed_length;
        if is_raw && stored < uncompressed {
            return corrupt(
                INFO,
                format!("chunk {index} is stored uncompressed, and is too short"),
            );
        }
        Ok(Chunk { offset, stored, uncompressed, is_raw })
    }

    /// What no compressor passes: a sixth more than a chunk, and some bytes.
    fn longest_stored(&self) -> u32 {
        self.chunk_length.saturating_add(self.chunk_length / 6).saturating_add(1024)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::descriptor::NB;

    const LZ4: &[u8] = include_bytes!("../testdata/lz4/nb-1-big-CompressionInfo.db");
    const RATIO: &[u8] = include_bytes!("../testdata/ratio/nb-1-big-CompressionInfo.db");

    #[test]
    fn round_trips_cassandras() {
        for bytes in [
            LZ4,
            RATIO,
            include_bytes!("../testdata/snappy/nb-1-big-CompressionInfo.db"),
            include_bytes!("../testdata/deflate/nb-1-big-CompressionInfo.db"),
            include_bytes!("../testdata/zstd/nb-1-big-CompressionInfo.db"),
            include_bytes!("../testdata/noop/nb-1-big-CompressionInfo.db"),
        ] {
            let info = CompressionInfo::parse(bytes, NB).unwrap();
            assert_eq!(info.encode().unwrap(), bytes);
        }
    }

    #[test]
    fn finds_chunks() {
        let info = CompressionInfo::parse(LZ4, NB).unwrap();
        assert_eq!((info.class.as_str(), info.chunk_length), ("LZ4Compressor", 4096));
        assert_eq!(info.uncompressed_length, 12254);
        assert_eq!((info.index_of(0), info.index_of(4096), info.index_of(12253)), (0, 1, 2));
        let last = info.chunk(2, 6403).unwrap();
        assert_eq!(
            (last.offset, last.stored, last.uncompressed),
            (0x1091, 6403 - 0x1091 - 4, 4062)
        );
        assert!(info.chunk(3, 6403).is_err());
        assert!(info.chunk(2, 0x1091).is_err());
        assert!(info.chunk(2, 1 << 40).is_err());
    }

    #[test]
    fn an_empty_chunk_may_follow() {
        // As compaction left it.
        let bytes = include_bytes!("../testdata/deflate/nb-1-big-CompressionInfo.db");
        let info = CompressionInfo::parse(bytes, NB).unwrap();
        assert_eq!((info.data_chunks(), info.offsets.len()), (3, 4));
        let empty = info.chunk(3, 6207).unwrap();
        assert_eq!((empty.stored, empty.uncompressed), (0, 0));
    }

    #[test]
    fn refuses_contradictions() {
        let good = CompressionInfo::parse(LZ4, NB).unwrap();
        let broken = [
            CompressionInfo { chunk_length: 4095, ..good.clone() },
            CompressionInfo { chunk_length: 0, ..good.clone() },
            CompressionInfo { uncompressed_length: 1 << 60, ..good.clone() },
            CompressionInfo { offsets: vec![0, 9, 12], ..good.clone() },
            CompressionInfo { offsets: vec![1, 9, 20], ..good.clone() },
            CompressionInfo { max_compressed_length: u32::MAX, ..good },
        ];
        for info in broken {
            assert!(CompressionInfo::parse(&info.encode().unwrap(), NB).is_err(), "{info:?}");
        }
        for n in 0..LZ4.len() {
            assert!(CompressionInfo::parse(&LZ4[..n], NB).is_err());
        }
        let mut longer = LZ4.to_vec();
        longer.push(0);
        assert!(CompressionInfo::parse(&longer, NB).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0usize..70, byte: u8, index in 0usize..5, length: u64) {
            let mut bytes = LZ4.to_vec();
            if let Some(b) = bytes.get_mut(at) {
                *b = byte;
            }
            if let Ok(info) = CompressionInfo::parse(&bytes, NB) {
                let _ = info.chunk(index, length);
            }
        }
    }
}
