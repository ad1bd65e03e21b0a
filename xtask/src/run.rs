//! `cargo xtask run`: a node on 127.0.0.1:9042, nothing to configure.

use std::os::unix::process::CommandExt;

use crate::machine::{self, Outcome};
use crate::node;

/// `run [--demo] [-- NODE ARGS]`
pub fn run(args: &[String]) -> Outcome {
    let (ours, theirs) = match args.iter().position(|a| a == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[][..]),
    };
    let mut demo = false;
    for arg in ours {
        match arg.as_str() {
            "--demo" => demo = true,
            other => {
                return Err(format!("unknown option {other}; the node's own go after `--`").into());
            }
        }
    }
    node::build()?;
    let mut command = node::command();
    if !theirs.iter().any(|arg| arg.starts_with("--data-dir")) {
        command.arg("--data-dir").arg(machine::root().join("data"));
    }
    command.args(theirs);
    if demo {
        command.arg("--demo");
    }
    println!("open a shell on it with: pipx run cqlsh 127.0.0.1 9042");
    // The node takes this process' place: whoever ends it ends the node.
    Err(format!("{command:?}: {}", command.exec()).into())
}
