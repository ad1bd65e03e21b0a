//! SSTable compression of a table (`schema.CompressionParams`).

use std::collections::BTreeMap;

use crate::error::SchemaError;
use crate::jvm;

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

    /// From the statement's map or the stored one.
    pub(crate) fn from_map(map: &BTreeMap<String, String>) -> Result<Self, SchemaError> {
        let mut options = map.clone();
        let enabled = map.get("enabled").is_none_or(|v| v.eq_ignore_ascii_case("true"));
        options.remove("enabled");
        if !map.is_empty() && enabled && !map.contains_key("class") {
            return SchemaError::config("Missing sub-option 'class' for the 'compression' option.");
        }
        if !enabled && !options.is_empty() {
            return SchemaError::config(
                "If the 'enabled' option is set to false no other options must be specified",
            );
        }
        let class = options.remove("class");
        if class.as_ref().is_some_and(String::is_empty) {
            return SchemaError::config(
                "The 'class' option must not be empty. To disable compression use 'enabled' : false",
            );
        }
        let chunk_length = match options.remove("chunk_length_in_kb") {
            Some(text) => parse_chunk_length(&text)?,
            None => DEFAULT_CHUNK_LENGTH as i32,
        };
        let min_compress_ratio = match options.remove("min_compress_ratio") {
            Some(text) => parse_ratio(&text)?,
            None => 0.0,
        };
        let Some(class) = class else { return Ok(Self::none()) };
        let class = if class.contains('.') { class } else { format!("{COMPRESS}{class}") };
        let compressor = Self::compressor_of(&class);
        check_options(&class, compressor, &options)?;
        let ceiling = (f64::from(chunk_length) / min_compress_ratio).min(f64::from(i32::MAX));
        let max_compressed_length = ceiling.ceil() as i32;
        check_lengths(chunk_length, max_compressed_length)?;
        Ok(Self {
            class: Some(class),
            compressor: Some(compressor),
            chunk_length: chunk_length.unsigned_abs(),
            max_compressed_length,
            min_compress_ratio,
            options,
        })
    }

    /// As stored.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let Some(class) = &self.class else {
            return [("enabled".to_owned(), "false".to_owned())].into();
        };
        let mut map = self.options.clone();
        map.insert("class".to_owned(), class.clone());
        map.insert("chunk_length_in_kb".to_owned(), (self.chunk_length / 1024).to_string());
        if self.min_compress_ratio != 0.0 {
            map.insert("min_compress_ratio".to_owned(), jvm::double(self.min_compress_ratio));
        }
        map
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

fn parse_chunk_length(text: &str) -> Result<i32, SchemaError> {
    let Ok(kib) = text.parse::<i32>() else {
        return SchemaError::config("Invalid value for chunk_length_in_kb");
    };
    if kib > i32::MAX / 1024 {
        return SchemaError::config(format!("Value of chunk_length_in_kb is too large ({kib})"));
    }
    Ok(kib.wrapping_mul(1024))
}

/// Cassandra answers a server error to a ratio that is no number; we name the option.
fn parse_ratio(text: &str) -> Result<f64, SchemaError> {
    match jvm::parse_double(text) {
        Some(ratio) => Ok(ratio),
        None => SchemaError::config(format!("For input string: \"{text}\"")),
    }
}

fn check_lengths(chunk_length: i32, max_compressed_length: i32) -> Result<(), SchemaError> {
    let text = if chunk_length <= 0 {
        "Invalid negative or null chunk_length_in_kb"
    } else if chunk_length & (chunk_length - 1) != 0 {
        "chunk_length_in_kb must be a power of 2"
    } else if max_compressed_length < 0 {
        "Invalid negative min_compress_ratio"
    } else if max_compressed_length > chunk_length && max_compressed_length < i32::MAX {
        "min_compress_ratio can either be 0 or greater than or equal to 1"
    } else {
        return Ok(());
    };
    SchemaError::config(text)
}

/// The levels of `Zstd.minCompressionLevel()` and `maxCompressionLevel()`.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;

fn check_options(
    class: &str,
    compressor: Compressor,
    options: &BTreeMap<String, String>,
) -> Result<(), SchemaError> {
    let known: &[&str] = match compressor {
        Compressor::Lz4 => {
            check_lz4(options)?;
            &["lz4_compressor_type", "lz4_high_compressor_level"]
        }
        Compressor::Zstd => {
            check_zstd(options)?;
            &["compression_level"]
        }
        Compressor::Snappy | Compressor::Deflate | Compressor::Noop => &[],
        Compressor::Custom => {
            let text = format!("Could not create Compression for type {class}");
            return SchemaError::config(text);
        }
    };
    let names: Vec<&String> = options.keys().collect();
    let names = jvm::string_order(names, jvm::DEFAULT_CAPACITY);
    match names.into_iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => SchemaError::config(format!("Unknown compression options {name}")),
        None => Ok(()),
    }
}

fn check_lz4(options: &BTreeMap<String, String>) -> Result<(), SchemaError> {
    if let Some(kind) = options.get("lz4_compressor_type")
        && !matches!(kind.as_str(), "fast" | "high")
    {
        return SchemaError::config(format!(
            "Invalid compressor type '{kind}' specified for LZ4 parameter 'lz4_compressor_type'. \
             Valid options are [high, fast]."
        ));
    }
    if let Some(level) = options.get("lz4_high_compressor_level")
        && !level.parse().is_ok_and(|level: i32| (1..=17).contains(&level))
    {
        return SchemaError::config(format!(
            "Invalid value [{level}] for parameter 'lz4_high_compressor_level'. Value must be \
             between 1 and 17."
        ));
    }
    Ok(())
}

fn check_zstd(options: &BTreeMap<String, String>) -> Result<(), SchemaError> {
    let Some(text) = options.get("compression_level") else { return Ok(()) };
    let threw = "ZstdCompressor.create() threw an error: java.lang.";
    match text.parse() {
        Ok(level) if ZSTD_LEVELS.contains(&level) => Ok(()),
        Ok(level) => SchemaError::config(format!(
            "{threw}IllegalArgumentException compression_level={level} is invalid"
        )),
        Err(_) => SchemaError::config(format!(
            "{threw}NumberFormatException For input string: \"{text}\""
        )),
    }
}
