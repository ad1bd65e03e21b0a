//! Range tombstones, and the list of those of a partition (`RangeTombstoneList`).

use crate::clustering::{Bound, BoundKind, BoundRef, ClusteringRef};
use crate::compare::compare;
use crate::layout::Layout;
use crate::marker::MarkerRef;
use crate::merger::marker_between;
use crate::time::Deletion;
use std::cmp::Ordering;

/// A deletion of what stands between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// Where it starts; a start bound.
    pub start: Bound,
    /// Where it ends; an end bound.
    pub end: Bound,
    /// What it deletes.
    pub deletion: Deletion,
}

impl RangeTombstone {
    /// Of everything that has the prefix.
    pub fn of_prefix(prefix: ClusteringRef<'_>, deletion: Deletion) -> Self {
        Self {
            start: Bound::new(BoundKind::InclStart, prefix.to_owned()),
            end: Bound::new(BoundKind::InclEnd, prefix.to_owned()),
            deletion,
        }
    }
}

/// The range tombstones of a partition: in order, without overlap, touching ones of the same
/// deletion joined. Cassandra's list keeps such ones apart, but its iterators skip the boundaries
/// between them (`RowAndDeletionMergeIterator.shouldSkip`), so nothing shows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeTombstoneList {
    ranges: Vec<RangeTombstone>,
}

impl RangeTombstoneList {
    /// An empty list.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Does a range begin or end at a null?
    pub fn has_null_bound(&self) -> bool {
        let has_null = |bound: &Bound| bound.values.as_ref().iter().any(|value| value.is_none());
        self.iter().any(|range| has_null(&range.start) || has_null(&range.end))
    }

    /// The ranges in order.
    pub fn iter(&self) -> std::slice::Iter<'_, RangeTombstone> {
        self.ranges.iter()
    }

    /// Adds a range. Where it overlaps others the deletion of the later timestamp stays; of equal
    /// ones that which was there first, whatever their local times
    /// (`RangeTombstoneList.insertFrom`, unlike [`Deletion::max`] where lists are merged): that
    /// shows in the markers, so in digests. An empty range adds nothing.
    pub fn insert(&mut self, layout: &Layout, range: RangeTombstone) {
        assert!(range.start.kind.is_start(), "a range starts at a start: {:?}", range.start.kind);
        assert!(range.end.kind.is_end(), "a range ends at an end: {:?}", range.end.kind);
        let less_than = |a: &Bound, b: &Bound| compare(layout, a, b) == Ordering::Less;
        if !less_than(&range.start, &range.end) || range.deletion.is_live() {
            return;
        }
        // Ranges that touch the new one are taken in, to be joined with it.
        let from = self.ranges.partition_point(|old| less_than(&old.end, &range.start));
        let to = self.ranges.partition_point(|old| !less_than(&range.end, &old.start));
        if from >= to {
            return self.ranges.insert(from, range);
        }
        let mut pieces = Pieces { layout, joined: Vec::new() };
        let RangeTombstone { start, end, deletion } = range;
        let mut at = start;
        let touched = self.ranges.get(from..to);
        for old in touched.expect("the ranges that a new one touches are among those there are") {
            let (first, last) = (old.start.as_ref(), old.end.as_ref());
            let newer = deletion.marked_for_delete_at > old.deletion.marked_for_delete_at;
            // `at` is where the new range goes on; before the first old range that is its start.
            pieces.push(first, min(layout, last, at.as_ref().invert()), old.deletion);
            pieces.push(at.as_ref(), min(layout, end.as_ref(), first.invert()), deletion);
            let common = (max(layout, at.as_ref(), first), min(layout, end.as_ref(), last));
            pieces.push(common.0, common.1, if newer { deletion } else { old.deletion });
            pieces.push(max(layout, end.as_ref().invert(), first), last, old.deletion);
            at = max(layout, at.as_ref(), last.invert()).to_owned();
        }
        pieces.push(at.as_ref(), end.as_ref(), deletion);
        let joined = pieces.joined;
        self.ranges.splice(from..to, joined);
    }

    /// The deletion of the range that covers a row, if any.
    pub fn covering(&self, layout: &Layout, clustering: ClusteringRef<'_>) -> Option<Deletion> {
        let starts_before =
            |range: &RangeTombstone| compare(layout, &range.start, clustering) == Ordering::Less;
        let after = self.ranges.partition_point(starts_before);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        (compare(layout, clustering, &range.end) == Ordering::Less).then_some(range.deletion)
    }

    /// The markers of the ranges, in clustering order or reversed.
    pub fn markers<'a>(&'a self, layout: &'a Layout, reversed: bool) -> Markers<'a> {
        self.markers_within(layout, BoundRef::BOTTOM, BoundRef::TOP, reversed)
    }

    /// The markers of what of the ranges lies within a slice: ranges that reach over its edges open
    /// or close there.
    pub fn markers_within<'a>(
        &'a self,
        layout: &'a Layout,
        start: BoundRef<'a>,
        end: BoundRef<'a>,
        reversed: bool,
    ) -> Markers<'a> {
        let before = |a: BoundRef<'_>, b: BoundRef<'_>| compare(layout, a, b) == Ordering::Less;
        let from = self.ranges.partition_point(|range| !before(start, range.end.as_ref()));
        let to = self.ranges.partition_point(|range| before(range.start.as_ref(), end));
        let ranges = if before(start, end) { self.ranges.get(from..to) } else { None };
        Markers { layout, ranges: ranges.unwrap_or_default(), start, end, reversed, open: None }
    }
}

