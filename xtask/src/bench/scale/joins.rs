//! `cargo xtask bench joins`: what a node costs that comes and goes again, for several numbers of
//! tokens.

use std::fmt::Write as _;
use std::fs;

use super::{MB, NO_THROTTLE, Ring, System, Taken, stored};
use crate::machine::{self, Outcome};
use crate::{load, members};

pub const HELP: &str = "\
cargo xtask bench joins [--gb 2] [--tokens 1,16,256] [--repeats 1] [--systems helenus,cassandra]
  three nodes with N GB each (3 replicas); a fourth one bootstraps, and is decommissioned again,
  not throttled: for each number of tokens on each system in turn
  prints seconds, and seconds of CPU of all nodes, beside those with the first number of tokens
  raw results are kept under bench/results/";

const NODES: u8 = 3;

struct Options {
    gb: f64,
    tokens: Vec<u16>,
    repeats: usize,
    systems: Vec<System>,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options =
            Self { gb: 2.0, tokens: vec![1, 16, 256], repeats: 1, systems: System::ALL.to_vec() };
        for option in crate::bench::options(args) {
            let (name, value) = option?;
            match name {
                "--gb" => options.gb = value.parse()?,
                "--repeats" => options.repeats = value.parse()?,
                "--systems" => options.systems = System::parse_all(value)?,
                "--tokens" => {
                    let numbers = value.split(',').map(str::parse).collect::<Result<_, _>>();
                    options.tokens = numbers?;
                }
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }
}

/// What came of one run.
struct Run {
    join: Taken,
    leave: Taken,
    /// Bytes that the newcomer had.
    fetched: u64,
}

/// `bench joins [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3"])?;
    load::build()?;
    let stamp = crate::bench::stamp()?;
    let mut raw = String::new();
    for _ in 0..options.repeats {
        for system in &options.systems {
            let mut first = None;
            for tokens in &options.tokens {
                let run = measure(*system, *tokens, options.gb)?;
                let first = first.get_or_insert((run.join, run.leave));
                let line = format!(
                    "{:<10}{tokens:>4} tokens  {:>6.0} MB  joins {}  leaves {}",
                    system.word(),
                    run.fetched as f64 / MB,
                    beside(run.join, first.0),
                    beside(run.leave, first.1),
                );
                println!("{line}");
                writeln!(raw, "{line}")?;
                fs::write(crate::bench::results()?.join(format!("joins-{stamp}.txt")), &raw)?;
            }
        }
    }
    Ok(())
}

/// What was taken, and how much more than by another one.
fn beside(taken: Taken, first: Taken) -> String {
    let more = |a: f64, b: f64| 100.0 * (a / b - 1.0);
    let [time, cpu] = [taken.time, taken.cpu].map(|of| of.as_secs_f64());
    let [time_first, cpu_first] = [first.time, first.cpu].map(|of| of.as_secs_f64());
    format!(
        "{time:>6.1} s ({:>+5.1} %) {cpu:>6.1} s of CPU ({:>+5.1} %)",
        more(time, time_first),
        more(cpu, cpu_first)
    )
}

fn measure(system: System, tokens: u16, gb: f64) -> Outcome<Run> {
    let ring = Ring::start(system, NODES, tokens, NO_THROTTLE)?;
    ring.fill(super::rows(gb), usize::from(NODES))?;
    let newcomer = ring.newcomer()?;
    let all: Vec<_> = ring.members.iter().chain([&newcomer]).collect();
    let join = Taken::by(&all, || ring.join(&newcomer))?;
    let fetched = stored(&newcomer);
    let leave = Taken::by(&all, || super::quietly(newcomer.tool().arg("decommission")))?;
    members::stop()?;
    Ok(Run { join, leave, fetched })
}
