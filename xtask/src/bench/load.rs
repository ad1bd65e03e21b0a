//! `cargo xtask bench load`: rows are inserted until so many gigabytes are written and compacted,
//! on Helenus and on Cassandra in turn.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use super::process::{self, Used};
use super::systems::{Server, System};
use crate::load;
use crate::machine::{self, Outcome};

pub const HELP: &str = "\
cargo xtask bench load [--gb N] [--pairs N] [--heap 4G] [--systems helenus,cassandra,latest]
  inserts N GB (10) of rows of 1 KB, all different, into each system in turn (latest: Cassandra with the settings of
  cassandra_latest.yaml) and waits until nothing is left to flush and to compact; N times (3)
  Helenus has as memory_budget what a JVM has as heap, and one shard: the client needs the other core
  prints MB/s, seconds of the server's CPU for each GB, bytes written to the device for each byte inserted, memory
  raw results are kept under bench/results/";

/// Columns of a row, and bytes of each.
const COLUMNS: u64 = 10;
const BYTES: u64 = 100;
const MB: f64 = 1e6;

struct Options {
    systems: Vec<System>,
    gb: f64,
    pairs: usize,
    heap: String,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options =
            Self { systems: System::ALL.to_vec(), gb: 10.0, pairs: 3, heap: "4G".to_owned() };
        for option in super::options(args) {
            let (name, value) = option?;
            match name {
                "--systems" => options.systems = System::parse_all(value)?,
                "--gb" => options.gb = value.parse()?,
                "--pairs" => options.pairs = value.parse()?,
                "--heap" => options.heap = value.to_owned(),
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }

    fn rows(&self) -> u64 {
        (self.gb * 1e9) as u64 / (COLUMNS * BYTES)
    }

    /// What is inserted, in MB.
    fn mb(&self) -> f64 {
        (self.rows() * COLUMNS * BYTES) as f64 / MB
    }
}

/// What a server did of it.
#[derive(Debug)]
struct Measured {
    system: System,
    /// Until the last answer.
    inserting: Duration,
    /// Until all was at rest.
    all: Duration,
    used: Used,
    resident: u64,
}

/// `bench load [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3"])?;
    load::build()?;
    let stamp = super::stamp()?;
    let (mut raw, mut all) = (String::new(), Vec::new());
    for _ in 0..options.pairs {
        for system in &options.systems {
            let measured = measure(&options, *system)?;
            let line = line(&options, &measured);
            println!("{line}");
            writeln!(raw, "{line}  {measured:?}")?;
            all.push(measured);
            // what there is so far outlives an interruption
            std::fs::write(super::results()?.join(format!("load-{stamp}.txt")), &raw)?;
        }
    }
    for system in &options.systems {
        let per_cpu = |of: System| {
            let runs = all.iter().filter(|run| run.system == of);
            let mut rates: Vec<f64> =
                runs.map(|run| options.mb() / run.used.cpu.as_secs_f64()).collect();
            rates.sort_by(f64::total_cmp);
            rates.get(rates.len() / 2).copied()
        };
        if let (Some(ours), Some(theirs)) = (per_cpu(System::Helenus), per_cpu(*system)) {
            let (name, ratio) = (system.name(), ours / theirs);
            println!(
                "{name:<18}{theirs:>8.1} MB for each second of CPU: {ratio:.1} times as many of ours"
            );
        }
    }
    Ok(())
}

fn measure(options: &Options, system: System) -> Outcome<Measured> {
    let server = Server::start(system, "bench-load", &options.heap)?;
    let pid = server.pid()?;
    let (before, begin) = (Used::of(pid)?, Instant::now());
    let mut load = Command::new(load::program());
    load.args(["point", server.ip(), "--load", "--rows", &options.rows().to_string()]);
    load.args(["--columns", &COLUMNS.to_string(), "--bytes", &BYTES.to_string()]);
    machine::run(load.args(["--connections", "8", "--warm", "0", "--seconds", "0"]))?;
    let inserting = begin.elapsed();
    process::until_rest(pid)?;
    let used = Used::of(pid)?.since(before);
    Ok(Measured {
        system,
        inserting,
        all: begin.elapsed(),
        used,
        resident: machine::memory(pid, "VmRSS:")?,
    })
}

fn line(options: &Options, measured: &Measured) -> String {
    let Measured { system, inserting, all, used, resident } = measured;
    let mb = options.mb();
    format!(
        "{:<18}{:>7.1} MB/s inserted {:>7.1} MB/s with all compacted {:>7.1} CPU s/GB {:>6.2} bytes written/byte {:>6.0} MB resident",
        system.name(),
        mb / inserting.as_secs_f64(),
        mb / all.as_secs_f64(),
        used.cpu.as_secs_f64() / mb * 1000.0,
        used.written as f64 / MB / mb,
        *resident as f64 / MB,
    )
}
