//! What is tried: rings, and how they change.

use std::fmt;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Cassandra of the release.
    J,
    /// A Helenus.
    H,
}

use At::{Another, Same};
use Kind::{H, J};
use Operation::{Bootstrap, Decommission, LoadSSTables, Move, Rebuild};

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == J { "Cassandra" } else { "Helenus" })
    }
}

/// A place in the ring, from 1 on; the first node is the seed of all.
pub type Place = usize;

/// Where a node that replaces another one listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Another,
    Same,
}

/// How the ring changes.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A new node takes its part.
    Bootstrap(Kind),
    /// A node hands its data to the others and goes.
    Decommission(Place),
    /// A node dies, and another one is told to remove it.
    RemoveNode { dead: Place, by: Place },
    /// A node dies, and a new one takes its tokens.
    Replace { dead: Place, by: Kind, at: At },
    /// A node takes another token; each node has one.
    Move(Place),
    /// A node alone in its data centre fetches what it is now a replica of.
    Rebuild(Place),
    /// The SSTables of a node, loaded into the ring by Cassandra's sstableloader.
    LoadSSTables { of: Place },
}

/// One of them.
pub struct Scenario {
    pub name: &'static str,
    /// The nodes that the ring starts with.
    pub ring: &'static [Kind],
    pub operation: Operation,
    /// What `nodetool status` must show of the node that changes, on another node of each kind.
    pub stages: &'static [&'static str],
}

const fn entry(
    name: &'static str,
    ring: &'static [Kind],
    operation: Operation,
    stages: &'static [&'static str],
) -> Scenario {
    Scenario { name, ring, operation, stages }
}

/// Rings to begin with.
const JJH: &[Kind] = &[J, J, H];
const JHH: &[Kind] = &[J, H, H];
const HHJ: &[Kind] = &[H, H, J];
const HHH: &[Kind] = &[H, H, H];
const JJJ: &[Kind] = &[J, J, J];
const JJHH: &[Kind] = &[J, J, H, H];
const HHHJ: &[Kind] = &[H, H, H, J];
const JJJH: &[Kind] = &[J, J, J, H];
const JJJJ: &[Kind] = &[J, J, J, J];

/// Stages.
const NONE: &[&str] = &[];
const UJ: &[&str] = &["UJ"];
const UL: &[&str] = &["UL"];
const UM: &[&str] = &["UM"];
const DN: &[&str] = &["DN"];
const DN_UJ: &[&str] = &["DN", "UJ"];

/// All. Those of Cassandra alone are there to compare with.
#[rustfmt::skip]
pub const SCENARIOS: &[Scenario] = &[
    entry("bootstrap-cassandra", JHH, Bootstrap(J), UJ),
    entry("bootstrap-cassandra-among-helenus", HHH, Bootstrap(J), UJ),
    entry("decommission-cassandra", JJHH, Decommission(2), UL),
    entry("decommission-last-cassandra", HHHJ, Decommission(4), UL),
    entry("decommission-among-cassandra", JJJJ, Decommission(4), UL),
    entry("removenode-cassandra", JJHH, remove(2, 1), DN),
    entry("removenode-helenus", JJHH, remove(4, 1), DN),
    entry("removenode-among-cassandra", JJJJ, remove(4, 1), DN),
    entry("replace-cassandra-by-cassandra", JJH, replace(2, J, Another), DN_UJ),
    entry("replace-cassandra-by-cassandra-in-place", JJH, replace(2, J, Same), DN),
    entry("replace-helenus-by-cassandra", JHH, replace(3, J, Another), DN_UJ),
    entry("replace-helenus-by-cassandra-in-place", JHH, replace(3, J, Same), DN),
    entry("replace-among-cassandra", JJJ, replace(2, J, Another), DN_UJ),
    entry("move-cassandra", JJHH, Move(2), UM),
    entry("rebuild-cassandra", HHJ, Rebuild(3), NONE),
    entry("rebuild-helenus", JHH, Rebuild(3), NONE),
    entry("sstableloader", JHH, LoadSSTables { of: 1 }, NONE),
    entry("sstableloader-of-helenus", HHH, LoadSSTables { of: 1 }, NONE),

    entry("bootstrap-helenus", JJH, Bootstrap(H), UJ),
    entry("bootstrap-first-helenus", JJJ, Bootstrap(H), UJ),
    entry("bootstrap-helenus-among-helenus", HHH, Bootstrap(H), UJ),
    entry("replace-cassandra-by-helenus", JJH, replace(2, H, Another), DN_UJ),
    entry("replace-cassandra-by-helenus-in-place", JJH, replace(2, H, Same), DN),
    entry("replace-helenus-by-helenus", JHH, replace(3, H, Another), DN_UJ),
    entry("replace-helenus-by-helenus-in-place", JHH, replace(3, H, Same), DN),
    entry("decommission-helenus", JJHH, Decommission(4), UL),
    entry("decommission-last-helenus", JJJH, Decommission(4), UL),
    entry("removenode-cassandra-by-helenus", JJHH, remove(2, 3), DN),
    entry("removenode-helenus-by-helenus", JJHH, remove(4, 3), DN),
    entry("move-helenus", JJHH, Move(4), UM),
];

