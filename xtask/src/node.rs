//! A Helenus node under test: built, started on an address of its own with an empty data directory,
//! stopped at the end.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::machine::{self, Outcome};
use crate::programs;

/// How long a node may take until it serves.
const START_LIMIT: Duration = Duration::from_secs(60);
/// What a node says that serves clients.
const SERVES: &str = "Starting listening for CQL clients";
/// How long it may drain after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A running node; it stops when this value goes.
pub struct Node {
    child: Child,
    /// From the start of the process to the line that says it serves.
    pub served_after: Duration,
    /// Its address; the port is 9042.
    pub ip: String,
}

/// Names a folder with a built `helenus` and `nodetool` that are run in place of new ones.
const BUILT: &str = "HELENUS_BUILT";

/// Is the node built with every assertion on, rather than as it is released?
static CHECKS_ALL: AtomicBool = AtomicBool::new(false);

/// Is the node the one to install, rather than one that is built sooner?
static AS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// From now on the node is the one that `cargo xtask dist` makes.
pub fn as_installed() {
    AS_INSTALLED.store(true, Ordering::Relaxed);
}

/// Where `cargo xtask dist` leaves the programs to install.
pub fn installed() -> PathBuf {
    machine::root().join("target/dist")
}

/// From now on the node is built as everything is that `cargo xtask test` runs: once for all
/// stages, with every assertion on.
pub fn check_all() {
    CHECKS_ALL.store(true, Ordering::Relaxed);
}

fn profile() -> &'static str {
    if CHECKS_ALL.load(Ordering::Relaxed) { programs::CHECKED } else { "release" }
}

/// Builds the node's binary.
pub fn build() -> Outcome {
    build_package("helenus")
}

fn build_package(package: &str) -> Outcome {
    if std::env::var_os(BUILT).is_some() {
        return Ok(());
    }
    if AS_INSTALLED.load(Ordering::Relaxed) {
        return machine::run(Command::new(std::env::current_exe()?).args(["dist", "--if-old"]));
    }
    if CHECKS_ALL.load(Ordering::Relaxed) {
        return programs::checked(package).map(drop);
    }
    machine::run(
        Command::new("cargo")
            .args(["build", "--release", "--package", package])
            .current_dir(machine::root()),
    )
}

fn built(name: &str) -> Command {
    Command::new(built_path(name))
}

fn built_path(name: &str) -> PathBuf {
    built_folder().join(name)
}

/// Where the built programs are.
pub fn built_folder() -> PathBuf {
    let folder = std::env::var_os(BUILT).map(PathBuf::from);
    folder.unwrap_or_else(|| match AS_INSTALLED.load(Ordering::Relaxed) {
        true => installed(),
        false => machine::root().join("target").join(profile()),
    })
}

/// Where the operator's client is.
pub fn nodetool_path() -> PathBuf {
    built_path("nodetool")
}

/// The node's binary.
pub fn command() -> Command {
    built("helenus")
}

/// Settings of a node that becomes a part of the ring of a seed. Nobody streams to it yet: it has
/// what it is written from then on.
pub fn member_args(cluster: &str, seed: &str) -> Vec<String> {
    let class = "class_name: SimpleSeedProvider";
    let seeds = format!("seed_provider={{{class}, parameters: {{seeds: '{seed}'}}}}");
    let settings = ["auto_bootstrap=false".to_owned(), format!("cluster_name={cluster}"), seeds];
    settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect()
}

/// Builds the operator's client.
pub fn build_nodetool() -> Outcome {
    build_package("nodetool")
}

/// The operator's client, for the node that has its data there.
pub fn nodetool(data: &Path) -> Command {
    let mut command = built("nodetool");
    command.arg("--data-dir").arg(data);
    command
}

impl Node {
    /// Starts a built node and waits for the line that says it serves.
    pub fn start(name: &str, ip: &str) -> Outcome<Self> {
        Self::start_with(name, ip, &[])
    }

