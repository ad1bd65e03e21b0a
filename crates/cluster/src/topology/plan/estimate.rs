//! How many bytes move, and for how long: estimates. A node says how many bytes it stores, and not
//! of which keyspaces; this node knows that of itself, and takes the others for alike. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::Ring;
use schema::{Keyspace, Strategy};
use streaming::{Limits, Measured};
use types::{Address, TokenRange};

use super::changes::{Flow, shares};

/// Tokens of the ring.
const TOKENS: f64 = (1u128 << 64) as f64;

/// What is known of sizes.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// This node.
    pub local: Option<Address>,
    /// Bytes that nodes store.
    pub loads: BTreeMap<Address, u64>,
    /// Bytes of each keyspace here.
    pub own: BTreeMap<String, u64>,
}

/// Bytes of keyspaces, were they whole on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Densities {
    of: BTreeMap<String, f64>,
    /// How much more each node has than that.
    factors: BTreeMap<Address, f64>,
    usual: f64,
}

impl Densities {
    pub fn new(ring: &Ring, keyspaces: &[Arc<Keyspace>], sizes: &Sizes) -> Self {
        let (mut of, mut unknown) = (BTreeMap::new(), Vec::new());
        let mut expected: BTreeMap<Address, f64> = BTreeMap::new();
        let mut own_local = 0;
        let all: Vec<_> = keyspaces
            .iter()
            .map(|keyspace| (keyspace, shares(ring, &keyspace.replication.strategy)))
            .collect();
        for (keyspace, shares) in &all {
            let here = sizes.own.get(&*keyspace.name).copied().unwrap_or(0);
            if keyspace.replication.strategy == Strategy::Local {
                own_local += here;
                continue;
            }
            let share = sizes.local.and_then(|local| shares.get(&local)).copied().unwrap_or(0.0);
            match share > 0.0 {
                true => _ = of.insert(keyspace.name.to_string(), here as f64 / share),
                false => unknown.push(keyspace.name.to_string()),
            }
        }
        let known: f64 = of.values().sum();
        // without data here all keyspaces are taken for alike
        let guess = if known > 0.0 { known / of.len() as f64 } else { 1.0 };
        if known == 0.0 {
            of.values_mut().for_each(|density| *density = guess);
        }
        of.extend(unknown.into_iter().map(|name| (name, guess)));
        for (keyspace, shares) in &all {
            let Some(density) = of.get(&*keyspace.name) else { continue };
            for (node, share) in shares {
                *expected.entry(*node).or_default() += density * share;
            }
        }
        let factor = |(node, expected): (&Address, &f64)| {
            let load = sizes.loads.get(node)?.saturating_sub(own_local) as f64;
            (*expected > 0.0).then(|| (*node, load / expected))
        };
        let factors: BTreeMap<_, _> = expected.iter().filter_map(factor).collect();
        let usual = match factors.is_empty() {
            true => f64::from(u8::from(known > 0.0)),
            false => factors.values().sum::<f64>() / factors.len() as f64,
        };
        Self { of, factors, usual }
    }

    /// Bytes of a flow, about.
    pub fn bytes(&self, flow: &Flow) -> u64 {
        let factor = self.factors.get(&flow.from).copied().unwrap_or(self.usual);
        let density = self.of.get(&flow.keyspace).copied().unwrap_or(0.0);
        (width(&flow.ranges) * density * factor) as u64
    }
}

/// What part of the ring ranges are.
pub(super) fn width(ranges: &[TokenRange]) -> f64 {
    let of =
        |range: TokenRange| (i128::from(range.end()) - i128::from(range.left.0)) as f64 / TOKENS;
    ranges.iter().flat_map(|range| range.unwrap()).map(of).sum()
}

/// What a time is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bytes a second that this node sent or received the last time.
    Measured(u64),
    /// The limit of what a node sends, in bytes a second.
    Limit(u64),
    /// There is no limit, and nothing was measured.
    Unknown,
}

/// How fast files go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub limits: Limits,
    pub measured: Measured,
    /// Do some go to another data centre?
    pub is_far: bool,
}

impl Rates {
    /// How fast a node sends. What is measured cannot be faster than the limit of now.
    pub fn of_sender(&self) -> Rate {
        let Limits { parts, far_parts, .. } = self.limits;
        let limits = [parts, if self.is_far { far_parts } else { 0 }];
        let limit = limits.into_iter().filter(|limit| *limit > 0).min();
        match (self.measured.sent.or(self.measured.received), limit) {
            (Some(measured), Some(limit)) if measured > limit => Rate::Limit(limit),
            (Some(measured), _) => Rate::Measured(measured),
            (None, Some(limit)) => Rate::Limit(limit),
            (None, None) => Rate::Unknown,
        }
    }

    /// Seconds of flows that go at the same time: those of the node that has the most to send, or
    /// to receive.
    pub fn seconds(&self, flows: &[(Address, Address, u64)]) -> Option<f64> {
        let most = |of: &dyn Fn(&(Address, Address, u64)) -> Address| {
            let mut sums: BTreeMap<Address, u64> = BTreeMap::new();
            for flow in flows {
                *sums.entry(of(flow)).or_default() += flow.2;
            }
            sums.into_values().max().unwrap_or(0)
        };
        let (sent, received) = (most(&|flow| flow.0), most(&|flow| flow.1));
        let of_sent = match self.of_sender() {
            _ if flows.iter().all(|flow| flow.2 == 0) => return Some(0.0),
            Rate::Measured(rate) | Rate::Limit(rate) => sent as f64 / rate as f64,
            Rate::Unknown => return None,
        };
        let of_received = self.measured.received.map_or(0.0, |rate| received as f64 / rate as f64);
        Some(of_sent.max(of_received))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Token;

    fn address(number: u8) -> Address {
        Address::new([10, 0, 0, number], 7000)
    }

    #[test]
    fn widths_add_up() {
        let range = |left, right| TokenRange { left: Token(left), right: Token(right) };
        assert_eq!(width(&[TokenRange::ALL]), 1.0);
        assert_eq!(width(&[range(0, 1 << 62), range(1 << 62, i64::MIN)]), 0.5);
        assert_eq!(width(&[range(1 << 62, -1 << 62)]), 0.5, "over the end");
    }

    #[test]
    fn time_is_that_of_the_busiest_node() {
        let mut rates = Rates {
            limits: Limits { parts: 10, far_parts: 4, whole: 0, far_whole: 0 },
            measured: Measured::default(),
            is_far: false,
        };
        let [one, two, three] = [1, 2, 3].map(address);
        let flows = [(one, three, 100), (two, three, 300)];
        assert_eq!((rates.of_sender(), rates.seconds(&flows)), (Rate::Limit(10), Some(30.0)));
        rates.is_far = true;
        assert_eq!(rates.seconds(&flows), Some(75.0));
        rates.measured = Measured { received: Some(2), sent: None };
        assert_eq!((rates.of_sender(), rates.seconds(&flows)), (Rate::Measured(2), Some(200.0)));
        rates.measured = Measured { received: None, sent: Some(100) };
        assert_eq!(rates.of_sender(), Rate::Limit(4), "the limit was lowered since");
        rates.measured = Measured::default();
        rates.limits = Limits::default();
        assert_eq!((rates.of_sender(), rates.seconds(&flows)), (Rate::Unknown, None));
        assert_eq!(rates.seconds(&[]), Some(0.0));
    }
}
