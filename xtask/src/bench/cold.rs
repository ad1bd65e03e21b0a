//! `cargo xtask bench cold`: reads of rows that are not in memory: how often the device is asked
//! for each, what it costs, and what fio reaches with reads of the same size and depth; then a
//! compaction that nothing holds back, beside reads of rows that are in memory.

use std::fmt::Write as _;
use std::fs;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::awake::{self, Awake};
use super::memory::Memory;
use super::process::{self, Cores, Used};
use crate::load;
use crate::machine::{self, Outcome};
use crate::node::{self, Node};

pub const HELP: &str = "\
cargo xtask bench cold [--gb N] [--memory 2G] [--chunks 4,16] [--depths 32] [--seconds N] [--rate 10000] [--hot ROWS]
                       [--loaded yes] [--profile yes] [--awake yes|no]
  a node with so much memory (2 GB, page cache and all) and N GB (20) of rows of 1 KB, compacted into one SSTable, in chunks of 4 and
  of 16 KiB; for N seconds (30) each: reads of any row and of rows that are not there, with so many in flight (32), by a client of
  two threads, and fio on the same file; then reads of ROWS hot rows (25000), 30 s long as fast as can be and then at a fixed rate (10000), alone and beside a
  major compaction without a limit
  prints reads of the device for each read, operations and the share of fio's, CPU for each read, latencies, and how much of the time
  each core had nothing to do
  loaded: on the rows of the run before, of the same size and chunks
  profile: in which functions the node spends its time while it reads rows that are there, in a run of their own (wants perf)
  awake: whether processors that have nothing to do stay awake (no), beside fio and the node alike
  wants root (a control group for the memory) and fio; raw results are kept under bench/results/";

const ADDRESS: &str = "127.0.0.27";
const NAME: &str = "bench-cold";
const KEYSPACE: &str = "bench";
/// Bytes of a row.
const ROW: f64 = 1000.0;
/// Of the memory, the part that the node takes itself; the rest is the kernel's for its page cache.
const NODE_PART: u64 = 2;
/// At most so many reads of the device for a row that is there, and for one that is not.
const MOST: [f64; 2] = [1.05, 0.02];
/// At least so much of what fio reaches, where no core is full.
const LEAST_OF_FIO: f64 = 0.8;
/// A core that has nothing to do for less of its time is full.
const FULL: f64 = 0.05;
/// Where the node's time goes is sampled so many times a second.
const SAMPLES: &str = "999";
/// Lines of a profile that are kept.
const PROFILE_LINES: usize = 80;
/// Threads of the client, and connections of each to each shard: one thread would wait for the
/// shard on its core while the other core has nothing to do.
const READERS: [&str; 2] = ["2", "2"];
/// How many reads of any row are in flight before some are measured: the indexes are in memory once
/// each of their pages was read.
const WARM_DEPTH: &str = "256";
/// How long those take, and how long hot rows are read as fast as can be before they count as such.
const WARM_SECONDS: &str = "30";
/// At most so much slower beside a compaction.
const SLOWER: f64 = 2.0;

struct Options {
    gb: f64,
    memory: u64,
    chunks: Vec<u32>,
    depths: Vec<u32>,
    seconds: u64,
    rate: u64,
    hot: u64,
    is_loaded: bool,
    is_profiled: bool,
    awake: bool,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            gb: 20.0,
            memory: 2 << 30,
            chunks: vec![4, 16],
            depths: vec![32],
            seconds: 30,
            rate: 10_000,
            hot: 25_000,
            is_loaded: false,
            is_profiled: false,
            awake: false,
        };
        let list = |value: &str| value.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>();
        for option in args.chunks(2) {
            let [name, value] = option else { return Err(HELP.into()) };
            match name.as_str() {
                "--gb" => options.gb = value.parse()?,
                "--memory" => options.memory = bytes(value)?,
                "--chunks" => options.chunks = list(value)?,
                "--depths" => options.depths = list(value)?,
                "--seconds" => options.seconds = value.parse()?,
                "--rate" => options.rate = value.parse()?,
                "--hot" => options.hot = value.parse()?,
                "--loaded" => options.is_loaded = value == "yes",
                "--awake" => options.awake = awake::parse(value)?,
                "--profile" => options.is_profiled = value == "yes",
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }

    fn rows(&self) -> u64 {
        (self.gb * 1e9 / ROW) as u64
    }
}

