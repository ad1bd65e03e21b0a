//! A disk without space: writes are refused, reads go on, nothing acknowledged is lost.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use protocol::Consistency;

use crate::client::Client;
use crate::node::{Node, Place};

/// A small file system in memory that only those see who are told: mounted in a namespace that a sleeping process
/// holds.
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

/// Each write waits for its sync: with a periodic log the last ones before the failure are acknowledged while they are written, and a
/// kill loses what the disk had no room for (GUARANTEES, durability).
const SETTINGS: [&str; 12] = [
    "--set",
    "commitlog_sync=batch",
    "--set",
    "commit_failure_policy=stop_commit",
    "--set",
    "disk_failure_policy=ignore",
    "--set",
    "commitlog_segment_size=4MiB",
    "--set",
    "commitlog_total_space=24MiB",
    "--set",
    "auto_snapshot=false",
];

fn start(disk: &Disk, place: &Place) -> Node {
    let metrics = format!("metrics_address={}", place.ip());
    let settings = [&["--set", metrics.as_str()], &SETTINGS[..]].concat();
    let command = disk.command(env!("CARGO_BIN_EXE_helenus"));
    let node = Node::start_by(command, &place.ip(), &place.data(), &settings);
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

fn check(client: &mut Client, rows: usize) {
    for row in 0..rows {
        let found = client.query(&format!("SELECT v FROM ks.space WHERE k = {row}"));
        assert!(found == [vec![Some(text(row).into_bytes())]], "row {row} of {rows}");
    }
}

#[test]
fn a_full_disk_refuses_writes_and_loses_none() {
    let place = Place::new(16);
    let Some(disk) = Disk::mount(&place.data(), SMALL) else {
        println!("not run: this user may not mount a file system of its own");
        return;
    };
    let node = start(&disk, &place);
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
    check(&mut client, rows);
    node.signal("-KILL");
    node.ended();

    disk.grow(&place.data(), LARGE);
    let node = start(&disk, &place);
    let mut client = Client::connect(&node.ip);
    check(&mut client, rows);
    client.query(&format!("INSERT INTO ks.space (k, v) VALUES ({rows}, '{}')", text(rows)));
    check(&mut client, rows + 1);
}
