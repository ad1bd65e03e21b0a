//! The systems that a benchmark compares, and a server of one of them.

use std::path::Path;

use crate::machine::Outcome;
use crate::node::{self, Node};
use crate::peer::Peer;

/// The address of whichever runs.
const ADDRESS: &str = "127.0.0.21";

/// Shards of Helenus: the client needs the other of the two cores that these benchmarks are for.
const SHARDS: &str = "shards=1";

/// Helenus takes its memory at the start, as a JVM does that runs with the options that Cassandra
/// ships (`AlwaysPreTouch`).
pub const PRETOUCH: &str = "memory_pretouch=true";

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Helenus,
    /// As it is shipped.
    Cassandra,
    /// With the settings of `cassandra_latest.yaml`.
    Latest,
}

impl System {
    /// All, in the order in which they take turns.
    pub const ALL: [Self; 3] = [Self::Helenus, Self::Cassandra, Self::Latest];

    /// Those that a list of their words names.
    pub fn parse_all(list: &str) -> Outcome<Vec<Self>> {
        let named = |word: &str| Self::ALL.into_iter().find(|system| system.word() == word);
        let systems: Option<Vec<Self>> = list.split(',').map(named).collect();
        systems.ok_or_else(|| {
            let words = Self::ALL.map(Self::word).join(", ");
            format!("{list}: not all of them are of {words}").into()
        })
    }

    /// Its word in options and names of files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Helenus => "helenus",
            Self::Cassandra => "cassandra",
            Self::Latest => "latest",
        }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Helenus => "Helenus",
            Self::Cassandra => "Cassandra",
            Self::Latest => "Cassandra latest",
        }
    }
}

/// One that runs with an empty data directory; it stops when this value goes.
pub struct Server {
    pub system: System,
    running: Running,
}

enum Running {
    Node(Node),
    Peer(Peer),
}

impl Server {
    /// Starts one; a JVM has so much heap, and Helenus the same as the memory that it may take.
    pub fn start(system: System, name: &str, heap: &str) -> Outcome<Self> {
        let name = format!("{name}-{}", system.word());
        let latest: &[(&str, &Path)] = match system {
            System::Latest => &[("LATEST", Path::new("1"))],
            System::Helenus | System::Cassandra => &[],
        };
        let running = match system {
            System::Helenus => {
                node::build()?;
                let budget = format!("memory_budget={heap}iB");
                Running::Node(Node::start_with(&name, ADDRESS, &[&budget, PRETOUCH, SHARDS])?)
            }
            System::Cassandra | System::Latest => {
                Running::Peer(Peer::start_with(&name, ADDRESS, heap, latest)?)
            }
        };
        Ok(Self { system, running })
    }

    /// Its address; the port is 9042.
    pub fn ip(&self) -> &str {
        match &self.running {
            Running::Node(node) => &node.ip,
            Running::Peer(peer) => &peer.ip,
        }
    }

    /// Its process.
    pub fn pid(&self) -> Outcome<u32> {
        match &self.running {
            Running::Node(node) => Ok(node.pid()),
            Running::Peer(peer) => peer.pid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::System;

    #[test]
    fn a_list_names_systems() {
        let named = System::parse_all("latest,helenus").expect("both are known");
        assert_eq!(named, [System::Latest, System::Helenus]);
        assert!(System::parse_all("helenus,scylla").is_err());
    }
}
