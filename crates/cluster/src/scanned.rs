//! What reads went over on their way to the rows they give: `tombstone_warn_threshold`,
//! `tombstone_failure_threshold` and `local_read_size_*_threshold`
//! (`ReadCommand.withMetricsRecording`, `withQuerySizeTracking`).

use std::ops::{AddAssign, Sub};

use config::Config;
use cql::permission::{is_local_system, is_system};
use rows::{MarkerRef, Purger, RowBuilder, RowRef, purge_marker, purge_row};
use schema::Table;
use types::Token;

/// A result without pages has at most this part of the memory budget in cells.
const UNPAGED_PART: u64 = 8;
/// The most characters of a statement in a warning.
const QUERY_CHARS_MAX: usize = 512;
/// The most warnings about one aggregation, which reads page after page.
pub(crate) const WARNINGS_MAX: usize = 100;

/// Bytes of cells that a result without pages may have.
pub(crate) fn unpaged_bytes_max(config: &Config) -> usize {
    usize::try_from(config.memory() / UNPAGED_PART).unwrap_or(usize::MAX)
}

/// Rows with live data, and tombstones too young to be forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub live: u64,
    pub tombstones: u64,
    /// Bytes of what was read, where they matter.
    pub bytes: u64,
}

impl AddAssign for Scanned {
    fn add_assign(&mut self, other: Self) {
        self.live += other.live;
        self.tombstones += other.tombstones;
        self.bytes += other.bytes;
    }
}

impl Sub for Scanned {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            live: self.live.saturating_sub(before.live),
            tombstones: self.tombstones.saturating_sub(before.tombstones),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

impl Scanned {
    /// Is there anything that a threshold may be of?
    pub fn counts(&self) -> bool {
        self.tombstones > 0 || self.bytes > 0
    }
}

/// How much a read may go over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    /// More tombstones than these, and the client is warned.
    pub warn: u64,
    /// More tombstones than these, and the read fails.
    pub failure: u64,
    /// So many bytes, and the client is warned.
    pub bytes_warn: u64,
    /// So many bytes, and the read fails.
    pub bytes_failure: u64,
    /// Are both spoken of as Cassandra does where `read_thresholds_enabled` is true?
    pub are_tracked: bool,
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    Tombstones,
    Bytes,
}

impl Excess {
    fn thing(self) -> Thing {
        match self {
            Self::Tombstones => Thing::Tombstones,
            Self::Bytes => Thing::Bytes,
        }
    }
}

/// What thresholds are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Tombstones,
    Bytes,
    /// Of the index of a partition's rows: Cassandra counts those.
    RowIndexBytes,
    /// Parts of a storage attached index: Cassandra counts those.
    Indexes,
}

/// What came of too much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Aborted,
    Warned,
}

impl Thing {
    /// What a client is told of so many nodes (`WarningsSnapshot`).
    pub fn message(self, outcome: Outcome, nodes: usize, most: u64, text: &str) -> String {
        let did = match (self, outcome) {
            (Self::Tombstones, Outcome::Aborted) => {
                format!("scanned over {most} tombstones and aborted the")
            }
            (Self::Tombstones, Outcome::Warned) => {
                format!("scanned up to {most} tombstones and issued tombstone warnings for")
            }
            (Self::Bytes, Outcome::Aborted) => format!("loaded over {most} bytes and aborted the"),
            (Self::Bytes, Outcome::Warned) => {
                format!("loaded over {most} bytes and issued local read size warnings for")
            }
            (Self::RowIndexBytes, Outcome::Aborted) => {
                format!("loaded over {most} bytes in RowIndexEntry and aborted the")
            }
            (Self::RowIndexBytes, Outcome::Warned) => {
                format!("loaded over {most} bytes in RowIndexEntry and issued warnings for")
            }
            (Self::Indexes, Outcome::Aborted) => format!(
                "referenced {most} SSTable indexes for a query without restrictions on partition key and aborted the"
            ),
            (Self::Indexes, Outcome::Warned) => format!(
                "referenced more than allowed number of indexes without restrictions on partition key, maximum on a node being {most} indexes, and issued warnings for"
            ),
        };
        let threshold = match (self, outcome) {
            (Self::Tombstones, Outcome::Aborted) => "tombstone_failure_threshold",
            (Self::Tombstones, Outcome::Warned) => "tombstone_warn_threshold",
            (Self::Bytes, Outcome::Aborted) => "local_read_size_fail_threshold",
            (Self::Bytes, Outcome::Warned) => "local_read_size_warn_threshold",
            (Self::RowIndexBytes, Outcome::Aborted) => "row_index_size_fail_threshold",
            (Self::RowIndexBytes, Outcome::Warned) => "row_index_size_warn_threshold",
            (Self::Indexes, Outcome::Aborted) => "sai_sstable_indexes_per_query_fail_threshold",
            (Self::Indexes, Outcome::Warned) => "sai_sstable_indexes_per_query_warn_threshold",
        };
        format!("{nodes} nodes {did} query {text} (see {threshold})")
    }
}

