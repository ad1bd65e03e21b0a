//! The order of clusterings and bounds (`ClusteringComparator`), and of cell paths.

use crate::cell::CellRef;
use crate::clustering::{BoundKind, BoundRef, ClusteringRef};
use crate::layout::{ClusteringColumn, Layout};
use std::cmp::Ordering;

#[inline]
fn component(column: &ClusteringColumn, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => column.ty.compare_clustering(column.reversed, a, b),
        // Null sorts first, whatever the direction.
        _ => a.is_some().cmp(&b.is_some()),
    }
}

/// Compares the components two prefixes have in common, and tells which of them has more.
#[inline]
fn common(layout: &Layout, a: ClusteringRef<'_>, b: ClusteringRef<'_>) -> (Ordering, Ordering) {
    let (mut left, mut right) = (a.iter(), b.iter());
    for column in &layout.clustering {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) => match component(column, a, b) {
                Ordering::Equal => {}
                decided => return (decided, Ordering::Equal),
            },
            (None, None) => break,
            (a, b) => return (Ordering::Equal, a.is_some().cmp(&b.is_some())),
        }
    }
    (Ordering::Equal, Ordering::Equal)
}

/// Compares two clusterings of rows of one table.
#[inline]
pub fn compare_clusterings(
    layout: &Layout,
    a: ClusteringRef<'_>,
    b: ClusteringRef<'_>,
) -> Ordering {
    let (values, length) = common(layout, a, b);
    values.then(length)
}

/// Compares rows and bounds of one table in any mix: where one is a prefix of the other, the kind
/// of the shorter decides; of equal values, bounds before rows before bounds.
pub fn compare<'a, 'b>(
    layout: &Layout,
    a: impl Into<BoundRef<'a>>,
    b: impl Into<BoundRef<'b>>,
) -> Ordering {
    let (a, b): (BoundRef<'_>, BoundRef<'_>) = (a.into(), b.into());
    let (values, length) = common(layout, a.values, b.values);
    values.then_with(|| match length {
        Ordering::Equal => a.kind.rank().cmp(&b.kind.rank()),
        Ordering::Less => shorter(a.kind),
        Ordering::Greater => shorter(b.kind).reverse(),
    })
}

/// Where a shorter prefix of some kind stands relative to what it is a prefix of. A row is never
/// shorter but in a table whose clustering grew: it counts as equal there, as in Cassandra.
fn shorter(kind: BoundKind) -> Ordering {
    kind.compared_to_clustering()
}

impl Layout {
    /// Compares the paths of two cells of one column; those of simple columns are equal.
    #[inline]
    pub(crate) fn compare_paths(
        &self,
        is_static: bool,
        a: &CellRef<'_>,
        b: &CellRef<'_>,
    ) -> Ordering {
        match (a.path, b.path) {
            (Some(left), Some(right)) => match self.path_type(is_static, a.column) {
                Some(ty) => ty.compare(left, right),
                None => left.cmp(right),
            },
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}
