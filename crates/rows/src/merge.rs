//! The merge of versions of a row (`Row.Merger`).

use crate::builder::RowBuilder;
use crate::cell::{CellRef, Cells};
use crate::counter;
use crate::layout::Layout;
use crate::reconcile::{precedence, reconcile};
use crate::row::{Head, RowRef};
use crate::time::Deletion;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Versions that are merged without an allocation.
const INLINE_VERSIONS: usize = 8;

/// Merges two versions of a row under the deletion that holds where it stands
/// ([`Deletion::LIVE`] for none). `None` if nothing is left.
///
/// Commutative, associative, and idempotent on rows that a merge produced.
pub fn merge_rows<'a>(
    layout: &Layout,
    a: RowRef<'a>,
    b: RowRef<'a>,
    active: Deletion,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    let mut cursors = [Cursor::new(a), Cursor::new(b)];
    merge(layout, &mut cursors, active, Equal::Goes, out)
}

/// Merges another version into a row, as a memtable and a batch do (`Rows.merge`): the deletion of
/// a complex column that is as old as the row's stays beside it, other than in a merge of what is
/// read.
pub fn update_row<'a>(
    layout: &Layout,
    old: RowRef<'a>,
    new: RowRef<'a>,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    // what most updates are
    if !layout.counter && out.splice(old, new) {
        return Some(out.finished()).filter(|row| !row.is_empty());
    }
    let mut cursors = [Cursor::new(old), Cursor::new(new)];
    merge(layout, &mut cursors, Deletion::LIVE, Equal::Stays, out)
}

/// Merges any number of versions of one row. A single one of which nothing is shadowed is handed
/// through without a copy.
pub fn merge_versions<'a>(
    layout: &Layout,
    versions: impl Iterator<Item = RowRef<'a>>,
    active: Deletion,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    merge_all(layout, versions, active, Equal::Goes, out)
}

/// The same as [`update_row`], of any number of versions.
pub fn update_versions<'a>(
    layout: &Layout,
    versions: impl Iterator<Item = RowRef<'a>>,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    merge_all(layout, versions, Deletion::LIVE, Equal::Stays, out)
}

fn merge_all<'a>(
    layout: &Layout,
    mut versions: impl Iterator<Item = RowRef<'a>>,
    active: Deletion,
    equal: Equal,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    let first = versions.next()?;
    let Some(second) = versions.next() else {
        if !is_touched_by(first, active) {
            return Some(first).filter(|row| !row.is_empty());
        }
        return merge(layout, &mut [Cursor::new(first)], active, equal, out);
    };
    let Some(third) = versions.next() else {
        return merge(layout, &mut [Cursor::new(first), Cursor::new(second)], active, equal, out);
    };
    let mut inline = [const { Cursor::EMPTY }; INLINE_VERSIONS];
    let mut slots = inline.iter_mut();
    let mut rest = [first, second, third].into_iter().chain(versions).map(Cursor::new);
    for (slot, cursor) in slots.by_ref().zip(rest.by_ref()) {
        *slot = cursor;
    }
    match rest.next() {
        None => merge(layout, &mut inline, active, equal, out),
        Some(next) => {
            let mut cursors: Vec<_> = inline.into_iter().chain([next]).chain(rest).collect();
            merge(layout, &mut cursors, active, equal, out)
        }
    }
}

/// The only version of a row, as the deletion that holds where it stands leaves it (`Row.filter`).
/// The deletion of a complex column that is as old as that deletion stays, other than in a merge:
/// what Cassandra flushes and what it digests has it.
pub fn filter_row<'a>(
    layout: &Layout,
    row: RowRef<'a>,
    active: Deletion,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    let keeps = |cell: &CellRef<'_>| match cell.is_complex_deletion() {
        true => !active.supersedes(&cell.as_deletion()),
        false => !active.deletes(cell.timestamp),
    };
    let deletion = row.deletion();
    let liveness = row.liveness().filter(|liveness| !active.deletes(liveness.timestamp));
    let is_whole = active.is_live()
        || deletion.supersedes(&active)
        || (deletion.is_live() && liveness == row.liveness() && row.cells().all(|c| keeps(&c)));
    if is_whole {
        return Some(row).filter(|row| !row.is_empty());
    }
    out.start_like(row);
    out.set_head(Head { liveness, deletion: Deletion::LIVE, ..Head::of(row) });
    for cell in row.cells().filter(keeps) {
        out.cell_in_order(&cell);
    }
    Some(out.finish_row(layout)).filter(|row| !row.is_empty())
}

