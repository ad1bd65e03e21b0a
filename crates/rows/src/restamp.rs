//! An update at another time: what a round of Paxos decides on is written at the time of its
//! ballot.

use crate::builder::RowBuilder;
use crate::cell::{CellKind, CellRef};
use crate::partition::{PartitionUpdate, UpdateBuilder};
use crate::ranges::RangeTombstone;
use crate::row::RowRef;
use crate::time::{Deletion, Liveness};

/// A deletion a tick before a time; none stays none.
fn before(deletion: Deletion, timestamp: i64) -> Deletion {
    if deletion.is_live() {
        return deletion;
    }
    Deletion::new(timestamp.saturating_sub(1), deletion.local_deletion_time)
}

fn restamp(row: RowRef<'_>, timestamp: i64, out: &mut RowBuilder) {
    out.start_like(row);
    if let Some(liveness) = row.liveness() {
        out.liveness(Liveness { timestamp, ..liveness });
    }
    out.deletion(before(row.deletion(), timestamp));
    for cell in row.cells() {
        match cell.kind {
            CellKind::ComplexDeletion => {
                out.complex_deletion(cell.column, before(cell.as_deletion(), timestamp));
            }
            CellKind::Tombstone => {
                out.cell(CellRef { timestamp: timestamp.saturating_sub(1), ..cell });
            }
            CellKind::Live | CellKind::Expiring => out.cell(CellRef { timestamp, ..cell }),
        }
    }
}

impl PartitionUpdate {
    /// The same update as if all of it were written at one time: deletions a tick before it, so
    /// that they leave what is written with them (`PartitionUpdate.Builder.updateAllTimestamp`).
    /// `scratch` is written to.
    pub fn at(&self, timestamp: i64, scratch: &mut RowBuilder) -> Self {
        let mut out = UpdateBuilder::new(self.table, self.layout.clone(), &self.key);
        out.delete_partition(before(self.deletion, timestamp));
        for range in self.ranges.iter() {
            let deletion = before(range.deletion, timestamp);
            out.delete_range(RangeTombstone { deletion, ..range.clone() });
        }
        let mut row = RowBuilder::new();
        for of in self.static_row().into_iter().chain(self.rows.iter()) {
            restamp(of, timestamp, &mut row);
            out.add(row.finish_row(&self.layout), scratch);
        }
        let stamped = out.finish(scratch);
        let is_in_time = stamped.max_timestamp() <= timestamp;
        assert!(is_in_time, "no timestamp of an update is later than its new timestamp");
        stamped
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::CqlType;

    use super::*;
    use crate::clustering::{Bound, Clustering};
    use crate::layout::{ClusteringColumn, ColumnLayout, Layout};

    #[test]
    fn deletions_come_a_tick_before_what_is_written() {
        let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
        let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: false };
        let layout = Arc::new(Layout::new(
            vec![ClusteringColumn { ty: CqlType::Int, reversed: false }],
            vec![column("s", CqlType::Int)],
            vec![column("v", CqlType::Int), column("w", CqlType::Int), column("l", list)],
            false,
        ));
        let clustering = Clustering::new([Some(&[0, 0, 0, 1][..])]);
        let mut scratch = RowBuilder::new();
        let mut update = UpdateBuilder::new([1; 16], layout.clone(), b"key");
        update.delete_partition(Deletion::new(5, 77));
        let (start, end) = (Bound::bottom(), Bound::top());
        update.delete_range(RangeTombstone { start, end, deletion: Deletion::new(9, 78) });
        let mut row = RowBuilder::new();
        row.start_static();
        row.cell(CellRef::live(0, None, 6, b"stat"));
        update.add(row.finish_row(&layout), &mut scratch);
        row.start_row(clustering.as_ref());
        row.liveness(Liveness { timestamp: 7, ttl: 10, expires_at: 80 });
        row.cell(CellRef::tombstone(0, None, 7, 79));
        row.cell(CellRef::expiring(1, None, 8, 10, 80, b"four"));
        row.complex_deletion(2, Deletion::new(6, 79));
        row.cell(CellRef::live(2, Some(&[7; 16]), 7, b"item"));
        update.add(row.finish_row(&layout), &mut scratch);
        let update = update.finish(&mut scratch).at(100, &mut scratch);

        assert_eq!(update.deletion, Deletion::new(99, 77));
        let ranges: Vec<_> = update.ranges.iter().map(|range| range.deletion).collect();
        assert_eq!(ranges, [Deletion::new(99, 78)]);
        let statics: Vec<_> = update.static_row().into_iter().flat_map(|row| row.cells()).collect();
        assert_eq!(statics, [CellRef::live(0, None, 100, b"stat")]);
        let row = update.rows.get(0).expect("the row");
        assert_eq!(row.liveness(), Some(Liveness { timestamp: 100, ttl: 10, expires_at: 80 }));
        let cells: Vec<_> = row.cells().collect();
        assert_eq!(
            cells,
            [
                CellRef::tombstone(0, None, 99, 79),
                CellRef::expiring(1, None, 100, 10, 80, b"four"),
                CellRef::complex_deletion(2, Deletion::new(99, 79)),
                CellRef::live(2, Some(&[7; 16]), 100, b"item"),
            ]
        );
    }
}
