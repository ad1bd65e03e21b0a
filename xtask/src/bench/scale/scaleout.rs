//! `cargo xtask bench scaleout`: a fourth node joins three under load, second by second.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{MB, Ring, System};
use crate::bench::process::Used;
use crate::load;
use crate::machine::{self, Outcome};
use crate::members::{self, Member};

pub const HELP: &str = "\
cargo xtask bench scaleout [--gb 5] [--share 0.5] [--quiet 30] [--warm 30] [--settings 'a: b']
                           [--systems helenus,cassandra]
  three nodes with N GB each (3 replicas, LOCAL_QUORUM), reads and updates in halves: first as many
  as they can do, then that share of them while a fourth node bootstraps
  quiet: seconds before and after
  streams are throttled as cassandra.yaml has it, unless settings say otherwise
  prints throughput and latency before, during and after, and the worst second; each second stands
  in a table and a plot
  raw results and plots are kept under bench/results/";

const NODES: u8 = 3;
/// Requests in flight where it is found how many the ring can do.
const IN_FLIGHT: &str = "64";
/// How long it is tried.
const CAPACITY: Duration = Duration::from_secs(20);
/// Longer than anything takes.
const ENDLESS: &str = "100000";

struct Options {
    gb: f64,
    share: f64,
    quiet: Duration,
    warm: Duration,
    settings: String,
    systems: Vec<System>,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            gb: 5.0,
            share: 0.5,
            quiet: Duration::from_secs(30),
            warm: Duration::from_secs(30),
            settings: String::new(),
            systems: System::ALL.to_vec(),
        };
        for option in crate::bench::options(args) {
            let (name, value) = option?;
            match name {
                "--gb" => options.gb = value.parse()?,
                "--share" => options.share = value.parse()?,
                "--quiet" => options.quiet = Duration::from_secs_f64(value.parse()?),
                "--warm" => options.warm = Duration::from_secs_f64(value.parse()?),
                "--settings" => options.settings = value.replace(';', "\n"),
                "--systems" => options.systems = System::parse_all(value)?,
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }
}

/// How a second went.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    done: f64,
    failed: f64,
    p99: f64,
    max: f64,
    /// MB that the newcomer wrote to the disk.
    written: f64,
}

/// What came of a system.
struct Run {
    rate: f64,
    seconds: Vec<Second>,
    /// The seconds in which the newcomer joined.
    joined: (usize, usize),
}

/// `bench scaleout [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3"])?;
    load::build()?;
    let stamp = crate::bench::stamp()?;
    for system in &options.systems {
        let run = measure(*system, &options)?;
        let name = format!("scaleout-{stamp}-{}", system.word());
        let file =
            |kind: &str| Outcome::Ok(crate::bench::results()?.join(format!("{name}.{kind}")));
        fs::write(file("csv")?, table(&run)?)?;
        fs::write(file("svg")?, plot(*system, &run)?)?;
        println!("{}", summary(*system, &run)?);
    }
    Ok(())
}

fn measure(system: System, options: &Options) -> Outcome<Run> {
    let ring = Ring::start(system, NODES, 16, &options.settings)?;
    let rows = super::rows(options.gb);
    ring.fill(rows, usize::from(NODES))?;
    let rate = options.share * capacity(&ring, rows, options.warm)?;
    let each = members::home().join("seconds.csv");
    let newcomer = ring.newcomer()?;
    let mut load = begin_load(&ring, rows, rate, &each)?;
    let begin = Instant::now();
    std::thread::sleep(options.quiet);
    let joins = begin.elapsed();
    let (joined, written) = watched(&newcomer, || ring.join(&newcomer));
    let serves = begin.elapsed();
    if joined.is_ok() {
        std::thread::sleep(options.quiet);
    }
    drop(load.stdin.take());
    let output = load.wait_with_output()?;
    println!("{}", String::from_utf8_lossy(&output.stdout).trim_end());
    joined?;
    let mut seconds = read(&fs::read_to_string(&each)?);
    let first = joins.as_secs() as usize;
    for (second, written) in seconds.iter_mut().skip(first).zip(written) {
        second.written = written;
    }
    members::stop()?;
    Ok(Run { rate, seconds, joined: (first, serves.as_secs() as usize) })
}

/// Operations a second that the ring can do.
fn capacity(ring: &Ring, rows: u64, warm: Duration) -> Outcome<f64> {
    let mut load = ring.rate();
    load.args(["--rows", &rows.to_string(), "--closed", "--in-flight", IN_FLIGHT]);
    load.args(["--warm", &warm.as_secs_f64().to_string(), "--seconds", ENDLESS, "--until-told"]);
    let mut load = load.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    std::thread::sleep(warm + CAPACITY);
    drop(load.stdin.take());
    let output = load.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("all that the ring can do: {}", text.trim_end());
    load::figure(&text, "per_second")
}

