//! Why a node does not leave its place. One line each, in Cassandra's words where it has any.

use storage::StorageError;
use thiserror::Error;
use types::Address;

use crate::topology::fetch::NoSource;
use crate::topology::join::list;

/// Why a node does not leave its place, or is not removed from it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RelocationError {
    /// Storage does not take what is to be kept.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// This node is none of the ring.
    #[error("local node is not a member of the token ring yet")]
    NoMember,
    /// It is the only one.
    #[error("no other normal nodes in the ring; decommission would be pointless")]
    Alone,
    /// It does something else.
    #[error("Node in {0} state; wait for status to become normal or restart")]
    Busy(&'static str),
    /// It is about to have more.
    #[error("data is currently moving to this node; unable to leave the ring")]
    Gaining,
    /// Others are joining, leaving or moving.
    #[error(
        "Other bootstrapping/leaving/moving nodes detected ({}), cannot give up ranges while \
         consistent_rangemovement is true: wait until they are done", list(.0)
    )]
    OthersMove(Vec<Address>),
    /// A keyspace would have fewer replicas than it is to have.
    #[error(
        "Not enough live nodes to maintain replication factor in keyspace {keyspace} \
         (RF = {wanted}, N = {nodes}). Perform a forceful decommission to ignore."
    )]
    TooFew {
        /// The keyspace.
        keyspace: String,
        /// Its replicas.
        wanted: u32,
        /// Nodes that there are.
        nodes: usize,
    },
    /// The token is another's.
    #[error("target token {0} is already owned by another node.")]
    TokenTaken(i64),
    /// It has several tokens.
    #[error("This node has more than one token and cannot be moved thusly.")]
    ManyTokens,
    /// Nodes that are up have not heard of it.
    #[error(
        "{} did not hear of it in time, and would write past the nodes that gain ranges; check the \
         network between the nodes, and try again", list(.0)
    )]
    Unheard(Vec<Address>),
    /// Data cannot be given or fetched.
    #[error(transparent)]
    NoSource(#[from] NoSource),
    /// Sessions failed.
    #[error("streams failed: {0}")]
    Streams(String),
    /// Hints could not be handed over.
    #[error("cannot hand over hints to /{0}")]
    Hints(Address),
    /// A node of that id is not known.
    #[error("Host ID not found.")]
    UnknownHost,
    /// A node cannot remove itself.
    #[error("Cannot remove self")]
    Oneself,
    /// The node is up.
    #[error(
        "Node /{0} is alive and owns this ID. Use decommission command to remove it from the ring"
    )]
    Alive(Address),
    /// Another is being removed.
    #[error(
        "This node is already processing a removal. Wait for it to complete, or use 'removenode \
         force' if this has failed."
    )]
    Removing,
    /// A sign of life of a node that was to be removed.
    #[error("Endpoint /{0} generation changed while trying to remove it")]
    CameBack(Address),
}

impl RelocationError {
    /// Is it said before anything was done?
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::NoMember
                | Self::Alone
                | Self::Busy(_)
                | Self::Gaining
                | Self::OthersMove(_)
                | Self::TooFew { .. }
        )
    }
}
