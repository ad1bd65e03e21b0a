//! `cargo xtask bench ycsb`: YCSB on Helenus and on Cassandra in turn, one server at a time.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::systems::{Server, System};
use crate::machine::{self, Outcome};

pub const HELP: &str = "\
cargo xtask bench ycsb [--records N] [--operations N] [--warm N] [--threads 32,64] [--workloads a,b,...] [--pairs N]
                       [--heap 4G] [--systems helenus,cassandra,latest]
  loads N records (1000000) into each system in turn (latest: Cassandra with the settings of cassandra_latest.yaml), runs workloads
  a-f and four mixes of N operations (1000000) with 32 and with 64 threads; all of it N times (3)
  warm: after the load each workload runs with so many operations (200000) that do not count, for the JIT
  Helenus has as memory_budget what a JVM has as heap, and one shard: the client needs the other core
  prints medians of the operations for each second of the server's CPU; the better Cassandra counts
  raw results are kept under bench/results/";

struct Options {
    systems: Vec<System>,
    threads: Vec<String>,
    pairs: u32,
    heap: String,
    warm: String,
    passed: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            systems: System::ALL.to_vec(),
            threads: vec!["32".to_owned(), "64".to_owned()],
            pairs: 3,
            heap: "4G".to_owned(),
            warm: "200000".to_owned(),
            passed: Vec::new(),
        };
        for option in super::options(args) {
            let (name, value) = option?;
            match name {
                "--warm" => options.warm = value.to_owned(),
                "--heap" => options.heap = value.to_owned(),
                "--pairs" => options.pairs = value.parse()?,
                "--systems" => options.systems = System::parse_all(value)?,
                "--threads" => options.threads = value.split(',').map(str::to_owned).collect(),
                "--records" | "--operations" | "--workloads" => {
                    options.passed.extend([name.to_owned(), value.to_owned()]);
                }
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }
}

/// `bench ycsb [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3"])?;
    super::build_client()?;
    let stamp = super::stamp()?;
    let mut files = Vec::new();
    for pair in 1..=options.pairs {
        for system in &options.systems {
            let server = Server::start(*system, "bench-ycsb", &options.heap)?;
            for threads in &options.threads {
                let name = format!("ycsb-{stamp}-{pair}-{threads}-{}.json", system.word());
                let out = super::results()?.join(name);
                measure(&server, &options, threads, &out)?;
                files.push(out);
            }
        }
    }
    machine::run(Command::new("python3").arg(script()).arg("pairs").args(&files))
}

fn script() -> PathBuf {
    machine::root().join("bench/ycsb/run.py")
}

/// All workloads with so many threads; the first of them loads the records.
fn measure(server: &Server, options: &Options, threads: &str, out: &Path) -> Outcome {
    let mut command = Command::new("python3");
    let pid = server.pid()?.to_string();
    command.arg(script()).args(["measure", server.system.name(), server.ip(), "9042", &pid]);
    command.arg(out).args([
        "--threads",
        threads,
        "--cell",
        &format!("{threads} threads"),
        "--warm",
        &options.warm,
    ]);
    if options.threads.first().is_some_and(|first| first != threads) {
        command.arg("--loaded");
    }
    machine::run(command.args(&options.passed))
}
