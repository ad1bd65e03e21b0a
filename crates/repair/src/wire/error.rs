//! Why a payload cannot be read.

use thiserror::Error;
use types::ReadError;

use crate::tree::TreeError;

/// Why a payload cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// It is malformed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A number that stands for nothing.
    #[error("invalid {what} {number}")]
    Kind {
        /// Of what.
        what: &'static str,
        /// The number.
        number: i64,
    },
    /// A Merkle tree is malformed, or one that no node builds.
    #[error("Merkle tree {number}: {error}")]
    Tree {
        /// Which of the answer's, from 0 on.
        number: usize,
        /// What is wrong with it.
        error: TreeError,
    },
}

impl PayloadError {
    pub(super) fn kind(what: &'static str, number: impl Into<i64>) -> Self {
        Self::Kind { what, number: number.into() }
    }
}
