//! Clients of the node, and by what it lets them in.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A client's connection, for `clientstats`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientConnection {
    /// The client's end.
    pub address: SocketAddr,
    /// Protocol and cipher suite, where it is encrypted.
    pub tls: Option<(String, String)>,
    /// Version of the native protocol.
    pub version: u8,
    /// Who it is; none before it has logged in.
    pub user: Option<String>,
    /// The keyspace that it uses.
    pub keyspace: Option<String>,
    /// Requests so far.
    pub requests: u64,
    /// The driver's name.
    pub driver_name: Option<String>,
    /// The driver's version.
    pub driver_version: Option<String>,
    /// Options of its STARTUP, by name.
    pub options: Vec<(String, String)>,
}

/// A client that came of late, for `clientstats --by-protocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentClient {
    /// Version of the native protocol.
    pub version: u8,
    /// Its address.
    pub address: IpAddr,
    /// When it began its last connection, since 1970.
    pub at_unix_millis: i64,
}
