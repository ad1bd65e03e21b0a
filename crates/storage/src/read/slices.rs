//! The parts of a partition that a read wants, and in which direction.

use std::sync::Arc;

use rows::{Bound, BoundRef};

/// Slices of the clustering: sorted, without overlap, and the direction in which to read them.
#[derive(Clone, Debug)]
pub struct Slices {
    ranges: Arc<[(Bound, Bound)]>,
    reversed: bool,
}

impl Slices {
    /// These slices, which must be sorted in clustering order and must not overlap.
    pub fn new(ranges: impl Into<Arc<[(Bound, Bound)]>>, reversed: bool) -> Self {
        Self { ranges: ranges.into(), reversed }
    }

    /// The whole partition.
    pub fn all(reversed: bool) -> Self {
        Self::new([(Bound::bottom(), Bound::top())], reversed)
    }

    /// Read against the clustering order?
    pub fn reversed(&self) -> bool {
        self.reversed
    }

    /// Do they begin where the partition does, and are read from there?
    pub fn from_the_start(&self) -> bool {
        let first = self.ranges.first();
        !self.reversed && first.is_some_and(|(start, _)| start.as_ref() == BoundRef::BOTTOM)
    }

    /// The slices in clustering order.
    pub fn ranges(&self) -> &[(Bound, Bound)] {
        &self.ranges
    }

    /// The `n`th slice in the direction of reading.
    pub fn ordered(&self, n: usize) -> Option<(BoundRef<'_>, BoundRef<'_>)> {
        let n = if self.reversed { self.ranges.len().checked_sub(n + 1)? } else { n };
        self.ranges.get(n).map(|(start, end)| (start.as_ref(), end.as_ref()))
    }

    /// The slices in the direction of reading.
    pub fn iter_ordered(&self) -> impl Iterator<Item = (BoundRef<'_>, BoundRef<'_>)> {
        (0..self.ranges.len()).filter_map(|n| self.ordered(n))
    }
}
