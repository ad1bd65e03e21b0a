//! The storage engine: memtables, commit log, SSTables, flush and compaction, for one node of
//! shards.
//!
//! Each shard has an [`Engine`] of its own; SSTables belong to the node and are written by the
//! first shard's [`Node`]. Nothing here knows of replication or of CQL.
#![forbid(unsafe_code)]

mod arrivals;
mod caches;
pub mod commitlog;
pub mod compaction;
mod disk;
mod engine;
mod error;
mod flush;
mod flush_pace;
mod import;
mod incoming;
mod live_set;
pub mod memtable;
mod node;
mod options;
mod outgoing;
mod output;
mod read;
mod recent;
mod restore;
mod scrub;
pub mod shards;
pub mod snapshot;
mod sstables;
mod start;
mod stream;
mod table_store;
mod trace;
mod transaction;
mod truncate;
mod verify;
mod watch;

pub use arrivals::{Arrivals, Stamp};
pub use caches::{
    CacheKind, CacheStats, Counted, CounterMark, CounterName, Part, SavedCache, SavedName,
    SavedWhat, save_cache,
};
pub use compaction::Throttle;
pub use disk::{Aside, DiskEvent, DiskFailure, DiskSettings, OnDiskFailure, TellDisk};
pub use engine::{Engine, EngineStats};
pub use error::StorageError;
pub use flush::table_directory;
pub use import::Import;
pub use incoming::{
    ComponentFile, Place, SectionBytes, SectionsError, SectionsOptions, WholeFile, write_sections,
};
pub use live_set::LiveSet;
pub use memtable::{KeyRef, PartitionKey};
pub use node::{Node, NodeStats, RunningCompaction};
pub use options::{FlushCompression, LogSettings, Options};
pub use outgoing::{Chosen, ComponentReader, Section, SentComponent};
pub use read::{KeyScan, PartitionCursor, ScanStart, Slices};
pub use scrub::{Scrub, Scrubbed};
pub use sstables::SSTable;
pub use start::Replay;
pub use table_store::{CasStep, Measure, TableStats, TableStore, Timed};
pub use trace::{EVENTS_MAX, Noted, Trace, TraceEvent};
pub use verify::{Depth, Owned, Verify};
pub use watch::{Finding, Oversized, SizeLimit, Tell, WriteLimits};
