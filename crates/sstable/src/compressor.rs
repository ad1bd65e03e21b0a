//! The compressors of a chunk (`io.compress.*Compressor`).
//!
//! LZ4: the uncompressed length as 4 little-endian bytes, then an LZ4 block. Snappy: its raw
//! format. Deflate: a zlib stream. Zstd: one frame. Noop: the bytes themselves. No output
//! grows beyond the length that the caller knows it to have.

use std::collections::BTreeMap;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use crate::error::{Error, Result, corrupt};

const CHUNK: &str = "a compressed chunk";
/// Zstd's levels, and Cassandra's default among them.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;
const ZSTD_DEFAULT: i32 = 3;
/// Levels of LZ4's slow way to compress.
const LZ4_LEVELS: std::ops::RangeInclusive<i32> = 1..=17;
/// The package that a bare class name is looked for in.
const PACKAGE: &str = "org.apache.cassandra.io.compress.";

/// A compressor with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// `LZ4Compressor`. Its option `lz4_compressor_type: high` is accepted and compresses as
    /// `fast` does: what is read back is the same.
    Lz4,
    /// `SnappyCompressor`.
    Snappy,
    /// `DeflateCompressor`.
    Deflate,
    /// `ZstdCompressor` and its `compression_level`.
    Zstd(i32),
    /// `NoopCompressor`.
    Noop,
}

impl Compressor {
    /// Whether writing with it keeps up with a flush (`ICompressor.recommendedUses`).
    pub fn is_fast(self) -> bool {
        match self {
            Self::Lz4 | Self::Snappy | Self::Noop => true,
            Self::Deflate | Self::Zstd(_) => false,
        }
    }

    /// By the name of its class, with or without package, and its options.
    pub fn parse(class: &str, options: &BTreeMap<String, String>) -> Result<Self> {
        let refuse = |text: String| Err(Error::Options(text));
        let simple = class.strip_prefix(PACKAGE).unwrap_or(class);
        let (compressor, known): (_, &[&str]) = match simple {
            "LZ4Compressor" => {
                check_lz4(options)?;
                (Self::Lz4, &["lz4_compressor_type", "lz4_high_compressor_level"])
            }
            "SnappyCompressor" => (Self::Snappy, &[]),
            "DeflateCompressor" => (Self::Deflate, &[]),
            "ZstdCompressor" => (Self::Zstd(zstd_level(options)?), &["compression_level"]),
            "NoopCompressor" => (Self::Noop, &[]),
            _ => {
                let package = if class.contains('.') { "" } else { PACKAGE };
                return refuse(format!("Could not create Compression for type {package}{class}"));
            }
        };
        match options.keys().find(|key| !known.contains(&key.as_str())) {
            Some(unknown) => refuse(format!("Unknown compression options {unknown}")),
            None => Ok(compressor),
        }
    }

    /// The simple name of its class.
    pub fn class(self) -> &'static str {
        match self {
            Self::Lz4 => "LZ4Compressor",
            Self::Snappy => "SnappyCompressor",
            Self::Deflate => "DeflateCompressor",
            Self::Zstd(_) => "ZstdCompressor",
            Self::Noop => "NoopCompressor",
        }
    }

    /// Whether to compress takes so long that `flush_compression: fast` takes LZ4 instead.
    pub fn is_slow(self) -> bool {
        matches!(self, Self::Deflate | Self::Zstd(_))
    }
}

fn check_lz4(options: &BTreeMap<String, String>) -> Result<()> {
    let kind = options.get("lz4_compressor_type").map_or("fast", String::as_str);
    if !matches!(kind, "fast" | "high") {
        return Err(Error::Options(format!(
            "Invalid compressor type '{kind}' specified for LZ4 parameter 'lz4_compressor_type'. \
             Valid options are [fast, high]."
        )));
    }
    let Some(level) = options.get("lz4_high_compressor_level") else { return Ok(()) };
    match level.parse() {
        Ok(n) if LZ4_LEVELS.contains(&n) => Ok(()),
        _ => Err(Error::Options(format!(
            "Invalid value [{level}] for parameter 'lz4_high_compressor_level'. Value must be \
             between 1 and 17."
        ))),
    }
}

