//! What a running node knows of its ring.

/// A node of the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingNode {
    /// Its address.
    pub address: String,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// How many tokens it has.
    pub tokens: u64,
    /// Is it up?
    pub is_up: bool,
    /// Its version of the schema, if it tells one.
    pub schema: Option<String>,
    /// Its release.
    pub release: String,
}

/// How often a keyspace is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copies {
    /// By the next nodes round the ring, wherever they are (`SimpleStrategy`).
    Anywhere(u64),
    /// In each data center so often (`NetworkTopologyStrategy`).
    ByCenter(Vec<(String, u64)>),
}

/// A keyspace that is replicated.
#[derive(Clone, Debug, PartialEq)]
pub struct RingKeyspace {
    /// Its name.
    pub name: String,
    /// How often it is stored.
    pub copies: Copies,
    /// Of each node, in their order, the share of the keyspace that it stores.
    pub shares: Vec<f64>,
}

/// A ring as a node of it sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RingFacts {
    /// The nodes that have tokens.
    pub nodes: Vec<RingNode>,
    /// The keyspaces, but those that each node has for itself.
    pub keyspaces: Vec<RingKeyspace>,
}
