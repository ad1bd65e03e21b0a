//! The CQL corpus and cqlsh: both are Python under `conformance/`; here they get their interpreter.

use std::process::Command;

use crate::machine::{self, Outcome};

/// The statements that are known to be answered otherwise than by Cassandra: any other that differs
/// is a failure.
pub const KNOWN_DIFFERENCES: &str = "docs/differences.md";

/// `oracle ARGS`: see `conformance/oracle/oracle.py`.
pub fn run(args: &[String]) -> Outcome {
    machine::need(&["python3"])?;
    machine::run(command().args(args))
}

/// What differs, as the corpus's runner names it: a statement, and below it how.
pub fn different(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        match found.last_mut() {
            _ if line.starts_with("DIFFERENT ") => {
                found.push(line.to_owned());
                goes_on = true;
            }
            Some(last) if goes_on && line.starts_with("    ") => {
                last.push('\n');
                last.push_str(line);
            }
            _ => goes_on = false,
        }
    }
    found
}

/// The corpus runner, without arguments.
pub fn command() -> Command {
    let mut command = Command::new("python3");
    command.arg(machine::root().join("conformance/oracle/oracle.py"));
    command
}

/// `cqlsh HOST [HOST_B | --record]`: see `conformance/cqlsh/run.py`.
pub fn cqlsh(args: &[String]) -> Outcome {
    machine::run(cqlsh_command()?.args(args))
}

/// The cqlsh script's runner, without servers.
pub fn cqlsh_command() -> Outcome<Command> {
    let python = machine::python()?;
    let mut command = Command::new(&python);
    command
        .arg(machine::root().join("conformance/cqlsh/run.py"))
        .arg(python.with_file_name("cqlsh"));
    Ok(command)
}