/// `2G`, `500M`
fn bytes(text: &str) -> Outcome<u64> {
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let shift = match unit {
        "G" => 30,
        "M" => 20,
        _ => return Err(format!("{text}: a size is like 2G or 500M").into()),
    };
    Ok(number.parse::<u64>()? << shift)
}

/// `bench cold [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(if options.is_profiled { &["fio", "perf"] } else { &["fio"] })?;
    node::build()?;
    node::build_nodetool()?;
    load::build()?;
    let _awake = options.awake.then(Awake::begin).transpose()?;
    let mut report = String::new();
    for chunk in &options.chunks {
        measure(&options, *chunk, &mut report)?;
    }
    let stamp = super::stamp()?;
    let out = super::results()?.join(format!("cold-{stamp}.txt"));
    fs::write(&out, &report)?;
    println!("raw: {}", out.display());
    Ok(())
}

/// Says a line, and keeps it.
fn say(report: &mut String, line: &str) -> Outcome {
    println!("{line}");
    Ok(writeln!(report, "{line}")?)
}

/// The node that is measured.
struct Cold<'a> {
    options: &'a Options,
    node: Node,
    data: PathBuf,
    device: Device,
}

fn measure(options: &Options, chunk: u32, report: &mut String) -> Outcome {
    let memory = Memory::new("helenus-bench-cold", options.memory)?;
    let budget = format!("memory_budget={}MiB", (options.memory / NODE_PART) >> 20);
    let data = machine::cache().join("run").join(NAME).join("data");
    if !options.is_loaded {
        fill(options, chunk, &budget)?;
    }
    let device = Device::of(&data)?;
    // it begins with what reads bring into memory alone
    let settings = [budget.as_str()];
    let node = Node::start_again_in(NAME, ADDRESS, &settings, &memory.processes())?;
    fs::write("/proc/sys/vm/drop_caches", "1")?;
    let cold = Cold { options, node, data, device };
    for depth in &options.depths {
        cold.reads(chunk, *depth, report)?;
    }
    cold.compaction(chunk, report)?;
    // the group goes after its process
    drop(cold);
    drop(memory);
    Ok(())
}

/// Writes the rows, and compacts them.
fn fill(options: &Options, chunk: u32, budget: &str) -> Outcome {
    let node = Node::start_with(NAME, ADDRESS, &[budget])?;
    let chunk = chunk.to_string();
    let args = ["--reads", "1", "--load", "--chunk", &chunk, "--warm", "0", "--seconds", "0"];
    client("point", &node.ip, options.rows(), &args)?;
    let data = machine::cache().join("run").join(NAME).join("data");
    let unlimited = ["setcompactionthroughput", "0"];
    for words in [&["flush", KEYSPACE][..], &unlimited, &["compact", KEYSPACE]] {
        machine::run(node::nodetool(&data).args(words))?;
    }
    process::until_rest(node.pid())
}

/// Runs the client; what it said last.
fn client(verb: &str, ip: &str, rows: u64, more: &[&str]) -> Outcome<String> {
    let mut load = Command::new(load::program());
    load.args([verb, ip, "--rows", &rows.to_string(), "--replicas", "1"]);
    load.args(["--connections", "4", "--level", "ONE"]);
    let (done, text) = machine::output(load.args(more))?;
    match (done, text.lines().last()) {
        (true, Some(line)) => Ok(line.to_owned()),
        _ => Err(format!("the client failed: {text}").into()),
    }
}

