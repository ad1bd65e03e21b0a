//! `Partitions.db` (`PartitionIndex`): a trie of the shortest prefixes that tell the keys of the
//! table apart.
//!
//! ```text
//! trie | u16 n | first key | u16 n | last key | i64 position of the first key | i64 number of keys
//! | i64 root
//! payload, flags 8 and more: u8 low byte of the key's filter hash
//!                            | flags - 7 bytes of a signed position
//! payload, flags below 8:    flags bytes of a signed position
//! ```
//!
//! A position below zero is the complement of one in Data.db; any other is one in Rows.db.

use types::{Token, byte_comparable, hash128};

use crate::bytes::Reader;
use crate::error::{Result, corrupt};

const NAME: &str = "Partitions.db";
/// Bytes of the three numbers at the end.
const FOOTER: u64 = 24;
/// The end of the file is no longer: both keys, and the numbers.
pub const PARTITIONS_TAIL_MAX: u64 = FOOTER + 2 * (2 + u16::MAX as u64);
/// From these flags on a payload starts with a byte of the hash.
const HAS_HASH: u8 = 8;

/// What the end of the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// The first key.
    pub first: Vec<u8>,
    /// The last key.
    pub last: Vec<u8>,
    /// How many keys there are.
    pub count: u64,
    /// Where the trie's root is.
    pub root: u64,
    /// Bytes of the file.
    pub length: u64,
}

impl Partitions {
    /// Reads the end of the file: at least its last [`PARTITIONS_TAIL_MAX`] bytes, or all.
    ///
    /// # Errors
    /// If the numbers contradict the file's length.
    pub fn parse(tail: &[u8], length: u64) -> Result<Self> {
        let Some((keys, numbers)) = tail.split_last_chunk::<{ FOOTER as usize }>() else {
            return corrupt(NAME, format!("it has only {length} bytes"));
        };
        let mut numbers = Reader::new(NAME, numbers);
        let (keys_at, count, root) = (numbers.u64()?, numbers.u64()?, numbers.u64()?);
        let size = (length - FOOTER).checked_sub(keys_at).and_then(|n| usize::try_from(n).ok());
        let start = size.and_then(|size| keys.len().checked_sub(size));
        let (Some(keys), true) = (start.and_then(|start| keys.get(start..)), root < keys_at) else {
            return corrupt(
                NAME,
                format!(
                    "its keys at {keys_at} or its root at {root} lie outside its {length} bytes"
                ),
            );
        };
        let mut keys = Reader::new(NAME, keys);
        let mut key = || {
            let n = keys.u16()?;
            keys.take(n.into()).map(<[u8]>::to_vec)
        };
        let (first, last) = (key()?, key()?);
        keys.end()?;
        Ok(Self { first, last, count, root, length })
    }
}

/// Where a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionPlace {
    /// At a position of the uncompressed Data.db.
    Data(u64),
    /// An entry of Rows.db tells.
    Rows(u64),
}

impl PartitionPlace {
    /// Reads a payload of the trie. `hash` is the byte that must stand in it, if one is sought;
    /// `None` where another does.
    ///
    /// # Errors
    /// If the payload is cut short.
    pub fn parse(flags: u8, payload: &[u8], hash: Option<u8>) -> Result<Option<Self>> {
        let mut reader = Reader::new(NAME, payload);
        let mut size = usize::from(flags);
        if flags >= HAS_HASH {
            size -= usize::from(HAS_HASH) - 1;
            let stored = reader.u8()?;
            if hash.is_some_and(|hash| hash != stored) {
                return Ok(None);
            }
        }
        let position = signed(reader.take(size)?);
        Ok(Some(match u64::try_from(position) {
            Ok(position) => Self::Rows(position),
            Err(_) => Self::Data((!position).cast_unsigned()),
        }))
    }
}

/// A signed big-endian number of up to eight bytes.
pub(super) fn signed(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    bytes.iter().fold(if negative { -1 } else { 0 }, |n, byte| n << 8 | i64::from(*byte))
}

/// The key of the trie: token and key, each as a part of a sequence.
pub fn key_bytes(token: Token, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 12);
    out.push(byte_comparable::NEXT_COMPONENT);
    out.extend((token.0.cast_unsigned() ^ 1 << 63).to_be_bytes());
    out.push(byte_comparable::NEXT_COMPONENT);
    byte_comparable::escape(key, &mut out);
    out.push(byte_comparable::TERMINATOR);
    out
}

/// The byte of a key's hash that stands beside its position.
pub fn key_hash_byte(key: &[u8]) -> u8 {
    let [_, second] = hash128(key);
    second as u8
}
