//! SSTable compression of a table (`schema.CompressionParams`).

use std::collections::BTreeMap;

/// Package of the compressors that Cassandra comes with.
pub(crate) const COMPRESS: &str = "org.apache.cassandra.io.compress.";

/// Chunks are of this size unless told otherwise, in bytes.
pub(crate) const DEFAULT_CHUNK_LENGTH: u32 = 16 * 1024;

/// A compressor, as understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// `LZ4Compressor`.
    Lz4,
    /// `SnappyCompressor`.
    Snappy,
    /// `DeflateCompressor`.
    Deflate,
    /// `ZstdCompressor`.
    Zstd,
    /// `NoopCompressor`: chunks and checksums, not smaller.
    Noop,
    /// None of these: kept and described.
    Custom,
}

/// Compression of a table's SSTables.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionParams {
    /// The compressor's full Java name; none = not compressed.
    pub class: Option<String>,
    /// What the class means.
    pub compressor: Option<Compressor>,
    /// Bytes of a chunk before compression, a power of two.
    pub chunk_length: u32,
    /// A chunk that stays larger than this is stored as it is; `i32::MAX` where no ratio was asked.
    pub max_compressed_length: i32,
    /// The ratio from which that follows; 0 = none.
    pub min_compress_ratio: f64,
    /// The compressor's own options, verbatim.
    pub options: BTreeMap<String, String>,
}

impl CompressionParams {
    /// Not compressed.
    pub fn none() -> Self {
        Self {
            class: None,
            compressor: None,
            chunk_length: DEFAULT_CHUNK_LENGTH,
            max_compressed_length: i32::MAX,
            min_compress_ratio: 0.0,
            options: BTreeMap::new(),
        }
    }

    /// Are SSTables compressed?
    pub fn is_enabled(&self) -> bool {
        self.class.is_some()
    }

    /// Understands a compressor's full Java name.
    pub(crate) fn compressor_of(class: &str) -> Compressor {
        match class.strip_prefix(COMPRESS) {
            Some("LZ4Compressor") => Compressor::Lz4,
            Some("SnappyCompressor") => Compressor::Snappy,
            Some("DeflateCompressor") => Compressor::Deflate,
            Some("ZstdCompressor") => Compressor::Zstd,
            Some("NoopCompressor") => Compressor::Noop,
            _ => Compressor::Custom,
        }
    }
}

impl Default for CompressionParams {
    fn default() -> Self {
        Self {
            class: Some(format!("{COMPRESS}LZ4Compressor")),
            compressor: Some(Compressor::Lz4),
            ..Self::none()
        }
    }
}