/// One read of a partition or a range, as messages name it.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// Its text.
    pub text: String,
    /// What it is of.
    pub tokens: String,
    /// Where it ended.
    pub token: Token,
}

impl Thresholds {
    /// What reads of a table may go over.
    pub fn of(config: &Config, table: &Table) -> Self {
        if table.is_virtual() || is_local_system(&table.keyspace) {
            return Self::NONE;
        }
        let sizes = config.read_sizes;
        let [warn, fail] = match sizes {
            Some(sizes) if !is_system(&table.keyspace) => sizes.local,
            _ => [None, None],
        };
        Self {
            warn: config.tombstone_warn,
            failure: config.tombstone_failure,
            bytes_warn: warn.unwrap_or(u64::MAX),
            bytes_failure: fail.unwrap_or(u64::MAX),
            are_tracked: sizes.is_some(),
        }
    }

    /// For tables of the node's own, which anything may be read of.
    pub const NONE: Self = Self {
        warn: u64::MAX,
        failure: u64::MAX,
        bytes_warn: u64::MAX,
        bytes_failure: u64::MAX,
        are_tracked: false,
    };

    /// Must bytes be counted?
    pub fn counts_bytes(&self) -> bool {
        self.bytes_warn.min(self.bytes_failure) < u64::MAX
    }

    /// What makes a read fail, if anything does.
    pub fn excess(&self, scanned: Scanned) -> Option<Excess> {
        match () {
            () if scanned.tombstones > self.failure => Some(Excess::Tombstones),
            () if scanned.bytes >= self.bytes_failure => Some(Excess::Bytes),
            () => None,
        }
    }

    /// Is the client to be warned?
    pub fn warns(&self, scanned: Scanned) -> bool {
        scanned.tombstones > self.warn || scanned.bytes >= self.bytes_warn
    }

    /// What the client is warned of.
    pub fn warnings(&self, scanned: Scanned, command: &Command) -> Vec<String> {
        let Command { text, tokens, .. } = command;
        let (count, bytes) = (scanned.tombstones, scanned.bytes);
        let mut warnings = Vec::new();
        if count > self.warn {
            warnings.push(match self.are_tracked {
                true => {
                    let message = Thing::Tombstones.message(Outcome::Warned, 1, count, text);
                    format!("{message} with {tokens}")
                }
                false => warning(scanned, command),
            });
        }
        if bytes >= self.bytes_warn {
            let message = Thing::Bytes.message(Outcome::Warned, 1, bytes, text);
            warnings.push(format!("{message} with {tokens}"));
        }
        warnings
    }

    /// Why a read failed; only told where reads are tracked.
    pub fn abortion(&self, excess: Excess, scanned: Scanned, command: &Command) -> String {
        let most = match excess {
            // they are counted one by one
            Excess::Tombstones => self.failure.saturating_add(1),
            Excess::Bytes => scanned.bytes,
        };
        excess.thing().message(Outcome::Aborted, 1, most, &command.text)
    }
}

/// Counts what one partition holds.
pub(crate) struct Scanner<'t> {
    table: &'t Table,
    now: i64,
    gc_before: i64,
    counts_bytes: bool,
    scratch: RowBuilder,
}

impl<'t> Scanner<'t> {
    /// As it is at `now`, in seconds.
    pub fn new(table: &'t Table, now: i64, thresholds: &Thresholds) -> Self {
        let gc_before = now.saturating_sub(i64::from(table.params.gc_grace_seconds));
        let counts_bytes = thresholds.counts_bytes();
        Self { table, now, gc_before, counts_bytes, scratch: RowBuilder::new() }
    }

    fn purger(&self) -> Purger<'static> {
        Purger {
            now: self.now,
            gc_before: self.gc_before,
            strict_liveness: false,
            purgeable: &|_| true,
        }
    }

    /// A row, of which the caller knows whether it has live data: each dead cell counts, and a row
    /// that is deleted without any counts once.
    pub fn row(&mut self, row: RowRef<'_>, is_live: bool) -> Scanned {
        let now = self.now;
        let bytes = if self.counts_bytes { row.as_packed().len() as u64 } else { 0 };
        let mut scanned = Scanned { live: is_live.into(), tombstones: 0, bytes };
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
        Scanned { live: 0, tombstones, bytes: 0 }
    }
}

fn warning(scanned: Scanned, command: &Command) -> String {
    let query: String = command.text.chars().take(QUERY_CHARS_MAX).collect();
    format!(
        "Read {} live rows and {} tombstone cells for query {query}; token {} (see tombstone_warn_threshold)",
        scanned.live, scanned.tombstones, command.token.0
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

    use super::{Scanned, Scanner, Thresholds};

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
        Scanner::new(&table, NOW, &Thresholds::NONE).row(row, row.has_live_data(NOW, false))
    }

    fn counts(live: u64, tombstones: u64) -> Scanned {
        Scanned { live, tombstones, bytes: 0 }
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
        let scanner = Scanner::new(&table, NOW, &Thresholds::NONE);
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
