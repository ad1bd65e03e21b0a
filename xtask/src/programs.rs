//! Programs of this workspace, built with every assertion on.

use std::path::PathBuf;
use std::process::Command;

use crate::machine::{self, Outcome};

/// The profile with every assertion on.
pub const CHECKED: &str = "checked";

/// Builds a program; where it is.
///
/// `--workspace`: what a program depends on has the features that all packages together ask for, as
/// in `cargo test --workspace`. With `--package` it would have fewer, and be built once more.
pub fn checked(name: &str) -> Outcome<PathBuf> {
    build(&["--bin", name])?;
    Ok(folder().join(name))
}

/// The same of an example.
pub fn checked_example(name: &str) -> Outcome<PathBuf> {
    build(&["--example", name])?;
    Ok(folder().join("examples").join(name))
}

fn build(what: &[&str]) -> Outcome {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--profile", CHECKED, "--workspace"]).args(what);
    machine::run(cargo.current_dir(machine::root()))
}

/// Where the programs are.
fn folder() -> PathBuf {
    machine::target().join(CHECKED)
}
