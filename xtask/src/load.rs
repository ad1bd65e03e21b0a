//! The project's own load generator, `bench/load`: built beside the scenario of the driver that it
//! uses, with which it shares what is compiled.

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
    Ok(program())
}

/// Where it is once it was built.
pub fn program() -> PathBuf {
    drivers::rust_target().join("release/load")
}

/// Builds it as its tests are, which takes less long: the program.
pub fn build_soon() -> Outcome<PathBuf> {
    machine::run(cargo("build").arg("--quiet"))?;
    Ok(drivers::rust_target().join("debug/load"))
}

/// Formats it.
pub fn fmt() -> Command {
    cargo("fmt")
}

/// Its own tests, built as the scenario of the driver is.
pub fn tests() -> Command {
    cargo("test")
}

/// A figure of a line of JSON that it printed.
pub fn figure(line: &str, name: &str) -> Outcome<f64> {
    let rest = line.split(&format!("\"{name}\": ")).nth(1);
    let rest = rest.ok_or_else(|| format!("no {name} in `{line}`"))?;
    Ok(rest.split([',', '}']).next().unwrap_or_default().trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_have_names() {
        let line = "{\"operations\": 12, \"p99\": 3.5, \"p99.9\": 7}";
        assert_eq!(figure(line, "p99").expect("it is there"), 3.5);
        assert_eq!(figure(line, "p99.9").expect("it is there"), 7.0);
        assert!(figure(line, "p50").is_err());
    }
}
