//! The project's own load generator, `bench/load`: built beside the scenario of the driver that it uses, with which it shares what is
//! compiled.

use std::path::PathBuf;
use std::process::Command;

use crate::drivers;
use crate::machine::{self, Outcome};

/// `cargo VERB` of it.
fn cargo(verb: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .args([verb, "--manifest-path"])
        .arg(machine::root().join("bench/load/Cargo.toml"))
        .env("CARGO_TARGET_DIR", drivers::rust_target());
    cargo
}

/// Builds it, optimised: the program.
pub fn build() -> Outcome<PathBuf> {
    machine::run(cargo("build").args(["--quiet", "--release"]))?;
    Ok(drivers::rust_target().join("release/load"))
}

/// Formats it.
pub fn fmt() -> Command {
    cargo("fmt")
}

/// Its own tests, built as the scenario of the driver is.
pub fn tests() -> Command {
    cargo("test")
}
