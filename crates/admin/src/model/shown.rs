//! All that verbs show.
//!
//! A verb that shows something new gets a variant here. A build refuses in words what it does not
//! know.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{
    AutoCompaction, ClusterView, CompactionStats, DataFile, Decommission, Endpoint, ExcessJobs,
    FailurePlan, Handoff, IoStats, KeyspacePaths, KeyspaceStats, MovePlan, NetStats, NodeInfo,
    PastCompaction, PendingHints, PoolStats, ProxyHistograms, Release, Ring, RingRanges, Setting,
    SnapshotDetails, StreamLimits, TableHistograms, Thresholds, Timeout,
};

/// What a verb shows: in JSON an object whose one field names the kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// `version`
    Release(Release),
    /// `info`
    Node(Box<NodeInfo>),
    /// `statusbinary`
    NativeTransport {
        /// Are clients served?
        running: bool,
    },
    /// `iostats`
    Io(Box<IoStats>),
    /// `status`, `ring`
    Ring(Ring),
    /// `describering`
    Ranges(RingRanges),
    /// `describecluster`
    Cluster(Box<ClusterView>),
    /// `gossipinfo`, `failuredetector`
    Gossip(Vec<Endpoint>),
    /// `statusgossip`
    GossipStatus {
        /// Does the node take part?
        running: bool,
    },
    /// `getseeds`
    Seeds(Vec<SocketAddr>),
    /// `reloadseeds`: none where they could not be read.
    ReloadedSeeds(Option<Vec<SocketAddr>>),
    /// `bootstrap resume`
    ResumedBootstrap {
        /// Was there something to go on with?
        resumed: bool,
    },
    /// `removenode status`, `removenode force`
    Removal {
        /// In Cassandra's words.
        status: String,
    },
    /// `decommission`
    Decommission(Decommission),
    /// `plan`, but for `plan failures`
    Plan(Box<MovePlan>),
    /// `plan failures`
    FailurePlan(FailurePlan),
    /// `getendpoints`
    Endpoints(Vec<SocketAddr>),
    /// `tpstats`
    Pools(PoolStats),
    /// `netstats`
    Network(NetStats),
    /// `getstreamthroughput`, `getinterdcstreamthroughput`
    StreamLimits(StreamLimits),
    /// `proxyhistograms`
    ProxyHistograms(Box<ProxyHistograms>),
    /// `statushandoff`, `getmaxhintwindow`
    Handoff(Handoff),
    /// `listpendinghints`
    PendingHints(Vec<PendingHints>),
    /// `compactionstats`
    Compactions(CompactionStats),
    /// `compactionhistory`
    CompactionHistory(Vec<PastCompaction>),
    /// `getcompactionthroughput`
    CompactionThroughput {
        /// 0 is no limit.
        bytes_per_second: u64,
    },
    /// `getconcurrentcompactors`
    ConcurrentCompactors(u64),
    /// `getcompactionthreshold`
    CompactionThresholds(Thresholds),
    /// `statusautocompaction`
    AutoCompaction(Vec<AutoCompaction>),
    /// `cleanup`, `garbagecollect`, `scrub`: for each keyspace, where more was asked for than can
    /// be.
    ExcessJobs(Vec<ExcessJobs>),
    /// `tablestats`
    TableStats(Vec<KeyspaceStats>),
    /// `tablehistograms`
    TableHistograms(Vec<TableHistograms>),
    /// `datapaths`
    DataPaths(Vec<KeyspacePaths>),
    /// `getsstables`
    DataFiles(Vec<DataFile>),
    /// `import`
    Import {
        /// Whose SSTables were not taken over.
        refused_directories: Vec<String>,
    },
    /// `snapshot`
    Snapshot {
        /// Its name.
        name: String,
        /// Whether it was taken.
        taken: bool,
    },
    /// `listsnapshots`
    Snapshots(Vec<SnapshotDetails>),
    /// `statusbackup`
    Backups {
        /// Are links to what is flushed kept?
        kept: bool,
    },
    /// `gettimeout`
    Timeout {
        /// nodetool's name for it.
        timeout: Timeout,
        /// How long it is.
        millis: u64,
    },
    /// `gettraceprobability`
    TraceProbability {
        /// Of requests that nobody asked to be traced.
        share: f64,
    },
    /// `getguardrailsconfig`
    Guardrails(Vec<Setting>),
}
