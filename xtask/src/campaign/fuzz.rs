//! `cargo xtask campaign fuzz`: every parser of bytes or text from outside under libFuzzer
//! (`fuzz/`), with what it found interesting kept under `target/campaigns/fuzz`, and a record under
//! `docs/campaigns/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::commit;
use crate::machine::{self, Outcome};

/// Executions of a campaign, of all targets together.
const RUNS: u64 = 20_000_000;
/// Executions of each target in the short form.
const RUNS_SHORT: u64 = 8_000;
/// Targets, and the share of the executions that each gets.
const TARGETS: &[(&str, u64)] = &[
    ("frames", 4),
    ("segments", 4),
    ("messages", 4),
    ("internode", 4),
    ("payloads", 4),
    ("cql", 8),
    ("values", 4),
    ("json", 4),
    ("yaml", 1),
    ("sstable", 4),
    ("trie", 4),
    ("mutation", 4),
    ("commitlog", 4),
    ("hints", 2),
    ("schema", 4),
    ("streams", 4),
    ("repair", 4),
    ("trees", 4),
    ("operator", 2),
];
/// What libFuzzer needs to see where an input leads (`cargo fuzz` passes the same).
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Seconds that one input may take, MiB that the process may hold, MiB that one allocation may
/// have, bytes of an input.
const LIMITS: [&str; 4] =
    ["-timeout=5", "-rss_limit_mb=1024", "-malloc_limit_mb=64", "-max_len=4096"];

/// What one target came to.
struct Ran {
    target: &'static str,
    runs: u64,
    edges: u64,
    inputs: u64,
    seconds: u64,
    failed: bool,
}

/// `campaign fuzz [RUNS] [--seed N]`
pub fn campaign(words: &[&str]) -> Outcome {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    let (runs, seed) = match words {
        [] => (RUNS, drawn()?),
        [runs] => (number(runs)?, drawn()?),
        ["--seed", seed] => (RUNS, number(seed)?),
        [runs, "--seed", seed] => (number(runs)?, number(seed)?),
        _ => return Err(super::USAGE.into()),
    };
    let shares: u64 = TARGETS.iter().map(|(_, share)| share).sum();
    let ran = all("release", &|share| (runs * share).div_ceil(shares), seed)?;
    println!("recorded in {}", record(&ran, seed)?.display());
    verdict(&ran)
}

/// The short form: how many inputs were tried.
pub fn short() -> Outcome<usize> {
    let ran = all("quick", &|_| RUNS_SHORT, 1)?;
    verdict(&ran)?;
    Ok(ran.iter().map(|one| one.runs as usize).sum())
}

fn verdict(ran: &[Ran]) -> Outcome {
    let failed: Vec<_> = ran.iter().filter(|one| one.failed).map(|one| one.target).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}; the inputs lie in fuzz/found", failed.join(", ")).into()),
    }
}

/// A seed that nobody chose; libFuzzer takes 32 bits.
fn drawn() -> Outcome<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::from(now.subsec_nanos()).wrapping_add(now.as_secs()) & 0x7FFF_FFFF)
}

fn build(profile: &str) -> Outcome<PathBuf> {
    let target = machine::root().join("target/fuzz");
    let host = Command::new("rustc").args(["--print", "host-tuple"]).output()?;
    let host = String::from_utf8(host.stdout)?.trim().to_owned();
    let mut build = Command::new("cargo");
    // with a target named, build scripts and macros go without the coverage
    build.args(["build", "--quiet", "--profile", profile, "--locked", "--target", &host]);
    build.env("RUSTFLAGS", COVERAGE).env("CARGO_TARGET_DIR", &target);
    machine::run(build.current_dir(machine::root().join("fuzz")))?;
    Ok(target.join(host).join(profile).join("fuzz"))
}

fn all(profile: &str, runs: &dyn Fn(u64) -> u64, seed: u64) -> Outcome<Vec<Ran>> {
    let program = build(profile)?;
    let mut ran = Vec::new();
    for (target, share) in TARGETS {
        let one = run(&program, target, runs(*share), seed)?;
        println!(
            "{target:<10}{:>12} inputs tried{:>8} kept{:>8} edges{:>6} s{}",
            one.runs,
            one.inputs,
            one.edges,
            one.seconds,
            if one.failed { "  FAILED" } else { "" }
        );
        ran.push(one);
    }
    Ok(ran)
}

fn run(program: &Path, target: &'static str, runs: u64, seed: u64) -> Outcome<Ran> {
    let root = machine::root();
    let kept = root.join("target/campaigns/fuzz").join(target);
    std::fs::create_dir_all(&kept)?;
    if target == "cql" {
        statements(&kept)?;
    }
    let found = root.join("fuzz/found").join(target);
    std::fs::create_dir_all(&found)?;
    let mut command = Command::new(program);
    command.env("FUZZ_TARGET", target).args(LIMITS).arg("-print_final_stats=1");
    command.arg(format!("-runs={runs}")).arg(format!("-seed={seed}"));
    command.arg(format!("-artifact_prefix={}/", found.display()));
    command
        .args([&kept, &found])
        .args(Some(root.join("fuzz/seeds").join(target)).filter(|d| d.exists()));
    let started = Instant::now();
    let output = command.stdout(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let failed = !output.status.success();
    if failed {
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        println!("{}", lines[lines.len().saturating_sub(REPORT_LINES)..].join("\n"));
    }
    let last = |name: &str| {
        let value = text.lines().rev().find_map(|line| line.split_once(name));
        let number = value.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    };
    Ok(Ran {
        target,
        runs: last("stat::number_of_executed_units:"),
        edges: last(" cov: "),
        inputs: std::fs::read_dir(&kept)?.count() as u64,
        seconds: started.elapsed().as_secs(),
        failed,
    })
}

/// Lines of a failure's report that are shown.
const REPORT_LINES: usize = 60;

/// The statements of the corpus, to begin with.
fn statements(kept: &Path) -> Outcome {
    for entry in std::fs::read_dir(machine::root().join("conformance/corpus"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "cql") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (n, line) in std::fs::read_to_string(&path)?.lines().enumerate() {
            let statement = line.trim_end_matches(';');
            let file = kept.join(format!("{name}-{n}"));
            if !statement.is_empty() && !statement.starts_with("--") && !file.exists() {
                std::fs::write(file, statement)?;
            }
        }
    }
    Ok(())
}

fn record(ran: &[Ran], seed: u64) -> Outcome<PathBuf> {
    let output = Command::new("date").args(["-u", "+%F"]).output()?;
    let date = String::from_utf8(output.stdout)?.trim().to_owned();
    let mut text = format!(
        "# Fuzzing, {date}\n\n`cargo xtask campaign fuzz {} --seed {seed}` at {}.\n\n",
        ran.iter().map(|one| one.runs).sum::<u64>(),
        commit()?
    );
    text += "| target | inputs tried | kept | edges | seconds | |\n|---|---:|---:|---:|---:|---|\n";
    for one in ran {
        let end = if one.failed { "failed" } else { "" };
        let Ran { target, runs, inputs, edges, seconds, .. } = one;
        let _ = writeln!(text, "| {target} | {runs} | {inputs} | {edges} | {seconds} | {end} |");
    }
    let path = machine::root().join(format!("docs/campaigns/{date}-fuzz.md"));
    std::fs::write(&path, text)?;
    Ok(path)
}
