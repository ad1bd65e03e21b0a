//! Replicas, shares and what levels need, against what Cassandra's own classes make of generated
//! rings (`conformance/ring`).

use crate::common;

use common::{address, node, numbers, simple, topology, with_down};
use protocol::Consistency;
use ring::{
    Dynamic, DynamicSettings, Placement, Proximity, ReadPlan, Ring, Scores, State, WritePlan,
};
use schema::{SpeculativeRetry, Strategy};
use types::Token;

const TEXT: &str = include_str!("../testdata/5.0.9.txt");

fn token(text: &str) -> Token {
    Token(text.parse().unwrap())
}

fn list(text: &str) -> Vec<u16> {
    let parts = text.split(',').filter(|part| *part != "-");
    parts.map(|part| part.parse().unwrap()).collect()
}

fn told(words: &[&str]) -> ring::Node {
    let [number, center, rack, state, tokens @ ..] = words else { panic!("{words:?}") };
    let tokens: Vec<i64> = tokens.iter().map(|text| token(text).0).collect();
    let mut node = node(number.parse().unwrap(), center, rack, &tokens);
    let (state, of) = state.split_once(':').unwrap_or((state, ""));
    node.state = match state {
        "normal" => State::Normal,
        "joining" => State::Joining,
        "leaving" => State::Leaving,
        "moving" => State::Moving(token(of)),
        "replacing" => State::Replacing(address(of.parse().unwrap())),
        other => panic!("{other}"),
    };
    node
}

fn strategy(words: &[&str]) -> Strategy {
    let counts: Vec<(&str, u32)> = words[1..]
        .iter()
        .map(|option| option.split_once('=').unwrap())
        .map(|(key, count)| (key, count.parse().unwrap()))
        .collect();
    match words[0] {
        "SimpleStrategy" => simple(counts[0].1),
        "NetworkTopologyStrategy" => topology(&counts),
        other => panic!("{other}"),
    }
}

/// What was read of the file so far.
#[derive(Default)]
struct Seen {
    nodes: Vec<ring::Node>,
    strategy: Option<Strategy>,
    ring: Option<Ring>,
    /// The token that is asked about, and the ring with some nodes down.
    asked: Option<(Token, Ring)>,
    scores: Scores,
    counts: std::collections::BTreeMap<&'static str, usize>,
}

impl Seen {
    fn placement(&self) -> (&Ring, &Placement) {
        let ring = self.ring.as_ref().unwrap();
        (ring, ring.placement(self.strategy.as_ref().unwrap()).unwrap())
    }

    fn line(&mut self, line: &'static str) {
        let words: Vec<&'static str> = line.split(' ').collect();
        *self.counts.entry(words[0]).or_default() += 1;
        match words[0] {
            "ring" => self.nodes.clear(),
            "node" => self.nodes.push(told(&words[1..])),
            "shares" => self.shares(&words[1..]),
            "strategy" => {
                let strategy = strategy(&words[1..]);
                self.ring = Some(Ring::new(self.nodes.clone(), [&strategy]).unwrap());
                self.strategy = Some(strategy);
            }
            "at" => self.at(&words[1..]),
            "speeds" => self.speeds(&words[1..]),
            "merge" => self.merge(&words[1..]),
            "effective" => self.effective(&words[1..]),
            "down" => {
                let ring = with_down(self.ring.as_ref().unwrap(), &list(words[2]));
                self.asked = Some((token(words[1]), ring));
            }
            "write" | "read" => {
                let ours = self.level(words[0], words[1]);
                if ours != words[2] {
                    assert!(self.blames_another(&ours, words[2]), "{words:?}, ours: {ours}");
                }
            }
            other => panic!("{other}"),
        }
    }

    fn shares(&self, words: &[&str]) {
        let ring = Ring::new(self.nodes.clone(), []).unwrap();
        let mut owned = vec![0.0; ring.nodes().len()];
        for ((_, node), share) in ring.tokens().iter().zip(words) {
            owned[node.at()] += share.parse::<f32>().unwrap();
        }
        assert_eq!(ring.tokens().len(), words.len());
        let ours: Vec<f32> =
            ring.ownership().into_iter().map(|share| share.unwrap_or(0.0)).collect();
        assert_eq!(ours, owned);
        let simple = Ring::new(self.nodes.clone(), [&simple(1)]).unwrap();
        let effective = simple.placement(&common::simple(1)).unwrap().effective_ownership();
        assert_eq!(effective, simple.ownership());
    }

