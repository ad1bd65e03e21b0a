//! `cargo xtask bench doctor`: the effects that `helenus doctor` cites, measured: read-ahead, file
//! systems under the commit log, replicas, sizes of values, data centres that are far apart. It
//! measures; what the doctor then says is not written here.

mod client;
mod commit_log;
mod disk;
mod distance;
mod plot;
mod read_ahead;
mod replicas;
mod report;
mod server;
mod values;

use super::scale::System;
use crate::load;
use crate::machine::{self, Outcome};
use crate::node;

pub const HELP: &str = "\
cargo xtask bench doctor [--only NAME,...] [--systems helenus,cassandra] [--short]
  the effects that `helenus doctor` cites (docs/doctor.md), on Helenus and Cassandra 5.0.9, in turn:
    read-ahead   8, 128 and 8,192 KB, reads of rows that do not fit into memory
    commit-log   on ext4 and xfs, uncompressed and LZ4, synced periodically; group and batch on ext4
    replicas     1, 3 and 5 in a ring of five (fewer if memory is short) at ONE and LOCAL_QUORUM
    values       100 B, 1 KB, 10 KB, 100 KB, 1 MB: reads and updates
    distance     1, 20 and 80 ms (there and back) between two data centres at LOCAL_QUORUM and
                 EACH_QUORUM, and how long until the other one has a write
  some two hours in all
  short: with little data and in seconds, 15 to 30 minutes in all: to see that it works. Its figures
  say nothing.
  both systems have the same client, settings and memory; all share the cores of this machine
  wants root (loop devices, mounts, a control group, network namespaces), java, mvn, python3,
  losetup, fallocate, mkfs.ext4, ip and /dev/net/tun; without mkfs.xfs there are no rows of xfs;
  30 GB of disk, 3 GB if short. All that is mounted or made goes when it ends, also after an error.
  What a run that was killed left goes when the next begins, but for a Helenus that still runs.
  tables, plots and raw results are kept under bench/results/doctor-*";

/// An experiment by its name.
type Experiment = (&'static str, fn(&Plan) -> Outcome);

const ALL: [Experiment; 5] = [
    ("read-ahead", read_ahead::run),
    ("commit-log", commit_log::run),
    ("replicas", replicas::run),
    ("values", values::run),
    ("distance", distance::run),
];

/// What all experiments are told.
struct Plan {
    is_short: bool,
    systems: Vec<System>,
    stamp: u64,
}

impl Plan {
    /// One of two, by how long it may take.
    fn of<T>(&self, full: T, short: T) -> T {
        if self.is_short { short } else { full }
    }

    /// How long requests are made before those that are measured, in seconds: a JVM compiles.
    fn warm(&self) -> u64 {
        self.of(20, 3)
    }

    /// How long each measurement takes, in seconds.
    fn seconds(&self) -> u64 {
        self.of(20, 4)
    }
}

/// Those that a list names.
fn named(list: &str) -> Outcome<Vec<Experiment>> {
    let named = |word: &str| ALL.into_iter().find(|experiment| experiment.0 == word);
    let found: Option<Vec<Experiment>> = list.split(',').map(named).collect();
    found.ok_or_else(|| {
        let names = ALL.map(|experiment| experiment.0).join(", ");
        format!("{list}: not all of them are of {names}").into()
    })
}

fn parse(args: &[String]) -> Outcome<(Plan, Vec<Experiment>)> {
    let (short, rest): (Vec<String>, Vec<String>) =
        args.iter().cloned().partition(|arg| arg == "--short");
    let mut plan =
        Plan { is_short: !short.is_empty(), systems: System::ALL.to_vec(), stamp: super::stamp()? };
    let mut experiments = ALL.to_vec();
    for option in super::options(&rest) {
        match option? {
            ("--only", list) => experiments = named(list)?,
            ("--systems", list) => plan.systems = System::parse_all(list)?,
            (other, _) => return Err(format!("unknown option {other}\n{HELP}").into()),
        }
    }
    Ok((plan, experiments))
}

/// `bench doctor [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let (plan, experiments) = parse(args)?;
    machine::need(&["java", "mvn", "python3", "losetup", "fallocate", "mkfs.ext4", "ip"])?;
    node::build()?;
    node::build_nodetool()?;
    load::build()?;
    let mut failed = Vec::new();
    for (name, experiment) in experiments {
        println!("{name}");
        // what one cannot do here keeps none of the others from being done
        if let Err(e) = experiment(&plan) {
            eprintln!("{name}: {e}");
            failed.push(name);
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(format!("not measured to the end: {}", names.join(", ")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, parse};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_list_names_experiments() {
        let (plan, found) = parse(&words("--short --only values,replicas")).expect("both known");
        assert!(plan.is_short);
        assert_eq!(found.iter().map(|known| known.0).collect::<Vec<_>>(), ["values", "replicas"]);
        let (plan, found) = parse(&words("--systems helenus")).expect("one known");
        assert!(!plan.is_short && plan.systems.len() == 1 && found.len() == ALL.len());
        assert!(parse(&words("--only values,nothing")).is_err());
        assert!(parse(&words("--onlly values")).is_err());
    }
}
