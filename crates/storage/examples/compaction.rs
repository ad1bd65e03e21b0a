//! Compaction's choices, at length: `compaction answers < FILE` compares them with those of Cassandra's own classes.

#[path = "../tests/strategies/answers.rs"]
mod answers;

use std::io::read_to_string;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["answers"] => read_to_string(std::io::stdin())
            .map_err(|error| error.to_string())
            .and_then(|text| answers::compare(&text))
            .map(|tally| print!("{tally}")),
        _ => Err("answers < FILE".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
