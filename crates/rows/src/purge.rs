//! Leaving out what is deleted and need not be remembered (`PurgeFunction`, `Row.purge`).

use crate::builder::RowBuilder;
use crate::cell::CellRef;
use crate::layout::Layout;
use crate::marker::MarkerRef;
use crate::row::{Head, RowRef};
use crate::time::Deletion;

/// What may be purged.
#[derive(Clone, Copy)]
pub struct Purger<'p> {
    /// Seconds since the epoch: what has expired by now counts as deleted.
    pub now: i64,
    /// Deletions made before this, in seconds, are old enough: now less `gc_grace_seconds`.
    pub gc_before: i64,
    /// Does only the liveness make a row exist (views whose key holds a regular column)?
    pub strict_liveness: bool,
    /// May a deletion with this timestamp be forgotten, because no other source can hold older data
    /// that it deletes?
    pub purgeable: &'p dyn Fn(i64) -> bool,
}

impl Purger<'static> {
    /// Leaves only what is alive at `now`: what clients are shown.
    pub fn live_only(now: i64, strict_liveness: bool) -> Self {
        Self { now, gc_before: i64::MAX, strict_liveness, purgeable: &|_| true }
    }
}

impl Purger<'_> {
    /// May a deletion of this timestamp and time be forgotten?
    pub fn purges(&self, timestamp: i64, local_deletion_time: i64) -> bool {
        local_deletion_time < self.gc_before && (self.purgeable)(timestamp)
    }

    /// The deletion, or [`Deletion::LIVE`] if it may be forgotten.
    pub fn deletion(&self, deletion: Deletion) -> Deletion {
        let purges = self.purges(deletion.marked_for_delete_at, deletion.local_deletion_time);
        if purges { Deletion::LIVE } else { deletion }
    }

    /// The cell; as a tombstone if it expired and must be remembered, `None` if it may be
    /// forgotten.
    fn cell<'a>(&self, cell: CellRef<'a>) -> Option<CellRef<'a>> {
        if cell.is_live(self.now) {
            return Some(cell);
        }
        if self.purges(cell.timestamp, cell.local_deletion_time) {
            return None;
        }
        if !cell.is_expiring() {
            return Some(cell);
        }
        // Expired: its value is no longer needed, and it counts as deleted from when it was
        // written.
        let written = cell.local_deletion_time.saturating_sub(i64::from(cell.ttl));
        let tombstone = CellRef::tombstone(cell.column, cell.path, cell.timestamp, written);
        (!self.purges(tombstone.timestamp, written)).then_some(tombstone)
    }
}

/// What is left of a row; the row itself where nothing of it is deleted, `None` where nothing is
/// left.
pub fn purge_row<'a>(
    layout: &Layout,
    row: RowRef<'a>,
    purger: &Purger<'_>,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    if !row.has_deletion(purger.now) {
        return Some(row);
    }
    let liveness = row.liveness().filter(|liveness| {
        liveness.is_live(purger.now) || !purger.purges(liveness.timestamp, liveness.expires_at)
    });
    let deletion = purger.deletion(row.deletion());
    if purger.strict_liveness && deletion.is_live() && liveness.is_none() {
        return None;
    }
    // Most of what is deleted must stay: then there is nothing to copy.
    let is_whole = liveness == row.liveness()
        && deletion == row.deletion()
        && row.cells().all(|cell| purger.cell(cell) == Some(cell));
    if is_whole {
        return Some(row);
    }
    out.start_like(row);
    out.set_head(Head { liveness, deletion, shadowable: row.is_shadowable() });
    for cell in row.cells() {
        // The deletion of a complex column is no live cell and does not expire: kept or forgotten.
        if let Some(cell) = purger.cell(cell) {
            out.cell_in_order(&cell);
        }
    }
    Some(out.finish_row(layout)).filter(|row| !row.is_empty())
}

/// What is left of a marker. A boundary of which one side may be forgotten becomes a mere bound.
pub fn purge_marker<'a>(marker: MarkerRef<'a>, purger: &Purger<'_>) -> Option<MarkerRef<'a>> {
    let (end, start) = (purger.deletion(marker.end), purger.deletion(marker.start));
    let is_less =
        (end.is_live() || end == marker.end) && (start.is_live() || start == marker.start);
    assert!(is_less, "purging takes deletions away and changes none");
    let kind = match (end.is_live(), start.is_live()) {
        (true, true) => return None,
        (false, false) => marker.bound.kind,
        (true, false) => marker.bound.kind.start_of(),
        (false, true) => marker.bound.kind.end_of(),
    };
    Some(MarkerRef { bound: marker.bound.with_kind(kind), end, start })
}