fn zstd_level(options: &BTreeMap<String, String>) -> Result<i32> {
    let Some(level) = options.get("compression_level") else { return Ok(ZSTD_DEFAULT) };
    match level.parse() {
        Ok(n) if ZSTD_LEVELS.contains(&n) => Ok(n),
        _ => Err(Error::Options(format!("compression_level={level} is invalid"))),
    }
}

/// A compressor with the memory that it works in, for one thread to use chunk after chunk.
pub struct Codec {
    compressor: Compressor,
    lz4_in: Option<CompressTable>,
    zstd_in: Option<zstd::bulk::Compressor<'static>>,
    zstd_out: Option<zstd::bulk::Decompressor<'static>>,
}

impl Codec {
    /// Takes its memory when it is first used.
    pub fn new(compressor: Compressor) -> Self {
        Self { compressor, lz4_in: None, zstd_in: None, zstd_out: None }
    }

    /// Which one.
    pub fn compressor(&self) -> Compressor {
        self.compressor
    }

    /// Appends the compressed form of `chunk` to `out`.
    pub fn compress(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let space = match self.compressor {
            Compressor::Noop => {
                out.extend(chunk);
                return Ok(());
            }
            Compressor::Lz4 => {
                let Ok(length) = u32::try_from(chunk.len()) else { return too_large(chunk) };
                out.extend(length.to_le_bytes());
                get_maximum_output_size(chunk.len())
            }
            Compressor::Snappy => snap::raw::max_compress_len(chunk.len()),
            // Deflate stores what it cannot compress in blocks of up to 64 KiB, 5 bytes each.
            Compressor::Deflate => chunk.len() + chunk.len() / 1000 + 64,
            Compressor::Zstd(_) => zstd::zstd_safe::compress_bound(chunk.len()),
        };
        let from = out.len();
        out.resize(from + space, 0);
        let room = out.get_mut(from..).expect("the buffer for a chunk was just enlarged");
        let written = self.fill(chunk, room);
        assert!(written.is_none_or(|n| n <= space), "a compressed chunk fits its buffer");
        match written {
            Some(n) => {
                out.truncate(from + n);
                Ok(())
            }
            None => {
                out.truncate(start);
                too_large(chunk)
            }
        }
    }

    fn fill(&mut self, chunk: &[u8], out: &mut [u8]) -> Option<usize> {
        match self.compressor {
            Compressor::Lz4 => {
                let table = self.lz4_in.get_or_insert_default();
                compress_into_with_table(chunk, out, table).ok()
            }
            Compressor::Snappy => snap::raw::Encoder::new().compress(chunk, out).ok(),
            Compressor::Deflate => {
                let mut state = flate2::Compress::new(flate2::Compression::default(), true);
                let status = state.compress(chunk, out, flate2::FlushCompress::Finish).ok()?;
                let done = status == flate2::Status::StreamEnd;
                done.then(|| usize::try_from(state.total_out()).ok())?
            }
            Compressor::Zstd(level) => {
                if self.zstd_in.is_none() {
                    let mut zstd = zstd::bulk::Compressor::new(level).ok()?;
                    // As Cassandra does, though each chunk has a checksum of its own.
                    zstd.include_checksum(true).ok()?;
                    self.zstd_in = Some(zstd);
                }
                self.zstd_in.as_mut()?.compress_to_buffer(chunk, out).ok()
            }
            Compressor::Noop => None,
        }
    }

    /// Replaces `out` by the `length` bytes that `stored` was made from. Stored bytes that
    /// would become more or fewer are refused.
    pub fn decompress(&mut self, stored: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.resize(length, 0);
        match self.unpack(stored, out) {
            Some(n) if n == length => Ok(()),
            _ => {
                out.clear();
                let class = self.compressor.class();
                corrupt(CHUNK, format!("{class} does not decompress it to {length} bytes"))
            }
        }
    }

