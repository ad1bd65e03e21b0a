//! The schema as a ring shares it: what other nodes are told of it, and what of theirs becomes
//! ours.
//!
//! [`Agreement`] says whom to ask and tell; the four calls here are what that needs of the node.
//! Sockets are elsewhere.
//!
//! `tests/schema_agreement.rs` runs rings by seed. `conformance/schema` recorded the versions that
//! live nodes of 4.1.10 and 5.0.9 said, statement by statement.

mod agreement;
#[cfg(test)]
mod tests;

pub use agreement::{
    Agreement, BACK_OFF, Effect, Event, MIGRATION_DELAY, PULL_INTERVAL, PULL_LIMIT,
    PULLS_OF_A_VERSION, Pull, Said, Version,
};

use std::rc::Rc;

use rows::Mutation;
use schema::{MergeError, MutationError};
use thiserror::Error;

/// From where a change came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A statement of a client of this node: the other nodes are sent it.
    Here,
    /// Another node: each tells the others itself.
    Peer,
}

/// A change of the schema, durable and known to all shards.
#[derive(Clone, Debug)]
pub struct News {
    /// From where.
    pub origin: Origin,
    /// The version from now on.
    pub version: Version,
    /// What changed, as it is sent in SCHEMA_PUSH.
    pub mutations: Vec<Mutation>,
}

/// Who is told of changes; on the first shard.
pub type Watcher = Rc<dyn Fn(News)>;

/// Why mutations of another node are not merged. Nothing of them is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaRefused {
    /// They are no mutations of `system_schema` as it is known here.
    #[error(transparent)]
    Mutation(#[from] MutationError),
    /// They make no sense.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// They cannot be kept: the commit log failed, or the node starts or stops.
    #[error("{0}")]
    Failed(String),
}
