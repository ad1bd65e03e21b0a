//! `cargo xtask bench NAME`: what Helenus costs, beside Cassandra or by itself.

mod awake;
mod callgrind;
mod cold;
mod compaction;
mod fair;
pub mod insn;
mod io;
mod load;
mod memory;
mod point;
mod process;
mod ring;
mod socket;
mod stops;
mod systems;
mod tails;
mod ycsb;

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::machine::{self, Outcome};
use crate::node;

/// `bench NAME [OPTIONS]`: of the node as it is installed.
pub fn run(args: &[String]) -> Outcome {
    node::as_installed();
    match args.split_first() {
        Some((name, rest)) if name == "ycsb" => ycsb::run(rest),
        Some((name, rest)) if name == "tails" => tails::run(rest),
        Some((name, rest)) if name == "load" => load::run(rest),
        Some((name, rest)) if name == "cold" => cold::run(rest),
        Some((name, rest)) if name == "fair" => fair::run(rest),
        Some((name, rest)) if name == "compaction" => compaction::run(rest),
        Some((name, rest)) if name == "io" => io::run(rest),
        Some((name, rest)) if name == "ring" => ring::run(rest),
        Some((name, rest)) if name == "point" => point::run(rest),
        Some((name, rest)) if name == "insn" => insn::run(rest),
        _ => Err(
            "which benchmark? ycsb | tails | load | cold | fair | compaction | io | ring | point | insn, each with --help"
                .into(),
        ),
    }
}

/// Builds YCSB's client for CQL.
fn build_client() -> Outcome {
    machine::run(
        Command::new("mvn")
            .args(["-q", "-B", "-Dstyle.color=never", "package"])
            .current_dir(machine::root().join("bench/ycsb")),
    )
}

/// Seconds since the epoch, by which results of a run have a name.
fn stamp() -> Outcome<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// The folder of raw results.
fn results() -> Outcome<PathBuf> {
    let results = machine::root().join("bench/results");
    std::fs::create_dir_all(&results)?;
    Ok(results)
}
