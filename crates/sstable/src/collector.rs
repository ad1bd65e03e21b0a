//! Gathers what an SSTable says about its content while it is written (`MetadataCollector`,
//! `Rows.collectStats`).

use std::cmp::Ordering;

use rows::codec::PlainRow;
use rows::{
    Bound, BoundKind, BoundRef, CellKind, CellRef, Clustering, ClusteringRef, Deletion, Layout,
    MarkerRef, NO_DELETION_TIME, NO_TTL, RowRef, compare,
};

use crate::cardinality::Sketch;
use crate::histogram::{CELL_COUNT_BUCKETS, EstimatedHistogram, PARTITION_SIZE_BUCKETS};
use crate::key_hash::key_hash;
use crate::statistics::{LogPosition, Stats};
use crate::tombstone_histogram;

#[derive(Clone, Copy, Debug)]
struct MinMax<T> {
    bounds: Option<(T, T)>,
}

impl<T: Ord + Copy> MinMax<T> {
    const NONE: Self = Self { bounds: None };

    fn add(&mut self, value: T) {
        let (min, max) = self.bounds.unwrap_or((value, value));
        self.bounds = Some((min.min(value), max.max(value)));
    }
}

/// The collector.
pub struct Collector {
    timestamps: MinMax<i64>,
    deletion_times: MinMax<i64>,
    ttls: MinMax<i32>,
    partition_sizes: EstimatedHistogram,
    cell_counts: EstimatedHistogram,
    drop_times: tombstone_histogram::Builder,
    cardinality: Sketch,
    extent: Extent,
    columns_set: i64,
    rows: i64,
    has_partition_deletions: bool,
    partition: Partition,
}

/// The first place of a row or range, and the last.
#[derive(Default)]
struct Extent {
    min: Option<Bound>,
    max: Option<Bound>,
}

/// The partition that is being written.
#[derive(Default)]
struct Partition {
    cells: i64,
    /// Of the row that came last, the column of the cell that came last.
    last_column: Option<u16>,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            timestamps: MinMax::NONE,
            deletion_times: MinMax::NONE,
            ttls: MinMax::NONE,
            partition_sizes: EstimatedHistogram::new(PARTITION_SIZE_BUCKETS),
            cell_counts: EstimatedHistogram::new(CELL_COUNT_BUCKETS),
            drop_times: tombstone_histogram::Builder::default(),
            cardinality: Sketch::default(),
            extent: Extent::default(),
            columns_set: 0,
            rows: 0,
            has_partition_deletions: false,
            partition: Partition::default(),
        }
    }
}

impl Collector {
    /// A partition begins.
    pub fn start_partition(&mut self, key: &[u8], deletion: Deletion) {
        self.cardinality.add(key_hash(key));
        self.has_partition_deletions |= !deletion.is_live();
        self.deletion(deletion);
    }