fn begin_load(ring: &Ring, rows: u64, rate: f64, each: &Path) -> Outcome<Child> {
    let mut load: Command = ring.rate();
    load.args(["--rows", &rows.to_string(), "--rate", &format!("{rate:.0}"), "--retries"]);
    load.args(["--warm", "0", "--seconds", ENDLESS, "--until-told", "--each-second"]).arg(each);
    Ok(load.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

/// Does something, and tells how many MB a node wrote in each second of it.
fn watched<T>(newcomer: &Member, act: impl FnOnce() -> T) -> (T, Vec<f64>) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut all, mut before) = (Vec::new(), 0);
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(1));
                // it has no process yet, or has not written one's number yet
                let pid = newcomer.pid().ok().and_then(|pid| pid.parse().ok());
                let written =
                    pid.and_then(|pid| Used::of(pid).ok()).map_or(before, |of| of.written);
                all.push(written.saturating_sub(before) as f64 / MB);
                before = written;
            }
            all
        });
        let done = act();
        ends.store(true, Ordering::Relaxed);
        (done, watcher.join().unwrap_or_default())
    })
}

/// `second,done,failed,p50,p99,max`
fn read(text: &str) -> Vec<Second> {
    let second = |line: &str| {
        let figures: Vec<f64> = line.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_, done, failed, _, p99, max] = figures[..] else { return None };
        Some(Second { done, failed, p99, max, written: 0.0 })
    };
    text.lines().filter_map(second).collect()
}

fn table(run: &Run) -> Outcome<String> {
    let mut text = String::from("second,done,failed,p99_ms,max_ms,newcomer_mb_written\n");
    for (n, of) in run.seconds.iter().enumerate() {
        let Second { done, failed, p99, max, written } = of;
        writeln!(text, "{n},{done},{failed},{p99},{max},{written:.1}")?;
    }
    Ok(text)
}

/// The middle one.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

fn summary(system: System, run: &Run) -> Outcome<String> {
    let (from, to) = run.joined;
    let to = to.min(run.seconds.len());
    let parts = [
        ("before", run.seconds.get(..from)),
        ("during", run.seconds.get(from..to)),
        ("after", run.seconds.get(to..)),
    ];
    let mut text = format!(
        "{}: {:.0} requests a second; the fourth node served after {} s",
        system.word(),
        run.rate,
        to - from
    );
    let p99 = |of: &[Second]| median(of.iter().map(|second| second.p99));
    let quiet = parts[0].1.map_or(0.0, p99);
    for (name, part) in parts {
        let part = part.unwrap_or_default();
        let least = part.iter().map(|second| second.done).fold(f64::INFINITY, f64::min);
        let failed: f64 = part.iter().map(|second| second.failed).sum();
        let worst = part.iter().map(|second| second.max).fold(0.0, f64::max);
        let written: f64 = part.iter().map(|second| second.written).sum();
        write!(
            text,
            "\n  {name}: {:>6.0} done a second, {:.0} % in the worst one; \
             p99 {:.2} ms ({:.1} times), worst {worst:.0} ms; {failed} failed; \
             {:.0} MB/s written by the newcomer",
            median(part.iter().map(|second| second.done)),
            100.0 * least / run.rate,
            p99(part),
            p99(part) / quiet,
            written / part.len().max(1) as f64,
        )?;
    }
    Ok(text)
}

/// Requests done in each second, above, and their p99, below.
fn plot(system: System, run: &Run) -> Outcome<String> {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 180.0;
    let step = WIDTH / run.seconds.len().max(1) as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n",
        2.0 * HEIGHT + 60.0
    );
    let (from, to) = run.joined;
    writeln!(
        text,
        "<rect x=\"{}\" y=\"0\" width=\"{}\" height=\"100%\" fill=\"#eee\"/>",
        from as f64 * step,
        (to - from) as f64 * step
    )?;
    let curves: [(&str, fn(&Second) -> f64, &str); 2] = [
        ("requests done in each second", |of| of.done, "#06c"),
        ("p99 in ms", |of| of.p99, "#c30"),
    ];
    for (n, (name, figure, colour)) in curves.into_iter().enumerate() {
        let most = run.seconds.iter().map(figure).fold(1.0, f64::max);
        let top = n as f64 * (HEIGHT + 30.0) + 20.0;
        let point = |(at, second)| {
            format!("{:.1},{:.1}", at as f64 * step, top + HEIGHT * (1.0 - figure(second) / most))
        };
        let points: Vec<String> = run.seconds.iter().enumerate().map(point).collect();
        let system = system.word();
        writeln!(
            text,
            "<text x=\"4\" y=\"{}\">{system}: {name}, up to {most:.1}</text>",
            top - 6.0
        )?;
        writeln!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" points=\"{}\"/>",
            points.join(" ")
        )?;
    }
    text.push_str("</svg>\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Run, read, summary};
    use crate::bench::scale::System;

    #[test]
    fn the_worst_second_counts() {
        let text = "second,done,failed,p50,p99,max\n0,100,0,1.0,2.0,9.0\n1,40,1,1.0,8.0,90.0\n\
                    2,100,0,1.0,2.0,9.0\n";
        let run = Run { rate: 100.0, seconds: read(text), joined: (1, 2) };
        let summary = summary(System::Helenus, &run).expect("a text");
        assert!(summary.contains("40 % in the worst one; p99 8.00 ms (4.0 times)"), "{summary}");
    }
}
