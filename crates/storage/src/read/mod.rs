//! Reading: cursors over memtables and SSTables, merged.
//!
//! A chunk that is not in memory bypasses the page cache unless it was read lately
//! (`crate::io`). That is the cheaper way to the device where reads go all over a table that is
//! larger than memory. The cache then keeps what comes again. If half of the page cache could hold
//! all SSTables that are read, every chunk goes through it.
//!
//! A partition that lies in two chunks takes one read. The index is read by pages of 4 KiB through
//! the page cache. What is there already is taken without the ring (`File::read_now`).
//! `io_read_access_mode: standard` sends all of it through the page cache, as Cassandra does.
//!
//! A table may have files of several formats. The way to a key differs (`locate`, `key_walk`,
//! `blocks`): a sampled index with promoted blocks, or tries over byte-comparable keys.

mod blocks;
mod collect;
mod data_walk;
mod key_walk;
mod locate;
mod partition;
mod pass;
mod scan;
mod slices;
mod sstable;

use rows::{ColumnMap, Layout};
use schema::Table;

pub(crate) use self::data_walk::DataWalk;
pub(crate) use self::key_walk::{Head, KeyWalk};
pub(crate) use self::locate::{Located, RowsIndex, locate, take_place};
pub use self::partition::PartitionCursor;
pub(crate) use self::partition::Source;
pub(crate) use self::pass::{Chunk, DataFile, Keeping, PIECE_BYTES, Pass};
pub use self::scan::{KeyScan, ScanStart};
pub use self::slices::Slices;
pub(crate) use self::sstable::SSTableCursor;

/// From the layout that something was written under to the table's present one; none where that
/// changes nothing.
pub(crate) fn needed_map(from: &Layout, table: &Table) -> Option<ColumnMap> {
    if ColumnMap::is_unneeded(from, &table.layout) {
        // not on in release: it makes the map that is told to be needless, once for each SSTable of
        // each read
        debug_assert!(column_map(from, table).is_identity(), "it changes nothing");
        return None;
    }
    Some(column_map(from, table)).filter(|map| !map.is_identity())
}

/// From the layout that something was written under to the table's present one.
pub(crate) fn column_map(from: &Layout, table: &Table) -> ColumnMap {
    ColumnMap::new(from, &table.layout)
}
