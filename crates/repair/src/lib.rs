//! What repair is without I/O, clock or tasks: messages, Merkle trees, the hash of a partition,
//! options, summaries, and who streams what to whom.
//!
//! It knows no node: `cluster` sends the messages, reads the data and streams it.
#![forbid(unsafe_code)]

mod hasher;
mod murmur;
mod options;
mod reduce;
mod summary;
mod text;
pub mod tree;
pub mod wire;

pub use hasher::{PartitionHasher, hash_bytes};
pub use options::{JOB_THREADS_MAX, NodeSettings, OptionError, Parallelism, RepairOptions};
pub use reduce::{Differences, Fetches};
pub use summary::{SyncStat, SyncStatSummary};
