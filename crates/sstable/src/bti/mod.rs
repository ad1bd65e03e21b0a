//! The indexes of BTI tables (`da`): tries over byte-comparable keys, read page by page.
//!
//! `Partitions.db` finds a partition ([`Partitions`], [`PartitionPlace`]), `Rows.db` the blocks of
//! a wide one ([`RowsEntry`], [`RowBlock`]). Neither file has checksums: every pointer is checked
//! against its node's own place, every length against the bytes that are there, and what an index
//! says of a key is compared with the key that stands where it points to.
//!
//! Callers give pages ([`Pages`]); walking ([`TrieCursor`]) is theirs to drive.

mod clustering;
mod cursor;
mod node;
mod partitions;
mod rows;
mod trie_writer;

pub use clustering::bound_bytes;
pub use cursor::{Pages, TrieCursor};
pub use node::{Node, PAGE_BYTES, Search};
pub use partitions::{
    PARTITIONS_TAIL_MAX, PartitionPlace, Partitions, PartitionsWriter, key_bytes, key_hash_byte,
};
pub use rows::{ENTRY_BYTES_MAX, RowBlock, RowsEntry, RowsWriter};
pub use trie_writer::{Payload, TrieWriter};
