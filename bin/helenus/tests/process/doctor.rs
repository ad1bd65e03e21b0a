//! `helenus doctor` on this machine, whatever it is.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use crate::node::Place;

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_helenus")).arg("doctor").args(arguments).output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Memory is the one thing that is never a place for data, wherever a test runs.
const IN_MEMORY: &str = "/dev/shm/helenus-doctor/not/there";

#[test]
fn says_what_is_serious_and_exits_so() {
    let output = doctor(&["--data-dir", IN_MEMORY, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = json(&output);
    let found: Vec<(&str, &str)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["id"].as_str().unwrap(), f["subject"].as_str().unwrap()))
        .collect();
    for folder in ["data", "commitlog", "hints"] {
        let path = format!("{IN_MEMORY}/{folder}");
        assert!(found.contains(&("fs_memory", &path)), "{path}: {found:?}");
    }
    assert!(!std::path::Path::new("/dev/shm/helenus-doctor").exists());
    let text = doctor(&["--data-dir", IN_MEMORY]);
    assert_eq!(text.status.code(), Some(1));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("serious "), "{text}");
    assert!(text.contains(" checks found nothing to change."), "{text}");
}

#[test]
fn looks_at_the_machine_that_it_runs_on() {
    let place = Place::new(70);
    let data = place.data().display().to_string();
    // more shards than any machine has: a fact of the configuration
    let output = doctor(&["--data-dir", &data, "--shards", "1000", "--json"]);
    let report = json(&output);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|f| f["id"] == "shards_many"), "{findings:?}");
    assert!(findings.iter().all(|f| f["id"] != "directory_writable"), "{findings:?}");
    let is_serious = findings.iter().any(|f| f["severity"] == "serious");
    assert_eq!(output.status.code(), Some(i32::from(is_serious)));
    let unknown = report["unknown"].as_array().unwrap();
    for id in ["kernel_old", "io_uring_refused", "files_low", "space_low", "somaxconn"] {
        assert!(!unknown.iter().any(|other| other == id), "{id}");
    }
    assert!(!place.data().exists(), "the doctor made {data}");
    let left = std::fs::read_dir(&place.dir).unwrap().count();
    assert_eq!(left, 0, "the doctor left a file");
}

#[test]
fn says_why_it_cannot_look() {
    for arguments in [&["--config", "/not/there.yaml"][..], &["--set", "no_such_key=1"]] {
        let output = doctor(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("helenus: "));
    }
    assert_eq!(doctor(&["--demo"]).status.code(), Some(2));
}

/// A peer that serves until this value goes.
struct Serving {
    child: Child,
    port: u16,
}

impl Serving {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
        let command = command.args(["doctor", "--serve", "0"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.strip_prefix("Serving on port ").and_then(|rest| rest.strip_suffix(".\n"));
        Self { port: port.unwrap().parse().unwrap(), child }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const FIGURES: [&str; 19] = [
    "write_128k",
    "read_128k",
    "read_4k_depth_1",
    "read_4k_depth_1_p50",
    "read_4k_depth_1_p99",
    "read_4k_depth_8",
    "read_4k_depth_8_p50",
    "read_4k_depth_8_p99",
    "read_4k_depth_32",
    "read_4k_depth_32_p50",
    "read_4k_depth_32_p99",
    "append_sync_4k",
    "append_sync_4k_p50",
    "append_sync_4k_p99",
    "memory_copy",
    "cpu",
    "network_round_trip_p50",
    "network_round_trip_p99",
    "network_bandwidth",
];

#[test]
fn measures_keeps_and_compares() {
    let place = Place::new(71);
    let data = place.data();
    std::fs::create_dir_all(data.join("doctor")).unwrap();
    // of another release, or cut off: it is passed over
    std::fs::write(data.join("doctor/baseline-9999.json"), "{").unwrap();
    let peer = Serving::start();
    let address = format!("127.0.0.1:{}", peer.port);
    let text = data.display().to_string();
    let arguments = ["--data-dir", &text, "--measure", "--seconds", "1", "--peer", &address];
    let first = doctor(&[&arguments[..], &["--json"]].concat());
    assert!(matches!(first.status.code(), Some(0 | 1)), "{first:?}");
    let first = json(&first);
    assert_eq!(first["compared_with"], serde_json::Value::Null);
    let figures = first["baseline"]["figures"].as_array().unwrap();
    let names: BTreeSet<&str> =
        figures.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    for name in FIGURES {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    for figure in figures.iter().filter(|figure| figure["name"] != "network_sent_again") {
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert!(first["baseline"]["file_bytes"].as_u64().unwrap() <= 1 << 30);
    let second = doctor(&arguments);
    let second = String::from_utf8(second.stdout).unwrap();
    let date = first["baseline"]["date"].as_str().unwrap();
    assert!(second.contains(&format!("Compared with {date}; ")), "{second}");
    let mut left: Vec<_> =
        std::fs::read_dir(&data).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.extend(std::fs::read_dir(&place.dir).unwrap().map(|entry| entry.unwrap().file_name()));
    assert_eq!(left, ["doctor", "data"], "the doctor left a file");
    assert_eq!(std::fs::read_dir(data.join("doctor")).unwrap().count(), 3);
}

#[test]
fn a_peer_that_is_not_there_is_said() {
    let place = Place::new(72);
    let data = place.data().display().to_string();
    // a port that was free a moment ago
    let gone = Serving::start().port;
    let peer = format!("127.0.0.1:{gone}");
    let arguments = ["--data-dir", &data, "--measure", "--seconds", "1", "--peer", &peer];
    let output = doctor(&arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with(&format!("helenus: peer {peer}: ")), "{error}");
    assert_eq!(std::fs::read_dir(&place.dir).unwrap().count(), 0);
}

#[test]
fn what_a_stranger_sends_ends_its_connection_alone() {
    use std::io::{Read, Write};
    let peer = Serving::start();
    let connect = || std::net::TcpStream::connect(("127.0.0.1", peer.port)).unwrap();
    let mut stranger = connect();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = stranger.read(&mut [0; 1]);
    let mut other = connect();
    other.write_all(b"Cabc").unwrap();
    other.shutdown(std::net::Shutdown::Write).unwrap();
    let mut count = [0; 8];
    other.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_be_bytes(count), 3);
}
