//! A row with some of its cells: what a read fetches of it (`BTreeRow.filter`).

use crate::builder::RowBuilder;
use crate::cell::CellRef;
use crate::layout::Layout;
use crate::row::{Head, RowRef};

/// What becomes of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It stays.
    Whole,
    /// It stays, with an empty value: only that it is there matters.
    WithoutValue,
    /// It is left out.
    Nothing,
}

/// What is left of a row; the row itself where all of it stays, `None` where nothing does.
pub fn select_cells<'a>(
    layout: &Layout,
    row: RowRef<'a>,
    keep: impl Fn(&CellRef<'_>) -> Keep,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    if row.cells().all(|cell| keep(&cell) == Keep::Whole) {
        return Some(row);
    }
    out.start_like(row);
    out.set_head(Head::of(row));
    for cell in row.cells() {
        match keep(&cell) {
            Keep::Whole => out.cell_in_order(&cell),
            Keep::WithoutValue => out.cell_in_order(&CellRef { value: &[], ..cell }),
            Keep::Nothing => {}
        }
    }
    Some(out.finish_row(layout)).filter(|row| !row.is_empty())
}
