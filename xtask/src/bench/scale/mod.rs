//! Rings that grow and shrink, of Helenus alone and of Cassandra alone: what the benchmarks of
//! streams, joins and scale-out share.

pub mod joins;
pub mod scaleout;
pub mod streams;

use std::process::Command;
use std::time::{Duration, Instant};

use super::process::{self, Used};
use crate::load;
use crate::machine::{self, Outcome};
use crate::members::{self, Layout, Member};

/// Memory of each node: a JVM's heap, and what a Helenus may take.
const HEAP: &str = "1G";
/// How long a node may take to join.
const JOIN_LIMIT: Duration = Duration::from_secs(3600);
/// How long nodes may take until they see each other.
const UP_LIMIT: Duration = Duration::from_secs(60);
/// Columns of a row, and bytes of each.
const COLUMNS: u64 = 10;
const BYTES: u64 = 100;
/// The table that all have.
const TABLE: &str = "bench.usertable";
const MB: f64 = 1e6;
/// Streams as fast as they can be.
const NO_THROTTLE: &str = "stream_throughput_outbound: 0MiB/s\n\
                           inter_dc_stream_throughput_outbound: 0MiB/s\n\
                           entire_sstable_stream_throughput_outbound: 0MiB/s\n\
                           entire_sstable_inter_dc_stream_throughput_outbound: 0MiB/s";

/// What a ring is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Helenus,
    Cassandra,
}

impl System {
    pub const ALL: [Self; 2] = [Self::Helenus, Self::Cassandra];

    pub fn parse_all(list: &str) -> Outcome<Vec<Self>> {
        let named = |word: &str| Self::ALL.into_iter().find(|system| system.word() == word);
        let systems: Option<Vec<Self>> = list.split(',').map(named).collect();
        Ok(systems.ok_or_else(|| format!("{list}: helenus, cassandra or both"))?)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Helenus => "helenus",
            Self::Cassandra => "cassandra",
        }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Helenus => "Helenus",
            Self::Cassandra => "Cassandra",
        }
    }
}

/// A ring that runs.
pub struct Ring {
    layout: Layout,
    pub members: Vec<Member>,
}

impl Ring {
    /// So many nodes, with lines of `cassandra.yaml` beside the usual ones.
    pub fn start(system: System, nodes: u8, tokens: u16, settings: &str) -> Outcome<Self> {
        let layout = Layout { tokens, settings: settings.to_owned(), ..Layout::default() };
        Self::start_as(system, nodes, layout)
    }

    /// The same, with what else a layout says.
    pub fn start_as(system: System, nodes: u8, layout: Layout) -> Outcome<Self> {
        let (ours, theirs) = if system == System::Helenus { (nodes, 0) } else { (0, nodes) };
        let memory = Some(format!("{HEAP}iB"));
        let layout = Layout { ours, theirs, shards: Some(1), memory, ..layout };
        let members = members::start_with(&layout, HEAP)?;
        let ring = Self { layout, members };
        ring.until_up()?;
        Ok(ring)
    }

    /// Waits until all nodes see each other up.
    fn until_up(&self) -> Outcome {
        let until = Instant::now() + UP_LIMIT;
        for member in &self.members {
            let up = || -> Outcome<usize> {
                let status = member.nodetool("status")?;
                Ok(status.lines().filter(|line| line.starts_with("UN ")).count())
            };
            while up()? < self.members.len() {
                if Instant::now() > until {
                    return Err(format!("{} does not see all others up", member.ip).into());
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        Ok(())
    }

    /// Fills the table with so many rows, and waits until nothing is left to flush or to compact.
    pub fn fill(&self, rows: u64, replicas: usize) -> Outcome {
        let mut load = self.rate();
        load.args(["--load", "--replicas", &replicas.to_string(), "--rows", &rows.to_string()]);
        load.args(["--seconds", "0.1", "--warm", "0", "--rate", "10"]);
        quietly(&mut load)?;
        for member in &self.members {
            member.nodetool("flush")?;
        }
        self.members.iter().try_for_each(|member| process::until_rest(member.pid()?.parse()?))
    }

    /// The load generator, at a rate of its own.
    pub fn rate(&self) -> Command {
        let mut load = Command::new(load::program());
        load.arg("rate").args(self.members.iter().map(|member| &member.ip));
        load.args(["--table", TABLE, "--columns", &COLUMNS.to_string()]);
        load.args(["--bytes", &BYTES.to_string()]);
        load
    }

    /// The processes of its nodes.
    pub fn pids(&self) -> Outcome<Vec<u32>> {
        self.members.iter().map(|member| Ok(member.pid()?.parse()?)).collect()
    }

    /// A node that is not there yet.
    pub fn newcomer(&self) -> Outcome<Member> {
        Ok(self.layout.member(u8::try_from(self.members.len())? + 1))
    }

    /// One that has ended starts again on its directory.
    fn start_in_place(&self, member: &Member) -> Outcome {
        member.start_in_place(&self.layout)?;
        self.until_up()
    }

    /// It comes, and serves.
    pub fn join(&self, newcomer: &Member) -> Outcome {
        members::join(&self.layout, newcomer, HEAP, JOIN_LIMIT)
    }
}

/// No ring is left when this value goes, whatever became of those that use it.
pub struct Stopped(());

impl Stopped {
    /// None is there now either.
    pub fn new() -> Outcome<Self> {
        members::stop()?;
        Ok(Self(()))
    }

    /// Stops it, and tells if it cannot.
    pub fn stop(self) -> Outcome {
        members::stop()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Err(e) = members::stop() {
            eprintln!("a ring stays (cargo xtask ring stop): {e}");
        }
    }
}

/// CPU of nodes until now; one that is not there yet, or no more, has used none.
pub fn cpu<'a>(members: impl IntoIterator<Item = &'a Member>) -> Duration {
    let of = |member: &Member| Used::of(member.pid().ok()?.parse().ok()?).ok();
    members.into_iter().filter_map(of).map(|used| used.cpu).sum()
}

/// Bytes of the table's files of a node.
pub fn stored(member: &Member) -> u64 {
    let folders = std::fs::read_dir(member.dir.join("data/data/bench"));
    let folders = folders.into_iter().flatten().filter_map(Result::ok);
    let files = folders.filter_map(|folder| std::fs::read_dir(folder.path()).ok());
    // what goes while it is looked at is gone
    let sizes = files.flatten().filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
    sizes.sum()
}

/// Rows whose values are so many gigabytes.
fn rows(gb: f64) -> u64 {
    (gb * 1e9) as u64 / (COLUMNS * BYTES)
}

/// Runs something that says much, and tells it only where it failed.
fn quietly(command: &mut Command) -> Outcome {
    match machine::output(command)? {
        (true, _) => Ok(()),
        (false, text) => Err(format!("{command:?} failed: {text}").into()),
    }
}

/// What something took: time, and CPU of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub time: Duration,
    pub cpu: Duration,
}

impl Taken {
    /// Of nodes among which may be one that comes meanwhile. One that leaves the ring goes on as a
    /// process.
    pub fn by(members: &[&Member], act: impl FnOnce() -> Outcome) -> Outcome<Self> {
        let (before, begin) = (cpu(members.iter().copied()), Instant::now());
        act()?;
        let (time, after) = (begin.elapsed(), cpu(members.iter().copied()));
        Ok(Self { time, cpu: after.saturating_sub(before) })
    }
}
