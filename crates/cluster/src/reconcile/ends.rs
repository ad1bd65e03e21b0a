//! Places in a partition in the direction of reading, and where a merge of it ends.

use std::cmp::Ordering;

use rows::{Bound, BoundKind, BoundRef, Clustering, ClusteringRef, Layout, MarkerRef};

use super::Partition;

/// Which of two places comes first in the direction of reading.
pub(super) fn compare(
    layout: &Layout,
    reversed: bool,
    a: BoundRef<'_>,
    b: BoundRef<'_>,
) -> Ordering {
    let order = rows::compare(layout, a, b);
    if reversed { order.reverse() } else { order }
}

/// The place just after a row: where a range that stays open is closed.
pub(super) fn after(row: ClusteringRef<'_>, reversed: bool) -> BoundRef<'_> {
    BoundRef::new(if reversed { BoundKind::InclStart } else { BoundKind::InclEnd }, row)
}

/// The same place as one where a range begins in clustering order, or as one where it ends.
pub(super) fn as_edge(at: BoundRef<'_>, is_start: bool) -> Bound {
    let is_before = at.kind.compared_to_clustering() == Ordering::Less;
    let kind = match (is_before, is_start) {
        (true, true) => BoundKind::InclStart,
        (true, false) => BoundKind::ExclEnd,
        (false, true) => BoundKind::ExclStart,
        (false, false) => BoundKind::InclEnd,
    };
    at.with_kind(kind).to_owned()
}

/// The end of a range that is open at a place, as a marker.
pub(super) fn closing(
    row: ClusteringRef<'_>,
    reversed: bool,
    open: rows::Deletion,
) -> MarkerRef<'_> {
    MarkerRef::bound(after(row, reversed), open)
}

/// Where all sources are known up to in a partition: with this row, and no further.
pub(super) struct Cut {
    pub row: Clustering,
    pub reversed: bool,
}

impl Cut {
    /// How many rows and markers of a partition come before it.
    pub fn of(&self, layout: &Layout, partition: &Partition) -> usize {
        let cut = after(self.row.as_ref(), self.reversed);
        let (mut from, mut to) = (0, partition.ends.len());
        while from < to {
            let middle = from.midpoint(to);
            let is_before = partition
                .get(middle)
                .is_some_and(|one| compare(layout, self.reversed, one.position(), cut).is_lt());
            if is_before { from = middle + 1 } else { to = middle }
        }
        from
    }
}
