//! `helenus`: a node of Apache Cassandra. Composition only: command line, configuration, shards.
#![forbid(unsafe_code)]

mod check;
mod cloud;
mod configuration;
mod doctor;
mod output;
mod service_manager;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use config::Config;
use env::real::{self, RealOptions};
use node::{Logs, Message, NodeError, io_depth, run_logged_shard};
use server::ConnectionLimits;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

/// A node of Apache Cassandra.
#[derive(Debug, Parser)]
#[command(name = "helenus", version, about)]
struct Arguments {
    /// The `cassandra.yaml` to read [default: the one in CASSANDRA_CONF, or built-in defaults].
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Overrides one key of the configuration; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", global = true)]
    set: Vec<String>,
    /// Directory for data, commit log and nodetool's socket [default: ./data].
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// Address to listen on, for clients and other nodes [default: 127.0.0.1].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Port for clients [default: 9042].
    #[arg(long, value_name = "N")]
    native_port: Option<u16>,
    /// Port for other nodes [default: 7000].
    #[arg(long, value_name = "N")]
    storage_port: Option<u16>,
    /// Number of shards, each one thread [default: one per core].
    #[arg(long, value_name = "N", global = true)]
    shards: Option<u32>,
    /// Writes this machine's counters into the table demo.machine once a second.
    #[arg(long)]
    demo: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Says what to change on this machine before a node runs on it.
    Doctor(doctor::Options),
    /// Says what of a configuration stops the start of a node, and what has no effect. Starts none.
    CheckConfig(check::Options),
}

fn run(mut config: Config, logs: &Logs, demo: bool) -> Result<(), NodeError> {
    if !config.is_set("io_depth")
        && let Some(depth) = doctor::measured_depth(&config)
    {
        config.io_depth = depth.min(config.io_depth);
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let shards = config.shards.map_or(cores, |shards| shards as usize).max(1);
    if config.memory_pretouch {
        heap::keep_freed();
        // of huge pages, which hold nobody up yet
        heap::touch(config.memory());
    }
    heap::by_small_pages();
    let config = Arc::new(config);
    let (limits, logs) = (ConnectionLimits::new(), logs.clone());
    let options = RealOptions {
        shards,
        pin: shards == cores,
        signals: true,
        io_depth: io_depth(&config, shards),
        ..Default::default()
    };
    real::run(options, move |env, mesh: env::Mesh<Message>| {
        let (config, limits, logs) = (Arc::clone(&config), limits.clone(), logs.clone());
        let shard = env.clone();
        let examine = doctor::of_running(&config);
        run_logged_shard((env, mesh), config, limits, logs, move |node, _| {
            node.examine_by(examine);
            service_manager::follow(&shard);
            if demo {
                node.start_demo(|line| println!("{line}"));
            }
        })
    })
}

/// Runs the node, with its log, and has the log say why it ended if that was not in order.
fn run_logged(config: Config, demo: bool) -> Result<(), String> {
    let (logs, end) = Logs::start(&config).map_err(|error| error.to_string())?;
    let result = run(config, &logs, demo).map_err(|error| error.to_string());
    if let Err(error) = &result {
        logs.say_failed(format!("stopped: {error}"), unix_millis());
    }
    logs.finish(&end);
    result
}

fn unix_millis() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "no shard runs any more")]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
    match arguments.command.take() {
        Some(Command::Doctor(options)) => return doctor::run(&arguments, &options),
        Some(Command::CheckConfig(options)) => return check::run(arguments, options),
        None => {}
    }
    let demo = arguments.demo;
    let configured = configuration::environment()
        .and_then(|environment| configuration::configuration(&arguments, environment));
    let result = configured.and_then(|config| run_logged(config, demo));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("helenus: {error}");
            ExitCode::FAILURE
        }
    }
}
