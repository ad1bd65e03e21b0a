//! `cargo xtask campaign applications`: programs that others wrote for Cassandra, from their
//! registries and unchanged, against this node. DSBulk loads a table and unloads it by ranges of
//! tokens; JanusGraph keeps a graph, KairosDB series of points. The scan of the Spark connector is
//! a script. Recorded under `docs/campaigns/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};

const IP: &str = "127.0.0.36";
/// Rows of the table that DSBulk loads.
const ROWS: usize = 100_000;
/// Names of places, and numbers of sensors: row `i` is of place `i % SITES` and of sensor `i %
/// SENSORS`.
const SITES: usize = 97;
const SENSORS: usize = 311;
/// Both are primes: every pair of them comes, and is a partition.
const PARTITIONS: usize = SITES * SENSORS;
/// Heap of a client's JVM.
const HEAP: &str = "-Xmx512m";
const KEYSPACE: &str = "app_dsbulk";
const SCHEMA: [&str; 3] = [
    "DROP KEYSPACE IF EXISTS app_dsbulk",
    "CREATE KEYSPACE app_dsbulk WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE app_dsbulk.readings (site text, sensor int, at timestamp, celsius double, flags set<text>, \
     note text, PRIMARY KEY ((site, sensor), at))",
];
const DSBULK: &str = "com.datastax.oss.dsbulk.runner.DataStaxBulkLoader";

/// `campaign applications [HOST]`: against a node that runs already where HOST is given.
pub fn campaign(words: &[&str]) -> Outcome {
    machine::need(&["python3", "java", "mvn"])?;
    let (host, _node) = match words {
        [] => {
            node::build()?;
            (IP.to_owned(), Some(Node::start("applications", IP)?))
        }
        [host] => ((*host).to_owned(), None),
        _ => return Err(super::USAGE.into()),
    };
    let mut text = format!("Commit {}, the node at {host}.\n\n", super::commit()?);
    for (name, run) in APPLICATIONS {
        let started = Instant::now();
        let steps = run(&host)?;
        let _ = writeln!(text, "{name}, {:.0} s:\n", started.elapsed().as_secs_f64());
        for step in steps {
            let _ = writeln!(text, "- {step}");
        }
        text.push('\n');
    }
    super::record("applications", &text)?;
    Ok(())
}

/// What an application did, a line each.
type Steps = Vec<String>;

const APPLICATIONS: [(&str, fn(&str) -> Outcome<Steps>); 4] = [
    ("DSBulk 1.10.0 (Maven Central)", dsbulk),
    ("JanusGraph 1.1.0 with its CQL store (Maven Central)", janusgraph),
    ("KairosDB 1.3.0 (Maven Central)", kairosdb),
    ("The scan of the Spark connector (a script)", spark_scan),
];

fn folder(name: &str) -> PathBuf {
    machine::root().join("conformance/applications").join(name)
}

/// Where an application's jars and files are.
fn place(name: &str) -> Outcome<PathBuf> {
    let place = machine::cache().join("applications").join(name);
    std::fs::create_dir_all(&place)?;
    Ok(place)
}

fn maven(project: &Path, goals: &[&str]) -> Outcome {
    let mut command = Command::new("mvn");
    command.args(["-q", "-B", "-Dstyle.color=never", "-f"]).arg(project.join("pom.xml"));
    machine::run(command.args(goals))
}

/// The jars that a project without code of its own names.
fn fetch(name: &str) -> Outcome<PathBuf> {
    let jars = place(name)?.join("lib");
    let output = format!("-DoutputDirectory={}", jars.display());
    let goals = ["dependency:copy-dependencies", "-DincludeScope=runtime", &output];
    maven(&folder(name), &goals)?;
    Ok(jars)
}

fn java(classpath: &[PathBuf], class: &str) -> Outcome<Command> {
    let mut command = Command::new("java");
    command.args([HEAP, "-XX:TieredStopAtLevel=1", "-cp"]);
    command.arg(std::env::join_paths(classpath)?).arg(class);
    Ok(command)
}

/// Statements that need no answer but success.
fn execute(host: &str, statements: &[&str]) -> Outcome {
    let script = machine::root().join("conformance/applications/execute.py");
    machine::run(Command::new("python3").arg(script).arg(host).args(statements))
}

