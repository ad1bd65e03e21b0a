//! `helenus doctor`: asks this machine, and prints what to change. No shard runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::doctor::{ClockState, Facts, NodeFacts, Report, Source, Space, examine};
use clap::Args;
use config::Config;
use env::real::{self, RealOptions, StartError};

use crate::Arguments;
use crate::configuration;

/// The exit code if something is serious.
const SERIOUS: u8 = 1;
/// The exit code if the doctor could not look; clap's for wrong arguments, too.
const COULD_NOT_LOOK: u8 = 2;
/// Bytes that are read of a file of the kernel.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What `helenus doctor` takes beside the node's own options.
#[derive(Debug, Args)]
pub struct Options {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Looks, prints, and gives the exit code.
pub fn run(arguments: &Arguments, options: &Options) -> ExitCode {
    match examination(arguments) {
        Ok(report) => {
            let text = if options.json { report.json() + "\n" } else { report.to_string() };
            print(&text);
            if report.is_serious() { ExitCode::from(SERIOUS) } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("helenus: {error}");
            ExitCode::from(COULD_NOT_LOOK)
        }
    }
}

/// Whoever reads may be gone, as `head` is.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn examination(arguments: &Arguments) -> Result<Report, String> {
    let config = configuration::of_machine(arguments, configuration::environment()?)?;
    Ok(examine(&Facts::read(&Here, node_of(&config))))
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
        ports: vec![config.storage_port, config.native_transport_port],
    }
}

/// This machine.
struct Here;

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
        let options = RealOptions { signals: false, ..RealOptions::default() };
        let tried =
            real::run(options, |_env, _mesh: env::Mesh<()>| async { Ok::<(), StartError>(()) });
        Some(tried.map_err(|error| error.to_string()))
    }
}
