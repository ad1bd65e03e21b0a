//! A row as it was read, and the values of its columns.

use std::borrow::Cow;

use rows::{CellKind, CellRef, ClusteringRef, RowRef};
use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::select::cell::{put, put_bytes, put_i32};

/// A row as it was read: merged, for projection.
#[derive(Clone, Copy, Debug)]
pub struct ResultRow<'a> {
    /// The serialized partition key.
    pub key: &'a [u8],
    /// The clustering; empty for a partition that has static values and no rows.
    pub clustering: ClusteringRef<'a>,
    /// The static row of the partition.
    pub statics: Option<RowRef<'a>>,
    /// The row; none for a partition that has static values and no rows.
    pub row: Option<RowRef<'a>>,
    /// "Now" of the request, in seconds since the epoch: cells that expired by then are null.
    pub now_seconds: i64,
}

/// Is there a row, as far as clients are concerned: was it inserted, or has it a live cell? In a
/// view (`strict`) the insertion alone counts. Cells of columns that are not selected count too.
pub fn row_is_live(row: RowRef<'_>, now_seconds: i64, strict: bool) -> bool {
    row.has_live_data(now_seconds, strict)
}

/// Where a column lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub kind: ColumnKind,
    pub index: u16,
}

impl Place {
    pub(super) fn of(column: &Column) -> Self {
        Self { kind: column.kind, index: column.index }
    }

    pub(super) fn column<'t>(&self, table: &'t Table) -> Option<&'t Column> {
        table.columns_of(self.kind).get(usize::from(self.index))
    }
}

/// A value or null.
pub(super) type Computed<'v> = Option<Cow<'v, [u8]>>;

/// The cells among which those of a column are.
pub(super) fn cells_of<'v>(row: &'v ResultRow<'_>, place: Place) -> Option<RowRef<'v>> {
    if place.kind == ColumnKind::Static { row.statics } else { row.row }
}

/// The value of a column in a row.
pub(super) fn column_value<'v>(
    table: &Table,
    row: &'v ResultRow<'_>,
    place: Place,
) -> Computed<'v> {
    let index = usize::from(place.index);
    match place.kind {
        ColumnKind::PartitionKey => key_component(table, row.key, index).map(Cow::Borrowed),
        ColumnKind::Clustering => row.clustering.get(index).flatten().map(Cow::Borrowed),
        ColumnKind::Regular | ColumnKind::Static => {
            let column = place.column(table)?;
            let cells = cells_of(row, place)?;
            if column.is_complex() {
                let mut out = Vec::new();
                let live = live_cells(cells, place.index, row.now_seconds);
                return put_complex(&column.ty, live, &mut out).then_some(Cow::Owned(out));
            }
            let cell = cells.cell(place.index).filter(|c| c.is_live(row.now_seconds))?;
            Some(match column.ty {
                CqlType::Counter => {
                    Cow::Owned(rows::counter::total(cell.value).to_be_bytes().to_vec())
                }
                _ => Cow::Borrowed(cell.value),
            })
        }
    }
}

/// The live cells of a complex column.
pub(super) fn live_cells(
    row: RowRef<'_>,
    column: u16,
    now: i64,
) -> impl Iterator<Item = CellRef<'_>> {
    row.cells()
        .skip_while(move |cell| cell.column < column)
        .take_while(move |cell| cell.column == column)
        .filter(move |cell| cell.kind != CellKind::ComplexDeletion && cell.is_live(now))
}

/// Which field the cell of a user type holds.
pub(super) fn field_index(cell: &CellRef<'_>) -> Option<usize> {
    let path = <[u8; 2]>::try_from(cell.path?).ok()?;
    usize::try_from(i16::from_be_bytes(path)).ok()
}

/// A component of a partition key; for a key of one column the key itself.
pub(super) fn key_component<'k>(table: &Table, key: &'k [u8], index: usize) -> Option<&'k [u8]> {
    if table.partition_key.len() == 1 {
        return Some(key);
    }
    let mut rest = key;
    for at in 0.. {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (value, after) = after.split_at_checked(length)?;
        if at == index {
            return Some(value);
        }
        rest = after.get(1..)?;
    }
    None
}

/// Appends the value that live cells make together; nothing, and false, if there are none.
pub(super) fn put_complex<'c>(
    ty: &CqlType,
    cells: impl Iterator<Item = CellRef<'c>>,
    out: &mut Vec<u8>,
) -> bool {
    let start = out.len();
    if let CqlType::Udt { definition, .. } = ty {
        let mut next = 0;
        for cell in cells {
            let Some(index) = field_index(&cell) else { continue };
            // Fields come in order; one that the type has not is of a newer schema.
            if index < next || index >= definition.fields.len() {
                continue;
            }
            for _ in next..index {
                put(out, None);
            }
            put_bytes(out, cell.value);
            next = index + 1;
        }
        if next == 0 {
            return false;
        }
        for _ in next..definition.fields.len() {
            put(out, None);
        }
        return true;
    }
    put_i32(out, 0);
    let mut count = 0_usize;
    for cell in cells {
        count += 1;
        if !matches!(ty, CqlType::List { .. }) {
            put_bytes(out, cell.path.unwrap_or_default());
        }
        if !matches!(ty, CqlType::Set { .. }) {
            put_bytes(out, cell.value);
        }
    }
    if count == 0 {
        out.truncate(start);
        return false;
    }
    let bytes = i32::try_from(count).unwrap_or(i32::MAX).to_be_bytes();
    if let Some(slot) = out.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<4>()) {
        *slot = bytes;
    }
    true
}
