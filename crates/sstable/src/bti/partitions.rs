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

use types::{Token, WriteBytes, byte_comparable, hash128};

use super::trie_writer::{Payload, TrieWriter, put_sized};
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

/// Writes the file: keys come in the order of their tokens, and are told apart by as few bytes as
/// can be.
#[derive(Debug, Default)]
pub struct PartitionsWriter {
    trie: TrieWriter,
    first: Vec<u8>,
    /// The key that came last: it is written once the next one tells how much of it is needed.
    last: Option<LastKey>,
    count: u64,
}

#[derive(Debug)]
struct LastKey {
    key: Vec<u8>,
    /// As a key of the trie, and how many bytes of that tell it from the key before.
    comparable: Vec<u8>,
    needed: usize,
    payload: Payload,
}

impl PartitionsWriter {
    /// Adds a partition.
    pub fn add(&mut self, token: Token, key: &[u8], place: PartitionPlace) {
        let comparable = key_bytes(token, key);
        let mut needed = 0;
        match &self.last {
            None => self.first = key.to_vec(),
            Some(last) => {
                let pairs = last.comparable.iter().zip(&comparable);
                needed = pairs.take_while(|(a, b)| a == b).count() + 1;
                let prefix = last.comparable.get(..needed.max(last.needed));
                let prefix = prefix.expect("no key of the trie is a prefix of another");
                self.trie.add(prefix, last.payload);
            }
        }
        let payload = place.payload(key_hash_byte(key));
        self.last = Some(LastKey { key: key.to_vec(), comparable, needed, payload });
        self.count += 1;
    }

    /// Ends the file: its first key and its last; none if it has no partitions.
    pub fn finish(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        let LastKey { key, comparable, needed, payload } = self.last.take()?;
        let prefix = comparable.get(..needed).expect("no key of the trie is a prefix of another");
        self.trie.add(prefix, payload);
        let root = self.trie.complete().expect("a trie with entries has a root");
        let (keys_at, count) = (self.trie.position(), self.count);
        let out = self.trie.out();
        for key in [&self.first, &key] {
            out.put_u16(u16::try_from(key.len()).expect("a partition key is shorter than 64 KiB"));
            out.put(key);
        }
        for number in [keys_at, count, root] {
            out.extend(number.to_be_bytes());
        }
        Some((std::mem::take(&mut self.first), key))
    }

    /// Moves the bytes that are ready to the end of others.
    pub fn take(&mut self, to: &mut Vec<u8>) {
        self.trie.take(to);
    }
}

impl PartitionPlace {
    fn payload(self, hash: u8) -> Payload {
        let number =
            |position: u64| i64::try_from(position).expect("a file has fewer than 2^63 bytes");
        let mut bytes = vec![hash];
        put_sized(
            match self {
                Self::Rows(position) => number(position),
                Self::Data(position) => !number(position),
            },
            &mut bytes,
        );
        Payload::new(HAS_HASH - 2 + bytes.len() as u8, &bytes)
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