/// A table loaded from a file and unloaded again: the same lines.
fn dsbulk(host: &str) -> Outcome<Steps> {
    let place = place("dsbulk")?;
    let jars = fetch("dsbulk")?;
    execute(host, &SCHEMA)?;
    let (loaded, unloaded) = (place.join("loaded.csv"), place.join("unloaded"));
    std::fs::write(&loaded, table())?;
    let _ = std::fs::remove_dir_all(&unloaded);
    let run = |verb: &str, url: &Path, options: &[&str]| -> Outcome {
        let mut command = java(&[jars.join("*")], DSBULK)?;
        command.args([verb, "-h", host, "-k", KEYSPACE]).arg("-url").arg(url);
        command.arg("--log.directory").arg(place.join("logs"));
        // a quote within quotes is doubled; files of one thread keep their header once
        command.args([
            "--connector.csv.escape",
            r#""\"""#,
            "--connector.csv.maxConcurrentFiles",
            "1",
        ]);
        machine::run(command.args(options))
    };
    run("load", &loaded, &["-t", "readings"])?;
    run("unload", &unloaded, &["-t", "readings"])?;
    let (before, after) = (lines(&loaded)?, lines(&unloaded)?);
    if before != after {
        let other = before.iter().zip(&after).find(|(before, after)| before != after);
        let counts = (before.len(), after.len());
        return Err(format!("unloaded is not what was loaded: {counts:?} lines, {other:?}").into());
    }
    Ok(vec![format!("{ROWS} rows loaded, and unloaded by ranges of tokens: the same")])
}

/// The table as a file of CSV.
fn table() -> String {
    let mut text = String::from("site,sensor,at,celsius,flags,note\n");
    for i in 0..ROWS {
        let (day, second) = (1 + i / 3600 % 28, i % 3600);
        let (minute, second) = (second / 60, second % 60);
        let celsius = 20.0 + (i % 17) as f64 / 4.0;
        let note = if i % 7 == 0 { String::new() } else { format!("\"note {i}, \"\"quoted\"\"\"") };
        let _ = writeln!(
            text,
            "s{},{},2025-06-{day:02}T05:{minute:02}:{second:02}Z,{celsius:?},\"[\"\"a\"\",\"\"b{}\"\"]\",{note}",
            i % SITES,
            i % SENSORS,
            i % 5,
        );
    }
    text
}

/// All lines of a file, or of the files of a folder, in order.
fn lines(path: &Path) -> Outcome<Vec<String>> {
    let files = match path.is_dir() {
        true => std::fs::read_dir(path)?.map(|f| Ok(f?.path())).collect::<Outcome<Vec<_>>>()?,
        false => vec![path.to_owned()],
    };
    let mut lines = Vec::new();
    for file in files {
        lines.extend(std::fs::read_to_string(file)?.lines().map(str::to_owned));
    }
    lines.sort_unstable();
    Ok(lines)
}

/// A graph in the tables of JanusGraph's own store.
fn janusgraph(host: &str) -> Outcome<Steps> {
    let place = place("janusgraph")?;
    maven(&folder("janusgraph"), &["package"])?;
    let command = java(&[place.join("classes"), place.join("lib/*")], "helenus.Graph")?;
    steps(command, &[host, "9042"])
}

/// Series of points in a KairosDB, by its HTTP interface.
fn kairosdb(host: &str) -> Outcome<Steps> {
    let jars = fetch("kairosdb")?;
    execute(host, &["DROP KEYSPACE IF EXISTS app_kairosdb"])?;
    let mut command = Command::new("python3");
    command.arg(folder("kairosdb").join("run.py")).arg(host).arg(jars);
    command.arg(place("kairosdb")?.join("run"));
    steps(command, &[])
}

/// The table that DSBulk loaded, in pieces of a size that the node's estimates of sizes lead to.
fn spark_scan(host: &str) -> Outcome<Steps> {
    let mut command = Command::new("python3");
    command.arg(machine::root().join("conformance/applications/scan.py"));
    let (rows, partitions) = (ROWS.to_string(), PARTITIONS.to_string());
    steps(command, &[host, KEYSPACE, "readings", &rows, &partitions])
}

/// Runs a program that says `ok WHAT` of each step.
fn steps(mut command: Command, args: &[&str]) -> Outcome<Steps> {
    let (done, text) = machine::output(command.args(args))?;
    let steps: Steps =
        text.lines().filter_map(|line| line.strip_prefix("ok ")).map(str::to_owned).collect();
    if done && !steps.is_empty() {
        return Ok(steps);
    }
    Err(format!("{command:?} failed after {} steps", steps.len()).into())
}
