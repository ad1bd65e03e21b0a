//! `--measure`: what this machine does now, kept in the data directory and compared with the time
//! before.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::doctor::{Baseline, Change, Figure, timestamp};
use config::Config;

use super::disk::{self, Task};
use super::{now, peer};

/// Below the data directory.
const FOLDER: &str = "doctor";
const PREFIX: &str = "baseline-";
const SUFFIX: &str = ".json";
/// Bytes of an earlier baseline; a longer file is none.
const BASELINE_BYTES_MAX: u64 = 1 << 20;
/// Bytes that are copied at a time: more than caches hold.
const COPY_BYTES: usize = 64 << 20;
/// A load average that makes figures low.
const LOAD_MAX: f64 = 1.0;
const ROUNDS: u64 = 1 << 20;

/// A baseline, and how it compares.
pub struct Taken {
    pub baseline: Baseline,
    pub file: PathBuf,
    pub before: Option<String>,
    pub changes: Vec<Change>,
}

/// Measures, keeps what was measured, compares.
///
/// # Errors
/// If something cannot be measured or kept.
pub fn take(config: &Config, each: Duration, other: Option<&str>) -> Result<Taken, String> {
    let data = config.data_file_directories.first().unwrap_or(&config.data_dir);
    let task =
        Task { data: existing(data), commit_log: existing(&config.commitlog_directory), each };
    let load = load();
    // first, so that a peer who is not there costs no time
    let network = other
        .map(|other| peer::measure(other, each).map_err(|error| format!("peer {other}: {error}")));
    let network = network.transpose()?.unwrap_or_default();
    let measured = disk::measure(&task)?;
    let mut figures = measured.figures;
    figures.push(memory(each));
    figures.push(cpu(each));
    figures.extend(network);
    let baseline = Baseline {
        date: timestamp(unix_seconds()),
        host: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        cpus: std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u64),
        load,
        file_bytes: measured.file_bytes,
        is_direct: measured.is_direct,
        peer: other.map(str::to_owned),
        figures,
    };
    let folder = config.data_dir.join(FOLDER);
    let before = newest(&folder);
    let file = keep(&folder, &baseline).map_err(|e| format!("{}: {e}", folder.display()))?;
    let changes = before.as_ref().map(|before| baseline.compare(before)).unwrap_or_default();
    Ok(Taken { baseline, file, before: before.map(|before| before.date), changes })
}

impl Taken {
    /// For people.
    pub fn text(&self) -> String {
        let Self { baseline, file, before, changes } = self;
        let Baseline { date, load, file_bytes, is_direct, figures, .. } = baseline;
        let way = if *is_direct { "direct I/O" } else { "through the page cache" };
        let mut text = format!("Measured {date} (a file of {} MiB, {way}):\n", file_bytes >> 20);
        for Figure { name, value, unit, .. } in figures {
            let _ = write!(text, "  {name:<26} {value:>12.1} {unit:<8}");
            if let Some(change) = changes.iter().find(|change| change.name == *name) {
                let word = if change.is_worse { " worse" } else { "" };
                let _ = write!(text, " {:>+6.0} %{word}", change.percent);
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        if *load > LOAD_MAX {
            let _ = writeln!(text, "The machine was busy (load average {load}): all is low.");
        }
        if let Some(before) = before {
            let _ = writeln!(text, "Compared with {before}; worse: by more than 20 %.");
        }
        let _ = writeln!(text, "Kept in {}.", file.display());
        text
    }
}

/// The folder, or that in which it will be made.
fn existing(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    path.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/")).to_path_buf()
}

#[expect(clippy::disallowed_methods, reason = "no shard runs")]
fn line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn load() -> f64 {
    let line = line("/proc/loadavg");
    line.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

fn unix_seconds() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "no shard runs")]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or_default()
}

/// What `io_depth` should be by what this machine was measured to do; none if that is not known.
pub fn measured_depth(config: &Config) -> Option<u32> {
    let baseline = newest(&config.data_dir.join(FOLDER))?;
    // a data directory may have moved to another machine
    let is_of_here = baseline.host == line("/proc/sys/kernel/hostname") && baseline.is_direct;
    baseline.io_depth().filter(|_| is_of_here)
}

/// The newest baseline that can be read.
fn newest(folder: &Path) -> Option<Baseline> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut names: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_short = entry.metadata().is_ok_and(|of| of.len() <= BASELINE_BYTES_MAX);
            is_short && name.starts_with(PREFIX) && name.ends_with(SUFFIX)
        })
        .map(|entry| entry.path())
        .collect();
    names.sort();
    #[expect(clippy::disallowed_methods, reason = "no shard runs")]
    let read = |path: &PathBuf| serde_json::from_slice(&std::fs::read(path).ok()?).ok();
    names.iter().rev().find_map(read)
}

#[expect(clippy::disallowed_methods, reason = "no shard runs")]
fn keep(folder: &Path, baseline: &Baseline) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let file = folder.join(format!("{PREFIX}{}{SUFFIX}", baseline.date));
    let text = serde_json::to_string_pretty(baseline).map_err(io::Error::other)?;
    std::fs::write(&file, text + "\n")?;
    Ok(file)
}

/// How much one thread copies, read and written counted once.
fn memory(each: Duration) -> Figure {
    let (from, mut to) = (vec![1_u8; COPY_BYTES], vec![0_u8; COPY_BYTES]);
    // the kernel gives a page when it is first touched
    to.copy_from_slice(&from);
    let (begin, mut bytes) = (now(), 0.0);
    while begin.elapsed() < each / 2 {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        bytes += COPY_BYTES as f64;
    }
    Figure::rate("memory_copy", bytes / 1e9 / begin.elapsed().as_secs_f64(), "GB/s")
}

/// How many steps of a chain of multiplications one thread makes.
fn cpu(each: Duration) -> Figure {
    let (begin, mut steps, mut value) = (now(), 0, 1_u64);
    while begin.elapsed() < each / 2 {
        for _ in 0..ROUNDS {
            value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            value ^= value >> 29;
        }
        value = std::hint::black_box(value);
        steps += ROUNDS;
    }
    Figure::rate("cpu", steps as f64 / 1e6 / begin.elapsed().as_secs_f64(), "M steps/s")
}
