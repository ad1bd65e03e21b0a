//! `cargo xtask campaign yaml FOLDER`: does a node start with the `cassandra.yaml` files of a
//! folder? Addresses and directories alone are other ones. Nothing of the files is kept: the
//! summary is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};

const IP: &str = "127.0.5.41";
/// The name of the node's folder below `.cache/run`.
const RUN: &str = "yaml";

/// `campaign yaml FOLDER`: all files below it that end in `.yaml`.
pub fn campaign(words: &[&str]) -> Outcome {
    let [folder] = words else { return Err(super::USAGE.into()) };
    node::build()?;
    let mut files = Vec::new();
    gather(Path::new(folder), &mut files)?;
    files.sort();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut starts = 0;
    println!("| file | outcome | refused | without effect |\n|---|---|---|---|");
    for path in &files {
        let file = one(path)?;
        starts += usize::from(file.outcome == STARTS);
        for reason in file.refused.iter().collect::<BTreeSet<_>>() {
            *reasons.entry(reason.clone()).or_default() += 1;
        }
        let name = path.strip_prefix(folder)?.display();
        let (refused, idle) = (file.refused.len(), file.idle);
        println!("| {name} | {} | {refused} | {idle} |", file.outcome);
    }
    println!(
        "\n{} files, {starts} start a node. What stops the others, by number of files:\n",
        files.len()
    );
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, count)| (usize::MAX - count, reason.clone()));
    for (reason, count) in reasons {
        println!("{count:>4}  {reason}");
    }
    Ok(())
}

const STARTS: &str = "starts";

/// What came of a file.
struct File {
    outcome: String,
    /// What stops the start, without places.
    refused: Vec<String>,
    /// How many settings have no effect.
    idle: usize,
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    for found in std::fs::read_dir(folder)? {
        let path = found?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}

/// Addresses and directories of this machine in place of the file's.
fn overrides() -> Vec<String> {
    let data = machine::cache().join("run").join(RUN).join("data");
    let mut set = vec![
        format!("data_file_directories=['{}']", data.join("data").display()),
        format!("broadcast_address={IP}"),
        format!("broadcast_rpc_address={IP}"),
        format!("seed_provider={{class_name: SimpleSeedProvider, parameters: {{seeds: '{IP}'}}}}"),
    ];
    for folder in ["commitlog", "hints", "saved_caches", "cdc_raw"] {
        set.push(format!("{folder}_directory={}", data.join(folder).display()));
    }
    set
}

fn one(path: &Path) -> Outcome<File> {
    let conf = machine::cache().join("run").join("yaml-conf");
    let _ = std::fs::remove_dir_all(&conf);
    std::fs::create_dir_all(&conf)?;
    let yaml = conf.join("cassandra.yaml");
    std::fs::copy(path, &yaml)?;
    // as every installation has them
    for name in ["cassandra-rackdc.properties", "cassandra-topology.properties"] {
        std::fs::copy(machine::root().join("packaging/conf").join(name), conf.join(name))?;
    }
    let set = overrides();
    let mut check = node::command();
    check.args(["--listen", IP, "check-config"]).arg(&yaml);
    check.args(set.iter().flat_map(|setting| ["--set", setting]));
    let done = check.output()?;
    let (said, wrong) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let idle = said.lines().map(idle_settings).sum();
    if !done.status.success() {
        return Ok(File { outcome: "refused".to_owned(), refused: reasons(&wrong), idle });
    }
    let settings: Vec<&str> = set.iter().map(String::as_str).collect();
    let mut command: Command = node::command();
    command.arg("--config").arg(&yaml);
    match Node::start_as(command, RUN, IP, &settings) {
        Ok(_) => Ok(File { outcome: STARTS.to_owned(), refused: Vec::new(), idle }),
        Err(_) => {
            let log = machine::cache().join("run").join(RUN).join("stderr.log");
            let text = std::fs::read_to_string(log)?;
            let why = text.lines().rev().find_map(|line| line.strip_prefix("helenus: "));
            let why = why.unwrap_or("it does not serve").to_owned();
            Ok(File { outcome: "does not start".to_owned(), refused: vec![why], idle })
        }
    }
}

/// How a line begins about a key that stands twice.
const DUPLICATE: &str = "duplicate key";

/// How many settings a line says to have no effect.
fn idle_settings(line: &str) -> usize {
    let named =
        |one: &str| line.strip_prefix(one)?.split_once(" ha").map(|(names, _)| names.to_owned());
    let names = named("the settings ").or_else(|| named("the setting "));
    names.map_or(0, |names| names.split(", ").count())
}

/// What stops a start, a reason each: without the file and the line.
fn reasons(wrong: &str) -> Vec<String> {
    let lines: Vec<&str> = wrong.lines().collect();
    let all = match lines.as_slice() {
        [_, more @ ..] if !more.is_empty() => more,
        one => one,
    };
    let reason = |line: &&str| {
        let line = line.trim().trim_start_matches("helenus: ");
        let behind = line.split_once(" line ").and_then(|(_, rest)| rest.split_once(": "));
        let reason = behind.map_or(line, |(_, reason)| reason);
        // whichever: one of them says it
        if reason.starts_with(DUPLICATE) { format!("{DUPLICATE}s") } else { reason.to_owned() }
    };
    all.iter().map(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::{idle_settings, reasons};

    #[test]
    fn reasons_have_no_places() {
        let one = "helenus: /a/cassandra.yaml line 3: unknown key b\n";
        assert_eq!(reasons(one), ["unknown key b"]);
        let two = "helenus: 2 settings stop the start:\n  /a line 1: c: d\n  e: \"f\" is refused\n";
        assert_eq!(reasons(two), ["c: d", "e: \"f\" is refused"]);
    }

    #[test]
    fn settings_without_effect_are_counted() {
        assert_eq!(idle_settings("the setting a has no effect: because"), 1);
        assert_eq!(idle_settings("the settings a, b have no effect: because"), 2);
        assert_eq!(idle_settings("something else"), 0);
    }
}
