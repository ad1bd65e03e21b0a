//! A file's name and header (`HintsDescriptor`).
//!
//! ```text
//! name   = host '-' timestamp '-' version ".hints"; beside it ".crc32", the checksum of the whole
//!          file in hexadecimal
//! header = i32 version=2 | i64 timestamp, ms since 1970 | host, 16 bytes | i32 n | i32 crc
//!          | n bytes of JSON | i32 crc
//! ```
//!
//! The first checksum is over version, timestamp, the host's halves and n, of 64 bits the lower 32
//! first; the second goes on with the JSON. That is an object, empty or with `compression`
//! (`class_name`, `parameters`) or `encryption`. Source: the code of 4.1.10 and 5.0.9; files that
//! 5.0.9's classes wrote are in `testdata`.

use std::collections::BTreeMap;

use crc32fast::Hasher;
pub use sstable::NamedCompressor as Compression;
use thiserror::Error;
use types::{Json, Uuid, WriteBytes};

/// The version that goes with messaging 12.
pub const VERSION: i32 = 2;
/// Bytes before the JSON.
const FIXED_BYTES: usize = 4 + 8 + 16 + 4 + 4;
/// Bytes of JSON that are read at most; Cassandra's have less than a hundred.
const PARAMETERS_BYTES_MAX: usize = 64 << 10;
/// Bytes that a header has at most.
pub const HEADER_BYTES_MAX: usize = FIXED_BYTES + PARAMETERS_BYTES_MAX + 4;
const SUFFIX: &str = ".hints";

/// What a file's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// Whose hints.
    pub host: Uuid,
    /// When it was begun, in milliseconds since 1970; unique per host.
    pub timestamp: i64,
    /// The version of its format.
    pub version: i32,
}

impl Named {
    /// Of the file of this name; `None` for one that is not of hints.
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_suffix(SUFFIX)?;
        let (host, rest) = (rest.get(..36)?, rest.get(36..)?.strip_prefix('-')?);
        let (timestamp, version) = rest.split_once('-')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(timestamp) || !is_number(version) {
            return None;
        }
        let host = Uuid::parse(host)?;
        Some(Self { host, timestamp: timestamp.parse().ok()?, version: version.parse().ok()? })
    }

    /// The name, with this suffix.
    pub fn with_suffix(&self, suffix: &str) -> String {
        format!("{}-{}-{}{suffix}", self.host, self.timestamp, self.version)
    }

    /// The file's name.
    pub fn file_name(&self) -> String {
        self.with_suffix(SUFFIX)
    }
}

/// A file's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Whose hints.
    pub host: Uuid,
    /// When it was begun, in milliseconds since 1970.
    pub timestamp: i64,
    /// How what follows is compressed.
    pub compression: Option<Compression>,
}

/// Why a header is not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HeaderError {
    /// It ends early.
    #[error("it ends inside its header")]
    Truncated,
    /// A checksum does not match.
    #[error("its header fails its checksum")]
    Checksum,
    /// It is of another version.
    #[error("this release does not read version {0}, only {VERSION}")]
    Version(i32),
    /// It is encrypted.
    #[error("it is encrypted, which this release does not read")]
    Encrypted,
    /// Its parameters say nothing that is known.
    #[error("its parameters are not supported: {0}")]
    Parameters(String),
}

impl Descriptor {
    /// What its file's name says.
    pub fn named(&self) -> Named {
        Named { host: self.host, timestamp: self.timestamp, version: VERSION }
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let json = self.compression.as_ref().map_or_else(|| "{}".to_owned(), parameters);
        let n = json.len() as i32;
        out.put_i32(VERSION);
        out.put_i64(self.timestamp);
        out.put(&self.host.to_bytes());
        out.put_i32(n);
        let mut crc = checksum(VERSION, self.timestamp, self.host, n);
        out.put_u32(crc.clone().finalize());
        out.put(json.as_bytes());
        crc.update(json.as_bytes());
        out.put_u32(crc.finalize());
    }