/// Would the deletion take anything out of the row?
fn is_touched_by(row: RowRef<'_>, active: Deletion) -> bool {
    if active.is_live() {
        return false;
    }
    let deletion = row.deletion();
    (!deletion.is_live() && !deletion.supersedes(&active))
        || row.liveness().is_some_and(|liveness| active.deletes(liveness.timestamp))
        || row.cells().any(|cell| match cell.is_complex_deletion() {
            true => !cell.as_deletion().supersedes(&active),
            false => active.deletes(cell.timestamp),
        })
}

/// What becomes of the deletion of a complex column that is as old as the deletion in force.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equal {
    Goes,
    Stays,
}

/// The cells of one version that are still to be merged.
struct Cursor<'a> {
    row: Option<RowRef<'a>>,
    cells: Cells<'a>,
    head: Option<CellRef<'a>>,
    /// Is its head a version of the cell that is being settled?
    is_version: bool,
}

impl<'a> Cursor<'a> {
    const EMPTY: Self = Self {
        row: None,
        cells: Cells { rest: &[], liveness: None },
        head: None,
        is_version: false,
    };

    fn new(row: RowRef<'a>) -> Self {
        let mut cells = row.cells();
        let head = cells.next();
        Self { row: Some(row), cells, head, is_version: false }
    }

    /// Hands its head on, unless it is deleted.
    #[inline]
    fn hand_on(&mut self, active: Deletion, out: &mut RowBuilder) {
        if let Some(cell) = self.head.as_ref().filter(|cell| !active.deletes(cell.timestamp)) {
            out.cell_in_order(cell);
        }
        self.head = self.cells.next();
    }

