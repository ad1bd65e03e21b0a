//! What an operator says of connections between nodes.

use std::net::SocketAddr;
use std::time::Duration;

use internode::quota::{CONNECTION_BYTES, ENDPOINT_BYTES, GLOBAL_BYTES};
use internode::{DEFAULT_MAX_MESSAGE, Timeouts};
use types::Address;

/// How much may wait in one direction, in bytes (`internode_application_{send,receive}_queue_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// `..._capacity`: of each connection.
    pub connection: u64,
    /// `..._reserve_endpoint_capacity`: of a node's connections together, beyond their own.
    pub endpoint: u64,
    /// `..._reserve_global_capacity`: of all connections together, beyond their own.
    pub global: u64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { connection: CONNECTION_BYTES, endpoint: ENDPOINT_BYTES, global: GLOBAL_BYTES }
    }
}

/// Settings of connections between nodes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where other nodes reach this one: `broadcast_address` and `storage_port`.
    pub local: Address,
    /// Where this node listens for them.
    pub listen: SocketAddr,
    /// `internode_max_message_size`, in bytes.
    pub max_message: u64,
    /// What waits to be sent.
    pub send: Capacity,
    /// What was received and is not done with.
    pub receive: Capacity,
    /// How long messages are worth anything.
    pub timeouts: Timeouts,
    /// `internode_tcp_connect_timeout`.
    pub connect_timeout: Duration,
    /// `internode_tcp_user_timeout`: a connection that takes nothing for so long is closed.
    pub user_timeout: Duration,
    /// `internode_timeout`: are senders believed when they say when a message was made?
    pub believes_clocks: bool,
}

impl Settings {
    /// Cassandra's defaults.
    pub fn new(local: Address, listen: SocketAddr) -> Self {
        Self {
            local,
            listen,
            max_message: DEFAULT_MAX_MESSAGE,
            send: Capacity::default(),
            receive: Capacity::default(),
            timeouts: Timeouts::default(),
            connect_timeout: Duration::from_secs(2),
            user_timeout: Duration::from_secs(30),
            believes_clocks: true,
        }
    }

    /// How long a handshake may take.
    pub(crate) fn handshake_timeout(&self) -> Duration {
        Duration::from_millis(self.timeouts.request) * internode::handshake::TIMEOUT_REQUESTS
    }
}
