//! What verbs answer with: plain data, the same for nodetool's text, for its JSON and for programs.
//!
//! Fields of numbers say their unit in their name, but counts. A number that is none (`NaN`) is
//! null in JSON.

mod access;
mod caches;
mod compaction;
pub(crate) mod float;
mod hints;
mod io;
mod network;
mod node;
mod outcome;
mod plan;
mod repair;
mod request_logs;
mod ring;
mod samples;
mod settings;
mod shown;
mod snapshots;
mod streams;
mod tables;

pub use access::{AuthCacheChange, AuthCacheSettings, ClientConnection, RecentClient};
pub use caches::{Cache, ChunkCache, NetworkCache};
pub use compaction::{
    AutoCompaction, CompactionStats, ExcessJobs, PastCompaction, PendingTasks, RunningCompaction,
    Thresholds,
};
pub use hints::{Handoff, HintedNode, PendingHints};
pub use io::{IoDepth, IoFlow, IoLatencies, IoSize, IoStats, IoSum, IoVolume, IoWindow};
pub use network::{
    DroppedMessages, Messages, NetStats, Pool, PoolStats, ProxyHistograms, ReadRepairs,
};
pub use node::{NodeInfo, Release};
pub use outcome::{Outcome, Refusal};
pub use plan::{
    Failing, FailingUnit, FailureChance, FailureOdds, FailurePlan, FailureRow, MovePlan, NewNodes,
    PlanChange, PlannedOwnership, PlannedRate, PlannedShare, PlannedStream, PlannedTokens,
};
pub use repair::{
    PendingRepair, PendingStats, RepairCleanup, RepairEnd, RepairEvent, RepairEventKind,
    RepairEvents, RepairOrder, RepairScope, RepairSession, RepairStarted, RepairStats,
    RepairedSection, WatchedRepair,
};
pub use request_logs::RequestLog;
pub use ring::{
    Cluster, ClusterView, Decommission, Endpoint, GossipValue, Life, Liveness, NodesOf,
    RangeReplica, RebuildOrder, ReplicatedRange, Ring, RingNode, RingRanges,
};
pub use samples::{Sample, SampleOrder, Sampled, SampledTables, Sampler};
pub use settings::{LoggerLevel, Setting, Timeout, UnknownTimeout};
pub use shown::Shown;
pub use snapshots::SnapshotDetails;
pub use streams::{StreamFile, StreamLimits, StreamPlan, StreamSession, StreamSum};
pub use tables::{
    DataFile, KeyspacePaths, KeyspaceStats, Level, PartitionBytes, PartitionHistograms, PerRead,
    Percentiles, Replication, Requests, Sizes, TableHistograms, TableName, TablePaths, TableStats,
};
