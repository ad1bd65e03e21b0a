//! From packed rows to the cells of a result: `[i32 length][bytes]` a column, length -1 for null.

use rows::cell::Cells;
use rows::{CellKind, CellRef, ClusteringRef, RowRef};
use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::context::Bind;
use crate::error::CqlError;
use crate::select::expr::{Env, Expr, Place, key_component, put_complex};
use crate::select::paging::Read;

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

/// Is there a row, as far as clients are concerned: was it inserted, or has it a live cell? In a view
/// (`strict`) the insertion alone counts. Cells of columns that are not selected count too.
pub fn row_is_live(row: RowRef<'_>, now_seconds: i64, strict: bool) -> bool {
    row.has_live_data(now_seconds, strict)
}

const NULL: [u8; 4] = (-1_i32).to_be_bytes();

fn put(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            // Values are bounded by mutations and frames far below 2 GiB.
            let length = i32::try_from(value.len()).unwrap_or(i32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value);
        }
        None => out.extend_from_slice(&NULL),
    }
}

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

    /// The next cell, if it is of this column.
    fn next_of(&mut self, column: u16) -> Option<CellRef<'a>> {
        let cell = match self.ahead.take() {
            Some(cell) => cell,
            None => self.cells.as_mut()?.next()?,
        };
        if cell.column == column {
            return Some(cell);
        }
        self.ahead = Some(cell);
        None
    }

    /// Goes to the first cell of a column.
    fn seek(&mut self, column: u16) {
        if self.at.is_some_and(|at| at >= column) {
            self.cells = self.row.map(|row| row.cells());
            self.ahead = None;
        }
        self.at = Some(column);
        loop {
            let cell = match self.ahead.take() {
                Some(cell) => cell,
                None => match self.cells.as_mut().and_then(Iterator::next) {
                    Some(cell) => cell,
                    None => return,
                },
            };
            if cell.column >= column {
                self.ahead = Some(cell);
                return;
            }
        }
    }

    fn put_column(&mut self, column: &Column, out: &mut Vec<u8>) {
        self.seek(column.index);
        let now = self.now;
        if !column.is_complex() {
            let cell = self.next_of(column.index).filter(|cell| cell.is_live(now));
            match cell {
                Some(cell) if column.ty == CqlType::Counter => {
                    put(out, Some(&rows::counter::total(cell.value).to_be_bytes()));
                }
                cell => put(out, cell.map(|cell| cell.value)),
            }
            return;
        }
        let start = out.len();
        out.extend_from_slice(&NULL);
        let cells = std::iter::from_fn(|| self.next_of(column.index));
        let live = cells.filter(|cell| cell.kind != CellKind::ComplexDeletion && cell.is_live(now));
        if put_complex(&column.ty, live, out) {
            let length = i32::try_from(out.len() - start - 4).unwrap_or(i32::MAX);
            if let Some(slot) = out.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<4>()) {
                *slot = length.to_be_bytes();
            }
        }
    }
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
    let mut statics = Walk::new(row.statics, row.now_seconds);
    let mut regulars = Walk::new(row.row, row.now_seconds);
    let mut clustering =
        ClusteringWalk { row: row.clustering, rest: row.clustering.iter(), next: 0 };
    for expr in outputs {
        let Expr::Column(Place { kind, index }) = expr else {
            let env = Env { table, row: Some(row), terms: &read.terms, bind, counts: &[] };
            let value = env.value(expr, &mut 0)?;
            put(out, value.as_deref());
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

/// An aggregation over all rows of a read: the counts, and the other expressions of the first row.
#[derive(Clone, Debug, Default)]
pub struct Aggregation {
    counts: Vec<i64>,
    /// The cells of the first row, per output; counts are filled in at the end.
    first: Option<Vec<Vec<u8>>>,
}

/// The counts in expressions, outermost only: none is inside of another.
fn for_each_count<'e>(expr: &'e Expr, visit: &mut impl FnMut(Option<&'e Expr>)) {
    match expr {
        Expr::Count(inner) => visit(inner.as_deref()),
        Expr::Part(inner, _) => for_each_count(inner, visit),
        Expr::Call(_, items) | Expr::Tuple(items) | Expr::Elements { exprs: items, .. } => {
            items.iter().for_each(|item| for_each_count(item, visit));
        }
        Expr::Column(_) | Expr::Term(_) | Expr::Meta(..) => {}
    }
}

fn has_count(expr: &Expr) -> bool {
    let mut found = false;
    for_each_count(expr, &mut |_| found = true);
    found
}

impl Aggregation {
    /// Takes in what another shard aggregated, of rows that come after these.
    pub fn merge(&mut self, other: Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.first = self.first.take().or(other.first);
    }

    /// Takes a row in.
    pub(super) fn add(
        &mut self,
        table: &Table,
        outputs: &[Expr],
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
    ) -> Result<(), CqlError> {
        let env = Env { table, row: Some(row), terms: &read.terms, bind, counts: &[] };
        let mut counted = Vec::new();
        for expr in outputs {
            for_each_count(expr, &mut |inner| counted.push(inner));
        }
        self.counts.resize(counted.len(), 0);
        for (count, inner) in self.counts.iter_mut().zip(counted) {
            *count += i64::from(env.counts(inner)?);
        }
        if self.first.is_none() {
            let mut first = Vec::with_capacity(outputs.len());
            for expr in outputs {
                let mut cell = Vec::new();
                if !has_count(expr) {
                    project(table, std::slice::from_ref(expr), read, row, bind, &mut cell)?;
                }
                first.push(cell);
            }
            self.first = Some(first);
        }
        Ok(())
    }

    /// Appends the one row of the result.
    pub(super) fn finish(
        &self,
        table: &Table,
        outputs: &[Expr],
        read: &Read,
        bind: &Bind<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        let env = Env { table, row: None, terms: &read.terms, bind, counts: &self.counts };
        let mut count = 0;
        for (index, expr) in outputs.iter().enumerate() {
            match self.first.as_ref().and_then(|first| first.get(index)) {
                Some(cell) if !has_count(expr) => out.extend_from_slice(cell),
                _ => put(out, env.value(expr, &mut count)?.as_deref()),
            }
        }
        Ok(())
    }
}
