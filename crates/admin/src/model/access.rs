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

/// By what a part of what `system_auth` said is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthCacheSettings {
    /// How long an entry serves.
    pub validity_millis: u64,
    /// After how long it is read again.
    pub update_interval_millis: u64,
    /// How many there are at most.
    pub max_entries: u64,
    /// Are all read again by themselves?
    pub active_update: bool,
}

/// What is to be changed of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthCacheChange {
    /// How long an entry serves.
    pub validity_millis: Option<i32>,
    /// After how long it is read again; -1: as long as it serves.
    pub update_interval_millis: Option<i32>,
    /// How many there are at most.
    pub max_entries: Option<i32>,
    /// Are all read again by themselves?
    pub active_update: Option<bool>,
}
