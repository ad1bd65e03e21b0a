//! Rows, and their packed form.
//!
//! Packed: flags (`u8`); unless static, the length of the clustering (`u32`) and the clustering;
//! the liveness (timestamp `i64`, and time to live `i32` and expiration `u32` if it expires); the
//! deletion (`i64` and `u32`); the cells by column and path, see [`crate::cell`]. The form is
//! private to memory and canonical but for the representation of values: equal bytes are equal
//! rows.

use crate::cell::{CellKind, CellRef, Cells, OwnTimestamps, PlainColumns};
use crate::clustering::ClusteringRef;
use crate::packed::{DELETION_LEN, deletion_at, i32_at, i64_at, pack_seconds, put_deletion};
use crate::packed::{slice, tail, u8_at, u32_at, unpack_seconds};
use crate::time::{Deletion, Liveness};
use std::fmt;

pub(crate) const STATIC: u8 = 0x01;
const HAS_LIVENESS: u8 = 0x02;
const EXPIRING: u8 = 0x04;
const HAS_DELETION: u8 = 0x08;
const SHADOWABLE: u8 = 0x10;
/// Some cell is not [`CellKind::Live`]: others need not be looked at to know that nothing expired.
const MORTAL: u8 = 0x20;
/// Some cell is a [`CellKind::ComplexDeletion`].
const HAS_COMPLEX_DELETION: u8 = 0x40;
/// Set on a packed marker, which shares the first byte with rows.
pub(crate) const MARKER: u8 = 0x80;

/// A row in packed form. Borrowed, and no larger than the slice it is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RowRef<'a> {
    bytes: &'a [u8],
}

impl<'a> RowRef<'a> {
    /// Over bytes that a [`crate::RowBuilder`] finished.
    #[inline]
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        let is_row = bytes.first().is_some_and(|flags| flags & MARKER == 0);
        assert!(is_row, "a packed row begins with flags, which no marker has");
        Self { bytes }
    }

    /// The packed bytes.
    #[inline]
    pub fn as_packed(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn flags(&self) -> u8 {
        u8_at(self.bytes, 0)
    }

    /// The static row of its partition?
    #[inline]
    pub fn is_static(&self) -> bool {
        self.flags() & STATIC != 0
    }

    /// The values of the clustering columns; empty for the static row.
    #[inline]
    pub fn clustering(&self) -> ClusteringRef<'a> {
        if self.is_static() {
            return ClusteringRef::EMPTY;
        }
        ClusteringRef::from_packed(slice(self.bytes, 5, u32_at(self.bytes, 1) as usize))
    }

    #[inline]
    fn after_clustering(&self) -> usize {
        if self.is_static() { 1 } else { (u32_at(self.bytes, 1) as usize).saturating_add(5) }
    }

    #[inline]
    fn after_liveness(&self) -> usize {
        let len = match self.flags() & (HAS_LIVENESS | EXPIRING) {
            0 => 0,
            HAS_LIVENESS => 8,
            _ => 16,
        };
        self.after_clustering() + len
    }

    /// Whether and how long it counts as inserted.
    // always: a read asks each row several times, and the checks of bounds made it too large for
    // the compiler's taste
    #[inline(always)]
    pub fn liveness(&self) -> Option<Liveness> {
        let flags = self.flags();
        if flags & HAS_LIVENESS == 0 {
            return None;
        }
        let head = tail(self.bytes, self.after_clustering());
        match flags & EXPIRING {
            0 => Some(Liveness::new(i64_at(head, 0))),
            _ => Some(expiring_at(head)),
        }
    }

    /// The deletion of the row, [`Deletion::LIVE`] if none. What it deletes is not in the row any
    /// more.
    #[inline]
    pub fn deletion(&self) -> Deletion {
        if self.flags() & HAS_DELETION == 0 {
            return Deletion::LIVE;
        }
        deletion_at(self.bytes, self.after_liveness())
    }

    /// Is the deletion one that a later liveness undoes (views of 3.x; deprecated since 4.0)?
    pub fn is_shadowable(&self) -> bool {
        self.flags() & SHADOWABLE != 0
    }

    #[inline]
    fn cell_bytes(&self) -> &'a [u8] {
        let deletion = if self.flags() & HAS_DELETION == 0 { 0 } else { DELETION_LEN };
        tail(self.bytes, self.after_liveness() + deletion)
    }

    /// The cells by column and path; the deletion of a complex column comes first among its cells.
    #[inline]
    pub fn cells(&self) -> Cells<'a> {
        Cells { rest: self.cell_bytes(), liveness: self.liveness() }
    }

    /// The timestamps of cells that are not the liveness's, if the row is not mortal.
    pub(crate) fn own_timestamps(&self) -> OwnTimestamps<'a> {
        OwnTimestamps(self.cell_bytes())
    }

    /// Tells the column of each cell, in order.
    pub(crate) fn each_column(&self, mut column: impl FnMut(u16)) {
        match self.is_mortal() {
            true => self.cells().for_each(|cell| column(cell.column)),
            false => PlainColumns(self.cell_bytes()).for_each(column),
        }
    }

    /// The cell of a simple column.
    pub fn cell(&self, column: u16) -> Option<CellRef<'a>> {
        self.cells()
            .take_while(|cell| cell.column <= column)
            .find(|cell| cell.column == column && !cell.is_complex_deletion())
    }

    /// Neither liveness, nor deletion, nor cells?
    pub fn is_empty(&self) -> bool {
        self.flags() & (HAS_LIVENESS | HAS_DELETION) == 0 && self.cell_bytes().is_empty()
    }

    /// Is there data at `now` (seconds): a live liveness or a live cell (`Row.hasLiveData`)? Where
    /// the liveness alone counts (strict, for views), the cells are not asked.
    pub fn has_live_data(&self, now: i64, strict: bool) -> bool {
        self.liveness().is_some_and(|liveness| liveness.is_live(now))
            || (!strict && self.cells().any(|cell| cell.is_live(now)))
    }

    /// Is anything deleted or expired at `now` (`Row.hasDeletion`)?
    pub fn has_deletion(&self, now: i64) -> bool {
        self.flags() & HAS_DELETION != 0
            || self.liveness().is_some_and(|liveness| !liveness.is_live(now))
            || (self.is_mortal() && self.cells().any(|cell| !cell.is_live(now)))
    }

    /// Is any cell a tombstone, expiring, or the deletion of a complex column?
    #[inline]
    pub fn is_mortal(&self) -> bool {
        self.flags() & MORTAL != 0
    }

    /// Is nothing in it deleted, nor will expire?
    pub(crate) fn is_plain(&self) -> bool {
        self.flags() & (EXPIRING | HAS_DELETION | SHADOWABLE | MORTAL | HAS_COMPLEX_DELETION) == 0
    }

    /// Is any complex column deleted as a whole?
    pub(crate) fn has_complex_deletion(&self) -> bool {
        self.flags() & HAS_COMPLEX_DELETION != 0
    }
}

