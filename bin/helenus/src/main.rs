//! `helenus`: a node of Apache Cassandra. Composition only: command line, configuration, shards.
#![forbid(unsafe_code)]

mod cloud;
mod configuration;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use config::Config;
use env::real::{self, RealOptions};
use node::{Message, NOT_LISTENING, NodeError, Ready, io_depth, run_shard};
use server::ConnectionLimits;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

/// A node of Apache Cassandra.
#[derive(Debug, Parser)]
#[command(name = "helenus", version, about)]
struct Arguments {
    /// The `cassandra.yaml` to read [default: the one in CASSANDRA_CONF, or built-in defaults].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Overrides one key of the configuration; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Directory for data, commit log and nodetool's socket [default: ./data].
    #[arg(long, value_name = "DIR")]
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
    #[arg(long, value_name = "N")]
    shards: Option<u32>,
    /// Writes this machine's counters into the table demo.machine once a second.
    #[arg(long)]
    demo: bool,
}

fn run(config: Config, demo: bool) -> Result<(), NodeError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let shards = config.shards.map_or(cores, |shards| shards as usize).max(1);
    if config.memory_pretouch {
        heap::keep_freed();
        // of huge pages, which hold nobody up yet
        heap::touch(config.memory());
    }
    heap::by_small_pages();
    let config = Arc::new(config);
    let limits = ConnectionLimits::new();
    let options = RealOptions {
        shards,
        pin: shards == cores,
        signals: true,
        io_depth: io_depth(&config, shards),
        ..Default::default()
    };
    real::run(options, move |env, mesh: env::Mesh<Message>| {
        let (config, limits) = (Arc::clone(&config), limits.clone());
        run_shard(env, mesh, config, limits, move |node, ready| {
            announce(ready);
            if demo {
                node.start_demo(|line| println!("{line}"));
            }
        })
    })
}

fn announce(ready: &Ready) {
    for (path, at) in &ready.replay.damaged {
        eprintln!(
            "commit log segment {} is damaged from byte {at} on: ignored the rest, as \
             commitlog_ignore_replay_errors is true",
            path.display()
        );
    }
    for path in &ready.replay.missing {
        eprintln!(
            "commit log segment {} is missing: started without its writes, as \
             commitlog_ignore_replay_errors is true",
            path.display()
        );
    }
    for (path, at) in &ready.replay.torn {
        eprintln!(
            "a crash cut off commit log segment {} at byte {at}: replayed all before it, nothing \
             after it was durable",
            path.display()
        );
    }
    if !ready.clock_behind.is_zero() {
        eprintln!(
            "the clock is {:?} behind the last timestamp of this node: timestamps stay ahead of \
             the clock until it catches up; check NTP",
            ready.clock_behind
        );
    }
    for note in &ready.notes {
        eprintln!("{note}");
    }
    if !ready.serves_clients {
        println!("{NOT_LISTENING}");
        return;
    }
    println!(
        "Starting listening for CQL clients on /{}:{}",
        ready.address.ip(),
        ready.address.port()
    );
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let demo = arguments.demo;
    let configured = configuration::environment()
        .and_then(|environment| configuration::configuration(&arguments, environment));
    let result = configured.and_then(|c| run(c, demo).map_err(|e| e.to_string()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("helenus: {error}");
            ExitCode::FAILURE
        }
    }
}
