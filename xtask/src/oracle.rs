//! The CQL corpus and cqlsh: both are Python under `conformance/`; here they get their interpreter.

use std::process::Command;

use crate::machine::{self, Outcome};

/// The statements that are known to be answered otherwise than by Cassandra: any other that differs is a failure.
pub const KNOWN_DIFFERENCES: &str = "docs/differences.md";

/// `oracle ARGS`: see `conformance/oracle/oracle.py`.
pub fn run(args: &[String]) -> Outcome {
    machine::need(&["python3"])?;
    machine::run(command().args(args))
}

/// The lines of the corpus's runner that name what differs.
pub fn different(text: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with("DIFFERENT ")).map(str::to_owned).collect()
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
