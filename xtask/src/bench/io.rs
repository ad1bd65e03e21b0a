//! `cargo xtask bench io`: reads and updates beside flushes and compactions on a time axis, Helenus
//! and Cassandra in one run, one server at a time, each beside a bare echo server that shows what
//! the machine itself does to latency.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::peer::Peer;

pub const HELP: &str = "\
cargo xtask bench io [--rows N] [--seconds N] [--threads N] [--rate N] [--compaction N] [--systems helenus,cassandra]
                   [--heap 2G]
  loads N rows of 1 KB (200000), then half reads and half updates of whole rows from N clients (32) for N seconds (120), as fast
  as they can or N a second, with caches of a quarter of the data, memtables so small that they are flushed all the time and
  compactions held to N MiB/s (8), at which they hardly ever end; prints the I/O of the device and of the server, on a time axis, and latencies of reads in windows with a
  flush, with a compaction only, and with neither
  raw results are kept under bench/results/";

/// Addresses of the two servers and of the echo server.
const OURS: &str = "127.0.0.111";
const THEIRS: &str = "127.0.0.112";
const ECHO: &str = "127.0.0.113:0";
/// Bytes of a row, about.
const ROW: u64 = 1100;
/// The part of the data that caches may hold.
const CACHED: u64 = 4;
/// Of a node's budget, the part that its cache of chunks has.
const CHUNKS: u64 = 4;
/// Memory of memtables of each of the two kinds that Cassandra has, in MiB: a third of it is a
/// flush.
const MEMTABLES: u64 = 24;
/// What compactions may write in a second, in MiB, unless told.
const COMPACTION: u64 = 8;
/// Bytes there and back of a ping, and the time between two.
const PING: usize = 1024;
const PAUSE: Duration = Duration::from_millis(1);

struct Options {
    rows: u64,
    seconds: u64,
    threads: u64,
    rate: u64,
    compaction: u64,
    systems: String,
    heap: String,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            rows: 200_000,
            seconds: 120,
            threads: 32,
            rate: 0,
            compaction: COMPACTION,
            systems: "helenus,cassandra".to_owned(),
            heap: "2G".to_owned(),
        };
        for option in super::options(args) {
            let (name, value) = option?;
            match name {
                "--rows" => options.rows = value.parse()?,
                "--seconds" => options.seconds = value.parse()?,
                "--rate" => options.rate = value.parse()?,
                "--compaction" => options.compaction = value.parse()?,
                "--threads" => options.threads = value.parse()?,
                "--systems" => options.systems = value.to_owned(),
                "--heap" => options.heap = value.to_owned(),
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }

    fn has(&self, system: &str) -> bool {
        self.systems.split(',').any(|name| name == system)
    }

    /// Memory for a cache, in MiB.
    fn cache(&self) -> u64 {
        (self.rows * ROW / CACHED).div_ceil(1 << 20).max(1)
    }
}

/// `bench io [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3"])?;
    super::build_client()?;
    let results = super::results()?;
    let stamp = super::stamp()?;
    let out = |system: &str| results.join(format!("io-{stamp}-{system}.json"));
    let mut files = Vec::new();
    if options.has("helenus") {
        node::build()?;
        node::build_nodetool()?;
        let out = out("helenus");
        helenus(&options, &out)?;
        files.push(out);
    }
    if options.has("cassandra") {
        let out = out("cassandra");
        cassandra(&options, &out)?;
        files.push(out);
    }
    let report = Command::new("python3").arg(script()).arg("report").args(&files).status()?;
    if report.success() { Ok(()) } else { Err("no report".into()) }
}

fn script() -> PathBuf {
    machine::root().join("bench/io/run.py")
}

fn helenus(options: &Options, out: &Path) -> Outcome {
    let settings = [
        format!("memory_budget={}MiB", (options.cache() * CHUNKS).max(64)),
        format!("memtable_heap_space={MEMTABLES}MiB"),
        format!("memtable_offheap_space={MEMTABLES}MiB"),
        format!("compaction_throughput={}MiB/s", options.compaction),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let node = Node::start_with("bench-io-helenus", OURS, &settings)?;
    let data = machine::cache().join("run/bench-io-helenus/data");
    let nodetool = node::nodetool_path();
    let own = ["--nodetool".to_owned(), nodetool.display().to_string()];
    measure(options, ("Helenus", &node.ip, node.pid()), &data, out, &own)
}

fn cassandra(options: &Options, out: &Path) -> Outcome {
    let yaml = format!(
        "memtable_heap_space: {MEMTABLES}MiB\nmemtable_offheap_space: {MEMTABLES}MiB\nmemtable_allocation_type: offheap_objects\n\
         compaction_throughput: {}MiB/s\nfile_cache_enabled: true\nfile_cache_size: {}MiB",
        options.compaction,
        options.cache()
    );
    let settings = [("EXTRA_YAML", Path::new(&yaml))];
    let peer = Peer::start_with("bench-io-cassandra", THEIRS, &options.heap, &settings)?;
    let dir = machine::cache().join("run/bench-io-cassandra");
    let own = ["--log".to_owned(), dir.join("log/system.log").display().to_string()];
    measure(options, ("Cassandra", &peer.ip, peer.pid()?), &dir.join("data"), out, &own)
}

fn measure(
    options: &Options,
    (name, ip, pid): (&str, &str, u32),
    data: &Path,
    out: &Path,
    own: &[String],
) -> Outcome {
    let pings = out.with_extension("echo");
    let echo = Echo::start(&pings)?;
    let measured = machine::run(
        Command::new("python3")
            .arg(script())
            .args(["measure", name, ip, "9042", &pid.to_string()])
            .args([data, out])
            .args(["--rows", &options.rows.to_string()])
            .args(["--seconds", &options.seconds.to_string()])
            .args(["--threads", &options.threads.to_string()])
            .args(["--rate", &options.rate.to_string()])
            .arg("--echo")
            .arg(&pings)
            .args(own),
    );
    echo.stop()?;
    let _ = std::fs::remove_file(pings);
    measured
}

/// An echo server with one client, which notes when and how long each ping took.
struct Echo {
    over: Arc<AtomicBool>,
    pinging: std::thread::JoinHandle<std::io::Result<()>>,
}

impl Echo {
    fn start(file: &Path) -> Outcome<Self> {
        let listener = TcpListener::bind(ECHO)?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            let (stream, _) = listener.accept()?;
            echo(stream)
        });
        let client = TcpStream::connect(address)?;
        let out = std::fs::File::create(file)?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let pinging = std::thread::spawn(move || ping(client, out, &ends));
        Ok(Self { over, pinging })
    }

    fn stop(self) -> Outcome {
        self.over.store(true, Ordering::Relaxed);
        match self.pinging.join() {
            Ok(result) => Ok(result?),
            Err(_) => Err("the echo server's client panicked".into()),
        }
    }
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; PING];
    loop {
        stream.read_exact(&mut bytes)?;
        stream.write_all(&bytes)?;
    }
}

/// A line a ping, `milliseconds since the epoch,microseconds that it took`, each written out at
/// once.
fn ping(mut stream: TcpStream, mut out: std::fs::File, over: &AtomicBool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [7; PING];
    let mut lines = String::new();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let started = Instant::now();
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        lines.push_str(&format!("{at},{}\n", started.elapsed().as_micros()));
        if lines.len() >= 4096 {
            out.write_all(lines.as_bytes())?;
            lines.clear();
        }
    }
    out.write_all(lines.as_bytes())
}