const fn replace(dead: Place, by: Kind, at: At) -> Operation {
    Operation::Replace { dead, by, at }
}

const fn remove(dead: Place, by: Place) -> Operation {
    Operation::RemoveNode { dead, by }
}

impl Scenario {
    /// The ring as one line.
    pub fn ring_text(&self) -> String {
        self.ring.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join(" ")
    }

    /// What is done, as one line.
    pub fn text(&self) -> String {
        let kind = |place: Place| self.ring.get(place - 1).copied().unwrap_or(J);
        match self.operation {
            Bootstrap(new) => format!("a {new} bootstraps"),
            Decommission(place) => format!("a {} decommissions", kind(place)),
            Operation::RemoveNode { dead, by } => {
                format!("a dead {} is removed by a {}", kind(dead), kind(by))
            }
            Operation::Replace { dead, by, at } => {
                let at = if at == At::Same { "the same" } else { "another" };
                format!("a dead {} is replaced by a {by} at {at} address", kind(dead))
            }
            Operation::Move(place) => format!("a {} moves", kind(place)),
            Operation::Rebuild(place) => format!("a {} rebuilds from another DC", kind(place)),
            Operation::LoadSSTables { of } => format!("SSTables of a {} are loaded", kind(of)),
        }
    }

    /// Who dies in it.
    pub fn dead(&self) -> Option<Place> {
        match self.operation {
            Operation::RemoveNode { dead, .. } | Operation::Replace { dead, .. } => Some(dead),
            _ => None,
        }
    }

    /// A node of the ring that the operation is about.
    pub fn subject(&self) -> Option<Place> {
        match self.operation {
            Operation::Decommission(place) | Operation::Move(place) | Operation::Rebuild(place) => {
                Some(place)
            }
            _ => self.dead(),
        }
    }

    /// Who comes.
    pub fn comes(&self) -> Option<Kind> {
        match self.operation {
            Operation::Bootstrap(kind) | Operation::Replace { by: kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// Tokens of a node.
    pub fn tokens(&self) -> usize {
        match self.operation {
            Operation::Move(_) => 1,
            _ => 4,
        }
    }

    /// The data centre of a place.
    pub fn center(&self, place: Place) -> &'static str {
        match self.operation {
            Operation::Rebuild(alone) if alone == place => "datacenter2",
            _ => "datacenter1",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_name_nodes_that_are_there() {
        for scenario in SCENARIOS {
            let places = scenario.subject().into_iter().chain(match scenario.operation {
                Operation::RemoveNode { by, .. } => Some(by),
                Operation::LoadSSTables { of } => Some(of),
                _ => None,
            });
            for place in places {
                assert!((1..=scenario.ring.len()).contains(&place), "{}", scenario.name);
            }
            // the seed stays
            assert_ne!(scenario.subject(), Some(1), "{}", scenario.name);
            let same_name = SCENARIOS.iter().filter(|other| other.name == scenario.name);
            assert_eq!(same_name.count(), 1, "{}", scenario.name);
        }
    }
}
