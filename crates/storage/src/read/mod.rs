//! Reading: cursors over memtables and SSTables, merged.

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
