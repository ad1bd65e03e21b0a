//! `campaign`: runs worlds.
//!
//! ```text
//! campaign seeds FROM COUNT    worlds of these seeds; fails if one does, or if a fault or branch never fired
//! campaign planted             each planted bug must be found
//! ```

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sim::canary::{Bug, ENGINE};
use sim::coverage::Coverage;
use sim::engine_node::Door;
use sim::world::{Outcome, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
    let result = match words[..] {
        ["seeds", from, count] => {
            number(from).and_then(|from| number(count).and_then(|count| seeds(from, count)))
        }
        ["planted"] => planted(ENGINE),
        ["planted", name] => match ENGINE.iter().find(|bug| bug.name == name) {
            Some(bug) => planted(std::slice::from_ref(bug)),
            None => Err(format!("no bug `{name}`")),
        },
        _ => Err("seeds FROM COUNT | planted [NAME]".to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Worlds that run at a time: each is one thread's.
const THREADS: u64 = 2;

fn seeds(from: u64, count: u64) -> Result<(), String> {
    let next = AtomicU64::new(from);
    let end = from.saturating_add(count);
    let found = Mutex::new((Coverage::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(count) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let (outcome, wrong) = once(seed);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.0.add(&outcome);
                    if let Some(wrong) = wrong {
                        println!("{}\n", failure(seed, &wrong));
                        found.1.push(seed);
                    }
                }
            });
        }
    });
    let (coverage, failed) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{coverage}");
    if !failed.is_empty() {
        return Err(format!("{} of {count} seeds failed: {failed:?}", failed.len()));
    }
    match coverage.missing()[..] {
        [] => Ok(()),
        ref missing => Err(format!("never happened: {}", missing.join(", "))),
    }
}

/// Runs a seed; every tenth a second time: the same seed, the same run.
fn once(seed: u64) -> (Outcome, Option<String>) {
    let outcome = run::<Door>(seed, None);
    let mut wrong = outcome.wrong.clone();
    if wrong.is_none() && seed.is_multiple_of(10) && run::<Door>(seed, None).trace != outcome.trace
    {
        wrong = Some("a second run went another way".into());
    }
    (outcome, wrong)
}

fn failure(seed: u64, what: &str) -> String {
    format!("seed {seed}: {what}\nagain: cargo run --profile sim -p sim -- seeds {seed} 1")
}

fn planted(bugs: &[Bug]) -> Result<(), String> {
    let mut missed = Vec::new();
    for bug in bugs {
        // it counts only where the same seed finds nothing without the bug
        let found = (1..=bug.seeds).find_map(|seed| {
            let wrong = run::<Door>(seed, Some(bug.name)).wrong?;
            run::<Door>(seed, None).wrong.is_none().then_some((seed, wrong))
        });
        match found {
            Some((seed, wrong)) => {
                println!(
                    "{}: found by seed {seed}: {}",
                    bug.name,
                    wrong.lines().next().unwrap_or("")
                );
            }
            None => {
                println!("{}: not found in {} seeds", bug.name, bug.seeds);
                missed.push(bug.name);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}
