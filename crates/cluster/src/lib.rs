//! The coordinator: statements meet the ring. For now a ring of one node: plans are bound, run on the shards that
//! own their keys, and their results put together.
#![forbid(unsafe_code)]

mod answer;
mod auth;
mod batch_log;
mod boot;
mod clock_reserve;
mod compaction_history;
mod coordinator;
mod counters;
mod describe;
mod estimates;
mod guardrails;
mod identity;
mod internal;
mod oversized;
mod own_cql;
mod paging;
mod paxos;
mod prepared;
mod read;
mod replica;
mod request_metrics;
mod saved_caches;
mod scanned;
mod schema_owner;
mod tracing;
mod turns;
mod values;
pub mod virtual_tables;
mod write;

pub use answer::{Answer, Outcome, Page, PreparedInfo};
pub use boot::{BootError, Booted, boot, first_schema};
pub use clock_reserve::{ClockReserve, ReserveError};
pub use compaction_history::CompactionRow;
pub use coordinator::{Coordinator, Request};
pub use cql::guard::violation;
pub use cql::redacted;
pub use guardrails::{DISK_NOTICES, DiskUsage, write_limits};
pub use identity::{Identity, RELEASE_VERSION};
pub use oversized::oversized;
pub use prepared::class_name;
pub use replica::{Concern, Counted, Owns, PeerAnswer, PeerRequest, Replicate};
pub use tracing::Tracing;
