//! What the tests share.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;

use ring::{Node, NodeIndex, Ring, State};
use schema::{Replication, Strategy};
use types::{Address, Token, Uuid};

/// Address of the node of a number.
pub fn address(number: u16) -> Address {
    let [high, low] = number.to_be_bytes();
    Address::new([127, 0, high, low], 7000)
}

/// A node that is up; 1 is this one.
pub fn node(number: u16, center: &str, rack: &str, tokens: &[i64]) -> Node {
    Node {
        address: address(number),
        host_id: Uuid(number.into()),
        data_center: center.into(),
        rack: rack.into(),
        tokens: tokens.iter().map(|token| Token(*token)).collect(),
        state: State::Normal,
        is_up: true,
        is_local: number == 1,
        accepts_clients: true,
    }
}

/// The number of a node.
pub fn number(ring: &Ring, node: NodeIndex) -> u16 {
    match ring.node(node).address.ip {
        std::net::IpAddr::V4(four) => {
            let [_, _, high, low] = four.octets();
            u16::from_be_bytes([high, low])
        }
        std::net::IpAddr::V6(_) => 0,
    }
}

/// The numbers of nodes.
pub fn numbers(ring: &Ring, nodes: &[NodeIndex]) -> Vec<u16> {
    nodes.iter().map(|node| number(ring, *node)).collect()
}

/// The node of a number.
pub fn index(ring: &Ring, number: u16) -> NodeIndex {
    ring.find(address(number)).unwrap()
}

/// `SimpleStrategy`.
pub fn simple(replicas: u32) -> Strategy {
    Replication::simple(replicas).strategy
}

/// `NetworkTopologyStrategy`.
pub fn topology(counts: &[(&str, u32)]) -> Strategy {
    let options: BTreeMap<String, String> =
        counts.iter().map(|(dc, count)| ((*dc).to_owned(), count.to_string())).collect();
    Replication::new("org.apache.cassandra.locator.NetworkTopologyStrategy", options).strategy
}

/// The same ring with these nodes down.
pub fn with_down(ring: &Ring, down: &[u16]) -> Ring {
    let mut nodes = ring.nodes().to_vec();
    for node in &mut nodes {
        node.is_up = !down.iter().any(|number| node.address == address(*number));
    }
    ring.with_nodes(nodes).unwrap()
}