    /// The same with settings (`key=value`) of its own.
    pub fn start_with(name: &str, ip: &str, settings: &[&str]) -> Outcome<Self> {
        Self::start_as(command(), name, ip, settings)
    }

    /// The same by a command that runs the node's binary, as a tool does.
    pub fn start_as(mut node: Command, name: &str, ip: &str, settings: &[&str]) -> Outcome<Self> {
        let _ = std::fs::remove_dir_all(machine::cache().join("run").join(name));
        node.args(settings.iter().flat_map(|setting| ["--set", setting]));
        Self::spawn(node, name, ip)
    }

    /// The same on what is in its directory.
    pub fn start_again(name: &str, ip: &str, settings: &[&str]) -> Outcome<Self> {
        let mut node = command();
        node.args(settings.iter().flat_map(|setting| ["--set", setting]));
        Self::spawn(node, name, ip)
    }

    /// The same in a control group, by the list of its processes: the node knows the group's limits
    /// when it starts.
    pub fn start_again_in(
        name: &str,
        ip: &str,
        settings: &[&str],
        processes: &Path,
    ) -> Outcome<Self> {
        let mut node = Command::new("sh");
        node.args(["-c", "echo 0 > \"$0\" && exec \"$@\""])
            .arg(processes)
            .arg(built_path("helenus"));
        node.args(settings.iter().flat_map(|setting| ["--set", setting]));
        Self::spawn(node, name, ip)
    }

    /// Starts the one that is built as `cargo xtask run` does, on an empty directory.
    pub fn start_by_run(name: &str, ip: &str) -> Outcome<Self> {
        let _ = std::fs::remove_dir_all(machine::cache().join("run").join(name));
        let mut run = Command::new(std::env::current_exe()?);
        run.args(["run", "--"]).env(BUILT, built_folder());
        Self::spawn(run, name, ip)
    }

    /// Starts one on an empty directory that becomes a part of the ring of a seed.
    pub fn start_member(name: &str, ip: &str, cluster: &str, seed: &str) -> Outcome<Self> {
        Self::start_member_with(name, ip, cluster, seed, &[])
    }

    /// The same with settings (`key=value`) of its own.
    pub fn start_member_with(
        name: &str,
        ip: &str,
        cluster: &str,
        seed: &str,
        settings: &[&str],
    ) -> Outcome<Self> {
        let _ = std::fs::remove_dir_all(machine::cache().join("run").join(name));
        let mut node = command();
        node.args(member_args(cluster, seed));
        node.args(settings.iter().flat_map(|setting| ["--set", setting]));
        Self::spawn(node, name, ip)
    }

    /// Starts it and waits until it serves.
    fn spawn(mut command: Command, name: &str, ip: &str) -> Outcome<Self> {
        let dir = machine::cache().join("run").join(name);
        std::fs::create_dir_all(&dir)?;
        let log = std::fs::File::create(dir.join("stderr.log"))?;
        let started = Instant::now();
        let mut child = command
            .arg("--data-dir")
            .arg(dir.join("data"))
            .args(["--listen", ip, "--set", &format!("metrics_address={ip}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut node = Self { child, served_after: Duration::ZERO, ip: ip.to_owned() };
        let (send, serving) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.contains(SERVES) {
                    let _ = send.send(());
                }
            }
        });
        match serving.recv_timeout(START_LIMIT) {
            Ok(()) => {
                node.served_after = started.elapsed();
                Ok(node)
            }
            Err(_) => {
                Err(format!("helenus does not serve; see {}", dir.join("stderr.log").display())
                    .into())
            }
        }
    }

    /// Its resident memory, in bytes.
    pub fn resident(&self) -> Outcome<u64> {
        self.memory("VmRSS:")
    }

    /// The most that it ever had, in bytes.
    pub fn most_resident(&self) -> Outcome<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> Outcome<u64> {
        machine::memory(self.child.id(), name)
    }

    /// Ends it at once.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The node's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let end = Instant::now() + STOP_LIMIT;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("helenus did not stop on SIGTERM");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
