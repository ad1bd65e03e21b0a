//! The clients of a scenario: `conformance/elastic/load.py`, which takes commands.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::machine::{self, Outcome};
use crate::members::Member;

use super::scenario::{Operation, Scenario};

/// The line that ends an answer.
const DONE: &str = "done";
/// Draws what the clients do.
const SEED: &str = "1";

/// Replicas of each keyspace.
pub const FACTORS: [usize; 3] = [1, 2, 3];

/// The clients, until this value goes.
pub struct Load {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Of the clients of one keyspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub requests: u64,
    /// Those of idempotent statements.
    pub failed: u64,
    /// Conditional writes, which a driver does not send again by itself.
    pub conditional: u64,
}

impl Load {
    /// Starts them, and waits until they have filled their tables.
    pub fn start(scenario: &Scenario, members: &[Member]) -> Outcome<Self> {
        let mut python = Command::new(machine::python()?);
        python.arg(machine::root().join("conformance/elastic/load.py"));
        // what has one replica goes with its node
        let may_lose = if scenario.dead().is_some() { "1" } else { "0" };
        python.args([SEED, may_lose]).args(FACTORS.map(|factor| first(scenario, factor)));
        python.arg("--").args(members.iter().map(|member| &member.ip));
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let commands = child.stdin.take().ok_or("no stdin")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut load = Self { child, commands, answers };
        load.answer()?;
        Ok(load)
    }

    /// The lines of an answer.
    fn answer(&mut self) -> Outcome<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(format!("the clients ended: {lines:?}").into());
            }
            match line.trim_end() {
                DONE => return Ok(lines),
                line => lines.push(line.to_owned()),
            }
        }
    }

    /// What is said to a command.
    pub fn ask(&mut self, words: &[&str]) -> Outcome<Vec<String>> {
        writeln!(self.commands, "{}", words.join(" "))?;
        self.answer()
    }

    /// The same for one where every line is a fault.
    pub fn must(&mut self, words: &[&str]) -> Outcome {
        let lines = self.ask(words)?;
        if lines.is_empty() { Ok(()) } else { Err(lines.join("; ").into()) }
    }

    /// Ends the requests: the figures of each keyspace, and all that is said.
    pub fn end(&mut self) -> Outcome<(Vec<Figures>, Vec<String>)> {
        let lines = self.ask(&["end"])?;
        Ok((lines.iter().filter_map(|line| figures(line)).collect(), lines))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // one that has ended is stopped
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `keyspace N requests N failed N conditional N`
fn figures(line: &str) -> Option<Figures> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["keyspace", _, "requests", all, "failed", failed, "conditional", conditional] = words[..]
    else {
        return None;
    };
    let number = |text: &str| text.parse().ok();
    Some(Figures {
        requests: number(all)?,
        failed: number(failed)?,
        conditional: number(conditional)?,
    })
}

/// How a keyspace that is to have so many replicas is replicated at first.
fn first(scenario: &Scenario, factor: usize) -> String {
    match scenario.operation {
        // the last replica is that of the other data centre
        Operation::Rebuild(_) => format!("datacenter1={}", (factor - 1).max(1)),
        _ => format!("datacenter1={factor}"),
    }
}

/// How it is replicated when there is another data centre.
pub fn across(factor: usize) -> String {
    match factor {
        1 => "datacenter1=1".to_owned(),
        _ => format!("datacenter1={},datacenter2=1", factor - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_figures() {
        let found =
            figures("keyspace 3 requests 120 failed 2 conditional 1").expect("it is a line");
        assert_eq!((found.requests, found.failed, found.conditional), (120, 2, 1));
        assert!(figures("elastic_3 failed").is_none());
    }
}
