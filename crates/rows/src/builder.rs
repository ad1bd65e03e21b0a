//! Builds packed rows in buffers that are used again.

use crate::cell::{CellRef, Cells, measure_plain};
use crate::clustering::ClusteringRef;
use crate::layout::Layout;
use crate::packed::{put_bytes, slice, tail};
use crate::reconcile::reconcile;
use crate::row::{Head, RowRef, STATIC, cell_flags};
use crate::time::{Deletion, Liveness, NO_TIMESTAMP};
use std::cmp::Ordering;

/// The buffer of a builder begins with so much room: most rows need no more.
const FIRST_ROW_BYTES: usize = 2 << 10;

/// Builds one row after another. For each: `start_*`, then `liveness` and `deletion`, then complex
/// deletions and cells in any order, then `finish`.
///
/// What the row's own deletion deletes is left out, and of several versions of a cell the one that
/// wins stays (`BTreeRow.Builder`).
#[derive(Clone, Debug)]
pub struct RowBuilder {
    buf: Vec<u8>,
    head: Head,
    /// Where the cells start in `buf`; zero as long as the head is not written.
    cells_at: usize,
    last_column: Option<u16>,
    /// Timestamp of the complex deletion that came last, if no cell came after it.
    complex: Option<i64>,
    unsorted: bool,
    /// What the cells add to the flags of the row.
    cell_flags: u8,
    /// Where the sorted cells are put together; kept for its capacity.
    scratch: Vec<u8>,
}

impl Default for RowBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl RowBuilder {
    /// A builder with empty buffers.
    pub const fn new() -> Self {
        Self {
            buf: Vec::new(),
            head: Head::EMPTY,
            cells_at: 0,
            last_column: None,
            complex: None,
            unsorted: false,
            cell_flags: 0,
            scratch: Vec::new(),
        }
    }

    /// Starts a row, dropping an unfinished one.
    pub fn start_row(&mut self, clustering: ClusteringRef<'_>) {
        self.start(0);
        put_bytes(&mut self.buf, clustering.as_packed());
    }

    /// Starts a static row.
    pub fn start_static(&mut self) {
        self.start(STATIC);
    }

    /// Starts a row with the clustering of another, or a static one if that is static.
    pub fn start_like(&mut self, row: RowRef<'_>) {
        if row.is_static() { self.start_static() } else { self.start_row(row.clustering()) }
    }

    fn start(&mut self, flags: u8) {
        if self.buf.capacity() == 0 {
            self.buf.reserve(FIRST_ROW_BYTES);
        }
        self.buf.clear();
        self.buf.push(flags);
        self.head = Head::EMPTY;
        self.cells_at = 0;
        self.last_column = None;
        self.complex = None;
        self.unsorted = false;
        self.cell_flags = 0;
    }

    /// Sets the liveness. Must come before the cells, which refer to it: asserted.
    pub fn liveness(&mut self, liveness: Liveness) {
        assert!(self.cells_at == 0, "the liveness of a row comes before its cells");
        self.head.liveness = Some(liveness).filter(|liveness| liveness.timestamp != NO_TIMESTAMP);
    }

    /// Sets the deletion of the row. Must come before the cells, which it may delete: asserted.
    pub fn deletion(&mut self, deletion: Deletion) {
        assert!(self.cells_at == 0, "the deletion of a row comes before its cells");
        self.head.deletion = deletion;
        self.head.shadowable = false;
    }

    /// Sets a deletion that a later liveness undoes; only ever read, from views of 3.x.
    pub fn shadowable_deletion(&mut self, deletion: Deletion) {
        self.deletion(deletion);
        self.head.shadowable = true;
    }

    /// Sets liveness and deletion at once.
    pub(crate) fn set_head(&mut self, head: Head) {
        assert!(self.cells_at == 0, "the head of a row comes before its cells");
        self.head = head;
    }

    /// Deletes what a complex column held before. Of several for one column the newest counts, and
    /// cells older than it are left out; those with its very timestamp stay, as in Cassandra.
    pub fn complex_deletion(&mut self, column: u16, deletion: Deletion) {
        if deletion.is_live() {
            return;
        }
        self.unsorted |= self.last_column == Some(column);
        self.put(&CellRef::complex_deletion(column, deletion));
        self.complex = Some(deletion.marked_for_delete_at);
    }

    /// Adds a cell.
    #[inline]
    pub fn cell(&mut self, cell: CellRef<'_>) {
        if cell.is_complex_deletion() {
            return self.complex_deletion(cell.column, cell.as_deletion());
        }
        if self.is_deleted(cell.timestamp) {
            return;
        }
        if self.last_column == Some(cell.column) {
            match self.complex {
                Some(deleted) if !self.unsorted && cell.timestamp < deleted => return,
                Some(_) => {}
                // Whether the paths are in order only the layout can tell.
                None => self.unsorted = true,
            }
        }
        self.complex = None;
        self.put(&cell);
    }

    /// Adds a cell, or the deletion of a complex column, that is known to come after all before it.
    #[inline]
    pub(crate) fn cell_in_order(&mut self, cell: &CellRef<'_>) {
        if !cell.is_complex_deletion() && self.is_deleted(cell.timestamp) {
            return;
        }
        self.put(cell);
    }

    /// Makes `finish` sort, since a cell that is about to come is out of order.
    pub(crate) fn expect_disorder(&mut self) {
        self.unsorted = true;
    }

    fn is_deleted(&self, timestamp: i64) -> bool {
        self.head.deletion.deletes(timestamp) && !self.head.deletion.is_live()
    }

