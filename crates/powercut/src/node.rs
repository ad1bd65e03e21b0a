//! Nodes: one that runs in this process with a recorder, and the real program.

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use config::{CommitLogSync, Config, Host};
use env::real::{self, RealOptions};
use env::{Class, Mesh, Recorder};
use node::{Message, NodeError, run_shard};
use server::ConnectionLimits;

use crate::client::{Client, Failure};

/// Shards of every node.
pub const SHARDS: usize = 2;
/// `commitlog_sync_period` of the periodic mode.
pub const PERIOD: Duration = Duration::from_millis(200);
/// `commitlog_sync_group_window` of the group mode.
const WINDOW: Duration = Duration::from_millis(8);
/// How long a start or an end may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a node looks whether it is to end.
const POLL: Duration = Duration::from_millis(2);
/// Port of the native transport.
const PORT: u16 = 9042;

/// `commitlog_sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every write waits for a sync.
    Batch,
    /// Every write waits for the sync of its window.
    Group,
    /// No write waits; the log is synced every [`PERIOD`].
    Periodic,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Batch, Self::Group, Self::Periodic];

    /// As the configuration spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Group => "group",
            Self::Periodic => "periodic",
        }
    }
}

/// Where a node lives: its directory and address.
#[derive(Clone, Debug)]
pub struct Place {
    /// All that the node has is below it; its node's own directory is `node` in it.
    pub root: PathBuf,
    /// Where it listens.
    pub ip: IpAddr,
    /// When it acknowledges writes.
    pub mode: Mode,
}

impl Place {
    /// The node's data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.root.join("node")
    }

    /// The log's directory: elsewhere, and deep enough that those above it are as new.
    pub fn log_dir(&self) -> PathBuf {
        self.root.join("disk/log/commitlog")
    }

    /// Removes everything.
    pub fn clear(&self) -> std::io::Result<()> {
        match std::fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir_all(&self.root)
    }

    /// A connection to the node here.
    pub fn connect(&self) -> Result<Client, Failure> {
        Client::connect(self.ip, PORT)
    }

    /// A verb of nodetool, through the node's socket.
    pub fn verb(&self, words: &[&str]) -> Result<(), String> {
        let socket = self.data_dir().join(admin::socket::NAME);
        let mut stream = UnixStream::connect(socket).map_err(|e| e.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|e| e.to_string())?;
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = admin::client::call(&mut stream, &words, &mut out, &mut err)
            .map_err(|e| e.to_string())?;
        match code {
            0 => Ok(()),
            _ => Err(String::from_utf8_lossy(&err).into_owned()),
        }
    }

    /// Small memtables and segments: flushes, compactions and removals of segments all the time.
    fn config(&self) -> Config {
        let mut config = Config::default();
        let dir = self.data_dir();
        config.data_file_directories = vec![dir.join("data")];
        config.commitlog_directory = self.log_dir();
        config.hints_directory = dir.join("hints");
        config.saved_caches_directory = dir.join("saved_caches");
        config.data_dir = dir;
        config.rpc_address = Host::Ip(self.ip);
        config.listen_address = Host::Ip(self.ip);
        config.native_transport.port = PORT;
        config.native_transport.shard_aware_port = None;
        config.metrics_port = 0;
        config.commitlog_sync = match self.mode {
            Mode::Batch => CommitLogSync::Batch,
            Mode::Group => CommitLogSync::Group { window: WINDOW },
            Mode::Periodic => {
                CommitLogSync::Periodic { period: PERIOD, lag_block: PERIOD + PERIOD / 2 }
            }
        };
        config.commitlog_segment_size = 64 << 10;
        config.commitlog_total_space = Some(768 << 10);
        config.memtable_space = Some(512 << 10);
        config.memtable_cleanup_threshold = 0.3;
        config.memory_budget = Some(16 << 20);
        config
    }
}

/// A node in this process.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), NodeError>>>,
}

impl Running {
    /// Starts a node and waits until it serves.
    pub fn start(place: &Place, recorder: Recorder) -> Result<Self, String> {
        let config = Arc::new(place.config());
        let stop = Arc::new(AtomicBool::new(false));
        let limits = ConnectionLimits::new();
        let options = RealOptions {
            shards: SHARDS,
            signals: false,
            recorder: Some(recorder),
            ..RealOptions::default()
        };
        let (send, ready) = channel();
        let stopping = Arc::clone(&stop);
        let main = move |env: env::Env, mesh: Mesh<Message>| {
            let (config, limits) = (Arc::clone(&config), limits.clone());
            let (send, stopping) = (send.clone(), Arc::clone(&stopping));
            run_shard(env, mesh, config, limits, move |node, _| {
                let env = node.env().clone();
                node.env().spawn(Class::Admin, async move {
                    while !stopping.load(Ordering::Acquire) {
                        env.sleep(POLL).await;
                    }
                    env.terminate();
                });
                let _ = send.send(());
            })
        };
        let thread = std::thread::spawn(move || real::run(options, main));
        let running = Self { stop, thread: Some(thread) };
        match ready.recv_timeout(PATIENCE) {
            Ok(()) => Ok(running),
            Err(_) => match running.end() {
                Ok(()) => Err("the node ended before it served".into()),
                Err(error) => Err(format!("the node does not start: {error}")),
            },
        }
    }

    fn end(mut self) -> Result<(), String> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        match thread.join() {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("it panicked".into()),
        }
    }

    /// Ends the node in order: everything is written to SSTables.
    pub fn stop(self) -> Result<(), String> {
        self.end().map_err(|error| format!("the node does not end in order: {error}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The real program; it is killed when this value goes.
pub struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    /// Starts it and waits until it serves.
    pub fn start(binary: &Path, place: &Place) -> Result<Self, String> {
        let text = |error: std::io::Error| format!("{}: {error}", binary.display());
        std::fs::create_dir_all(&place.root).map_err(text)?;
        let yaml = place.root.join("cassandra.yaml");
        let sync = match place.mode {
            Mode::Batch => "commitlog_sync: batch\n".to_owned(),
            Mode::Group => format!(
                "commitlog_sync: group\ncommitlog_sync_group_window: {}ms\n",
                WINDOW.as_millis()
            ),
            Mode::Periodic => format!(
                "commitlog_sync: periodic\ncommitlog_sync_period: {}ms\n",
                PERIOD.as_millis()
            ),
        };
        let sizes = "commitlog_segment_size: 1MiB\ncommitlog_total_space: 4MiB\n\
                     memtable_heap_space: 1MiB\nmemtable_cleanup_threshold: 0.2\n\
                     metrics_port: 0\n";
        std::fs::write(&yaml, sync + sizes).map_err(text)?;
        let mut child = Command::new(binary)
            .arg("--config")
            .arg(&yaml)
            .arg("--data-dir")
            .arg(place.data_dir())
            .args(["--listen", &place.ip.to_string(), "--shards", &SHARDS.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(text)?;
        let (send, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let _ = send.send(line);
                }
            });
        }
        let mut program = Self { child, lines };
        loop {
            match program.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains("Starting listening") => return Ok(program),
                Ok(_) => {}
                Err(_) => {
                    let _ = program.child.kill();
                    let ended = program.child.wait();
                    return Err(format!("the node does not start: {ended:?}"));
                }
            }
        }
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
