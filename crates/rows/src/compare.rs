//! The order of clusterings and bounds (`ClusteringComparator`), and of cell paths.

use crate::cell::CellRef;
use crate::clustering::{BoundKind, BoundRef, ClusteringRef};
use crate::layout::{ClusteringColumn, Layout, Traits};
use std::cmp::Ordering;
use types::CqlType;

/// How the values of a type compare, chosen once for a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Unsigned bytes, the shorter first.
    Bytes,
    /// Signed, 4 bytes; the empty value first.
    Int,
    /// Signed, 8 bytes; the empty value first.
    Long,
    /// By time, then by the signed bytes of the rest.
    TimeUuid,
    /// As `types` says.
    Other(CqlType),
}

impl Order {
    pub(crate) fn of(ty: &CqlType) -> Self {
        match ty {
            CqlType::Ascii | CqlType::Text | CqlType::Blob => Self::Bytes,
            CqlType::Int => Self::Int,
            CqlType::BigInt | CqlType::Timestamp => Self::Long,
            CqlType::TimeUuid => Self::TimeUuid,
            other => Self::Other(other.clone()),
        }
    }

    #[inline]
    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytes => a.cmp(b),
            Self::Int => match (<[u8; 4]>::try_from(a), <[u8; 4]>::try_from(b)) {
                (Ok(a), Ok(b)) => i32::from_be_bytes(a).cmp(&i32::from_be_bytes(b)),
                _ => values(&CqlType::Int, a, b),
            },
            Self::Long => match (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
                (Ok(a), Ok(b)) => i64::from_be_bytes(a).cmp(&i64::from_be_bytes(b)),
                _ => values(&CqlType::BigInt, a, b),
            },
            Self::TimeUuid => values(&CqlType::TimeUuid, a, b),
            Self::Other(ty) => values(ty, a, b),
        }
    }
}

fn values(_ty: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}

#[inline]
fn component(
    column: &ClusteringColumn,
    order: &Order,
    a: Option<&[u8]>,
    b: Option<&[u8]>,
) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if column.reversed => order.compare(b, a),
        (Some(a), Some(b)) => order.compare(a, b),
        // Null sorts first, whatever the direction.
        _ => a.is_some().cmp(&b.is_some()),
    }
}

/// Compares the components two prefixes have in common, and tells which of them has more.
#[inline]
fn common(layout: &Layout, a: ClusteringRef<'_>, b: ClusteringRef<'_>) -> (Ordering, Ordering) {
    let (mut left, mut right) = (a.iter(), b.iter());
    for (column, order) in layout.clustering.iter().zip(&layout.orders) {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) => match component(column, order, a, b) {
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

/// Compares rows and bounds of one table in any mix: where one is a prefix of the other, the kind of
/// the shorter decides; of equal values, bounds before rows before bounds.
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
            (Some(left), Some(right)) => match self.traits(is_static, a.column) {
                Some(Traits { path_order: Some(order), .. }) => order.compare(left, right),
                _ => left.cmp(right),
            },
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}
