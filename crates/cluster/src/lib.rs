//! What one shard of a node does for clients, for peers and for the ring.
//!
//! [`Shard`] makes the components and joins them. [`Coordinator`] runs the requests of clients.
//! `replica` answers what peers ask. `membership` is this node's part in the ring. A component owns
//! its state and holds the components below it; none holds the whole.
#![forbid(unsafe_code)]

mod answer;
mod auth;
mod batch_log;
mod binding;
mod boot;
mod clients;
mod clock_reserve;
mod compaction_history;
mod coordinator;
mod counters;
mod describe;
mod dynamic_snitch;
mod encoding;
mod estimates;
mod guardrails;
mod hints;
mod identity;
mod internal;
mod levels;
mod local_writes;
mod membership;
mod mutations;
mod observed;
mod oversized;
mod own_cql;
mod paging;
mod paxos;
mod payload;
mod peer_request;
mod peers;
mod prepared;
mod read;
mod read_samples;
mod reconcile;
pub mod repair;
mod replica;
mod replica_read;
mod request;
mod request_metrics;
mod ring_batch;
mod ring_read;
mod ring_write;
mod saved_caches;
mod saved_place;
mod scanned;
mod schema_owner;
pub mod schema_ring;
mod scope;
mod served;
mod shard;
mod shard_context;
mod slow_queries;
mod statements;
pub mod topology;
mod traced;
mod tracing;
mod truncation;
mod turns;
mod values;
pub mod virtual_tables;
mod watch;
mod write;

pub use answer::{Answer, Outcome, Page, PreparedInfo, UseWarning};
pub use auth::{Auth, RolesCache};
pub use boot::{BootError, Booted, boot, first_schema};
pub use clock_reserve::{ClockReserve, ReserveError};
pub use compaction_history::{CompactionHistory, CompactionRow};
pub use coordinator::Coordinator;
pub use cql::guard::violation;
pub use cql::redacted;
pub use estimates::SizeEstimates;
pub use guardrails::{DISK_NOTICES, DiskUsage, Guardrails, write_limits};
pub use hints::{Handoff, HintTicket, Pending as PendingHints};
pub use identity::{Identity, RELEASE_VERSION};
pub use membership::{Endpoint, Life, Membership, NodeInfo, Nodes, Place, Stage, StillAlive};
pub use observed::{Observed, ObservedStatement};
pub use oversized::oversized;
pub use peer_request::{PeerAnswer, PeerRequest};
pub use peers::{Note, Peers};
pub use prepared::class_name;
pub use request::Request;
pub use saved_caches::SavedCaches;
pub use saved_place::{Bootstrap, SavedPlace};
pub use schema_owner::SchemaOwner;
pub use shard::Shard;
pub use statements::Statements;
pub use topology::{
    Join, JoinError, Joined, Relocation, RelocationError, Removal, RemovalStatus, Standing,
};
pub use tracing::{Tracer, Tracing};
