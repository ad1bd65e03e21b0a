//! `nodetool ring` and `describering`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use super::number::{file_size, fixed};
use crate::model::{Life, Liveness, RangeReplica, Ring, RingNode, RingRanges};

const WARNING: &str = "  Warning: \"nodetool ring\" is used to output all the tokens of a node.\n  \
     To view status related info of a node use \"nodetool status\" instead.\n\n";

/// A token and its owner.
type Owned<'a> = (i64, &'a RingNode);

/// The text of `ring`: of each data center its tokens in order.
pub(super) fn print(ring: &Ring, print_port: bool) -> String {
    let mut centers: BTreeMap<&str, Vec<Owned<'_>>> = BTreeMap::new();
    for node in &ring.nodes {
        let tokens = node.tokens.iter().filter_map(|token| token.parse().ok());
        let owned = centers.entry(&node.data_center).or_default();
        owned.extend(tokens.map(|token: i64| (token, node)));
    }
    let owners = ring.nodes.iter().filter(|node| !node.tokens.is_empty());
    // the column is as wide as addresses with ports, whether they are shown or not
    let width = owners.map(|node| node.address.to_string().len()).max().unwrap_or(0);
    let mut text = "\n".to_owned();
    for (center, mut tokens) in centers {
        tokens.sort_unstable_by_key(|(token, _)| *token);
        let Some((last, _)) = tokens.last().copied() else { continue };
        let _ = writeln!(text, "Datacenter: {center}\n==========");
        let heads = ["Address", "Rack", "Status", "State", "Load", "Owns", "Token"];
        row(&mut text, width, heads);
        match tokens.len() {
            1 => text.push('\n'),
            _ => row(&mut text, width, ["", "", "", "", "", "", &last.to_string()]),
        }
        for (token, node) in tokens {
            let (address, load) = (super::address(node.address, print_port), load(node));
            let (owns, token) = (owns(node, ring.note.is_none()), token.to_string());
            let (status, state) = (status(node.liveness), state(node.life));
            row(&mut text, width, [&address, &node.rack, status, state, &load, &owns, &token]);
        }
        text.push('\n');
    }
    if ring.nodes.iter().any(|node| node.tokens.len() > 1) {
        text.push_str(WARNING);
    }
    text.push_str("\n  ");
    if let Some(note) = &ring.note {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

fn row(text: &mut String, width: usize, cells: [&str; 7]) {
    let [address, rack, status, state, load, owns, token] = cells;
    let _ = writeln!(
        text,
        "{address:<width$}  {rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}"
    );
}

fn load(node: &RingNode) -> String {
    node.load_bytes.map_or_else(|| "?".to_owned(), file_size)
}

fn owns(node: &RingNode, effective: bool) -> String {
    match node.owns_share {
        Some(share) if effective => format!("{}%", fixed(share * 100.0, 2)),
        _ => "?".to_owned(),
    }
}

fn status(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::Up => "Up",
        Liveness::Down => "Down",
        Liveness::Unknown => "?",
    }
}

fn state(life: Life) -> &'static str {
    match life {
        Life::Normal => "Normal",
        Life::Leaving => "Leaving",
        Life::Joining => "Joining",
        Life::Moving => "Moving",
    }
}

/// The text of `describering`: the ranges in the order of the ring (Cassandra's is that of a hash).
pub(super) fn ranges(of: &RingRanges, print_port: bool) -> String {
    let mut text = format!("Schema Version:{}\nTokenRange: \n", of.schema_version);
    for range in &of.ranges {
        let list = |show: &dyn Fn(&RangeReplica) -> String| {
            range.replicas.iter().map(show).collect::<Vec<_>>().join(", ")
        };
        let address = |of: SocketAddr| super::address(of, print_port);
        let (start, end) = (&range.start, &range.end);
        let _ = writeln!(
            text,
            "\tTokenRange(start_token:{start}, end_token:{end}, endpoints:[{}], rpc_endpoints:[{}], endpoint_details:[{}])",
            list(&|node| address(node.address)),
            list(&|node| address(node.native)),
            list(&|node| {
                let (host, center, rack) = (address(node.address), &node.data_center, &node.rack);
                format!("EndpointDetails(host:{host}, datacenter:{center}, rack:{rack})")
            }),
        );
    }
    text
}
