//! Why a node does not become a part of the ring. One line each.

use storage::StorageError;
use thiserror::Error;
use types::Address;

use crate::topology::fetch::NoSource;

pub(in crate::topology) fn list(nodes: &[Address]) -> String {
    nodes.iter().map(|node| format!("/{node}")).collect::<Vec<_>>().join(", ")
}

/// Why a node does not become a part of the ring.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Storage does not give what was stored, or does not take what is to be.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Nobody answers.
    #[error(
        "Unable to gossip with any peers: none of {0} answers; check that cluster_name is the \
         same there and that their storage_port is open"
    )]
    NoPeers(String),
    /// Another node has its address.
    #[error(
        "A node with address /{0} already exists, cancelling join: it has another host ID than \
         this data directory. Set replace_address_first_boot to replace it if it is dead, or set \
         another listen_address"
    )]
    AddressTaken(Address),
    /// The ring has what this node cannot serve.
    #[error(
        "did not join the ring: its schema has objects that this release does not support: {0}; \
         drop them on a Cassandra node, or keep Cassandra on this one"
    )]
    Unserved(String),
    /// The node gave its tokens up.
    #[error(
        "This node was decommissioned and will not rejoin the ring: remove its data to bootstrap \
         it again"
    )]
    Decommissioned,
    /// The configuration wants another number of tokens than the node has.
    #[error(
        "Cannot change the number of tokens from {saved} to {configured}: set num_tokens to \
         {saved}, or decommission this node and bootstrap it anew"
    )]
    TokenCount {
        /// Its tokens.
        saved: usize,
        /// `num_tokens`.
        configured: usize,
    },
    /// Tokens of `initial_token` are another node's.
    #[error(
        "Bootstrapping to existing token {token} is not allowed: it is one of /{owner}; set other \
         tokens in initial_token, or decommission that node first"
    )]
    TokenTaken {
        /// The token.
        token: i64,
        /// Whose it is.
        owner: Address,
    },
    /// Tokens cannot be allocated.
    #[error(transparent)]
    Allocation(#[from] ring::AllocationError),
    /// Tokens are to be allocated for a keyspace that is not there.
    #[error("Problem opening token allocation keyspace {0}: there is none of that name")]
    AllocationKeyspace(String),
    /// Others are joining, leaving or moving.
    #[error(
        "Other bootstrapping/leaving/moving nodes detected ({}), cannot bootstrap while \
         consistent_rangemovement is true: wait until they are done", list(.0)
    )]
    OthersMove(Vec<Address>),
    /// The nodes of the ring have not one schema.
    #[error(
        "did not join the ring: the schema of {} did not arrive in time; compare schema versions \
         with nodetool describecluster on a node of the ring, and start again once there is one",
        list(.0)
    )]
    NoSchema(Vec<Address>),
    /// Nodes of the ring are not heard of.
    #[error(
        "did not join the ring: nothing was heard of {} since this node started; check the network \
         between the nodes, and start again", list(.0)
    )]
    Unknown(Vec<Address>),
    /// Nodes that are up have not heard that this one joins.
    #[error(
        "did not join the ring: {} did not hear of it in time, and would write past it; check \
         the network between the nodes, and start again", list(.0)
    )]
    Unheard(Vec<Address>),
    /// Members do not answer a node that is about to become one.
    #[error(
        "{} did not answer before this node became a member: it may be cut off, and others would \
         write past it; check the network between the nodes", list(.0)
    )]
    CutOff(Vec<Address>),
    /// A node that has its data cannot replace another.
    #[error(
        "Cannot replace address with a node that is already bootstrapped: take replace_address \
         out of the settings, or remove the data of this node"
    )]
    ReplaceBootstrapped,
    /// Who is to replace another must join.
    #[error("Cannot set both join_ring=false and attempt to replace a node")]
    ReplaceApart,
    /// Who is to replace another must fetch its data.
    #[error(
        "Replacing a node without bootstrapping risks invalidating consistency guarantees as the \
         expected data may not be present until repair is run: set auto_bootstrap to true"
    )]
    ReplaceWithoutData,
    /// Nobody knows the node that is to be replaced.
    #[error("Cannot replace_address /{0} because it doesn't exist in gossip")]
    ReplaceUnknown(Address),
    /// The node that is to be replaced has no tokens.
    #[error("Could not find tokens for /{0} to replace")]
    ReplaceNoTokens(Address),
    /// The node that is to be replaced is up.
    #[error("Cannot replace a live node... /{0} is up: stop it first, and wait for ring_delay")]
    ReplaceLive(Address),
    /// Data cannot be fetched.
    #[error(transparent)]
    NoSource(#[from] NoSource),
    /// Sessions failed.
    #[error("streams failed: {0}")]
    Streams(String),
    /// Nothing is to be resumed.
    #[error("Node is already bootstrapped.")]
    NotBroken,
    /// The node is a part of the ring.
    #[error("This node has already joined the ring.")]
    Joined,
    /// Its data is not there.
    #[error("Cannot join the ring until bootstrap completes")]
    Incomplete,
}
