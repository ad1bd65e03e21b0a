//! The tests of all crates, and what is told of those that fail.

use std::process::Command;

use super::{Tally, number_before};
use crate::machine::{self, Outcome};

/// Tests at a time: more than there are cores, as many wait for a process.
const TEST_THREADS: u32 = 4;

/// Runs them, and sums up the `test result:` lines.
pub(super) fn run(command: &mut Command) -> Outcome<Tally> {
    let threads = TEST_THREADS.to_string();
    let (done, text, errors) = machine::outputs(command.env("RUST_TEST_THREADS", threads))?;
    let mut tally = Tally::default();
    for line in text.lines().filter_map(|l| l.strip_prefix("test result: ")) {
        tally.passed += number_before(line, " passed");
        tally.failed += number_before(line, " failed");
    }
    tally.problems.extend(why_failed(&text));
    if !done && (tally.failed == 0 || errors.contains(ENDED_BADLY)) {
        tally.problems.push(ended_badly(&errors));
    }
    Ok(tally)
}

/// Lines of a failure that are told again at the end, where everybody sees them.
const LINES_OF_A_FAILURE: usize = 12;

/// What cargo says of tests that a signal ended.
const ENDED_BADLY: &str = "process didn't exit successfully";

/// Failed tests, each with the beginning of what it printed.
fn why_failed(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    let names = lines.iter().filter_map(|l| l.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let told = |name: &str| {
        let header = format!("---- {name} stdout ----");
        let after = lines.iter().skip_while(|l| **l != header).skip(1);
        let until = after.take_while(|l| **l != "stack backtrace:" && !l.starts_with("---- "));
        let told = until.filter(|l| !l.is_empty()).take(LINES_OF_A_FAILURE);
        told.map(|l| format!("\n    {l}")).collect::<String>()
    };
    names.map(|name| format!("{name} failed{}", told(name))).collect()
}

/// Why cargo built or ran a program in vain.
fn ended_badly(errors: &str) -> String {
    let says = |l: &&str| l.starts_with("error") || l.contains(ENDED_BADLY);
    let told: Vec<&str> = errors.lines().filter(says).collect();
    let last = &told[told.len().saturating_sub(LINES_OF_A_FAILURE)..];
    format!("cargo test did not build or run everything\n    {}", last.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::{ended_badly, why_failed};

    #[test]
    fn failures_are_told_with_what_they_printed() {
        let output = "test a ... ok\ntest m::b ... FAILED\ntest c ... FAILED\n\nfailures:\n\n\
            ---- m::b stdout ----\n\nthread 'm::b' panicked at b.rs:1:2:\nleft is right\n\
            stack backtrace:\n   0: begin\n---- c stdout ----\nnothing held\n";
        let b = "m::b failed\n    thread 'm::b' panicked at b.rs:1:2:\n    left is right";
        assert_eq!(why_failed(output), [b, "c failed\n    nothing held"]);
    }

    #[test]
    fn a_test_that_a_signal_ended_is_told() {
        let errors = "   Running tests/a.rs\nerror: test failed, to rerun pass `-p p --test a`\n\n\
            Caused by:\n  process didn't exit successfully: `a` (signal: 6, SIGABRT)\n";
        let told = ended_badly(errors);
        assert!(told.contains("--test a") && told.contains("SIGABRT"), "{told}");
    }
}
