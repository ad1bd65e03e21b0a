//! Why a statement cannot be prepared or bound, as the client is told.

use thiserror::Error;

/// An answer other than a result. The texts are Cassandra's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CqlError {
    /// SYNTAX_ERROR (0x2000).
    #[error("{0}")]
    Syntax(String),
    /// INVALID (0x2200).
    #[error("{0}")]
    Invalid(String),
    /// INVALID (0x2200): pages were asked for of what is sorted after it was read.
    #[error(
        "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the ORDER BY or the IN and sort client side, or disable paging for this query"
    )]
    CannotPage,
    /// CONFIG_ERROR (0x2300).
    #[error("{0}")]
    Config(String),
    /// UNAUTHORIZED (0x2100).
    #[error("{0}")]
    Unauthorized(String),
    /// ALREADY_EXISTS (0x2400).
    #[error("{message}")]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table; empty where it is the keyspace that exists.
        table: String,
        /// The text.
        message: String,
    },
    /// FUNCTION_FAILURE (0x1400): a function was called and failed.
    #[error("{message}")]
    Function {
        /// The keyspace.
        keyspace: String,
        /// The name.
        name: String,
        /// The types of its arguments.
        arguments: Vec<String>,
        /// The text.
        message: String,
    },
}

impl CqlError {
    /// An INVALID error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// What Cassandra can do and we cannot yet: an INVALID error, never a wrong result.
    pub fn unsupported(what: impl std::fmt::Display) -> Self {
        Self::Invalid(format!("{what} is not supported yet"))
    }
}