    /// A partition of this many bytes ends.
    pub fn end_partition(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).expect("a partition has fewer than 2^63 bytes");
        self.partition_sizes.add(bytes);
        self.cell_counts.add(self.partition.cells);
        self.partition.cells = 0;
    }

    fn deletion(&mut self, deletion: Deletion) {
        if !deletion.is_live() {
            self.timestamps.add(deletion.marked_for_delete_at);
            self.deletion_time(deletion.local_deletion_time);
        }
    }

    fn deletion_time(&mut self, seconds: i64) {
        self.deletion_times.add(seconds);
        if seconds != NO_DELETION_TIME {
            self.drop_times.add(seconds);
        }
    }

    /// A row, static or not; its cells come after it.
    pub fn row(&mut self, layout: &Layout, row: RowRef<'_>) {
        if !row.is_static() {
            self.clustering(layout, row.clustering());
        }
        if let Some(liveness) = row.liveness() {
            self.timestamps.add(liveness.timestamp);
            self.ttls.add(liveness.ttl);
            self.deletion_time(liveness.expires_at);
        }
        self.deletion(row.deletion());
        self.rows += 1;
        self.partition.last_column = None;
    }

    /// A cell, or the deletion of a complex column, of the row that came last.
    #[inline]
    pub fn cell(&mut self, cell: &CellRef<'_>) {
        if cell.kind == CellKind::ComplexDeletion {
            return self.deletion(cell.as_deletion());
        }
        let is_new = self.partition.last_column.replace(cell.column) != Some(cell.column);
        self.columns_set += i64::from(is_new);
        self.partition.cells += 1;
        self.timestamps.add(cell.timestamp);
        self.ttls.add(cell.ttl);
        self.deletion_time(cell.local_deletion_time);
    }

    /// A row with all its cells.
    pub fn plain_row(&mut self, layout: &Layout, place: ClusteringRef<'_>, row: &PlainRow) {
        self.clustering(layout, place);
        self.timestamps.add(row.timestamp);
        self.ttls.add(NO_TTL);
        self.deletion_time(NO_DELETION_TIME);
        self.rows += 1;
        self.columns_set += row.cells as i64;
        self.partition.cells += row.cells as i64;
    }

    fn clustering(&mut self, layout: &Layout, place: ClusteringRef<'_>) {
        let at = BoundRef::from(place);
        let own = || Some(at.to_owned());
        match &self.extent.max {
            Some(max) if compare(layout, at, max) != Ordering::Greater => {
                let first = self.extent.min.as_ref().is_none_or(|m| compare(layout, at, m).is_lt());
                if first {
                    self.extent.min = own();
                }
            }
            _ => {
                self.extent.max = own();
                if self.extent.min.is_none() {
                    self.extent.min = own();
                }
            }
        }
    }

    /// A marker of range tombstones.
    pub fn marker(&mut self, layout: &Layout, marker: MarkerRef<'_>) {
        self.deletion(marker.end);
        self.deletion(marker.start);
        let at = marker.bound;
        // Every range that opens closes: a start can only be the first of all, an end only the
        // last, a boundary neither.
        if at.kind.is_boundary() {
            return;
        }
        if at.kind.is_end()
            && self.extent.max.as_ref().is_none_or(|m| compare(layout, at, m).is_gt())
        {
            self.extent.max = Some(at.to_owned());
        }
        if at.kind.is_start()
            && self.extent.min.as_ref().is_none_or(|m| compare(layout, at, m).is_lt())
        {
            self.extent.min = Some(at.to_owned());
        }
    }

    /// The sketch of the keys, as stored.
    pub fn cardinality(&self) -> Vec<u8> {
        self.cardinality.encode()
    }

    /// The statistics.
    pub fn finish(
        self,
        log_intervals: Vec<(LogPosition, LogPosition)>,
        host_id: Option<[u8; 16]>,
        compression_ratio: f64,
        level: i32,
        repaired_at: i64,
    ) -> Stats {
        let (min_timestamp, max_timestamp) = self.timestamps.bounds.unwrap_or((i64::MIN, i64::MAX));
        let none = (NO_DELETION_TIME, NO_DELETION_TIME);
        let (min_local_deletion_time, max_local_deletion_time) =
            self.deletion_times.bounds.unwrap_or(none);
        let (min_ttl, max_ttl) = self.ttls.bounds.unwrap_or((0, 0));
        Stats {
            partition_sizes: self.partition_sizes,
            cell_counts: self.cell_counts,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time,
            min_ttl,
            max_ttl,
            compression_ratio,
            tombstone_drop_times: self.drop_times.finish(),
            level,
            repaired_at,
            start: covered(self.extent.min, BoundKind::InclStart, BoundKind::ExclStart),
            end: covered(self.extent.max, BoundKind::InclEnd, BoundKind::ExclEnd),
            has_legacy_counter_shards: false,
            columns_set: self.columns_set,
            rows: self.rows,
            log_intervals,
            pending_repair: None,
            is_transient: false,
            host_id,
            has_partition_deletions: self.has_partition_deletions,
            keys: None,
            token_coverage: None,
        }
    }
}

/// A place as a bound: a row's of one kind, and of another where there are neither rows nor ranges,
/// so that nothing is covered.
fn covered(place: Option<Bound>, of_row: BoundKind, of_none: BoundKind) -> Bound {
    let Some(place) = place else { return Bound::new(of_none, Clustering::new([])) };
    let kind = place.kind;
    assert!(!kind.is_boundary(), "a table begins and ends at a row, a start or an end: {kind:?}");
    match kind {
        BoundKind::Clustering => Bound { kind: of_row, ..place },
        _ => place,
    }
}
