//! What a shard keeps of what it has read, each kind within its own limit of bytes.
//!
//! The maps of a shard are bounded in bytes and evict by CLOCK.
//!
//! - `chunks`: decompressed chunks, and pages of indexes.
//! - The places of keys, by SSTable and key, with the promoted index parsed (`crate::sstables`).
//!   Tables with `caching = {'keys': 'ALL'}` have them.
//! - `rows`: the first rows of partitions, merged, as `rows_per_partition` says.
//! - `counters`: this node's part of counters.
//!
//! When the node ends, and as often as Cassandra, `crate::saved_caches` writes the names of what is
//! kept.

mod chunks;
mod clock;
mod counters;
mod rows;

use std::ops::AddAssign;

pub(crate) use self::chunks::ChunkCache;
pub(crate) use self::clock::Clock;
pub use self::counters::{Counted, CounterMark, CounterName, Part};
pub(crate) use self::counters::{CounterCache, KeptName};
pub(crate) use self::rows::{CachedRows, Lookup, RowCache};

/// A kind of cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Decompressed chunks of data and pages of indexes.
    Chunks,
    /// Where keys are in SSTables.
    Keys,
    /// The first rows of partitions, merged.
    Rows,
    /// This node's parts of counters.
    Counters,
}

impl CacheKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Chunks, Self::Keys, Self::Rows, Self::Counters];
}

/// What a cache holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Lookups answered.
    pub hits: u64,
    /// Lookups not answered.
    pub misses: u64,
    /// Entries that went to make room.
    pub evictions: u64,
    /// Entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes at most.
    pub capacity: u64,
}

impl CacheStats {
    /// Lookups.
    pub fn requests(&self) -> u64 {
        self.hits + self.misses
    }
}

impl AddAssign for CacheStats {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.evictions += other.evictions;
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.capacity += other.capacity;
    }
}

/// A part of an SSTable's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChunkKey {
    /// A chunk of the data of an SSTable, by their numbers.
    Data(u64, u64),
    /// A page of its index of keys.
    Index(u64, u64),
    /// A page of its index of rows, where that is a file of its own.
    Rows(u64, u64),
}

impl ChunkKey {
    pub fn sstable(self) -> u64 {
        match self {
            Self::Data(sstable, _) | Self::Index(sstable, _) | Self::Rows(sstable, _) => sstable,
        }
    }
}
