//! What of a row another version of it lacks (`Rows.diff`): what that one is to be told.

use std::cmp::Ordering;

use crate::builder::RowBuilder;
use crate::cell::CellRef;
use crate::layout::Layout;
use crate::row::{Head, RowRef};
use crate::shadow::order;
use crate::time::Deletion;

/// What of a merged row one of the versions that it was merged of, or no version at all, has not,
/// or has older; `None` if that is nothing. Of cells only those that `is_wanted` lets through;
/// deletions of complex columns always.
pub fn diff_rows<'a>(
    layout: &Layout,
    merged: RowRef<'_>,
    version: Option<RowRef<'_>>,
    is_wanted: impl Fn(&CellRef<'_>) -> bool,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    let is_static = merged.is_static();
    let is_one_row = version.is_none_or(|version| version.is_static() == is_static);
    assert!(is_one_row, "the versions of a row are all static, or none is");
    let has = version.map(Head::of).unwrap_or(Head::EMPTY);
    let mut head = Head::of(merged);
    head.liveness = head.liveness.filter(|liveness| has.liveness != Some(*liveness));
    if head.deletion == has.deletion {
        (head.deletion, head.shadowable) = (Deletion::LIVE, false);
    }
    out.start_like(merged);
    out.set_head(head);
    let mut others = version.into_iter().flat_map(|version| version.cells()).peekable();
    for cell in merged.cells() {
        let is_before = |other: &CellRef<'_>| order(layout, is_static, other, &cell).is_lt();
        while others.next_if(is_before).is_some() {}
        let at_it = |other: &CellRef<'_>| order(layout, is_static, other, &cell) == Ordering::Equal;
        let is_there = others.next_if(at_it).is_some_and(|other| other == cell);
        if !is_there && (cell.is_complex_deletion() || is_wanted(&cell)) {
            out.cell_in_order(&cell);
        }
    }
    Some(out.finish_row(layout)).filter(|row| !row.is_empty())
}
