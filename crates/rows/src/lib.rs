//! Cells, rows, range tombstones and partitions; the one merge function and the one codec for disk
//! and peers. Pure: no clock, no I/O.
//!
//! A row in memory is one contiguous byte string (see [`row`]), written by a [`RowBuilder`] and
//! read through a [`RowRef`]; nothing is allocated for a cell. The semantics are those of Cassandra
//! 5.0.9.
//!
//! ```
//! use rows::{CellRef, Clustering, ClusteringColumn, ColumnLayout, Deletion, Layout, RowBuilder};
//! use types::CqlType;
//!
//! // CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))
//! let layout = Layout::new(
//!     vec![ClusteringColumn { ty: CqlType::Int, reversed: false }],
//!     vec![],
//!     vec![ColumnLayout { name: "v".into(), ty: CqlType::Text }],
//!     false,
//! );
//! let clustering = Clustering::new([Some(&[0, 0, 0, 7][..])]);
//! let [mut old, mut new, mut out] = [const { RowBuilder::new() }; 3];
//! for (builder, timestamp, value) in [(&mut old, 10, "before"), (&mut new, 11, "after")] {
//!     builder.start_row(clustering.as_ref());
//!     builder.cell(CellRef::live(0, None, timestamp, value.as_bytes()));
//! }
//! let (old, new) = (old.finish_row(&layout), new.finish_row(&layout));
//! let row = rows::merge_rows(&layout, old, new, Deletion::LIVE, &mut out).expect("not empty");
//! assert_eq!(row.cell(0), Some(CellRef::live(0, None, 11, b"after")));
//! // Under a deletion at 11 nothing is left.
//! let deletion = Deletion::new(11, 1_700_000_000);
//! assert_eq!(rows::merge_rows(&layout, old, new, deletion, &mut RowBuilder::new()), None);
//! ```
#![forbid(unsafe_code)]

mod builder;
pub mod cell;
pub mod clustering;
pub mod codec;
mod column_map;
mod compare;
pub mod counter;
mod diff;
pub mod digest;
mod layout;
mod marker;
mod merge;
mod merger;
mod packed;
mod partition;
mod purge;
mod ranges;
mod reconcile;
mod restamp;
pub mod row;
mod select;
mod shadow;
mod time;

pub use builder::RowBuilder;
pub use cell::{CellKind, CellRef};
pub use clustering::{Bound, BoundKind, BoundRef, Clustering, ClusteringBuilder, ClusteringRef};
pub use column_map::ColumnMap;
pub use compare::{compare, compare_clusterings};
pub use diff::diff_rows;
pub use layout::{ClusteringColumn, ColumnLayout, ColumnPlace, DroppedColumn, Layout};
pub use marker::{MarkerRef, Unfiltered};
pub use merge::{filter_row, merge_rows, merge_versions, update_row, update_versions};
pub use merger::{Heads, Step, UnfilteredMerger};
pub use partition::{Mutation, PartitionUpdate, Rows, RowsIter, Unfiltereds, UpdateBuilder};
pub use purge::{Purger, purge_marker, purge_row};
pub use ranges::{Markers, RangeTombstone, RangeTombstoneList};
pub use reconcile::reconcile;
pub use row::RowRef;
pub use select::{Keep, select_cells};
pub use shadow::without_shadowed;
pub use time::{
    Deletion, INVALID_DELETION_TIME, Liveness, MAX_DELETION_TIME, NO_DELETION_TIME, NO_TIMESTAMP,
    NO_TTL,
};
