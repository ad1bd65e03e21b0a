//! A real Apache Cassandra beside us: `conformance/peer/cassandra` does the work, this names it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};

pub fn run(args: &[String]) -> Outcome {
    machine::need(&["bash", "java"])?;
    machine::run(script().args(args))
}

pub fn script() -> Command {
    Command::new(machine::root().join("conformance/peer/cassandra"))
}

/// Heap of a Cassandra that only answers the corpus.
pub const ORACLE_HEAP: &str = "768M";

/// A Cassandra that stops when this value goes.
pub struct Peer {
    dir: PathBuf,
    /// Its address; the port is 9042.
    pub ip: String,
}

impl Peer {
    /// Starts one with an empty data directory.
    pub fn start(name: &str, ip: &str, heap: &str) -> Outcome<Self> {
        machine::need(&["bash", "java", "mvn", "python3"])?;
        let dir = machine::cache().join("run").join(name);
        if dir.join("pid").exists() {
            machine::run(script().arg("stop").arg(&dir))?;
        }
        let _ = std::fs::remove_dir_all(&dir);
        Self::start_again(name, ip, heap)
    }

    /// Starts one on the data directory that is there.
    pub fn start_again(name: &str, ip: &str, heap: &str) -> Outcome<Self> {
        let dir = machine::cache().join("run").join(name);
        machine::run(script().arg("start").arg(&dir).args([ip, heap]).env("FAST", "1"))?;
        Ok(Self { dir, ip: ip.to_owned() })
    }

    /// The server's process.
    pub fn pid(&self) -> Outcome<u32> {
        pid_in(&self.dir)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Err(e) = machine::run(script().arg("stop").arg(&self.dir)) {
            eprintln!("cannot stop the Cassandra in {}: {e}", self.dir.display());
        }
    }
}

fn pid_in(dir: &Path) -> Outcome<u32> {
    Ok(std::fs::read_to_string(dir.join("pid"))?.trim().parse()?)
}
