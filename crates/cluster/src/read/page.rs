//! Pages: rows of shards put together and cut, and where the next one begins.

use cql::select::{Position, Read, Target};
use protocol::paging_state::{MarkShape, MarkedRow, write_cell_name, write_clustering};
use protocol::{ErrorResponse, PagingState, Version};
use rows::{Clustering, ClusteringRef};
use schema::Table;
use storage::PartitionKey;

use crate::answer::invalid;
use crate::read::shard::{Block, ReadError};

/// The rest of a read after a page of it; nothing if the page was the last.
pub(super) fn next_page(
    mut read: Read,
    last: &Last,
    table: &Table,
) -> Result<Option<Read>, ReadError> {
    let limit = if last.place == 0 { read.first_limit } else { read.per_partition_limit };
    let left = match last.mark {
        Some(_) => limit.saturating_sub(last.in_partition),
        None => 0,
    };
    let (key, row) = match &read.target {
        Target::Keys(keys) if left == 0 => match keys.get(last.place + 1) {
            Some(next) => (next.bytes.clone(), None),
            None => return Ok(None),
        },
        _ => (last.key.bytes.clone(), last.mark.clone()),
    };
    read.first_rows = None;
    read.first_limit = read.per_partition_limit;
    let position = Position {
        key: Some(&key),
        remaining: read.limit,
        remaining_in_partition: if row.is_some() { left } else { u32::MAX },
        row,
    };
    Ok(Some(read.resume(&position, table)?))
}

/// All rows that the shards found, in the order of the result, cut to the page.
pub(super) struct Merged {
    pub cells: Vec<u8>,
    pub rows: u32,
    /// Where the last row's cells start.
    pub last_row: usize,
    pub last: Option<Last>,
    /// Did a limit of the page end it?
    pub full: bool,
}

/// The last row of a page.
pub(super) struct Last {
    pub key: PartitionKey,
    pub place: usize,
    pub mark: Option<Clustering>,
    /// Rows of its partition in this page.
    pub in_partition: u32,
}

/// Puts blocks, which are in order, together until the page is full.
pub(super) fn cut(blocks: Vec<(usize, Block)>, rows_max: u32, bytes_max: usize) -> Merged {
    let mut merged = Merged { cells: Vec::new(), rows: 0, last_row: 0, last: None, full: false };
    for (place, block) in blocks {
        let mut start = (0, 0);
        for (n, row) in block.rows.iter().enumerate() {
            if merged.rows >= rows_max || merged.cells.len() >= bytes_max {
                merged.full = true;
                return merged;
            }
            merged.last_row = merged.cells.len();
            merged.cells.extend_from_slice(&block.cells[start.0..row.cells]);
            merged.rows += 1;
            let mark = &block.marks[start.1..row.mark];
            start = (row.cells, row.mark);
            let key = block.key.clone();
            let at_end = merged.rows >= rows_max || merged.cells.len() >= bytes_max;
            // only the last row's mark is needed
            if at_end || n + 1 == block.rows.len() {
                let mark = row.has_mark.then(|| clustering_of(mark));
                let in_partition = n as u32 + 1;
                merged.last = key.map(|key| Last { key, place, mark, in_partition });
            }
        }
        if block.full && (merged.rows >= rows_max || merged.cells.len() >= bytes_max) {
            merged.full = true;
            return merged;
        }
    }
    merged.full = merged.rows >= rows_max || merged.cells.len() >= bytes_max;
    merged
}

pub(super) fn clustering_of(packed: &[u8]) -> Clustering {
    // a row's own packed clustering, so it can be looked at as one
    ClusteringRef::from_packed(packed).to_owned()
}

/// A client's paging state as a position in a table.
pub(super) fn position<'a>(
    state: &PagingState<'a>,
    table: &Table,
) -> Result<Position<'a>, ErrorResponse> {
    let shape = shape(table);
    let refused = |_| invalid("Invalid value for the paging state");
    let row = state.row_mark.map(|mark| mark.row(shape)).transpose().map_err(refused)?;
    let row = match row {
        Some(MarkedRow::Row(values)) => {
            for (value, column) in values.iter().zip(&table.clustering) {
                let value = value.unwrap_or_default();
                column
                    .ty
                    .validate(value)
                    .map_err(|_| invalid("Invalid value for the paging state"))?;
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

/// Where the next page begins; `None` if there is none.
pub(super) fn paging_state(
    read: &Read,
    table: &Table,
    last: &Last,
    rows: u32,
    several: bool,
    version: Version,
) -> Option<Vec<u8>> {
    let remaining = read.limit.saturating_sub(rows);
    if remaining == 0 {
        return None;
    }
    let limit = if last.place == 0 { read.first_limit } else { read.per_partition_limit };
    // A partition that gave its only row, or its static row alone, has no more.
    let in_partition = match last.mark {
        Some(_) => limit.saturating_sub(last.in_partition),
        None => 0,
    };
    let (key, mark) = match &read.target {
        Target::Keys(keys) if in_partition == 0 => (Some(&*keys.get(last.place + 1)?.bytes), None),
        Target::Keys(_) if !several => (None, last.mark.as_ref()),
        _ => (Some(&*last.key.bytes), last.mark.as_ref()),
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
        Version::V3 => protocol::paging_state::RowMark::CellName(&row),
        _ => protocol::paging_state::RowMark::Clustering(&row),
    });
    let state = PagingState {
        partition_key: key,
        row_mark,
        remaining: remaining as i32,
        remaining_in_partition: if mark.is_some() { in_partition as i32 } else { i32::MAX },
    };
    state.write(version, &mut bytes);
    Some(bytes)
}

fn shape(table: &Table) -> MarkShape {
    MarkShape { clustering: table.clustering.len(), compact: table.flags.is_compact() }
}
