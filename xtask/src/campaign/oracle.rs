//! `campaign oracle [--seed N] [--rounds N] [--record]`: the whole corpus and freshly seeded generated statements on a
//! Helenus and on a Cassandra that runs under JaCoCo, compared; then how much of Cassandra's CQL that made run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::oracle;
use crate::peer::{self, ORACLE_HEAP, Peer};

/// Addresses of the two servers.
const OURS: &str = "127.0.0.33";
const THEIRS: &str = "127.0.0.34";
/// Seeds that one campaign draws unless told otherwise.
const ROUNDS: u64 = 2;
/// Where `--record` adds a line.
const RECORD: &str = "docs/campaigns/oracle.md";

struct Options {
    seed: u64,
    rounds: u64,
    record: bool,
}

/// `campaign oracle [--seed N] [--rounds N] [--record]`
pub fn run(args: &[String]) -> Outcome {
    let options = parse(args)?;
    machine::need(&["python3", "java", "mvn", "bash"])?;
    node::build()?;
    let folder = machine::cache().join("run/oracle-corpus");
    let _ = std::fs::remove_dir_all(&folder);
    let coverage = machine::cache().join("run/oracle.exec");
    let _ = std::fs::remove_file(&coverage);
    let mut files = topics()?;
    for seed in options.seed..options.seed + options.rounds {
        println!("seed {seed}");
        files.extend(generate(seed, &folder.join(seed.to_string()))?);
    }
    let (done, summary) = {
        let ours = Node::start("campaign-helenus", OURS)?;
        let theirs =
            Peer::start_with("campaign-cassandra", THEIRS, ORACLE_HEAP, &[("JACOCO", &coverage)])?;
        let known = machine::root().join(oracle::KNOWN_DIFFERENCES);
        machine::output(
            oracle::command().args([&ours.ip, &theirs.ip]).args(files).arg("--known").arg(known),
        )?
    };
    let (enough, lines) = machine::output(
        Command::new("python3")
            .arg(machine::root().join("conformance/oracle/coverage.py"))
            .arg(&coverage)
            .arg(peer::cache())
            .arg(peer::libraries()?),
    )?;
    println!("repeat with --seed {} --rounds {}", options.seed, options.rounds);
    if options.record {
        record(&options, &summary, &lines)?;
    }
    match (done, enough) {
        (true, true) => Ok(()),
        (false, _) => Err("answers differ".into()),
        (true, false) => Err("too few lines of Cassandra's were run".into()),
    }
}

fn parse(args: &[String]) -> Outcome<Options> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut options = Options { seed: now, rounds: ROUNDS, record: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number =
            || -> Outcome<u64> { Ok(args.next().ok_or("a number is missing")?.parse()?) };
        match arg.as_str() {
            "--seed" => options.seed = number()?,
            "--rounds" => options.rounds = number()?,
            "--record" => options.record = true,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}

/// The corpus files that were written by topic.
fn topics() -> Outcome<Vec<PathBuf>> {
    let mut files = statements_in(&machine::root().join("conformance/corpus"))?;
    files.retain(|file| !file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("gen_")));
    Ok(files)
}

/// Writes the generated files of a seed.
fn generate(seed: u64, folder: &Path) -> Outcome<Vec<PathBuf>> {
    machine::run(
        Command::new("python3")
            .arg(machine::root().join("conformance/generator/generate.py"))
            .args(["--seed", &seed.to_string(), "--out"])
            .arg(folder),
    )?;
    statements_in(folder)
}

fn statements_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "cql") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Adds what was found to the record: seeds, commit, counts.
fn record(options: &Options, summary: &str, coverage: &str) -> Outcome {
    let commit = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .current_dir(machine::root())
        .output()?;
    let last = |text: &str, what: &str| {
        text.lines().rev().find(|l| l.contains(what)).unwrap_or_default().trim().to_owned()
    };
    let share = last(coverage, "all ");
    let share = share.split_whitespace().nth(2).unwrap_or_default();
    let mut file = std::fs::OpenOptions::new().append(true).open(machine::root().join(RECORD))?;
    writeln!(
        file,
        "| {} | {}, {} rounds | {} | {share} |",
        String::from_utf8_lossy(&commit.stdout).trim(),
        options.seed,
        options.rounds,
        last(summary, " statements compared"),
    )?;
    Ok(())
}
