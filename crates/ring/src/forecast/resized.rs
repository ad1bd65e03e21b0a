//! The same nodes with another number of tokens: what a ring would be that was built so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::dice::Dice;
use crate::allocation::{AllocationError, Method, Newcomer, allocate, random_tokens};
use crate::node::{Node, State};

/// Tokens of all nodes that such a ring has at most: what it takes to compute with it is bounded.
const TOKENS_MAX: usize = 200_000;
/// Nodes times tokens from which on tokens are drawn: to place each of them evenly would take
/// longer than an operator waits. How many neighbours a node has hardly depends on it.
const EVEN_MAX: usize = 512;

/// Such nodes.
#[derive(Clone, Debug)]
pub struct Resized {
    /// All of them normal.
    pub nodes: Vec<Node>,
    /// Are tokens placed evenly? If not, they were drawn: there are too many of them.
    pub is_even: bool,
}

/// Why there is no such ring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResizeError {
    /// It would be too large.
    #[error("{0} nodes with {1} tokens each have more than {TOKENS_MAX} tokens")]
    TooMany(usize, u32),
    /// There can be no such tokens.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
}

/// The members among these nodes, as if they had come one after the other, racks in turn, with so
/// many tokens each. `replicas` says how many a data centre has of each key.
///
/// # Errors
/// If there would be too many tokens.
pub fn resized(
    nodes: &[Node],
    num_tokens: u32,
    replicas: impl Fn(&str) -> u32,
) -> Result<Resized, ResizeError> {
    let members: Vec<&Node> = nodes.iter().filter(|node| node.state.is_member()).collect();
    let all = members.len().saturating_mul(num_tokens as usize);
    if all > TOKENS_MAX {
        return Err(ResizeError::TooMany(members.len(), num_tokens));
    }
    let is_even = all <= EVEN_MAX;
    let (mut dice, mut taken) = (Dice::new(), BTreeSet::new());
    let mut there: Vec<Node> = Vec::with_capacity(members.len());
    for node in in_turn(members) {
        let newcomer = Newcomer {
            address: node.address,
            data_center: &node.data_center,
            rack: &node.rack,
            num_tokens,
        };
        newcomer.check_count()?;
        let mut random = || dice.next();
        let tokens = match is_even {
            true => {
                let replicas = replicas(&node.data_center);
                allocate(&there, &newcomer, replicas, Method::Even, &mut random)?
            }
            false => random_tokens(num_tokens, &taken, &mut random),
        };
        taken.extend(tokens.iter().copied());
        there.push(Node { tokens, state: State::Normal, ..node.clone() });
    }
    Ok(Resized { nodes: there, is_even })
}

/// The first node of each rack, then the second one of each.
fn in_turn(nodes: Vec<&Node>) -> Vec<&Node> {
    let mut seen: BTreeMap<(Arc<str>, Arc<str>), usize> = BTreeMap::new();
    let mut turns: Vec<(usize, &Node)> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let of = seen.entry((Arc::clone(&node.data_center), Arc::clone(&node.rack))).or_default();
        turns.push((*of, node));
        *of += 1;
    }
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, node)| node).collect()
}
