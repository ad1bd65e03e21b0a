//! What an index would take in of a write. Values that are too long for one are refused
//! (`CassandraIndex.validate`), though none is kept here: a Cassandra that is started on this
//! directory makes it.

use rows::{CellRef, PartitionUpdate, RowRef};
use schema::{Column, ColumnKind, Index, IndexPart, Table};
use types::CqlType;

use crate::error::CqlError;
use crate::select::indexed::{MAX_SIZE, entry_size};

/// Checks what is written to a partition against the indexes of the table.
pub(super) fn check(table: &Table, update: &PartitionUpdate) -> Result<(), CqlError> {
    for (index, column) in table.legacy_indexes() {
        match column.kind {
            // a whole key is shorter
            ColumnKind::PartitionKey => {}
            ColumnKind::Clustering | ColumnKind::Regular => {
                update.rows.iter().try_for_each(|row| check_row(table, index, column, row))?;
            }
            ColumnKind::Static => {
                update.static_row().map_or(Ok(()), |row| check_row(table, index, column, row))?;
            }
        }
    }
    Ok(())
}

fn check_row(
    table: &Table,
    index: &Index,
    column: &Column,
    row: RowRef<'_>,
) -> Result<(), CqlError> {
    let check = |size: usize| match size < MAX_SIZE {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Cannot index value of size {size} for index {} on {}({}) (maximum allowed size={MAX_SIZE})",
            index.name,
            table.qualified_name(),
            column.name
        ))),
    };
    if column.kind == ColumnKind::Clustering {
        let value = row.clustering().get(usize::from(column.index)).flatten();
        return check(value.map_or(0, <[u8]>::len));
    }
    let mut cells = row.cells().filter(|cell| cell.column == column.index);
    cells.try_for_each(|cell| check(indexed_size(index, column, &cell)))
}

fn indexed_size(index: &Index, column: &Column, cell: &CellRef<'_>) -> usize {
    let path = cell.path.unwrap_or_default();
    match (&column.ty, index.part()) {
        (CqlType::Set { frozen: false, .. }, _)
        | (CqlType::Map { frozen: false, .. }, IndexPart::Keys) => path.len(),
        (CqlType::Map { frozen: false, .. }, IndexPart::Entries) => entry_size(path, cell.value),
        _ => cell.value.len(),
    }
}
