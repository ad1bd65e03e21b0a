//! Cassandra's SSTable files, pure over bytes: no file is opened here.
//!
//! So far the pieces that need no cell codec: names ([`descriptor`]), the table of contents
//! ([`toc`]), checksums ([`checksum`]), compression and its map ([`compressor`],
//! [`compression_info`]), the Bloom filter ([`filter`]), the index summary ([`summary`]), and
//! the sketches of the statistics ([`histogram`], [`tombstone_histogram`], [`cardinality`]).
//!
//! Whatever a file says is checked before it is believed: a length against the bytes that are
//! there before anything is allocated, an order before it is searched.

#![forbid(unsafe_code)]

pub mod bytes;
pub mod cardinality;
pub mod checksum;
pub mod compression_info;
pub mod compression_params;
pub mod compressor;
pub mod descriptor;
mod error;
pub mod filter;
pub mod histogram;
pub mod summary;
pub mod toc;
pub mod tombstone_histogram;

pub use error::{Error, Result};
