//! `tokens FOLDER`: grows rings node by node, each with every way of choosing tokens, and prints
//! how evenly the nodes replicate. Exits with 1 if what must hold does not.
//!
//! FOLDER has the rings that Cassandra's own classes grew, as `conformance/tokens` prints them:
//! `TOKENS-RACKS.txt`. Where there is none, there is no row of Cassandra's. Figures of both are
//! computed here, from replicas as `ring::Placement` has them.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tooling outside the node; the door is for the node's own crates"
)]

mod bound;
mod demands;
mod figures;
mod grown;
mod large;
mod table;

use std::process::ExitCode;

use demands::Demands;
use grown::{Growth, Way};

/// Replicas of each key.
const REPLICAS: u32 = 3;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("tokens FOLDER");
        return ExitCode::FAILURE;
    };
    let mut demands = Demands::default();
    for racks in [1, 3] {
        table::print_head(racks);
        for (tokens, nodes) in grown::SIZES {
            let cassandra = std::fs::read_to_string(format!("{folder}/{tokens}-{racks}.txt"));
            for way in [Way::Random, Way::Cassandra, Way::Even] {
                let growth = Growth { tokens, racks, nodes, way };
                let rings = match way {
                    Way::Cassandra => match &cassandra {
                        Ok(text) => grown::parse(text),
                        Err(_) => continue,
                    },
                    _ => growth.grow(),
                };
                let figures = figures::measure(&rings);
                table::print_row(&growth, &figures);
                demands.add(growth, figures);
            }
            if let Ok(text) = &cassandra {
                demands.same(tokens, racks, grown::differences(text));
            }
        }
    }
    let (is_even, is_fast) = (demands.print(), large::measure());
    if is_even && is_fast { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
