//! `bench doctor --only read-ahead`: random reads of rows that do not fit into memory, on a disk
//! with little and with much read-ahead.

use std::fs;

use super::disk::{Disk, FileSystem};
use super::report::{Figure, Report, listed, plotted};
use super::server::{Server, Start, folder};
use super::{Plan, System};
use crate::bench::memory::Memory;
use crate::bench::process;
use crate::machine::Outcome;
use crate::peer::Peer;

const NAME: &str = "bench-doctor-cold";
/// What is advised, what Cassandra warns above, and twice what distributions have on arrays.
const READ_AHEAD_KIB: [u64; 3] = [8, 128, 8192];
/// Bytes of a row.
const ROW: u64 = 1000;
/// A JVM's heap, and what a Helenus may take.
const MEMORY: &str = "512M";
/// What a node may have, page cache and all.
const GROUP_BYTES: [u64; 2] = [1536 << 20, 1024 << 20];
/// Rows, their log, and a compaction of them.
const DISK_PER_DATA: u64 = 3;
const DISK_BESIDE: u64 = 1 << 30;

const FIGURES: [Figure; 6] = [
    plotted("reads/s", 0),
    listed("p50, ms", 2),
    plotted("p99, ms", 2),
    plotted("KB read of the device for each read", 1),
    listed("reads of the device for each read", 2),
    listed("CPU us/read", 1),
];

pub fn run(plan: &Plan) -> Outcome {
    let rows = plan.of(6_000_000, 500_000);
    let group = plan.of(GROUP_BYTES[0], GROUP_BYTES[1]);
    let mut report = Report::new(plan, "read-ahead", "Read-ahead under cold reads", &FIGURES)?;
    report.note(format!(
        "{rows} rows of {ROW} bytes in one SSTable on ext4 on a loop device; {} MB of memory, page \
         cache and all; any row is read, 32 at a time.",
        group >> 20
    ));
    for system in &plan.systems {
        one_system(plan, &mut report, *system, (rows, group))?;
    }
    report.end()
}

fn one_system(
    plan: &Plan,
    report: &mut Report,
    system: System,
    (rows, group): (u64, u64),
) -> Outcome {
    let bytes = rows * ROW * DISK_PER_DATA + DISK_BESIDE;
    // its disk is made anew
    Peer::stop_left(NAME)?;
    let disk = Disk::make(FileSystem::Ext4, bytes, &folder(NAME))?;
    let rows = rows.to_string();
    let rows = ["--rows", rows.as_str()];
    let mut start = Start {
        name: NAME,
        memory: MEMORY,
        settings: &[],
        ours: &[],
        group: None,
        is_again: false,
    };
    let server = Server::start(system, &start)?;
    server.client(plan)?.fill(&rows)?;
    server.nodetool("flush")?;
    server.nodetool("compact")?;
    process::until_rest(server.pid()?)?;
    drop(server);
    start.is_again = true;
    for kib in READ_AHEAD_KIB {
        disk.read_ahead(kib)?;
        let memory = Memory::new("helenus-bench-doctor", group)?;
        let processes = memory.processes();
        let server = Server::start(system, &Start { group: Some(&processes), ..start })?;
        fs::write("/proc/sys/vm/drop_caches", "1")?;
        let client = server.client(plan)?;
        let reads = [&rows[..], &["--reads", "1"]].concat();
        client.warm(&reads)?;
        let before = disk.done()?;
        let seconds = plan.seconds().to_string();
        let measured = ["--warm", "0", "--seconds", &seconds, "--seed", "2"];
        let found = client.run(&[&reads[..], &measured].concat())?;
        let done = disk.done()?.since(before);
        let operations = found.operations()?;
        let figures = [
            found.per_second()?,
            found.ms("p50")?,
            found.ms("p99")?,
            done.read as f64 / 1024.0 / operations,
            done.reads as f64 / operations,
            found.cpu_us()?,
        ];
        let raw = format!("{done:?}");
        report.row((&format!("{kib} KB"), system), &figures, &[&found.said, &raw])?;
        // the group goes after its process
        drop(server);
        drop(memory);
    }
    Ok(())
}
