//! The load generator on both systems alike, and what the servers used meanwhile.

use std::cell::Cell;
use std::process::Command;
use std::time::Duration;

use super::Plan;
use crate::bench::process::Used;
use crate::load;
use crate::machine::{self, Outcome};

/// So many times as long are requests made before the first that are measured.
const FIRST_WARM: u64 = 3;

/// What it said of a measurement, and the CPU time of all nodes.
pub struct Found {
    pub said: String,
    cpu: Duration,
}

impl Found {
    pub fn per_second(&self) -> Outcome<f64> {
        load::figure(&self.said, "per_second")
    }

    /// A percentile of the latencies.
    pub fn ms(&self, name: &str) -> Outcome<f64> {
        Ok(load::figure(&self.said, name)? / 1e3)
    }

    pub fn operations(&self) -> Outcome<f64> {
        load::figure(&self.said, "operations")
    }

    pub fn failed(&self) -> Outcome<f64> {
        load::figure(&self.said, "failed")
    }

    /// Microseconds for each operation.
    pub fn cpu_us(&self) -> Outcome<f64> {
        Ok(self.cpu.as_secs_f64() * 1e6 / self.operations()?)
    }
}

/// One of some nodes.
pub struct Client {
    /// Verb, hosts, and what is the same of all measurements.
    words: Vec<String>,
    pids: Vec<u32>,
    /// In seconds: the first time, and from then on.
    warm: [u64; 2],
    is_warm: Cell<bool>,
    seconds: String,
}

impl Client {
    pub fn new(plan: &Plan, words: &[&str], pids: Vec<u32>) -> Self {
        Self {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            pids,
            warm: [plan.warm() * plan.of(FIRST_WARM, 1), plan.warm()],
            is_warm: Cell::new(false),
            seconds: plan.seconds().to_string(),
        }
    }

    /// Makes a table and its rows.
    pub fn fill(&self, more: &[&str]) -> Outcome {
        self.run(&[more, &["--load", "--warm", "0", "--seconds", "0.1"]].concat()).map(drop)
    }

    /// The same requests twice, of which the second ones count.
    pub fn measure(&self, more: &[&str]) -> Outcome<Found> {
        self.warm(more)?;
        self.run(&[more, &["--warm", "0", "--seconds", &self.seconds, "--seed", "2"]].concat())
    }

    /// Requests that do not count.
    pub fn warm(&self, more: &[&str]) -> Outcome<Found> {
        let warm = self.warm[usize::from(self.is_warm.replace(true))].to_string();
        self.run(&[more, &["--warm", "0", "--seconds", &warm]].concat())
    }

    /// Runs it as it is told.
    pub fn run(&self, more: &[&str]) -> Outcome<Found> {
        let before = self.used()?;
        let mut load = Command::new(load::program());
        let (_, text) = machine::output(load.args(&self.words).args(more))?;
        let cpu = self.used()?.saturating_sub(before);
        // it fails where a request did, which is a figure too
        let said = text.lines().last().filter(|line| line.starts_with('{'));
        let said = said.ok_or_else(|| format!("the client failed: {text}"))?.to_owned();
        Ok(Found { said, cpu })
    }

    fn used(&self) -> Outcome<Duration> {
        self.pids.iter().map(|pid| Ok(Used::of(*pid)?.cpu)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Found;

    #[test]
    fn figures_are_those_of_each_operation() {
        let said = "{\"operations\": 200, \"per_second\": 20.5, \"p99\": 1500, \"failed\": 3}";
        let found = Found { said: said.to_owned(), cpu: Duration::from_millis(10) };
        assert_eq!(found.cpu_us().expect("a figure"), 50.0);
        assert_eq!(found.ms("p99").expect("a figure"), 1.5);
        assert_eq!(found.failed().expect("a figure"), 3.0);
    }
}
