//! `cargo xtask bench ycsb`: YCSB on Helenus and on Cassandra in one run, one server at a time.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::peer::Peer;

const HELP: &str = "\
cargo xtask bench ycsb [--records N] [--operations N] [--threads N] [--workloads a,b,...] [--heap 4G] [--only NAME]
  loads N records (1000000), runs workloads a-f and four mixes; --only helenus | cassandra runs one of the two
  raw results are kept under bench/results/";

/// Addresses of the two servers.
const OURS: &str = "127.0.0.21";
const THEIRS: &str = "127.0.0.22";

/// `bench ycsb [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    if args.iter().any(|a| a == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let (mut heap, mut only, mut passed) = ("4G".to_owned(), None, Vec::new());
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name} wants a value"))?;
        match name.as_str() {
            "--heap" => heap.clone_from(value),
            "--only" => only = Some(value.as_str()),
            "--records" | "--operations" | "--threads" | "--workloads" => {
                passed.extend([name.clone(), value.clone()])
            }
            other => return Err(format!("unknown option {other}\n{HELP}").into()),
        }
    }
    machine::need(&["java", "mvn", "python3"])?;
    let folder = machine::root().join("bench/ycsb");
    super::build_client()?;
    let results = super::results()?;
    let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let mut files = Vec::new();
    if only != Some("cassandra") {
        node::build()?;
        let node = Node::start("bench-helenus", OURS)?;
        files.push(measure(
            "Helenus",
            &node.ip,
            node.pid(),
            &results.join(format!("ycsb-{stamp}-helenus.json")),
            &passed,
        )?);
    }
    if only != Some("helenus") {
        let peer = Peer::start("bench-cassandra", THEIRS, &heap)?;
        files.push(measure(
            "Cassandra",
            &peer.ip,
            peer.pid()?,
            &results.join(format!("ycsb-{stamp}-cassandra.json")),
            &passed,
        )?);
    }
    machine::run(Command::new("python3").arg(folder.join("run.py")).arg("report").args(&files))
}

fn measure(name: &str, ip: &str, pid: u32, out: &Path, options: &[String]) -> Outcome<PathBuf> {
    machine::run(
        Command::new("python3")
            .arg(machine::root().join("bench/ycsb/run.py"))
            .args(["measure", name, ip, "9042", &pid.to_string()])
            .arg(out)
            .args(options),
    )?;
    Ok(out.to_owned())
}