    /// Reads the header at the beginning of `bytes`, and says how many it has.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn read(bytes: &[u8]) -> Result<(Self, usize), HeaderError> {
        let early = |_| HeaderError::Truncated;
        let mut reader = types::Reader::new(bytes);
        let version = reader.i32().map_err(early)?;
        let timestamp = reader.i64().map_err(early)?;
        let host = Uuid::from_bytes(reader.array().map_err(early)?);
        let n = reader.i32().map_err(early)?;
        let mut crc = checksum(version, timestamp, host, n);
        if reader.u32().map_err(early)? != crc.clone().finalize() {
            return Err(HeaderError::Checksum);
        }
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let n = usize::try_from(n).ok().filter(|n| *n <= PARAMETERS_BYTES_MAX);
        let n = n.ok_or_else(|| HeaderError::Parameters("too long".into()))?;
        let json = reader.bytes(n).map_err(early)?;
        crc.update(json);
        if reader.u32().map_err(early)? != crc.finalize() {
            return Err(HeaderError::Checksum);
        }
        let compression = read_parameters(json)?;
        Ok((Self { host, timestamp, compression }, FIXED_BYTES + n + 4))
    }
}

fn checksum(version: i32, timestamp: i64, host: Uuid, n: i32) -> Hasher {
    let mut crc = Hasher::new();
    crc.update(&version.to_be_bytes());
    let (high, low) = ((host.0 >> 64) as u64, host.0 as u64);
    for long in [timestamp.cast_unsigned(), high, low] {
        crc.update(&(long as u32).to_be_bytes());
        crc.update(&((long >> 32) as u32).to_be_bytes());
    }
    crc.update(&n.to_be_bytes());
    crc
}

/// The parameters of a header, by name as Cassandra's are.
fn parameters(compression: &Compression) -> String {
    let own = match compression.has_parameters() {
        true => format!(",\"parameters\":{}", compression.parameters_json()),
        false => String::new(),
    };
    format!("{{\"compression\":{{\"class_name\":{}{own}}}}}", compression.class_json())
}

fn read_parameters(json: &[u8]) -> Result<Option<Compression>, HeaderError> {
    let refused = |what: &str| HeaderError::Parameters(what.to_owned());
    let text = str::from_utf8(json).map_err(|_| refused("not text"))?;
    let Ok(Json::Object(members)) = Json::parse(text) else { return Err(refused(text)) };
    if member(&members, "encryption").is_some() {
        return Err(HeaderError::Encrypted);
    }
    let compression = match member(&members, "compression") {
        None => return Ok(None),
        Some(Json::Object(compression)) => compression,
        Some(_) => return Err(refused(text)),
    };
    let Some(Json::Text(class)) = member(compression, "class_name") else {
        return Err(refused(text));
    };
    let mut parameters = BTreeMap::new();
    match member(compression, "parameters") {
        None | Some(Json::Null) => {}
        Some(Json::Object(own)) => {
            for (name, value) in own {
                let Json::Text(value) = value else { return Err(refused(text)) };
                parameters.insert(name.clone(), value.clone());
            }
        }
        Some(_) => return Err(refused(text)),
    }
    let compression = Compression::new(class, parameters);
    compression.map(Some).map_err(|error| refused(&error.to_string()))
}

fn member<'a>(members: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compression(kind: u8) -> Option<Compression> {
        let level = BTreeMap::from([("compression_level".to_owned(), "3".to_owned())]);
        let (class, parameters) = match kind {
            0 => return None,
            1 => ("LZ4Compressor", BTreeMap::new()),
            2 => ("org.apache.cassandra.io.compress.ZstdCompressor", level),
            _ => ("DeflateCompressor", BTreeMap::new()),
        };
        Some(Compression::new(class, parameters).unwrap())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(host: u128, timestamp in 0..i64::MAX, kind in 0u8..4) {
            let made = Descriptor { host: Uuid(host), timestamp, compression: compression(kind) };
            let mut bytes = Vec::new();
            made.write(&mut bytes);
            let length = bytes.len();
            bytes.extend([7; 5]);
            prop_assert_eq!(Descriptor::read(&bytes), Ok((made.clone(), length)));
            prop_assert_eq!(Named::parse(&made.named().file_name()), Some(made.named()));
        }

        #[test]
        fn what_is_cut_or_turned_is_refused(timestamp in 0..i64::MAX, bit in 0usize..8 * 50, kind in 0u8..4) {
            let made = Descriptor { host: Uuid(5), timestamp, compression: compression(kind) };
            let mut bytes = Vec::new();
            made.write(&mut bytes);
            let bit = bit % (bytes.len() * 8);
            prop_assert!(Descriptor::read(&bytes[..bit / 8]).is_err());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Descriptor::read(&bytes).is_err());
        }

        #[test]
        fn nothing_panics(bytes: Vec<u8>, name: String) {
            let _ = Descriptor::read(&bytes);
            let _ = Named::parse(&name);
        }
    }

    #[test]
    fn what_is_encrypted_is_named() {
        assert_eq!(read_parameters(b"{\"encryption\":{}}"), Err(HeaderError::Encrypted));
    }
}