    /// Replaces `out` by what `stored` was made from, where nobody says how many bytes that is.
    ///
    /// # Errors
    /// If it is more than `most` bytes, or nothing can be made of it.
    pub fn decompress_up_to(
        &mut self,
        stored: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let length = match self.compressor {
            Compressor::Lz4 => {
                let length = stored.first_chunk().map(|length| u32::from_le_bytes(*length));
                length.and_then(|length| usize::try_from(length).ok())
            }
            Compressor::Snappy => snap::raw::decompress_len(stored).ok(),
            Compressor::Noop => Some(stored.len()),
            // they say where they end
            Compressor::Deflate | Compressor::Zstd(_) => Some(most),
        };
        out.clear();
        let room = length.filter(|length| *length <= most);
        if let Some(room) = room {
            out.resize(room, 0);
            if let Some(written) = self.unpack(stored, out) {
                out.truncate(written);
                return Ok(());
            }
        }
        out.clear();
        let class = self.compressor.class();
        corrupt(CHUNK, format!("{class} does not decompress it to at most {most} bytes"))
    }

    fn unpack(&mut self, stored: &[u8], out: &mut [u8]) -> Option<usize> {
        match self.compressor {
            Compressor::Lz4 => {
                let (length, block) = stored.split_at_checked(4)?;
                let length = u32::from_le_bytes(length.try_into().ok()?);
                let same = usize::try_from(length).ok()? == out.len();
                same.then(|| decompress_into(block, out).ok())?
            }
            Compressor::Snappy => {
                let length = snap::raw::decompress_len(stored).ok()?;
                let same = length == out.len();
                same.then(|| snap::raw::Decoder::new().decompress(stored, out).ok())?
            }
            Compressor::Deflate => {
                let mut state = flate2::Decompress::new(true);
                // To no room at all it would not even read the stream's end.
                let mut spare = [0; 1];
                let room = if out.is_empty() { &mut spare[..] } else { out };
                let finish = flate2::FlushDecompress::Finish;
                let status = state.decompress(stored, room, finish).ok()?;
                let done = status == flate2::Status::StreamEnd;
                done.then(|| usize::try_from(state.total_out()).ok())?
            }
            Compressor::Zstd(_) => {
                if self.zstd_out.is_none() {
                    self.zstd_out = zstd::bulk::Decompressor::new().ok();
                }
                self.zstd_out.as_mut()?.decompress_to_buffer(stored, out).ok()
            }
            Compressor::Noop => {
                let same = stored.len() == out.len();
                same.then(|| out.copy_from_slice(stored))?;
                Some(out.len())
            }
        }
    }
}

