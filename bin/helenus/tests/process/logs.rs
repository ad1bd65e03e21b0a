//! The node's log: its file, how it reads, rolls, is opened again, and whose lines it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::client::Client;
use super::node::{Node, PATIENCE, Place};

/// Waits until a file has a line that says so, and gives its text.
fn until_said(path: &Path, what: &str) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.lines().any(|line| line.contains(what)) {
            return text;
        }
        assert!(Instant::now() < end, "{} lacks '{what}': {text}", path.display());
        std::thread::yield_now();
    }
}

fn directory(place: &Place) -> PathBuf {
    place.dir.join("logs")
}

/// A node that writes a log, with more settings.
fn logged(place: &Place, more: &[&str]) -> Node {
    let setting = format!("log_directory={}", directory(place).display());
    place.serve(&[&["--set", setting.as_str()], more].concat())
}

/// Is it a line of Cassandra's pattern, or goes on with one?
fn is_line(line: &str) -> bool {
    let parse = || -> Option<bool> {
        let (level, rest) = line.split_at_checked(6)?;
        let (thread, rest) = rest.strip_prefix('[')?.split_once("] ")?;
        let (date, rest) = rest.split_at_checked(24)?;
        let (place, message) = rest.split_once(" - ")?;
        let (file, number) = place.split_once(':')?;
        let shape: String =
            date.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
        Some(
            ["INFO  ", "WARN  ", "ERROR "].contains(&level)
                && (thread == "main" || thread.starts_with("shard-"))
                && shape == "9999-99-99 99:99:99,999 "
                && file.ends_with(".rs")
                && number.parse::<u32>().is_ok()
                && !message.is_empty(),
        )
    };
    line.starts_with('\t') || parse() == Some(true)
}

#[test]
fn the_log_has_what_tools_wait_for() {
    let place = Place::new(60);
    let node = logged(&place, &[]);
    let file = directory(&place).join("system.log");
    // standard output has it too
    node.line("Startup complete");
    let text = until_said(&file, "Startup complete");
    let ip = node.ip.clone();
    for what in [
        "shard-0] ".to_owned(),
        "configuration: none, built-in defaults".to_owned(),
        "data center: datacenter1, rack: rack1".to_owned(),
        "host ID: ".to_owned(),
        format!("Node /{ip}:7000 state jump to NORMAL"),
        format!("Starting listening for CQL clients on /{ip}:9042 (unencrypted)..."),
    ] {
        assert!(text.contains(&what), "{what}: {text}");
    }
    node.verb(&["drain"]);
    let text = until_said(&file, " - DRAINED");
    node.stop();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| is_line(line)), "{text}");
    assert!(!text.contains("ERROR "), "{text}");
}

#[test]
fn a_start_that_fails_says_why_in_the_log() {
    let place = Place::new(61);
    let _node = place.serve(&[]);
    let other = Place::new(62);
    let setting = format!("log_directory={}", directory(&other).display());
    let node = Node::start(&other.ip(), &place.data(), &["--set", &setting]);
    node.refuses();
    let text = until_said(&directory(&other).join("system.log"), "another node runs on it");
    let line = text.lines().last().unwrap();
    assert!(line.starts_with("ERROR [main] ") && is_line(line), "{text}");
}

#[test]
fn a_log_that_cannot_be_written_is_refused() {
    let place = Place::new(63);
    let file = place.dir.join("file");
    fs::write(&file, "").unwrap();
    let setting = format!("log_directory={}", file.join("logs").display());
    let said = place.start(&["--set", &setting]).refuses();
    assert!(said.contains("set another log_directory"), "{said}");
    let said = place.start(&["--set", "log_to=file"]).refuses();
    assert!(said.contains("log_directory is not set"), "{said}");
}

