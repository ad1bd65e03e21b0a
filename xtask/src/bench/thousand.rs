//! `cargo xtask bench thousand`: what a large ring costs a node, by `bench/thousand`.

use std::process::Command;

use crate::machine::{self, Outcome};
use crate::programs;

pub const HELP: &str = "\
cargo xtask bench thousand [--nodes 1000]
  so many nodes gossip in one process: how long news take, CPU, memory and bytes of each node; what
  the ring costs to compute, and a newcomer's tokens to choose";

/// `bench thousand [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let mut nodes = "1000".to_owned();
    for option in super::options(args) {
        match option? {
            ("--nodes", value) => nodes = value.to_owned(),
            (other, _) => return Err(format!("unknown option {other}\n{HELP}").into()),
        }
    }
    machine::run(Command::new(programs::checked("thousand")?).arg(nodes))
}
