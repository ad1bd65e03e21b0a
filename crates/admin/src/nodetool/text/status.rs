//! `nodetool status`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::columns::{Columns, widest};
use super::number::file_size;
use crate::model::{Life, Liveness, Ring, RingNode};

/// The text of `status`: a table for each data center, all with the same widths.
pub(super) fn print(ring: &Ring, print_port: bool) -> String {
    let mut centers: BTreeMap<&str, Vec<&RingNode>> = BTreeMap::new();
    for node in &ring.nodes {
        centers.entry(&node.data_center).or_default().push(node);
    }
    // As Cassandra decides whether there is one token a node: by comparing with data centers.
    let tokens: usize = ring.nodes.iter().map(|node| node.tokens.len()).sum();
    let many_tokens = centers.len() < tokens;
    let effective = ring.note.is_none();
    let tables: Vec<(&str, Columns)> = centers
        .into_iter()
        .map(|(center, nodes)| {
            let mut columns = Columns::default();
            header(&mut columns, many_tokens, effective);
            for node in nodes {
                row(&mut columns, node, many_tokens, effective, print_port);
            }
            (center, columns)
        })
        .collect();
    let widths = tables.iter().fold(Vec::new(), |all, (_, table)| widest(&all, &table.widths()));
    let mut text = String::new();
    for (n, (center, table)) in tables.iter().enumerate() {
        if n > 0 {
            text.push('\n');
        }
        let title = format!("Datacenter: {center}");
        let underline = "=".repeat(title.chars().count());
        let _ = writeln!(text, "{title}\n{underline}\nStatus=Up/Down");
        text.push_str("|/ State=Normal/Leaving/Joining/Moving\n");
        text.push_str(&table.text(&widths, "  "));
    }
    text.push('\n');
    if let Some(note) = &ring.note {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

fn header(columns: &mut Columns, many_tokens: bool, effective: bool) {
    let owns = if effective { "Owns (effective)" } else { "Owns" };
    if many_tokens {
        columns.row(["--", "Address", "Load", "Tokens", owns, "Host ID", "Rack"]);
    } else {
        columns.row(["--", "Address", "Load", owns, "Host ID", "Token", "Rack"]);
    }
}

fn row(columns: &mut Columns, node: &RingNode, many_tokens: bool, effective: bool, port: bool) {
    let liveness = match node.liveness {
        Liveness::Up => 'U',
        Liveness::Down => 'D',
        Liveness::Unknown => '?',
    };
    let life = match node.life {
        Life::Normal => 'N',
        Life::Leaving => 'L',
        Life::Joining => 'J',
        Life::Moving => 'M',
    };
    let state = format!("{liveness}{life}");
    let address = super::address(node.address, port);
    let load = node.load_bytes.map_or_else(|| "?".to_owned(), file_size);
    let owns = match node.owns_share {
        Some(share) if effective => format!("{:.1}%", share * 100.0),
        _ => "?".to_owned(),
    };
    if many_tokens {
        let tokens = node.tokens.len().to_string();
        columns.row([&state, &address, &load, &tokens, &owns, &node.host_id, &node.rack]);
    } else {
        let token = node.tokens.first().map_or("", String::as_str);
        columns.row([&state, &address, &load, &owns, &node.host_id, token, &node.rack]);
    }
}
