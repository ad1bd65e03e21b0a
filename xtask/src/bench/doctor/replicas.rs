//! `bench doctor --only replicas`: what more replicas cost, at ONE and at LOCAL_QUORUM.

use std::fs;

use super::client::Client;
use super::report::{Figure, Report, listed, plotted};
use super::{Plan, System};
use crate::bench::scale::{Ring, Stopped};
use crate::machine::Outcome;

/// Nodes, where the memory permits.
const NODES: u8 = 5;
/// Where it does not, and in a short run.
const NODES_FEW: u8 = 3;
/// What a JVM takes with a heap of 1 GB.
const NODE_KIB: u64 = 1600 << 10;
const REPLICAS: [u8; 3] = [1, 3, 5];
const LEVELS: [&str; 2] = ["ONE", "LOCAL_QUORUM"];
const IN_FLIGHT: &str = "64";

const FIGURES: [Figure; 7] = [
    plotted("updates/s", 0),
    plotted("update p99, ms", 2),
    plotted("CPU us/update", 1),
    plotted("reads/s", 0),
    listed("read p99, ms", 2),
    plotted("CPU us/read", 1),
    listed("failed", 0),
];

/// As many as fit.
fn nodes(plan: &Plan) -> Outcome<u8> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let free = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = free.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let fits = free.ok_or("/proc/meminfo does not say what is free")? / NODE_KIB;
    Ok(if plan.is_short || fits < u64::from(NODES) { NODES_FEW } else { NODES })
}

pub fn run(plan: &Plan) -> Outcome {
    let nodes = nodes(plan)?;
    let mut report = Report::new(plan, "replicas", "Replicas and levels", &FIGURES)?;
    report.note(format!(
        "{nodes} nodes with 1 GB each on this machine; rows of 1 KB; {IN_FLIGHT} requests at a \
         time. CPU is that of all nodes together."
    ));
    for system in &plan.systems {
        one_system(plan, &mut report, *system, nodes)?;
    }
    report.end()
}

fn one_system(plan: &Plan, report: &mut Report, system: System, nodes: u8) -> Outcome {
    let stopped = Stopped::new()?;
    let ring = Ring::start(system, nodes, 16, "")?;
    let mut words = vec!["rate"];
    words.extend(ring.members.iter().map(|member| member.ip.as_str()));
    words.extend(["--closed", "--in-flight", IN_FLIGHT]);
    let client = Client::new(plan, &words, ring.pids()?);
    let rows = plan.of("100000", "10000");
    for replicas in REPLICAS.into_iter().filter(|replicas| *replicas <= nodes) {
        let (table, copies) = (format!("rf{replicas}.usertable"), replicas.to_string());
        let shape = ["--table", &table, "--rows", rows];
        let load = [&shape[..], &["--replicas", &copies, "--level", "QUORUM"]].concat();
        client.fill(&load)?;
        for level in LEVELS {
            let of = |reads| {
                client.measure(&[&shape[..], &["--level", level, "--reads", reads]].concat())
            };
            let (updates, reads) = (of("0")?, of("1")?);
            let figures = [
                updates.per_second()?,
                updates.ms("p99")?,
                updates.cpu_us()?,
                reads.per_second()?,
                reads.ms("p99")?,
                reads.cpu_us()?,
                updates.failed()? + reads.failed()?,
            ];
            let case = format!("RF {replicas}, {level}");
            report.row((&case, system), &figures, &[&updates.said, &reads.said])?;
        }
    }
    stopped.stop()
}
