//! Replication of a keyspace: strategy class and options, as stored and as understood.

use std::collections::BTreeMap;

/// Package of the strategies that Cassandra comes with.
pub(crate) const LOCATOR: &str = "org.apache.cassandra.locator.";

/// A count of replicas: `3`, or `3/1` where the last one is transient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCount {
    /// Replicas in all.
    pub all: u32,
    /// Those among them that are transient (`locator.ReplicationFactor`).
    pub transient: u32,
}

impl ReplicaCount {
    /// Replicas that keep what they are sent.
    pub fn full(self) -> u32 {
        self.all.saturating_sub(self.transient)
    }

    /// Reads `3` or `3/1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (all, transient) = match text.split_once('/') {
            Some((all, transient)) => (all.parse().ok()?, transient.parse().ok()?),
            None => (text.parse().ok()?, 0),
        };
        (transient <= all).then_some(Self { all, transient })
    }
}

/// Where replicas are placed, as understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Each node for itself (`LocalStrategy`).
    Local,
    /// The next nodes round the ring (`SimpleStrategy`).
    Simple(ReplicaCount),
    /// So many in each datacenter, on different racks (`NetworkTopologyStrategy`).
    NetworkTopology(BTreeMap<String, ReplicaCount>),
    /// Every node (`EverywhereStrategy`).
    Everywhere,
    /// `MetaStrategy` of 6.0: kept and described.
    Meta,
    /// A class that is none of these: kept and described, not served.
    Custom,
}

/// Replication of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// The class's full Java name.
    pub class: String,
    /// The options, verbatim, without the class.
    pub options: BTreeMap<String, String>,
    /// What both mean.
    pub strategy: Strategy,
}

impl Replication {
    /// Understands a class's full Java name and options. Never fails, for rows come from peers:
    /// counts that are no numbers read as absent, unknown classes as [`Strategy::Custom`].
    pub fn new(class: impl Into<String>, options: BTreeMap<String, String>) -> Self {
        let class = class.into();
        let count = |v: &String| ReplicaCount::parse(v).unwrap_or_default();
        let strategy = match class.strip_prefix(LOCATOR) {
            Some("LocalStrategy") => Strategy::Local,
            Some("SimpleStrategy") => {
                Strategy::Simple(options.get("replication_factor").map(count).unwrap_or_default())
            }
            Some("NetworkTopologyStrategy") => Strategy::NetworkTopology(
                options
                    .iter()
                    .filter(|(dc, _)| *dc != "replication_factor")
                    .map(|(dc, v)| (dc.clone(), count(v)))
                    .collect(),
            ),
            Some("EverywhereStrategy") => Strategy::Everywhere,
            Some("MetaStrategy") => Strategy::Meta,
            _ => Strategy::Custom,
        };
        Self { class, options, strategy }
    }

    /// `LocalStrategy`.
    pub fn local() -> Self {
        Self::new(format!("{LOCATOR}LocalStrategy"), BTreeMap::new())
    }

    /// `SimpleStrategy` with so many replicas.
    pub fn simple(replicas: u32) -> Self {
        let options = [("replication_factor".to_owned(), replicas.to_string())].into();
        Self::new(format!("{LOCATOR}SimpleStrategy"), options)
    }

    /// From column `replication` of `system_schema.keyspaces`: the options and `class`.
    pub fn from_map(mut map: BTreeMap<String, String>) -> Self {
        let class = map.remove("class").unwrap_or_default();
        Self::new(class, map)
    }

    /// As column `replication` of `system_schema.keyspaces` has it.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut map = self.options.clone();
        map.insert("class".to_owned(), self.class.clone());
        map
    }

    /// Does any replica keep data only while others are down?
    pub fn has_transient_replicas(&self) -> bool {
        match &self.strategy {
            Strategy::Simple(count) => count.transient > 0,
            Strategy::NetworkTopology(counts) => counts.values().any(|c| c.transient > 0),
            _ => false,
        }
    }
}
