//! Cassandra's SSTable files, pure over bytes: no file is opened here.
//!
//! A [`writer::Writer`] takes partitions and gives bytes; a [`table::Table`] is what an open table
//! knows of itself, a [`data::DataCursor`] reads its partitions, [`index`] or [`bti`] finds them.
//! Below lie the components: names ([`descriptor`]), the table of contents ([`toc`]), checksums
//! ([`checksum`]), compression and its map ([`compressor`], [`compression_info`]), the Bloom filter
//! ([`filter`]), the index summary ([`summary`]), [`statistics`] and their sketches ([`histogram`],
//! [`tombstone_histogram`], [`cardinality`]).
//!
//! Whatever a file says is checked before it is believed: a length against the bytes that are
//! there before anything is allocated, an order before it is searched.

#![forbid(unsafe_code)]

pub mod bti;
pub mod bytes;
pub mod cardinality;
pub mod checksum;
mod collector;
pub mod compression_info;
pub mod compression_params;
pub mod compressor;
pub mod data;
pub mod descriptor;
mod error;
pub mod filter;
pub mod histogram;
pub mod index;
mod index_file;
mod key_hash;
mod named_compressor;
pub mod plain;
pub mod seal;
pub mod statistics;
pub mod summary;
pub mod table;
pub mod toc;
pub mod tombstone_histogram;
pub mod writer;

pub use error::{Error, Result};
pub use named_compressor::NamedCompressor;
