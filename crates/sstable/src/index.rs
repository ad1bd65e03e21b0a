//! `Index.db` of big format: an entry for each partition, with the promoted index of wide ones
//! (`RowIndexEntry`, `IndexInfo`).
//!
//! ```text
//! entry    = u16 n | key | uvint position in Data.db | uvint size
//!            | promoted (size bytes, none if 0)
//! promoted = uvint header length | partition deletion | uvint blocks | block* | i32 offset*
//! block    = first | last | uvint offset in the partition | vint (width - 65536) | bool
//!            | [open deletion]
//! first, last = u8 4 | clustering, or a bound
//! ```

use std::cmp::Ordering;

use rows::codec::{
    CodecError, EncodeError, Format, read_bound, read_clustering, read_partition_deletion,
    write_bound, write_clustering, write_partition_deletion,
};
use rows::{Bound, BoundKind, BoundRef, ClusteringBuilder, Deletion, Layout, compare};
use types::{ReadError, Reader, WriteBytes};

use crate::error::{Error, Result, corrupt};

const NAME: &str = "Index.db";
/// The most bytes of the blocks of a promoted index: with what stands around them, its size is a
/// Java int.
const PROMOTED_BYTES_MAX: usize = 1 << 30;
/// What a block's width is stored relative to.
const WIDTH_BASE: i64 = 64 * 1024;
/// The size of a promoted index from which on it takes more than a byte as uvint.
const LONG: usize = 0x80;

/// A block of a wide partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first row or marker.
    pub first: Bound,
    /// Its last one.
    pub last: Bound,
    /// Where it starts, from the partition's start.
    pub offset: u64,
    /// Its bytes.
    pub width: u64,
    /// The range tombstone that is open at its end.
    pub open: Option<Deletion>,
}

/// The promoted index in the making.
#[derive(Clone, Debug)]
pub struct BlockWriter {
    format: Format,
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    /// Is it too large to be written? Rows of long clusterings make it so within a gigabyte.
    is_too_large: bool,
}

impl BlockWriter {
    /// One for tables of these rows.
    pub fn new(format: Format) -> Self {
        Self { format, bytes: Vec::new(), offsets: Vec::new(), is_too_large: false }
    }

    /// Forgets the last partition's blocks.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.clear();
        self.is_too_large = false;
    }

    /// Appends a block. A promoted index of more than 1 GiB is none: its partition is then read
    /// from its start, like one of one block.
    pub fn push(&mut self, layout: &Layout, block: &Block) -> std::result::Result<(), EncodeError> {
        if self.bytes.len() > PROMOTED_BYTES_MAX {
            *self = Self { is_too_large: true, ..Self::new(self.format) };
        }
        if self.is_too_large {
            return Ok(());
        }
        let offset = u32::try_from(self.bytes.len());
        self.offsets.push(offset.expect("the offsets of a promoted index are below 2 GiB"));
        let out = &mut self.bytes;
        write_prefix(layout, block.first.as_ref(), out)?;
        write_prefix(layout, block.last.as_ref(), out)?;
        out.put_uvint(block.offset);
        out.put_vint(block.width as i64 - WIDTH_BASE);
        out.put_u8(u8::from(block.open.is_some()));
        if let Some(open) = block.open {
            write_partition_deletion(self.format, open, out);
        }
        Ok(())
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// No block?
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Appends the partition's index entry: a promoted index only where there is more than one
    /// block.
    pub fn write_entry(
        &self,
        key: &[u8],
        position: u64,
        header_length: u64,
        deletion: Deletion,
        out: &mut Vec<u8>,
    ) {
        out.put_u16(u16::try_from(key.len()).expect("a partition key is shorter than 64 KiB"));
        out.put(key);
        out.put_uvint(position);
        if self.offsets.len() < 2 {
            return out.put_uvint(0);
        }
        let mut head = Vec::with_capacity(32);
        self.write_head(header_length, deletion, &mut head);
        let ascend = self.offsets.is_sorted_by(|a, b| a < b);
        assert!(ascend, "the blocks of a promoted index follow each other");
        out.put_uvint((head.len() + self.bytes.len() + 4 * self.offsets.len()) as u64);
        out.put(&head);
        out.put(&self.bytes);
        for offset in &self.offsets {
            out.put_u32(*offset);
        }
    }

    fn write_head(&self, header_length: u64, deletion: Deletion, out: &mut Vec<u8>) {
        out.put_uvint(header_length);
        write_partition_deletion(self.format, deletion, out);
        out.put_uvint(self.offsets.len() as u64);
    }
}

