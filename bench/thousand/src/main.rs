//! `thousand [NODES [TOKENS]]`: a ring of so many nodes (1,000) in one process: how long news take
//! by gossip, what gossip costs a node, and what it costs to compute the ring and to choose tokens
//! in it.
//!
//! Messages are written and read as they travel, and each takes a millisecond. CPU is that of one
//! core of this machine. Exits with 1 where the nodes do not come to know the same.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tooling outside the node; the door is for the node's own crates"
)]

mod gossiping;
mod rings;
mod world;

use std::process::ExitCode;

/// Nodes, unless told.
const NODES: usize = 1_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| words.get(at).map_or(Ok(default), |word| word.parse());
    let (Ok(nodes @ 3..=60_000), Ok(tokens)) = (number(0, NODES), number(1, 0)) else {
        eprintln!("thousand [NODES [TOKENS]]: 3 to 60,000; with tokens, the ring of as many alone");
        return ExitCode::FAILURE;
    };
    if tokens > 0 {
        rings::one(nodes, tokens as u32);
        return ExitCode::SUCCESS;
    }
    let agrees = gossiping::measure(nodes);
    rings::measure(nodes);
    if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How long this process has run on a processor, in seconds.
fn processor() -> f64 {
    const TICKS: f64 = 100.0;
    // behind the name in parentheses, the time in user mode, and that in the kernel
    const USER: usize = 11;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().skip(USER));
    let ticks = fields.into_iter().flatten().take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// What this process keeps in memory now, in bytes.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE
}

/// 64 bits at a time (splitmix64).
fn random(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// The address of a node.
fn address(number: usize) -> types::Address {
    let [high, low] = (number as u16).to_be_bytes();
    types::Address::new([127, 0, high, low], 7000)
}
