//! What messages carry, by verb. All of it is that of messaging 12; what a peer claims is never
//! believed for an allocation.
//!
//! | verb | payload |
//! |---|---|
//! | MUTATION, READ_REPAIR, PAXOS2_COMMIT_REMOTE | [`rows::codec::MutationDecoder::mutation`] |
//! | HINT, BATCH_STORE, COUNTER_MUTATION | [`Hint`], [`Batch`], [`CounterMutation`] |
//! | BATCH_REMOVE, SCHEMA_VERSION_RSP | 16 bytes of a UUID |
//! | READ, RANGE and their answers | [`read::ReadCommand`], [`read::ReadResponse`] |
//! | PAXOS_PREPARE, PROPOSE, COMMIT | [`Commit`]; answers: [`Promise`], one byte, nothing |
//! | SCHEMA_PUSH, SCHEMA_PULL_RSP | [`read_schema`] |
//! | TRUNCATE, SNAPSHOT | [`Truncate`], [`Truncated`], [`Snapshot`] |
//! | PING | [`crate::Connection::number`] |
//! | FAILURE_RSP | [`crate::FailureReason`] |
//! | ECHO, other requests and answers | nothing |
//!
//! Gossip's are crate `gossip`'s.
//!
//! Rows are in the commit log's codec. The order of rows in an answer is checked before a merge
//! sees them.
//!
//! `conformance/internode` prints what the classes of Cassandra 5.0.9 and 4.1.10 write. The tests
//! hold it against ours, both ways.

mod batch;
mod counter;
mod hint;
mod paxos;
pub mod read;
mod schema;
mod truncate;

pub use batch::Batch;
pub use counter::CounterMutation;
pub use hint::Hint;
pub use paxos::{Commit, Promise};
pub use schema::{read_schema, write_schema};
pub use truncate::{Snapshot, Truncate, Truncated};

use std::sync::Arc;

use rows::Layout;
use rows::codec::{CodecError, EncodeError, Problem};
use thiserror::Error;
use types::ReadError;
use types::vint::TooLong;

use crate::reason::FailureReason;

/// The layouts of tables by id.
pub type LayoutOf<'t> = &'t dyn Fn(&[u8; 16]) -> Option<Arc<Layout>>;

/// Why a payload cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PayloadError {
    /// It is malformed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Rows in it are malformed, or of a table or column that is not known.
    #[error(transparent)]
    Rows(#[from] CodecError),
    /// A table that is not known.
    #[error("unknown table {}", types::hex::to_hex(.0))]
    UnknownTable([u8; 16]),
    /// A column that is not known.
    #[error("unknown column {0}")]
    UnknownColumn(String),
    /// A number that stands for nothing.
    #[error("invalid {what} {number}")]
    Kind {
        /// Of what.
        what: &'static str,
        /// The number.
        number: i64,
    },
    /// What Cassandra may ask for, but this node does not serve.
    #[error("{0} are not supported")]
    NotServed(&'static str),
}

impl PayloadError {
    /// What the sender is told.
    pub fn reason(&self) -> FailureReason {
        match self {
            Self::UnknownTable(_) | Self::UnknownColumn(_) | Self::NotServed(_) => {
                FailureReason::IncompatibleSchema
            }
            Self::Rows(error) => match error.problem {
                Problem::UnknownTable(_) | Problem::UnknownColumn(_) => {
                    FailureReason::IncompatibleSchema
                }
                _ => FailureReason::Unknown,
            },
            Self::Read(_) | Self::Kind { .. } => FailureReason::Unknown,
        }
    }

    fn kind(what: &'static str, number: impl Into<i64>) -> Self {
        Self::Kind { what, number: number.into() }
    }
}

/// Rows' problems without the place in the payload.
impl From<Problem> for PayloadError {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Read(error) => Self::Read(error),
            Problem::UnknownColumn(name) => Self::UnknownColumn(name),
            problem => Self::Rows(CodecError { offset: 0, problem }),
        }
    }
}

/// Why a payload cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// Rows that do not fit their layout.
    #[error(transparent)]
    Rows(#[from] EncodeError),
    /// A text or value that is too long for what says its length.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// A key that is none of its table's.
    #[error("a key of {0} bytes does not fit its table")]
    Key(usize),
}
