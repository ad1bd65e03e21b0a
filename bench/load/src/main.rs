//! The load generator: `load ring`, `load point`, `load rate`, `load lag`; `load` alone says how.
//!
//! One thread does it all, unless told, so that a core is left to the servers on the same machine.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tooling outside the node; the door is for the node's own crates"
)]

mod compare;
mod figures;
mod json;
mod judge;
mod lag;
mod latency;
mod mix;
mod options;
mod over;
mod pace;
mod point;
mod rate;
mod reasons;
mod ring;
mod seconds;
mod session;
mod table;
mod timer;
mod times;
mod usertable;
mod wanted;
mod window;

use std::error::Error;
use std::process::ExitCode;

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const HELP: &str = "\
load ring SECONDS|- HOST... [OPTIONS]   readers and writers of a ring whose nodes come and go; what they see is judged
  runs so many seconds, or (-) until its standard input ends: a line of it ends a window, whose figures are printed
  under that name; `end` ends the load, and the end of the input lets all rows be compared
  --rows 5000 --rate 300 (operations a second) --threads 24 (operations at a time) --writes 0.5 (their share)
  --name user (of its rows: other clients have others) --level LOCAL_QUORUM
  --through HOST... (through whom all is compared, in place of HOST...)
  --keep (the table and its rows are there already) --only run|compare (nothing is compared; whatever is there is)
load point HOST [OPTIONS]               one node, a fixed number of requests in flight: each answer is followed by a request
  --depth 1 (requests in flight, in total) --connections 1 (to the node, or to each shard) --shard-aware true
  --threads 1 (that share them, each with connections of its own) --level ONE --replicas 1
load rate HOST... [OPTIONS]             a fixed rate, whatever the answers: latency counts from when a request was due
  --rate 1000 (requests a second) --in-flight 4096 (at the most) --connections 1 --shard-aware true --level LOCAL_QUORUM --replicas 3
  --retries (as a driver does by itself) --until-told (or its standard input ends)
  --each-second FILE (a line for each second) --closed (no rate: a request when there is room)
load lag HOST... --far HOST...          writes through the first, each read through the others until
  it is there; latency counts from the answer to the write; the others are read at LOCAL_ONE
  --level LOCAL_QUORUM --replicas 1 (of each data centre) --seconds 30 --warm 5
point and rate: --reads 0.5 --inserts 0 --scans 0 (their shares; the others are updates of one column) --scanned 1000 (rows of a scan)
  --table bench.usertable --rows 100000 --columns 10 --bytes 100 (of a column) --seconds 30 --warm 5
  --load (makes the table and its rows) --chunk 16 (KiB that are compressed at once) --absent (what is read is not there)
  --seed 1 (by which rows are chosen)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("load: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Is all well?
fn run(words: &[String]) -> Outcome<bool> {
    let (command, rest) = words.split_first().ok_or(HELP)?;
    if command == "point" {
        return point::run(rest);
    }
    let runtime = runtime()?;
    let tasks = tokio::task::LocalSet::new();
    match command.as_str() {
        "ring" => tasks.block_on(&runtime, ring::run(rest)),
        "lag" => tasks.block_on(&runtime, lag::run(rest)),
        "rate" => tasks.block_on(&runtime, rate::run(rest)),
        _ => Err(HELP.into()),
    }
}

/// Of one thread.
fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?)
}
