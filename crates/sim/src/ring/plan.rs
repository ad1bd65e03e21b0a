//! What a seed decides of a ring.

use std::time::Duration;

use config::{CommitFailurePolicy, CommitLogSync, DiskFailurePolicy};
use env::Rng;

/// Nodes of a ring.
const NODES: (u64, u64) = (3, 6);
/// Replicas that a data centre has of a key at most.
const REPLICAS_MAX: usize = 3;
/// How long clients work while things go wrong, in milliseconds.
const TROUBLE_MILLIS: (u64, u64) = (18_000, 32_000);

/// How long new operations begin in a ring that changes, in milliseconds.
const CHANGES_MILLIS: (u64, u64) = (20_000, 50_000);
/// How long repairs begin in a ring that is repaired, in milliseconds.
const REPAIRS_MILLIS: (u64, u64) = (70_000, 130_000);
/// Nodes that may join a ring that changes.
const SPARES: usize = 2;

/// Where a node is, and how large.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its data centre: 0 or 1.
    pub center: usize,
    /// Its rack.
    pub rack: u64,
    /// Its shards.
    pub shards: usize,
    /// Its virtual nodes.
    pub tokens: u64,
}

/// What a seed decides.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The nodes; the first of each data centre is a seed.
    pub nodes: Vec<Place>,
    /// Replicas in each data centre.
    pub replicas: Vec<usize>,
    /// When an acknowledgement is given: never before it is durable, so that what was acknowledged
    /// survives.
    pub sync: CommitLogSync,
    /// `speculative_retry` of the tables.
    pub speculative_retry: &'static str,
    /// Are hints kept?
    pub hints: bool,
    /// Do clocks jump?
    pub clocks_jump: bool,
    /// Nodes that are down at once at most.
    pub down_max: usize,
    /// `disk_failure_policy`.
    pub disk_policy: DiskFailurePolicy,
    /// `commit_failure_policy`.
    pub commit_policy: CommitFailurePolicy,
    /// How long things go wrong.
    pub trouble: Duration,
    /// Does every node start anew before the end?
    pub restarts_all: bool,
    /// Settings of all nodes.
    pub settings: Vec<String>,
    /// So many of the nodes begin the ring; the others may join it.
    pub begin_with: usize,
    /// Do machines fail beside those that die for good?
    pub is_harmed: bool,
}

impl Plan {
    /// The plan that follows from a seed.
    pub fn new(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x7269_6e67);
        let count = rng.between(NODES.0, NODES.1) as usize;
        let centers = if rng.one_in(2) { 2 } else { 1 };
        let far = if centers == 2 { rng.between(1, count as u64 / 2) as usize } else { 0 };
        let node = |at: usize| Place {
            center: usize::from(at >= count - far),
            rack: rng.below(2),
            shards: rng.between(1, 2) as usize,
            tokens: rng.between(1, 4),
        };
        let nodes: Vec<Place> = (0..count).map(node).collect();
        let replicas: Vec<usize> = (0..centers)
            .map(|center| nodes.iter().filter(|node| node.center == center).count())
            .map(|nodes| nodes.min(REPLICAS_MAX))
            .collect();
        let sync = match rng.one_in(2) {
            true => CommitLogSync::Batch,
            false => {
                CommitLogSync::Group { window: Duration::from_micros(rng.between(500, 15_000)) }
            }
        };
        let minority = (count - 1) / 2;
        Self {
            replicas,
            sync,
            speculative_retry: ["NEVER", "20ms", "99p", "ALWAYS"][rng.below(4) as usize],
            hints: !rng.one_in(4),
            clocks_jump: !rng.one_in(3),
            down_max: if rng.one_in(4) { count - 1 } else { minority },
            disk_policy: match rng.one_in(2) {
                true => DiskFailurePolicy::Die,
                false => DiskFailurePolicy::Stop,
            },
            commit_policy: match rng.one_in(2) {
                true => CommitFailurePolicy::Die,
                false => CommitFailurePolicy::Stop,
            },
            trouble: Duration::from_millis(rng.between(TROUBLE_MILLIS.0, TROUBLE_MILLIS.1)),
            restarts_all: rng.one_in(3),
            settings: Vec::new(),
            begin_with: count,
            is_harmed: true,
            nodes,
        }
    }

    /// The plan of a ring that changes: one data centre, one to three replicas, and nodes that may
    /// join.
    pub fn elastic(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x656c_6173);
        let replicas = [1, 2, 3, 3][rng.below(4) as usize];
        let begin_with = replicas.max(2) + 1;
        let tokens = if rng.one_in(2) { 1 } else { rng.between(2, 4) };
        let node = |_| Place { center: 0, rack: 0, shards: 1 + usize::from(rng.one_in(4)), tokens };
        let nodes: Vec<Place> = (0..begin_with + SPARES).map(node).collect();
        let settings = [
            "dynamic_snitch=false",
            "streaming_keep_alive_period=5s",
            "internode_streaming_tcp_user_timeout=10s",
        ];
        Self {
            nodes,
            replicas: vec![replicas],
            sync: CommitLogSync::Batch,
            speculative_retry: "NEVER",
            hints: true,
            clocks_jump: false,
            down_max: 1,
            disk_policy: DiskFailurePolicy::Die,
            commit_policy: CommitFailurePolicy::Die,
            trouble: Duration::from_millis(rng.between(CHANGES_MILLIS.0, CHANGES_MILLIS.1)),
            restarts_all: false,
            settings: settings.map(str::to_owned).to_vec(),
            begin_with,
            is_harmed: !rng.one_in(4),
        }
    }

    /// The plan of a ring that is repaired: three nodes or four, two replicas or three, and nobody
    /// who keeps what they miss.
    pub fn repair(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x7265_7061_6972);
        let replicas = if rng.one_in(3) { 2 } else { 3 };
        let count = if rng.one_in(4) { 4 } else { 3 };
        let tokens = rng.between(1, 2);
        let node = |_| Place { center: 0, rack: 0, shards: 1 + usize::from(rng.one_in(4)), tokens };
        let settings = [
            "dynamic_snitch=false",
            "streaming_keep_alive_period=5s",
            "internode_streaming_tcp_user_timeout=10s",
            "repair_request_timeout=8s",
        ];
        Self {
            nodes: (0..count).map(node).collect(),
            replicas: vec![replicas],
            sync: CommitLogSync::Batch,
            speculative_retry: "NEVER",
            hints: false,
            clocks_jump: false,
            down_max: 1,
            disk_policy: DiskFailurePolicy::Die,
            commit_policy: CommitFailurePolicy::Die,
            trouble: Duration::from_millis(rng.between(REPAIRS_MILLIS.0, REPAIRS_MILLIS.1)),
            restarts_all: false,
            settings: settings.map(str::to_owned).to_vec(),
            begin_with: count,
            is_harmed: !rng.one_in(6),
        }
    }

    /// The replication of the keyspace, in CQL.
    pub fn replication(&self) -> String {
        let each = self.replicas.iter().enumerate();
        let each: String = each.map(|(at, count)| format!(", '{}': {count}", center(at))).collect();
        format!("{{'class': 'NetworkTopologyStrategy'{each}}}")
    }

    /// Is a node a seed?
    pub fn is_seed(&self, node: usize) -> bool {
        let center = self.nodes.get(node).map(|place| place.center);
        self.nodes.iter().position(|place| Some(place.center) == center) == Some(node)
    }
}

/// The name of a data centre.
pub fn center(at: usize) -> String {
    format!("dc{}", at + 1)
}
