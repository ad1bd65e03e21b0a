//! Tokens that nodes are given, against those that Cassandra's own classes choose
//! (`conformance/tokens`).

use crate::common::{self, address, node};
use ring::{Method, Newcomer, Node, allocate};

const TEXT: &str = include_str!("../testdata/allocation-5.0.9.txt");

/// Replays the file's rings.
#[derive(Default)]
struct Replay {
    nodes: Vec<Node>,
    name: &'static str,
    exact: usize,
    near: usize,
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
        // the first token of a ring is the only one that chance decides
        let mut first = || rest[0].parse::<i64>().unwrap().cast_unsigned();
        let ours = allocate(&self.nodes, newcomer, replicas, Method::Cassandra, &mut first);
        let at = format!("{} {newcomer:?}", self.name);
        match (ours, rest) {
            (Err(error), ["!", message @ ..]) => {
                let exhausted = ring::AllocationError::Exhausted;
                let is_same = match message {
                    ["NoSuchElementException"] => error == exhausted,
                    words => error.to_string() == words.join(" "),
                };
                assert!(is_same, "{at}: {error}");
                self.refused += 1;
            }
            (Ok(ours), tokens) => {
                let mut theirs = numbers(tokens);
                theirs.sort_unstable();
                let ours: Vec<i64> = ours.into_iter().map(|token| token.0).collect();
                let d: i64 = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).max().unwrap();
                if d == 0 {
                    self.exact += 1
                } else {
                    self.near += 1;
                    println!("{at} {d} n={}", self.nodes.len());
                }
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
    panic!("{} {} {}", replay.exact, replay.near, replay.refused);
}
