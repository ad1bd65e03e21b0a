//! Hints: which are kept, and for whom.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Which hints are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// Are any?
    pub is_enabled: bool,
    /// Data centers for whose nodes none are.
    pub disabled_datacenters: Vec<String>,
    /// For how long a node may be down.
    pub window_millis: u64,
}

/// Hints for a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingHints {
    /// The node's id.
    pub host_id: String,
    /// Where it is, if it is in the ring.
    pub node: Option<HintedNode>,
    /// Files of hints.
    pub files: u64,
    /// When the newest was begun, since 1970.
    pub newest_millis: i64,
    /// When the oldest was.
    pub oldest_millis: i64,
}

/// A node for which hints are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintedNode {
    /// Its address.
    pub address: SocketAddr,
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Is it up?
    pub is_up: bool,
}