impl<'a> IntoIterator for &'a RangeTombstoneList {
    type Item = &'a RangeTombstone;
    type IntoIter = std::slice::Iter<'a, RangeTombstone>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn max<'a>(layout: &Layout, a: BoundRef<'a>, b: BoundRef<'a>) -> BoundRef<'a> {
    if compare(layout, a, b) == Ordering::Less { b } else { a }
}

fn min<'a>(layout: &Layout, a: BoundRef<'a>, b: BoundRef<'a>) -> BoundRef<'a> {
    if compare(layout, b, a) == Ordering::Less { b } else { a }
}

/// Puts ranges in a row, joining those that touch and have the same deletion.
struct Pieces<'a> {
    layout: &'a Layout,
    joined: Vec<RangeTombstone>,
}

impl Pieces<'_> {
    fn push(&mut self, start: BoundRef<'_>, end: BoundRef<'_>, deletion: Deletion) {
        if compare(self.layout, start, end) != Ordering::Less {
            return;
        }
        if let Some(last) = self.joined.last_mut()
            && last.deletion == deletion
            && compare(self.layout, &last.end, start) == Ordering::Equal
        {
            last.end = end.to_owned();
            return;
        }
        let range = RangeTombstone { start: start.to_owned(), end: end.to_owned(), deletion };
        self.joined.push(range);
    }
}

/// Iterates over the markers of ranges.
#[derive(Clone, Debug)]
pub struct Markers<'a> {
    layout: &'a Layout,
    ranges: &'a [RangeTombstone],
    start: BoundRef<'a>,
    end: BoundRef<'a>,
    reversed: bool,
    /// Where the range that is open closes, and its deletion.
    open: Option<(BoundRef<'a>, Deletion)>,
}

impl<'a> Markers<'a> {
    /// Where a range opens and closes in the direction of iteration, cut to the slice.
    fn edges(&self, range: &'a RangeTombstone) -> (BoundRef<'a>, BoundRef<'a>) {
        let start = max(self.layout, self.start, range.start.as_ref());
        let end = min(self.layout, self.end, range.end.as_ref());
        if self.reversed { (end, start) } else { (start, end) }
    }

    fn next_range(&self) -> Option<(&'a RangeTombstone, &'a [RangeTombstone])> {
        if self.reversed { self.ranges.split_last() } else { self.ranges.split_first() }
    }
}

impl<'a> Iterator for Markers<'a> {
    type Item = MarkerRef<'a>;

    fn next(&mut self) -> Option<MarkerRef<'a>> {
        let next = self.next_range().map(|(range, rest)| (self.edges(range), range.deletion, rest));
        let Some((closes_at, deletion)) = self.open.take() else {
            let ((opens_at, closes_at), deletion, rest) = next?;
            self.open = Some((closes_at, deletion));
            self.ranges = rest;
            return Some(MarkerRef::bound(opens_at, deletion));
        };
        if let Some(((opens_at, next_close), next_deletion, rest)) = next
            && compare(self.layout, closes_at, opens_at) == Ordering::Equal
        {
            self.open = Some((next_close, next_deletion));
            self.ranges = rest;
            let reversed = (next_deletion, deletion);
            let (end, start) = if self.reversed { reversed } else { (deletion, next_deletion) };
            return Some(marker_between(closes_at, end, start));
        }
        Some(MarkerRef::bound(closes_at, deletion))
    }
}
