//! `cargo xtask test`: every check of the project in stages, each with a budget of time and a count
//! of what passed.

mod package;
mod simulation;
mod unit;

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::bench;
use crate::campaign::{
    files, forms, fuzz, hostile, power, repair as repaired, streams as streamed, tools as tried,
};
use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::{dist, door, drivers, load, oracle, programs, ring as mixed, tidy};

/// What a stage found.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// What failed, or could not be checked at all; each counts as a failure.
    problems: Vec<String>,
}

impl Tally {
    fn add(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.problems.extend(more.problems);
    }
}

struct Stage {
    name: &'static str,
    what: &'static str,
    budget_minutes: u64,
    run: fn() -> Outcome<Tally>,
}

const STAGES: &[Stage] = &[
    Stage { name: "tidy", what: "rules of the tree", budget_minutes: 1, run: tidy },
    Stage { name: "fmt", what: "rustfmt", budget_minutes: 1, run: fmt },
    Stage { name: "clippy", what: "clippy, warnings are errors", budget_minutes: 6, run: clippy },
    Stage {
        name: "unit",
        what: "cargo test --workspace; the own tests of the corpus's drivers",
        budget_minutes: 8,
        run: unit,
    },
    Stage { name: "build", what: "the node, as stages start it", budget_minutes: 8, run: build },
    Stage {
        name: "forms",
        what: "the corpus in other forms: pages, prepared, batches, JSON, shards, files, rings; functions that are not pure",
        budget_minutes: 5,
        run: in_other_forms,
    },
    Stage {
        name: "golden",
        what: "the corpus against recorded answers of Cassandra",
        budget_minutes: 2,
        run: golden,
    },
    Stage {
        name: "formats",
        what: "data directories of Cassandra with SSTables nb, oa and da: read, added to, compacted",
        budget_minutes: 2,
        run: formats,
    },
    Stage {
        name: "ring",
        what: "the corpus through both of a Cassandra and a Helenus in a ring, and through three Helenus, all replicas asked; TLS between nodes",
        budget_minutes: 7,
        run: ring,
    },
    Stage {
        name: "insn",
        what: "instructions and allocations of the hot paths against those recorded",
        budget_minutes: 14,
        run: insn,
    },
    Stage {
        name: "streams",
        what: "a Cassandra and two Helenus fetch SSTables from each other, whole and in parts",
        budget_minutes: 3,
        run: streams,
    },
    Stage {
        name: "repair",
        what: "replicas that differ in each way, repaired by both kinds of nodes",
        budget_minutes: 3,
        run: repair,
    },
    Stage {
        name: "drivers",
        what: "python, node, go, java and rust drivers; the load generator's own tests, and the load that `dist` compiles for",
        budget_minutes: 6,
        run: drivers,
    },
    Stage {
        name: "cqlsh",
        what: "the first start; cqlsh against Cassandra's recorded transcript",
        budget_minutes: 2,
        run: cqlsh,
    },
    Stage {
        name: "package",
        what: "packages but the image: made, installed, used; the image's entry point",
        budget_minutes: 1,
        run: package::run,
    },
    Stage {
        name: "roles",
        what: "logins, grants and TLS, and every statement under every grant as Cassandra answered",
        budget_minutes: 3,
        run: roles,
    },
    Stage {
        name: "hostile",
        what: "clients and nodes that mean harm: frames, messages and connections at both ports, with TLS and without",
        budget_minutes: 3,
        run: hostile,
    },
    Stage {
        name: "power",
        what: "kills and power cuts of real nodes",
        budget_minutes: 5,
        run: power,
    },
    Stage {
        name: "simulation",
        what: "seeded worlds, a few of them run twice, and planted bugs",
        budget_minutes: 8,
        run: simulation::run,
    },
    Stage {
        name: "fuzz",
        what: "every parser under libFuzzer, for a short while",
        budget_minutes: 4,
        run: fuzzing,
    },
    Stage {
        name: "tools",
        what: "ccm and Prometheus on the tarball; the first query of wheel, tarball",
        budget_minutes: 4,
        run: tools,
    },
];

/// Stages that go on beside those behind them, up to this one: client and node wait for each other
/// in turn, so that half of two cores would idle. They have addresses of their own; what counts
/// instructions steps back for others.
const BESIDE: [(&str, &str); 2] = [("forms", "ring"), ("insn", "power")];

