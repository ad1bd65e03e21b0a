//! In which form nodetool prints a value.

use super::verb::{Verb, VerbError};

/// In which form nodetool prints a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As Cassandra's nodetool does.
    #[default]
    Text,
    /// The value, for programs.
    Json,
}

impl Format {
    /// The one of a name.
    pub fn of(name: &str) -> Result<Self, VerbError> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(VerbError::UnknownFormat(name.to_owned())),
        }
    }
}

/// A command line: what to ask a node for, and how to print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// In which form.
    pub format: Format,
    /// The verb.
    pub verb: Verb,
    /// The words of the verb, as a node reads them.
    pub words: Vec<String>,
}

impl Command {
    /// Words after the global options, of which `--format` and `-pp` may still stand before the
    /// verb, in this order.
    pub fn parse(line: &[String]) -> Result<Self, VerbError> {
        let (format, words) = match line {
            [option, name, words @ ..] if option == "--format" => (Format::of(name)?, words),
            words => (Format::default(), words),
        };
        Ok(Self { format, verb: Verb::parse(words)?, words: words.to_vec() })
    }
}
