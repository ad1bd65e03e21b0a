//! From packed rows to the cells of a result: `[i32 length][bytes]` a column, length -1 for null.

use std::sync::Arc;

use rows::cell::Cells;
use rows::{CellKind, CellRef, ClusteringRef, RowRef};
use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::context::Bind;
use crate::error::CqlError;
use crate::select::cell::{NULL, put};
use crate::select::expr::{Env, Expr};
use crate::select::paging::Read;
use crate::select::row::{Place, ResultRow, key_component, put_complex};

/// Bytes that a result begins with room for, at most.
const FIRST_ROW_BYTES_MAX: usize = 4 << 10;

/// Walks the cells of a row from column to column. Going back starts over, which for columns in the
/// table's order never happens.
struct Walk<'a> {
    row: Option<RowRef<'a>>,
    cells: Option<Cells<'a>>,
    /// A cell read too far.
    ahead: Option<CellRef<'a>>,
    /// The column asked for last.
    at: Option<u16>,
    now: i64,
}

impl<'a> Walk<'a> {
    fn new(row: Option<RowRef<'a>>, now: i64) -> Self {
        Self { row, cells: row.map(|row| row.cells()), ahead: None, at: None, now }
    }

    /// The next of the cells, if there is one more.
    #[inline]
    fn next(&mut self) -> Option<CellRef<'a>> {
        match self.ahead.take() {
            Some(cell) => Some(cell),
            None => self.cells.as_mut()?.next(),
        }
    }

    /// The next cell, if it is of this column.
    fn next_of(&mut self, column: u16) -> Option<CellRef<'a>> {
        let cell = self.next()?;
        if cell.column == column {
            return Some(cell);
        }
        self.ahead = Some(cell);
        None
    }

    /// Goes to a column: its first cell, if it has one.
    #[inline]
    fn first_of(&mut self, column: u16) -> Option<CellRef<'a>> {
        if self.at.is_some_and(|at| at >= column) {
            self.cells = self.row.map(|row| row.cells());
            self.ahead = None;
        }
        self.at = Some(column);
        loop {
            let cell = self.next()?;
            if cell.column == column {
                return Some(cell);
            }
            if cell.column > column {
                self.ahead = Some(cell);
                return None;
            }
        }
    }

    fn put_column(&mut self, column: &Column, out: &mut Vec<u8>) {
        let first = self.first_of(column.index);
        let now = self.now;
        if !column.is_complex() {
            let cell = first.filter(|cell| cell.is_live(now));
            match cell {
                Some(cell) if matches!(column.ty, CqlType::Counter) => {
                    put(out, Some(&rows::counter::total(cell.value).to_be_bytes()));
                }
                cell => put(out, cell.map(|cell| cell.value)),
            }
            return;
        }
        let start = out.len();
        out.extend_from_slice(&NULL);
        let rest = std::iter::from_fn(|| self.next_of(column.index));
        let cells = first.into_iter().chain(rest);
        let live = cells.filter(|cell| cell.kind != CellKind::ComplexDeletion && cell.is_live(now));
        if put_complex(&column.ty, live, out) {
            let length = i32::try_from(out.len() - start - 4).unwrap_or(i32::MAX);
            if let Some(slot) = out.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<4>()) {
                *slot = length.to_be_bytes();
            }
        }
    }
}

/// The names and types of what JSON is made of; a name stands in it as it is here.
pub(super) type JsonMembers = Arc<[(String, CqlType)]>;

/// The name of a member: escaped, and in quotes of its own if it is not all lower case.
pub(super) fn json_name(name: &str) -> String {
    let quoted = match name.chars().any(char::is_uppercase) {
        true => format!("\"{name}\""),
        false => name.to_owned(),
    };
    CqlType::Text.to_json(quoted.as_bytes()).unwrap_or_default()
}

