//! `cargo xtask bench NAME`: what Helenus costs, beside Cassandra or by itself.

mod awake;
mod callgrind;
mod cold;
mod compaction;
mod doctor;
mod fair;
pub mod insn;
mod io;
mod load;
mod memory;
mod point;
mod process;
mod ring;
mod scale;
mod socket;
mod stops;
mod systems;
mod tails;
mod thousand;
mod tokens;
mod ycsb;

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::machine::{self, Outcome};
use crate::node;

/// Its name, what it says of itself, and what it does with its options.
type Benchmark = (&'static str, &'static str, fn(&[String]) -> Outcome);

const ALL: [Benchmark; 16] = [
    ("ycsb", ycsb::HELP, ycsb::run),
    ("tails", tails::HELP, tails::run),
    ("load", load::HELP, load::run),
    ("cold", cold::HELP, cold::run),
    ("fair", fair::HELP, fair::run),
    ("compaction", compaction::HELP, compaction::run),
    ("io", io::HELP, io::run),
    ("ring", ring::HELP, ring::run),
    ("point", point::HELP, point::run),
    ("tokens", tokens::HELP, tokens::run),
    ("thousand", thousand::HELP, thousand::run),
    ("streams", scale::streams::HELP, scale::streams::run),
    ("joins", scale::joins::HELP, scale::joins::run),
    ("scaleout", scale::scaleout::HELP, scale::scaleout::run),
    ("doctor", doctor::HELP, doctor::run),
    ("insn", insn::HELP, insn::run),
];

/// `bench NAME [OPTIONS]`: of the node as it is installed.
pub fn run(args: &[String]) -> Outcome {
    node::as_installed();
    let named = args.split_first().and_then(|(name, rest)| {
        let known = ALL.iter().find(|known| known.0 == name)?;
        Some((known, rest))
    });
    let Some(((_, help, run), rest)) = named else {
        let names = ALL.map(|(name, ..)| name).join(" | ");
        return Err(format!("which benchmark? {names}, each with --help").into());
    };
    if rest.iter().any(|arg| arg == "--help") {
        println!("{help}");
        return Ok(());
    }
    run(rest)
}

/// Options that each have a value.
fn options(args: &[String]) -> impl Iterator<Item = Outcome<(&str, &str)>> {
    args.chunks(2).map(|option| match option {
        [name, value] => Ok((name.as_str(), value.as_str())),
        _ => Err(format!("{} wants a value", option.concat()).into()),
    })
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
