//! Counters, gauges and histograms that a shard owns: plain cells, no atomics, no globals. And the
//! [`Level`] of a line that a node says, for the layers that say it.
//!
//! A [`Registry`] lives on one shard and hands out cheap handles ([`Counter`], [`Gauge`],
//! [`Histogram`]) under Cassandra's metric names. To show them, a shard takes a [`Snapshot`],
//! which may travel to another thread; snapshots of several shards merge into the node's, and
//! [`prometheus::write`] turns them into text, and [`k8ssandra::Text`] into text under other names.
//! No clock is read here: the shard's timer calls [`Registry::tick`]. Names, units and the text's
//! convention are in `docs/metrics.md`.

#![forbid(unsafe_code)]

mod buckets;
mod cells;
pub mod k8ssandra;
mod level;
mod name;
pub mod prometheus;
mod registry;
mod snapshot;

pub use buckets::{BUCKETS, Buckets, DEFAULT_BUCKETS, MAX_BUCKETS, offsets};
pub use cells::{Counter, Gauge, Histogram, Weight};
pub use level::Level;
pub use name::{Name, Unit};
pub use registry::Registry;
pub use snapshot::{Distribution, Reading, Sample, Snapshot};
