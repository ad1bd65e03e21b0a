//! The hash of a partition, as validation takes it (`Validator.rowHash`, `Digest.forValidator`).
//!
//! It is of the bytes that a digest read hashes ([`rows::digest`]), of the partition as it is
//! merged, and purged at the coordinator's time. All columns of the table count as fetched.

use rows::digest::{PartitionDigest, digest_unfiltered};
use rows::{Deletion, Layout, RowRef, Unfiltered};

use crate::murmur::Murmur;
use crate::tree::Hash;

/// Hashes partitions of a table, one after the other. It allocates nothing.
#[derive(Clone, Debug)]
pub struct PartitionHasher<'t> {
    layout: &'t Layout,
    murmur: Murmur,
}

impl<'t> PartitionHasher<'t> {
    /// Of no partition yet.
    pub fn new(layout: &'t Layout) -> Self {
        Self { layout, murmur: Murmur::new() }
    }

    /// A partition's start; what an earlier one came to is gone.
    pub fn start(&mut self, key: &[u8], deletion: Deletion, static_row: Option<RowRef<'_>>) {
        self.murmur = Murmur::new();
        let deletion = Some(deletion);
        let partition = PartitionDigest { key, deletion, is_reversed: false, static_row };
        partition.digest(self.layout, |_, _| true, &mut |bytes| self.murmur.update(bytes));
    }

    /// A row or marker.
    #[inline]
    pub fn unfiltered(&mut self, unfiltered: Unfiltered<'_>) {
        digest_unfiltered(self.layout, unfiltered, &mut |bytes| self.murmur.update(bytes));
    }

    /// The partition's hash.
    pub fn finish(&self) -> Hash {
        self.murmur.finish()
    }
}

/// The same hash of bytes.
pub fn hash_bytes(pieces: &[&[u8]]) -> Hash {
    let mut murmur = Murmur::new();
    pieces.iter().for_each(|piece| murmur.update(piece));
    murmur.finish()
}
