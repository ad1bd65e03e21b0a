//! How large a write to a partition is, as Cassandra counts it (`PartitionUpdate.dataSize`).

use rows::{ClusteringRef, PartitionUpdate, RowRef};

/// A time in microseconds.
const TIMESTAMP: usize = 8;
const TTL: usize = 4;
/// A time in seconds, in 5.0.
const LOCAL_DELETION_TIME: usize = 8;
/// `DeletionTime.dataSize`: it is so of none, too.
const DELETION: usize = 12;
/// A row's, which may be shadowable.
const ROW_DELETION: usize = DELETION + 1;
/// The number of ranges, where there are any.
const RANGES: usize = 4;
/// When a range was deleted, twice: `RangeTombstoneList` keeps 8 and 4 bytes of it.
const RANGE: usize = 12;

/// Bytes of an update.
pub(crate) fn data_size(update: &PartitionUpdate) -> u64 {
    // the static row counts where there is none, as an empty one
    let statics = update.static_row().map_or(TIMESTAMP + ROW_DELETION, row_size);
    let rows: usize = update.rows.iter().map(row_size).sum();
    let ranges = update.ranges.iter().map(|range| {
        let bounds = [&range.start, &range.end].map(|bound| values_size(bound.as_ref().values));
        bounds.iter().sum::<usize>() + RANGE
    });
    let ranges = match update.ranges.is_empty() {
        true => 0,
        false => RANGES + ranges.sum::<usize>(),
    };
    (TIMESTAMP + ranges + statics + rows) as u64
}

fn values_size(values: ClusteringRef<'_>) -> usize {
    values.iter().map(|value| value.map_or(0, <[u8]>::len)).sum()
}

fn row_size(row: RowRef<'_>) -> usize {
    let expires = row.liveness().is_some_and(|liveness| liveness.is_expiring());
    let liveness = TIMESTAMP + if expires { TTL + LOCAL_DELETION_TIME } else { 0 };
    let (mut cells, mut complex) = (0, None);
    for cell in row.cells() {
        let is_part = cell.is_complex_deletion() || cell.path.is_some();
        if is_part && complex.replace(cell.column) != Some(cell.column) {
            cells += DELETION;
        }
        if !cell.is_complex_deletion() {
            let path = cell.path.map_or(0, <[u8]>::len);
            cells += TIMESTAMP + TTL + LOCAL_DELETION_TIME + cell.value.len() + path;
        }
    }
    values_size(row.clustering()) + liveness + ROW_DELETION + cells
}
