//! `helenus check-config`: would a node start with this configuration? No shard runs, no directory
//! is made and no port is opened: what those may lack shows at the start.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::Arguments;
use crate::configuration;
use crate::output::print;

/// What `helenus check-config` takes beside the node's own options.
#[derive(Debug, Args)]
pub struct Options {
    /// The `cassandra.yaml` to read, as with --config.
    file: Option<PathBuf>,
}

/// Looks, prints, and gives the exit code: 0 if a node would start.
pub fn run(mut arguments: Arguments, options: Options) -> ExitCode {
    arguments.config = options.file.or(arguments.config);
    match check(&mut arguments) {
        Ok(text) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(Refused { notes, error }) => {
            print(&notes);
            eprintln!("helenus: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A configuration that starts no node.
struct Refused {
    /// What of it would have no effect if it did.
    notes: String,
    error: String,
}

impl From<String> for Refused {
    fn from(error: String) -> Self {
        Self { notes: String::new(), error }
    }
}

fn check(arguments: &mut Arguments) -> Result<String, Refused> {
    let environment = configuration::environment()?;
    arguments.config = arguments.config.take().or_else(|| environment.file.clone());
    let file = arguments.config.clone();
    let refused = |error| {
        let notes = file.as_deref().and_then(|file| configuration::notes_of(file).ok());
        Refused { notes: lines(&notes.unwrap_or_default()), error }
    };
    let config = configuration::of_machine(arguments, environment).map_err(refused)?;
    node::check(&config)
        .map_err(|error| Refused { notes: lines(&config.notes()), error: error.to_string() })?;
    let mut text = lines(&config.notes());
    let _ = match &file {
        Some(file) => writeln!(text, "{} is accepted", file.display()),
        None => writeln!(text, "the built-in defaults are accepted"),
    };
    Ok(text)
}

fn lines(notes: &[String]) -> String {
    notes.iter().map(|note| format!("{note}\n")).collect()
}
