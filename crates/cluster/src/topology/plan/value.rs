//! What a plan says.

use ring::Chance;
use types::{Token, TokenRange};

use super::estimate::Rate;
use super::odds::KeyspaceOdds;

/// Which change is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanRequest {
    /// Nodes join, one after the other.
    Add(NewNodes),
    /// A node leaves: this one, or the one of an address or host ID.
    Decommission(Option<String>),
    /// A node that is dead is removed, by its host ID.
    Remove(String),
    /// This node goes to another token.
    Move(Token),
}

/// Nodes that are to join; what is not said is as with this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewNodes {
    /// How many.
    pub count: u32,
    /// Where.
    pub data_center: Option<String>,
    /// In which rack; those of the data centre in turn, if it is not said.
    pub rack: Option<String>,
    /// `num_tokens` of each.
    pub num_tokens: Option<u32>,
}

/// A plan.
#[derive(Clone, Debug, Default)]
pub struct MovePlan {
    /// What is planned.
    pub title: String,
    /// Why the operation would be refused now.
    pub refusals: Vec<String>,
    /// What of the plan is not certain.
    pub notes: Vec<String>,
    /// Nodes with new tokens, in the order in which they get them.
    pub tokens: Vec<PlannedTokens>,
    /// What nodes replicate, by keyspaces of one replication.
    pub shares: Vec<PlannedShares>,
    /// What moves.
    pub streams: Vec<PlannedStream>,
    /// How long it takes; none if nothing is known of rates.
    pub seconds: Option<f64>,
    /// What that is computed from.
    pub rate: Option<Rate>,
    /// What keyspaces withstand, before and after.
    pub odds: Vec<KeyspaceOdds>,
}

/// Tokens of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTokens {
    /// The node.
    pub node: String,
    /// Its data centre.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// In their order.
    pub tokens: Vec<Token>,
    /// Did chance have a part in them? Then it will have others.
    pub are_drawn: bool,
}

/// What nodes replicate of keyspaces of one replication.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedShares {
    /// The keyspaces.
    pub keyspaces: Vec<String>,
    /// By node.
    pub nodes: Vec<NodeShare>,
}

/// What a node replicates, in parts of the ring; none where it is no member.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeShare {
    /// The node.
    pub node: String,
    /// Its data centre.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Now.
    pub before: Option<f64>,
    /// Once all is done.
    pub after: Option<f64>,
}

/// What one node sends to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStream {
    /// In which step: nodes join one after the other.
    pub step: usize,
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// Of which keyspace.
    pub keyspace: String,
    /// What.
    pub ranges: Vec<TokenRange>,
    /// About so many bytes.
    pub bytes: u64,
}

/// What keyspaces withstand, in the ring of now and in one with another number of tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct FailurePlan {
    /// The chances.
    pub odds: Vec<KeyspaceOdds>,
    /// What is to be known of them.
    pub notes: Vec<String>,
}

/// Is any of these not exact?
pub(super) fn are_drawn<'a>(mut of: impl Iterator<Item = &'a KeyspaceOdds>) -> bool {
    let is_drawn = |chance: &Option<Chance>| chance.is_some_and(|chance| !chance.is_exact);
    of.any(|odds| odds.rows.iter().any(|row| row.chances.iter().any(is_drawn)))
}
