//! Tokens that nodes are given: those of Cassandra's method against what Cassandra's own classes
//! chose (`conformance/tokens`), and what holds of all of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{address, node, topology};
use proptest::prelude::*;
use ring::{
    AllocationError, Method, Newcomer, Node, Ring, State, Weighed, allocate, fair_shares,
    random_tokens,
};
use types::Token;

const TEXT: &str = include_str!("../testdata/allocation-5.0.9.txt");

/// Replays the file's rings.
#[derive(Default)]
struct Replay {
    nodes: Vec<Node>,
    name: &'static str,
    chosen: usize,
    refused: usize,
}

impl Replay {
    fn line(&mut self, line: &'static str) {
        let words: Vec<&'static str> = line.split(' ').collect();
        match words.as_slice() {
            ["ring", name] => {
                self.nodes.clear();
                self.name = name;
            }
            ["node", number, center, rack, tokens @ ..] => {
                self.join(number, center, rack, &numbers(tokens));
            }
            ["new", number, center, rack, count, replicas, rest @ ..] => {
                let newcomer = Newcomer {
                    address: address(number.parse().unwrap()),
                    data_center: center,
                    rack,
                    num_tokens: count.parse().unwrap(),
                };
                self.newcomer(&newcomer, replicas.parse().unwrap(), rest);
                if rest[0] != "!" {
                    self.join(number, center, rack, &numbers(rest));
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn join(&mut self, number: &str, center: &str, rack: &str, tokens: &[i64]) {
        self.nodes.push(node(number.parse().unwrap(), center, rack, tokens));
    }

    fn newcomer(&mut self, newcomer: &Newcomer<'_>, replicas: u32, rest: &[&str]) {
        // the first token of a ring is the only one that is left to chance
        let mut first = || rest[0].parse::<i64>().unwrap().cast_unsigned();
        let ours = allocate(&self.nodes, newcomer, replicas, Method::Cassandra, &mut first);
        let at = format!("{} {newcomer:?}", self.name);
        match (ours, rest) {
            (Err(error), ["!", "NoSuchElementException"]) => {
                assert_eq!(error, AllocationError::Exhausted, "{at}");
                self.refused += 1;
            }
            (Err(error), ["!", message @ ..]) => {
                assert_eq!(error.to_string(), message.join(" "), "{at}");
                self.refused += 1;
            }
            (Ok(ours), tokens) => {
                let mut theirs = numbers(tokens);
                theirs.sort_unstable();
                let ours: Vec<i64> = ours.into_iter().map(|token| token.0).collect();
                assert_eq!(ours, theirs, "{at}");
                self.chosen += 1;
            }
            (Err(error), _) => panic!("{at}: {error}"),
        }
    }
}

fn numbers(words: &[&str]) -> Vec<i64> {
    words.iter().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn as_cassandra() {
    let mut replay = Replay::default();
    TEXT.lines().for_each(|line| replay.line(line));
    assert!(replay.chosen > 1_500 && replay.refused > 40, "{} {}", replay.chosen, replay.refused);
}

/// 64 bits at a time (splitmix64).
fn random(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// A ring, who comes to it, and how many replicas there are.
#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<Node>,
    rack: String,
    num_tokens: u32,
    replicas: u32,
    seed: u64,
}

impl Case {
    fn newcomer(&self) -> Newcomer<'_> {
        Newcomer {
            address: address(200),
            data_center: "dc1",
            rack: &self.rack,
            num_tokens: self.num_tokens,
        }
    }

    fn allocate(&self, method: Method) -> Result<Vec<Token>, AllocationError> {
        let mut random = random(self.seed);
        allocate(&self.nodes, &self.newcomer(), self.replicas, method, &mut random)
    }

    /// How uneven it may be where chance is so: sizes are staggered for the newcomers that follow.
    fn allowed(&self, by_chance: f64) -> f64 {
        let staggered = (1.0 / f64::from(self.num_tokens)).ln_1p();
        by_chance + staggered * staggered / 12.0
    }

    /// How uneven it is with a newcomer whose tokens are drawn.
    fn by_chance(&self, seed: u64) -> f64 {
        let tokens = random_tokens(self.num_tokens, &self.taken(), &mut random(seed));
        unevenness(&self.parts(&tokens))
    }

    fn taken(&self) -> BTreeSet<Token> {
        self.nodes.iter().flat_map(|node| node.tokens.iter().copied()).collect()
    }

    /// Nodes of the newcomer's data centre with it, and what each of them has of its fair share.
    fn parts(&self, tokens: &[Token]) -> Vec<f64> {
        let own: Vec<i64> = tokens.iter().map(|token| token.0).collect();
        let mut nodes: Vec<Node> =
            self.nodes.iter().filter(|node| *node.data_center == *"dc1").cloned().collect();
        nodes.push(Node { is_local: true, ..node(200, "dc1", &self.rack, &own) });
        nodes.iter_mut().rev().skip(1).for_each(|node| node.is_local = false);
        let strategy = topology(&[("dc1", self.replicas)]);
        let ring = Ring::new(nodes, [&strategy]).unwrap();
        let mut owned = vec![0.0; ring.nodes().len()];
        for row in ring.placement(&strategy).unwrap().ranges() {
            let size = row.range.right.0.wrapping_sub(row.range.left.0).cast_unsigned() as f64;
            row.replicas.iter().for_each(|node| owned[node.at()] += size / 2_f64.powi(64));
        }
        let count = ring.nodes().len().min(self.replicas as usize) as f64;
        assert!((owned.iter().sum::<f64>() - count).abs() < 1e-9, "{owned:?}");
        let shares = shares(ring.nodes(), self.replicas);
        assert!((shares.iter().sum::<f64>() - count).abs() < 1e-9, "{shares:?}");
        owned.iter().zip(shares).map(|(owned, share)| owned / share).collect()
    }
}

fn shares(nodes: &[Node], replicas: u32) -> Vec<f64> {
    let mut racks: BTreeMap<&str, u16> = BTreeMap::new();
    let weighed = nodes.iter().map(|node| {
        let next = racks.len() as u16;
        let rack = *racks.entry(&node.rack).or_insert(next);
        Weighed { rack, weight: node.tokens.len() as u32 }
    });
    fair_shares(&weighed.collect::<Vec<_>>(), replicas)
}

/// How uneven it is: the mean square of the deviations.
fn unevenness(parts: &[f64]) -> f64 {
    let squares = parts.iter().map(|part| (part - 1.0) * (part - 1.0));
    squares.sum::<f64>() / parts.len() as f64
}

/// The mean of so many draws that none is luck.
fn mean_of_draws(draw: impl Fn(u64) -> f64) -> f64 {
    const DRAWS: u64 = 12;
    (1..=DRAWS).map(|number| draw(number << 32)).sum::<f64>() / DRAWS as f64
}

/// Rings of nodes with tokens by chance in two data centres, some of them joining, and tokens that
/// are next to each other at times.
fn cases() -> impl Strategy<Value = Case> {
    let token = prop_oneof![4 => any::<i64>(), 1 => -8..8_i64];
    let drawn = (0..4_usize, 0..4_usize, 0..8_usize, prop::collection::vec(token, 1..6));
    let nodes = prop::collection::vec(drawn, 0..16);
    (nodes, 0..5_usize, 1..20_u32, 1..5_u32, any::<u64>()).prop_map(
        |(drawn, rack, num_tokens, replicas, seed)| {
            let mut taken = BTreeSet::new();
            let nodes =
                drawn.into_iter().zip(1..).map(|((center, rack, state, tokens), number)| {
                    let tokens: Vec<i64> =
                        tokens.into_iter().filter(|t| taken.insert(*t)).collect();
                    let center = if center == 0 { "dc2" } else { "dc1" };
                    let mut node = node(number, center, &format!("r{rack}"), &tokens);
                    if state == 0 {
                        node.state = State::Joining;
                    }
                    node
                });
            let nodes: Vec<Node> = nodes.filter(|node| !node.tokens.is_empty()).collect();
            Case { nodes, rack: format!("r{rack}"), num_tokens, replicas, seed }
        },
    )
}

/// Rings of one data centre in which all are members, and have as many tokens as who comes.
fn plain_cases() -> impl Strategy<Value = Case> {
    (1..40_u16, 1..5_u16, 1..9_u32, 1..5_u32, any::<u64>()).prop_map(
        |(count, racks, num_tokens, replicas, seed)| {
            let mut random = random(seed);
            let mut nodes: Vec<Node> = Vec::new();
            for number in 1..=count {
                let taken = nodes.iter().flat_map(|node| node.tokens.iter().copied()).collect();
                let tokens = random_tokens(num_tokens, &taken, &mut random);
                let tokens: Vec<i64> = tokens.into_iter().map(|token| token.0).collect();
                nodes.push(node(number, "dc1", &format!("r{}", number % racks), &tokens));
            }
            Case { nodes, rack: "r0".to_owned(), num_tokens, replicas, seed: seed ^ 1 }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_are_the_newcomers_alone(case in cases()) {
        for method in [Method::Even, Method::Cassandra] {
            let Ok(tokens) = case.allocate(method) else {
                prop_assert_ne!(method, Method::Even, "the even method refuses nobody");
                continue;
            };
            prop_assert_eq!(tokens.len(), case.num_tokens as usize);
            prop_assert!(tokens.is_sorted_by(|one, other| one < other));
            prop_assert!(!tokens.contains(&Token::MIN));
            prop_assert!(case.taken().is_disjoint(&tokens.iter().copied().collect()));
            prop_assert_eq!(case.allocate(method), Ok(tokens.clone()));
            // a node elsewhere has the very tokens that it would choose
            let mut taken = case.clone();
            taken.nodes.push(Node { tokens, ..node(201, "dc3", "r0", &[]) });
            match taken.allocate(method) {
                Ok(tokens) => {
                    prop_assert!(taken.taken().is_disjoint(&tokens.into_iter().collect()));
                }
                // the next free one may be one of this data centre
                Err(AllocationError::Assigned { .. }) if method == Method::Cassandra => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }

    #[test]
    fn random_tokens_are_free(case in cases(), constant in any::<bool>()) {
        let taken = case.taken();
        let mut bits = random(case.seed);
        // a generator that always says the same will do, too
        let mut same = || taken.first().map_or(7, |token| token.0.cast_unsigned());
        let random: &mut dyn FnMut() -> u64 = if constant { &mut same } else { &mut bits };
        let tokens = random_tokens(case.num_tokens, &taken, random);
        prop_assert_eq!(tokens.len(), case.num_tokens as usize);
        prop_assert!(tokens.is_sorted_by(|one, other| one < other));
        prop_assert!(tokens.iter().all(|token| !taken.contains(token) && *token != Token::MIN));
    }

    #[test]
    fn the_newcomer_takes_its_share(case in plain_cases()) {
        let parts = case.parts(&case.allocate(Method::Even).unwrap());
        let own = parts[parts.len() - 1];
        prop_assert!(own <= 1.0801, "{own}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// In a ring that is as uneven as chance made it.
    #[test]
    fn chance_is_less_even(case in plain_cases()) {
        let even = unevenness(&case.parts(&case.allocate(Method::Even).unwrap()));
        let by_chance = mean_of_draws(|draw| case.by_chance(case.seed ^ draw));
        prop_assert!(even <= case.allowed(by_chance), "{even} {by_chance}");
    }

    /// In a ring that grew by the method, against rings that grew by chance.
    #[test]
    fn rings_grown_by_chance_are_less_even(case in plain_cases()) {
        let mut grown = Case { nodes: Vec::new(), ..case.clone() };
        for node in &case.nodes {
            grown.rack = node.rack.to_string();
            let tokens = grown.allocate(Method::Even).unwrap();
            grown.nodes.push(Node { tokens, ..node.clone() });
        }
        grown.rack.clone_from(&case.rack);
        let even = unevenness(&grown.parts(&grown.allocate(Method::Even).unwrap()));
        let by_chance = mean_of_draws(|draw| {
            let mut random = random(case.seed ^ draw);
            let mut other = Case { nodes: Vec::new(), ..case.clone() };
            for node in &case.nodes {
                let tokens = random_tokens(case.num_tokens, &other.taken(), &mut random);
                other.nodes.push(Node { tokens, ..node.clone() });
            }
            other.by_chance(!draw)
        });
        prop_assert!(even <= case.allowed(by_chance), "{even} {by_chance}");
    }
}

#[test]
fn what_cannot_be() {
    let newcomer =
        |num_tokens| Newcomer { address: address(1), data_center: "dc1", rack: "r1", num_tokens };
    let allocate = |num_tokens, nodes: &[Node]| {
        allocate(nodes, &newcomer(num_tokens), 3, Method::Cassandra, &mut random(1))
            .map_err(|error| error.to_string())
    };
    assert_eq!(allocate(0, &[]), Err("num_tokens must be >= 1".to_owned()));
    let many = "A maximum number of 1536 tokens per node is supported";
    assert_eq!(allocate(1537, &[]), Err(many.to_owned()));
    assert_eq!(allocate(1536, &[]).map(|tokens| tokens.len()), Ok(1536));
}