impl Cold<'_> {
    fn load(&self, verb: &str, rows: u64, more: &[&str]) -> Outcome<String> {
        client(verb, &self.node.ip, rows, more)
    }

    /// Reads of any row, and of rows that are not there, beside what fio does.
    fn reads(&self, chunk: u32, depth: u32, report: &mut String) -> Outcome {
        let fio = self.fio(chunk, depth)?;
        say(report, &format!("{chunk} KiB, {depth} in flight: fio {fio:.0} reads/s of that size"))?;
        for (what, most, more) in [("hit", MOST[0], None), ("miss", MOST[1], Some("--absent"))] {
            let depth = depth.to_string();
            let seconds = self.options.seconds.to_string();
            let [threads, connections] = READERS;
            let args = ["--reads", "1", "--threads", threads, "--connections", connections];
            // the indexes come into memory first, and rows that are not read again
            let warm = ["--depth", WARM_DEPTH, "--warm", "0", "--seconds", WARM_SECONDS];
            self.load(
                "point",
                self.options.rows(),
                &[&args[..], &warm, &["--seed", "1"]].concat(),
            )?;
            let (device, used) = (self.device.reads()?, Used::of(self.node.pid())?);
            let cores = Cores::now()?;
            let measured = ["--depth", &depth, "--seconds", &seconds, "--warm", "0", "--seed", "2"];
            let args: Vec<&str> = args.into_iter().chain(measured).chain(more).collect();
            let said = self.load("point", self.options.rows(), &args)?;
            let reads = load::figure(&said, "operations")?;
            let idle = Cores::now()?.idle_since(&cores);
            let used = Used::of(self.node.pid())?.since(used).cpu.as_secs_f64();
            let asked = (self.device.reads()? - device) as f64 / reads;
            let (rate, p99) = (load::figure(&said, "per_second")?, load::figure(&said, "p99")?);
            let (share, cpu) = (rate / fio, used / reads * 1e6);
            let line = format!(
                "  {what:<5}{asked:>7.3} device reads (at most {most:.2}) {rate:>9.0} reads/s, {share:.2} of fio's (at least \
                 {LEAST_OF_FIO:.2}) {cpu:>6.1} us of CPU {:>5.2} cores, p99 {p99:.0} us, {}",
                used / load::figure(&said, "seconds")?,
                told(&idle),
            );
            say(report, &line)?;
            writeln!(report, "  {said}")?;
        }
        if self.options.is_profiled { self.profile(depth, report) } else { Ok(()) }
    }

    /// Says in which functions the node's time goes while rows that are there are read.
    fn profile(&self, depth: u32, report: &mut String) -> Outcome {
        let (depth, seconds) = (depth.to_string(), self.options.seconds.to_string());
        let samples = machine::cache().join("run").join(NAME).join("perf.data");
        let mut perf = Command::new("perf");
        perf.args(["record", "--quiet", "-F", SAMPLES, "-p", &self.node.pid().to_string()]);
        perf.arg("-o").arg(&samples).args(["--", "sleep", &seconds]);
        let mut perf = perf.spawn()?;
        let [threads, connections] = READERS;
        let args = ["--reads", "1", "--depth", &depth, "--seconds", &seconds, "--warm", "0"];
        let more = ["--threads", threads, "--connections", connections, "--seed", "3"];
        self.load("point", self.options.rows(), &[&args[..], &more].concat())?;
        if !perf.wait()?.success() {
            return Err("perf record failed".into());
        }
        let mut told = Command::new("perf");
        told.args(["report", "--stdio", "--no-children", "--fields", "overhead,symbol", "-i"])
            .arg(&samples);
        let told = told.stderr(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        let lines = text.lines().map(str::trim_end);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        if !told.status.success() || lines.clone().next().is_none() {
            return Err("perf report failed, or has nothing to tell".into());
        }
        say(report, &format!("  where the node's time goes, {depth} in flight:"))?;
        lines.take(PROFILE_LINES).try_for_each(|line| say(report, &format!("  {line}")))
    }

    /// Reads of rows in memory, alone and beside a compaction of everything.
    fn compaction(&self, chunk: u32, report: &mut String) -> Outcome {
        let (rate, seconds) = (self.options.rate.to_string(), self.options.seconds.to_string());
        let hot = |warm: &str| {
            let args = ["--reads", "1", "--rate", &rate, "--seconds", &seconds, "--warm", warm];
            // not before all others on its core (`chrt`, `nice`): there it would hold up the shard
            // that is bound to that core, and the scheduler move neither
            self.load("rate", self.options.hot, &args)
        };
        // chosen at random, most of them come again before each has come once: at the fixed rate
        // alone a part would be cold still
        let warm = ["--reads", "1", "--depth", "32", "--warm", "0", "--seconds", WARM_SECONDS];
        self.load("point", self.options.hot, &warm)?;
        let quiet = hot("3")?;
        let mut compact = node::nodetool(&self.data);
        compact.args(["compact", KEYSPACE]).stdout(Stdio::null());
        let mut compact = compact.spawn()?;
        let beside = hot("2")?;
        let is_over = compact.try_wait()?.is_some();
        compact.wait()?;
        let p99 = |said: &str| load::figure(said, "p99");
        let ratio = p99(&beside)? / p99(&quiet)?;
        let over = if is_over { "; the compaction ended before the reads" } else { "" };
        let line = format!(
            "{chunk} KiB, {rate} reads/s of hot rows: p99 {:.0} us, beside a major compaction {:.0} us: {ratio:.2} times (at most \
             {SLOWER:.1}){over}",
            p99(&quiet)?,
            p99(&beside)?,
        );
        say(report, &line)?;
        Ok(writeln!(report, "  {quiet}\n  {beside}")?)
    }

    /// Reads a second that fio does of the largest file.
    fn fio(&self, chunk: u32, depth: u32) -> Outcome<f64> {
        let file = largest(&self.data)?.ok_or("no SSTable")?;
        let mut fio = Command::new("fio");
        fio.arg(format!("--filename={}", file.display())).arg(format!("--bs={chunk}k"));
        fio.args(["--name=cold", "--rw=randread", "--readonly", "--direct=1", "--ioengine=psync"]);
        fio.args(["--thread", "--group_reporting", "--time_based", "--output-format=terse"]);
        fio.arg(format!("--numjobs={depth}")).arg(format!("--runtime={}", self.options.seconds));
        let (done, text) = machine::output(&mut fio)?;
        let line = text.lines().find(|line| line.contains(";cold;"));
        let iops = line.and_then(|line| line.split(';').nth(TERSE_READ_IOPS)?.parse().ok());
        match (done, iops) {
            (true, Some(iops)) => Ok(iops),
            _ => Err(format!("fio failed: {text}").into()),
        }
    }
}

