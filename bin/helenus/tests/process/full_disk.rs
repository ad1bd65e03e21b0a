//! A disk without space: writes are refused, reads go on, nothing acknowledged is lost.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use protocol::Consistency;

use crate::client::Client;
use crate::node::{Node, PATIENCE, Place};

/// A small file system in memory that only those see who are told: mounted in a namespace that a
/// sleeping process holds.
struct Disk(Child);

impl Disk {
    /// None where this user may not mount anything.
    fn mount(at: &Path, megabytes: u32) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let at = at.display();
        let script = format!(
            "mount -t tmpfs -o size={megabytes}m none {at} && echo ready && exec sleep 600"
        );
        let mut child = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let disk = Self(child);
        (line == "ready\n").then_some(disk)
    }

    /// A command run by who sees the disk.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.0.id().to_string();
        command.args(["--preserve-credentials", "--user", "--mount", "--target", &pid, program]);
        command
    }

    /// Fills what is left of it.
    fn fill(&self, at: &Path) {
        let script = format!("head -c 1G /dev/zero > {}/rest", at.display());
        let full = self.command("sh").args(["-c", &script]).stderr(Stdio::null()).status().unwrap();
        assert!(!full.success(), "the disk has room for a gigabyte");
    }

    /// A file's bytes, as who sees the disk reads them.
    fn read(&self, path: &Path) -> Vec<u8> {
        self.command("cat").arg(path).output().unwrap().stdout
    }

    fn grow(&self, at: &Path, megabytes: u32) {
        let options = format!("remount,size={megabytes}m");
        let done = self.command("mount").args(["-o", &options]).arg(at).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Megabytes of the disk when it is small, and when it has grown.
const SMALL: u32 = 64;
const LARGE: u32 = 256;
/// Bytes of a row.
const ROW_BYTES: usize = 20_000;

const SEGMENT_BYTES: usize = 4 << 20;
/// Of the nodes of these tests.
const SHARDS: usize = 2;

fn start(disk: &Disk, place: &Place, sync: &str) -> Node {
    let settings = [
        format!("metrics_address={}", place.ip()),
        format!("commitlog_sync={sync}"),
        format!("commitlog_segment_size={}MiB", SEGMENT_BYTES >> 20),
        "commitlog_total_space=24MiB".to_owned(),
        "commit_failure_policy=stop_commit".to_owned(),
        "disk_failure_policy=ignore".to_owned(),
        "auto_snapshot=false".to_owned(),
    ];
    let arguments: Vec<&str> = settings.iter().flat_map(|of| ["--set", of.as_str()]).collect();
    let command = disk.command(env!("CARGO_BIN_EXE_helenus"));
    let node = Node::start_by(command, &place.ip(), &place.data(), &arguments);
    node.line("Starting listening");
    node
}

/// A row's text: noise in hexadecimal digits.
fn text(row: usize) -> String {
    let mut state = row as u64 + 1;
    let mut text = String::with_capacity(ROW_BYTES);
    while text.len() < ROW_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}"));
    }
    text
}

/// The rows that are not there; one that is has its text.
fn missing(client: &mut Client, rows: usize) -> Vec<usize> {
    let is_missing = |row: &usize| {
        let found = client.query(&format!("SELECT v FROM ks.space WHERE k = {row}"));
        let is_there = found == [vec![Some(text(*row).into_bytes())]];
        assert!(is_there || found.is_empty(), "row {row} of {rows} is another one");
        !is_there
    };
    (0..rows).filter(is_missing).collect()
}

/// Reads until the clock's reserve has moved on twice: each slot of its file was written.
fn read_while_reserved(disk: &Disk, data: &Path, client: &mut Client, rows: usize) {
    let slots = || {
        let bytes = disk.read(&data.join("clock_reserve"));
        let (even, odd) = bytes.split_at(bytes.len() / 2);
        (even.to_vec(), odd.to_vec())
    };
    let (even, odd) = slots();
    let end = Instant::now() + PATIENCE;
    loop {
        assert_eq!(missing(client, rows), [0; 0], "reads still go on");
        let now = slots();
        if now.0 != even && now.1 != odd {
            return;
        }
        assert!(Instant::now() < end, "the clock's reserve does not move on");
    }
}

/// Writes until the disk is full, kills the node, and gives the disk room: the number of rows that
/// were acknowledged, and those of them that are gone. None where this user may not mount a file
/// system of its own.
fn fill_and_kill(place: &Place, sync: &str) -> Option<(usize, Vec<usize>)> {
    let Some(disk) = Disk::mount(&place.data(), SMALL) else {
        println!("not run: this user may not mount a file system of its own");
        return None;
    };
    let node = start(&disk, place, sync);
    let mut client = Client::connect(&node.ip);
    client.fill(0);
    client.query("CREATE TABLE ks.space (k int PRIMARY KEY, v text)");
    let mut rows = 0;
    let refusal = loop {
        let insert = format!("INSERT INTO ks.space (k, v) VALUES ({rows}, '{}')", text(rows));
        match client.try_query(&insert, Consistency::One) {
            Ok(_) => rows += 1,
            Err(refusal) => break refusal,
        }
        assert!(rows * ROW_BYTES < LARGE as usize * 1_000_000, "the disk is full by now");
    };
    println!("{rows} rows, then {refusal:?}");
    assert_eq!(missing(&mut client, rows), [0; 0], "reads go on");
    disk.fill(&place.data());
    read_while_reserved(&disk, &place.data(), &mut client, rows);
    node.signal("-KILL");
    node.ended();

    disk.grow(&place.data(), LARGE);
    let node = start(&disk, place, sync);
    let mut client = Client::connect(&node.ip);
    let gone = missing(&mut client, rows);
    client.query(&format!("INSERT INTO ks.space (k, v) VALUES ({rows}, '{}')", text(rows)));
    assert_eq!(missing(&mut client, rows + 1), gone, "writes go on");
    Some((rows, gone))
}

#[test]
fn a_full_disk_refuses_writes_and_loses_none_that_was_synced() {
    if let Some((_, gone)) = fill_and_kill(&Place::new(16), "batch") {
        assert_eq!(gone, [0; 0]);
    }
}

/// A periodic log acknowledges what is still on its way to the file, half a segment a shard at most
/// (GUARANTEES, durability): where the disk has no room for it, a kill takes it along, and nothing
/// that was acknowledged before.
#[test]
fn a_full_disk_takes_no_more_of_a_periodic_log_than_was_under_way() {
    let Some((rows, gone)) = fill_and_kill(&Place::new(31), "periodic") else { return };
    println!("gone: {gone:?}");
    let most = SHARDS * SEGMENT_BYTES / 2;
    assert!(gone.len() * ROW_BYTES <= most, "{} rows are gone", gone.len());
    // what was under way was written last: of both shards, at any rate, within twice as much
    let first = rows - rows.min(2 * most / ROW_BYTES);
    assert!(gone.iter().all(|row| *row >= first), "{gone:?} of {rows}");
}
