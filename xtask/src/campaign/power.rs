//! `cargo xtask campaign power`: kills and power cuts of real nodes (`crates/powercut`), long or
//! short.

use std::path::Path;
use std::process::Command;

use crate::machine::{self, Outcome};
use crate::programs;

/// Where campaigns are recorded.
const REPORT: &str = "docs/campaigns/power.md";
/// A disk in memory, where there is one: thousands of restarts go faster on it.
const MEMORY: &str = "/dev/shm";

/// Options of the short form, which every `cargo xtask test` runs.
const SHORT: [&str; 10] =
    ["--cuts", "12", "--cuts-per-run", "12", "--kills", "2", "--load", "1000", "--seed", "1"];

/// The program and the node that it kills, built with every assertion on.
fn command() -> Outcome<Command> {
    let (node, powercut) = (programs::checked("helenus")?, programs::checked("powercut")?);
    let name = format!("helenus-power-{}", std::process::id());
    let memory = Path::new(MEMORY);
    let images = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let data = powercut.with_file_name(&name);
    let mut command = Command::new(powercut);
    command.arg("--node").arg(node);
    command.arg("--dir").arg(data);
    command.arg("--images").arg(images.join(name));
    Ok(command)
}

/// What `git` says, in one line.
fn git(args: &[&str]) -> Outcome<String> {
    let output = Command::new("git").args(args).current_dir(machine::root()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// `campaign power [--cuts N] [--kills N] [--seed N] ...`: recorded under `docs/campaigns/`.
pub fn campaign(args: &[String]) -> Outcome {
    let report = machine::root().join(REPORT);
    let commit = git(&["log", "-1", "--format=%cs %h"])?;
    let changed = if git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        ""
    } else {
        " with changes"
    };
    machine::run(
        command()?
            .arg("--report")
            .arg(report)
            .args(["--commit", &format!("{commit}{changed}")])
            .args(args),
    )
}

/// The short form: (succeeded, what it printed).
pub fn short() -> Outcome<(bool, String)> {
    machine::output(command()?.args(SHORT))
}
