//! How a ring changes: what is done to which node.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::machine::Outcome;
use crate::members::{self, End, Member};
use crate::peer;

use super::load::{self, FACTORS, Load};
use super::node::{self, Entry};
use super::scenario::{At, Operation, Place, Scenario};
use super::stages;

/// How long an operation may take, in seconds.
const LIMIT_SECONDS: &str = "150";
/// The keyspace that each node of a ring of three has whole, and its table.
const LOADED: (&str, &str) = ("elastic_3", "bulk");

/// A ring about to change.
pub struct Change<'a> {
    pub scenario: &'a Scenario,
    pub release: &'a str,
    pub members: &'a [Member],
    /// Who comes, and is not started yet.
    pub newcomer: Option<&'a Member>,
}

impl Change<'_> {
    /// Who comes into a ring, before it does.
    pub fn newcomer(scenario: &Scenario) -> Outcome<Option<Member>> {
        let Some(kind) = scenario.comes() else { return Ok(None) };
        let place = scenario.ring.len() + 1;
        let ip = match scenario.operation {
            Operation::Replace { dead, at: At::Same, .. } => node::address(dead)?,
            _ => node::address(place)?,
        };
        Ok(Some(node::member(scenario, place, kind, ip)))
    }

    fn member(&self, place: Place) -> Outcome<&Member> {
        Ok(self.members.get(place - 1).ok_or("no such node")?)
    }

    /// Does it, and waits until it is done.
    pub fn make(&self, load: &mut Load) -> Outcome {
        match self.scenario.operation {
            Operation::Bootstrap(_) => self.start(None),
            Operation::Replace { dead, .. } => {
                self.kill(dead)?;
                self.start(Some(self.member(dead)?.ip.clone()))
            }
            Operation::Decommission(place) => tell(self.member(place)?, &["decommission"]),
            Operation::RemoveNode { dead, by } => {
                let by = self.member(by)?;
                let id = stages::host_id(by, &self.member(dead)?.ip)?;
                self.kill(dead)?;
                tell(by, &["removenode", &id])
            }
            Operation::Move(place) => {
                let token = node::token_between(self.members.len()).to_string();
                tell(self.member(place)?, &["move", &token])
            }
            Operation::Rebuild(place) => {
                for (number, factor) in FACTORS.iter().enumerate() {
                    let number = (number + 1).to_string();
                    load.must(&["replicate", &number, &load::across(*factor)])?;
                }
                tell(self.member(place)?, &["rebuild", self.scenario.center(1)])
            }
            Operation::LoadSSTables { of } => self.load_sstables(self.member(of)?, load),
        }
    }

    fn start(&self, replaces: Option<String>) -> Outcome {
        let newcomer = self.newcomer.ok_or("nobody comes")?;
        let entry = Entry::Later { tokens: self.scenario.tokens(), replaces };
        node::start(newcomer, entry, &self.member(1)?.ip, self.release)
    }

    /// Kills a node, and waits until all others see it down.
    fn kill(&self, place: Place) -> Outcome {
        let dead = self.member(place)?;
        dead.end(End::Killed)?;
        let others: Vec<_> = self.members.iter().filter(|one| one.dir != dead.dir).collect();
        let is_down = |status: &stages::Status| status.get(&dead.ip).is_some_and(|s| s == "DN");
        stages::until(&others, &format!("{} down", dead.ip), is_down)
    }

    /// The table of a node that has it whole goes, and comes again by its SSTables.
    fn load_sstables(&self, of: &Member, load: &mut Load) -> Outcome {
        let (keyspace, table) = LOADED;
        tell(of, &["flush", keyspace, table])?;
        let staged = members::home().join("staged").join(keyspace).join(table);
        fs::create_dir_all(&staged)?;
        for file in fs::read_dir(folder(of)?)?.filter_map(Result::ok) {
            if file.file_type()?.is_file() {
                fs::copy(file.path(), staged.join(file.file_name()))?;
            }
        }
        load.must(&["truncate", "3"])?;
        let hosts: Vec<_> = self.members.iter().map(|member| member.ip.as_str()).collect();
        let mut loader = peer::script();
        loader.env("CASSANDRA_VERSION", self.release);
        loader.args(["sstableloader", "-d", &hosts.join(",")]).arg(&staged);
        within_limit(&loader)
    }
}

/// Where a node has the table that is loaded.
fn folder(of: &Member) -> Outcome<PathBuf> {
    let (keyspace, table) = LOADED;
    let mut folders = fs::read_dir(of.dir.join("data/data").join(keyspace))?.filter_map(Result::ok);
    let is_it = |name: &str| name.starts_with(&format!("{table}-"));
    let found = folders.find(|entry| is_it(&entry.file_name().to_string_lossy()));
    Ok(found.ok_or_else(|| format!("{} has no {keyspace}.{table}", of.ip))?.path())
}

/// Lets the operator's client of a node do something.
fn tell(member: &Member, words: &[&str]) -> Outcome {
    let mut tool = member.tool();
    within_limit(tool.args(words))
}

fn within_limit(command: &Command) -> Outcome {
    let mut limited = Command::new("timeout");
    limited.arg(LIMIT_SECONDS).arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output()?;
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let text = text.concat();
    println!("{text}");
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?} ended with {}: {}", output.status, last(&text)).into()),
    }
}

fn last(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}
