//! `campaign`: runs worlds.
//!
//! ```text
//! campaign seeds FROM COUNT    worlds of these seeds; fails if one does, or if a fault or branch never fired
//! campaign planted             each planted bug must be found
//! ```

use std::process::ExitCode;

use sim::canary::{Bug, ENGINE};
use sim::coverage::Coverage;
use sim::world::run;

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

fn seeds(from: u64, count: u64) -> Result<(), String> {
    let mut coverage = Coverage::default();
    for seed in from..from.saturating_add(count) {
        let outcome = run(seed, None);
        if let Some(wrong) = &outcome.wrong {
            coverage.add(&outcome);
            println!("{coverage}");
            return Err(failure(seed, wrong));
        }
        // every tenth a second time: the same seed, the same run
        if seed.is_multiple_of(10) && run(seed, None).trace != outcome.trace {
            return Err(failure(seed, "a second run went another way"));
        }
        coverage.add(&outcome);
    }
    println!("{coverage}");
    match coverage.missing()[..] {
        [] => Ok(()),
        ref missing => Err(format!("never happened: {}", missing.join(", "))),
    }
}

fn failure(seed: u64, what: &str) -> String {
    format!(
        "seed {seed}: {what}\nagain: cargo run --profile sim -p sim -- seeds {seed} 1"
    )
}

fn planted(bugs: &[Bug]) -> Result<(), String> {
    let mut missed = Vec::new();
    for bug in bugs {
        let found = (1..=bug.seeds).find_map(|seed| Some((seed, run(seed, Some(bug.name)).wrong?)));
        match found {
            Some((seed, wrong)) => {
                println!("{}: found by seed {seed}: {}", bug.name, wrong.lines().next().unwrap_or(""));
            }
            None => {
                println!("{}: not found in {} seeds", bug.name, bug.seeds);
                missed.push(bug.name);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}
