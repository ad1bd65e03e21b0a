//! Why a configuration is refused: a line for each key, which names it as the file spells it and
//! says where it stands. All that is wrong with a configuration is one error.

/// A refused configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no yaml, or yaml of a kind that a configuration has no use for.
    #[error("cannot read the yaml: {what}")]
    Yaml {
        /// Line, counted from 1.
        line: usize,
        /// What stands there.
        what: String,
    },
    /// The text passes one of the bounds of module `yaml`.
    #[error("the configuration has more than {limit} {what}")]
    TooLarge {
        /// What is counted.
        what: &'static str,
        /// The most that is accepted.
        limit: usize,
    },
    /// A key stands twice in one mapping.
    #[error("duplicate key {key}")]
    Duplicate {
        /// The key.
        key: String,
        /// Line of the second one.
        line: usize,
    },
    /// One setting is given under two of its names.
    #[error("{old} is the old name of {new}, which is set as well: keep {new}")]
    BothNames {
        /// The former name, or the dotted form.
        old: String,
        /// The name to keep.
        new: &'static str,
    },
    /// No release has this key.
    #[error("unknown key {key}{}", nearest.map(|n| format!(": did you mean {n}?")).unwrap_or_default())]
    Unknown {
        /// The key as written, dotted where nested.
        key: String,
        /// The known key that differs least, if one is near.
        nearest: Option<&'static str>,
    },
    /// The value is not of the key's kind.
    #[error("{key}: {value:?} is not accepted: expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// The accepted forms.
        expected: String,
    },
    /// A value that the key's kind admits and its meaning does not.
    #[error("{key}: {value:?} is refused: {why}")]
    Refused {
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// The rule.
        why: String,
    },
    /// Cassandra knows the key and we do not serve it yet.
    #[error("{key}: {value:?} is not supported: only {default:?} is")]
    NotServed {
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// The value that we do serve.
        default: String,
    },
    /// A guardrail that makes no sense, in Cassandra's words.
    #[error("{0}")]
    Guardrail(String),
    /// A key that Cassandra dropped.
    #[error("Cassandra {since} dropped {key}: {instead}")]
    Dropped {
        /// The key.
        key: String,
        /// The first release without it.
        since: &'static str,
        /// What the operator can do.
        instead: &'static str,
    },
    /// A key of Cassandra's in the file of Helenus' own keys.
    #[error("{key} is a key of Cassandra's: set it in cassandra.yaml")]
    Misplaced {
        /// The key.
        key: String,
    },
    /// A key of Helenus' own with a value in each of the two files.
    #[error("{key} is {value:?} here and {other:?} in cassandra.yaml: keep one of them")]
    TwoValues {
        /// The key.
        key: String,
        /// The value here.
        value: String,
        /// The value in `cassandra.yaml`.
        other: String,
    },
    /// One of the others, and where it stands.
    #[error("{}line {line}: {error}", with_space(file.as_deref()))]
    At {
        /// The file, if the text came with a name.
        file: Option<String>,
        /// The line of the key, counted from 1.
        line: usize,
        /// What is wrong there.
        error: Box<Error>,
    },
    /// All that stops the start, where that is more than one thing.
    #[error("{} settings stop the start:{}", errors.len(), lines(errors))]
    Several {
        /// Each, by file and line.
        errors: Vec<Error>,
    },
    /// An override without `=`.
    #[error("{0:?} is not KEY=VALUE")]
    Override(String),
}

/// The name of a file before a line of it.
fn with_space(file: Option<&str>) -> String {
    file.map(|file| format!("{file} ")).unwrap_or_default()
}

/// Each on a line of its own.
fn lines(errors: &[Error]) -> String {
    errors.iter().map(|error| format!("\n  {error}")).collect()
}

impl Error {
    /// One error of all these; nothing of none.
    pub(crate) fn of_all(mut errors: Vec<Self>) -> Option<Self> {
        // by the file's name, for `cassandra.yaml` comes first; overrides have no place: last
        errors.sort_by_key(|error| match error {
            Self::At { file, line, .. } => (false, file.clone(), *line),
            _ => (true, None, 0),
        });
        match errors.len() {
            0 | 1 => errors.pop(),
            _ => Some(Self::Several { errors }),
        }
    }

    /// The same, with the place that it names itself, or this one.
    pub(crate) fn at(self, file: Option<&str>, line: usize) -> Self {
        let line = match &self {
            Self::At { .. } | Self::Several { .. } | Self::TooLarge { .. } => return self,
            Self::Yaml { line, .. } | Self::Duplicate { line, .. } => *line,
            _ => line,
        };
        Self::At { file: file.map(str::to_owned), line, error: Box::new(self) }
    }

    /// The key whose value it is about, if it is about one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Value { key, .. } | Self::Refused { key, .. } | Self::NotServed { key, .. } => {
                Some(key)
            }
            _ => None,
        }
    }

    /// The same about a key as it is spelled in a file.
    pub(crate) fn spelled(mut self, written: &str) -> Self {
        if let Self::Value { key, .. } | Self::Refused { key, .. } | Self::NotServed { key, .. } =
            &mut self
        {
            written.clone_into(key);
        }
        self
    }
}

/// Result of everything here that reads input.
pub type Result<T> = std::result::Result<T, Error>;
