//! How long a newcomer to a large ring takes to choose.

use std::time::{Duration, Instant};

use ring::{Method, Newcomer, allocate};

use crate::REPLICAS;
use crate::grown::{Growth, Way, address, random};

const NODES: usize = 1_000;
const TOKENS: u32 = 16;
/// Seconds that it takes at most.
const LIMIT: Duration = Duration::from_secs(5);

/// Prints it for rings of some numbers of racks, and says whether all are within the limit.
pub fn measure() -> bool {
    println!("\na newcomer with {TOKENS} tokens to {NODES} nodes with as many, by chance");
    let mut holds = true;
    // most of five racks but two, in which a walk round the ring goes far for a replica
    for (racks, alone) in [(1, 0), (3, 0), (5, 0), (2, 2)] {
        let growth = Growth { tokens: TOKENS, racks, nodes: NODES, way: Way::Random };
        let mut nodes = growth.grow();
        for (number, node) in nodes.iter_mut().take(alone).enumerate() {
            node.rack = format!("alone{number}").as_str().into();
        }
        for method in [Method::Cassandra, Method::Even] {
            let newcomer = Newcomer {
                address: address(NODES + 1),
                data_center: "dc1",
                rack: "r1",
                num_tokens: TOKENS,
            };
            let start = Instant::now();
            let tokens = allocate(&nodes, &newcomer, REPLICAS, method, &mut random(1));
            let took = start.elapsed();
            let is_well = tokens.is_ok() && took <= LIMIT;
            holds &= is_well;
            println!(
                "{} {} racks, {method:?}: {:.2} s, at most {} s",
                if is_well { "holds:   " } else { "FAILS:   " },
                racks + alone,
                took.as_secs_f64(),
                LIMIT.as_secs(),
            );
        }
    }
    holds
}
