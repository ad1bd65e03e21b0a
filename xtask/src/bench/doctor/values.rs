//! `bench doctor --only values`: reads and updates of values of 100 bytes to a megabyte.

use super::report::{Figure, Report, listed, plotted};
use super::server::{Server, Start};
use super::{Plan, System};
use crate::bench::systems::PRETOUCH;
use crate::machine::Outcome;

const NAME: &str = "bench-doctor-values";
const MEMORY: &str = "1G";
const SIZES: [(&str, u64); 5] =
    [("100 B", 100), ("1 KB", 1_000), ("10 KB", 10_000), ("100 KB", 100_000), ("1 MB", 1_000_000)];
/// Rows are so many bytes together, and at the most and the least so many.
const DATA: [u64; 2] = [200_000_000, 30_000_000];
const ROWS_MAX: u64 = 100_000;
const ROWS_MIN: u64 = 30;
/// Requests in flight: fewer than elsewhere, because of the large values.
const DEPTH: &str = "16";

const FIGURES: [Figure; 6] = [
    plotted("operations/s", 0),
    plotted("MB/s", 1),
    listed("p50, ms", 2),
    plotted("p99, ms", 2),
    plotted("CPU us/operation", 1),
    listed("failed", 0),
];

pub fn run(plan: &Plan) -> Outcome {
    let mut report = Report::new(plan, "values", "Sizes of values", &FIGURES)?;
    report.note(format!(
        "One node; rows of one value, all of which fit into memory; {DEPTH} requests at a time."
    ));
    for system in &plan.systems {
        one_system(plan, &mut report, *system)?;
    }
    report.end()
}

fn one_system(plan: &Plan, report: &mut Report, system: System) -> Outcome {
    let server = Server::start(
        system,
        &Start {
            name: NAME,
            memory: MEMORY,
            settings: &[],
            ours: &[PRETOUCH, "shards=1"],
            group: None,
            is_again: false,
        },
    )?;
    let client = server.client(plan)?;
    for (name, bytes) in SIZES {
        let rows = (plan.of(DATA[0], DATA[1]) / bytes).clamp(ROWS_MIN, ROWS_MAX).to_string();
        let (table, value) = (format!("bench.v{bytes}"), bytes.to_string());
        let shape = ["--table", &table, "--rows", &rows, "--columns", "1", "--bytes", &value];
        let shape = [&shape[..], &["--depth", DEPTH]].concat();
        client.fill(&shape)?;
        for (what, reads) in [("update", "0"), ("read", "1")] {
            let found = client.measure(&[&shape[..], &["--reads", reads]].concat())?;
            let figures = [
                found.per_second()?,
                found.per_second()? * bytes as f64 / 1e6,
                found.ms("p50")?,
                found.ms("p99")?,
                found.cpu_us()?,
                found.failed()?,
            ];
            report.row((&format!("{what} {name}"), system), &figures, &[&found.said])?;
        }
    }
    Ok(())
}
