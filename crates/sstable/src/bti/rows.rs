//! `Rows.db` (`TrieIndexEntry`, `RowIndexReader`): for each wide partition a trie of separators
//! between the blocks of its rows, then an entry.
//!
//! ```text
//! entry   = u16 n | key | uvint position in Data.db | vint (root - place behind the key)
//!           | uvint blocks | deletion
//! payload = flags & 7 bytes of the block's offset from the partition's start
//!           | [flags & 8: deletion open at its start]
//! ```
//!
//! A block's separator is after all of the blocks before and not after its own first row; the first
//! one's is empty. One more separator, behind the last row, has the offset of the partition's end.

use rows::Deletion;
use rows::codec::{Format, read_partition_deletion};
use types::Reader;

use super::partitions::signed;
use crate::error::{Error, Result, corrupt};

const NAME: &str = "Rows.db";
/// No entry is longer: a key, two vints of 9 bytes, one of 5, a deletion.
pub const ENTRY_BYTES_MAX: usize = 2 + u16::MAX as usize + 9 + 9 + 5 + 12;
/// In a payload's flags: a range tombstone is open at the block's start.
const HAS_OPEN: u8 = 8;

/// The entry of a wide partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsEntry<'a> {
    /// The partition's key.
    pub key: &'a [u8],
    /// Where the partition starts in the uncompressed Data.db.
    pub position: u64,
    /// Where the root of its trie is.
    pub root: u64,
    /// How many blocks it has.
    pub blocks: u64,
    /// The deletion of the partition.
    pub deletion: Deletion,
}

impl<'a> RowsEntry<'a> {
    /// Reads the entry at the start of `bytes`, which is at `at` of the file.
    ///
    /// # Errors
    /// If it is cut short, or its trie is not before it.
    pub fn parse(bytes: &'a [u8], at: u64) -> Result<Self> {
        let bad = |what: &dyn std::fmt::Display| Error::Corrupt {
            component: NAME,
            what: format!("entry at {at}: {what}"),
        };
        let mut reader = Reader::new(bytes);
        let key = reader.short_bytes().map_err(|e| bad(&e))?;
        let base = at + reader.position() as u64;
        let position = reader.uvint().map_err(|e| bad(&e))?;
        let delta = reader.vint().map_err(|e| bad(&e))?;
        let blocks = reader.uvint().map_err(|e| bad(&e))?;
        let deletion =
            read_partition_deletion(Format::SstableOa, &mut reader).map_err(|e| bad(&e))?;
        match base.checked_add_signed(delta).filter(|root| *root < at) {
            Some(root) => Ok(Self { key, position, root, blocks, deletion }),
            None => Err(bad(&format!("its root is {delta} bytes from {base}"))),
        }
    }
}

/// A block of a wide partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBlock {
    /// Where it starts, from the partition's start.
    pub offset: u64,
    /// The range tombstone that is open there.
    pub open: Deletion,
}

impl RowBlock {
    /// Reads a payload of the trie.
    ///
    /// # Errors
    /// If it is cut short.
    pub fn parse(flags: u8, payload: &[u8]) -> Result<Self> {
        let size = usize::from(flags & !HAS_OPEN);
        let Some((offset, rest)) = payload.split_at_checked(size) else {
            return corrupt(NAME, "a payload is cut short");
        };
        let Ok(offset) = u64::try_from(signed(offset)) else {
            return corrupt(NAME, "a block starts before its partition");
        };
        let open = match flags & HAS_OPEN {
            0 => Deletion::LIVE,
            _ => read_partition_deletion(Format::SstableOa, &mut Reader::new(rest))
                .or_else(|e| corrupt(NAME, format!("an open deletion is malformed: {e}")))?,
        };
        Ok(Self { offset, open })
    }
}
