//! `cargo xtask test`: every check of the project in stages, each with a budget of time and a count of what passed.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::peer::{ORACLE_HEAP, Peer};
use crate::{drivers, oracle, tidy};

/// What a stage found.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Why something could not be checked at all; counts as a failure.
    problems: Vec<String>,
}

struct Stage {
    name: &'static str,
    what: &'static str,
    budget_minutes: u64,
    run: fn() -> Outcome<Tally>,
}

/// Stages that run only when named: Helenus does not pass them yet, or not yet in the time there is.
const ONLY_WHEN_NAMED: [&str; 3] = ["drivers", "cqlsh", "simulation"];

const STAGES: &[Stage] = &[
    Stage { name: "tidy", what: "rules of the tree", budget_minutes: 1, run: tidy },
    Stage { name: "fmt", what: "rustfmt", budget_minutes: 1, run: fmt },
    Stage { name: "clippy", what: "clippy, warnings are errors", budget_minutes: 6, run: clippy },
    Stage {
        name: "unit",
        what: "cargo test --workspace; the oracle's own tests",
        budget_minutes: 8,
        run: unit,
    },
    Stage { name: "build", what: "the node, released", budget_minutes: 8, run: build },
    Stage {
        name: "golden",
        what: "the corpus against recorded answers of Cassandra",
        budget_minutes: 2,
        run: golden,
    },
    Stage {
        name: "drivers",
        what: "python, node, go, java and rust drivers",
        budget_minutes: 4,
        run: drivers,
    },
    Stage { name: "cqlsh", what: "cqlsh on both servers, compared", budget_minutes: 3, run: cqlsh },
    Stage {
        name: "simulation",
        what: "seeded clusters in one process",
        budget_minutes: 8,
        run: simulation,
    },
];

/// Addresses of the servers that stages start.
const OURS: &str = "127.0.0.31";
const THEIRS: &str = "127.0.0.32";

/// `test [--list] [STAGE...]`
pub fn run(args: &[String]) -> Outcome {
    if args.iter().any(|a| a == "--list") {
        for s in STAGES {
            let named = if ONLY_WHEN_NAMED.contains(&s.name) { " (only when named)" } else { "" };
            println!("{:<12}{:>3} min  {}{named}", s.name, s.budget_minutes, s.what);
        }
        return Ok(());
    }
    for name in args {
        if !STAGES.iter().any(|s| s.name == name) {
            return Err(format!("no stage `{name}`; `test --list` names them").into());
        }
    }
    let mut table = Vec::new();
    let (mut passed, mut failed) = (0, 0);
    let wanted = |stage: &&Stage| match args {
        [] => !ONLY_WHEN_NAMED.contains(&stage.name),
        names => names.iter().any(|name| name == stage.name),
    };
    for stage in STAGES.iter().filter(wanted) {
        println!("== {}: {}", stage.name, stage.what);
        let start = Instant::now();
        let mut tally = (stage.run)()
            .unwrap_or_else(|e| Tally { problems: vec![e.to_string()], ..Tally::default() });
        for problem in &tally.problems {
            println!("{}: {problem}", stage.name);
        }
        tally.failed = tally.failed.max(tally.problems.len());
        passed += tally.passed;
        failed += tally.failed;
        table.push(line(stage, start.elapsed(), &tally));
    }
    println!("\n{:<12}{:>9}{:>9}{:>9}{:>9}", "stage", "time", "budget", "passed", "failed");
    for line in table {
        println!("{line}");
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { Ok(()) } else { Err("not everything passed".into()) }
}

fn line(stage: &Stage, took: Duration, tally: &Tally) -> String {
    let budget = Duration::from_secs(stage.budget_minutes * 60);
    format!(
        "{:<12}{:>8.1}s{:>7}min{:>9}{:>9}{}",
        stage.name,
        took.as_secs_f64(),
        stage.budget_minutes,
        tally.passed,
        tally.failed,
        if took > budget { "  over budget" } else { "" }
    )
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args).current_dir(machine::root());
    command
}

/// One check that passes or fails as a whole.
fn single(done: Outcome) -> Tally {
    match done {
        Ok(()) => Tally { passed: 1, ..Tally::default() },
        Err(e) => Tally { failed: 1, problems: vec![e.to_string()], ..Tally::default() },
    }
}

