//! The merge of any number of streams of rows and markers of one partition
//! (`UnfilteredRowIterators.merge`). It does no I/O: it looks at what each source has next, and
//! tells what comes out and which sources to move on.

use crate::builder::RowBuilder;
use crate::clustering::{BoundKind, BoundRef};
use crate::compare::compare;
use crate::layout::Layout;
use crate::marker::{MarkerRef, Unfiltered};
use crate::merge::{filter_row, merge_versions};
use crate::row::RowRef;
use crate::time::Deletion;
use std::cmp::Ordering;
use types::Few;

/// What the sources of a merge have next.
pub trait Heads {
    /// Number of sources.
    fn sources(&self) -> usize;
    /// The next row or marker of a source; `None` at its end.
    fn head(&self, source: usize) -> Option<Unfiltered<'_>>;
}

impl Heads for [Option<Unfiltered<'_>>] {
    fn sources(&self) -> usize {
        self.len()
    }

    fn head(&self, source: usize) -> Option<Unfiltered<'_>> {
        self.get(source).copied().flatten()
    }
}

/// What one step of a merge yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The next row or marker of the merged stream.
    Next(Unfiltered<'a>),
    /// What the sources had next cancelled out.
    Nothing,
    /// All sources are at their ends.
    End,
}

/// Merges the streams of one partition; one merger serves one partition in one direction.
///
/// ```text
/// loop {
///     match merger.step(&layout, &sources, &mut builder) { Next(unfiltered) => use it, .. }
///     for source in merger.consumed() { move it on }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct UnfilteredMerger {
    reversed: bool,
    /// Of all sources together.
    partition_deletion: Deletion,
    /// The range tombstone each source is in.
    open: Few<Deletion>,
    /// The newest of `open`, unless the partition deletion covers it.
    current: Deletion,
    consumed: Few<usize>,
}

impl UnfilteredMerger {
    /// For a number of sources, all in the same direction. `partition_deletion` is the newest of
    /// theirs ([`Deletion::max`]).
    pub fn new(sources: usize, partition_deletion: Deletion, reversed: bool) -> Self {
        Self {
            reversed,
            partition_deletion,
            open: std::iter::repeat_n(Deletion::LIVE, sources).collect(),
            current: Deletion::LIVE,
            consumed: Few::with_capacity(sources),
        }
    }

    /// Makes it one for another partition, keeping its buffers.
    pub fn reset(&mut self, sources: usize, partition_deletion: Deletion, reversed: bool) {
        self.reversed = reversed;
        self.partition_deletion = partition_deletion;
        self.open.clear();
        self.open.extend(std::iter::repeat_n(Deletion::LIVE, sources));
        self.current = Deletion::LIVE;
        self.consumed.clear();
    }

    /// The sources whose heads the last step used up: to be moved on before the next.
    pub fn consumed(&self) -> &[usize] {
        &self.consumed
    }

    /// The deletion that holds for rows at this point.
    pub fn active_deletion(&self) -> Deletion {
        self.partition_deletion.max(self.current)
    }

    /// Merges what comes next.
    pub fn step<'a, H: Heads + ?Sized>(
        &mut self,
        layout: &Layout,
        heads: &'a H,
        out: &'a mut RowBuilder,
    ) -> Step<'a> {
        let is_whole = heads.sources() == self.open.len();
        assert!(is_whole, "a merger merges as many streams as it was made for");
        let Some(first) = self.pick(layout, heads) else {
            return Step::End;
        };
        let merged = match first {
            Unfiltered::Row(row) if heads.sources() == 1 => {
                filter_row(layout, row, self.active_deletion(), out).map(Unfiltered::Row)
            }
            Unfiltered::Row(_) => {
                let versions = self.consumed.iter().filter_map(|source| row(heads.head(*source)));
                merge_versions(layout, versions, self.active_deletion(), out).map(Unfiltered::Row)
            }
            Unfiltered::Marker(marker) => {
                for source in &self.consumed {
                    if let Some(Unfiltered::Marker(marker)) = heads.head(*source) {
                        let open = self.open.get_mut(*source);
                        let open = open.expect("a merger reads only from its streams");
                        *open = marker.opens(self.reversed).unwrap_or(Deletion::LIVE);
                    }
                }
                self.marker_at(marker.bound).map(Unfiltered::Marker)
            }
        };
        merged.map_or(Step::Nothing, Step::Next)
    }

    /// Notes the sources that stand at the first place of all, and returns the head of one of them.
    fn pick<'a, H: Heads + ?Sized>(
        &mut self,
        layout: &Layout,
        heads: &'a H,
    ) -> Option<Unfiltered<'a>> {
        self.consumed.clear();
        let mut first: Option<Unfiltered<'a>> = None;
        for source in 0..heads.sources() {
            let Some(head) = heads.head(source) else { continue };
            let order = first.map_or(Ordering::Less, |first| {
                let order = compare(layout, head.position(), first.position());
                if self.reversed { order.reverse() } else { order }
            });
            if order == Ordering::Less {
                first = Some(head);
                self.consumed.clear();
            }
            if order != Ordering::Greater {
                self.consumed.push(source);
            }
        }
        first
    }

    /// The marker for the change of the deletion in force, if it changed.
    fn marker_at<'a>(&mut self, at: BoundRef<'a>) -> Option<MarkerRef<'a>> {
        let newest = self.open.iter().fold(Deletion::LIVE, |newest, open| newest.max(*open));
        let now = if newest.supersedes(&self.partition_deletion) { newest } else { Deletion::LIVE };
        let before = std::mem::replace(&mut self.current, now);
        if before == now {
            return None;
        }
        let (end, start) = if self.reversed { (now, before) } else { (before, now) };
        Some(marker_between(at, end, start))
    }
}

fn row(head: Option<Unfiltered<'_>>) -> Option<RowRef<'_>> {
    match head {
        Some(Unfiltered::Row(row)) => Some(row),
        _ => None,
    }
}

/// The marker at a place where, in clustering order, one deletion ends and another starts; either
/// may be live, but not both.
pub(crate) fn marker_between(at: BoundRef<'_>, end: Deletion, start: Deletion) -> MarkerRef<'_> {
    let deletes = !end.is_live() || !start.is_live();
    assert!(deletes, "a marker ends a deletion, starts one, or both");
    let before_row = at.kind.compared_to_clustering() == Ordering::Less;
    let kind = match (before_row, end.is_live(), start.is_live()) {
        (true, false, false) => BoundKind::ExclEndInclStart,
        (false, false, false) => BoundKind::InclEndExclStart,
        (true, true, _) => BoundKind::InclStart,
        (false, true, _) => BoundKind::ExclStart,
        (true, false, true) => BoundKind::ExclEnd,
        (false, false, true) => BoundKind::InclEnd,
    };
    MarkerRef { bound: at.with_kind(kind), end, start }
}
