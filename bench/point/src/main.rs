//! `point`: what a request costs a server that does nothing but answer, and what it costs one that
//! has to know the answer.
//!
//! `point echo ADDRESS BYTES` is a bare server on the node's own runtime: to each frame of version
//! 4 it answers with one of so many bytes. `point drive ADDRESS OPERATION` keeps requests under way
//! on some connections, and says how many were answered how fast. Both servers get the same bytes,
//! so that the CPU time that each of them took is a comparison: `cargo xtask bench point`.
#![forbid(unsafe_code)]

mod drive;
mod echo;
mod frames;
mod options;

use std::process::ExitCode;

use env::real::{self, RealOptions, StartError};

use options::Command;

/// Why it ends.
#[derive(Debug)]
struct Failed(String);

impl From<StartError> for Failed {
    fn from(error: StartError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let command = match Command::parse(&args) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}\n{}", options::HELP);
            return ExitCode::FAILURE;
        }
    };
    let shards = match &command {
        Command::Echo { shards, .. } => *shards,
        Command::Drive(_) => 1,
    };
    let options = RealOptions {
        shards,
        // as the node does
        pin: std::thread::available_parallelism().is_ok_and(|cores| cores.get() == shards),
        signals: false,
        helpers: 1,
        file_helpers: 1,
        ..RealOptions::default()
    };
    let done = real::run::<(), _, _, Failed>(options, move |env, _| {
        let command = command.clone();
        async move {
            match command {
                Command::Echo { address, bytes, .. } => echo::serve(&env, address, bytes).await?,
                Command::Drive(drive) => drive::run(&env, &drive).await?,
            }
            Ok(())
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(error)) => {
            eprintln!("point: {error}");
            ExitCode::FAILURE
        }
    }
}
