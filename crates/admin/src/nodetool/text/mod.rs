//! What nodetool prints of each value: the texts of Cassandra's nodetool 5.0.9
//! (`tools.nodetool.*`).

mod access;
mod cluster;
pub(super) mod columns;
mod compaction;
mod dispatch;
mod gossip;
mod hints;
mod histograms;
mod info;
mod io;
mod logging;
mod network;
mod number;
mod plan;
mod repair;
mod request_logs;
mod ring;
pub(crate) mod samples;
mod snapshots;
mod status;
mod streams;
mod table_tree;
mod tables;
mod tree;

pub(super) use dispatch::print;

use std::net::SocketAddr;

/// An address, with its port if the operator asked for ports.
fn address(address: SocketAddr, print_port: bool) -> String {
    if print_port { address.to_string() } else { address.ip().to_string() }
}
