//! What replicas are placed by: where nodes are, who owns which token, and who is about to.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{Address, Token};

use crate::node::{Node, NodeIndex, State};

/// A data centre that has nodes, by its place among those of one ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CenterIndex(pub(crate) u16);

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub center: CenterIndex,
    /// Of all racks of all data centres.
    pub rack: u16,
}

/// Tokens with their owners, at one stage of what is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    /// By token.
    pub tokens: Vec<(Token, NodeIndex)>,
    /// Nodes that count as being there, which one does whose tokens were all taken over too.
    pub members: Vec<NodeIndex>,
}

impl Owners {
    /// Place of the token that a token's range ends with.
    pub fn place_of(&self, token: Token) -> usize {
        let place = self.tokens.partition_point(|(end, _)| *end < token);
        if place == self.tokens.len() { 0 } else { place }
    }

    /// Without some nodes.
    pub fn without(&self, gone: impl Fn(NodeIndex) -> bool) -> Self {
        Self {
            tokens: self.tokens.iter().copied().filter(|(_, node)| !gone(*node)).collect(),
            members: self.members.iter().copied().filter(|node| !gone(*node)).collect(),
        }
    }

    /// With a node that owns these tokens and no others, whoever owned them.
    pub fn with(&self, node: NodeIndex, tokens: &[Token]) -> Self {
        let others = self.tokens.iter().filter(|(_, owner)| *owner != node).copied();
        let mut owners: BTreeMap<_, _> = others.collect();
        owners.extend(tokens.iter().map(|token| (*token, node)));
        let mut members = self.members.clone();
        if !members.contains(&node) {
            members.push(node);
        }
        Self { tokens: owners.into_iter().collect(), members }
    }
}

/// What replicas are placed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub local: NodeIndex,
    /// Names of data centres.
    pub centers: Vec<Arc<str>>,
    /// Of each node.
    pub places: Vec<Place>,
    /// How far each node is from this one, in the order of a snitch that knows of racks.
    pub distances: Vec<u8>,
    /// Who owns what now.
    pub owners: Owners,
    /// Who is about to own tokens, and which.
    pub joining: Vec<(NodeIndex, Vec<Token>)>,
    /// Who gives its tokens up.
    pub leaving: Vec<NodeIndex>,
    /// Who moves, and where to.
    pub moving: Vec<(NodeIndex, Token)>,
    /// What replicas were placed by until just now, at one or more moments.
    pub former: Vec<Former>,
}

/// What replicas were placed by before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Former {
    pub layout: Arc<Layout>,
    /// By their places there, the nodes that are still here and up.
    pub here: Vec<Option<NodeIndex>>,
}

impl Layout {
    /// Of nodes in the order of their addresses, one of them this one. `told` is the order in which
    /// they were told of: of two that claim a token, the later one has it.
    pub fn new(nodes: &[Node], local: NodeIndex, told: &[NodeIndex]) -> Self {
        let mut centers: Vec<Arc<str>> = Vec::new();
        let mut racks: Vec<(CenterIndex, Arc<str>)> = Vec::new();
        let places: Vec<Place> = nodes
            .iter()
            .map(|node| {
                let center = CenterIndex(intern(&mut centers, &node.data_center));
                Place { center, rack: intern(&mut racks, &(center, Arc::clone(&node.rack))) }
            })
            .collect();
        let here = &nodes[local.at()];
        let distances = nodes.iter().map(|node| distance(here, node)).collect();
        let mut layout = Self {
            local,
            centers,
            places,
            distances,
            owners: Owners::default(),
            joining: Vec::new(),
            leaving: Vec::new(),
            moving: Vec::new(),
            former: Vec::new(),
        };
        layout.own(nodes, told);
        layout.join(nodes, told);
        layout
    }

    fn own(&mut self, nodes: &[Node], told: &[NodeIndex]) {
        let mut owners = BTreeMap::new();
        for &index in told {
            let node = &nodes[index.at()];
            if !node.state.is_member() || node.tokens.is_empty() {
                continue;
            }
            owners.extend(node.tokens.iter().map(|token| (*token, index)));
            self.owners.members.push(index);
            match node.state {
                State::Leaving => self.leaving.push(index),
                State::Moving(to) => self.moving.push((index, to)),
                _ => {}
            }
        }
        self.owners.tokens = owners.into_iter().collect();
        self.owners.members.sort_unstable();
        self.leaving.sort_unstable();
        self.moving.sort_unstable();
    }

    /// Who claims another's token joins nothing, unless it replaces that one with all that it has.
    fn join(&mut self, nodes: &[Node], told: &[NodeIndex]) {
        let owners: BTreeMap<_, _> = self.owners.tokens.iter().copied().collect();
        let mut claimed: BTreeMap<Token, NodeIndex> = BTreeMap::new();
        for &index in told {
            let node = &nodes[index.at()];
            let mut tokens = node.tokens.clone();
            tokens.sort_unstable();
            tokens.dedup();
            let is_free = |token: &Token| !owners.contains_key(token);
            let is_right = match node.state {
                State::Joining => tokens.iter().all(is_free),
                State::Replacing(address) => replaces(nodes, &self.owners, address, &tokens),
                _ => false,
            };
            if is_right && !tokens.is_empty() && tokens.iter().all(|t| !claimed.contains_key(t)) {
                claimed.extend(tokens.iter().map(|token| (*token, index)));
                self.joining.push((index, tokens));
            }
        }
    }

    /// Where a node is.
    pub fn place(&self, node: NodeIndex) -> Place {
        self.places[node.at()]
    }

    /// The data centre of this node.
    pub fn local_center(&self) -> CenterIndex {
        self.place(self.local).center
    }

    /// A data centre by name, if it has nodes.
    pub fn center(&self, name: &str) -> Option<CenterIndex> {
        let place = self.centers.iter().position(|center| **center == *name)?;
        Some(CenterIndex(place as u16))
    }
}

/// Are these all tokens of the node of this address?
fn replaces(nodes: &[Node], owners: &Owners, address: Address, tokens: &[Token]) -> bool {
    let old = nodes.iter().position(|node| node.address == address);
    let its = owners.tokens.iter().filter(|(_, owner)| Some(owner.at()) == old);
    its.map(|(token, _)| token).eq(tokens)
}

/// The node itself, its rack, its data centre, others; racks of one name are one even in different
/// data centres, as in Cassandra.
fn distance(here: &Node, node: &Node) -> u8 {
    if node.is_local {
        return 0;
    }
    let is_elsewhere = u8::from(node.data_center != here.data_center);
    let is_other_rack = u8::from(node.rack != here.rack);
    1 + 2 * is_elsewhere + is_other_rack
}

fn intern<T: PartialEq + Clone>(known: &mut Vec<T>, value: &T) -> u16 {
    let place = known.iter().position(|other| other == value).unwrap_or_else(|| {
        known.push(value.clone());
        known.len() - 1
    });
    place as u16
}
