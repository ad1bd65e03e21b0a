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

/// Where the script keeps the jars.
pub fn cache() -> PathBuf {
    machine::cache().join("peer")
}

/// The folder of Cassandra's jars, once one was started.
pub fn libraries() -> Outcome<PathBuf> {
    let folders = std::fs::read_dir(cache())?.filter_map(Result::ok).map(|entry| entry.path());
    let mut found = folders.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lib-5."))
    });
    found.next().ok_or_else(|| "there are no jars of Cassandra 5".into())
}

/// A Cassandra that stops when this value goes.
pub struct Peer {
    dir: PathBuf,
    /// Its address; the port is 9042.
    pub ip: String,
}

impl Peer {
    /// Starts one with an empty data directory.
    pub fn start(name: &str, ip: &str, heap: &str) -> Outcome<Self> {
        Self::start_with(name, ip, heap, &[])
    }

    /// Starts one with settings of the script's own (`peer help` names them).
    pub fn start_with(
        name: &str,
        ip: &str,
        heap: &str,
        settings: &[(&str, &Path)],
    ) -> Outcome<Self> {
        machine::need(&["bash", "java", "mvn", "python3"])?;
        Self::stop_left(name)?;
        let dir = machine::cache().join("run").join(name);
        let _ = std::fs::remove_dir_all(&dir);
        Self::launch(dir, ip, heap, settings, None)
    }

    /// Stops one that a command left that was killed.
    pub fn stop_left(name: &str) -> Outcome {
        let dir = machine::cache().join("run").join(name);
        match dir.join("pid").exists() {
            true => machine::run(script().arg("stop").arg(&dir)),
            false => Ok(()),
        }
    }

    /// Starts one on the data directory that is there.
    pub fn start_again(name: &str, ip: &str, heap: &str) -> Outcome<Self> {
        Self::start_again_with(name, ip, heap, &[])
    }

    /// The same with settings of the script's own.
    pub fn start_again_with(
        name: &str,
        ip: &str,
        heap: &str,
        settings: &[(&str, &Path)],
    ) -> Outcome<Self> {
        Self::launch(machine::cache().join("run").join(name), ip, heap, settings, None)
    }

    /// The same in a control group, by the list of its processes.
    pub fn start_again_in(
        name: &str,
        ip: &str,
        heap: &str,
        settings: &[(&str, &Path)],
        processes: &Path,
    ) -> Outcome<Self> {
        let dir = machine::cache().join("run").join(name);
        Self::launch(dir, ip, heap, settings, Some(processes))
    }

    /// Ends it at once.
    pub fn kill(self) -> Outcome {
        machine::run(Command::new("kill").arg("-9").arg(self.pid()?.to_string()))
    }

    fn launch(
        dir: PathBuf,
        ip: &str,
        heap: &str,
        settings: &[(&str, &Path)],
        processes: Option<&Path>,
    ) -> Outcome<Self> {
        let mut start = match processes {
            None => script(),
            Some(processes) => {
                let mut inside = Command::new("sh");
                inside.args(["-c", "echo 0 > \"$0\" && exec \"$@\""]).arg(processes);
                inside.arg(script().get_program());
                inside
            }
        };
        start.arg("start").arg(&dir).args([ip, heap]).env("FAST", "1");
        machine::run(start.envs(settings.iter().copied()))?;
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

impl Peer {
    /// What its nodetool prints.
    pub fn nodetool(&self, verb: &str) -> Outcome<String> {
        let (done, text) = machine::output(script().arg("nodetool").arg(&self.dir).arg(verb))?;
        match done {
            true => Ok(text),
            false => Err(format!("nodetool {verb} failed: {text}").into()),
        }
    }
}

fn pid_in(dir: &Path) -> Outcome<u32> {
    Ok(std::fs::read_to_string(dir.join("pid"))?.trim().parse()?)
}
