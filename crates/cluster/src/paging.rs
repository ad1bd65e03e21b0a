//! A client's paging state, and where in a table it stands.

use cql::select::{Position, Read, Target};
use protocol::paging_state::{MarkShape, MarkedRow, RowMark, write_cell_name, write_clustering};
use protocol::{ErrorResponse, PagingState, Version};
use rows::Clustering;
use schema::Table;
use storage::PartitionKey;
use types::ValueError;

use crate::answer::invalid;

/// The last row of a page.
pub(crate) struct Last {
    pub key: PartitionKey,
    pub place: usize,
    pub mark: Option<Clustering>,
    /// Rows that its partition may still give. None after its only row, or its static row alone.
    pub left: u32,
}

/// A client's paging state as a position in a table.
pub(crate) fn position<'a>(
    state: &PagingState<'a>,
    table: &Table,
) -> Result<Position<'a>, ErrorResponse> {
    let shape = shape(table);
    let refused = |_| invalid("Invalid value for the paging state");
    let row = state.row_mark.map(|mark| mark.row(shape)).transpose().map_err(refused)?;
    let row = match row {
        Some(MarkedRow::Row(values)) => {
            let given = values.iter().zip(&table.clustering);
            for (value, column) in given.filter_map(|(value, column)| Some(((*value)?, column))) {
                match column.ty.validate(value) {
                    // what cannot be bound was written all the same: in a literal
                    Ok(()) | Err(ValueError::Unbindable) => {}
                    Err(_) => return Err(invalid("Invalid value for the paging state")),
                }
            }
            Some(Clustering::new(values))
        }
        Some(MarkedRow::Static) | None => None,
    };
    let count = |n: i32| u32::try_from(n).unwrap_or(0);
    Ok(Position {
        key: state.partition_key,
        row,
        remaining: count(state.remaining),
        remaining_in_partition: count(state.remaining_in_partition),
    })
}

/// Where the next page begins; `None` if there is none. `before` is the row that the page before
/// ended with.
pub(crate) fn paging_state(
    read: &Read,
    table: &Table,
    last: &Last,
    rows: u32,
    several: bool,
    before: Option<&Clustering>,
    version: Version,
) -> Option<Vec<u8>> {
    let remaining = read.limit.saturating_sub(rows);
    if remaining == 0 {
        return None;
    }
    let (key, mark, left) = match &read.target {
        Target::Keys(keys) if last.left == 0 => {
            (Some(&*keys.get(last.place + 1)?.bytes), None, read.per_partition_limit)
        }
        Target::Keys(_) => (several.then_some(&*last.key.bytes), last.mark.as_ref(), last.left),
        // a page that ends with a static row keeps the mark that it began with, and nobody goes on
        // from there
        Target::Range { .. } => (Some(&*last.key.bytes), last.mark.as_ref().or(before), last.left),
    };
    let mut bytes = Vec::new();
    let mut row = Vec::new();
    if let Some(mark) = mark {
        let values: Vec<Option<&[u8]>> = mark.as_ref().iter().collect();
        match version {
            Version::V3 => {
                write_cell_name(&MarkedRow::Row(values), shape(table), &[], None, &mut row);
            }
            _ => write_clustering(&values, &mut row),
        }
    }
    let row_mark = mark.map(|_| match version {
        Version::V3 => RowMark::CellName(&row),
        _ => RowMark::Clustering(&row),
    });
    let state = PagingState {
        partition_key: key,
        row_mark,
        remaining: remaining as i32,
        remaining_in_partition: left as i32,
    };
    state.write(version, &mut bytes);
    Some(bytes)
}

fn shape(table: &Table) -> MarkShape {
    MarkShape { clustering: table.clustering.len(), compact: table.flags.is_compact() }
}
