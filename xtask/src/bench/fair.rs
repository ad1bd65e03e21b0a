//! `cargo xtask bench fair`: what a client that asks for much does to the latency of another one;
//! then what becomes of a node that is asked for more than it can do.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};

use crate::load;
use crate::machine::{self, Outcome};
use crate::node::{self, Node};

pub const HELP: &str = "\
cargo xtask bench fair [--seconds N] [--rate N]
  a node of one shard on a core of its own, the clients on the other one; a client that reads N rows (1000) a second for N seconds (20),
  alone and beside one that keeps 10,000 requests in flight, one that scans the table, one that reads and writes one row alone
  then scans, three times as many a second as the node can do: how many are answered, how the others fail, and how soon it is as before
  the client that is measured has its core before the other one, which would else be measured too; wants root for that
  prints p99 beside p99 alone (at most 3 times), answers beside the most (at least 0.9), what failed, resident memory
  raw results are kept under bench/results/";

const ADDRESS: &str = "127.0.0.28";
const NAME: &str = "bench-fair";
/// The clients' core; the node has the first one.
const CLIENT_CORE: &str = "1";
/// Rows of 1 KB.
const ROWS: &str = "100000";
/// At most so many times the latency that the client sees alone.
const SLOWER: f64 = 3.0;
/// What another client does meanwhile.
const OTHERS: [(&str, &[&str]); 3] = [
    ("10,000 in flight", &["--reads", "1", "--depth", "10000"]),
    ("full scan", &["--reads", "0", "--scans", "1", "--scanned", "5000", "--depth", "1"]),
    ("one hot row", &["--reads", "0.5", "--rows", "1", "--depth", "256"]),
];
/// A request that is asked too often: a scan of some rows.
const HEAVY: [&str; 6] = ["--reads", "0", "--scans", "1", "--scanned", "200"];
/// So many times as often as the node can.
const TOO_OFTEN: f64 = 3.0;
/// At least so much of what it can do it does then.
const LEAST: f64 = 0.9;
/// Requests that the client has in flight at the most.
const IN_FLIGHT: &str = "100000";

struct Options {
    seconds: String,
    rate: String,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self { seconds: "20".to_owned(), rate: "1000".to_owned() };
        for option in args.chunks(2) {
            match option {
                [name, value] if name == "--seconds" => options.seconds.clone_from(value),
                [name, value] if name == "--rate" => options.rate.clone_from(value),
                _ => return Err(HELP.into()),
            }
        }
        Ok(options)
    }
}

/// `bench fair [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["taskset", "chrt"])?;
    node::build()?;
    load::build()?;
    let node = Node::start_with(NAME, ADDRESS, &["shards=1"])?;
    let mut report = Report(String::new());
    said(client("point").args(["--load", "--warm", "0", "--seconds", "0"]))?;
    let alone = steady(&options)?;
    report.raw("alone", &alone)?;
    for (what, args) in OTHERS {
        let other = client("point").args(args).args(["--seconds", "3600"]).spawn()?;
        let beside = steady(&options);
        end(other)?;
        let beside = beside?;
        report.raw(what, &beside)?;
        let (alone, beside) = (load::figure(&alone, "p99")?, load::figure(&beside, "p99")?);
        let ratio = beside / alone;
        report.say(&format!(
            "{what:<18} p99 {beside:>7.0} us, alone {alone:.0}: {ratio:.2} times (at most {SLOWER:.1})"
        ))?;
    }
    overload(&options, &node, &mut report)?;
    let stamp = super::stamp()?;
    let out = super::results()?.join(format!("fair-{stamp}.txt"));
    std::fs::write(&out, report.0)?;
    println!("raw: {}", out.display());
    Ok(())
}

/// More scans than the node can do, and reads right after.
fn overload(options: &Options, node: &Node, report: &mut Report) -> Outcome {
    let before = steady(options)?;
    let most = said(client("point").args(HEAVY).args(["--depth", "64", "--seconds", "20"]))?;
    let most = load::figure(&most, "per_second")?;
    let rate = format!("{:.0}", most * TOO_OFTEN);
    let mut too_often = client("rate");
    too_often.args(HEAVY).args(["--rate", &rate, "--in-flight", IN_FLIGHT]);
    too_often.args(["--level", "ONE", "--seconds", &options.seconds]);
    // some of them fail: that is what is looked at
    let (_, text) = machine::output(too_often.stdout(Stdio::piped()))?;
    let during = text.lines().last().unwrap_or_default().to_owned();
    let after = steady_for(options, "1", "0")?;
    for (what, line) in [("before", &before), ("too often", &during), ("after", &after)] {
        report.raw(what, line)?;
    }
    let answered = load::figure(&during, "operations")? / options.seconds.parse::<f64>()?;
    let share = answered / most;
    report.say(&format!(
        "{TOO_OFTEN} times {most:.0} scans a second: {answered:.0} answered, {share:.2} of the most (at least {LEAST}); {} failed; the \
         slowest answer after {:.0} ms",
        load::figure(&during, "failed")?,
        load::figure(&during, "max")? / 1e3,
    ))?;
    report.say(&format!(
        "reads in the second after it: p99 {:.0} us, before {:.0} us; {:.0} MB resident",
        load::figure(&after, "p99")?,
        load::figure(&before, "p99")?,
        node.resident()? as f64 / 1e6,
    ))
}

/// What is printed, and what is kept.
struct Report(String);

impl Report {
    fn say(&mut self, line: &str) -> Outcome {
        println!("{line}");
        Ok(writeln!(self.0, "{line}")?)
    }

    fn raw(&mut self, what: &str, line: &str) -> Outcome {
        Ok(writeln!(self.0, "  {what}: {line}")?)
    }
}

/// A client of the table, on its core.
fn client(verb: &str) -> Command {
    let mut client = Command::new("taskset");
    client.args(["-c", CLIENT_CORE]).arg(load::program());
    client.args([verb, ADDRESS, "--rows", ROWS, "--replicas", "1", "--connections", "1"]);
    client.stdout(Stdio::null());
    client
}

/// The client whose latency counts.
fn steady(options: &Options) -> Outcome<String> {
    steady_for(options, &options.seconds, "3")
}

fn steady_for(options: &Options, seconds: &str, warm: &str) -> Outcome<String> {
    let mut client = client("rate");
    client.args(["--rate", &options.rate, "--reads", "1", "--level", "ONE"]);
    // it is not to wait for the other client on their core: of the fair scheduler even the nicest
    // does now and then
    let mut first = Command::new("chrt");
    first.args(["--fifo", "1"]).arg(client.get_program()).args(client.get_args());
    said(first.args(["--seconds", seconds, "--warm", warm]))
}

/// The line of figures, none of which failed.
fn said(client: &mut Command) -> Outcome<String> {
    let (done, text) = machine::output(client.stdout(Stdio::piped()))?;
    match (done, text.lines().last()) {
        (true, Some(line)) => Ok(line.to_owned()),
        _ => Err(format!("the client failed: {text}").into()),
    }
}

fn end(mut other: Child) -> Outcome {
    if other.try_wait()?.is_some() {
        return Err("the other client ended too early".into());
    }
    other.kill()?;
    other.wait()?;
    Ok(())
}
