//! What holds of a circle, however it came about.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use schema::Replication;
use types::{Address, Token, Uuid};

use super::circle::{Change, Circle, Rule, WHOLE};
use crate::node::{Node, State};
use crate::ring::Ring;

/// Nodes by their racks, their tokens, and tokens that the last node gets and loses again.
#[derive(Clone, Debug)]
struct Case {
    replicas: usize,
    racks: Vec<u16>,
    tokens: Vec<(i64, u16)>,
    steps: Vec<(i64, bool)>,
}

impl Case {
    fn rule(&self) -> Rule {
        let racks = self.racks.iter().collect::<BTreeSet<_>>().len();
        let by_rack = racks > 1 && self.replicas > 1;
        let repeats = if by_rack { self.replicas.saturating_sub(racks) } else { 0 };
        Rule { replicas: self.replicas, by_rack, repeats }
    }

    fn newcomer(&self) -> u16 {
        self.racks.len() as u16 - 1
    }

    fn circle(&self, tokens: &BTreeMap<i64, u16>) -> Circle {
        let tokens: Vec<_> = tokens.iter().map(|(token, node)| (*token, *node)).collect();
        Circle::new(self.rule(), self.racks.clone(), &tokens)
    }

    /// What each node replicates by the tables of a ring.
    fn by_placement(&self, tokens: &BTreeMap<i64, u16>) -> Vec<u128> {
        let nodes: Vec<Node> = (0..self.racks.len()).map(|at| self.node(at, tokens)).collect();
        let options = BTreeMap::from([("dc1".to_owned(), self.replicas.to_string())]);
        let class = "org.apache.cassandra.locator.NetworkTopologyStrategy";
        let strategy = Replication::new(class, options).strategy;
        let ring = Ring::new(nodes, [&strategy]).unwrap();
        let mut owned = vec![0; self.racks.len()];
        for row in ring.placement(&strategy).unwrap().ranges() {
            let size = row.range.right.0.wrapping_sub(row.range.left.0).cast_unsigned();
            row.replicas.iter().for_each(|node| owned[node.at()] += u128::from(size));
        }
        owned
    }

    fn node(&self, at: usize, tokens: &BTreeMap<i64, u16>) -> Node {
        let own = tokens.iter().filter(|(_, node)| usize::from(**node) == at);
        Node {
            address: Address::new([127, 0, 0, at as u8 + 1], 7000),
            host_id: Uuid(at as u128),
            data_center: "dc1".into(),
            rack: self.racks[at].to_string().into(),
            tokens: own.map(|(token, _)| Token(*token)).collect(),
            state: State::Normal,
            is_up: true,
            is_local: at == 0,
            accepts_clients: true,
        }
    }
}

/// Rings of more nodes than replicas, the newcomer not counted, which is in a rack that others are
/// in. Tokens are small numbers at times, so that ranges of all sizes come about.
fn cases() -> impl Strategy<Value = Case> {
    let token = prop_oneof![any::<i64>(), -40..40_i64];
    let owned = prop::collection::vec((0..4_u16, prop::collection::vec(token.clone(), 1..5)), 4..9);
    let steps = prop::collection::vec((token, any::<bool>()), 1..12);
    (1..4_usize, owned, steps).prop_map(|(replicas, owned, steps)| {
        let mut racks: Vec<u16> = owned.iter().map(|(rack, _)| *rack).collect();
        let mut tokens: BTreeMap<i64, u16> = BTreeMap::new();
        for (node, (_, own)) in owned.iter().enumerate() {
            for token in own {
                tokens.entry(*token).or_insert(node as u16);
            }
            // each has one at least that nobody else has
            tokens.insert(i64::MAX - node as i64, node as u16);
        }
        racks.push(racks[0]);
        let tokens = tokens.into_iter().collect();
        Case { replicas, racks, tokens, steps }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_is_what_is_computed_anew(case in cases()) {
        let mut tokens: BTreeMap<i64, u16> = case.tokens.iter().copied().collect();
        let mut circle = case.circle(&tokens);
        for (token, comes) in &case.steps {
            let own: Vec<i64> =
                tokens.iter().filter(|(_, n)| **n == case.newcomer()).map(|(t, _)| *t).collect();
            if *comes && !tokens.contains_key(token) {
                tokens.insert(*token, case.newcomer());
                circle.insert(*token, case.newcomer());
            } else if let Some(last) = own.last() {
                tokens.remove(last);
                circle.remove(circle.range_of(*last));
            }
            let anew = case.circle(&tokens);
            prop_assert!(circle.is_same_as(&anew), "{tokens:?}");
            prop_assert_eq!(circle.owned(), case.by_placement(&tokens));
            let whole: u128 = circle.owned().iter().sum();
            prop_assert_eq!(whole, case.replicas as u128 * WHOLE);
        }
    }

    #[test]
    fn what_a_token_would_change_it_changes(case in cases()) {
        let mut circle = case.circle(&case.tokens.iter().copied().collect());
        let newcomer = usize::from(case.newcomer());
        for (token, _) in &case.steps {
            let range = circle.range_of(*token);
            if circle.end(range) == *token {
                continue;
            }
            let way = token.wrapping_sub(circle.start(range)).cast_unsigned() as f64;
            let mut change = Change::default();
            circle.change(range, case.newcomer(), &mut change);
            let mut expected: Vec<f64> = circle.owned().iter().map(|owned| *owned as f64).collect();
            for (node, loss) in &change.losses {
                expected[usize::from(*node)] -= loss;
            }
            expected[newcomer] += change.gain;
            if let Some(loser) = change.sliding {
                expected[usize::from(loser)] -= way;
                expected[newcomer] += way;
            }
            circle.insert(*token, case.newcomer());
            for (owned, expected) in circle.owned().iter().zip(expected) {
                let difference = (*owned as f64 - expected).abs() / WHOLE as f64;
                prop_assert!(difference < 1e-12, "{difference} {change:?}");
            }
        }
    }
}
