//! `cargo xtask bench tails`: latencies at one fixed rate, half of what Cassandra can do here, on
//! Cassandra and on Helenus in turn. The requests come whatever the answers do, and latency counts
//! from when each was due.

use std::fmt::Write as _;
use std::process::Command;

use super::awake::{self, Awake};
use super::stops::Stops;
use super::systems::{Server, System};
use crate::load;
use crate::machine::{self, Outcome};

pub const HELP: &str = "\
cargo xtask bench tails [--rows N] [--seconds N] [--warm N] [--share 0.5] [--mixes a,b,...] [--pairs N] [--heap 4G]
                        [--systems cassandra,latest] [--awake yes|no]
  fills a table of N rows of 1 KB (1000000) in Cassandra (as it is shipped, and with the settings of cassandra_latest.yaml), finds
  for each mix how many operations a second it does with 64 in flight after N seconds (60) of it (of the first mix three times as
  long: a JVM needs minutes until all is compiled); then that share of them (0.5) a second for N seconds (60), on it and on Helenus;
  N times (3); the better Cassandra counts
  Helenus has as memory_budget what a JVM has as heap, and one shard: the client needs the other core, and is kept to it
  stops: how long a processor stood still at most while Helenus was measured, as a thread before all others there sees it
  awake: whether the processors do not sleep while a rate is measured (yes), because a virtual one wakes late
  mixes: read95 read50 read65 insert90
  raw results are kept under bench/results/";

/// What a mix is: its name, and its shares of reads and inserts.
struct Mix {
    name: &'static str,
    reads: &'static str,
    inserts: &'static str,
}

const MIXES: [Mix; 4] = [
    Mix { name: "read95", reads: "0.95", inserts: "0" },
    Mix { name: "read50", reads: "0.5", inserts: "0" },
    Mix { name: "read65", reads: "0.65", inserts: "0.1" },
    Mix { name: "insert90", reads: "0.1", inserts: "0.9" },
];

/// Requests in flight where it is found how many a server can do.
const DEPTH: &str = "64";
/// How many times as long the first mix runs before anything is measured.
const FIRST_WARM: u32 = 3;
/// Where the client runs: Helenus' shard is bound to the first core.
const CLIENT_CORE: &str = "1";
/// Connections of the client.
const CONNECTIONS: &str = "8";
/// What tells for how many milliseconds the machine stood still at most.
const LONGEST_STOP: &str = "machine_longest_stop_ms";
/// How much of Cassandra's p99 and p99.9 Helenus' may be.
const MOST: [(&str, f64); 2] = [("p99", 0.2), ("p99.9", 0.1)];

struct Options {
    systems: Vec<System>,
    mixes: Vec<&'static Mix>,
    rows: String,
    seconds: String,
    warm: u32,
    share: f64,
    pairs: usize,
    heap: String,
    awake: bool,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            systems: vec![System::Cassandra, System::Latest],
            mixes: MIXES.iter().collect(),
            rows: "1000000".to_owned(),
            seconds: "60".to_owned(),
            warm: 60,
            share: 0.5,
            pairs: 3,
            heap: "4G".to_owned(),
            awake: true,
        };
        for option in super::options(args) {
            let (name, value) = option?;
            match name {
                "--systems" => options.systems = System::parse_all(value)?,
                "--mixes" => {
                    let mix = |name: &str| MIXES.iter().find(|mix| mix.name == name);
                    let mixes = value.split(',').map(mix).collect::<Option<Vec<_>>>();
                    options.mixes = mixes.ok_or_else(|| format!("unknown mix\n{HELP}"))?;
                }
                "--rows" => options.rows = value.to_owned(),
                "--seconds" => options.seconds = value.to_owned(),
                "--warm" => options.warm = value.parse()?,
                "--share" => options.share = value.parse()?,
                "--pairs" => options.pairs = value.parse()?,
                "--heap" => options.heap = value.to_owned(),
                "--awake" => options.awake = awake::parse(value)?,
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }
}

