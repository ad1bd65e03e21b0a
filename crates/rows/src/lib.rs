//! Cells, rows, range tombstones and partitions; the one merge function and the one codec for disk
//! and peers. Pure: no clock, no I/O.
//!
//! A row in memory is one contiguous byte string (see [`row`]), written by a [`RowBuilder`] and read
//! through a [`RowRef`]; nothing is allocated for a cell. The semantics are those of Cassandra 5.0.9.
#![forbid(unsafe_code)]

mod builder;
pub mod cell;
pub mod clustering;
pub mod codec;
mod column_map;
mod compare;
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
pub mod row;
mod time;

pub use builder::RowBuilder;
pub use cell::{CellKind, CellRef};
pub use clustering::{Bound, BoundKind, BoundRef, Clustering, ClusteringBuilder, ClusteringRef};
pub use column_map::ColumnMap;
pub use compare::{compare, compare_clusterings};
pub use layout::{ClusteringColumn, ColumnLayout, DroppedColumn, Layout};
pub use marker::{MarkerRef, Unfiltered};
pub use merge::{merge_rows, merge_versions};
pub use merger::{Heads, Step, UnfilteredMerger};
pub use partition::{Mutation, PartitionUpdate, Rows, RowsIter, Unfiltereds, UpdateBuilder};
pub use purge::{Purger, purge_marker, purge_row};
pub use ranges::{Markers, RangeTombstone, RangeTombstoneList};
pub use reconcile::reconcile;
pub use row::RowRef;
pub use time::{
    Deletion, INVALID_DELETION_TIME, Liveness, MAX_DELETION_TIME, NO_DELETION_TIME, NO_TIMESTAMP,
    NO_TTL,
};
