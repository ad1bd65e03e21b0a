//! What a repair is asked for (`messages.RepairOption`): the map that `nodetool repair` sends.
//!
//! Cassandra prints sets in the order of their hashes. Here they are sorted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thiserror::Error;
use types::{Token, TokenRange};

use crate::wire::PreviewKind;

/// Jobs of a repair that run at the same time, at most (`MAX_JOB_THREADS`).
pub const JOB_THREADS_MAX: i32 = 4;

const PARALLELISM: &str = "parallelism";
const PRIMARY_RANGE: &str = "primaryRange";
const INCREMENTAL: &str = "incremental";
const JOB_THREADS: &str = "jobThreads";
const RANGES: &str = "ranges";
const TABLES: &str = "columnFamilies";
const DATA_CENTERS: &str = "dataCenters";
const HOSTS: &str = "hosts";
const TRACE: &str = "trace";
const SUB_RANGE: &str = "sub_range_repair";
const PULL: &str = "pullRepair";
const FORCE: &str = "forceRepair";
const PREVIEW: &str = "previewKind";
const OPTIMISE_STREAMS: &str = "optimiseStreams";
const IGNORE_UNREPLICATED: &str = "ignoreUnreplicatedKeyspaces";
const REPAIR_PAXOS: &str = "repairPaxos";
const PAXOS_ONLY: &str = "paxosOnly";

/// Why options are refused, in Cassandra's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionError {
    /// A kind of preview that there is not.
    #[error("No enum constant org.apache.cassandra.streaming.PreviewKind.{0}")]
    Preview(String),
    /// A preview looks at no Paxos state.
    #[error("{0} must be set to false for preview repairs")]
    PaxosOfPreview(&'static str),
    /// A text that is no token.
    #[error(
        "Invalid token for Murmur3Partitioner. Got {0} but expected a long value \
         (unsigned 8 bytes integer)."
    )]
    Token(String),
    /// A range that would be the whole ring.
    #[error("Start and end tokens must be different.")]
    EqualTokens,
    /// More jobs at the same time than [`JOB_THREADS_MAX`].
    #[error("Too many job threads. Max is {JOB_THREADS_MAX}")]
    JobThreads,
    /// Data centres or nodes.
    #[error("Cannot combine -dc and -hosts options.")]
    DataCentersAndHosts,
    /// Primary ranges leave out those of the nodes that are left out.
    #[error("You need to run primary range repair on all nodes in the cluster.")]
    PrimaryRange,
    /// Other than two nodes.
    #[error(
        "Pull repair can only be performed between two hosts. Please specify two hosts, one of \
         which must be this host."
    )]
    PullHosts,
    /// No ranges.
    #[error(
        "Token ranges must be specified when performing pull repair. Please specify at least one \
         token range which both hosts have in common."
    )]
    PullRanges,
}

/// Which replicas validate at the same time (`RepairParallelism`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallelism {
    /// One after the other, each of a snapshot.
    #[default]
    Sequential,
    /// All.
    Parallel,
    /// One in each data centre.
    DataCenter,
}

impl Parallelism {
    fn of_name(name: &str) -> Self {
        match name {
            "parallel" => Self::Parallel,
            "dc_parallel" => Self::DataCenter,
            _ => Self::Sequential,
        }
    }

    /// In Cassandra's words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Parallel => "parallel",
            Self::DataCenter => "dc_parallel",
        }
    }
}

/// What the node's settings have to do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSettings {
    /// The node's data centre.
    pub data_center: String,
    /// `auto_optimise_inc_repair_streams`.
    pub optimises_incremental: bool,
    /// `auto_optimise_full_repair_streams`.
    pub optimises_full: bool,
    /// `auto_optimise_preview_repair_streams`.
    pub optimises_preview: bool,
}

