//! Why bytes could not be decoded.

use thiserror::Error;
use types::ReadError;

/// Bytes that are no encoding of anything.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem} (at byte {offset})")]
pub struct CodecError {
    /// Where it was noticed, from the start of the input.
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// They end early, or hold an impossible length or number.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Flags that do not go together.
    #[error("invalid flags {0:#04x}")]
    Flags(u8),
    /// A kind of bound that there is not.
    #[error("invalid bound kind {0}")]
    BoundKind(u8),
    /// A bound with more values than there are clustering columns.
    #[error("a bound has {0} values, more than the table has clustering columns")]
    BoundLength(u16),
    /// A set of columns that is no subset.
    #[error("invalid set of columns")]
    Columns,
    /// A column that the table does not have and never had.
    #[error("unknown column {0}")]
    UnknownColumn(String),
    /// A table that the schema does not have.
    #[error("unknown table {}", types::hex::to_hex(.0))]
    UnknownTable([u8; 16]),
    /// A time to live below zero.
    #[error("negative time to live {0}")]
    Ttl(i32),
    /// More than [`super::MAX_SIZE`].
    #[error("{0} bytes are too large")]
    TooLarge(usize),
    /// A row's or marker's content that does not have the size it was said to have.
    #[error("its stated length is {said} bytes, but it has {found}")]
    Size {
        /// What its size said.
        said: usize,
        /// What it took.
        found: usize,
    },
    /// Rows, markers or cells that do not follow those before them.
    #[error("out of order")]
    Order,
    /// A range that closes without having opened, or the other way round.
    #[error("unbalanced range tombstones")]
    Unbalanced,
    /// Updates of several keys in one mutation, none at all, or a reversed one.
    #[error("malformed mutation")]
    Mutation,
}

impl CodecError {
    pub(crate) fn at(offset: usize, problem: impl Into<Problem>) -> Self {
        Self { offset, problem: problem.into() }
    }
}

/// Why a row cannot be encoded: it does not fit its layout or the header. A caller that validated
/// its values and gathered its columns does not meet it; what was appended must be thrown away.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// A cell names a column that is not among the header's.
    #[error("column {0} is not in the header")]
    Column(u16),
    /// The value of a fixed-length type has another length.
    #[error("a value of {found} bytes does not fit column {column}, which takes {wanted}")]
    Value {
        /// Index of the column.
        column: u16,
        /// Bytes that the type takes.
        wanted: usize,
        /// Bytes of the value.
        found: usize,
    },
    /// The same, at a position of the clustering.
    #[error("a clustering value at position {0} is not of its type's length")]
    ClusteringValue(usize),
    /// More clustering values than clustering columns.
    #[error("the table has fewer than {0} clustering columns")]
    ClusteringLength(usize),
    /// A cell of a complex column without path, or of a simple one with.
    #[error("a cell of column {0} has a path where its type has none, or the reverse")]
    Path(u16),
}
