//! The tokens that a node would have that joins.

use std::collections::BTreeSet;

use types::Token;

use super::dice::Dice;
use crate::allocation::{AllocationError, Method, Newcomer, allocate, random_tokens};
use crate::node::Node;

/// Tokens of a newcomer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// In their order.
    pub tokens: Vec<Token>,
    /// Did chance have a part in it? Then the node that joins will have others, much like these.
    pub is_drawn: bool,
}

/// What a newcomer would choose among these nodes; `how` is the method and the number of replicas
/// that it counts with, none at random.
///
/// # Errors
/// See [`allocate`].
pub fn choose_tokens(
    nodes: &[Node],
    newcomer: &Newcomer<'_>,
    how: Option<(Method, u32)>,
) -> Result<Chosen, AllocationError> {
    let (mut dice, mut is_drawn) = (Dice::new(), false);
    let mut random = || {
        is_drawn = true;
        dice.next()
    };
    let tokens = match how {
        Some((method, replicas)) => allocate(nodes, newcomer, replicas, method, &mut random)?,
        None => {
            newcomer.check_count()?;
            let taken: BTreeSet<Token> =
                nodes.iter().flat_map(|node| &node.tokens).copied().collect();
            random_tokens(newcomer.num_tokens, &taken, &mut random)
        }
    };
    Ok(Chosen { tokens, is_drawn })
}
