//! Replicas of a token: a walk round the ring (`SimpleStrategy`,
//! `NetworkTopologyStrategy.calculateNaturalReplicas`).

use schema::{ReplicaCount, Strategy};
use types::Token;

use crate::layout::{CenterIndex, Layout, Owners};
use crate::node::NodeIndex;

/// How many replicas, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// So many, wherever they are.
    Simple(usize),
    /// So many in each of these data centres, on different racks as far as there are any.
    Topology(Vec<(CenterIndex, usize)>),
}

impl Rule {
    /// Of a strategy, in the terms of a layout; none of one that does not walk.
    pub fn of(strategy: &Strategy, layout: &Layout) -> Option<Self> {
        match strategy {
            Strategy::Simple(count) => Some(Self::Simple(count.all as usize)),
            Strategy::NetworkTopology(counts) => {
                let here = |(name, count): (&String, &ReplicaCount)| {
                    Some((layout.center(name)?, count.all as usize))
                };
                Some(Self::Topology(counts.iter().filter_map(here).collect()))
            }
            _ => None,
        }
    }
}

/// What a data centre still takes.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    /// Nodes.
    left: usize,
    /// Nodes of racks that it has one of.
    repeats: usize,
}

/// Walks round one ring by one rule.
pub(crate) struct Walk<'a> {
    layout: &'a Layout,
    owners: &'a Owners,
    /// Of each data centre at the start; of the first one alone where data centres do not count.
    rooms: Vec<Room>,
    is_simple: bool,
    open: Vec<Room>,
    racks: Vec<u16>,
}

impl<'a> Walk<'a> {
    pub fn new(layout: &'a Layout, owners: &'a Owners, rule: &Rule) -> Self {
        let mut walk = Self {
            layout,
            owners,
            rooms: Vec::new(),
            is_simple: matches!(rule, Rule::Simple(_)),
            open: Vec::new(),
            racks: Vec::new(),
        };
        walk.rooms = match rule {
            Rule::Simple(count) => {
                let owning = count_distinct(owners.tokens.iter().map(|(_, node)| node.0));
                vec![Room { left: owning.min(*count), repeats: 0 }]
            }
            Rule::Topology(counts) => {
                let mut rooms = vec![Room::default(); layout.centers.len()];
                for (center, count) in counts {
                    rooms[usize::from(center.0)] = walk.room(*center, *count);
                }
                rooms
            }
        };
        walk
    }

    /// What a data centre takes: no more than a whole round can find, so that no walk goes on in
    /// vain. Members that own nothing count among its nodes and racks nevertheless, as in
    /// Cassandra.
    fn room(&self, center: CenterIndex, count: usize) -> Room {
        let is_here = |node: &NodeIndex| self.layout.place(*node).center == center;
        let members = || self.owners.members.iter().copied().filter(is_here);
        let owning = || self.owners.tokens.iter().map(|(_, node)| *node).filter(is_here);
        let rack = |node: NodeIndex| self.layout.place(node).rack;
        let nodes = count_distinct(members().map(|node| node.0));
        let racks = count_distinct(members().map(rack));
        let owning_nodes = count_distinct(owning().map(|node| node.0));
        let owning_racks = count_distinct(owning().map(rack));
        let repeats = count.saturating_sub(racks);
        let found = owning_racks + repeats.min(owning_nodes - owning_racks);
        Room { left: count.min(nodes).min(found), repeats }
    }

    /// Appends the replicas of a token to `found`, the primary one first.
    pub fn replicas(&mut self, token: Token, found: &mut Vec<NodeIndex>) {
        let (before, start) = (found.len(), self.owners.place_of(token));
        let (later, first) = self.owners.tokens.split_at(start);
        let round = first.iter().chain(later).map(|(_, node)| *node);
        self.open.clone_from(&self.rooms);
        self.racks.clear();
        let mut left: usize = self.rooms.iter().map(|room| room.left).sum();
        for node in round {
            if left == 0 {
                break;
            }
            let is_new = || !found[before..].contains(&node);
            if self.is_simple {
                if is_new() {
                    found.push(node);
                    left -= 1;
                }
                continue;
            }
            let place = self.layout.place(node);
            let room = &mut self.open[usize::from(place.center.0)];
            if room.left == 0 || !is_new() {
                continue;
            }
            if !self.racks.contains(&place.rack) {
                self.racks.push(place.rack);
            } else if room.repeats > 0 {
                room.repeats -= 1;
            } else {
                continue;
            }
            room.left -= 1;
            left -= 1;
            found.push(node);
        }
    }

    /// The replicas of a token.
    pub fn of(&mut self, token: Token) -> Vec<NodeIndex> {
        let mut found = Vec::new();
        self.replicas(token, &mut found);
        found
    }
}

fn count_distinct(numbers: impl Iterator<Item = u16>) -> usize {
    let mut numbers: Vec<u16> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}