#[test]
fn a_file_that_is_large_enough_rolls() {
    let place = Place::new(64);
    let node = logged(&place, &["--set", "log_file_size=1KiB", "--set", "log_total_size=3KiB"]);
    let rolled = |n: usize| {
        let found = fs::read_dir(directory(&place)).unwrap().map(|entry| entry.unwrap());
        let names = found.map(|entry| entry.file_name().into_string().unwrap());
        let end = format!(".{n}");
        names.into_iter().any(|name| name.starts_with("system.log.") && name.ends_with(&end))
    };
    let end = Instant::now() + PATIENCE;
    // a line each
    while !rolled(6) {
        node.verb(&["setlogginglevel", "org.apache.cassandra.gms", "INFO"]);
        assert!(Instant::now() < end);
    }
    until_said(&directory(&place).join("system.log"), "set log level to INFO");
    assert!(!rolled(0), "the oldest go");
    node.stop();
}

#[test]
fn a_hangup_opens_the_file_again() {
    let place = Place::new(65);
    let node = logged(&place, &[]);
    let (file, old) = (directory(&place).join("system.log"), directory(&place).join("old"));
    until_said(&file, "Startup complete");
    fs::rename(&file, &old).unwrap();
    node.verb(&["setlogginglevel", "org.apache.cassandra.gms", "WARN"]);
    until_said(&old, "set log level to WARN");
    assert!(!file.exists());
    node.signal("-HUP");
    until_said(&file, "SIGHUP");
    node.verb(&["setlogginglevel", "org.apache.cassandra.gms", "INFO"]);
    until_said(&file, "set log level to INFO");
    assert!(!fs::read_to_string(&old).unwrap().contains("set log level to INFO"));
    node.stop();
}

#[test]
fn levels_are_set_shown_and_reset() {
    let place = Place::new(66);
    let node = logged(&place, &[]);
    let shown = |level: &str| {
        let heads = format!("\n{:<50}{:>10}\n", "Logger Name", "Log Level");
        format!("{heads}{:<50}{level:>10}\n", "ROOT")
    };
    assert_eq!(node.verb(&["getlogginglevels"]), shown("INFO"));
    assert_eq!(node.verb(&["setlogginglevel", "ROOT", "OFF"]), "");
    assert_eq!(node.verb(&["getlogginglevels"]), shown("OFF"));
    let said = node.verb(&["setlogginglevel", "com.example", "WARN"]);
    assert!(said.starts_with("Helenus logs nothing under com.example: "), "{said}");
    node.verb(&["drain"]);
    assert_eq!(node.verb(&["setlogginglevel"]), "");
    assert_eq!(node.verb(&["getlogginglevels"]), shown("INFO"));
    node.stop();
    let text = until_said(&directory(&place).join("system.log"), "Startup complete");
    assert!(!text.contains("DRAINED"), "nothing is written while all is off: {text}");
}

#[test]
fn a_log_of_json_has_an_object_a_line() {
    let place = Place::new(67);
    let directory = format!("log_directory={}", directory(&place).display());
    let settings = ["--set", &directory, "--set", "log_format=json", "--set", "log_to=file"];
    let node = place.start(&settings);
    let text = until_said(&self::directory(&place).join("system.log"), "Startup complete");
    node.stop();
    for line in text.lines() {
        assert!(line.starts_with("{\"level\":\"") && line.ends_with("\"}"), "{line}");
        let parsed: serde_json::Value = serde_json::from_str(line).unwrap();
        for key in ["level", "thread", "timestamp", "file", "message"] {
            assert!(parsed[key].is_string(), "{key}: {line}");
        }
        assert!(parsed["line"].is_u64(), "{line}");
    }
}

#[test]
fn a_slow_read_is_told_without_its_values() {
    let place = Place::new(68);
    let node = logged(&place, &["--set", "slow_query_log_timeout=1ms"]);
    let mut client = Client::connect(&node.ip);
    client.fill(2000);
    let file = directory(&place).join("system.log");
    let told = "<SELECT sum(v) FROM ks.t WHERE v > ? ALLOW FILTERING>";
    let end = Instant::now() + PATIENCE;
    let text = loop {
        client.query("SELECT sum(v) FROM ks.t WHERE v > -4711 ALLOW FILTERING");
        let text = fs::read_to_string(&file).unwrap();
        if text.contains(told) {
            break text;
        }
        assert!(Instant::now() < end, "{text}");
    };
    assert!(text.contains("slow in the last 5 s"), "{text}");
    assert!(text.contains("msec - slow timeout 1 msec"), "{text}");
    assert!(!text.contains("4711"), "{text}");
    node.stop();
}
