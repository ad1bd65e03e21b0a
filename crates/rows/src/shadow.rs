//! What of a row another version of it makes needless, as long as that other one stays
//! (`Rows.removeShadowedCells`).

use std::cmp::Ordering;

use crate::builder::RowBuilder;
use crate::cell::CellRef;
use crate::layout::Layout;
use crate::reconcile::precedence;
use crate::row::{Head, RowRef};
use crate::time::Deletion;

/// A row without the cells that another version of it has later ones for, or deletions of their
/// columns. Its merge with that version is the same. `None` if nothing is left.
pub fn without_shadowed<'a>(
    layout: &Layout,
    row: RowRef<'_>,
    version: RowRef<'_>,
    out: &'a mut RowBuilder,
) -> Option<RowRef<'a>> {
    let is_static = row.is_static();
    assert!(version.is_static() == is_static, "the versions of a row are all static, or none is");
    out.start_like(row);
    out.set_head(Head {
        liveness: row.liveness(),
        deletion: row.deletion(),
        shadowable: row.is_shadowable(),
    });
    let mut others = version.cells().peekable();
    // The last column of the version that was deleted as a whole.
    let mut deleted = (None, Deletion::LIVE);
    for cell in row.cells() {
        let mut stays = true;
        while let Some(other) = others.peek() {
            let order = order(layout, is_static, other, &cell);
            if order == Ordering::Greater {
                break;
            }
            if other.is_complex_deletion() {
                deleted = (Some(other.column), other.as_deletion());
            }
            if order == Ordering::Equal {
                stays = match cell.is_complex_deletion() {
                    true => cell.as_deletion().supersedes(&other.as_deletion()),
                    false => precedence(&cell, other) == Ordering::Greater,
                };
            }
            others.next();
        }
        let (column, deletion) = deleted;
        let of_column = column == Some(cell.column) && !cell.is_complex_deletion();
        if stays && !(of_column && deletion.deletes(cell.timestamp)) {
            out.cell_in_order(&cell);
        }
    }
    Some(out.finish_row(layout)).filter(|row| !row.is_empty())
}

/// The order of cells in a row: the deletion of a column before its cells.
pub(crate) fn order(
    layout: &Layout,
    is_static: bool,
    a: &CellRef<'_>,
    b: &CellRef<'_>,
) -> Ordering {
    let columns = a.column.cmp(&b.column);
    let deletions = b.is_complex_deletion().cmp(&a.is_complex_deletion());
    columns.then(deletions).then_with(|| match a.is_complex_deletion() {
        true => Ordering::Equal,
        false => layout.compare_paths(is_static, a, b),
    })
}
