//! The forms in which repairs are asked for, and which partitions each is about.

use std::collections::{BTreeSet, VecDeque};

use types::{Token, TokenRange};

use super::Operator;
use crate::ring::member::address;
use crate::ring::repair::Kinds;
use crate::ring::repair::data::{KEYS, TABLES};
use crate::ring::repair::names::Kind;

/// A repair that a node is to be asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// Who coordinates it.
    pub by: usize,
    /// What the operator types.
    pub line: String,
    /// What it is.
    pub kind: Kind,
    /// Its forms, for who counts.
    pub forms: Vec<&'static str>,
    /// The partitions that all replicas have alike after it.
    pub covers: BTreeSet<(usize, usize)>,
}

/// The token of a partition.
fn token(key: usize) -> Token {
    Token::of(&i32::try_from(key).unwrap_or(i32::MAX).to_be_bytes())
}

impl Operator {
    fn kind(&self) -> Kind {
        match (self.rng.below(7), self.terms.kinds) {
            (0, _) => Kind::Preview,
            (_, Kinds::Full) | (1..3, Kinds::Both) => Kind::Full,
            _ => Kind::Incremental,
        }
    }

    /// A repair, or the same at each node.
    pub(super) fn orders(&self) -> VecDeque<Order> {
        let kind = self.kind();
        let (mut words, mut forms) = (String::new(), Vec::new());
        let mut add = |text: &str, form: Option<&'static str>| {
            words.push(' ');
            words.push_str(text);
            forms.extend(form);
        };
        match (kind, self.rng.below(3)) {
            (Kind::Full, _) => add("-full", None),
            (Kind::Preview, 0) => add("-prv -full", None),
            (Kind::Preview, 1) => add("-prv", None),
            (Kind::Preview, _) => add("-vd", None),
            (Kind::Incremental, _) => {}
        }
        match self.rng.below(8) {
            0 | 1 => add("-seq", Some("repair.sequential")),
            2 => add("-dcpar", None),
            3 => add("-j 2", None),
            _ => {}
        }
        if self.rng.one_in(3) {
            add("-os", Some("repair.optimised"));
        }
        // a session that was ended by force must not leave apart what deletions of the first table
        // deleted: see `mod.rs`
        let needs_second = self.terms.by_force && kind == Kind::Incremental;
        let tables = match (needs_second, self.rng.below(4)) {
            (true, _) | (_, 0) => vec![1],
            (_, 1) => vec![0],
            _ => vec![0, 1],
        };
        let names: String = tables.iter().map(|table| format!(" {}", TABLES[*table])).collect();
        let order = |by: usize, more: &str, form: Option<&'static str>, keys: Vec<usize>| {
            let covers = tables.iter().flat_map(|table| keys.iter().map(|key| (*table, *key)));
            let covers = if kind == Kind::Preview { [].into() } else { covers.collect() };
            let line = format!("repair{words}{more} ring{names}");
            let forms = forms.iter().copied().chain(form).collect();
            Order { by, line, kind, forms, covers }
        };
        let by = self.rng.below(self.members.len() as u64) as usize;
        match self.rng.below(9) {
            0 | 1 => {
                let each = |by| order(by, " -pr", Some("repair.primary"), self.primary_keys(by));
                (0..self.members.len()).map(each).collect()
            }
            2 => match self.some_range(by) {
                Some(TokenRange { left, right }) => {
                    let held = |key: &usize| TokenRange { left, right }.contains(token(*key));
                    let keys = (0..KEYS).filter(held).collect();
                    let more = format!(" -st {left} -et {right}");
                    [order(by, &more, Some("repair.subrange"), keys)].into()
                }
                None => VecDeque::new(),
            },
            3 => {
                let other = (by + 1) % self.members.len();
                let more = format!(" -hosts {} -hosts {}", address(by), address(other));
                [order(by, &more, Some("repair.of_hosts"), Vec::new())].into()
            }
            4 => [order(by, " -force", Some("repair.forced"), Vec::new())].into(),
            _ => [order(by, "", None, self.own_keys(by))].into(),
        }
    }

    /// By partition, who has it: the first replica first.
    fn replicas(&self, by: usize, key: usize) -> Vec<usize> {
        let of = || {
            let way = self.members[by].way()?;
            let ring = way.shard.peers().ring()?;
            let schema = way.shard.schema();
            let placement = ring.placement(&schema.keyspace("ring")?.replication.strategy)?;
            let natural = placement.at(token(key)).natural.iter();
            let ips = natural.map(|node| ring.node(*node).address.ip).collect::<Vec<_>>();
            let member = |ip| (0..self.members.len()).find(|node| address(*node) == ip);
            Some(ips.into_iter().filter_map(member).collect())
        };
        of().unwrap_or_default()
    }

    fn own_keys(&self, by: usize) -> Vec<usize> {
        (0..KEYS).filter(|key| self.replicas(by, *key).contains(&by)).collect()
    }

    fn primary_keys(&self, by: usize) -> Vec<usize> {
        (0..KEYS).filter(|key| self.replicas(by, *key).first() == Some(&by)).collect()
    }

    /// A range that a node has, or a part of one.
    fn some_range(&self, by: usize) -> Option<TokenRange> {
        let way = self.members[by].way()?;
        let ring = way.shard.peers().ring()?;
        let schema = way.shard.schema();
        let placement = ring.placement(&schema.keyspace("ring")?.replication.strategy)?;
        let own: Vec<TokenRange> = placement.ranges_of(ring.local()).collect();
        let range = own.get(self.rng.below(own.len().max(1) as u64) as usize).copied()?;
        let inside: Vec<Token> =
            (0..KEYS).map(token).filter(|token| range.contains(*token)).collect();
        let cut = inside.get(self.rng.below(inside.len() as u64 + 1) as usize).copied();
        Some(match cut {
            Some(cut) if self.rng.one_in(2) => TokenRange { left: range.left, right: cut },
            _ => range,
        })
    }
}
