//! `cargo xtask bench NAME`: what Helenus costs, beside Cassandra or by itself.

mod compaction;
mod insn;
mod ycsb;

use crate::machine::Outcome;

/// `bench NAME [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    match args.split_first() {
        Some((name, rest)) if name == "ycsb" => ycsb::run(rest),
        Some((name, rest)) if name == "compaction" => compaction::run(rest),
        Some((name, [])) if name == "insn" => insn::run(),
        _ => Err("which benchmark? ycsb [--help] | compaction [--help] | insn".into()),
    }
}
