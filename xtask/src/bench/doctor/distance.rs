//! `bench doctor --only distance`: two data centres that are far apart: what writes wait for, and
//! how long the other one does not have them.

use std::process::{Command, Stdio};

use super::client::Client;
use super::report::{Figure, Report, listed, plotted};
use super::{Plan, System};
use crate::bench::scale::{Ring, Stopped};
use crate::load;
use crate::machine::Outcome;
use crate::members::{Layout, Member};
use crate::network::{Distance, Networks};

/// There and back.
const DISTANCES_MS: [u32; 3] = [1, 20, 80];
const LEVELS: [&str; 2] = ["LOCAL_QUORUM", "EACH_QUORUM"];
/// Nodes of each data centre, each of which has all rows.
const NODES: [u8; 2] = [3, 1];
const IN_FLIGHT: &str = "64";
/// Writes a second where latencies are measured: none of them waits for another one.
const RATE: &str = "200";
const ROWS: &str = "10000";

const FIGURES: [Figure; 7] = [
    plotted("write p50, ms", 2),
    plotted("write p99, ms", 2),
    plotted("writes/s, 64 at a time", 0),
    plotted("lag p50, ms", 2),
    plotted("lag p99, ms", 2),
    listed("longest lag, ms", 1),
    listed("failed", 0),
];

pub fn run(plan: &Plan) -> Outcome {
    let nodes = plan.of(NODES[0], NODES[1]);
    let mut report =
        Report::new(plan, "distance", "Two data centres that are far apart", &FIGURES)?;
    report.note(format!(
        "Two data centres on this machine; in each {nodes} of nodes with 1 GB, and as many \
         replicas; clients in the first. Latency and lag are at {RATE} writes of 1 KB a second. \
         Lag: from the answer to a write until LOCAL_ONE finds it in the second data centre. The \
         distance is there and back."
    ));
    for system in &plan.systems {
        one_system(plan, &mut report, *system, nodes)?;
    }
    report.end()
}

fn one_system(plan: &Plan, report: &mut Report, system: System, nodes: u8) -> Outcome {
    let networks = Networks::make(nodes * 2)?;
    // nodes are dealt over the data centres in turn
    let far: Vec<u8> = (1..=nodes * 2).filter(|number| number % 2 == 0).collect();
    let mut distance = Distance::between(&networks, &far)?;
    // it goes before the networks of its nodes do
    let stopped = Stopped::new()?;
    let layout = Layout { centers: 2, has_networks: true, ..Layout::default() };
    let ring = Ring::start_as(system, nodes * 2, layout)?;
    let (near, far): (Vec<&Member>, Vec<&Member>) =
        ring.members.iter().partition(|member| member.center == "datacenter1");
    let mut words = vec!["rate"];
    words.extend(near.iter().map(|member| member.ip.as_str()));
    let copies = nodes.to_string();
    words.extend(["--rows", ROWS, "--replicas", &copies, "--reads", "0"]);
    let client = Client::new(plan, &words, ring.pids()?);
    client.fill(&[])?;
    for ms in DISTANCES_MS {
        distance.set(ms)?;
        for level in LEVELS {
            let found = client.measure(&[
                "--level",
                level,
                "--closed",
                "--in-flight",
                IN_FLIGHT,
                "--retries",
            ])?;
            // both at the same time: a write is late because of those before it
            let seconds = plan.seconds().to_string();
            let at_level = ["--level", level, "--warm", "1", "--seconds", &seconds];
            let lag = lag(&near, &far, &[&at_level, &["--replicas", &copies]])?;
            let steady = client.run(&[&at_level[..], &["--rate", RATE]].concat())?;
            let lag = lag()?;
            let lagged = |name: &str| Outcome::Ok(load::figure(&lag, name)? / 1e3);
            let figures = [
                steady.ms("p50")?,
                steady.ms("p99")?,
                found.per_second()?,
                lagged("p50")?,
                lagged("p99")?,
                lagged("max")?,
                steady.failed()? + found.failed()? + load::figure(&lag, "failed")?,
            ];
            let said: [&str; 3] = [&steady.said, &found.said, &lag];
            report.row((&format!("{ms} ms, {level}"), system), &figures, &said)?;
        }
    }
    stopped.stop()
}

/// Begins to measure how long writes are not there: what it says when it has ended.
fn lag(
    near: &[&Member],
    far: &[&Member],
    more: &[&[&str]],
) -> Outcome<impl FnOnce() -> Outcome<String> + use<>> {
    let mut load = Command::new(load::program());
    load.arg("lag").args(near.iter().map(|member| &member.ip));
    load.arg("--far").args(far.iter().map(|member| &member.ip)).args(more.concat());
    let child = load.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    Ok(move || {
        let said = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let line = text.lines().last().filter(|line| line.starts_with('{'));
        Ok(line.ok_or_else(|| format!("the client failed: {text}"))?.to_owned())
    })
}
