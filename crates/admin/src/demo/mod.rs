//! Demonstration data: the machine's own CPU, memory, disk and network, sampled once a second and
//! written by CQL into `demo.machine`, a time series that anybody can look at.

mod proc;
mod rates;
mod statements;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use env::{Env, File, OpenOptions, TimedOut};

pub use proc::{CpuTimes, DiskCounters, MAX_DEVICES, Memory, NetworkCounters, ProcError};
pub use rates::{Measurement, measure};
pub use statements::{HOUR_MILLIS, insert, last_minute, schema};

/// Time between two samples.
pub const EVERY: Duration = Duration::from_secs(1);
/// How long a statement may take.
pub const STATEMENT_DEADLINE: Duration = Duration::from_secs(10);
/// Bytes of a file below `/proc` that are worth reading.
pub const MAX_PROC_FILE: usize = 1 << 20;
/// Bytes to ask for at a time.
const PIECE: usize = 64 << 10;

/// The machine's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Wall clock, in milliseconds since 1970.
    pub at_millis: i64,
    /// Monotonic, to divide by.
    pub at: env::Instant,
    /// All CPUs together.
    pub cpu: CpuTimes,
    /// Memory now.
    pub memory: Memory,
    /// By device.
    pub disks: BTreeMap<String, DiskCounters>,
    /// By interface.
    pub networks: BTreeMap<String, NetworkCounters>,
}

/// Why the demonstration ended.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The machine's counters cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(&'static str, #[source] io::Error),
    /// Nor understood.
    #[error(transparent)]
    Proc(#[from] ProcError),
}

/// Reads the counters.
pub async fn sample(env: &Env) -> Result<Sample, DemoError> {
    let stat = read(env, "/proc/stat").await?;
    let (at, at_millis) = (env.now(), env.unix_micros() / 1000);
    let memory = read(env, "/proc/meminfo").await?;
    let disks = read(env, "/proc/diskstats").await?;
    let networks = read(env, "/proc/net/dev").await?;
    Ok(Sample {
        at_millis,
        at,
        cpu: proc::cpu(&stat)?,
        memory: proc::memory(&memory)?,
        disks: proc::disks(&disks)?,
        networks: proc::networks(&networks)?,
    })
}

/// A file of `/proc`, whose length says nothing.
async fn read(env: &Env, path: &'static str) -> Result<String, DemoError> {
    let wrong = |e| DemoError::Read(path, e);
    let file = File::open(env, Path::new(path), OpenOptions::READ).await.map_err(wrong)?;
    let mut bytes = Vec::new();
    let mut piece = Vec::new();
    while bytes.len() < MAX_PROC_FILE {
        let (read, back) = file.read_at(piece, bytes.len() as u64, PIECE).await;
        piece = back;
        if read.map_err(wrong)? == 0 {
            break;
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes the machine's counters until the node ends: makes the schema if it is missing, says once
/// how to look at it, then measures every [`EVERY`]. `execute` runs a CQL statement; `say` prints a
/// line. Statements that fail are tried no second time: the first of a row of failures is said, and
/// the end of the row. What takes longer than [`EVERY`] makes measurements rarer.
pub async fn run(
    env: &Env,
    execute: impl AsyncFn(String) -> Result<(), String>,
    say: impl Fn(&str),
) -> Result<(), DemoError> {
    let mut writer = Writer { env, execute: &execute, say: &say, failing: false };
    let mut before = sample(env).await?;
    while !writer.all(schema()).await {
        if env.is_terminated() {
            return Ok(());
        }
        env.sleep(EVERY).await;
    }
    say("demo.machine receives this machine's counters, one row per counter and second. The last \
         minute:");
    say(&format!("  {}", last_minute("cpu.busy_percent", env.unix_micros() / 1000)));
    let mut next = before.at;
    while !env.is_terminated() {
        next = (next + EVERY).max(env.now());
        env.sleep_until(next).await;
        let now = sample(env).await?;
        let measured = measure(&before, &now);
        writer.all(measured.iter().map(|m| insert(m, now.at_millis)).collect()).await;
        before = now;
    }
    Ok(())
}

struct Writer<'a, E, S> {
    env: &'a Env,
    execute: &'a E,
    say: &'a S,
    /// Whether the last statement failed.
    failing: bool,
}

impl<E: AsyncFn(String) -> Result<(), String>, S: Fn(&str)> Writer<'_, E, S> {
    /// Runs statements in order up to the first that fails; true if none did.
    async fn all(&mut self, statements: Vec<String>) -> bool {
        for statement in statements {
            let running = (self.execute)(statement);
            let result = match self.env.timeout(STATEMENT_DEADLINE, running).await {
                Ok(result) => result,
                Err(TimedOut) => Err(format!("no answer in {} s", STATEMENT_DEADLINE.as_secs())),
            };
            match result {
                Ok(()) if self.failing => (self.say)("demo: statements succeed again"),
                Err(ref e) if !self.failing => (self.say)(&format!(
                    "demo: a statement failed, going on with the next measurement: {e}"
                )),
                _ => {}
            }
            self.failing = result.is_err();
            if self.failing {
                return false;
            }
        }
        true
    }
}
