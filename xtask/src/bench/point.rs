//! `cargo xtask bench point`: reads and updates of one row each from a native client, beside a bare
//! server on the same runtime that answers the same bytes: how much of what the machine could do is
//! left of it?

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::awake::{self, Awake};
use crate::machine::{self, Outcome};
use crate::node::{self, Node};

pub const HELP: &str = "\
cargo xtask bench point [--seconds N] [--repeats N] [--connections N] [--depths 1,16] [--places one,aware,any]
                        [--awake yes|no]
  one: a node of one shard on a core of its own, a client on the other one with N connections (4) and so many requests under way on each;
  then an echo server in the node's place; N repeats (3) of N seconds (5); prints the CPU time of the server for each request
  aware, any: a node of two shards, one a core; each connection asks for rows of its own shard alone, or for any row; then an echo
  server of two shards
  awake: whether processors that have nothing to do stay awake (no); what a sleeping one costs whoever wakes it, the machine decides
  raw results are kept under bench/results/";

/// Addresses of the two servers.
const OURS: &str = "127.0.0.25";
const ECHO: &str = "127.0.0.26:9042";
/// The client's core; the server has the first one.
const CLIENT_CORE: &str = "1";
/// Operations, and how much of the echo server's requests per CPU second they have to reach: one at
/// a time, and many.
const OPERATIONS: [(&str, f64, f64); 2] = [("read", 0.50, 0.12), ("update", 0.45, 0.10)];

struct Options {
    seconds: String,
    repeats: usize,
    connections: usize,
    depths: Vec<String>,
    places: Vec<Place>,
    awake: bool,
}

/// Where rows are that a connection asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On the only shard.
    One,
    /// On the shard of two that has the connection.
    Aware,
    /// On any of two.
    Any,
}

impl Place {
    fn parse(word: &str) -> Outcome<Self> {
        match word {
            "one" => Ok(Self::One),
            "aware" => Ok(Self::Aware),
            "any" => Ok(Self::Any),
            other => Err(format!("no place {other}").into()),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Aware => "aware",
            Self::Any => "any",
        }
    }

    fn shards(self) -> usize {
        if self == Self::One { 1 } else { 2 }
    }
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            seconds: "5".to_owned(),
            repeats: 3,
            connections: 4,
            depths: vec!["1".to_owned(), "16".to_owned()],
            places: vec![Place::One, Place::Aware, Place::Any],
            awake: false,
        };
        for option in args.chunks(2) {
            match option {
                [name, value] if name == "--seconds" => options.seconds.clone_from(value),
                [name, value] if name == "--repeats" => options.repeats = value.parse()?,
                [name, value] if name == "--connections" => options.connections = value.parse()?,
                [name, value] if name == "--depths" => {
                    options.depths = value.split(',').map(str::to_owned).collect();
                }
                [name, value] if name == "--places" => {
                    options.places = value.split(',').map(Place::parse).collect::<Outcome<_>>()?;
                }
                [name, value] if name == "--awake" => options.awake = awake::parse(value)?,
                _ => return Err(HELP.into()),
            }
        }
        Ok(options)
    }
}

/// What a client said, and the server's CPU time of each request in microseconds.
struct Measured {
    said: String,
    micros: f64,
}

impl Measured {
    /// One of its figures.
    fn number(&self, name: &str) -> Outcome<f64> {
        let mut figures = self.said.split(' ').filter_map(|figure| figure.split_once('='));
        let found = figures.find(|(known, _)| *known == name).map(|(_, number)| number.parse());
        Ok(found.ok_or_else(|| format!("no {name} in `{}`", self.said))??)
    }

    fn rate(&self) -> Outcome<f64> {
        Ok(self.number("operations")? / self.number("seconds")?)
    }
}

/// `bench point [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["taskset"])?;
    node::build()?;
    build()?;
    let _awake = options.awake.then(Awake::begin).transpose()?;
    let (mut raw, mut table) = (String::new(), String::new());
    writeln!(
        table,
        "{:<15}{:>6}{:>14}{:>10}{:>20}{:>14}{:>10}{:>8}",
        "", "depth", "us of CPU", "echo's", "of the echo", "requests/s", "p99 us", "must"
    )?;
    for place in &options.places {
        for (operation, alone, deep) in OPERATIONS {
            for depth in &options.depths {
                let mut pairs = Vec::new();
                for _ in 0..options.repeats {
                    let ours = ours(&options, *place, operation, depth)?;
                    let bytes = ours.number("answer_bytes")?;
                    let echo = echo(&options, *place, operation, depth, bytes)?;
                    for (who, measured) in [("helenus", &ours), ("echo", &echo)] {
                        let (Measured { said, micros }, place) = (measured, place.word());
                        writeln!(
                            raw,
                            "{place} {operation} depth={depth} {who} cpu_us={micros} {said}"
                        )?;
                    }
                    pairs.push((echo.micros / ours.micros, ours, echo));
                }
                let must = if depth == "1" { alone } else { deep };
                let (place, middle) = (place.word(), middle(pairs)?);
                writeln!(
                    table,
                    "{place:<7}{operation:<8}{depth:>6}{middle}{:>6.0} %",
                    must * 100.0
                )?;
            }
        }
    }
    print!("{table}");
    let stamp = super::stamp()?;
    let out = super::results()?.join(format!("point-{stamp}.txt"));
    fs::write(&out, raw)?;
    println!("raw: {}", out.display());
    Ok(())
}

