//! Addresses of nodes, for those who know no cluster.

use std::net::SocketAddr;

use types::Address;

/// An address as the operator's API and virtual tables have it.
pub(crate) fn socket(address: Address) -> SocketAddr {
    SocketAddr::new(address.ip, address.port)
}