/// How long the cores had nothing to do, as parts of the time, and whether one is full.
fn told(idle: &[f64]) -> String {
    let parts: Vec<String> = idle.iter().map(|part| format!("{part:.2}")).collect();
    let full =
        if idle.iter().any(|part| *part < FULL) { "a core is full" } else { "no core is full" };
    format!("cores idle {}: {full}", parts.join(" "))
}

/// Where the terse output of fio, version 3, has the reads a second.
const TERSE_READ_IOPS: usize = 7;

/// The largest `-Data.db` below a folder.
fn largest(folder: &Path) -> Outcome<Option<PathBuf>> {
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)?.filter_map(Result::ok) {
            let (path, about) = (entry.path(), entry.metadata()?);
            if about.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with("-Data.db")
                && largest.as_ref().is_none_or(|(size, _)| about.len() > *size)
            {
                largest = Some((about.len(), path));
            }
        }
    }
    Ok(largest.map(|(_, path)| path))
}

/// The device under a folder.
struct Device(PathBuf);

impl Device {
    fn of(folder: &Path) -> Outcome<Self> {
        let number = fs::metadata(folder)?.st_dev();
        let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00));
        let stat = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        match stat.is_file() {
            true => Ok(Self(stat)),
            false => Err(format!("{} is on no block device", folder.display()).into()),
        }
    }

    /// Reads that it has completed.
    fn reads(&self) -> Outcome<u64> {
        let stat = fs::read_to_string(&self.0)?;
        Ok(stat.split_whitespace().next().ok_or("no reads in the device's stat")?.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("2G").expect("a size"), 2 << 30);
        assert_eq!(bytes("500M").expect("a size"), 500 << 20);
        assert!(bytes("500").is_err() && bytes("G").is_err() && bytes("").is_err());
    }
}
