//! Rings that grow node by node.

use ring::{Method, Newcomer, Node, State, allocate, random_tokens};
use types::{Address, Token, Uuid};

use crate::REPLICAS;

/// `num_tokens`, and the nodes that a ring ends with. With 256 tokens it ends early: replicas of
/// 77,000 ranges at each of 300 sizes are a matter of hours to no purpose, for all ways are even.
pub const SIZES: [(u32, usize); 6] = [(1, 300), (3, 300), (4, 300), (8, 300), (16, 300), (256, 60)];
/// Where chance begins.
const SEED: u64 = 7;

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By chance.
    Random,
    /// By Cassandra's own classes.
    Cassandra,
    /// By [`Method::Even`].
    Even,
}

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// `num_tokens` of each node.
    pub tokens: u32,
    /// Racks, which nodes come to in turn.
    pub racks: usize,
    /// Nodes at the end.
    pub nodes: usize,
    /// How tokens are chosen.
    pub way: Way,
}

impl Growth {
    /// Grows it: the nodes in the order in which they come.
    pub fn grow(&self) -> Vec<Node> {
        let mut random = random(SEED);
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes);
        for number in 1..=self.nodes {
            let rack = format!("r{}", 1 + (number - 1) % self.racks);
            let tokens = match self.way {
                Way::Random => {
                    let taken = nodes.iter().flat_map(|node| node.tokens.iter().copied()).collect();
                    random_tokens(self.tokens, &taken, &mut random)
                }
                Way::Cassandra => {
                    allocated(&nodes, number, &rack, self, Method::Cassandra, &mut random)
                }
                Way::Even => allocated(&nodes, number, &rack, self, Method::Even, &mut random),
            };
            nodes.push(node(number, &rack, tokens));
        }
        nodes
    }
}

fn allocated(
    nodes: &[Node],
    number: usize,
    rack: &str,
    growth: &Growth,
    method: Method,
    random: &mut dyn FnMut() -> u64,
) -> Vec<Token> {
    let newcomer =
        Newcomer { address: address(number), data_center: "dc1", rack, num_tokens: growth.tokens };
    let tokens = allocate(nodes, &newcomer, REPLICAS, method, random);
    tokens.unwrap_or_else(|error| panic!("node {number} of {growth:?}: {error}"))
}

/// Nodes as `conformance/tokens` prints them.
pub fn parse(text: &str) -> Vec<Node> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("new "));
    let nodes = lines.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [number, _, rack, _, _, tokens @ ..] = words.as_slice() else { panic!("{line}") };
        let tokens = tokens.iter().map(|token| Token(token.parse().unwrap()));
        node(number.parse().unwrap(), rack, tokens.collect())
    });
    nodes.collect()
}

/// Nodes of Cassandra's rings that get other tokens from [`Method::Cassandra`].
pub fn differences(text: &str) -> usize {
    let theirs = parse(text);
    let racks: std::collections::BTreeSet<&str> = theirs.iter().map(|node| &*node.rack).collect();
    let growth = Growth {
        tokens: theirs[0].tokens.len() as u32,
        racks: racks.len(),
        nodes: theirs.len(),
        way: Way::Cassandra,
    };
    // the very first token is the only one that is left to chance
    let first = theirs[0].tokens[0].0.cast_unsigned();
    let is_same = |at: usize| {
        let (rack, mut random) = (&*theirs[at].rack, || first);
        let nodes = &theirs[..at];
        let ours = allocated(nodes, at + 1, rack, &growth, Method::Cassandra, &mut random);
        let mut tokens = theirs[at].tokens.clone();
        tokens.sort_unstable();
        ours == tokens
    };
    (0..theirs.len()).filter(|at| !is_same(*at)).count()
}

/// The address of a node.
pub fn address(number: usize) -> Address {
    let [high, low] = (number as u16).to_be_bytes();
    Address::new([127, 0, high, low], 7000)
}

fn node(number: usize, rack: &str, tokens: Vec<Token>) -> Node {
    Node {
        address: address(number),
        host_id: Uuid(number as u128),
        data_center: "dc1".into(),
        rack: rack.into(),
        tokens,
        state: State::Normal,
        is_up: true,
        is_local: number == 1,
        accepts_clients: true,
    }
}

/// 64 bits at a time (splitmix64).
pub fn random(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
