//! What is asked for.

use std::net::SocketAddr;
use std::time::Duration;

pub const HELP: &str = "\
point echo ADDRESS BYTES [--shards N]  answers each frame with one of so many bytes, on N shards (1)
point drive ADDRESS read|update [--connections N] [--depth N] [--seconds N] [--rows N] [--bare yes] [--shard-aware yes]
  keeps DEPTH requests (1) under way on each of N connections (1) for so many seconds (10), over N rows (1000) of 10 x 100 bytes;
  bare: nothing is prepared, for a server that echoes; shard-aware: each connection asks for rows of its own shard alone";

/// What is done to the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Update,
}

#[derive(Clone, Debug)]
pub struct Drive {
    pub address: SocketAddr,
    pub operation: Operation,
    pub connections: usize,
    pub depth: usize,
    pub lasts: Duration,
    pub rows: usize,
    /// Does the server look at nothing?
    pub is_bare: bool,
    /// Does each connection ask for rows of its own shard alone?
    pub is_shard_aware: bool,
}

#[derive(Clone, Debug)]
pub enum Command {
    Echo { address: SocketAddr, bytes: usize, shards: usize },
    Drive(Drive),
}

impl Command {
    pub fn parse(args: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        match words[..] {
            ["echo", address, bytes, ref options @ ..] => {
                let (address, bytes) = (number(address)?, number(bytes)?);
                let shards = match *options {
                    [] => 1,
                    ["--shards", shards] => number(shards)?,
                    _ => return Err(format!("no option {options:?}")),
                };
                Ok(Self::Echo { address, bytes, shards })
            }
            ["drive", address, operation, ref options @ ..] => {
                let operation = match operation {
                    "read" => Operation::Read,
                    "update" => Operation::Update,
                    other => return Err(format!("no operation {other}")),
                };
                drive(number(address)?, operation, options).map(Self::Drive)
            }
            _ => Err("what is to be done?".to_owned()),
        }
    }
}

fn drive(address: SocketAddr, operation: Operation, options: &[&str]) -> Result<Drive, String> {
    let lasts = Duration::from_secs(10);
    let (connections, depth, rows) = (1, 1, 1000);
    let (is_bare, is_shard_aware) = (false, false);
    let mut drive =
        Drive { address, operation, connections, depth, lasts, rows, is_bare, is_shard_aware };
    for option in options.chunks(2) {
        match *option {
            ["--connections", text] => drive.connections = number(text)?,
            ["--depth", text] => drive.depth = number(text)?,
            ["--seconds", text] => drive.lasts = Duration::from_secs_f64(number(text)?),
            ["--rows", text] => drive.rows = number(text)?,
            ["--bare", "yes"] => drive.is_bare = true,
            ["--shard-aware", "yes"] => drive.is_shard_aware = true,
            _ => return Err(format!("no option {option:?}")),
        }
    }
    let counts = [drive.connections, drive.depth, drive.rows];
    match counts.contains(&0) || drive.depth > crate::frames::DEPTH_MAX {
        true => Err("nothing is done by nobody, or too much at once".to_owned()),
        false => Ok(drive),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is no number or address"))
}
