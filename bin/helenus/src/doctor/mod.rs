//! `helenus doctor`: asks this machine, and prints what to change. No shard runs.

mod disk;
mod measure;
mod peer;

pub use measure::measured_depth;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::doctor::{ClockState, Facts, NodeFacts, Report, Source, Space, examine};
use clap::Args;
use config::Config;
use env::real::{self, RealOptions, StartError};
use node::Examine;

use crate::Arguments;
use crate::configuration;
use crate::output::print;

/// The exit code if something is serious.
const SERIOUS: u8 = 1;
/// The exit code if the doctor could not look; clap's for wrong arguments, too.
const COULD_NOT_LOOK: u8 = 2;
/// Seconds of each measurement, at most.
const SECONDS_MAX: u64 = 5;
/// Bytes that are read of a file of the kernel.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What `helenus doctor` takes beside the node's own options.
#[derive(Debug, Args)]
pub struct Options {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Measures disks, memory and CPU for at most a minute, keeps the figures in the data
    /// directory, and compares them with those before.
    #[arg(long)]
    measure: bool,
    /// Seconds of each measurement.
    #[arg(long, value_name = "N", default_value_t = 4, requires = "measure",
        value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: u64,
    /// Measures the network, too, to a machine with `helenus doctor --serve`.
    #[arg(long, value_name = "HOST:PORT", requires = "measure")]
    peer: Option<String>,
    /// Answers others that measure the network, on all addresses of this machine, until stopped; 0:
    /// any free port.
    #[arg(long, value_name = "PORT", conflicts_with = "measure")]
    serve: Option<u16>,
}

/// Looks, prints, and gives the exit code.
pub fn run(arguments: &Arguments, options: &Options) -> ExitCode {
    if let Some(port) = options.serve {
        let served = peer::serve(port, |port| print(&format!("Serving on port {port}.\n")));
        return served.map_or_else(|error| failed(&error.to_string()), |()| ExitCode::SUCCESS);
    }
    match examination(arguments, options) {
        Ok((text, true)) => {
            print(&text);
            ExitCode::from(SERIOUS)
        }
        Ok((text, false)) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &str) -> ExitCode {
    eprintln!("helenus: {error}");
    ExitCode::from(COULD_NOT_LOOK)
}

#[expect(clippy::disallowed_methods, reason = "no shard runs")]
fn now() -> Instant {
    Instant::now()
}

/// What to print, and whether anything is serious.
fn examination(arguments: &Arguments, options: &Options) -> Result<(String, bool), String> {
    let config = configuration::of_machine(arguments, configuration::environment()?)?;
    let report = examine(&Facts::read(&Here { runs_node: false }, node_of(&config)));
    let each = Duration::from_secs(options.seconds);
    let peer = options.peer.as_deref();
    let taken = options.measure.then(|| measure::take(&config, each, peer)).transpose()?;
    let text = if options.json {
        json(&report, taken.as_ref())
    } else {
        report.to_string() + &taken.map(|taken| taken.text()).unwrap_or_default()
    };
    Ok((text, report.is_serious()))
}

fn json(report: &Report, taken: Option<&measure::Taken>) -> String {
    let mut value = serde_json::to_value(report).unwrap_or_default();
    if let (Some(object), Some(taken)) = (value.as_object_mut(), taken) {
        object.insert("baseline".to_owned(), serde_json::json!(taken.baseline));
        object.insert("compared_with".to_owned(), serde_json::json!(taken.before));
        object.insert("changes".to_owned(), serde_json::json!(taken.changes));
    }
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

fn node_of(config: &Config) -> NodeFacts {
    let text = |path: &PathBuf| {
        std::path::absolute(path).as_ref().unwrap_or(path).to_string_lossy().into_owned()
    };
    NodeFacts {
        data: config.data_file_directories.iter().map(text).collect(),
        commit_log: text(&config.commitlog_directory),
        hints: text(&config.hints_directory),
        shards: config.shards.map(u64::from),
        memory: config.memory(),
        is_log_compressed: config.commitlog_compression.is_some(),
        is_direct: config.background_disk_is_direct,
        ports: [config.storage_port, config.native_transport.port]
            .into_iter()
            .chain(config.native_transport.shard_aware_port)
            .collect(),
    }
}

/// How a node that runs has its machine looked at.
pub fn of_running(config: &Config) -> Examine {
    let node = node_of(config);
    Arc::new(move |ring| {
        let facts = Facts::read(&Here { runs_node: true }, node.clone());
        examine(&Facts { ring: Some(ring), ..facts })
    })
}

/// This machine.
struct Here {
    /// Does the node run in this process? Then it has io_uring.
    runs_node: bool,
}

impl Source for Here {
    fn read(&self, path: &str) -> Option<String> {
        use std::io::Read;
        #[expect(clippy::disallowed_types, reason = "no shard runs")]
        let file = std::fs::File::open(path).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn resolve(&self, path: &str) -> Option<String> {
        std::fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
    }

    fn space(&self, path: &str) -> Option<Space> {
        let system = real::file_system_of(Path::new(path)).ok()?;
        let real::FileSystem { bytes, free, inodes, inodes_free } = system;
        Some(Space { bytes, free, inodes, inodes_free })
    }

    /// Makes a file and removes it: permissions are not all that forbids it.
    fn is_writable(&self, path: &str) -> Option<bool> {
        let file = Path::new(path).join(format!(".helenus-doctor-{}", std::process::id()));
        #[expect(clippy::disallowed_types, reason = "no shard runs")]
        let made = std::fs::File::create_new(&file).is_ok();
        if made {
            #[expect(clippy::disallowed_methods, reason = "no shard runs")]
            let _ = std::fs::remove_file(&file);
        }
        Some(made)
    }

    fn clock(&self) -> Option<ClockState> {
        let real::ClockKept { is_synchronized, error_max_us } = real::clock_kept().ok()?;
        Some(ClockState { is_synchronized, error_max_us })
    }

    fn io_uring(&self) -> Option<Result<(), String>> {
        if self.runs_node {
            return Some(Ok(()));
        }
        let options = RealOptions { signals: false, ..RealOptions::default() };
        let tried =
            real::run(options, |_env, _mesh: env::Mesh<()>| async { Ok::<(), StartError>(()) });
        Some(tried.map_err(|error| error.to_string()))
    }
}
