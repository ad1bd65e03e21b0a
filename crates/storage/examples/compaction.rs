//! Compaction's choices, at length.
//!
//! ```text
//! compaction answers < FILE    compares choices with those of Cassandra's own classes
//!                              (conformance/strategies)
//! compaction days SEED COUNT   so many days of each kind of table in simulated time, and what they
//!                              cost
//! ```

#[path = "../tests/strategies/answers.rs"]
mod answers;
#[path = "../tests/strategies/day.rs"]
mod day;
#[path = "../tests/strategies/loads.rs"]
mod loads;

use std::io::read_to_string;
use std::process::ExitCode;

/// Minutes of a day.
const DAY: u64 = 24 * 60;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    match words {
        ["answers"] => {
            let text = read_to_string(std::io::stdin()).map_err(|error| error.to_string())?;
            print!("{}", answers::compare(&text)?);
            Ok(())
        }
        ["days", seed, count] => {
            for seed in number(seed)?..number(seed)? + number(count)? {
                for (name, report) in loads::days(seed, DAY) {
                    println!("{name:<34} {report}");
                }
            }
            Ok(())
        }
        _ => Err("answers < FILE | days SEED COUNT".to_owned()),
    }
}
