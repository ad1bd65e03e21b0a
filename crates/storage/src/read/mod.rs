//! Reading: cursors over memtables and SSTables, merged.

mod partition;
mod slices;
mod sstable;

use rows::{ColumnMap, Layout};
use schema::Table;

pub use self::partition::PartitionCursor;
pub(crate) use self::partition::Source;
pub use self::slices::Slices;
pub(crate) use self::sstable::{Located, SSTableCursor};

/// From the layout that something was written under to the table's present one.
pub(crate) fn column_map(from: &Layout, table: &Table) -> ColumnMap {
    ColumnMap::new(from, &table.layout)
}