fn too_large(chunk: &[u8]) -> Result<()> {
    corrupt(CHUNK, format!("{} bytes cannot be compressed at once", chunk.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum;
    use crate::compression_info::CompressionInfo;
    use crate::descriptor::NB;

    const ALL: [Compressor; 5] = [
        Compressor::Lz4,
        Compressor::Snappy,
        Compressor::Deflate,
        Compressor::Zstd(5),
        Compressor::Noop,
    ];

    fn unpack(info: &[u8], data: &[u8]) -> Vec<u8> {
        let info = CompressionInfo::parse(info, NB).unwrap();
        let options = info.options.iter().cloned().collect();
        let mut codec = Codec::new(Compressor::parse(&info.class, &options).unwrap());
        let (mut all, mut chunk) = (Vec::new(), Vec::new());
        for index in 0..info.offsets.len() {
            let at = info.chunk(index, data.len() as u64).unwrap();
            let end = at.offset as usize + at.stored as usize;
            let stored = &data[at.offset as usize..end];
            let crc = u32::from_be_bytes(data[end..end + 4].try_into().unwrap());
            checksum::verify("Data.db", || format!("chunk {index}"), stored, crc).unwrap();
            if at.is_raw {
                all.extend(stored);
            } else if (index as u64) < info.data_chunks() {
                codec.decompress(stored, at.uncompressed as usize, &mut chunk).unwrap();
                all.extend(&chunk);
            }
        }
        assert_eq!(all.len() as u64, info.uncompressed_length);
        all
    }

    macro_rules! unpacked {
        ($table:literal) => {
            unpack(
                include_bytes!(concat!("../testdata/", $table, "/nb-1-big-CompressionInfo.db")),
                include_bytes!(concat!("../testdata/", $table, "/nb-1-big-Data.db")),
            )
        };
    }

    #[test]
    fn unpacks_cassandras_chunks() {
        let noop = unpacked!("noop");
        for data in [
            unpacked!("lz4"),
            unpacked!("snappy"),
            unpacked!("deflate"),
            unpacked!("zstd"),
            unpacked!("ratio"),
        ] {
            assert_eq!(data.len(), noop.len());
            // Each table's blobs are its own; all start with the same partition.
            assert_eq!(data[..7], noop[..7]);
        }
    }

    #[test]
    fn options_are_cassandras() {
        let options = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
        };
        let parse = |class, pairs| Compressor::parse(class, &options(pairs));
        assert_eq!(parse("LZ4Compressor", &[("lz4_compressor_type", "high")]), Ok(Compressor::Lz4));
        assert_eq!(
            parse(
                "org.apache.cassandra.io.compress.ZstdCompressor",
                &[("compression_level", "-5")]
            ),
            Ok(Compressor::Zstd(-5))
        );
        let refused = |class, pairs| parse(class, pairs).unwrap_err().to_string();
        assert_eq!(
            refused("FooCompressor", &[]),
            "Could not create Compression for type org.apache.cassandra.io.compress.FooCompressor"
        );
        assert_eq!(
            refused("SnappyCompressor", &[("level", "1")]),
            "Unknown compression options level"
        );
        assert!(parse("ZstdCompressor", &[("compression_level", "23")]).is_err());
        assert!(parse("LZ4Compressor", &[("lz4_high_compressor_level", "0")]).is_err());
        assert!(parse("LZ4Compressor", &[("lz4_compressor_type", "slow")]).is_err());
    }

    #[test]
    fn refuses_another_length() {
        for compressor in ALL {
            let mut codec = Codec::new(compressor);
            let (mut stored, mut out) = (Vec::new(), Vec::new());
            codec.compress(&[7; 1000], &mut stored).unwrap();
            for length in [0, 1, 999, 1001, 5000] {
                assert!(codec.decompress(&stored, length, &mut out).is_err(), "{compressor:?}");
                assert!(out.is_empty());
            }
        }
    }

    #[test]
    fn zstd_makes_cassandras_frames() {
        let data = include_bytes!("../testdata/zstd/nb-1-big-Data.db");
        let mut codec = Codec::new(Compressor::Zstd(5));
        let (mut ours, mut plain) = (Vec::new(), unpacked!("zstd"));
        plain.truncate(4096);
        codec.compress(&plain, &mut ours).unwrap();
        // Magic number and the descriptor: content size and checksum are there.
        assert_eq!(ours[..5], data[..5]);
        codec.decompress(&ours, 4096, &mut plain).unwrap();
    }

    proptest! {
        #[test]
        fn chunks_round_trip(
            chunk in prop::collection::vec(any::<u8>(), 0..3000),
            repeated in 0usize..4000,
        ) {
            for compressor in ALL {
                let mut codec = Codec::new(compressor);
                let (mut stored, mut out) = (b"before".to_vec(), Vec::new());
                for data in [chunk.clone(), chunk.repeat(1 + repeated / 1000), vec![1; repeated]] {
                    stored.truncate(6);
                    codec.compress(&data, &mut stored).unwrap();
                    codec.decompress(&stored[6..], data.len(), &mut out).unwrap();
                    prop_assert_eq!(&out, &data);
                }
            }
        }

        #[test]
        fn no_bytes_panic(stored in prop::collection::vec(any::<u8>(), 0..200), n in 0usize..400) {
            for compressor in ALL {
                let _ = Codec::new(compressor).decompress(&stored, n, &mut Vec::new());
            }
        }
    }
}
