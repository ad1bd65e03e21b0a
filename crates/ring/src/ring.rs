//! The ring as this node sees it.

use std::sync::Arc;

use schema::Strategy;
use types::{Address, Token};

use crate::layout::{CenterIndex, Former, Layout};
use crate::node::{Node, NodeIndex};
use crate::placement::Placement;

/// Nodes that a ring has at most.
const MAX_NODES: usize = u16::MAX as usize;

/// Why nodes make no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// None or several are this one.
    #[error("{0} nodes are marked as this node")]
    Local(usize),
    /// Two have one address.
    #[error("address /{0} occurs twice")]
    Twice(Address),
    /// There are too many.
    #[error("{0} nodes are more than the limit of {MAX_NODES}")]
    TooMany(usize),
}

/// The ring. It never changes: another one is made, which shares what is the same.
#[derive(Clone, Debug)]
pub struct Ring {
    nodes: Vec<Node>,
    layout: Arc<Layout>,
    placements: Vec<(Strategy, Arc<Placement>)>,
}

impl Ring {
    /// A ring of these nodes, one of which is this one, with the placements of these strategies. Of
    /// two that claim a token the later one has it, as in Cassandra.
    ///
    /// # Errors
    /// If they make no ring.
    pub fn new<'a>(
        nodes: Vec<Node>,
        strategies: impl IntoIterator<Item = &'a Strategy>,
    ) -> Result<Self, RingError> {
        let (nodes, told) = arrange(nodes)?;
        Ok(Self::of(nodes, &told)?.with_strategies(strategies))
    }

    /// The same ring after something about its nodes has changed. Where none of it is about
    /// replicas, as who is up, this is cheap: placements stay.
    ///
    /// # Errors
    /// If they make no ring.
    pub fn with_nodes(&self, nodes: Vec<Node>) -> Result<Self, RingError> {
        let (nodes, told) = arrange(nodes)?;
        let is_same = nodes.len() == self.nodes.len()
            && nodes.iter().zip(&self.nodes).all(|(new, old)| new.is_placed_as(old));
        if is_same {
            return Ok(Self { nodes, ..self.clone() });
        }
        let strategies = self.placements.iter().map(|(strategy, _)| strategy);
        Ok(Self::of(nodes, &told)?.with_strategies(strategies))
    }

    fn of(nodes: Vec<Node>, told: &[NodeIndex]) -> Result<Self, RingError> {
        let locals = nodes.iter().filter(|node| node.is_local).count();
        let local = match nodes.iter().position(|node| node.is_local) {
            Some(place) if locals == 1 => NodeIndex(place as u16),
            _ => return Err(RingError::Local(locals)),
        };
        let layout = Arc::new(Layout::new(&nodes, local, told));
        Ok(Self { nodes, layout, placements: Vec::new() })
    }

    /// The same ring after changes of which some nodes may not have heard: `before` are the rings
    /// before them. Who is down reads nothing, and is written nothing.
    #[must_use]
    pub fn with_former<'a>(&self, before: impl IntoIterator<Item = &'a Self>) -> Self {
        let of = |old: &'a Self| {
            let here = |node: &Node| self.find(node.address).filter(|node| self.is_up(*node));
            // what was before that again is not held on to
            let layout = match old.layout.former.is_empty() {
                true => Arc::clone(&old.layout),
                false => Arc::new(Layout { former: Vec::new(), ..(*old.layout).clone() }),
            };
            Former { layout, here: old.nodes.iter().map(here).collect() }
        };
        let mut former: Vec<Former> = before.into_iter().map(of).collect();
        former.retain(|former| former.layout.owners != self.layout.owners);
        if former == self.layout.former {
            return self.clone();
        }
        let layout = Arc::new(Layout { former, ..(*self.layout).clone() });
        let strategies = self.placements.iter().map(|(strategy, _)| strategy);
        let bare = Self { nodes: self.nodes.clone(), layout, placements: Vec::new() };
        bare.with_strategies(strategies)
    }

    /// The same ring with the placements of these strategies and no others: those of all keyspaces.
    #[must_use]
    pub fn with_strategies<'a>(&self, strategies: impl IntoIterator<Item = &'a Strategy>) -> Self {
        let mut placements: Vec<(Strategy, Arc<Placement>)> = Vec::new();
        for strategy in strategies {
            if placements.iter().any(|(other, _)| other == strategy) {
                continue;
            }
            let known = self.placement(strategy).cloned();
            let made = || Placement::new(&self.layout, strategy).map(Arc::new);
            if let Some(placement) = known.or_else(made) {
                placements.push((strategy.clone(), placement));
            }
        }
        Self { nodes: self.nodes.clone(), layout: Arc::clone(&self.layout), placements }
    }

    /// Where a strategy places replicas. None if the ring was not made for it, or it is one that is
    /// not served.
    pub fn placement(&self, strategy: &Strategy) -> Option<&Arc<Placement>> {
        self.placements.iter().find(|(other, _)| other == strategy).map(|(_, placement)| placement)
    }

    /// All nodes, by address.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node of this ring.
    pub fn node(&self, node: NodeIndex) -> &Node {
        &self.nodes[node.at()]
    }

    /// This node.
    pub fn local(&self) -> NodeIndex {
        self.layout.local
    }

    /// Places of all nodes.
    pub fn indexes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.nodes.len()).map(|place| NodeIndex(place as u16))
    }

    /// A node by address.
    pub fn find(&self, address: Address) -> Option<NodeIndex> {
        let place = self.nodes.binary_search_by_key(&address, |node| node.address).ok()?;
        Some(NodeIndex(place as u16))
    }

    /// Is a node up? This one always is.
    pub fn is_up(&self, node: NodeIndex) -> bool {
        let node = self.node(node);
        node.is_up || node.is_local
    }

    /// Is a node in the data centre of this one?
    pub fn is_near(&self, node: NodeIndex) -> bool {
        self.center_of(node) == self.layout.local_center()
    }

    /// The data centre of a node.
    pub fn center_of(&self, node: NodeIndex) -> CenterIndex {
        self.layout.place(node).center
    }

    /// The rack of a node, among all racks of all data centres.
    pub(crate) fn rack_of(&self, node: NodeIndex) -> u16 {
        self.layout.place(node).rack
    }

    /// The name of a data centre.
    pub fn center_name(&self, center: CenterIndex) -> &Arc<str> {
        &self.layout.centers[usize::from(center.0)]
    }

    /// How far a node is from this one: the less, the nearer.
    pub fn distance(&self, node: NodeIndex) -> u8 {
        self.layout.distances[node.at()]
    }

    /// Nodes that own tokens.
    pub fn members(&self) -> &[NodeIndex] {
        &self.layout.owners.members
    }

    /// All tokens with their owners, by token.
    pub fn tokens(&self) -> &[(Token, NodeIndex)] {
        &self.layout.owners.tokens
    }

    /// Tokens with their owners, those of who joins among them: what `nodetool status` and `ring`
    /// go through. Who replaces a node stands in its place.
    pub fn tokens_with_joining(&self) -> Vec<(Token, NodeIndex)> {
        let joining = self.layout.joining.iter();
        let joining = joining.flat_map(|(node, tokens)| tokens.iter().map(|token| (*token, *node)));
        let all: std::collections::BTreeMap<_, _> =
            self.tokens().iter().copied().chain(joining).collect();
        all.into_iter().collect()
    }
}

/// Nodes by address, and the order in which they were told of.
fn arrange(nodes: Vec<Node>) -> Result<(Vec<Node>, Vec<NodeIndex>), RingError> {
    if nodes.len() > MAX_NODES {
        return Err(RingError::TooMany(nodes.len()));
    }
    let mut order: Vec<(usize, Node)> = nodes.into_iter().enumerate().collect();
    order.sort_by_key(|(_, node)| node.address);
    let twice = order.windows(2).find(|pair| pair[0].1.address == pair[1].1.address);
    if let Some(pair) = twice {
        return Err(RingError::Twice(pair[0].1.address));
    }
    let mut told: Vec<(usize, NodeIndex)> = order
        .iter()
        .enumerate()
        .map(|(place, (given, _))| (*given, NodeIndex(place as u16)))
        .collect();
    told.sort_unstable();
    let told = told.into_iter().map(|(_, index)| index).collect();
    Ok((order.into_iter().map(|(_, node)| node).collect(), told))
}
