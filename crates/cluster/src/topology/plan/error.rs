//! Why there is no plan. One line each.

use thiserror::Error;
use types::Address;

use super::NODES_MAX;
use crate::topology::join::JoinError;

/// Why there is no plan.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// This node knows no ring.
    #[error("the node has not joined the ring yet")]
    NoRing,
    /// They are too many, or none.
    #[error("a plan is for 1 to {NODES_MAX} nodes, not for {0}")]
    Nodes(u32),
    /// A node that is not there.
    #[error("{0} is no node of the ring: give its address or its host ID")]
    UnknownNode(String),
    /// A data centre where nobody says in which racks.
    #[error("no node is in data center {0}: give the new node's rack with --rack")]
    NoRack(String),
    /// Nobody would be left.
    #[error("/{0} is the only node of the ring")]
    Alone(Address),
    /// Only one with one token can be moved.
    #[error(transparent)]
    Move(#[from] crate::topology::relocation::RelocationError),
    /// There can be no such tokens.
    #[error(transparent)]
    Tokens(#[from] ring::AllocationError),
    /// Or no such ring.
    #[error(transparent)]
    Resize(#[from] ring::ResizeError),
    /// Or no such settings.
    #[error(transparent)]
    Settings(#[from] JoinError),
    /// What was made up makes no ring.
    #[error(transparent)]
    Ring(#[from] ring::RingError),
}
