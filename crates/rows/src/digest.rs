//! What of a partition two replicas hash to learn whether they agree
//! (`UnfilteredRowIterators.digest`, `AbstractRow.digest`, `AbstractCell.digest`): MD5 of it in
//! digest reads, another hash in validation for repair. These functions hand the bytes to a hasher
//! piece by piece.
//!
//! Local deletion times of tombstones are left out: replicas may differ in them.

use crate::cell::CellRef;
use crate::clustering::BoundRef;
use crate::layout::Layout;
use crate::marker::{MarkerRef, Unfiltered};
use crate::packed::pack_seconds;
use crate::row::RowRef;
use crate::time::{Deletion, NO_TIMESTAMP};
use crate::{BoundKind, CellKind, ClusteringRef};
use types::CqlType;

/// Booleans are hashed inverted.
const TRUE: u8 = 0;
const FALSE: u8 = 1;
/// The ordinal of `Unfiltered.Kind.ROW`; that of markers is not hashed.
const ROW: u8 = 0;

/// What comes before the rows of a partition.
#[derive(Clone, Copy, Debug)]
pub struct PartitionDigest<'a> {
    /// The partition key.
    pub key: &'a [u8],
    /// The deletion of the partition; `None` where the read leaves deletions out (that of a
    /// schema's digest), [`Deletion::LIVE`] where it found none.
    pub deletion: Option<Deletion>,
    /// Is the read reversed?
    pub is_reversed: bool,
    /// The static row; `None` if there is none.
    pub static_row: Option<RowRef<'a>>,
}

impl PartitionDigest<'_> {
    /// Hashes it. `is_fetched(is_static, column)` tells the columns that the read fetches, of which
    /// the names are hashed.
    pub fn digest(
        &self,
        layout: &Layout,
        is_fetched: impl Fn(bool, u16) -> bool,
        sink: &mut impl FnMut(&[u8]),
    ) {
        sink(self.key);
        if let Some(deletion) = self.deletion {
            digest_deletion(deletion, sink);
        }
        for is_static in [false, true] {
            if is_static && self.static_row.is_none() {
                continue;
            }
            for (column, at) in layout.columns(is_static).iter().zip(0u16..) {
                if is_fetched(is_static, at) {
                    sink(column.name.as_bytes());
                }
            }
        }
        sink(&[if self.is_reversed { TRUE } else { FALSE }]);
        match self.static_row {
            Some(row) => digest_row(layout, row, sink),
            None => {
                sink(&[ROW, BoundKind::Static.ordinal()]);
                digest_deletion(Deletion::LIVE, sink);
                sink(&[FALSE]);
                sink(&NO_TIMESTAMP.to_be_bytes());
            }
        }
    }
}

/// Hashes a row or marker.
pub fn digest_unfiltered(
    layout: &Layout,
    unfiltered: Unfiltered<'_>,
    sink: &mut impl FnMut(&[u8]),
) {
    digest_some(layout, unfiltered, |_| true, sink);
}

/// The same of rows of which not all regular columns count.
pub fn digest_some(
    layout: &Layout,
    unfiltered: Unfiltered<'_>,
    counts: impl Fn(u16) -> bool,
    sink: &mut impl FnMut(&[u8]),
) {
    match unfiltered {
        Unfiltered::Row(row) => digest_cells(layout, row, counts, sink),
        Unfiltered::Marker(marker) => digest_marker(marker, sink),
    }
}

/// Hashes a row, static or not.
pub fn digest_row(layout: &Layout, row: RowRef<'_>, sink: &mut impl FnMut(&[u8])) {
    digest_cells(layout, row, |_| true, sink);
}

fn digest_cells(
    layout: &Layout,
    row: RowRef<'_>,
    counts: impl Fn(u16) -> bool,
    sink: &mut impl FnMut(&[u8]),
) {
    sink(&[ROW]);
    let kind = if row.is_static() { BoundKind::Static } else { BoundKind::Clustering };
    digest_position(BoundRef::new(kind, row.clustering()), sink);
    digest_deletion(row.deletion(), sink);
    sink(&[if row.is_shadowable() { TRUE } else { FALSE }]);
    match row.liveness() {
        None => sink(&NO_TIMESTAMP.to_be_bytes()),
        Some(liveness) => {
            sink(&liveness.timestamp.to_be_bytes());
            if liveness.is_expiring() {
                sink(&pack_seconds(liveness.expires_at).to_be_bytes());
                sink(&liveness.ttl.to_be_bytes());
            }
        }
    }
    let columns = layout.columns(row.is_static());
    for cell in row.cells().filter(|cell| row.is_static() || counts(cell.column)) {
        let ty = columns.get(usize::from(cell.column)).map(|column| &column.ty);
        digest_cell(cell, ty == Some(&CqlType::Counter), sink);
    }
}

fn digest_cell(cell: CellRef<'_>, of_counter: bool, sink: &mut impl FnMut(&[u8])) {
    if cell.is_complex_deletion() {
        return digest_deletion(cell.as_deletion(), sink);
    }
    let is_counter = of_counter && cell.kind != CellKind::Tombstone;
    sink(if is_counter { without_header(cell.value) } else { cell.value });
    sink(&cell.timestamp.to_be_bytes());
    sink(&cell.ttl.to_be_bytes());
    sink(&[if is_counter { TRUE } else { FALSE }]);
    sink(cell.path.unwrap_or_default());
}

/// A counter's context less its header, which tells what only one replica knows
/// (`CounterContext.headerLength`): a count (`i16`) and as many `i16`.
fn without_header(context: &[u8]) -> &[u8] {
    let Some(count) = context.first_chunk().map(|count| i16::from_be_bytes(*count)) else {
        return context;
    };
    context.get(2 + 2 * usize::from(count.unsigned_abs())..).unwrap_or_default()
}

/// Hashes a marker.
pub fn digest_marker(marker: MarkerRef<'_>, sink: &mut impl FnMut(&[u8])) {
    digest_position(marker.bound, sink);
    if marker.bound.kind.is_end() {
        digest_deletion(marker.end, sink);
    }
    if marker.bound.kind.is_start() {
        digest_deletion(marker.start, sink);
    }
}

fn digest_position(BoundRef { kind, values }: BoundRef<'_>, sink: &mut impl FnMut(&[u8])) {
    ClusteringRef::iter(&values).flatten().for_each(&mut *sink);
    sink(&[kind.ordinal()]);
}

fn digest_deletion(deletion: Deletion, sink: &mut impl FnMut(&[u8])) {
    sink(&deletion.marked_for_delete_at.to_be_bytes());
}
