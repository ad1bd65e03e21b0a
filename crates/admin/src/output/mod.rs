//! The texts that Cassandra's nodetool 5.0.9 prints (`tools.nodetool.*`).

pub(crate) mod cluster;
pub(crate) mod columns;
pub(crate) mod compaction;
pub(crate) mod gossip;
pub(crate) mod hints;
pub(crate) mod histograms;
pub(crate) mod info;
pub(crate) mod io;
pub(crate) mod network;
mod number;
pub(crate) mod ring;
pub(crate) mod snapshots;
pub(crate) mod status;
pub(crate) mod tables;

use std::net::SocketAddr;

/// An address, with its port if the operator asked for ports.
fn address(address: SocketAddr, print_port: bool) -> String {
    if print_port { address.to_string() } else { address.ip().to_string() }
}