fn tidy() -> Outcome<Tally> {
    let report = tidy::check()?;
    Ok(Tally { passed: report.files, failed: report.problems.len(), problems: report.problems })
}

fn fmt() -> Outcome<Tally> {
    Ok(single(machine::run(&mut cargo(&["fmt", "--all", "--check"]))))
}

fn clippy() -> Outcome<Tally> {
    Ok(single(machine::run(&mut cargo(&[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))))
}

fn unit() -> Outcome<Tally> {
    let mut tally = cargo_test(&["test", "--workspace", "--no-fail-fast"])?;
    let folder = machine::root().join("conformance/oracle");
    let python = single(machine::run(
        Command::new("python3").args(["-m", "unittest", "discover", "-q"]).arg(folder),
    ));
    tally.passed += python.passed;
    tally.failed += python.failed;
    tally.problems.extend(python.problems);
    Ok(tally)
}

fn build() -> Outcome<Tally> {
    Ok(single(node::build()))
}

/// Sums up the `test result:` lines.
fn cargo_test(args: &[&str]) -> Outcome<Tally> {
    let (done, text) = machine::output(&mut cargo(args))?;
    let mut tally = Tally::default();
    for line in text.lines().filter_map(|l| l.strip_prefix("test result: ")) {
        tally.passed += number_before(line, " passed");
        tally.failed += number_before(line, " failed");
    }
    if !done && tally.failed == 0 {
        tally.problems.push("cargo test failed to build or to run".to_owned());
    }
    Ok(tally)
}

/// The number that stands right before `word`.
fn number_before(line: &str, word: &str) -> usize {
    let head = line.split(word).next().unwrap_or_default();
    head.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// `N statements compared (...), M differ, ...` of the corpus runner.
fn statements(command: &mut Command) -> Outcome<Tally> {
    let (done, text) = machine::output(command)?;
    let last = text.lines().rev().find(|l| l.contains(" statements compared")).unwrap_or_default();
    let all = number_before(last, " statements compared");
    let different = number_before(last, " differ,");
    let mut tally =
        Tally { passed: all.saturating_sub(different), failed: different, problems: Vec::new() };
    if (!done && different == 0) || all == 0 {
        tally.problems.push("the corpus did not run to its end".to_owned());
    }
    Ok(tally)
}

fn golden() -> Outcome<Tally> {
    machine::need(&["python3"])?;
    node::build()?;
    let node = Node::start("golden", OURS)?;
    let known = machine::root().join(oracle::KNOWN_DIFFERENCES);
    statements(oracle::command().args(["--golden", &node.ip, "--known"]).arg(known))
}

fn drivers() -> Outcome<Tally> {
    node::build()?;
    let node = Node::start("drivers", OURS)?;
    let mut tally = Tally::default();
    for name in drivers::NAMES {
        match drivers::scenario(name, &format!("{}:9042", node.ip)) {
            Ok((done, passed)) => {
                tally.passed += passed;
                if !done {
                    tally.problems.push(format!("{name} failed after {passed} scenarios"));
                }
            }
            Err(e) => tally.problems.push(format!("{name}: {e}")),
        }
    }
    Ok(tally)
}

fn cqlsh() -> Outcome<Tally> {
    machine::need(&["python3", "java", "mvn", "bash"])?;
    node::build()?;
    let node = Node::start("cqlsh-helenus", OURS)?;
    let peer = Peer::start("cqlsh-cassandra", THEIRS, ORACLE_HEAP)?;
    Ok(single(machine::run(oracle::cqlsh_command()?.args([&node.ip, &peer.ip]))))
}

fn simulation() -> Outcome<Tally> {
    if !machine::root().join("crates/sim").exists() {
        return Err("there is no simulator in this tree yet (crates/sim)".into());
    }
    cargo_test(&["test", "--profile", "sim", "--package", "sim"])
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn reads_counts_out_of_summary_lines() {
        let line = "ok. 12 passed; 3 failed; 0 ignored";
        assert_eq!(number_before(line, " passed"), 12);
        assert_eq!(number_before(line, " failed"), 3);
        let line = "3798 statements compared (5000 answers), 7 differ, 2 differ in the wording of an error only";
        assert_eq!(number_before(line, " statements compared"), 3798);
        assert_eq!(number_before(line, " differ,"), 7);
        assert_eq!(number_before("nothing", " differ,"), 0);
    }
}
