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

use rows::codec::{Format, read_partition_deletion, write_partition_deletion};
use rows::{BoundRef, Deletion, Layout};
use types::{Reader, WriteBytes};

use super::clustering::bound_bytes;
use super::partitions::signed;
use super::trie_writer::{Payload, TrieWriter, put_sized};
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

/// Writes the file: of each wide partition its blocks, then its entry.
#[derive(Debug, Default)]
pub struct RowsWriter {
    trie: TrieWriter,
    blocks: u64,
    /// The last place of the block before, and the separator before it.
    last: Option<(Vec<u8>, Vec<u8>)>,
    /// Has a value no bytes that compare as it does? Its partition is read from its start then.
    is_given_up: bool,
}

impl RowsWriter {
    /// Forgets the blocks of a partition that has not ended.
    pub fn clear(&mut self) {
        self.trie.clear();
        (self.blocks, self.last, self.is_given_up) = (0, None, false);
    }

    /// Appends a block with its first place and its last.
    pub fn push(
        &mut self,
        layout: &Layout,
        first: BoundRef<'_>,
        last: BoundRef<'_>,
        block: RowBlock,
    ) {
        let both = (bound_bytes(layout, first), bound_bytes(layout, last));
        let (Some(first), Some(last), false) = (both.0, both.1, self.is_given_up) else {
            self.is_given_up = true;
            return;
        };
        let separator = match &self.last {
            None => Vec::new(),
            // two markers at one place are not told apart: their blocks are one
            Some((before, _)) if *before >= first => return,
            Some((before, _)) => after(before, &first),
        };
        self.trie.add(&separator, block.payload());
        self.last = Some((last, separator));
        self.blocks += 1;
    }

    /// Ends a partition, the rows of which end `end` bytes from its start: where its entry is. One
    /// of a single block has none.
    pub fn end_partition(
        &mut self,
        key: &[u8],
        position: u64,
        deletion: Deletion,
        end: u64,
    ) -> Option<u64> {
        let (last, separator) = self.last.take()?;
        if self.blocks < 2 || self.is_given_up {
            self.clear();
            return None;
        }
        self.trie.add(
            &behind(&last, &separator),
            RowBlock { offset: end, open: Deletion::LIVE }.payload(),
        );
        let root = self.trie.complete().expect("a trie with entries has a root");
        let at = self.trie.position();
        let out = self.trie.out();
        out.put_u16(u16::try_from(key.len()).expect("a partition key is shorter than 64 KiB"));
        out.put(key);
        let base = self.trie.position();
        let out = self.trie.out();
        out.put_uvint(position);
        out.put_vint(root.cast_signed() - base.cast_signed());
        out.put_uvint(self.blocks);
        write_partition_deletion(Format::SstableOa, deletion, out);
        self.clear();
        Some(at)
    }

    /// Moves the bytes that are ready to the end of others.
    pub fn take(&mut self, to: &mut Vec<u8>) {
        self.trie.take(to);
    }
}

/// The least bytes that come after one place and not after the next: as few as can be.
fn after(before: &[u8], next: &[u8]) -> Vec<u8> {
    let common = before.iter().zip(next).take_while(|(a, b)| a == b).count();
    let mut bytes = before.get(..common).unwrap_or_default().to_vec();
    bytes.push(before.get(common).map_or(0, |byte| byte + 1));
    bytes
}

/// Bytes that compare behind all of a last block: as few as tell them from it, from where it leaves
/// its separator.
fn behind(last: &[u8], separator: &[u8]) -> Vec<u8> {
    let common = last.iter().zip(separator).take_while(|(a, b)| a == b).count();
    let from = common.min(last.len() - 1);
    let full = last.iter().skip(from).take_while(|byte| **byte == u8::MAX).count();
    let mut bytes = last.get(..from + full).unwrap_or_default().to_vec();
    bytes.push(last.get(from + full).map_or(0, |byte| byte + 1));
    bytes
}

impl RowBlock {
    fn payload(self) -> Payload {
        let mut bytes = Vec::with_capacity(20);
        let offset = i64::try_from(self.offset).expect("a partition has fewer than 2^63 bytes");
        put_sized(offset, &mut bytes);
        let mut flags = bytes.len() as u8;
        assert!(flags < HAS_OPEN, "a partition has fewer than 2^55 bytes");
        if !self.open.is_live() {
            flags |= HAS_OPEN;
            write_partition_deletion(Format::SstableOa, self.open, &mut bytes);
        }
        Payload::new(flags, &bytes)
    }
}
