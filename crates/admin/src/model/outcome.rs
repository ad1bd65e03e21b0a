//! What became of a verb.

use serde::{Deserialize, Serialize};

use super::{Shown, TableName};

/// What a node answers to a verb: what there is to show, and why it was not carried out, if so.
/// Some verbs have something to show even then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// None of a verb that only does something.
    pub shown: Option<Shown>,
    /// None of a verb that was carried out.
    pub refusal: Option<Refusal>,
    /// This is a part, of a verb that runs; another outcome follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_more: bool,
}

impl Outcome {
    /// It was carried out; there is something to show.
    pub fn shown(shown: Shown) -> Self {
        Self { shown: Some(shown), ..Self::default() }
    }

    /// It runs; this is to be seen of it so far.
    pub fn part(shown: Shown) -> Self {
        Self { shown: Some(shown), refusal: None, has_more: true }
    }

    /// It was not carried out.
    pub fn refused(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: Some(refusal.into()), ..Self::default() }
    }
}

/// Why a verb was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The operator asked for what cannot be: exit code 1. Cassandra's `IllegalArgumentException`
    /// and `IllegalStateException` reach nodetool so.
    #[error("{0}")]
    BadUse(String),
    /// It failed: exit code 2.
    #[error("{0}")]
    Failed(String),
    /// There is no table of that name, which nodetool itself says: exit code 1.
    #[error("ColumnFamilyStore for {}/{} not found.", .0.keyspace, .0.table)]
    UnknownTable(TableName),
    /// The node did not take the request: exit code 2.
    #[error("{0}")]
    NotTaken(String),
    /// Who connected may not: exit code 1, with the name of Java's exception.
    #[error("{exception}: '{message}'")]
    NotLetIn {
        /// The exception's name.
        exception: String,
        /// Its message.
        message: String,
    },
}

impl Refusal {
    /// Who connected may not.
    pub fn not_let_in(exception: &str, message: impl Into<String>) -> Self {
        Self::NotLetIn { exception: exception.to_owned(), message: message.into() }
    }
}
