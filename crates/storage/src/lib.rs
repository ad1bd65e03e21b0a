//! The storage engine: memtables, commit log, SSTables, flush and compaction, for one node of
//! shards.
//!
//! Each shard has an [`Engine`] of its own; SSTables belong to the node and are written by the
//! first shard's [`NodeStore`]. Nothing here knows of replication or of CQL.
//!
//! From the bottom up: `io`, `sstables`, `caches` and `commitlog` know files; `memtable` and `read`
//! rows; `engine` is what a shard has; `node_tables` and what follows is what the node has once.
#![forbid(unsafe_code)]

mod arrivals;
mod caches;
mod captured;
pub mod commitlog;
pub mod compaction;
mod disk_event;
mod disk_failures;
mod engine;
mod error;
mod flush;
mod incoming;
mod io;
mod maintenance;
pub mod memtable;
mod node_stats;
mod node_store;
mod node_tables;
mod options;
mod outgoing;
mod read;
mod repair_status;
mod repairs;
mod samples;
mod saved_caches;
pub mod shards;
mod sstables;
mod start;
mod strategies;
mod table_store;
mod trace;
mod validation;

pub use arrivals::{Arrivals, Arriver};
pub use caches::{CacheKind, CacheStats, Counted, CounterMark, CounterName, Part};
pub use compaction::{Compactions, RunningCompaction, Scrub, Scrubbed};
pub use disk_event::{DiskEvent, DiskFailure, TellDisk};
pub use disk_failures::DiskFailures;
pub use engine::{Caches, Engine, EngineStats};
pub use error::StorageError;
pub use flush::Flushes;
pub use incoming::{
    ComponentFile, Place, SectionBytes, SectionsError, SectionsOptions, WholeFile, write_sections,
};
pub use io::Throttle;
pub use maintenance::{
    Depth, Import, Importer, Owned, Snapshots, Truncations, Verifier, Verify, snapshot,
};
pub use memtable::{KeyRef, PartitionKey};
pub use node_stats::NodeStats;
pub use node_store::NodeStore;
pub use node_tables::{Aside, table_directory};
pub use options::{DiskSettings, FlushCompression, LogSettings, OnDiskFailure, Options};
pub use outgoing::{Chosen, ComponentReader, Section, SentComponent};
pub use read::{KeyScan, PartitionCursor, ScanStart, Slices};
pub use repair_status::{RepairStatus, RepairedState};
pub use repairs::{
    Anticompaction, Outcome, PendingSSTables, PendingSessions, RepairedBytes, Repairs,
};
pub use samples::{Sampled, Sampler, Samples};
pub use saved_caches::{SavedCache, SavedName, SavedWhat, save_cache};
pub use sstable::descriptor::Version as SSTableVersion;
pub use sstables::{Finding, LiveSet, Oversized, SSTable, SizeLimit, Stamp, Tell, WriteLimits};
pub use start::Replay;
pub use table_store::{CasStep, Measure, TableStats, TableStore, Timed};
pub use trace::{EVENTS_MAX, Noted, Trace, TraceEvent};
pub use validation::{Validation, ValidationProgress, Visitor};
