//! What reads went over on their way to the rows they give: `tombstone_warn_threshold` and
//! `tombstone_failure_threshold` (`ReadCommand.withMetricsRecording`).

use std::ops::AddAssign;

use rows::{MarkerRef, Purger, RowBuilder, RowRef, purge_marker, purge_row};
use schema::Table;
use types::Token;

/// The most characters of a statement in a warning.
const QUERY_CHARS_MAX: usize = 512;
/// The most warnings about one aggregation, which reads page after page.
pub(crate) const WARNINGS_MAX: usize = 100;

/// Rows with live data, and tombstones too young to be forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub live: u64,
    pub tombstones: u64,
}

impl AddAssign for Scanned {
    fn add_assign(&mut self, other: Self) {
        self.live += other.live;
        self.tombstones += other.tombstones;
    }
}

/// How many tombstones a read may go over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    /// More than these, and the client is warned.
    pub warn: u64,
    /// More than these, and the read fails.
    pub failure: u64,
}

impl Thresholds {
    /// For tables of the node's own, which anything may be read of.
    pub const NONE: Self = Self { warn: u64::MAX, failure: u64::MAX };
}

/// Counts what one partition holds.
pub(crate) struct Scanner<'t> {
    table: &'t Table,
    now: i64,
    gc_before: i64,
    scratch: RowBuilder,
}

impl<'t> Scanner<'t> {
    /// As it is at `now`, in seconds.
    pub fn new(table: &'t Table, now: i64) -> Self {
        let gc_before = now.saturating_sub(i64::from(table.params.gc_grace_seconds));
        Self { table, now, gc_before, scratch: RowBuilder::new() }
    }

    fn purger(&self) -> Purger<'static> {
        Purger {
            now: self.now,
            gc_before: self.gc_before,
            strict_liveness: false,
            purgeable: &|_| true,
        }
    }

    /// A row, of which the caller knows whether it has live data: each dead cell counts, and a row that is deleted
    /// without any counts once.
    pub fn row(&mut self, row: RowRef<'_>, is_live: bool) -> Scanned {
        let now = self.now;
        let mut scanned = Scanned { live: is_live.into(), tombstones: 0 };
        if !row.has_deletion(now) {
            return scanned;
        }
        let purger = self.purger();
        let Some(row) = purge_row(&self.table.layout, row, &purger, &mut self.scratch) else {
            return scanned;
        };
        let dead = row.cells().filter(|cell| !cell.is_complex_deletion() && !cell.is_live(now));
        scanned.tombstones = dead.count() as u64;
        let has_liveness = row.liveness().is_some_and(|liveness| liveness.is_live(now));
        if scanned.tombstones == 0 && !is_live && !has_liveness && row.has_deletion(now) {
            scanned.tombstones = 1;
        }
        scanned
    }

    /// One end of a deleted range, or where one ends and another begins.
    pub fn marker(&self, marker: MarkerRef<'_>) -> Scanned {
        let tombstones = purge_marker(marker, &self.purger()).is_some().into();
        Scanned { live: 0, tombstones }
    }
}

/// What the client is warned of.
pub(crate) fn warning(scanned: Scanned, query: &str, token: Token) -> String {
    let query: String = query.chars().take(QUERY_CHARS_MAX).collect();
    format!(
        "Read {} live rows and {} tombstone cells for query {query}; token {} (see tombstone_warn_threshold)",
        scanned.live, scanned.tombstones, token.0
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rows::{
        BoundKind, BoundRef, CellRef, ClusteringRef, Deletion, Liveness, MarkerRef, RowBuilder,
    };
    use schema::{ColumnKind, Table, TableId};
    use types::CqlType;

    use super::{Scanned, Scanner};

    const NOW: i64 = 2_000_000_000;
    /// Within `gc_grace_seconds`, and before.
    const YOUNG: i64 = NOW - 100;
    const OLD: i64 = NOW - 900_000;

    fn table() -> Arc<Table> {
        let table = Table::builder("ks", "t", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Int, ColumnKind::Clustering)
            .column("a", CqlType::Int, ColumnKind::Regular)
            .column("b", CqlType::Int, ColumnKind::Regular);
        Arc::new(table.build())
    }

    fn scan(write: impl FnOnce(&mut RowBuilder)) -> Scanned {
        let table = table();
        let mut row = RowBuilder::new();
        row.start_row(ClusteringRef::EMPTY);
        write(&mut row);
        let row = row.finish_row(&table.layout);
        Scanner::new(&table, NOW).row(row, row.has_live_data(NOW, false))
    }

    fn counts(live: u64, tombstones: u64) -> Scanned {
        Scanned { live, tombstones }
    }

    #[test]
    fn dead_cells_count_one_by_one() {
        let one = scan(|row| {
            row.liveness(Liveness::new(1));
            row.cell(CellRef::tombstone(0, None, 1, YOUNG));
        });
        assert_eq!(one, counts(1, 1));
        let two = scan(|row| {
            row.cell(CellRef::tombstone(0, None, 1, YOUNG));
            row.cell(CellRef::expiring(1, None, 1, 10, YOUNG, &[0; 4]));
        });
        assert_eq!(two, counts(0, 2));
        let forgotten = scan(|row| {
            row.liveness(Liveness::new(1));
            row.cell(CellRef::tombstone(0, None, 1, OLD));
            row.cell(CellRef::expiring(1, None, 1, 10, OLD, &[0; 4]));
        });
        assert_eq!(forgotten, counts(1, 0));
        let unexpired = scan(|row| row.cell(CellRef::expiring(1, None, 1, 10, NOW + 1, &[0; 4])));
        assert_eq!(unexpired, counts(1, 0));
    }

    #[test]
    fn a_deleted_row_counts_once() {
        assert_eq!(scan(|row| row.deletion(Deletion::new(5, YOUNG))), counts(0, 1));
        assert_eq!(scan(|row| row.deletion(Deletion::new(5, OLD))), counts(0, 0));
        let written_again = scan(|row| {
            row.deletion(Deletion::new(5, YOUNG));
            row.liveness(Liveness::new(6));
        });
        assert_eq!(written_again, counts(1, 0));
        let with_a_dead_cell = scan(|row| {
            row.deletion(Deletion::new(5, YOUNG));
            row.cell(CellRef::tombstone(0, None, 6, YOUNG));
        });
        assert_eq!(with_a_dead_cell, counts(0, 1));
    }

    #[test]
    fn ends_of_ranges_count() {
        let table = table();
        let scanner = Scanner::new(&table, NOW);
        let marker = |end, start| MarkerRef {
            bound: BoundRef { kind: BoundKind::InclStart, values: ClusteringRef::EMPTY },
            end,
            start,
        };
        let young = marker(Deletion::LIVE, Deletion::new(5, YOUNG));
        assert_eq!(scanner.marker(young), counts(0, 1));
        let old = marker(Deletion::LIVE, Deletion::new(5, OLD));
        assert_eq!(scanner.marker(old), counts(0, 0));
    }
}
