//! The one codec, for peers and for disk (`UnfilteredSerializer`, `Cell.Serializer`,
//! `ClusteringPrefix.Serializer`, `SerializationHeader`).
//!
//! Encoders read packed rows and append bytes; decoders read slices and build packed rows. A
//! decoder keeps nothing of its input: given too little of an unfiltered it says how much it needs,
//! and is asked again from the start of that unfiltered.

mod columns;
mod decode;
mod deletion;
mod encode;
mod error;
mod header;
mod mutation;
mod partition;
mod plain;
mod prefix;
mod stats;

pub use columns::ColumnSet;
pub use decode::{Decoded, Decoder, Peeked};
pub use deletion::{read_partition_deletion, write_partition_deletion};
pub use encode::Encoder;
pub use error::{CodecError, EncodeError, Problem};
pub use header::Header;
pub use mutation::{MutationDecoder, MutationEncoder};
pub use partition::{
    PartitionStart, Selection, read_partition_start, write_empty_partition, write_partition_end,
    write_partition_start,
};
pub use plain::{PlainReader, PlainRow};
pub use prefix::{read_bound, read_clustering, write_bound, write_clustering};
pub use stats::{EncodingStats, StatsCollector};

/// Where bytes are from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Internode messaging 12 (4.0 to 5.0), commit log and hints.
    Messaging12,
    /// Internode messaging 13 (5.0 without compatibility): the commit log and the hints of such a
    /// node.
    Messaging13,
    /// Data.db of big format `na` and `nb`.
    SstableNb,
    /// Data.db of big format `oa` and of BTI `da`.
    SstableOa,
}

impl Format {
    /// Is each unfiltered preceded by its size and that of the one before it?
    pub fn has_sizes(self) -> bool {
        !matches!(self, Self::Messaging12 | Self::Messaging13)
    }

    /// Are local deletion times unsigned, so that they reach to 2106 instead of 2038?
    pub fn has_unsigned_times(self) -> bool {
        matches!(self, Self::SstableOa | Self::Messaging13)
    }
}

/// No row, marker or mutation may claim to be larger: Java arrays end there.
pub const MAX_SIZE: usize = i32::MAX as usize;

pub(crate) mod flags {
    //! Of unfiltereds, rows and cells.
    pub(crate) const END_OF_PARTITION: u8 = 0x01;
    pub(crate) const IS_MARKER: u8 = 0x02;
    pub(crate) const HAS_TIMESTAMP: u8 = 0x04;
    pub(crate) const HAS_TTL: u8 = 0x08;
    pub(crate) const HAS_DELETION: u8 = 0x10;
    pub(crate) const HAS_ALL_COLUMNS: u8 = 0x20;
    pub(crate) const HAS_COMPLEX_DELETION: u8 = 0x40;
    pub(crate) const EXTENSION: u8 = 0x80;

    pub(crate) const IS_STATIC: u8 = 0x01;
    pub(crate) const HAS_SHADOWABLE_DELETION: u8 = 0x02;

    pub(crate) const CELL_DELETED: u8 = 0x01;
    pub(crate) const CELL_EXPIRING: u8 = 0x02;
    pub(crate) const CELL_EMPTY_VALUE: u8 = 0x04;
    pub(crate) const CELL_ROW_TIMESTAMP: u8 = 0x08;
    pub(crate) const CELL_ROW_TTL: u8 = 0x10;
}