/// What a repair is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairOptions {
    /// Which replicas validate at the same time.
    pub parallelism: Parallelism,
    /// Only the ranges that the node is the first replica of?
    pub is_primary_range: bool,
    /// Only what is not repaired yet?
    pub is_incremental: bool,
    /// Is it traced?
    pub is_traced: bool,
    /// Jobs that run at the same time; not checked to be positive.
    pub job_threads: i32,
    /// Those that are named; none if all of the node's are meant.
    pub ranges: BTreeSet<TokenRange>,
    /// Were they named? Whoever coordinates fills in those of the whole keyspace.
    pub is_subrange: bool,
    /// Tables that are named; none if all of the keyspace are meant.
    pub tables: BTreeSet<String>,
    /// Data centres that take part.
    pub data_centers: BTreeSet<String>,
    /// Nodes that take part.
    pub hosts: BTreeSet<String>,
    /// Does this node only fetch?
    pub is_pull: bool,
    /// Does it go on without replicas that are down?
    pub is_forced: bool,
    /// Does it repair?
    pub preview: PreviewKind,
    /// Is each range to be fetched once of each version? See [`Self::optimises_streams`].
    pub optimise_streams: bool,
    /// Are keyspaces left out that the node has alone?
    pub ignores_unreplicated: bool,
    /// Are Paxos rounds ended too?
    pub repairs_paxos: bool,
    /// Are Paxos rounds ended and nothing else?
    pub is_paxos_only: bool,
    /// The node's.
    pub settings: NodeSettings,
}

impl RepairOptions {
    /// Of a map. What it does not name has its default; what is not known is left out.
    ///
    /// # Errors
    /// If options exclude each other or are malformed.
    pub fn parse(
        options: &BTreeMap<String, String>,
        settings: NodeSettings,
    ) -> Result<Self, OptionError> {
        let text = |key| options.get(key).map(String::as_str);
        let is_set = |key| text(key).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let names = |key| text(key).map(names).unwrap_or_default();
        let preview = text(PREVIEW).map_or(Ok(PreviewKind::None), |name| {
            PreviewKind::of_name(name).ok_or_else(|| OptionError::Preview(name.to_owned()))
        })?;
        for key in [REPAIR_PAXOS, PAXOS_ONLY] {
            if preview.is_preview() && is_set(key) {
                return Err(OptionError::PaxosOfPreview(key));
            }
        }
        let ranges = text(RANGES).map_or(Ok(BTreeSet::new()), ranges)?;
        let parsed = Self {
            parallelism: text(PARALLELISM).map(Parallelism::of_name).unwrap_or_default(),
            is_primary_range: is_set(PRIMARY_RANGE),
            is_incremental: is_set(INCREMENTAL),
            is_traced: is_set(TRACE),
            job_threads: text(JOB_THREADS).and_then(|count| count.parse().ok()).unwrap_or(1),
            is_subrange: !ranges.is_empty(),
            ranges,
            tables: names(TABLES),
            data_centers: names(DATA_CENTERS),
            hosts: names(HOSTS),
            is_pull: is_set(PULL),
            is_forced: is_set(FORCE),
            preview,
            optimise_streams: is_set(OPTIMISE_STREAMS),
            ignores_unreplicated: is_set(IGNORE_UNREPLICATED),
            repairs_paxos: is_set(REPAIR_PAXOS),
            is_paxos_only: is_set(PAXOS_ONLY),
            settings,
        };
        parsed.check()?;
        Ok(parsed)
    }

    fn check(&self) -> Result<(), OptionError> {
        let has_data_centers = !self.data_centers.is_empty();
        let has_hosts = !self.hosts.is_empty();
        if self.job_threads > JOB_THREADS_MAX {
            return Err(OptionError::JobThreads);
        }
        if has_data_centers && has_hosts {
            return Err(OptionError::DataCentersAndHosts);
        }
        let leaves_out = has_hosts || (has_data_centers && !self.is_of_local_data_center());
        if self.is_primary_range && leaves_out {
            return Err(OptionError::PrimaryRange);
        }
        if self.is_pull && self.hosts.len() != 2 {
            return Err(OptionError::PullHosts);
        }
        if self.is_pull && self.ranges.is_empty() {
            return Err(OptionError::PullRanges);
        }
        Ok(())
    }

