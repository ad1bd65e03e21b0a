//! A node of one of the systems, alone, with the same settings in both.

use std::path::{Path, PathBuf};

use super::Plan;
use super::System;
use super::client::Client;
use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::peer::Peer;

/// The address of whichever runs.
const ADDRESS: &str = "127.0.0.47";
/// Requests in flight.
pub const DEPTH: &str = "32";

/// What a node is started with.
pub struct Start<'a> {
    /// Of its folder.
    pub name: &'a str,
    /// A JVM's heap, and what a Helenus may take.
    pub memory: &'a str,
    /// Keys of `cassandra.yaml` and their values.
    pub settings: &'a [(&'a str, &'a str)],
    /// Those of Helenus alone, as `key=value`.
    pub ours: &'a [&'a str],
    /// The list of processes of the control group that it is in.
    pub group: Option<&'a Path>,
    /// Does it start on what is in its folder?
    pub is_again: bool,
}

/// One that runs; it stops when this value goes.
pub struct Server {
    running: Running,
    dir: PathBuf,
}

enum Running {
    Node(Node),
    Peer(Peer),
}

/// Where a node of that name has its data.
pub fn folder(name: &str) -> PathBuf {
    machine::cache().join("run").join(name)
}

impl Server {
    pub fn start(system: System, start: &Start<'_>) -> Outcome<Self> {
        let Start { name, memory, settings, ours, group, is_again } = start;
        let running = match system {
            System::Helenus => {
                let budget = format!("memory_budget={memory}iB");
                let pairs: Vec<String> =
                    settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let mut all = vec![budget.as_str()];
                all.extend(ours.iter());
                all.extend(pairs.iter().map(String::as_str));
                Running::Node(match (group, is_again) {
                    (Some(group), _) => Node::start_again_in(name, ADDRESS, &all, group)?,
                    (None, true) => Node::start_again(name, ADDRESS, &all)?,
                    (None, false) => Node::start_with(name, ADDRESS, &all)?,
                })
            }
            System::Cassandra => {
                let lines: String =
                    settings.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
                let more = [("EXTRA_YAML", Path::new(&lines))];
                Running::Peer(match (group, is_again) {
                    (Some(group), _) => Peer::start_again_in(name, ADDRESS, memory, &more, group)?,
                    (None, true) => Peer::start_again_with(name, ADDRESS, memory, &more)?,
                    (None, false) => Peer::start_with(name, ADDRESS, memory, &more)?,
                })
            }
        };
        Ok(Self { running, dir: folder(name) })
    }

    pub fn pid(&self) -> Outcome<u32> {
        match &self.running {
            Running::Node(node) => Ok(node.pid()),
            Running::Peer(peer) => peer.pid(),
        }
    }

    /// The operator's client: a verb without words.
    pub fn nodetool(&self, verb: &str) -> Outcome {
        match &self.running {
            Running::Node(_) => machine::run(node::nodetool(&self.dir.join("data")).arg(verb)),
            Running::Peer(peer) => peer.nodetool(verb).map(drop),
        }
    }

    /// A client of it, with so many requests in flight.
    pub fn client(&self, plan: &Plan) -> Outcome<Client> {
        let words = ["point", ADDRESS, "--depth", DEPTH, "--connections", "8"];
        let words = [&words[..], &["--shard-aware", "false"]].concat();
        Ok(Client::new(plan, &words, vec![self.pid()?]))
    }
}
