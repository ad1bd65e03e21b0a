//! A table's option `compression` (`schema.CompressionParams`), with Cassandra's words for
//! what it refuses.

use std::collections::BTreeMap;

use crate::compression_info::MAX_CHUNK_LENGTH;
use crate::compressor::Compressor;
use crate::error::{Error, Result};

/// Default of `chunk_length_in_kb`, in bytes.
const DEFAULT_CHUNK_LENGTH: u32 = 16 << 10;
/// Of chunks that are not compressed, in bytes.
const NOOP_CHUNK_LENGTH: u32 = 4 << 10;

/// How a table is compressed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionParams {
    /// With what.
    pub compressor: Compressor,
    /// The compressor's own options, for CompressionInfo.db and the schema.
    pub options: BTreeMap<String, String>,
    /// Bytes of a chunk, a power of two.
    pub chunk_length: u32,
    /// A chunk that would not become this many times shorter is stored as it is; 0: never.
    pub min_compress_ratio: f64,
}

impl Default for CompressionParams {
    fn default() -> Self {
        Self {
            compressor: Compressor::Lz4,
            options: BTreeMap::new(),
            chunk_length: DEFAULT_CHUNK_LENGTH,
            min_compress_ratio: 0.0,
        }
    }
}

impl CompressionParams {
    /// Chunks as they are, of the size of a disk's block (`CompressionParams.NOOP`).
    pub fn noop() -> Self {
        Self { compressor: Compressor::Noop, chunk_length: NOOP_CHUNK_LENGTH, ..Self::default() }
    }

    /// Reads the option's map; `None` where it turns compression off.
    pub fn from_map(map: &BTreeMap<String, String>) -> Result<Option<Self>> {
        let refuse = |text: &str| Err(Error::Options(text.to_string()));
        let mut options = map.clone();
        let enabled = options.remove("enabled");
        let is_enabled = enabled.is_none_or(|v| v.eq_ignore_ascii_case("true"));
        if !is_enabled && !options.is_empty() {
            return refuse(
                "If the 'enabled' option is set to false no other options must be specified",
            );
        }
        if map.is_empty() || !is_enabled {
            return Ok(None);
        }
        let Some(class) = options.remove("class") else {
            return refuse("Missing sub-option 'class' for the 'compression' option.");
        };
        if class.is_empty() {
            return refuse(
                "The 'class' option must not be empty. To disable compression use 'enabled' : false",
            );
        }
        let chunk_length = chunk_length(options.remove("chunk_length_in_kb").as_deref())?;
        let min_compress_ratio = match options.remove("min_compress_ratio") {
            None => 0.0,
            Some(text) => match text.trim().parse::<f64>() {
                Ok(ratio) if ratio.is_finite() => ratio,
                _ => return refuse(&format!("For input string: \"{text}\"")),
            },
        };
        let compressor = Compressor::parse(&class, &options)?;
        let params = Self { compressor, options, chunk_length, min_compress_ratio };
        params.check()?;
        Ok(Some(params))
    }

    fn check(&self) -> Result<()> {
        let most = self.max_compressed_length();
        let text = if self.min_compress_ratio < 0.0 {
            "Invalid negative min_compress_ratio"
        } else if most > self.chunk_length && most < i32::MAX.unsigned_abs() {
            "min_compress_ratio can either be 0 or greater than or equal to 1"
        } else {
            return Ok(());
        };
        Err(Error::Options(text.to_string()))
    }

    /// What CompressionInfo.db says of it: stored lengths from this on are of raw chunks.
    pub fn max_compressed_length(&self) -> u32 {
        let most = f64::from(self.chunk_length) / self.min_compress_ratio;
        most.min(f64::from(i32::MAX)).ceil() as u32
    }

    /// The option's map, as the schema stores it.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut map = self.options.clone();
        let class = format!("org.apache.cassandra.io.compress.{}", self.compressor.class());
        map.insert("class".into(), class);
        map.insert("chunk_length_in_kb".into(), (self.chunk_length >> 10).to_string());
        if self.min_compress_ratio != 0.0 {
            map.insert("min_compress_ratio".into(), format!("{:?}", self.min_compress_ratio));
        }
        map
    }
}

fn chunk_length(text: Option<&str>) -> Result<u32> {
    let refuse = |text: String| Err(Error::Options(text));
    let Some(text) = text else { return Ok(DEFAULT_CHUNK_LENGTH) };
    let Ok(kib) = text.parse::<i32>() else {
        return refuse("Invalid value for chunk_length_in_kb".into());
    };
    if kib > (MAX_CHUNK_LENGTH >> 10) as i32 {
        return refuse(format!("Value of chunk_length_in_kb is too large ({kib})"));
    }
    match u32::try_from(kib) {
        Ok(kib) if kib > 0 && kib.is_power_of_two() => Ok(kib << 10),
        Ok(kib) if kib > 0 => refuse("chunk_length_in_kb must be a power of 2".into()),
        _ => refuse("Invalid negative or null chunk_length_in_kb".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Option<CompressionParams>> {
        let map = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        CompressionParams::from_map(&map)
    }

    #[test]
    fn reads_what_cassandra_reads() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("enabled", "false")]), Ok(None));
        let params = read(&[("class", "LZ4Compressor")]).unwrap().unwrap();
        assert_eq!(params, CompressionParams::default());
        assert_eq!(params.max_compressed_length(), 0x7fff_ffff);
        let params = read(&[
            ("class", "LZ4Compressor"),
            ("chunk_length_in_kb", "4"),
            ("min_compress_ratio", "1.5"),
        ]);
        let params = params.unwrap().unwrap();
        // As in the CompressionInfo.db of the table made so.
        assert_eq!(params.max_compressed_length(), 0xaab);
        assert_eq!(CompressionParams::from_map(&params.to_map()), Ok(Some(params)));
    }

    #[test]
    fn refuses_in_cassandras_words() {
        for (pairs, text) in [
            (
                &[("enabled", "false"), ("class", "LZ4Compressor")][..],
                "If the 'enabled' option is set to false no other options must be specified",
            ),
            (
                &[("chunk_length_in_kb", "4")],
                "Missing sub-option 'class' for the 'compression' option.",
            ),
            (
                &[("class", "LZ4Compressor"), ("chunk_length_in_kb", "3")],
                "chunk_length_in_kb must be a power of 2",
            ),
            (
                &[("class", "LZ4Compressor"), ("chunk_length_in_kb", "0")],
                "Invalid negative or null chunk_length_in_kb",
            ),
            (
                &[("class", "LZ4Compressor"), ("chunk_length_in_kb", "x")],
                "Invalid value for chunk_length_in_kb",
            ),
            (
                &[("class", "LZ4Compressor"), ("min_compress_ratio", "0.5")],
                "min_compress_ratio can either be 0 or greater than or equal to 1",
            ),
            (
                &[("class", "LZ4Compressor"), ("min_compress_ratio", "-1")],
                "Invalid negative min_compress_ratio",
            ),
            (&[("class", "LZ4Compressor"), ("x", "1")], "Unknown compression options x"),
        ] {
            assert_eq!(read(pairs).unwrap_err().to_string(), text);
        }
    }
}
