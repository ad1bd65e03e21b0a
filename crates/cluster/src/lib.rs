//! The coordinator: statements meet the ring. For now those of one node: plans are bound, run on the shards that own their
//! keys, and their results put together. What the node is in a ring of several is in `membership`.
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
mod hints;
mod identity;
mod internal;
mod membership;
mod oversized;
mod own_cql;
mod paging;
mod paxos;
mod peer_messages;
mod prepared;
mod read;
mod reconcile;
mod replica;
mod request_metrics;
mod ring_batch;
mod ring_read;
mod ring_truncate;
mod ring_write;
mod saved_caches;
mod scanned;
mod schema_owner;
pub mod schema_ring;
mod scope;
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
pub use hints::{HintTicket, Pending as PendingHints};
pub use identity::{Identity, RELEASE_VERSION};
pub use membership::{Endpoint, JoinError, Joined, Life, Membership, NodeInfo, Nodes};
pub use oversized::oversized;
pub use prepared::class_name;
pub use replica::{Concern, Counted, Owns, PeerAnswer, PeerRequest, Replicate};
pub use tracing::Tracing;
