//! Encodes packed rows and markers.

use super::columns::{HeaderColumn, PlaceSet};
use super::error::EncodeError;
use super::flags::*;
use super::header::Header;
use super::prefix::{write_bound, write_clustering};
use crate::cell::{CellKind, CellRef};
use crate::layout::Layout;
use crate::marker::{MarkerRef, Unfiltered};
use crate::row::RowRef;
use crate::time::{Deletion, Liveness};
use types::WriteBytes;
use types::vint::uvint_size;

/// Encodes unfiltereds one after another; keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    present: PlaceSet,
    /// What of a row comes before its cells.
    body: Vec<u8>,
    cells: Vec<u8>,
}

impl Encoder {
    /// An encoder with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a row or marker. `previous_size` is the distance from the start of the unfiltered
    /// before, or of the partition for the first, and zero for a static row; it is written to
    /// SSTables only.
    pub fn unfiltered(
        &mut self,
        layout: &Layout,
        header: &Header,
        unfiltered: Unfiltered<'_>,
        previous_size: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        match unfiltered {
            Unfiltered::Row(row) => self.row(layout, header, row, previous_size, out),
            Unfiltered::Marker(marker) => self.marker(layout, header, marker, previous_size, out),
        }
    }

    /// Appends the end of a partition.
    pub fn end(out: &mut Vec<u8>) {
        out.put_u8(END_OF_PARTITION);
    }

    /// Appends a row, static or not.
    pub fn row(
        &mut self,
        layout: &Layout,
        header: &Header,
        row: RowRef<'_>,
        previous_size: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.row_seen(layout, header, row, previous_size, out, |_| ())
    }