/// The pair in the middle, and how far the others are from it.
fn middle(mut pairs: Vec<(f64, Measured, Measured)>) -> Outcome<String> {
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let percent =
        |pair: Option<&(f64, Measured, Measured)>| pair.map_or(0.0, |pair| pair.0 * 100.0);
    let (least, most) = (percent(pairs.first()), percent(pairs.last()));
    let (share, ours, echo) = pairs.get(pairs.len() / 2).ok_or("no repeats")?;
    let shares = format!("{:.0} % ({least:.0}-{most:.0})", share * 100.0);
    let (ours_us, echo_us) = (ours.micros, echo.micros);
    let (rate, p99) = (ours.rate()?, ours.number("p99_us")?);
    Ok(format!("{ours_us:>14.2}{echo_us:>10.2}{shares:>20}{rate:>14.0}{p99:>10.0}"))
}

fn ours(options: &Options, place: Place, operation: &str, depth: &str) -> Outcome<Measured> {
    let node = Node::start_with("bench-point", OURS, &[&format!("shards={}", place.shards())])?;
    let aware = ["--shard-aware", "yes"];
    let more = if place == Place::Aware { &aware[..] } else { &[] };
    drive(options, &format!("{OURS}:9042"), operation, depth, node.pid(), more)
}

fn echo(
    options: &Options,
    place: Place,
    operation: &str,
    depth: &str,
    bytes: f64,
) -> Outcome<Measured> {
    let shards = place.shards().to_string();
    let mut server = tool();
    server.args(["echo", ECHO, &bytes.to_string(), "--shards", &shards]);
    let mut server = server.stdout(Stdio::piped()).spawn()?;
    let out = server.stdout.take().ok_or("no output")?;
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    let serving = lines.filter(|line| line.starts_with("echo on")).take(place.shards()).count();
    if serving < place.shards() {
        return Err("the echo server does not serve".into());
    }
    let bare = ["--bare", "yes"];
    let measured = drive(options, ECHO, operation, depth, server.id(), &bare);
    server.kill()?;
    server.wait()?;
    measured
}

/// Builds the client and the echo server.
pub fn build() -> Outcome {
    machine::run(
        Command::new("cargo")
            .args(["build", "--release", "--quiet", "--package", "point"])
            .current_dir(machine::root()),
    )
}

pub fn tool() -> Command {
    Command::new(machine::root().join("target/release/point"))
}

fn drive(
    options: &Options,
    address: &str,
    operation: &str,
    depth: &str,
    server: u32,
    more: &[&str],
) -> Outcome<Measured> {
    let mut client = Command::new("taskset");
    client.args(["-c", CLIENT_CORE]).arg(tool().get_program());
    client.args(["drive", address, operation, "--depth", depth]);
    client.args(["--connections", &options.connections.to_string(), "--seconds", &options.seconds]);
    let mut client = client.args(more).stdout(Stdio::piped()).spawn()?;
    let out = client.stdout.take().ok_or("no output")?;
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    if lines.next().as_deref() != Some("warm") {
        return Err("the client did not become warm".into());
    }
    let before = cpu(server)?;
    let said = lines.next().ok_or("the client said nothing")?;
    let took = cpu(server)? - before;
    client.wait()?;
    let mut measured = Measured { said, micros: 0.0 };
    let operations = measured.number("operations")?;
    if operations == 0.0 || measured.number("errors")? != 0.0 {
        return Err(format!("not all was answered: {}", measured.said).into());
    }
    measured.micros = took.as_secs_f64() * 1e6 / operations;
    Ok(measured)
}

/// CPU time of all threads of a process that live.
fn cpu(pid: u32) -> Outcome<Duration> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
    let of = |task: fs::DirEntry| -> Outcome<u64> {
        let text = fs::read_to_string(task.path().join("schedstat"))?;
        Ok(text.split(' ').next().unwrap_or_default().parse()?)
    };
    // a helper thread may end meanwhile
    let nanos = tasks.filter_map(Result::ok).filter_map(|task| of(task).ok()).sum();
    Ok(Duration::from_nanos(nanos))
}