    /// Do all replicas take part?
    pub fn is_global(&self) -> bool {
        self.data_centers.is_empty() && self.hosts.is_empty()
    }

    /// Does only this node's data centre take part?
    pub fn is_of_local_data_center(&self) -> bool {
        self.data_centers.len() == 1 && self.data_centers.contains(&self.settings.data_center)
    }

    /// Is each range fetched once of each version, by the option or by the node's settings?
    pub fn optimises_streams(&self) -> bool {
        let NodeSettings { optimises_incremental, optimises_full, optimises_preview, .. } =
            self.settings;
        let by_settings = match (self.preview.is_preview(), self.is_incremental) {
            (true, _) => optimises_preview,
            (false, true) => optimises_incremental,
            (false, false) => optimises_full,
        };
        !self.is_pull && (by_settings || self.optimise_streams)
    }

    /// As `system_distributed.parent_repair_history` keeps them (`asMap`).
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let join = |names: &BTreeSet<String>| {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
        };
        let ranges = self.ranges.iter().map(|range| format!("({},{}]", range.left, range.right));
        let flag = |value: bool| value.to_string();
        let entries = [
            (PARALLELISM, self.parallelism.name().to_owned()),
            (PRIMARY_RANGE, flag(self.is_primary_range)),
            (INCREMENTAL, flag(self.is_incremental)),
            (JOB_THREADS, self.job_threads.to_string()),
            (TABLES, join(&self.tables)),
            (DATA_CENTERS, join(&self.data_centers)),
            (HOSTS, join(&self.hosts)),
            (SUB_RANGE, flag(self.is_subrange)),
            (TRACE, flag(self.is_traced)),
            (RANGES, ranges.collect::<Vec<_>>().join(",")),
            (PULL, flag(self.is_pull)),
            (FORCE, flag(self.is_forced)),
            (PREVIEW, self.preview.name().to_owned()),
            (OPTIMISE_STREAMS, flag(self.optimise_streams)),
            (REPAIR_PAXOS, flag(self.repairs_paxos)),
            (PAXOS_ONLY, flag(self.is_paxos_only)),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

impl fmt::Display for RepairOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |names: &BTreeSet<String>| {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        write!(
            f,
            "repair options (parallelism: {}, primary range: {}, incremental: {}, job threads: {}, \
             ColumnFamilies: [{}], dataCenters: [{}], hosts: [{}], previewKind: {}, \
             # of ranges: {}, pull repair: {}, force repair: {}, optimise streams: {}, \
             ignore unreplicated keyspaces: {}, repairPaxos: {}, paxosOnly: {})",
            self.parallelism.name(),
            self.is_primary_range,
            self.is_incremental,
            self.job_threads,
            set(&self.tables),
            set(&self.data_centers),
            set(&self.hosts),
            self.preview,
            self.ranges.len(),
            self.is_pull,
            self.is_forced,
            self.optimises_streams(),
            self.ignores_unreplicated,
            self.repairs_paxos,
            self.is_paxos_only,
        )
    }
}

/// `String.trim`: control characters too.
fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// Names between commas, of which several count as one (`StringTokenizer`).
fn names(text: &str) -> BTreeSet<String> {
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(|name| trim(name).to_owned()).collect()
}

/// `1:2,3:4`. What has no colon is passed over.
fn ranges(text: &str) -> Result<BTreeSet<TokenRange>, OptionError> {
    let token = |text: &str| {
        let text = trim(text);
        text.parse().map(Token).map_err(|_| OptionError::Token(text.to_owned()))
    };
    let mut ranges = BTreeSet::new();
    for (left, right) in text.split(',').filter_map(|range| range.split_once(':')) {
        let range = TokenRange { left: token(left)?, right: token(right)? };
        if range.left == range.right {
            return Err(OptionError::EqualTokens);
        }
        ranges.insert(range);
    }
    Ok(ranges)
}