/// Addresses of the servers that stages start.
const OURS: &str = "127.0.0.31";
const THEIRS: &str = "127.0.0.32";
const OURS_2: &str = "127.0.0.33";
const OURS_3: &str = "127.0.0.34";

/// `test [--list] [STAGE...]`
pub fn run(args: &[String]) -> Outcome {
    if args.iter().any(|a| a == "--list") {
        for s in STAGES {
            println!("{:<12}{:>3} min  {}", s.name, s.budget_minutes, s.what);
        }
        return Ok(());
    }
    for name in args {
        if !STAGES.iter().any(|s| s.name == name) {
            return Err(format!("no stage `{name}`; `test --list` names them").into());
        }
    }
    node::check_all();
    let (mut table, mut wrong) = (Vec::new(), Vec::new());
    let (mut passed, mut failed) = (0, 0);
    let wanted = |stage: &&Stage| match args {
        [] => true,
        names => names.iter().any(|name| name == stage.name),
    };
    thread::scope(|scope| {
        let mut add = |stage: &Stage, took: Duration, mut tally: Tally| {
            let named = tally.problems.iter().map(|problem| format!("{}: {problem}", stage.name));
            wrong.extend(named);
            tally.failed = tally.failed.max(tally.problems.len());
            passed += tally.passed;
            failed += tally.failed;
            table.push(line(stage, took, &tally));
        };
        let mut beside = Vec::new();
        for stage in STAGES.iter().filter(wanted) {
            println!("== {}: {}", stage.name, stage.what);
            if let Some((_, last)) = BESIDE.iter().find(|(name, _)| *name == stage.name) {
                beside.push((*last, stage, scope.spawn(|| timed(stage))));
                continue;
            }
            let (took, tally) = timed(stage);
            add(stage, took, tally);
            let ends = |(last, ..): &mut (&str, _, _)| *last == stage.name;
            for (_, stage, going) in beside.extract_if(.., ends) {
                let (took, tally) = going.join().unwrap_or_else(|_| panicked());
                add(stage, took, tally);
            }
        }
        for (_, stage, going) in beside {
            let (took, tally) = going.join().unwrap_or_else(|_| panicked());
            add(stage, took, tally);
        }
    });
    println!("\n{:<12}{:>9}{:>9}{:>9}{:>9}", "stage", "time", "budget", "passed", "failed");
    for line in table {
        println!("{line}");
    }
    // last of all: of a long output the end is what everybody sees
    wrong.iter().for_each(|problem| println!("{problem}"));
    println!("{passed} passed, {failed} failed");
    if failed == 0 { Ok(()) } else { Err("not everything passed".into()) }
}

/// Runs a stage. One that cannot be run has a problem.
fn timed(stage: &Stage) -> (Duration, Tally) {
    let start = Instant::now();
    let tally = (stage.run)()
        .unwrap_or_else(|e| Tally { problems: vec![e.to_string()], ..Tally::default() });
    (start.elapsed(), tally)
}

fn panicked() -> (Duration, Tally) {
    let problems = vec!["the stage panicked".to_owned()];
    (Duration::ZERO, Tally { problems, ..Tally::default() })
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
    let mut tally = single(machine::run(&mut cargo(&["fmt", "--all", "--check"])));
    tally.add(single(machine::run(load::fmt().arg("--check"))));
    Ok(tally)
}

