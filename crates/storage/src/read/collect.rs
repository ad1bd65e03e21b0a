//! A whole partition as an update: for small partitions such as the schema's.

use std::sync::Arc;

use rows::{
    Bound, Deletion, PartitionUpdate, RangeTombstone, RowBuilder, Unfiltered, UpdateBuilder,
};

use super::PartitionCursor;
use crate::error::StorageError;

impl PartitionCursor {
    /// Reads the rest of the partition, which must be read forwards, into one update. For partitions that are
    /// known to be small.
    ///
    /// # Errors
    /// If an SSTable cannot be read.
    pub async fn into_update(mut self, key: &[u8]) -> Result<PartitionUpdate, StorageError> {
        let table = Arc::clone(self.table());
        let mut scratch = RowBuilder::new();
        let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), key);
        update.delete_partition(self.deletion());
        if let Some(row) = self.static_row() {
            update.add(row, &mut scratch);
        }
        let mut open: Option<(Bound, Deletion)> = None;
        while let Some(unfiltered) = self.next().await? {
            match unfiltered {
                Unfiltered::Row(row) => update.add(row, &mut scratch),
                Unfiltered::Marker(marker) => {
                    let place = marker.bound;
                    if let Some((start, deletion)) = open.take() {
                        let end = place.with_kind(place.kind.end_of()).to_owned();
                        update.delete_range(RangeTombstone { start, end, deletion });
                    }
                    if let Some(deletion) = marker.opens(false) {
                        open = Some((place.with_kind(place.kind.start_of()).to_owned(), deletion));
                    }
                }
            }
        }
        Ok(update.finish(&mut scratch))
    }
}