fn write_prefix(
    layout: &Layout,
    prefix: BoundRef<'_>,
    out: &mut Vec<u8>,
) -> std::result::Result<(), EncodeError> {
    if prefix.kind != BoundKind::Clustering {
        return write_bound(layout, prefix, out);
    }
    out.put_u8(BoundKind::Clustering.ordinal());
    write_clustering(layout, prefix.values, out)
}

fn read_prefix(layout: &Layout, reader: &mut Reader<'_>) -> Result<Bound> {
    let mut scratch = ClusteringBuilder::default();
    let bad = |e: &dyn std::fmt::Display| Error::Corrupt { component: NAME, what: e.to_string() };
    if reader.peek() != Some(BoundKind::Clustering.ordinal()) {
        let bound = read_bound(layout, reader, &mut scratch).map_err(|e| bad(&e))?;
        return Ok(bound.to_owned());
    }
    reader.skip(1).map_err(|e| bad(&e))?;
    read_clustering(layout, layout.clustering.len(), reader, &mut scratch).map_err(|e| bad(&e))?;
    Ok(BoundRef::from(scratch.finish()).to_owned())
}

/// An entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The partition key.
    pub key: &'a [u8],
    /// Where the partition starts in the uncompressed Data.db.
    pub position: u64,
    /// The promoted index, empty for a partition of one block.
    pub promoted: &'a [u8],
    /// Bytes of the entry.
    pub length: usize,
}

/// What lies at the start of some bytes of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// An entry.
    Entry(Entry<'a>),
    /// At least this many bytes are needed.
    NeedMore(usize),
}

/// Reads the entry at the start of `bytes`. `left` is what the file has from there on: no entry can
/// claim more.
///
/// # Errors
/// If the bytes cannot be an entry.
pub fn read_entry(bytes: &[u8], left: u64) -> Result<Found<'_>> {
    let need = |n: usize| match n as u64 <= left {
        true => Ok(Found::NeedMore(n)),
        false => corrupt(NAME, format!("an entry has {n} bytes, and only {left} are left")),
    };
    let Some(head) = bytes.first_chunk::<2>() else { return need(2) };
    let key_end = 2 + usize::from(u16::from_be_bytes(*head));
    let Some(key) = bytes.get(2..key_end) else { return need(key_end + 2) };
    let mut reader = Reader::new(bytes.get(key_end..).unwrap_or_default());
    let (position, size) = match (reader.uvint(), reader.uvint()) {
        (Ok(position), Ok(size)) => (position, size),
        // two vints have 18 bytes at most, and the file ends with an entry
        _ if bytes.len() < key_end + 18 && (bytes.len() as u64) < left => {
            return need((key_end + 18).min(usize::try_from(left).unwrap_or(usize::MAX)));
        }
        _ => return corrupt(NAME, "an entry has no position and size"),
    };
    let start = key_end + reader.position();
    let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
    let Some(end) = end.filter(|end| *end as u64 <= left) else {
        return corrupt(NAME, format!("a row index has {size} bytes, and only {left} are left"));
    };
    let Some(promoted) = bytes.get(start..end) else { return need(end) };
    Ok(Found::Entry(Entry { key, position, promoted, length: end }))
}

/// Steps over entries of other keys than `key`, the first of which begins where `bytes` do: where
/// the first one begins that is not stepped over. That is the key's, or one with a long promoted
/// index, or one that is not all there: [`read_entry`] says.
pub fn skip_to(bytes: &[u8], key: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(next) = end_of_other(rest, key) else { return at };
        at += next;
    }
}

/// The bytes of the first entry, if it is of another key, all there, and its promoted index short.
fn end_of_other(bytes: &[u8], key: &[u8]) -> Option<usize> {
    let position = 2 + usize::from(u16::from_be_bytes(*bytes.first_chunk()?));
    let promoted = position + 1 + bytes.get(position)?.leading_ones() as usize;
    let size = usize::from(*bytes.get(promoted)?);
    let end = promoted + 1 + size;
    (size < LONG && end <= bytes.len() && bytes.get(2..position)? != key).then_some(end)
}

/// The promoted index of a wide partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// Bytes of the partition before its first row or marker.
    pub header_length: u64,
    /// The deletion of the partition.
    pub deletion: Deletion,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

impl Promoted {
    /// Reads the promoted index of an entry.
    ///
    /// # Errors
    /// If the bytes cannot be one.
    pub fn read(layout: &Layout, format: Format, bytes: &[u8]) -> Result<Self> {
        Self::read_blocks(layout, format, &mut Reader::new(bytes))
    }

