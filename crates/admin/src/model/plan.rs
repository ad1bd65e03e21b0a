//! What a change of the ring would move, and what keyspaces withstand.

use serde::{Deserialize, Serialize};

/// The change that is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanChange {
    /// Nodes join.
    Add(NewNodes),
    /// A node leaves.
    Decommission {
        /// Its address or host ID; none for this one.
        node: Option<String>,
    },
    /// A node that is dead is removed.
    RemoveNode {
        /// Its host ID.
        host: String,
    },
    /// This node goes to another token.
    Move {
        /// The token.
        token: String,
    },
}

/// Nodes that are to join; what is not said is as with the node that is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewNodes {
    /// How many.
    pub count: u32,
    /// Their data center.
    pub data_center: Option<String>,
    /// Their rack; those of the data center in turn, if it is not said.
    pub rack: Option<String>,
    /// `num_tokens` of each.
    pub num_tokens: Option<u32>,
}

/// What fails: up to so many at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Nodes.
    pub nodes: u32,
    /// Racks.
    pub racks: u32,
    /// With which other number of tokens the ring is compared; one is chosen, if none is said.
    pub num_tokens: Option<u32>,
}

/// For `plan add`, `decommission`, `removenode` and `move`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MovePlan {
    /// What is planned.
    pub title: String,
    /// Why it would be refused now.
    pub refusals: Vec<String>,
    /// What of the plan is not certain.
    pub notes: Vec<String>,
    /// Nodes that get tokens, in their order.
    pub tokens: Vec<PlannedTokens>,
    /// What nodes replicate.
    pub ownership: Vec<PlannedOwnership>,
    /// What moves.
    pub streams: Vec<PlannedStream>,
    /// About so many bytes move.
    pub bytes: u64,
    /// And for so long; none if nobody knows how fast.
    pub seconds: Option<f64>,
    /// How fast a node sends.
    pub rate: PlannedRate,
    /// What keyspaces withstand, now and after.
    pub failures: Vec<FailureOdds>,
}

/// How fast a node sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedRate {
    /// As the last time, in bytes a second.
    MeasuredBytesPerSecond(u64),
    /// As fast as it may, in bytes a second.
    LimitBytesPerSecond(u64),
    /// Nobody knows.
    #[default]
    Unknown,
}

/// A node and the tokens that it would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTokens {
    /// Its address, or `new-1`.
    pub node: String,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// In their order.
    pub tokens: Vec<String>,
    /// Did chance have a part in them? Then it will have others.
    pub drawn: bool,
}

/// What nodes replicate of keyspaces of one replication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedOwnership {
    /// The keyspaces.
    pub keyspaces: Vec<String>,
    /// Are all of them the system's?
    pub system: bool,
    /// By node.
    pub nodes: Vec<PlannedShare>,
}

/// What a node replicates: 1 is all of the ring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedShare {
    /// Its address, or `new-1`.
    pub node: String,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Now; none if it is no member.
    pub before_share: Option<f64>,
    /// Once all is done.
    pub after_share: Option<f64>,
}

/// What a node sends to another of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStream {
    /// In which step: nodes join one after the other.
    pub step: u64,
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// The keyspace.
    pub keyspace: String,
    /// Its ranges: `(1,2]`.
    pub ranges: Vec<String>,
    /// About so many.
    pub bytes: u64,
}

/// For `plan failures`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailurePlan {
    /// What keyspaces withstand, with this number of tokens and with another.
    pub failures: Vec<FailureOdds>,
    /// What is to be known of it.
    pub notes: Vec<String>,
}

/// What keyspaces of one replication withstand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureOdds {
    /// The keyspaces.
    pub keyspaces: Vec<String>,
    /// Are all of them the system's?
    pub system: bool,
    /// The rings that are compared.
    pub rings: Vec<String>,
    /// The chances.
    pub rows: Vec<FailureRow>,
}

/// The chance that some range lacks something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureRow {
    /// What fails: nodes or racks.
    pub unit: FailingUnit,
    /// How many of them, at the same time.
    pub failed: u64,
    /// What is missing then: `QUORUM`, `LOCAL_QUORUM of dc1`, or `all replicas`.
    pub missing: String,
    /// By ring; none where there are not so many.
    pub chances: Vec<Option<FailureChance>>,
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailingUnit {
    /// Single nodes.
    Nodes,
    /// Racks with all their nodes.
    Racks,
}

/// A chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureChance {
    /// From 0 to 1.
    pub share: f64,
    /// Was it counted? If not, choices were drawn.
    pub exact: bool,
}