    fn effective(&self, words: &[&str]) {
        let (ring, placement) = self.placement();
        let owned = placement.effective_ownership();
        assert_eq!(owned.iter().flatten().count(), words.len());
        for (number, share) in words.iter().map(|word| word.split_once('=').unwrap()) {
            let node = common::index(ring, number.parse().unwrap());
            assert_eq!(owned[node.at()], Some(share.parse().unwrap()), "{number} {words:?}");
        }
    }

    fn indexes(&self, text: &str) -> Vec<ring::NodeIndex> {
        let ring = self.ring.as_ref().unwrap();
        list(text).into_iter().map(|number| common::index(ring, number)).collect()
    }

    fn speeds(&mut self, words: &[&str]) {
        let [threshold, natural, order, speeds @ ..] = words else { panic!("{words:?}") };
        let badness_threshold = threshold.parse().unwrap();
        let settings = DynamicSettings { badness_threshold, ..DynamicSettings::default() };
        let mut dynamic = Dynamic::new(0, settings);
        for (number, millis) in speeds.iter().map(|word| word.split_once('=').unwrap()) {
            let millis: u64 = millis.parse().unwrap();
            dynamic.received(address(number.parse().unwrap()), millis * 1_000_000);
        }
        self.scores = dynamic.scores();
        let ring = self.ring.as_ref().unwrap();
        let mut nodes = self.indexes(natural);
        Proximity { by_place: true, scores: Some(&self.scores) }.sort(ring, &mut nodes);
        assert_eq!(numbers(ring, &nodes), list(order), "{words:?}");
    }

    fn merge(&self, words: &[&str]) {
        let [merged, left, right] = [0, 1, 2].map(|at| self.indexes(words[at]));
        for (scores, expected) in [(Some(&self.scores), words[3]), (None, words[4])] {
            let proximity = Proximity { by_place: true, scores };
            let ring = self.ring.as_ref().unwrap();
            let is_worth = proximity.is_worth_merging(ring, &merged, &left, &right);
            assert_eq!(is_worth.to_string(), expected, "{words:?}");
        }
    }

    fn at(&self, words: &[&str]) {
        let (ring, placement) = self.placement();
        let replicas = placement.at(token(words[0]));
        assert_eq!(numbers(ring, replicas.natural), list(words[1]), "natural {words:?}");
        let mut pending = numbers(ring, replicas.pending);
        pending.sort_unstable();
        assert_eq!(pending, list(words[2]), "pending {words:?} of {:?}", self.strategy);
    }

    /// Of several data centres that lack replicas, Cassandra blames any.
    fn blames_another(&self, ours: &str, theirs: &str) -> bool {
        let blames = |text: &str| {
            let (figures, center) = text.split_once("_in_DC_")?;
            let replicas = self.placement().1.replication_factor_in(center);
            let expected = format!("lacks:{}:0:", replicas / 2 + 1);
            figures.starts_with(&expected).then(|| center.to_owned())
        };
        match (blames(ours), blames(theirs)) {
            (Some(ours), Some(theirs)) => ours < theirs,
            _ => false,
        }
    }

    /// As the file has it.
    fn level(&self, kind: &str, level: &str) -> String {
        let (token, ring) = self.asked.as_ref().unwrap();
        let placement = ring.placement(self.strategy.as_ref().unwrap()).unwrap();
        let replicas = placement.at(*token);
        let level = Consistency::from_name(level).unwrap();
        let read = |retry| {
            let proximity = Proximity { by_place: true, scores: None };
            ReadPlan::new(ring, placement, replicas, level, retry, proximity)
        };
        let text = |nodes: &[ring::NodeIndex]| {
            let numbers: Vec<String> =
                numbers(ring, nodes).iter().map(ToString::to_string).collect();
            if numbers.is_empty() { "-".to_owned() } else { numbers.join(",") }
        };
        let outcome = match kind {
            "write" => WritePlan::new(ring, placement, replicas, level)
                .map(|plan| plan.required().to_string()),
            _ => read(SpeculativeRetry::Never).map(|plan| {
                let always = read(SpeculativeRetry::Always).unwrap();
                let [candidates, contacts, always] =
                    [plan.candidates(), plan.contacts(), always.contacts()].map(text);
                format!("{}:{candidates}:{contacts}:{always}", plan.required())
            }),
        };
        outcome.unwrap_or_else(|lack| {
            let message = lack.message.replace(' ', "_");
            format!("lacks:{}:{}:{message}", lack.required, lack.alive)
        })
    }
}

#[test]
fn as_cassandra() {
    let mut seen = Seen::default();
    TEXT.lines().for_each(|line| seen.line(line));
    let least = [("ring", 80), ("at", 3_000), ("write", 3_000), ("read", 3_000), ("merge", 500)];
    assert!(least.iter().all(|(kind, least)| seen.counts[kind] > *least), "{:?}", seen.counts);
}
