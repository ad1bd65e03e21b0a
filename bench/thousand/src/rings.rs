//! What it costs to compute the ring, and to choose tokens in it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Instant;

use ring::{Method, Newcomer, Node, Ring, State, allocate, random_tokens};
use schema::{Replication, Strategy};
use types::Uuid;

use crate::{address, random, resident};

const REPLICAS: u32 = 3;
const RACKS: usize = 3;
const SEED: u64 = 7;
/// `num_tokens` of the rings.
const TOKENS: [u32; 3] = [1, 16, 256];
/// How often something short is done to be measured.
const TIMES: u32 = 10;

/// Prints it.
pub fn measure(count: usize) {
    println!("the ring of {count} nodes in {RACKS} racks, {REPLICAS} replicas, on each node");
    for tokens in TOKENS {
        // in a process of its own, whose memory is that of this ring
        let program = std::env::current_exe().expect("this program has a path");
        let words = [count.to_string(), tokens.to_string()];
        let done = Command::new(program).args(words).status();
        assert!(done.is_ok_and(|status| status.success()), "a ring of {tokens} tokens each");
    }
    for method in [Method::Even, Method::Cassandra] {
        let newcomer = Newcomer {
            address: address(count + 1),
            data_center: "dc1",
            rack: "rack1",
            num_tokens: 16,
        };
        let (nodes, begin) = (nodes(count, 16), Instant::now());
        let tokens = allocate(&nodes, &newcomer, REPLICAS, method, &mut random(SEED));
        let took = begin.elapsed().as_secs_f64();
        assert!(tokens.is_ok(), "{method:?} finds tokens");
        println!("  a newcomer chooses 16 tokens, {method:?}: {took:.2} s");
    }
}

/// Prints what the ring of so many tokens a node costs.
pub fn one(count: usize, tokens: u32) {
    let nodes = nodes(count, tokens);
    let strategy = strategy();
    let (before, begin) = (resident(), Instant::now());
    let Ok(ring) = Ring::new(nodes.clone(), [&strategy]) else { panic!("no ring") };
    let (made, memory) = (begin.elapsed(), resident().saturating_sub(before));
    let mut changed = nodes.clone();
    if let Some(node) = changed.get_mut(1) {
        node.is_up = false;
    }
    let begin = Instant::now();
    for _ in 0..TIMES {
        let down = ring.with_nodes(changed.clone());
        std::hint::black_box(down.is_ok());
    }
    let down = begin.elapsed() / TIMES;
    println!(
        "  {tokens:>3} tokens: {:>7.1} ms to compute, {:>5.2} ms when a node goes down, {:>6.1} MB",
        made.as_secs_f64() * 1000.0,
        down.as_secs_f64() * 1000.0,
        memory as f64 / 1e6
    );
}

fn strategy() -> Strategy {
    let options = BTreeMap::from([("dc1".to_owned(), REPLICAS.to_string())]);
    Replication::new("org.apache.cassandra.locator.NetworkTopologyStrategy", options).strategy
}

fn nodes(count: usize, tokens: u32) -> Vec<Node> {
    let (mut random, mut taken) = (random(SEED), BTreeSet::new());
    let node = |number: usize| {
        let tokens = random_tokens(tokens, &taken, &mut random);
        taken.extend(tokens.iter().copied());
        Node {
            address: address(number),
            host_id: Uuid(number as u128),
            data_center: "dc1".into(),
            rack: format!("rack{}", number % RACKS).as_str().into(),
            tokens,
            state: State::Normal,
            is_up: true,
            is_local: number == 1,
            accepts_clients: true,
        }
    };
    (1..=count).map(node).collect()
}
