//! The driver scenarios: each driver's own project under `conformance/drivers`, built and installed
//! into `.cache`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};

/// All scenarios, quickest to build first.
pub const NAMES: &[&str] = &["python", "node", "go", "java", "rust"];

/// What the server of the scenarios is started with: few enough tombstones that a scenario can
/// write too many.
pub const SETTINGS: &[&str] = &["tombstone_warn_threshold=100", "tombstone_failure_threshold=1000"];

/// What the slow server is started with: writes are acknowledged when the log is synced, most of
/// them after they timed out, and reads may not take long.
pub const SLOW_SETTINGS: &[&str] = &[
    "commitlog_sync=group",
    "commitlog_sync_group_window=300ms",
    "write_request_timeout=20ms",
    "read_request_timeout=200ms",
    "range_request_timeout=200ms",
];

/// `drivers HOST:PORT [NAME...]`
pub fn run(args: &[String]) -> Outcome {
    let (server, names) = args.split_first().ok_or("which server? drivers HOST:PORT [NAME...]")?;
    let names: Vec<&str> =
        if names.is_empty() { NAMES.to_vec() } else { names.iter().map(String::as_str).collect() };
    let mut failed = Vec::new();
    for name in names {
        match scenario(name, server, None) {
            Ok((true, passed)) => println!("{name}: {passed} scenarios passed"),
            Ok((false, passed)) => failed.push(format!("{name} failed after {passed} scenarios")),
            Err(e) => failed.push(format!("{name}: {e}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}

/// Builds one scenario and runs it, against a slow server of the same port too where there is one:
/// (succeeded, its `ok` lines).
pub fn scenario(name: &str, server: &str, slow: Option<&str>) -> Outcome<(bool, usize)> {
    let (host, port) = server.rsplit_once(':').unwrap_or((server, "9042"));
    let folder = machine::root().join("conformance/drivers").join(name);
    let built = machine::cache().join("drivers");
    std::fs::create_dir_all(&built)?;
    let mut command = match name {
        "python" => python(&folder)?,
        "java" => java(&folder, &built)?,
        "go" => go(&folder, &built)?,
        "node" => node(&folder, &built)?,
        "rust" => rust(&folder)?,
        other => return Err(format!("no scenario `{other}`; there are {}", NAMES.join(" ")).into()),
    };
    let (done, text) = machine::output(command.args([host, port]).args(slow))?;
    Ok((done, text.lines().filter(|l| l.starts_with("ok ")).count()))
}

fn python(folder: &Path) -> Outcome<Command> {
    let mut command = Command::new(machine::python()?);
    command.arg(folder.join("scenario.py"));
    Ok(command)
}

fn java(folder: &Path, built: &Path) -> Outcome<Command> {
    machine::need(&["java", "mvn"])?;
    machine::run(
        Command::new("mvn")
            .args(["-q", "-B", "-Dstyle.color=never", "package"])
            .current_dir(folder),
    )?;
    let mut classpath = built.join("java/classes").into_os_string();
    classpath.push(":");
    classpath.push(built.join("java/lib/*"));
    let mut command = Command::new("java");
    command
        .args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp"])
        .arg(classpath)
        .arg("helenus.Scenario");
    Ok(command)
}

fn go(folder: &Path, built: &Path) -> Outcome<Command> {
    machine::need(&["go"])?;
    let binary = built.join("go-scenario");
    machine::run(
        Command::new("go").args(["build", "-o"]).arg(&binary).arg(".").current_dir(folder),
    )?;
    Ok(Command::new(binary))
}

fn node(folder: &Path, built: &Path) -> Outcome<Command> {
    machine::need(&["node", "npm"])?;
    let place = built.join("node");
    let modules = place.join("node_modules");
    std::fs::create_dir_all(&place)?;
    let wanted = std::fs::read_to_string(folder.join("package.json"))?;
    if !std::fs::read_to_string(place.join("package.json")).is_ok_and(|have| have == wanted)
        || !modules.exists()
    {
        std::fs::write(place.join("package.json"), &wanted)?;
        machine::run(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund"])
                .current_dir(&place),
        )?;
    }
    let mut command = Command::new("node");
    command.arg(folder.join("scenario.js")).env("DRIVER_MODULES", modules);
    Ok(command)
}

/// Where all that uses the Rust driver is built.
pub fn rust_target() -> PathBuf {
    machine::cache().join("drivers/rust")
}

fn rust(folder: &Path) -> Outcome<Command> {
    machine::run(
        Command::new("cargo")
            .args(["build", "--quiet", "--manifest-path"])
            .arg(folder.join("Cargo.toml"))
            .env("CARGO_TARGET_DIR", rust_target()),
    )?;
    Ok(Command::new(rust_target().join("debug/driver-scenario")))
}
