//! `cargo xtask campaign NAME`: the long runs with new seeds. What compares with a real Cassandra is here; the
//! simulator's are its own program, which this starts.

mod oracle;

use std::process::Command;

use crate::machine::{self, Outcome};

/// `campaign NAME [OPTIONS]`: what has no name here is handed to the simulator's `campaign` binary.
pub fn run(args: &[String]) -> Outcome {
    match args.split_first() {
        None => Err("which campaign? campaign NAME [OPTIONS]".into()),
        Some((name, rest)) if name == "oracle" => oracle::run(rest),
        Some(_) => simulator(args),
    }
}

fn simulator(args: &[String]) -> Outcome {
    machine::run(
        Command::new("cargo")
            .args(["run", "--profile", "sim", "--package", "sim", "--bin", "campaign", "--"])
            .args(args)
            .current_dir(machine::root()),
    )
}
