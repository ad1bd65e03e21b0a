//! `nodetool describecluster`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use crate::model::{ClusterView, Life, Liveness, NodesOf, Ring};

/// The text of `describecluster`.
pub(super) fn print(view: &ClusterView, print_port: bool) -> String {
    let ClusterView { cluster, ring, keyspaces } = view;
    let text = &mut String::new();
    text.push_str("Cluster Information:\n");
    let _ = writeln!(text, "\tName: {}", cluster.name);
    let _ = writeln!(text, "\tSnitch: {}", cluster.snitch);
    let dynamic = if cluster.dynamic_snitch { "enabled" } else { "disabled" };
    let _ = writeln!(text, "\tDynamicEndPointSnitch: {dynamic}");
    let _ = writeln!(text, "\tPartitioner: {}", cluster.partitioner);
    text.push_str("\tSchema versions:\n");
    for NodesOf { version, nodes } in &cluster.schema_versions {
        let _ = writeln!(text, "\t\t{version}: {}\n", list(nodes, print_port));
    }
    stats(text, ring);
    text.push_str("\nDatabase versions:\n");
    for NodesOf { version, nodes } in &cluster.releases {
        // With ports, whatever was asked for.
        let _ = writeln!(text, "\t{version}: {}\n", list(nodes, true));
    }
    text.push_str("Keyspaces:\n");
    for keyspace in keyspaces {
        let (name, replication) = (&keyspace.keyspace, &keyspace.replication);
        let _ = writeln!(text, "\t{name} -> Replication class: {replication}");
    }
    if let Some(note) = &ring.note {
        let _ = writeln!(text, "\nNote: {note}");
    }
    std::mem::take(text)
}

fn stats(text: &mut String, ring: &Ring) {
    let live = |liveness| ring.nodes.iter().filter(|n| n.liveness == liveness).count();
    let life = |life| ring.nodes.iter().filter(|n| n.life == life).count();
    text.push_str("Stats for all nodes:\n");
    let _ = writeln!(text, "\tLive: {}", live(Liveness::Up));
    let _ = writeln!(text, "\tJoining: {}", life(Life::Joining));
    let _ = writeln!(text, "\tMoving: {}", life(Life::Moving));
    let _ = writeln!(text, "\tLeaving: {}", life(Life::Leaving));
    let _ = writeln!(text, "\tUnreachable: {}", live(Liveness::Down));
    let mut centers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for node in &ring.nodes {
        let (nodes, down) = centers.entry(&node.data_center).or_default();
        *nodes += 1;
        *down += usize::from(node.liveness == Liveness::Down);
    }
    text.push_str("\nData Centers: \n");
    for (center, (nodes, down)) in centers {
        let _ = writeln!(text, "\t{center} #Nodes: {nodes} #Down: {down}");
    }
}

fn list(nodes: &[SocketAddr], print_port: bool) -> String {
    let nodes: Vec<_> = nodes.iter().map(|node| super::address(*node, print_port)).collect();
    format!("[{}]", nodes.join(", "))
}