/// Appends the one cell of SELECT JSON.
pub(super) fn project_json(
    env: &Env<'_>,
    outputs: &[Expr],
    members: &[(String, CqlType)],
    out: &mut Vec<u8>,
) -> Result<(), CqlError> {
    let mut text = String::from("{");
    for (index, (expr, (name, ty))) in outputs.iter().zip(members).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
        text.push_str(": ");
        match env.value(expr)? {
            None => text.push_str("null"),
            Some(value) => {
                let json = ty.to_json(&value);
                text.push_str(&json.ok_or_else(|| {
                    CqlError::invalid(format!("0x{} is no {ty}", types::hex::to_hex(&value)))
                })?);
            }
        }
    }
    text.push('}');
    put(out, Some(text.as_bytes()));
    Ok(())
}

/// Appends columns of a row as they are.
pub(crate) fn put_columns<'c>(
    table: &Table,
    columns: impl IntoIterator<Item = &'c Column>,
    row: &ResultRow<'_>,
    out: &mut Vec<u8>,
) {
    let mut statics = Walk::new(row.statics, row.now_seconds);
    let mut regulars = Walk::new(row.row, row.now_seconds);
    for column in columns {
        let at = usize::from(column.index);
        match column.kind {
            ColumnKind::PartitionKey => put(out, key_component(table, row.key, at)),
            ColumnKind::Clustering => put(out, row.clustering.get(at).flatten()),
            ColumnKind::Static => statics.put_column(column, out),
            ColumnKind::Regular => regulars.put_column(column, out),
        }
    }
}

/// About how many bytes a row of the result takes: as many as it has packed, if all of its columns
/// are selected.
fn about(table: &Table, outputs: &[Expr], row: &ResultRow<'_>) -> usize {
    let columns = table.regulars.len() + table.clustering.len() + table.partition_key.len();
    let packed = row.row.map_or(0, |row| row.as_packed().len());
    let part = packed.saturating_mul(outputs.len().min(columns)) / columns.max(1);
    part.saturating_add(row.key.len() + NULL.len() * outputs.len())
}

/// Appends one row of the result.
pub(super) fn project(
    table: &Table,
    outputs: &[Expr],
    read: &Read,
    row: &ResultRow<'_>,
    bind: &Bind<'_>,
    out: &mut Vec<u8>,
) -> Result<(), CqlError> {
    if out.capacity() == 0 {
        out.reserve(about(table, outputs, row).min(FIRST_ROW_BYTES_MAX));
    }
    let mut statics = Walk::new(row.statics, row.now_seconds);
    let mut regulars = Walk::new(row.row, row.now_seconds);
    let mut clustering =
        ClusteringWalk { row: row.clustering, rest: row.clustering.iter(), next: 0 };
    for expr in outputs {
        let Expr::Column(Place { kind, index }) = expr else {
            let env = Env { table, row: Some(row), terms: &read.terms, bind, aggregation: None };
            put(out, env.value(expr)?.as_deref());
            continue;
        };
        let at = usize::from(*index);
        match kind {
            ColumnKind::PartitionKey => put(out, key_component(table, row.key, at)),
            ColumnKind::Clustering => put(out, clustering.get(at)),
            ColumnKind::Static => match table.statics.get(at) {
                Some(column) => statics.put_column(column, out),
                None => put(out, None),
            },
            ColumnKind::Regular => match table.regulars.get(at) {
                Some(column) => regulars.put_column(column, out),
                None => put(out, None),
            },
        }
    }
    Ok(())
}

/// The components of a clustering, in order mostly.
struct ClusteringWalk<'a> {
    row: ClusteringRef<'a>,
    rest: rows::clustering::Components<'a>,
    next: usize,
}

impl<'a> ClusteringWalk<'a> {
    fn get(&mut self, at: usize) -> Option<&'a [u8]> {
        if at < self.next {
            self.rest = self.row.iter();
            self.next = 0;
        }
        let skipped = at - self.next;
        self.next = at + 1;
        self.rest.nth(skipped).flatten()
    }
}
