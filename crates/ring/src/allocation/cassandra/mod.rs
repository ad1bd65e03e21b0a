//! The tokens that Cassandra 5.0.9 chooses (`org.apache.cassandra.dht.tokenallocator`), token by
//! token. `conformance/tokens` prints what its own classes choose.
//!
//! The first token of an empty ring is left to chance there (a thread's own generator); here,
//! whoever calls has one. All that follows is decided: the generator of the first nodes' splits is
//! seeded with the number of tokens, and what is equal comes in the order of Java's collections.
//!
//! Not modelled: a JVM before 19 may print a double with a digit more than it needs, and
//! Cassandra multiplies these digits (`wheel::split`). None of the recorded tokens shows it.

mod java;
mod replicated;
mod single;
mod splits;
mod wheel;

use std::collections::{BTreeMap, BTreeSet};

use types::{Address, Token};

use super::{AllocationError, Newcomer};
use crate::node::Node;

/// Cassandra wants to split more ranges of a node than it has, and fails.
pub(super) struct Exhausted;

/// A node whose tokens count.
struct Member {
    address: Address,
    /// Nodes of a group have no replica of each other's ranges.
    group: usize,
}

/// Nodes that share the ring with the newcomer, which is the last of them.
struct Members {
    nodes: Vec<Member>,
    /// Tokens with the places of their nodes.
    ring: BTreeMap<i64, usize>,
    replicas: usize,
}

impl Members {
    fn newcomer(&self) -> usize {
        self.nodes.len() - 1
    }

    fn nodes_with_tokens(&self) -> usize {
        self.ring.values().collect::<BTreeSet<_>>().len()
    }

    fn groups_with_tokens(&self) -> usize {
        self.ring.values().map(|node| self.nodes[*node].group).collect::<BTreeSet<_>>().len()
    }
}

/// Whose tokens count, and how (`TokenAllocation.createStrategy`).
struct Scope {
    replicas: usize,
    /// Of the newcomer's rack alone.
    is_rack: bool,
    groups_are_racks: bool,
}

impl Scope {
    fn new(
        nodes: &[Node],
        newcomer: &Newcomer<'_>,
        replicas: u32,
    ) -> Result<Self, AllocationError> {
        let here = nodes.iter().filter(|node| newcomer.is_member_nearby(node));
        let racks: BTreeSet<&str> = here.map(|node| &*node.rack).collect();
        // a rack without members is not known yet: racks do not count then
        let racks = if racks.contains(newcomer.rack) { racks.len() } else { 1 };
        let (wanted, plain) = (replicas as usize, Self::plain(replicas as usize));
        match wanted {
            0 | 1 => Ok(Self::plain(1)),
            _ if racks == wanted => Ok(Self { is_rack: true, ..Self::plain(1) }),
            _ if racks > wanted => Ok(Self { groups_are_racks: true, ..plain }),
            _ if racks == 1 => Ok(plain),
            _ => Err(AllocationError::Racks {
                racks,
                data_center: newcomer.data_center.into(),
                replicas,
            }),
        }
    }

    fn plain(replicas: usize) -> Self {
        Self { replicas, is_rack: false, groups_are_racks: false }
    }

    fn includes(&self, node: &Node, newcomer: &Newcomer<'_>) -> bool {
        newcomer.is_member_nearby(node) && (!self.is_rack || *node.rack == *newcomer.rack)
    }

    fn members(&self, nodes: &[Node], newcomer: &Newcomer<'_>) -> Members {
        let mut racks: Vec<&str> = Vec::new();
        let mut members =
            Members { nodes: Vec::new(), ring: BTreeMap::new(), replicas: self.replicas };
        let places = nodes
            .iter()
            .filter(|node| self.includes(node, newcomer))
            .map(|node| (node.address, &*node.rack, node.tokens.as_slice()));
        for (address, rack, tokens) in places.chain([(newcomer.address, newcomer.rack, &[][..])]) {
            let place = members.nodes.len();
            let group = match self.groups_are_racks {
                false => place,
                true => racks.iter().position(|known| *known == rack).unwrap_or_else(|| {
                    racks.push(rack);
                    racks.len() - 1
                }),
            };
            members.nodes.push(Member { address, group });
            members.ring.extend(tokens.iter().map(|token| (token.0, place)));
        }
        members
    }
}

/// The tokens that Cassandra gives the newcomer, in its order.
pub(super) fn allocate(
    nodes: &[Node],
    newcomer: &Newcomer<'_>,
    replicas: u32,
    random: &mut dyn FnMut() -> u64,
) -> Result<Vec<Token>, AllocationError> {
    let scope = Scope::new(nodes, newcomer, replicas)?;
    let members = scope.members(nodes, newcomer);
    let count = newcomer.num_tokens as usize;
    let first = || super::random::token(random).0;
    let chosen = match members.replicas {
        1 => single::allocate(&members, count, first),
        _ => replicated::allocate(&members, count, first),
    };
    let chosen = chosen.map_err(|Exhausted| AllocationError::Exhausted)?;
    move_off_taken(nodes, newcomer, &scope, chosen)
}

/// A token that a node elsewhere has is moved to the next free one
/// (`adjustForCrossDatacenterClashes`).
fn move_off_taken(
    nodes: &[Node],
    newcomer: &Newcomer<'_>,
    scope: &Scope,
    chosen: Vec<i64>,
) -> Result<Vec<Token>, AllocationError> {
    let taken: BTreeMap<Token, &Node> =
        nodes.iter().flat_map(|node| node.tokens.iter().map(move |token| (*token, node))).collect();
    let mut free = BTreeSet::new();
    let mut tokens = Vec::with_capacity(chosen.len());
    for mut token in chosen.into_iter().map(Token) {
        loop {
            match taken.get(&token) {
                Some(node) if scope.includes(node, newcomer) => {
                    return Err(AllocationError::Assigned { token, address: node.address });
                }
                // Cassandra would claim a token twice that it moved to one of its own
                None if token != Token::MIN && free.insert(token) => break,
                _ => token = Token(token.0.wrapping_add(1)),
            }
        }
        tokens.push(token);
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::State;

    #[test]
    fn what_is_moved_off_one_token_is_not_moved_onto_another() {
        let address = Address::new([127, 0, 0, 1], 7000);
        let elsewhere = Node {
            address,
            host_id: types::Uuid(1),
            data_center: "dc2".into(),
            rack: "r1".into(),
            tokens: vec![Token(10), Token(i64::MAX)],
            state: State::Normal,
            is_up: true,
            is_local: false,
            accepts_clients: true,
        };
        let newcomer = Newcomer { address, data_center: "dc1", rack: "r1", num_tokens: 3 };
        let chosen = vec![10, 11, i64::MAX];
        let tokens = move_off_taken(&[elsewhere], &newcomer, &Scope::plain(1), chosen);
        assert_eq!(tokens, Ok(vec![Token(11), Token(12), Token(i64::MIN + 1)]));
    }
}
