//! What of a row a read fetches (`ColumnFilter`, `BTreeRow.filter`): cells of columns that are
//! fetched only so that it is known which rows live are sent without their values, or not at all
//! where the row itself is newer.

use std::cmp::Ordering;

use internode::payload::read::{ColumnFilter, Subselection};
use rows::{CellRef, Keep, NO_TIMESTAMP, RowBuilder, RowRef, select_cells};
use schema::{Column, Table};
use types::CqlType;

/// What is fetched of one column.
struct OfColumn<'f> {
    is_fetched: bool,
    is_queried: bool,
    /// Parts of it that were asked for; all of it if there are none.
    parts: Vec<&'f Subselection>,
}

/// What is fetched of each row.
pub(crate) struct Fetched<'f> {
    table: &'f Table,
    statics: Vec<OfColumn<'f>>,
    regulars: Vec<OfColumn<'f>>,
    filter: &'f ColumnFilter,
    /// Is all that there is fetched, and was it asked for?
    is_all: bool,
}

impl<'f> Fetched<'f> {
    pub fn new(table: &'f Table, filter: &'f ColumnFilter) -> Self {
        let of = |is_static: bool, columns: &'f [Column]| -> Vec<OfColumn<'f>> {
            let (fetched, queried) = (filter.fetched(), filter.queried());
            let (fetched, queried) = match is_static {
                true => (&fetched.statics, &queried.statics),
                false => (&fetched.regulars, &queried.regulars),
            };
            let one = |column: &Column| OfColumn {
                is_fetched: fetched.contains(column.index),
                is_queried: queried.contains(column.index),
                parts: parts(filter, column),
            };
            columns.iter().map(one).collect()
        };
        let (statics, regulars) = (of(true, &table.statics), of(false, &table.regulars));
        let whole = |column: &OfColumn<'_>| {
            column.is_fetched && column.is_queried && column.parts.is_empty()
        };
        let is_all = statics.iter().chain(&regulars).all(whole);
        Self { table, statics, regulars, filter, is_all }
    }

    /// Is anything static fetched?
    pub fn has_statics(&self) -> bool {
        !self.filter.fetched().statics.is_empty()
    }

    /// What is fetched of a row; `None` if nothing.
    pub fn row<'a>(&self, row: RowRef<'a>, out: &'a mut RowBuilder) -> Option<RowRef<'a>> {
        if self.is_all {
            return Some(row);
        }
        let written = row.liveness().map_or(NO_TIMESTAMP, |liveness| liveness.timestamp);
        let is_static = row.is_static();
        let keep = |cell: &CellRef<'_>| self.keep(cell, is_static, written);
        select_cells(&self.table.layout, row, keep, out)
    }

    fn keep(&self, cell: &CellRef<'_>, is_static: bool, written: i64) -> Keep {
        let columns = if is_static { &self.statics } else { &self.regulars };
        let Some(of) = columns.get(usize::from(cell.column)).filter(|of| of.is_fetched) else {
            return Keep::Nothing;
        };
        if cell.is_complex_deletion() {
            return Keep::Whole;
        }
        let is_selected = of.parts.is_empty() || self.is_selected(cell, is_static, &of.parts);
        if !is_selected && !self.filter.fetches_all(is_static) {
            return Keep::Nothing;
        }
        match of.is_queried && is_selected {
            true => Keep::Whole,
            false if cell.timestamp < written => Keep::Nothing,
            false => Keep::WithoutValue,
        }
    }

    /// Was a cell asked for with its value (`fetchedCellIsQueried`)? Others came without.
    pub fn has_value(&self, cell: &CellRef<'_>, is_static: bool) -> bool {
        let columns = if is_static { &self.statics } else { &self.regulars };
        let of = columns.get(usize::from(cell.column)).filter(|of| of.is_fetched && of.is_queried);
        of.is_some_and(|of| of.parts.is_empty() || self.is_selected(cell, is_static, &of.parts))
    }

    fn is_selected(&self, cell: &CellRef<'_>, is_static: bool, parts: &[&Subselection]) -> bool {
        let columns = if is_static { &self.table.statics } else { &self.table.regulars };
        let (Some(path), Some(column)) = (cell.path, columns.get(usize::from(cell.column))) else {
            return true;
        };
        let order = |a: &[u8], b: &[u8]| compare_paths(&column.ty, a, b);
        parts.iter().any(|part| match part {
            Subselection::Element { path: wanted, .. } => order(path, wanted).is_eq(),
            Subselection::Slice { from, to, .. } => {
                order(path, from).is_ge() && order(path, to).is_le()
            }
        })
    }
}

fn parts<'f>(filter: &'f ColumnFilter, column: &Column) -> Vec<&'f Subselection> {
    if !column.is_complex() {
        return Vec::new();
    }
    filter.subselections.iter().filter(|part| *part.column() == *column.name).collect()
}

/// The order of the cells of a complex column.
fn compare_paths(ty: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    match ty {
        CqlType::Map { key, .. } => key.compare(a, b),
        CqlType::Set { element, .. } => element.compare(a, b),
        CqlType::List { .. } => CqlType::TimeUuid.compare(a, b),
        _ => CqlType::SmallInt.compare(a, b),
    }
}