    /// Appends a row, and shows its cells and complex deletions on the way.
    pub fn row_seen(
        &mut self,
        layout: &Layout,
        header: &Header,
        row: RowRef<'_>,
        previous_size: u64,
        out: &mut Vec<u8>,
        seen: impl FnMut(&CellRef<'_>),
    ) -> Result<(), EncodeError> {
        let is_static = row.is_static();
        let columns = header.columns(is_static);
        self.present.clear(columns.len());
        self.cells.clear();
        self.cells(header, row, seen)?;
        let is_among = self.present.len() <= columns.len();
        assert!(is_among, "a row has cells of no more columns than its header");
        let mut flags = 0;
        if row.has_complex_deletion() {
            flags |= HAS_COMPLEX_DELETION;
        }
        if self.present.len() == columns.len() {
            flags |= HAS_ALL_COLUMNS;
        }
        if let Some(liveness) = row.liveness() {
            flags |= HAS_TIMESTAMP | if liveness.is_expiring() { HAS_TTL } else { 0 };
        }
        if !row.deletion().is_live() {
            flags |= HAS_DELETION;
        }
        let extended = if is_static { IS_STATIC } else { 0 }
            | if row.is_shadowable() { HAS_SHADOWABLE_DELETION } else { 0 };
        if extended == 0 {
            out.put_u8(flags);
        } else {
            out.put(&[flags | EXTENSION, extended]);
        }
        if !is_static {
            write_clustering(layout, row.clustering(), out)?;
        }
        self.body.clear();
        let stats = &header.stats;
        if let Some(liveness) = row.liveness() {
            stats.put_timestamp(liveness.timestamp, &mut self.body);
            if liveness.is_expiring() {
                stats.put_ttl(liveness.ttl, &mut self.body);
                stats.put_seconds(liveness.expires_at, &mut self.body);
            }
        }
        if flags & HAS_DELETION != 0 {
            stats.put_deletion(row.deletion(), &mut self.body);
        }
        if flags & HAS_ALL_COLUMNS == 0 {
            self.present.write_subset(columns.len(), &mut self.body);
        }
        if header.format.has_sizes() {
            put_size(self.body.len() + self.cells.len(), previous_size, out);
        }
        out.put(&self.body);
        out.put(&self.cells);
        Ok(())
    }

    /// Writes the cells into their buffer, and notes the columns that have any.
    fn cells(
        &mut self,
        header: &Header,
        row: RowRef<'_>,
        mut seen: impl FnMut(&CellRef<'_>),
    ) -> Result<(), EncodeError> {
        let liveness = row.liveness();
        let columns = header.columns(row.is_static());
        let with_deletion = row.has_complex_deletion();
        let mut cells = row.cells();
        let mut next = cells.next();
        while let Some(cell) = &next {
            seen(cell);
            let id = cell.column;
            let (place, column) = columns.place(id).ok_or(EncodeError::Column(id))?;
            self.present.insert(place);
            if !column.complex {
                put_cell(header, column, cell, &liveness, &mut self.cells)?;
                next = cells.next();
                continue;
            }
            let mut deletion = Deletion::LIVE;
            if cell.is_complex_deletion() {
                deletion = cell.as_deletion();
                next = cells.next();
            }
            if with_deletion {
                header.stats.put_deletion(deletion, &mut self.cells);
            }
            let (count_at, mut count) = (self.cells.len(), 0);
            self.cells.put_u8(0);
            while let Some(cell) = next.as_ref().filter(|cell| cell.column == id) {
                if count > 0 || !deletion.is_live() {
                    seen(cell);
                }
                put_cell(header, column, cell, &liveness, &mut self.cells)?;
                count += 1;
                next = cells.next();
            }
            set_count(count, count_at, &mut self.cells);
        }
        Ok(())
    }

    /// Appends a marker.
    pub fn marker(
        &mut self,
        layout: &Layout,
        header: &Header,
        marker: MarkerRef<'_>,
        previous_size: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let kind = marker.bound.kind;
        assert!(kind.is_start() || kind.is_end(), "a marker stands at a bound: {kind:?}");
        out.put_u8(IS_MARKER);
        write_bound(layout, marker.bound, out)?;
        self.body.clear();
        if marker.bound.kind.is_end() {
            header.stats.put_deletion(marker.end, &mut self.body);
        }
        if marker.bound.kind.is_start() {
            header.stats.put_deletion(marker.start, &mut self.body);
        }
        if header.format.has_sizes() {
            put_size(self.body.len(), previous_size, out);
        }
        out.put(&self.body);
        Ok(())
    }
}

/// The size that an SSTable says of a row or marker counts the vint of the previous size.
pub(super) fn put_size(body: usize, previous_size: u64, out: &mut Vec<u8>) {
    out.put_uvint((body + uvint_size(previous_size)) as u64);
    out.put_uvint(previous_size);
}

/// Writes a count where a byte was left for it; the few that take more move what follows.
fn set_count(count: u64, at: usize, out: &mut Vec<u8>) {
    match out.get_mut(at) {
        Some(byte) if count < 0x80 => *byte = count as u8,
        _ => {
            let mut bytes = Vec::new();
            bytes.put_uvint(count);
            out.splice(at..=at, bytes);
        }
    }
}

#[inline(always)]
fn put_cell(
    header: &Header,
    column: &HeaderColumn,
    cell: &CellRef<'_>,
    liveness: &Option<Liveness>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if cell.path.is_some() != column.complex {
        return Err(EncodeError::Path(cell.column));
    }
    let expiring = cell.is_expiring();
    let row_timestamp = liveness.is_some_and(|liveness| liveness.timestamp == cell.timestamp);
    let row_ttl = expiring
        && liveness.is_some_and(|liveness| {
            liveness.ttl == cell.ttl && liveness.expires_at == cell.local_deletion_time
        });
    let mut flags = match cell.kind {
        CellKind::Live => 0,
        CellKind::Expiring => CELL_EXPIRING,
        CellKind::Tombstone | CellKind::ComplexDeletion => CELL_DELETED,
    };
    for (holds, flag) in [
        (cell.value.is_empty(), CELL_EMPTY_VALUE),
        (row_timestamp, CELL_ROW_TIMESTAMP),
        (row_ttl, CELL_ROW_TTL),
    ] {
        if holds {
            flags |= flag;
        }
    }
    out.put_u8(flags);
    if !row_timestamp {
        header.stats.put_timestamp(cell.timestamp, out);
    }
    if cell.kind != CellKind::Live && !row_ttl {
        header.stats.put_seconds(cell.local_deletion_time, out);
        if expiring {
            header.stats.put_ttl(cell.ttl, out);
        }
    }
    if let Some(path) = cell.path {
        out.put_vint_bytes(path);
    }
    match column.fixed_len {
        _ if cell.value.is_empty() => {}
        None => out.put_vint_bytes(cell.value),
        Some(wanted) if wanted == cell.value.len() => out.put(cell.value),
        Some(wanted) => {
            let (column, found) = (cell.column, cell.value.len());
            return Err(EncodeError::Value { column, wanted, found });
        }
    }
    Ok(())
}