    #[inline]
    fn put(&mut self, cell: &CellRef<'_>) {
        if self.cells_at == 0 {
            self.put_head();
        }
        self.unsorted |= self.last_column.is_some_and(|last| last > cell.column);
        self.last_column = Some(cell.column);
        self.cell_flags |= cell_flags(cell.kind);
        cell.pack(self.head.liveness.as_ref(), &mut self.buf);
    }

    fn put_head(&mut self) {
        if self.head.liveness.is_some_and(|liveness| self.is_deleted(liveness.timestamp)) {
            self.head.liveness = None;
        }
        self.head.drop_shadowed();
        self.head.pack(0, &mut self.buf);
        self.cells_at = self.buf.len();
    }

    /// Ends the row: its packed bytes, good until the next `start_*`. The row may be empty
    /// ([`RowRef::is_empty`]).
    pub fn finish(&mut self, layout: &Layout) -> &[u8] {
        if self.buf.is_empty() {
            self.start_row(ClusteringRef::EMPTY);
        }
        if self.cells_at == 0 {
            self.put_head();
        }
        if std::mem::take(&mut self.unsorted) {
            self.sort(layout);
        }
        let flags = self.buf.first_mut().expect("a row that was started has its flags");
        *flags |= self.cell_flags;
        &self.buf
    }

    /// [`Self::finish`], as a view.
    pub fn finish_row(&mut self, layout: &Layout) -> RowRef<'_> {
        RowRef::from_packed(self.finish(layout))
    }

    /// Makes a row of another one and an update of some of its simple columns, where nothing in
    /// either is deleted or expires: what the update does not name is copied as it lies there. The
    /// same as the merge makes of them; false if it is another case. What was begun before is
    /// dropped.
    pub(crate) fn splice(&mut self, old: RowRef<'_>, update: RowRef<'_>) -> bool {
        if !old.is_plain() || !update.is_plain() || update.liveness().is_some() {
            return false;
        }
        let (packed, Cells { rest, liveness }) = (old.as_packed(), old.cells());
        self.buf.clear();
        // the bytes up to `copied` are in the buffer, those up to `at` are to be
        let (mut copied, mut at) = (0, packed.len() - rest.len());
        for cell in update.cells() {
            if cell.path.is_some() || cell.timestamp == NO_TIMESTAMP {
                return false;
            }
            let mut next = measure_plain(tail(packed, at));
            while let Some((_, length)) = next.filter(|(column, _)| *column < cell.column) {
                at += length;
                next = measure_plain(tail(packed, at));
            }
            self.buf.extend_from_slice(slice(packed, copied, at - copied));
            copied = at;
            let mut winner = cell;
            if let Some((_, length)) = next.filter(|(column, _)| *column == cell.column) {
                let mut before = Cells { rest: tail(packed, at), liveness };
                let Some(before) = before.next().filter(|before| before.path.is_none()) else {
                    return false;
                };
                winner = reconcile(before, cell);
                at += length;
                copied = at;
            }
            winner.pack(liveness.as_ref(), &mut self.buf);
        }
        self.buf.extend_from_slice(tail(packed, copied));
        true
    }

    /// The row that was finished last, until the next `start_*`.
    pub fn finished(&self) -> RowRef<'_> {
        RowRef::from_packed(&self.buf)
    }

    /// The packed bytes of the row that was finished last, in their buffer; the builder is as
    /// before its first row.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buf)
    }

    fn sort(&mut self, layout: &Layout) {
        let is_static = RowRef::from_packed(&self.buf).is_static();
        let liveness = self.head.liveness;
        let packed = tail(&self.buf, self.cells_at);
        let mut cells: Vec<CellRef<'_>> = Cells { rest: packed, liveness }.collect();
        // Stable, so that of equal versions the first stays; a deletion before its column's cells.
        cells.sort_by(|a, b| {
            let key = |c: &CellRef<'_>| (c.column, !c.is_complex_deletion());
            key(a).cmp(&key(b)).then_with(|| layout.compare_paths(is_static, a, b))
        });
        self.scratch.clear();
        self.cell_flags = 0;
        let mut cells = cells.into_iter().peekable();
        let mut deletion: Option<CellRef<'_>> = None;
        while let Some(mut cell) = cells.next() {
            let next_of_column = cells.peek().filter(|next| next.column == cell.column);
            if cell.is_complex_deletion() {
                let newer =
                    deletion.filter(|d| d.column == cell.column && d.timestamp >= cell.timestamp);
                let newest = newer.unwrap_or(cell);
                deletion = Some(newest);
                if !next_of_column.is_some_and(|next| next.is_complex_deletion()) {
                    self.cell_flags |= cell_flags(cell.kind);
                    newest.pack(liveness.as_ref(), &mut self.scratch);
                }
                continue;
            }
            while let Some(version) = cells.next_if(|next| {
                next.column == cell.column
                    && layout.compare_paths(is_static, next, &cell) == Ordering::Equal
            }) {
                cell = reconcile(cell, version);
            }
            let shadowed =
                deletion.is_some_and(|d| d.column == cell.column && cell.timestamp < d.timestamp);
            if !shadowed {
                self.cell_flags |= cell_flags(cell.kind);
                cell.pack(liveness.as_ref(), &mut self.scratch);
            }
        }
        let unsorted = self.buf.len() - self.cells_at;
        assert!(self.scratch.len() <= unsorted, "sorting the cells of a row adds none");
        self.buf.truncate(self.cells_at);
        self.buf.extend_from_slice(&self.scratch);
    }
}