fn clippy() -> Outcome<Tally> {
    Ok(single(machine::run(&mut cargo(&[
        "clippy",
        "--quiet",
        "--profile",
        // so that macros and build scripts are compiled once for all stages
        programs::CHECKED,
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))))
}

fn insn() -> Outcome<Tally> {
    let (passed, problems) = bench::insn::guard()?;
    Ok(Tally { passed, failed: problems.len(), problems })
}

fn unit() -> Outcome<Tally> {
    let words = ["test", "--workspace", "--profile", programs::CHECKED, "--no-fail-fast"];
    let mut tally = unit::run(&mut cargo(&words))?;
    for folder in ["conformance/oracle", "conformance/forms"] {
        let python = single(machine::run(
            Command::new("python3")
                .args(["-m", "unittest", "discover", "-q"])
                .arg(machine::root().join(folder)),
        ));
        tally.add(python);
    }
    Ok(tally)
}

fn build() -> Outcome<Tally> {
    Ok(single(node::build()))
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
    let (passed, problems) = (all.saturating_sub(different), oracle::different(&text));
    let mut tally = Tally { passed, failed: different, problems };
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
    let mut tally =
        statements(oracle::command().args(["--golden", &node.ip, "--known"]).arg(known))?;
    drop(node);
    for (setting, files) in WITH_SETTINGS {
        let node = Node::start_with("golden-settings", OURS, &[setting])?;
        let more = statements(oracle::command().args(["--golden", &node.ip]).args(*files))?;
        tally.add(more);
    }
    Ok(tally)
}

/// Each form of a statement counts as a check.
fn in_other_forms() -> Outcome<Tally> {
    let mut tally = Tally::default();
    for (done, text) in forms::short()? {
        let last = text.lines().rev().find(|l| l.contains(" statements compared")).unwrap_or("");
        let (all, differ) = (number_before(last, " forms,"), number_before(last, " differ,"));
        tally.passed += all.saturating_sub(differ);
        tally.failed += differ;
        tally.problems.extend(oracle::different(&text));
        if (!done && differ == 0) || all == 0 {
            tally.problems.push("the forms did not run to their end".to_owned());
        }
    }
    Ok(tally)
}

/// Each statement counts as a check, and so does what both nodes say of the ring.
fn ring() -> Outcome<Tally> {
    let found = mixed::run([OURS, OURS_2, OURS_3], THEIRS)?;
    let mut tally = Tally { passed: found.held, failed: 0, problems: found.problems };
    for line in &found.corpora {
        let (all, differ) =
            (number_before(line, " statements compared"), number_before(line, " differ,"));
        tally.passed += all.saturating_sub(differ);
        tally.failed += differ;
        if all == 0 {
            tally.problems.push("the corpus did not run to its end".to_owned());
        }
    }
    Ok(tally)
}

/// Each table that reads alike counts as a check, and each stream that is refused.
fn streams() -> Outcome<Tally> {
    let found = streamed::share()?;
    Ok(Tally { passed: found.tables + found.refused, failed: 0, problems: found.problems })
}

/// Each statement about replicas, previews and streams counts as a check.
fn repair() -> Outcome<Tally> {
    let found = repaired::share()?;
    Ok(Tally { passed: found.held, failed: 0, problems: found.problems })
}

/// Corpus files (`conformance/settings`) for a node with another setting than the default.
const WITH_SETTINGS: &[(&str, &[&str])] = &[
    ("dynamic_data_masking_enabled=true", &["masks"]),
    ("drop_compact_storage_enabled=true", &["compact_drop"]),
];

/// What is recorded (`conformance/formats`), what its tables' files are of, and whether what is
/// flushed is read from memory, as is the default, or from the files.
const FORMATS: [(&str, &str, bool); 3] =
    [("oa", "oa", false), ("da", "da", false), ("mixed", "da oa", true)];

/// Each answer counts as a check, and so do the formats of the files found.
fn formats() -> Outcome<Tally> {
    machine::need(&["python3"])?;
    node::build()?;
    node::build_nodetool()?;
    let mut tally = Tally::default();
    for (name, of, keeps_flushed) in FORMATS {
        let run = format!("formats-{name}");
        let data = machine::cache().join("run").join(&run).join("data");
        let _ = std::fs::remove_dir_all(&data);
        let script = |words: &[&str]| {
            let mut command = Command::new("python3");
            command.arg(machine::root().join("conformance/formats/formats.py")).args(words);
            machine::output(&mut command)
        };
        let here = data.display().to_string();
        let mut done = |words: &[&str], wanted: &str| -> Outcome {
            let (done, text) = script(words)?;
            let compared = number_before(&text, " answers compared");
            let differ = number_before(&text, " differ");
            tally.passed += compared.saturating_sub(differ) + usize::from(!wanted.is_empty());
            tally.failed += differ;
            if (!done && differ == 0) || (!wanted.is_empty() && text.trim() != wanted) {
                tally.problems.push(format!("{name}: {}: {}", words.join(" "), text.trim()));
            }
            Ok(())
        };
        done(&["unpack", name, &here], "")?;
        done(&["versions", &here], of)?;
        let keeps = format!("memtable_keeps_flushed={keeps_flushed}");
        let node = Node::start_again(&run, OURS, &["cluster_name=peer", &keeps])?;
        done(&["check", OURS], "")?;
        done(&["again", OURS], "")?;
        nodetool(&here, "flush")?;
        done(&["versions", &here], &sorted(&[of, "nb"]))?;
        done(&["check", OURS], "")?;
        nodetool(&here, "compact")?;
        done(&["check", OURS], "")?;
        drop(node);
        done(&["versions", &here], "nb")?;
    }
    for name in files::recorded() {
        let compared = family(name)?;
        tally.add(compared);
    }
    Ok(tally)
}

/// A node on the generated tables that Cassandra wrote in a format; each answer counts as a check.
fn family(name: &str) -> Outcome<Tally> {
    let run = format!("formats-family-{name}");
    let data = machine::cache().join("run").join(&run).join("data");
    let _ = std::fs::remove_dir_all(&data);
    let script = |words: &[&str]| {
        let script = machine::root().join("conformance/family/recorded.py");
        machine::output(Command::new("python3").arg(script).args(words))
    };
    script(&["unpack", name, &data.display().to_string()])?;
    let _node = Node::start_again(&run, OURS, &["cluster_name=peer"])?;
    let (done, text) = script(&["check", OURS, name])?;
    let compared = number_before(&text, " answers compared");
    let differ = number_before(&text, " differ");
    let mut tally =
        Tally { passed: compared.saturating_sub(differ), failed: differ, problems: Vec::new() };
    if (!done && differ == 0) || compared == 0 {
        tally.problems.push(format!("{name}: {}", text.trim()));
    }
    Ok(tally)
}

fn sorted(words: &[&str]) -> String {
    let mut words: Vec<&str> = words.iter().flat_map(|words| words.split(' ')).collect();
    words.sort_unstable();
    words.join(" ")
}

/// A verb for the keyspace of the recorded tables.
fn nodetool(data: &str, verb: &str) -> Outcome {
    machine::run(node::nodetool(Path::new(data)).args([verb, "formats"]))
}

fn drivers() -> Outcome<Tally> {
    node::build()?;
    let node = Node::start_with("drivers", OURS, drivers::SETTINGS)?;
    let slow = Node::start_with("drivers-slow", THEIRS, drivers::SLOW_SETTINGS)?;
    let mut tally = Tally::default();
    for name in drivers::NAMES {
        match drivers::scenario(name, &format!("{}:9042", node.ip), Some(&slow.ip)) {
            Ok((done, passed)) => {
                tally.passed += passed;
                if !done {
                    tally.problems.push(format!("{name} failed after {passed} scenarios"));
                }
            }
            Err(e) => tally.problems.push(format!("{name}: {e}")),
        }
    }
    // here, as what it is built on is built for the Rust driver's scenario
    tally.add(unit::run(&mut load::tests())?);
    tally.add(single(dist::rehearse()));
    Ok(tally)
}

/// What the node of the matrix of permissions is started with; the superuser's name and password
/// are those that Cassandra makes.
const ROLES: [&str; 3] = [
    "authenticator=PasswordAuthenticator",
    "authorizer=CassandraAuthorizer",
    "first_superuser=cassandra",
];

/// Each line of the golden file and each try at the door counts as a check.
fn roles() -> Outcome<Tally> {
    machine::need(&["python3", "openssl"])?;
    node::build()?;
    let file = machine::cache().join("run/first-password");
    std::fs::create_dir_all(machine::cache().join("run"))?;
    std::fs::write(&file, "cassandra\n")?;
    let file = format!("first_superuser_password_file={}", file.display());
    let mut settings = ROLES.to_vec();
    settings.push(&file);
    let scripts = machine::root().join("conformance/roles");
    let mut tally = Tally::default();
    {
        let node = Node::start_with("roles", OURS, &settings)?;
        let mut compare = Command::new("python3");
        let (done, text) = machine::output(compare.arg(scripts.join("roles.py")).arg(&node.ip))?;
        let last = text.lines().rev().find(|l| l.contains(" lines compared")).unwrap_or_default();
        tally.failed += number_before(last, " differ");
        tally.passed += number_before(last, " lines compared").saturating_sub(tally.failed);
        if (!done && tally.failed == 0) || last.is_empty() {
            tally.problems.push("the matrix of permissions did not run to its end".to_owned());
        }
    }
    let (done, text) = door::run(&[], false)?;
    tally.passed += text.lines().filter(|line| line.starts_with("ok ")).count();
    let failed = text.lines().filter(|line| line.starts_with("failed "));
    tally.problems.extend(failed.map(str::to_owned));
    if !done && tally.problems.is_empty() {
        tally.problems.push("the tries at the door did not run to their end".to_owned());
    }
    Ok(tally)
}

/// How long a node may take from its start until it serves, and how much memory it may hold when
/// idle; and what we are after.
const SERVING_LIMIT: Duration = Duration::from_secs(1);
const SERVING_GOAL: Duration = Duration::from_millis(100);
const IDLE_LIMIT_MB: u64 = 100;
const IDLE_GOAL_MB: u64 = 64;
const MB: u64 = 1_000_000;

fn cqlsh() -> Outcome<Tally> {
    node::build()?;
    let mut tally = first_start()?;
    let node = Node::start_by_run("cqlsh", OURS)?;
    let compared = single(machine::run(oracle::cqlsh_command()?.arg(&node.ip)));
    println!("{} MB resident after it", node.resident()? / MB);
    tally.passed += compared.passed;
    tally.problems.extend(compared.problems);
    Ok(tally)
}

/// Starts a node on an empty directory, and holds the time and the memory that it takes to their
/// limits.
fn first_start() -> Outcome<Tally> {
    let node = Node::start("first-start", OURS)?;
    let (took, resident) = (node.served_after, node.resident()?.div_ceil(MB));
    println!(
        "serving after {:.3} s (at most {:.0}, goal {:.1}); {resident} MB resident when idle (at most {IDLE_LIMIT_MB}, goal {IDLE_GOAL_MB})",
        took.as_secs_f64(),
        SERVING_LIMIT.as_secs_f64(),
        SERVING_GOAL.as_secs_f64(),
    );
    let mut tally = Tally::default();
    for (holds, what) in [
        (took <= SERVING_LIMIT, format!("serving after {took:?}")),
        (resident <= IDLE_LIMIT_MB, format!("{resident} MB resident when idle")),
    ] {
        match holds {
            true => tally.passed += 1,
            false => tally.problems.push(what),
        }
    }
    Ok(tally)
}

fn hostile() -> Outcome<Tally> {
    let mut tally = Tally::default();
    for (who, (done, text)) in [("clients", hostile::short()?), ("peers", hostile::short_peers()?)]
    {
        let last = text.lines().last().unwrap_or_default();
        let failed = number_before(last, " wrong");
        let passed = number_before(last, " cases").saturating_sub(failed);
        tally.passed += passed;
        tally.failed += failed;
        let wrong = text.lines().filter(|line| line.starts_with("wrong: "));
        tally.problems.extend(wrong.map(str::to_owned));
        if (!done && failed == 0) || passed == 0 {
            tally.problems.push(format!("the hostile {who} did not run to their end"));
        }
    }
    let (done, text) = hostile::short_tls()?;
    tally.passed += text.lines().filter(|line| line.starts_with("ok ")).count();
    let failed = text.lines().filter(|line| line.starts_with("failed "));
    tally.problems.extend(failed.map(str::to_owned));
    if !done && tally.problems.is_empty() {
        tally.problems.push("the tries at a port of TLS did not all end as they should".to_owned());
    }
    Ok(tally)
}

/// Each step of a tool's script counts as a check.
fn tools() -> Outcome<Tally> {
    let found = tried::short()?;
    Ok(Tally { passed: found.passed, failed: 0, problems: found.problems })
}

fn fuzzing() -> Outcome<Tally> {
    Ok(Tally { passed: fuzz::short()?, ..Tally::default() })
}

/// Cuts, kills and classes of syncs left out each count as a check.
fn power() -> Outcome<Tally> {
    let (done, text) = power::short()?;
    let last = text.lines().rev().find(|line| line.starts_with("checks: ")).unwrap_or_default();
    let passed = number_before(last, " passed");
    let mut tally = Tally { passed, failed: number_before(last, " failed"), problems: Vec::new() };
    if (!done && tally.failed == 0) || passed == 0 {
        tally.problems.push("the power cuts did not run to their end".to_owned());
    }
    Ok(tally)
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