    /// Reads what there is of it before the offsets of its blocks.
    ///
    /// # Errors
    /// If the bytes cannot be one.
    pub fn read_blocks(layout: &Layout, format: Format, reader: &mut Reader<'_>) -> Result<Self> {
        let bad = |e: ReadError| Error::Corrupt { component: NAME, what: e.to_string() };
        let codec = |e: CodecError| Error::Corrupt { component: NAME, what: e.to_string() };
        let header_length = reader.uvint().map_err(bad)?;
        let deletion = read_partition_deletion(format, reader).map_err(codec)?;
        // a block takes two prefixes, offset, width, flag and its offset
        let count = reader.count(9).map_err(bad)?;
        let mut blocks = Vec::with_capacity(count);
        for _ in 0..count {
            let first = read_prefix(layout, reader)?;
            let last = read_prefix(layout, reader)?;
            let offset = reader.uvint().map_err(bad)?;
            let width = reader.vint().map_err(bad)?.saturating_add(WIDTH_BASE);
            let Ok(width) = u64::try_from(width) else {
                return corrupt(NAME, format!("a block of a row index has {width} bytes"));
            };
            let open = match reader.bool().map_err(bad)? {
                true => Some(read_partition_deletion(format, reader).map_err(codec)?),
                false => None,
            };
            blocks.push(Block { first, last, offset, width, open });
        }
        Ok(Self { header_length, deletion, blocks })
    }

    /// Appends what there is of it before the offsets of its blocks, as `nb` has it.
    ///
    /// # Errors
    /// If a bound does not fit.
    pub fn write_blocks(
        &self,
        layout: &Layout,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), EncodeError> {
        let mut blocks = BlockWriter::new(Format::SstableNb);
        self.blocks.iter().try_for_each(|block| blocks.push(layout, block))?;
        blocks.write_head(self.header_length, self.deletion, out);
        out.put(&blocks.bytes);
        Ok(())
    }

    /// Bytes of memory that it takes.
    pub fn heap_bytes(&self) -> usize {
        let bounds = |block: &Block| {
            let values = |bound: &Bound| bound.values.as_ref().as_packed().len();
            values(&block.first) + values(&block.last)
        };
        let blocks = self.blocks.capacity() * size_of::<Block>();
        size_of::<Self>() + blocks + self.blocks.iter().map(bounds).sum::<usize>()
    }

    /// The first block, in clustering order, that may hold something at or after `bound`; the
    /// number of blocks if none does.
    pub fn first_block_from(&self, layout: &Layout, bound: BoundRef<'_>) -> usize {
        self.blocks.partition_point(|block| compare(layout, &block.last, bound) == Ordering::Less)
    }

    /// The last block that may hold something at or before `bound`.
    pub fn last_block_upto(&self, layout: &Layout, bound: BoundRef<'_>) -> Option<usize> {
        let after = |block: &Block| compare(layout, &block.first, bound) != Ordering::Greater;
        self.blocks.partition_point(after).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where entries begin in bytes, up to one that is not all there, and their keys.
    fn walk(bytes: &[u8]) -> Vec<(usize, &[u8])> {
        let (mut at, mut found) = (0, Vec::new());
        while let Ok(Found::Entry(entry)) = read_entry(&bytes[at..], u64::MAX) {
            found.push((at, entry.key));
            at += entry.length;
        }
        found.push((at, &[]));
        found
    }

    proptest! {
        #[test]
        fn skips_nothing_of_the_key(
            entries in prop::collection::vec(
                ("[ab]{0,3}", any::<u64>(), prop_oneof![Just(0), 0..200usize]),
                0..60,
            ),
            sought in "[ab]{0,3}",
            torn in 0..400usize,
        ) {
            let mut bytes = Vec::new();
            for (key, position, promoted) in &entries {
                bytes.put_u16(key.len() as u16);
                bytes.put(key.as_bytes());
                bytes.put_uvint(*position);
                bytes.put_uvint(*promoted as u64);
                bytes.extend(std::iter::repeat_n(b'a', *promoted));
            }
            bytes.truncate(bytes.len().saturating_sub(torn));
            let is_short = |&(at, key): &(usize, &[u8])| {
                let entry = read_entry(&bytes[at..], u64::MAX);
                let fits = matches!(entry, Ok(Found::Entry(entry)) if entry.promoted.len() < LONG);
                key != sought.as_bytes() && fits
            };
            let stops = walk(&bytes).into_iter().find(|entry| !is_short(entry));
            let (at, _) = stops.expect("the end is no entry");
            prop_assert_eq!(skip_to(&bytes, sought.as_bytes()), at);
        }

        #[test]
        fn any_bytes_are_skipped(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(skip_to(&bytes, b"key") <= bytes.len());
        }
    }
}
