//! `cargo xtask campaign NAME`: the long runs with new seeds. The simulator's are its own program; this starts it.
//! `power` is another one: see [`power`].

use std::process::Command;

use crate::machine::{self, Outcome};
use crate::power;

/// `campaign NAME [OPTIONS]`: everything but `power` is handed to the simulator's `campaign` binary.
pub fn run(args: &[String]) -> Outcome {
    if args.is_empty() {
        return Err("which campaign? campaign NAME [OPTIONS]".into());
    }
    if let Some(("power", rest)) = args.split_first().map(|(name, rest)| (name.as_str(), rest)) {
        return power::campaign(rest);
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
