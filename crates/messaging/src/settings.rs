//! What an operator says of connections between nodes.

use std::net::SocketAddr;
use std::time::Duration;

use internode::quota::{CONNECTION_BYTES, ENDPOINT_BYTES, GLOBAL_BYTES};
use internode::{DEFAULT_MAX_MESSAGE, Timeouts, Verb};
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

/// How long to wait for other nodes; the operator may change it while connections are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long messages are worth anything.
    pub timeouts: Timeouts,
    /// `internode_tcp_connect_timeout`.
    pub connect: Duration,
    /// `internode_tcp_user_timeout`: a connection that takes nothing for so long is closed.
    pub user: Duration,
    /// `internode_streaming_tcp_user_timeout`: the same of connections for streams.
    pub streaming_user: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            connect: Duration::from_secs(2),
            user: Duration::from_secs(30),
            streaming_user: Duration::from_secs(300),
        }
    }
}

impl Patience {
    /// How long a message is worth anything from its creation on, in milliseconds; an answer says
    /// so itself.
    pub(crate) fn expiry(&self, verb: Verb) -> u64 {
        self.timeouts.of(verb.expiry()).unwrap_or_default()
    }

    /// How long a handshake may take.
    pub(crate) fn handshake(&self) -> Duration {
        Duration::from_millis(self.timeouts.request) * internode::handshake::TIMEOUT_REQUESTS
    }
}

/// `server_encryption_options`, where any connection is encrypted.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// The certificates of now, with which this node serves and dials.
    pub tls: tls::Tls,
    /// `optional`: may those who should encrypt do without?
    pub is_optional: bool,
    /// Is it offered at the port where nodes listen?
    pub is_offered: bool,
    /// `require_client_auth` and `require_endpoint_verification`: must who connects show a
    /// certificate of its address?
    pub verifies_address: bool,
    /// Is who does without it believed to be a node at the node's own address only? Where some do
    /// without by their place.
    pub checks_plain_address: bool,
    /// Where nothing but TLS is taken (`ssl_storage_port`).
    pub listen: Option<SocketAddr>,
}

impl Encryption {
    /// As the configuration's defaults have it, where all connections are encrypted.
    pub fn new(tls: tls::Tls) -> Self {
        Self {
            tls,
            is_optional: false,
            is_offered: true,
            verifies_address: false,
            checks_plain_address: false,
            listen: None,
        }
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
    /// How long to wait, at the start.
    pub patience: Patience,
    /// `internode_timeout`: are senders believed when they say when a message was made?
    pub believes_clocks: bool,
    /// None, where nothing is encrypted.
    pub encryption: Option<Encryption>,
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
            patience: Patience::default(),
            believes_clocks: true,
            encryption: None,
        }
    }
}