/// What one system did in one mix at that rate.
struct Measured {
    mix: &'static str,
    rate: f64,
    theirs: String,
    ours: String,
}

/// `bench tails [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3", "taskset"])?;
    // what cannot be had here is told before an hour has gone by
    Stops::begin()?.end()?;
    if options.awake {
        Awake::begin()?;
    }
    load::build()?;
    let stamp = super::stamp()?;
    let (mut raw, mut all) = (String::new(), Vec::new());
    for _ in 0..options.pairs {
        for system in &options.systems {
            let rates = theirs(&options, *system)?;
            for measured in ours(&options, rates)? {
                let Measured { mix, rate, theirs, ours } = &measured;
                for (name, said) in [(system.name(), theirs), (System::Helenus.name(), ours)] {
                    writeln!(raw, "{mix} {rate:.0} a second, {name}: {said}")?;
                }
                all.push((*system, measured));
            }
        }
        // what there is so far outlives an interruption
        std::fs::write(super::results()?.join(format!("tails-{stamp}.txt")), &raw)?;
    }
    print!("{}", table(&options, &all)?);
    Ok(())
}

/// Finds each mix's rate on a Cassandra, and measures it there: what it said, and the rate.
fn theirs(options: &Options, system: System) -> Outcome<Vec<(&'static Mix, f64, String)>> {
    let server = Server::start(system, "bench-tails", &options.heap)?;
    let mut found = Vec::new();
    for (number, mix) in options.mixes.iter().enumerate() {
        let most = most(options, &server, mix, number == 0)?;
        let rate = load::figure(&most, "per_second")? * options.share;
        found.push((*mix, rate, at_rate(options, &server, mix, rate)?));
    }
    Ok(found)
}

