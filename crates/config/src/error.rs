//! Why a configuration is refused, each in one line that names the key.

/// A refused configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no yaml, or yaml of a kind that a configuration has no use for.
    #[error("line {line}: cannot read the yaml: {what}")]
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
    #[error("line {line}: duplicate key {key}")]
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
    /// An override without `=`.
    #[error("{0:?} is not KEY=VALUE")]
    Override(String),
}

/// Result of everything here that reads input.
pub type Result<T> = std::result::Result<T, Error>;
