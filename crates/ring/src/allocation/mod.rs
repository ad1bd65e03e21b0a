//! Tokens of a node that joins a ring.
//!
//! [`Method::Cassandra`] gives what Cassandra 5.0.9 gives with
//! `allocate_tokens_for_local_replication_factor`; [`Method::Even`] is our own, and evener.
//! [`random_tokens`] is what a node has without either. `docs/tokens.md` has figures of all three.
//!
//! Nodes that are there keep their tokens: whatever moves, moves to the newcomer.
//!
//! ```
//! use ring::{Method, Newcomer, allocate};
//!
//! let newcomer = Newcomer {
//!     address: types::Address::new([127, 0, 0, 1], 7000),
//!     data_center: "dc1",
//!     rack: "r1",
//!     num_tokens: 4,
//! };
//! let mut random = || 0x9e37_79b9_7f4a_7c15;
//! assert_eq!(allocate(&[], &newcomer, 3, Method::Even, &mut random)?.len(), 4);
//! # Ok::<(), ring::AllocationError>(())
//! ```

mod cassandra;
mod even;
mod random;
mod shares;

use types::{Address, Token};

use crate::node::Node;

pub use random::random_tokens;
pub use shares::{Weighed, fair_shares};

/// Tokens that a node has at most, as in Cassandra (`DatabaseDescriptor.MAX_NUM_TOKENS`).
const TOKENS_MAX: u32 = 1536;

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// So that what nodes replicate is as even as can be.
    #[default]
    Even,
    /// As Cassandra 5.0.9 does.
    Cassandra,
}

/// A node that is to have tokens.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    /// What the others will know it by.
    pub address: Address,
    /// Its data centre.
    pub data_center: &'a str,
    /// Its rack there.
    pub rack: &'a str,
    /// `num_tokens`.
    pub num_tokens: u32,
}

impl Newcomer<'_> {
    /// Can it have so many tokens?
    pub(crate) fn check_count(&self) -> Result<(), AllocationError> {
        match self.num_tokens {
            0 => Err(AllocationError::None),
            1..=TOKENS_MAX => Ok(()),
            _ => Err(AllocationError::TooMany),
        }
    }

    /// Is this a node of its data centre that owns tokens?
    fn is_member_nearby(&self, node: &Node) -> bool {
        node.state.is_member() && self.is_nearby(node)
    }

    /// Is this a node of its data centre that has tokens or is to have them?
    fn is_nearby(&self, node: &Node) -> bool {
        !node.tokens.is_empty()
            && *node.data_center == *self.data_center
            && node.address != self.address
    }
}

/// Why no tokens were chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// A node without tokens owns nothing.
    #[error("num_tokens must be >= 1")]
    None,
    /// They are too many.
    #[error("A maximum number of {TOKENS_MAX} tokens per node is supported")]
    TooMany,
    /// Cassandra does not allocate in so few racks.
    #[error(
        "Token allocation failed: the number of racks {racks} in datacenter {data_center} is lower \
         than its replication factor {replicas}."
    )]
    Racks {
        /// Racks there.
        racks: usize,
        /// The newcomer's data centre.
        data_center: String,
        /// Replicas there.
        replicas: u32,
    },
    /// Two tokens are next to each other, and the one between them was chosen.
    #[error(
        "Allocated token {} already assigned to node /{address}. Is another node also allocating \
         tokens?", token.0
    )]
    Assigned {
        /// The token.
        token: Token,
        /// Whose it is.
        address: Address,
    },
    /// Cassandra fails where a node has fewer tokens than it wants to split.
    #[error(
        "token allocation failed: Cassandra's way splits more ranges of a node than it has; set \
         initial_token"
    )]
    Exhausted,
}

/// Tokens of a newcomer, in their order: as many as it wants, none of which any of these nodes
/// has. `replicas` is how many its data centre has of each key. `random` gives 64 bits; of equal
/// ones come equal tokens.
///
/// # Errors
/// If it wants none or too many, or Cassandra's method refuses.
pub fn allocate(
    nodes: &[Node],
    newcomer: &Newcomer<'_>,
    replicas: u32,
    method: Method,
    random: &mut dyn FnMut() -> u64,
) -> Result<Vec<Token>, AllocationError> {
    newcomer.check_count()?;
    let mut tokens = match method {
        Method::Even => even::allocate(nodes, newcomer, replicas, random),
        Method::Cassandra => cassandra::allocate(nodes, newcomer, replicas, random)?,
    };
    tokens.sort_unstable();
    assert_eq!(tokens.len(), newcomer.num_tokens as usize, "a node has all its tokens");
    assert!(tokens.is_sorted_by(|one, other| one < other), "a token is given once");
    Ok(tokens)
}
