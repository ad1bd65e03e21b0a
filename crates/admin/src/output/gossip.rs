//! `nodetool gossipinfo`, `failuredetector`, `getseeds`.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::operator::Endpoint;

/// Of tokens no more than this is shown.
const TOKENS: &str = "TOKENS";

/// The text of `gossipinfo`.
pub(crate) fn info(endpoints: &[Endpoint], print_port: bool) -> String {
    let mut text = String::new();
    for endpoint in endpoints {
        let (generation, version) = endpoint.heartbeat;
        let address = super::address(endpoint.address, print_port);
        let _ = writeln!(text, "/{address}\n  generation:{generation}\n  heartbeat:{version}");
        for (name, version, value) in endpoint.values.iter().filter(|(name, ..)| *name != TOKENS) {
            let _ = writeln!(text, "  {name}:{version}:{value}");
        }
        match endpoint.values.iter().find(|(name, ..)| *name == TOKENS) {
            Some((_, version, _)) => _ = writeln!(text, "  TOKENS:{version}:<hidden>"),
            None => text.push_str("  TOKENS: not present\n"),
        }
    }
    text.push('\n');
    text
}

/// The text of `failuredetector`.
pub(crate) fn detector(endpoints: &[Endpoint], print_port: bool) -> String {
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
pub(crate) fn seeds(seeds: &[SocketAddr]) -> String {
    if seeds.is_empty() {
        return "Seed node list does not contain any remote node IPs\n".to_owned();
    }
    let seeds: Vec<_> = seeds.iter().map(|seed| format!("/{seed}")).collect();
    let seeds = seeds.join(" ");
    format!("Current list of seed node IPs, excluding the current node's IP: {seeds}\n")
}

/// The text of `reloadseeds`.
pub(crate) fn reloaded(seeds: Option<&[SocketAddr]>) -> String {
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
pub(crate) fn endpoints(endpoints: &[SocketAddr], print_port: bool) -> String {
    endpoints.iter().map(|node| super::address(*node, print_port) + "\n").collect()
}
