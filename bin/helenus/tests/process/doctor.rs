//! `helenus doctor` on this machine, whatever it is.

use std::process::{Command, Output};

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