/// Measures the same on a Helenus.
fn ours(options: &Options, rates: Vec<(&'static Mix, f64, String)>) -> Outcome<Vec<Measured>> {
    let server = Server::start(System::Helenus, "bench-tails", &options.heap)?;
    let mut measured = Vec::new();
    for (number, (mix, rate, theirs)) in rates.into_iter().enumerate() {
        // it has as much behind it as the other one
        most(options, &server, mix, number == 0)?;
        let ours = at_rate(options, &server, mix, rate)?;
        measured.push(Measured { mix: mix.name, rate, theirs, ours });
    }
    Ok(measured)
}

/// As many operations as it can do; the table may have to be made.
fn most(options: &Options, server: &Server, mix: &Mix, is_first: bool) -> Outcome<String> {
    let mut load = client("point", server, options, mix);
    let warm = options.warm * if is_first { FIRST_WARM } else { 1 };
    load.args(["--depth", DEPTH, "--warm", &warm.to_string(), "--seconds", "20"]);
    if is_first {
        load.arg("--load");
    }
    said(&mut load)
}

fn at_rate(options: &Options, server: &Server, mix: &Mix, rate: f64) -> Outcome<String> {
    let mut load = client("rate", server, options, mix);
    load.args(["--rate", &format!("{rate:.0}"), "--warm", "10", "--level", "ONE"]);
    let _awake = options.awake.then(Awake::begin).transpose()?;
    let stops = Stops::begin()?;
    let said = said(load.args(["--seconds", &options.seconds]))?;
    let stopped = stops.end()?;
    let figures = said.strip_suffix('}').ok_or("the client says no figures")?;
    let (times, longest) = (stopped.times, stopped.longest_ms);
    Ok(format!("{figures}, \"machine_stops\": {times}, \"{LONGEST_STOP}\": {longest:.1}}}"))
}

fn client(verb: &str, server: &Server, options: &Options, mix: &Mix) -> Command {
    let mut load = Command::new("taskset");
    load.args(["-c", CLIENT_CORE]).arg(load::program());
    load.args([verb, server.ip(), "--rows", &options.rows, "--replicas", "1"]);
    load.args(["--connections", CONNECTIONS, "--shard-aware", "false"]);
    load.args(["--reads", mix.reads, "--inserts", mix.inserts]);
    load
}

/// The line of figures, none of which failed.
fn said(load: &mut Command) -> Outcome<String> {
    let (done, text) = machine::output(load)?;
    match (done, text.lines().last()) {
        (true, Some(line)) => Ok(line.to_owned()),
        _ => Err(format!("the client failed: {text}").into()),
    }
}

/// The medians of each mix: the better Cassandra's beside Helenus' at the same rate.
fn table(options: &Options, all: &[(System, Measured)]) -> Outcome<String> {
    let mut table = String::new();
    let head = ("mix", "a second", "Cassandra", "Helenus", "of it", "at most", "stops");
    let (mix, rate, theirs, ours, share, most, stop) = head;
    writeln!(
        table,
        "{mix:<10}{:<8}{rate:>10}{theirs:>12}{ours:>10}{share:>8}{most:>9}{stop:>9}",
        "us"
    )?;
    for mix in &options.mixes {
        for (percentile, most) in MOST {
            let mut better: Option<(f64, f64, f64, f64)> = None;
            for system in &options.systems {
                let runs = all.iter().filter(|(of, run)| of == system && run.mix == mix.name);
                let runs: Vec<&Measured> = runs.map(|(_, run)| run).collect();
                let of = |said: fn(&Measured) -> &String| {
                    middle(runs.iter().map(|run| load::figure(said(run), percentile)))
                };
                let (theirs, ours) = (of(|run| &run.theirs)?, of(|run| &run.ours)?);
                let rate = middle(runs.iter().map(|run| Ok(run.rate)))?;
                let stops = runs.iter().map(|run| load::figure(&run.ours, LONGEST_STOP));
                let stop = stops.collect::<Outcome<Vec<_>>>()?.into_iter().fold(0.0, f64::max);
                if better.is_none_or(|(_, best, ..)| theirs < best) {
                    better = Some((rate, theirs, ours, stop));
                }
            }
            let (rate, theirs, ours, stop) = better.ok_or("no Cassandra")?;
            let share = ours / theirs;
            writeln!(
                table,
                "{:<10}{percentile:<8}{rate:>10.0}{theirs:>12.0}{ours:>10.0}{share:>8.2}{most:>9.2}{stop:>6.0} ms",
                mix.name
            )?;
        }
    }
    Ok(table)
}

/// The one in the middle.
fn middle(numbers: impl Iterator<Item = Outcome<f64>>) -> Outcome<f64> {
    let mut numbers = numbers.collect::<Outcome<Vec<f64>>>()?;
    numbers.sort_by(f64::total_cmp);
    Ok(*numbers.get(numbers.len() / 2).ok_or("no runs")?)
}

#[cfg(test)]
mod tests {
    use super::{MIXES, Measured, Options, middle, table};
    use crate::bench::systems::System;

    #[test]
    fn the_better_cassandra_counts() {
        let mut options = Options::parse(&[]).expect("the defaults");
        options.mixes = MIXES.iter().take(1).collect();
        let said = |p99: u32| {
            format!("{{\"p99\": {p99}, \"p99.9\": {}, \"machine_longest_stop_ms\": 7.4}}", p99 * 2)
        };
        let run = |theirs, ours| Measured {
            mix: "read95",
            rate: 5000.0,
            theirs: said(theirs),
            ours: said(ours),
        };
        let all = [(System::Cassandra, run(1000, 250)), (System::Latest, run(800, 100))];
        let table = table(&options, &all).expect("all figures are there");
        assert!(table.contains("800       100    0.12     0.20     7 ms"), "{table}");
        assert!(table.contains("1600       200    0.12     0.10     7 ms"), "{table}");
    }

    #[test]
    fn the_middle_is_that_of_sorted_numbers() {
        let of = |numbers: &[f64]| middle(numbers.iter().map(|number| Ok(*number)));
        assert_eq!(of(&[3.0, 1.0, 2.0]).expect("some"), 2.0);
        assert!(of(&[]).is_err());
    }
}
