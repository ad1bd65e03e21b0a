//! From tokens to replicas under one replication setting.
//!
//! It has replicas (`walk.rs`) and pending replicas (`pending.rs`) in a table. A lookup is a binary
//! search and a slice.

use std::sync::Arc;

use protocol::Consistency;
use schema::Strategy;
use types::Token;

use crate::layout::{CenterIndex, Layout};
use crate::node::NodeIndex;
use crate::pending::{self, Pending};
use crate::walk::{Rule, Walk};

/// Replicas of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas<'a> {
    /// Those that have it, in the order in which the strategy finds them: the first one is the
    /// primary one.
    pub natural: &'a [NodeIndex],
    /// Those that are about to have it, and behind them those that had it until just now: writes go
    /// to both.
    pub pending: &'a [NodeIndex],
    /// Those that had it until just now: whoever has not heard of it reads there.
    pub former: &'a [NodeIndex],
}

impl<'a> Replicas<'a> {
    /// Those that are about to have it.
    pub fn gaining(&self) -> &'a [NodeIndex] {
        &self.pending[..self.pending.len() - self.former.len()]
    }
}

/// A data centre that the setting names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Center {
    pub name: Arc<str>,
    /// None if it has no nodes.
    pub index: Option<CenterIndex>,
    /// Replicas that it is to have.
    pub replicas: u32,
}

/// Where the replicas of each token are.
#[derive(Debug)]
pub struct Placement {
    pub(crate) layout: Arc<Layout>,
    /// Replicas in all, as set: what a quorum is counted from, however many nodes there are.
    pub(crate) replicas: u32,
    /// By name, of a strategy that knows of data centres.
    pub(crate) centers: Option<Vec<Center>>,
    /// Is each node for itself?
    pub(crate) is_local: bool,
    /// Where ranges end, in order; each begins after the one before.
    ends: Vec<Token>,
    /// Where in `nodes` natural, pending and former replicas of each range begin; one more says
    /// where all ends.
    starts: Vec<[u32; 3]>,
    nodes: Vec<NodeIndex>,
}

impl Placement {
    /// None of a strategy that is not served.
    pub(crate) fn new(layout: &Arc<Layout>, strategy: &Strategy) -> Option<Self> {
        let mut placement = Self {
            layout: Arc::clone(layout),
            replicas: 1,
            centers: None,
            is_local: false,
            ends: Vec::new(),
            starts: Vec::new(),
            nodes: Vec::new(),
        };
        match strategy {
            Strategy::Local => {
                placement.is_local = true;
                placement.add(Token::MIN, &[layout.local], &[], &[]);
            }
            Strategy::Simple(count) => {
                placement.replicas = count.all;
                placement.fill(strategy);
            }
            Strategy::NetworkTopology(counts) => {
                let centers: Vec<Center> = counts
                    .iter()
                    .map(|(name, count)| Center {
                        name: name.as_str().into(),
                        index: layout.center(name),
                        replicas: count.all,
                    })
                    .collect();
                placement.replicas = counts.values().map(|count| count.all).sum();
                placement.fill(strategy);
                placement.centers = Some(centers);
            }
            Strategy::Everywhere | Strategy::Meta | Strategy::Custom => return None,
        }
        placement.starts.push([placement.nodes.len() as u32; 3]);
        Some(placement)
    }

    fn fill(&mut self, strategy: &Strategy) {
        let layout = Arc::clone(&self.layout);
        let Some(rule) = Rule::of(strategy, &layout) else { return };
        let ends = pending::ends(&layout);
        if layout.owners.tokens.is_empty() && layout.joining.is_empty() {
            return;
        }
        match Pending::new(&layout, (strategy, &rule), &ends) {
            Some(pending) => {
                pending.each(&ends, |end, natural, pending, former| {
                    self.add(end, natural, pending, former);
                });
            }
            None => {
                let mut walk = Walk::new(&layout, &layout.owners, &rule);
                let mut natural = Vec::new();
                for end in ends {
                    natural.clear();
                    walk.replicas(end, &mut natural);
                    self.add(end, &natural, &[], &[]);
                }
            }
        }
    }

