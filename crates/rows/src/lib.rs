//! Cells, rows, range tombstones and partitions; the one merge function and the one codec for disk
//! and peers. Pure: no clock, no I/O.
//!
//! A row in memory is one contiguous byte string (see [`row`]), written by a [`RowBuilder`] and read
//! through a [`RowRef`]; nothing is allocated for a cell. The semantics are those of Cassandra 5.0.9.
#![forbid(unsafe_code)]

mod builder;
pub mod cell;
pub mod clustering;
mod column_map;
mod compare;
mod layout;
mod marker;
mod packed;
mod reconcile;
pub mod row;
mod time;

pub use builder::RowBuilder;
pub use cell::{CellKind, CellRef};
pub use clustering::{Bound, BoundKind, BoundRef, Clustering, ClusteringBuilder, ClusteringRef};
pub use column_map::ColumnMap;
pub use compare::{compare, compare_clusterings};
pub use layout::{ClusteringColumn, ColumnLayout, Layout};
pub use marker::{MarkerRef, Unfiltered};
pub use reconcile::reconcile;
pub use row::RowRef;
pub use time::{
    Deletion, INVALID_DELETION_TIME, Liveness, MAX_DELETION_TIME, NO_DELETION_TIME, NO_TIMESTAMP,
    NO_TTL,
};
