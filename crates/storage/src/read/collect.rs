//! A partition as an update: small ones such as the schema's as a whole, of others their first
//! rows.

use std::sync::Arc;

use rows::{
    Bound, BoundKind, BoundRef, Deletion, PartitionUpdate, RangeTombstone, RowBuilder, Unfiltered,
    UpdateBuilder,
};

use super::PartitionCursor;
use crate::error::StorageError;

impl PartitionCursor {
    /// Reads the rest of the partition, which must be read forwards, into one update. For
    /// partitions that are known to be small.
    ///
    /// # Errors
    /// If an SSTable cannot be read.
    pub async fn into_update(self, key: &[u8]) -> Result<PartitionUpdate, StorageError> {
        Ok(self.into_first(key, usize::MAX, usize::MAX).await?.0)
    }

    /// As [`Self::into_update`], but ends behind so many rows or bytes; the bound tells where, if
    /// it did.
    pub(crate) async fn into_first(
        mut self,
        key: &[u8],
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<(PartitionUpdate, Option<Bound>), StorageError> {
        let table = Arc::clone(self.table());
        let mut scratch = RowBuilder::new();
        let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), key);
        update.delete_partition(self.deletion());
        let mut bytes = 0;
        if let Some(row) = self.static_row() {
            bytes += row.as_packed().len();
            update.add(row, &mut scratch);
        }
        let (mut rows, mut end) = (0, None::<Bound>);
        let mut open: Option<(Bound, Deletion)> = None;
        while let Some(unfiltered) = self.next().await? {
            if let Some(end) = end.take() {
                if let Some((start, deletion)) = open {
                    update.delete_range(RangeTombstone { start, end: end.clone(), deletion });
                }
                return Ok((update.finish(&mut scratch), Some(end)));
            }
            match unfiltered {
                Unfiltered::Row(row) => {
                    bytes += row.as_packed().len();
                    rows += 1;
                    update.add(row, &mut scratch);
                    end = (rows >= rows_max || bytes >= bytes_max)
                        .then(|| BoundRef::new(BoundKind::InclEnd, row.clustering()).to_owned());
                }
                Unfiltered::Marker(marker) => {
                    let place = marker.bound;
                    if let Some((start, deletion)) = open.take() {
                        bytes += 2 * place.values.as_packed().len();
                        let place = place.with_kind(place.kind.end_of()).to_owned();
                        let ends = bytes >= bytes_max && !marker.bound.kind.is_boundary();
                        end = ends.then(|| place.clone());
                        update.delete_range(RangeTombstone { start, end: place, deletion });
                    }
                    if let Some(deletion) = marker.opens(false) {
                        open = Some((place.with_kind(place.kind.start_of()).to_owned(), deletion));
                    }
                }
            }
        }
        Ok((update.finish(&mut scratch), None))
    }
}
