//! `cargo xtask campaign NAME`: the long runs, most of them with new seeds and recorded under `docs/campaigns/`.

pub mod fuzz;
pub mod hostile;
pub mod power;
mod roundtrip;
pub mod seeds;

use crate::machine::{self, Outcome};

const USAGE: &str = "campaign seeds|engine|conditions [FROM] [COUNT] | \
                     campaign seeds|engine|conditions --resume | \
                     campaign planted [BUG] | campaign power [OPTIONS] | campaign roundtrip | \
                     campaign fuzz [RUNS] [--seed N] | campaign hostile [SECONDS]";

/// `campaign NAME [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [kind @ ("seeds" | "engine" | "conditions"), ref rest @ ..] => seeds::run(kind, rest),
        ["planted", ..] => machine::run(seeds::simulator()?.args(args)),
        ["power", ..] => power::campaign(&args[1..]),
        ["fuzz", ref rest @ ..] => fuzz::campaign(rest),
        ["hostile", ref rest @ ..] => hostile::campaign(rest),
        ["roundtrip"] => roundtrip::campaign(),
        _ => Err(USAGE.into()),
    }
}
