//! `bench doctor --only commit-log`: inserts, with the commit log alone on a disk of one file
//! system or the other, compressed and not.

use std::time::Duration;

use super::disk::{Disk, FileSystem};
use super::report::{Figure, Report, listed, plotted};
use super::server::{Server, Start, folder};
use super::{Plan, System};
use crate::bench::systems::PRETOUCH;
use crate::machine::{self, Outcome};
use crate::peer::Peer;

const NAME: &str = "bench-doctor-log";
/// Where the commit log's disk is mounted.
const LOG: &str = "bench-doctor-log-disk";
const MEMORY: &str = "1G";
/// Somewhat longer than `commitlog_sync_period`.
const SYNC_PERIOD: Duration = Duration::from_secs(12);

const FIGURES: [Figure; 6] = [
    plotted("writes/s", 0),
    listed("p50, ms", 2),
    plotted("p99, ms", 2),
    plotted("CPU us/write", 1),
    plotted("bytes of the log's device for each write", 0),
    listed("failed", 0),
];

/// Settings by the name of the case.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const PLAIN: Case = ("uncompressed", &[]);
const LZ4: Case = ("LZ4", &[("commitlog_compression", "[{class_name: LZ4Compressor}]")]);
/// Each write waits until it is durable.
const GROUP: Case = (
    "group of 10 ms",
    &[
        ("commitlog_sync", "group"),
        ("commitlog_sync_group_window", "10ms"),
        ("commitlog_sync_period", "0ms"),
    ],
);
const BATCH: Case = ("batch", &[("commitlog_sync", "batch"), ("commitlog_sync_period", "0ms")]);

pub fn run(plan: &Plan) -> Outcome {
    let title = "Commit log by file system";
    let mut report = Report::new(plan, "commit-log", title, &FIGURES)?;
    report.note(
        "Rows of 1 KB are inserted, 32 at a time; the commit log alone is on a loop device. It is \
         synced periodically where nothing else is said."
            .to_owned(),
    );
    let xfs = machine::missing(&[FileSystem::Xfs.maker()]);
    if let Some(missing) = xfs.first() {
        report.note(format!("No rows of xfs: {missing}."));
    }
    for system in &plan.systems {
        for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
            if file_system == FileSystem::Xfs && !xfs.is_empty() {
                continue;
            }
            let slow = file_system == FileSystem::Ext4 && !plan.is_short;
            let more = if slow { &[GROUP, BATCH][..] } else { &[] };
            for case in [&[PLAIN, LZ4], more].concat() {
                one(plan, &mut report, *system, file_system, case)?;
            }
        }
    }
    report.end()
}

fn one(
    plan: &Plan,
    report: &mut Report,
    system: System,
    file_system: FileSystem,
    (what, settings): Case,
) -> Outcome {
    let place = folder(LOG);
    // its disk is made anew
    Peer::stop_left(NAME)?;
    let disk = Disk::make(file_system, plan.of(8 << 30, 2 << 30), &place)?;
    let log = place.join("log");
    std::fs::create_dir_all(&log)?;
    let log = log.display().to_string();
    let settings = [&[("commitlog_directory", log.as_str())], settings].concat();
    let server = Server::start(
        system,
        &Start {
            name: NAME,
            memory: MEMORY,
            settings: &settings,
            ours: &[PRETOUCH, "shards=1"],
            group: None,
            is_again: false,
        },
    )?;
    let client = server.client(plan)?;
    client.fill(&["--rows", "1000"])?;
    let inserts = ["--rows", "1000", "--reads", "0", "--inserts", "1"];
    let before = disk.done()?;
    let warm = client.warm(&inserts)?;
    let seconds = plan.seconds().to_string();
    let found = client.run(&[&inserts[..], &["--warm", "0", "--seconds", &seconds]].concat())?;
    // what is acknowledged is written by the next sync
    std::thread::sleep(plan.of(SYNC_PERIOD, Duration::ZERO));
    let done = disk.done()?.since(before);
    let written = done.written as f64 / (warm.operations()? + found.operations()?);
    let figures = [
        found.per_second()?,
        found.ms("p50")?,
        found.ms("p99")?,
        found.cpu_us()?,
        written,
        found.failed()?,
    ];
    let case = format!("{}, {what}", file_system.name());
    report.row((&case, system), &figures, &[&found.said, &format!("{done:?}")])?;
    // the disk goes after whoever writes to it
    drop(server);
    drop(disk);
    Ok(())
}