/// The liveness of a row that expires. Few rows do: out of line, so that the others are read fast.
#[inline(never)]
fn expiring_at(head: &[u8]) -> Liveness {
    let (timestamp, ttl) = (i64_at(head, 0), i32_at(head, 8));
    Liveness { timestamp, ttl, expires_at: unpack_seconds(u32_at(head, 12)) }
}

/// The flags that a cell of some kind sets in the first byte of its row.
#[inline]
pub(crate) fn cell_flags(kind: CellKind) -> u8 {
    match kind {
        CellKind::Live => 0,
        CellKind::ComplexDeletion => MORTAL | HAS_COMPLEX_DELETION,
        CellKind::Expiring | CellKind::Tombstone => MORTAL,
    }
}

impl fmt::Debug for RowRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = f.debug_struct(if self.is_static() { "StaticRow" } else { "Row" });
        row.field("clustering", &self.clustering()).field("liveness", &self.liveness());
        row.field("deletion", &Some(self.deletion()).filter(|deletion| !deletion.is_live()));
        row.field("cells", &self.cells().collect::<Vec<_>>()).finish()
    }
}

/// What of a row comes before its cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) liveness: Option<Liveness>,
    pub(crate) deletion: Deletion,
    pub(crate) shadowable: bool,
}

impl Head {
    pub(crate) const EMPTY: Self =
        Self { liveness: None, deletion: Deletion::LIVE, shadowable: false };

    /// Those of a row.
    pub(crate) fn of(row: RowRef<'_>) -> Self {
        let (liveness, deletion) = (row.liveness(), row.deletion());
        Self { liveness, deletion, shadowable: row.is_shadowable() }
    }

    /// Drops a shadowable deletion that a later liveness undoes.
    pub(crate) fn drop_shadowed(&mut self) {
        let deleted_at = self.deletion.marked_for_delete_at;
        if self.shadowable && self.liveness.is_some_and(|l| l.timestamp > deleted_at) {
            self.deletion = Deletion::LIVE;
            self.shadowable = false;
        }
    }

    /// Appends liveness and deletion, and sets their flags in the byte at `flags_at`.
    pub(crate) fn pack(&self, flags_at: usize, out: &mut Vec<u8>) {
        let mut flags = 0;
        if let Some(liveness) = &self.liveness {
            flags |= HAS_LIVENESS;
            out.extend_from_slice(&liveness.timestamp.to_le_bytes());
            if liveness.is_expiring() {
                flags |= EXPIRING;
                out.extend_from_slice(&liveness.ttl.to_le_bytes());
                out.extend_from_slice(&pack_seconds(liveness.expires_at).to_le_bytes());
            }
        }
        if !self.deletion.is_live() {
            flags |= HAS_DELETION;
            if self.shadowable {
                flags |= SHADOWABLE;
            }
            put_deletion(out, self.deletion);
        }
        *out.get_mut(flags_at).expect("the flags of a row are written before its head") |= flags;
    }
}
