//! `campaign oracle [--seed N] [--rounds N]`: the whole corpus and freshly seeded generated
//! statements on a Helenus and on a Cassandra that runs under JaCoCo, compared; then how much of
//! Cassandra's CQL that made run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::oracle;
use crate::peer::{self, ORACLE_HEAP, Peer};

/// Addresses of the two servers.
const OURS: &str = "127.0.0.33";
const THEIRS: &str = "127.0.0.34";
/// Seeds that one campaign draws unless told otherwise.
const ROUNDS: u64 = 2;

/// Generated files that know no chance: once is enough.
const SEEDLESS: [&str; 2] = ["gen_literals.cql", "gen_paging.cql"];

struct Options {
    seed: u64,
    rounds: u64,
}

/// `campaign oracle [--seed N] [--rounds N]`
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
        let mut generated = generate(seed, &folder.join(seed.to_string()))?;
        if seed > options.seed {
            generated.retain(|file| !SEEDLESS.iter().any(|name| file.ends_with(name)));
        }
        files.extend(generated);
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
    record(&options, &summary, &lines)?;
    match (done, enough) {
        (true, true) => Ok(()),
        (false, _) => Err("answers differ".into()),
        (true, false) => Err("too few lines of Cassandra's were run".into()),
    }
}

fn parse(args: &[String]) -> Outcome<Options> {
    let mut options = Options { seed: super::drawn()?, rounds: ROUNDS };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number =
            || -> Outcome<u64> { Ok(args.next().ok_or("a number is missing")?.parse()?) };
        match arg.as_str() {
            "--seed" => options.seed = number()?,
            "--rounds" => options.rounds = number()?,
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

/// Leaves what was found under `docs/campaigns/`.
fn record(options: &Options, summary: &str, coverage: &str) -> Outcome {
    let (seed, rounds) = (options.seed, options.rounds);
    let totals = summary.lines().filter(|line| {
        line.contains("statements compared")
            || line.contains("left out")
            || line.contains("known differences")
    });
    let text = format!(
        "The corpus by topic and {rounds} times the generated part, seeds {seed} to {}; commit {}.\n\
         Again: `cargo xtask campaign oracle --seed {seed} --rounds {rounds}`.\n\n```\n{}\n\n{coverage}```\n",
        seed + rounds - 1,
        super::commit()?,
        totals.collect::<Vec<_>>().join("\n"),
    );
    super::record(&format!("oracle-{seed}"), &text)?;
    Ok(())
}
