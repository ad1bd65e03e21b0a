//! The data centre that a newcomer comes to, and which of it matters for its tokens.

use std::collections::BTreeMap;

use super::circle::Rule;
use crate::allocation::Newcomer;
use crate::allocation::shares::Weighed;
use crate::node::{Node, State};

/// Nodes of a data centre; the newcomer is the last one, and has no tokens yet.
pub struct There {
    pub nodes: Vec<Weighed>,
    /// Tokens in their order, with their nodes.
    pub tokens: Vec<(i64, u16)>,
}

impl There {
    /// Nodes that join count too: their tokens are as good as given.
    pub fn new(nodes: &[Node], newcomer: &Newcomer<'_>) -> Self {
        let is_joining = |node: &Node| node.state == State::Joining && newcomer.is_nearby(node);
        let members = nodes.iter().filter(|node| newcomer.is_member_nearby(node));
        let joining = nodes.iter().filter(|node| is_joining(node));
        let mut racks: Vec<&str> = Vec::new();
        let mut there = Self { nodes: Vec::new(), tokens: Vec::new() };
        let mut owners: BTreeMap<i64, u16> = BTreeMap::new();
        let mut add = |rack, weight| {
            let rack = racks.iter().position(|known| *known == rack).unwrap_or_else(|| {
                racks.push(rack);
                racks.len() - 1
            });
            there.nodes.push(Weighed { rack: rack as u16, weight });
            (there.nodes.len() - 1) as u16
        };
        for node in joining.chain(members) {
            let place = add(&*node.rack, node.tokens.len() as u32);
            owners.extend(node.tokens.iter().map(|token| (token.0, place)));
        }
        add(newcomer.rack, newcomer.num_tokens);
        there.tokens = owners.into_iter().collect();
        there.without_tokenless()
    }

    /// Without nodes all of whose tokens another one has.
    fn without_tokenless(self) -> Self {
        let newcomer = self.nodes.len() - 1;
        let mut weights = vec![0; self.nodes.len()];
        self.tokens.iter().for_each(|(_, node)| weights[usize::from(*node)] += 1);
        weights[newcomer] = self.nodes[newcomer].weight;
        let weighed = self
            .nodes
            .iter()
            .zip(&weights)
            .map(|(node, weight)| Weighed { weight: *weight, ..*node });
        let kept: Vec<Weighed> = weighed.collect();
        Self { nodes: kept, tokens: self.tokens }.only(|node| node.weight > 0)
    }

    fn only(self, is_kept: impl Fn(&Weighed) -> bool) -> Self {
        let mut places = vec![None; self.nodes.len()];
        let mut nodes = Vec::new();
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| is_kept(node)) {
            places[place] = Some(nodes.len() as u16);
            nodes.push(*node);
        }
        let tokens = self.tokens.into_iter();
        let tokens = tokens.filter_map(|(token, node)| Some((token, places[usize::from(node)]?)));
        Self { nodes, tokens: tokens.collect() }
    }

    fn newcomer(&self) -> Weighed {
        self.nodes[self.nodes.len() - 1]
    }

    fn racks(&self) -> usize {
        self.nodes.iter().map(|node| node.rack).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// How replicas are placed. None if the newcomer replicates everything wherever its tokens are:
    /// there are no more nodes than replicas, or it is alone in a rack that has one of each key.
    pub fn rule(&self, replicas: u32) -> Option<Rule> {
        let (replicas, racks) = (replicas.max(1) as usize, self.racks());
        let own = self.newcomer().rack;
        let is_alone = self.nodes.iter().filter(|node| node.rack == own).count() == 1;
        if self.nodes.len() <= replicas || (is_alone && racks <= replicas) {
            return None;
        }
        let by_rack = racks > 1 && replicas > 1;
        let repeats = if by_rack { replicas.saturating_sub(racks) } else { 0 };
        Some(Rule { replicas, by_rack, repeats })
    }

    /// Where each rack has one replica of each key, racks are circles of their own.
    pub fn reduced(self, rule: Rule) -> (Self, Rule) {
        if !rule.by_rack || self.racks() != rule.replicas {
            return (self, rule);
        }
        let own = self.newcomer().rack;
        (self.only(|node| node.rack == own), Rule { replicas: 1, by_rack: false, repeats: 0 })
    }
}