    #[inline]
    fn take_if(&mut self, wanted: impl FnOnce(&CellRef<'a>) -> bool) -> Option<CellRef<'a>> {
        let cell = self.head.filter(wanted)?;
        self.head = self.cells.next();
        Some(cell)
    }
}

/// The column that comes next.
struct Column {
    column: u16,
    is_complex: bool,
    /// The version that has it, if no other has.
    only: Option<usize>,
}

impl Column {
    #[inline]
    fn first(cursors: &[Cursor<'_>]) -> Option<Self> {
        let mut first: Option<Self> = None;
        for (at, cursor) in cursors.iter().enumerate() {
            let Some(cell) = &cursor.head else { continue };
            let is_complex = cell.is_of_complex();
            match &mut first {
                Some(first) if cell.column > first.column => {}
                Some(first) if cell.column == first.column => {
                    first.only = None;
                    first.is_complex &= is_complex;
                }
                _ => first = Some(Self { column: cell.column, is_complex, only: Some(at) }),
            }
        }
        first
    }
}

fn merge<'a>(
    layout: &Layout,
    cursors: &mut [Cursor<'a>],
    active: Deletion,
    equal: Equal,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    let row = cursors.first().and_then(|cursor| cursor.row);
    let row = row.expect("a merge has a version of the row");
    let is_static = row.is_static();
    let mut others = cursors.iter().filter_map(|cursor| cursor.row);
    let is_one_row = others.all(|other| other.is_static() == is_static);
    assert!(is_one_row, "versions of one row are all static, or none is");
    let head = merge_heads(cursors, active);
    let active = head.deletion.max(active);
    out.start_like(row);
    out.set_head(head);
    while let Some(Column { column, is_complex, only }) = Column::first(cursors) {
        if let Some(only) = only.filter(|_| !is_complex) {
            let cursor = cursors.get_mut(only).expect("a version has the column that comes next");
            cursor.hand_on(active, out);
        } else if is_complex {
            merge_complex(layout, (is_static, column), cursors, (active, equal), out);
        } else if layout.counter {
            merge_counter(column, cursors, active, out);
        } else {
            merge_simple(column, cursors, active, out);
        }
    }
    Some(out.finish_row(layout)).filter(|row| !row.is_empty())
}

/// The winning liveness and row deletion, as far as the deletion in force leaves them standing.
fn merge_heads(cursors: &[Cursor<'_>], active: Deletion) -> Head {
    let mut head = Head::EMPTY;
    for row in cursors.iter().filter_map(|cursor| cursor.row) {
        if let Some(liveness) = row.liveness()
            && head.liveness.is_none_or(|best| liveness.supersedes(&best))
        {
            head.liveness = Some(liveness);
        }
        let deletion = row.deletion();
        if deletion.supersedes(&head.deletion) && !deletion.is_live() {
            head.deletion = deletion;
            head.shadowable = row.is_shadowable();
        }
    }
    head.drop_shadowed();
    if !head.deletion.supersedes(&active) {
        head.deletion = Deletion::LIVE;
        head.shadowable = false;
    }
    let active = head.deletion.max(active);
    head.liveness = head.liveness.filter(|liveness| !active.deletes(liveness.timestamp));
    head
}

#[inline]
fn merge_simple(column: u16, cursors: &mut [Cursor<'_>], active: Deletion, out: &mut RowBuilder) {
    settle(cursors, column, active, out, |_, _| Ordering::Equal);
}

/// Hands on the strongest version of the cell that comes first by `order` among the heads of a
/// column, unless it is deleted, and moves its versions on; false if there is none. The strongest
/// is the latest: where it is deleted, all versions are.
#[inline]
fn settle(
    cursors: &mut [Cursor<'_>],
    column: u16,
    active: Deletion,
    out: &mut RowBuilder,
    order: impl Fn(&[u8], &[u8]) -> Ordering,
) -> bool {
    let mut first: Option<&[u8]> = None;
    let (mut begin, mut winner) = (0, 0);
    for at in 0..cursors.len() {
        let (before, rest) = cursors.split_at_mut(at);
        let cursor = rest.first_mut().expect("a version is among the versions");
        cursor.is_version = false;
        let Some(cell) = cursor.head.as_ref().filter(|cell| cell.column == column) else {
            continue;
        };
        // none in a simple column, whose one cell is at no path
        let path = cell.path.unwrap_or_default();
        match first.map_or(Ordering::Less, |first| order(path, first)) {
            Ordering::Greater => continue,
            Ordering::Less => (first, begin, winner) = (Some(path), at, at),
            Ordering::Equal => {
                let best = before.get(winner).and_then(|best| best.head.as_ref());
                let best = best.expect("the version that wins so far is one of those before");
                if precedence(best, cell).is_lt() {
                    winner = at;
                }
            }
        }
        cursor.is_version = true;
    }
    if first.is_none() {
        return false;
    }
    let cell = cursors.get(winner).and_then(|winner| winner.head.as_ref());
    let cell = cell.expect("the version that wins has a cell");
    if !active.deletes(cell.timestamp) {
        out.cell_in_order(cell);
    }
    for cursor in cursors.iter_mut().skip(begin).filter(|cursor| cursor.is_version) {
        cursor.head = cursor.cells.next();
    }
    true
}

/// A counter's versions add up, whatever their timestamps; but a tombstone ends it
/// (`Cells.resolveCounter`).
fn merge_counter(column: u16, cursors: &mut [Cursor<'_>], active: Deletion, out: &mut RowBuilder) {
    let mut winner: Option<(CellRef<'_>, Cow<'_, [u8]>)> = None;
    for cursor in cursors {
        let Some(cell) = cursor.take_if(|cell| cell.column == column) else { continue };
        if active.deletes(cell.timestamp) {
            continue;
        }
        winner = Some(match winner {
            None => (cell, Cow::Borrowed(cell.value)),
            Some((best, _)) if best.is_tombstone() && cell.is_tombstone() => {
                (reconcile(best, cell), Cow::default())
            }
            Some(best) if best.0.is_tombstone() => best,
            Some(_) if cell.is_tombstone() => (cell, Cow::default()),
            Some((best, value)) => {
                let timestamp = best.timestamp.max(cell.timestamp);
                let merged = counter::merge(&value, cell.value).into_owned();
                (CellRef { timestamp, ..cell }, Cow::Owned(merged))
            }
        });
    }
    if let Some((winner, value)) = winner {
        out.cell_in_order(&CellRef { value: &value, ..winner });
    }
}

fn merge_complex(
    layout: &Layout,
    (is_static, column): (bool, u16),
    cursors: &mut [Cursor<'_>],
    (active, equal): (Deletion, Equal),
    out: &mut RowBuilder,
) {
    let mut complex = Deletion::LIVE;
    for cursor in &mut *cursors {
        let deletion = |cell: &CellRef<'_>| cell.column == column && cell.is_complex_deletion();
        while let Some(cell) = cursor.take_if(deletion) {
            complex = complex.max(cell.as_deletion());
        }
    }
    let mut active = active;
    let stays = equal == Equal::Stays && complex == active && !complex.is_live();
    if stays || complex.supersedes(&active) {
        out.cell_in_order(&CellRef::complex_deletion(column, complex));
        active = complex;
    }
    let path_type = layout.path_type(is_static, column);
    let order = |a: &[u8], b: &[u8]| path_type.map_or_else(|| a.cmp(b), |ty| ty.compare(a, b));
    while settle(cursors, column, active, out, order) {}
}
