//! What is wrong with a tree.

use thiserror::Error;
use types::{ReadError, Token, TokenRange};

/// Why bytes are no tree of Cassandra's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// They are malformed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Tokens of another partitioner.
    #[error("partitioner '{0}' is not Murmur3Partitioner")]
    Partitioner(String),
    /// The depth of a perfect tree that none has.
    #[error("impossible depth {0}")]
    Depth(i8),
    /// It has other leaves than it says.
    #[error("it says that it has {0} leaves, and has more or is not allowed as many")]
    Leaves(i64),
    /// A node that is neither inner node nor leaf.
    #[error("unknown kind of node {0}")]
    Node(u8),
    /// A hash that is not 32 bytes long.
    #[error("a hash of {0} bytes")]
    Hash(u8),
    /// A node that is not divided in its middle, or has no middle.
    #[error("a node is divided at {0}, which is not its midpoint")]
    Midpoint(Token),
}

/// A token that is not in the range of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("token {token} is not in ({},{}]", range.left, range.right)]
pub struct OutOfRange {
    /// The token.
    pub token: Token,
    /// The tree's.
    pub range: TokenRange,
}

/// Trees that cannot be compared: one side has a range that the other has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no tree of ({},{}] to compare with", .0.left, .0.right)]
pub struct NoDifference(pub TokenRange);
