//! All that verbs show.
//!
//! A verb that shows something new gets a variant here. A build refuses in words what it does not
//! know.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{
    AuthCacheSettings, AutoCompaction, ClientConnection, ClusterView, CompactionStats, DataFile,
    Decommission, Endpoint, ExcessJobs, FailurePlan, Handoff, IoStats, KeyspacePaths,
    KeyspaceStats, LoggerLevel, MovePlan, NetStats, NodeInfo, PastCompaction, PendingHints,
    PendingStats, PoolStats, ProxyHistograms, RecentClient, Release, RepairCleanup, RepairSession,
    RepairStats, RequestLog, Ring, RingRanges, Sampled, SampledTables, Setting, SnapshotDetails,
    StreamLimits, TableHistograms, Thresholds, Timeout, WatchedRepair,
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
    /// `clientstats`
    Clients(Vec<ClientConnection>),
    /// `clientstats --by-protocol`
    RecentClients(Vec<RecentClient>),
    /// `getauthcacheconfig`
    AuthCache(AuthCacheSettings),
    /// `getcolumnindexsize`
    ColumnIndexSize {
        /// Between entries of the index of rows within a partition; none: not set.
        kibibytes: Option<u64>,
    },
    /// `getdefaultrf`
    DefaultReplication {
        /// Replicas of a keyspace.
        factor: u64,
    },
    /// `doctor`
    Doctor(Box<doctor::Report>),
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
    /// `repair`: each keyspace that was looked at.
    Repairs(Vec<WatchedRepair>),
    /// `repair_admin list`
    RepairSessions(Vec<RepairSession>),
    /// `repair_admin summarize-pending`, by keyspace and table.
    PendingRepairs(Vec<PendingStats>),
    /// `repair_admin summarize-repaired`, by keyspace and table.
    RepairStats(Vec<RepairStats>),
    /// `repair_admin cleanup`, by keyspace and table.
    RepairCleanups(Vec<RepairCleanup>),
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
    /// `getauditlog`, `getfullquerylog`
    RequestLog(RequestLog),
    /// `getlogginglevels`
    LoggingLevels(Vec<LoggerLevel>),
    /// `setlogginglevel`, of names under which the node logs nothing.
    UnheardLoggers(Vec<String>),
    /// `profileload`, `toppartitions`
    Samples(Vec<Sampled>),
    /// `profileload -i`, `profileload -t`
    SamplingSchedule {
        /// Is it as was asked for?
        done: bool,
    },
    /// `profileload -l`
    Samplings(Vec<SampledTables>),
    /// `rangekeysample`: tokens.
    SampledKeys(Vec<i64>),
    /// `getguardrailsconfig`
    Guardrails(Vec<Setting>),
}

impl Shown {
    /// Puts behind what is shown later of the same verb.
    pub(crate) fn join(&mut self, later: Self) {
        match (self, later) {
            (Self::Repairs(all), Self::Repairs(later)) => {
                for repair in later {
                    let rest = match all.last_mut() {
                        Some(last) => last.join(repair),
                        None => Err(repair),
                    };
                    all.extend(rest.err());
                }
            }
            (shown, later) => *shown = later,
        }
    }
}
