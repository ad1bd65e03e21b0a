//! Translates rows from one layout of a table to another.

use crate::builder::RowBuilder;
use crate::cell::CellRef;
use crate::layout::Layout;
use crate::row::{Head, RowRef};

/// From the layout that something was written under (an SSTable's header, a memtable from before an
/// ALTER) to the one it is read under. Columns that are unknown there are dropped, and cells from
/// before a column was dropped and added again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMap {
    statics: Box<[Option<Target>]>,
    regulars: Box<[Option<Target>]>,
    identity: bool,
    keeps_complex_deletions: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    column: u16,
    /// Cells at or before this timestamp are gone.
    dropped_at: Option<i64>,
}

impl ColumnMap {
    /// Maps `from` to `to` by name, minding the dropped columns of `to`. A column that changed
    /// between simple and complex counts as unknown.
    pub fn new(from: &Layout, to: &Layout) -> Self {
        let targets = |is_static: bool| -> Box<[Option<Target>]> {
            let target = |source: &crate::ColumnLayout| {
                let column = to.find(is_static, &source.name)?;
                let found = to.columns(is_static).get(usize::from(column))?;
                let dropped_at =
                    to.find_dropped(is_static, &source.name).map(|dropped| dropped.dropped_at);
                (found.is_complex() == source.is_complex()).then_some(Target { column, dropped_at })
            };
            from.columns(is_static).iter().map(target).collect()
        };
        let (statics, regulars) = (targets(true), targets(false));
        let same = |targets: &[Option<Target>]| {
            targets.iter().enumerate().all(|(at, target)| {
                target.is_some_and(|t| usize::from(t.column) == at && t.dropped_at.is_none())
            })
        };
        let identity = same(&statics) && same(&regulars);
        Self { statics, regulars, identity, keeps_complex_deletions: false }
    }

    /// Are rows of `from` rows of `to` as they are, since its columns stand in the same places
    /// there and none was dropped? A map between the two is the identity; most often this is so,
    /// and told without making one.
    pub fn is_unneeded(from: &Layout, to: &Layout) -> bool {
        let stay = |is_static: bool| {
            let (from, to) = (from.columns(is_static), to.columns(is_static));
            let mut pairs = from.iter().zip(to);
            from.len() <= to.len()
                && pairs
                    .all(|(from, to)| from.name == to.name && from.is_complex() == to.is_complex())
        };
        to.dropped.is_empty() && stay(true) && stay(false)
    }

    /// The same, except that the deletion of a complex column stays, however long ago the column
    /// was dropped: Cassandra flushes it and then does not read it.
    #[must_use]
    pub fn keeping_complex_deletions(self) -> Self {
        Self { keeps_complex_deletions: true, ..self }
    }

    /// Does it change nothing? Then [`Self::apply`] need not be called.
    pub fn is_identity(&self) -> bool {
        self.identity
    }

    /// What a cell becomes, `None` if it is dropped.
    pub fn cell<'a>(&self, is_static: bool, cell: CellRef<'a>) -> Option<CellRef<'a>> {
        let targets = if is_static { &self.statics } else { &self.regulars };
        let target = targets.get(usize::from(cell.column));
        let target = target.expect("a cell names a column of the layout its row was built for");
        let target = (*target)?;
        let stays = self.keeps_complex_deletions && cell.is_complex_deletion();
        let dropped = !stays && target.dropped_at.is_some_and(|at| cell.timestamp <= at);
        (!dropped).then_some(CellRef { column: target.column, ..cell })
    }

    /// The row under the new layout `to`; `None` if nothing of it is left. The identity copies
    /// nothing.
    pub fn apply<'a>(
        &self,
        row: RowRef<'a>,
        to: &Layout,
        out: &'a mut RowBuilder,
    ) -> Option<RowRef<'a>> {
        if self.identity {
            return Some(row);
        }
        out.start_like(row);
        out.set_head(Head::of(row));
        for cell in row.cells().filter_map(|cell| self.cell(row.is_static(), cell)) {
            out.cell_in_order(&cell);
        }
        Some(out.finish_row(to)).filter(|row| !row.is_empty())
    }
}
