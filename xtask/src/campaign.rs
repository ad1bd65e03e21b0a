//! `cargo xtask campaign NAME`: the long runs with new seeds. The simulator's are its own program; this starts it.

use std::process::Command;

use crate::machine::{self, Outcome};
use crate::roundtrip;

/// `campaign NAME [OPTIONS]`: everything but `roundtrip` is handed to the simulator's `campaign` binary.
pub fn run(args: &[String]) -> Outcome {
    if args.is_empty() {
        return Err("which campaign? campaign NAME [OPTIONS]".into());
    }
    if args == ["roundtrip"] {
        return roundtrip::campaign();
    }
    if !machine::root().join("crates/sim").exists() {
        return Err("there is no simulator in this tree yet (crates/sim)".into());
    }
    machine::run(
        Command::new("cargo")
            .args(["run", "--profile", "sim", "--package", "sim", "--bin", "campaign", "--"])
            .args(args)
            .current_dir(machine::root()),
    )
}