    fn add(
        &mut self,
        end: Token,
        natural: &[NodeIndex],
        pending: &[NodeIndex],
        former: &[NodeIndex],
    ) {
        let start = self.nodes.len();
        let behind = start + natural.len();
        self.ends.push(end);
        self.starts.push([start, behind, behind + pending.len()].map(|place| place as u32));
        for replicas in [natural, pending, former] {
            self.nodes.extend_from_slice(replicas);
        }
    }

    /// Replicas of a token.
    #[inline]
    pub fn at(&self, token: Token) -> Replicas<'_> {
        let place = self.ends.partition_point(|end| *end < token);
        self.range(if place == self.ends.len() { 0 } else { place })
    }

    fn range(&self, place: usize) -> Replicas<'_> {
        let (Some(starts), Some([end, ..])) = (self.starts.get(place), self.starts.get(place + 1))
        else {
            return Replicas { natural: &[], pending: &[], former: &[] };
        };
        let ([natural, pending, former], end) = (starts.map(|place| place as usize), *end as usize);
        Replicas {
            natural: &self.nodes[natural..pending],
            pending: &self.nodes[pending..end],
            former: &self.nodes[former..end],
        }
    }

    /// Ranges within which neither kind of replica changes, by their ends.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Token, Token, Replicas<'_>)> {
        let last = self.ends.last().copied().unwrap_or(Token::MIN);
        let befores = std::iter::once(last).chain(self.ends.iter().copied());
        let ranges = befores.zip(&self.ends).enumerate();
        ranges.map(|(place, (before, end))| (before, *end, self.range(place)))
    }

    /// Is each node for itself?
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// Replicas as set: in all.
    pub fn replication_factor(&self) -> u32 {
        self.replicas
    }

    /// Replicas as set in a data centre; in all if the strategy does not know of data centres.
    pub fn replication_factor_in(&self, data_center: &str) -> u32 {
        let Some(centers) = &self.centers else { return self.replicas };
        centers.iter().find(|c| *c.name == *data_center).map_or(0, |center| center.replicas)
    }

    fn local_quorum(&self) -> u32 {
        let here = &self.layout.centers[usize::from(self.layout.local_center().0)];
        quorum(self.replication_factor_in(here))
    }

    /// How many replicas a level waits for where nothing is under way
    /// (`ConsistencyLevel.blockFor`).
    pub fn block_for(&self, level: Consistency) -> u32 {
        match level {
            Consistency::Any
            | Consistency::One
            | Consistency::LocalOne
            | Consistency::NodeLocal => 1,
            Consistency::Two => 2,
            Consistency::Three => 3,
            Consistency::Quorum | Consistency::Serial => quorum(self.replicas),
            Consistency::All => self.replicas,
            Consistency::LocalQuorum | Consistency::LocalSerial => self.local_quorum(),
            Consistency::EachQuorum => match &self.centers {
                Some(centers) => centers.iter().map(|center| quorum(center.replicas)).sum(),
                None => quorum(self.replicas),
            },
        }
    }

    /// How many a write waits for: whoever is about to be a replica adds to it
    /// (`ConsistencyLevel.blockForWrite`).
    pub fn block_for_write(&self, level: Consistency, pending: &[NodeIndex]) -> u32 {
        let here = self.layout.local_center();
        let more = match level {
            Consistency::Any | Consistency::NodeLocal => 0,
            level if level.is_local() => {
                pending.iter().filter(|node| self.layout.place(**node).center == here).count()
            }
            _ => pending.len(),
        };
        self.block_for(level) + more as u32
    }
}

/// More than half.
pub(crate) fn quorum(replicas: u32) -> u32 {
    replicas / 2 + 1
}
