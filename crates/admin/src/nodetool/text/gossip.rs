//! `nodetool gossipinfo`, `failuredetector`, `getseeds`.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::model::{Endpoint, GossipValue};

/// Of tokens no more than this is shown.
const TOKENS: &str = "TOKENS";

/// The text of `gossipinfo`.
pub(super) fn info(endpoints: &[Endpoint], print_port: bool) -> String {
    let mut text = String::new();
    for endpoint in endpoints {
        let Endpoint { generation, version, values, .. } = endpoint;
        let address = super::address(endpoint.address, print_port);
        let _ = writeln!(text, "/{address}\n  generation:{generation}\n  heartbeat:{version}");
        for GossipValue { name, version, value } in values.iter().filter(|of| of.name != TOKENS) {
            let _ = writeln!(text, "  {name}:{version}:{value}");
        }
        match values.iter().find(|of| of.name == TOKENS) {
            Some(GossipValue { version, .. }) => _ = writeln!(text, "  TOKENS:{version}:<hidden>"),
            None => text.push_str("  TOKENS: not present\n"),
        }
    }
    text.push('\n');
    text
}

/// The text of `failuredetector`.
pub(super) fn detector(endpoints: &[Endpoint], print_port: bool) -> String {
    let mut text = format!("{:>10},{:>16}\n", "Endpoint", "Phi");
    for endpoint in endpoints {
        if let Some(phi) = endpoint.phi {
            let address = format!("/{}", super::address(endpoint.address, print_port));
            let _ = writeln!(text, "{address:>10},{phi:>16.8}");
        }
    }
    text
}

/// The text of `getseeds`.
pub(super) fn seeds(seeds: &[SocketAddr]) -> String {
    if seeds.is_empty() {
        return "Seed node list does not contain any remote node IPs\n".to_owned();
    }
    let seeds: Vec<_> = seeds.iter().map(|seed| format!("/{seed}")).collect();
    let seeds = seeds.join(" ");
    format!("Current list of seed node IPs, excluding the current node's IP: {seeds}\n")
}

/// The text of `reloadseeds`.
pub(super) fn reloaded(seeds: Option<&[SocketAddr]>) -> String {
    let Some(seeds) = seeds else {
        return "Failed to reload the seed node list.\n".to_owned();
    };
    if seeds.is_empty() {
        return "Seed node list does not contain any remote node IPs\n".to_owned();
    }
    let seeds: Vec<_> = seeds.iter().map(|seed| format!("/{seed}")).collect();
    let seeds = seeds.join(" ");
    format!("Updated seed node IP list, excluding the current node's IP: {seeds}\n")
}

/// The text of `getendpoints`.
pub(super) fn endpoints(endpoints: &[SocketAddr], print_port: bool) -> String {
    endpoints.iter().map(|node| super::address(*node, print_port) + "\n").collect()
}
