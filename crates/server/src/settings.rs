//! What the composition root sets, filled from `cassandra.yaml`; and the limits that no key sets.

use std::net::SocketAddr;
use std::time::Duration;

use tls::Tls;

/// Settings of the native transport. Byte limits are the node's; each shard gets an equal share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where every shard listens (`rpc_address`, `native_transport_port`).
    pub listen: SocketAddr,
    /// Where a client's source port chooses its shard (`native_transport_port_shard_aware`). Where
    /// this is set, the shard keys are answered to OPTIONS.
    pub shard_aware: Option<SocketAddr>,
    /// TLS on both ports (`client_encryption_options`).
    pub tls: Option<Tls>,
    /// Longest message outside segments, in bytes (`native_transport_max_frame_size`).
    pub max_frame_size: u32,
    /// Longest message of several segments, in bytes (`native_transport_max_message_size`).
    pub max_message_size: u32,
    /// Bytes of requests in flight on the node (`native_transport_max_request_data_in_flight`).
    pub max_in_flight: u64,
    /// The same of one client address (`native_transport_max_request_data_in_flight_per_ip`).
    pub max_in_flight_per_ip: u64,
    /// Connections of the node (`native_transport_max_concurrent_connections`); none: no limit.
    pub max_connections: Option<u64>,
    /// Connections of one client address (`native_transport_max_concurrent_connections_per_ip`).
    pub max_connections_per_ip: Option<u64>,
    /// Requests of the node a second (`native_transport_max_requests_per_second`, where
    /// `native_transport_rate_limiting_enabled`); none: no limit.
    pub max_requests_per_second: Option<u32>,
    /// Are versions before 5 served (`native_transport_allow_older_protocols`)?
    pub allow_older_protocols: bool,
    /// A connection on which nothing moved for so long is closed
    /// (`native_transport_idle_timeout`); none: never.
    pub idle_timeout: Option<Duration>,
    /// How long a client waits for an answer (`native_transport_timeout`): the deadline of a
    /// request.
    pub request_timeout: Duration,
    /// How long a request waits for its turn (`native_transport_queue_wait`) once some have waited
    /// for [`STANDING`] without a pause; beyond, it is answered OVERLOADED.
    pub queue_wait: Duration,
    /// A connection that is not ready for statements after so long is closed.
    pub handshake_timeout: Duration,
    /// Connections of this shard that are not ready for statements yet; beyond, the oldest of
    /// them is closed.
    pub max_handshakes: usize,
    /// Requests of one connection at a time; beyond, it is not read.
    pub max_requests_per_connection: usize,
    /// Bytes of answers that wait for a client to read them; beyond, its requests wait for their
    /// turn, and beyond [`UNREAD_ANSWERS`] times as many it is not read.
    pub max_unsent: usize,
}

impl Settings {
    /// Cassandra's defaults, listening on `listen` alone.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            shard_aware: None,
            tls: None,
            max_frame_size: protocol::DEFAULT_MAX_FRAME,
            max_message_size: protocol::DEFAULT_MAX_FRAME,
            max_in_flight: 256 << 20,
            max_in_flight_per_ip: 64 << 20,
            max_connections: None,
            max_connections_per_ip: None,
            max_requests_per_second: None,
            allow_older_protocols: true,
            idle_timeout: None,
            request_timeout: Duration::from_secs(12),
            queue_wait: Duration::from_millis(500),
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 4096,
            max_requests_per_connection: 4096,
            max_unsent: 1 << 20,
        }
    }
}

/// Bytes that one read takes at most.
pub(crate) const READ_CHUNK: usize = 64 << 10;
/// Bytes that a connection's answers give to the socket at once: what the kernel copies meanwhile,
/// others wait for.
pub(crate) const WRITTEN_AT_ONCE: usize = 128 << 10;
/// How long a connection rests after each [`READ_CHUNK`] of what nobody wants, the rest of a
/// message that was refused or what comes after the last answer: 32 MiB/s at most, so that those
/// who only send cost others little.
pub(crate) const UNWANTED_REST: Duration = Duration::from_millis(2);
/// Capacity that an idle connection keeps in its input and output buffers, in bytes.
pub(crate) const KEPT_BUFFER: usize = 16 << 10;
/// Longest message before a client is ready, in bytes: strangers are not lent more memory.
pub(crate) const HANDSHAKE_FRAME: u32 = 64 << 10;
/// See [`Settings::max_unsent`].
pub const UNREAD_ANSWERS: usize = 8;
/// How many times `max_unsent` a client that does not read its events may owe before it is closed.
pub(crate) const UNREAD_EVENTS: usize = 4;
/// How long a connection that ends waits for its client to take the last answer and to close.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// So many requests that have used up a slice and have more to do, and so many that have not ended,
/// are as much as a shard takes on: more of those connections that have some under way wait for
/// their turn.
pub(crate) const LONG_MOST: usize = 8;
/// See [`LONG_MOST`].
pub(crate) const UNDER_WAY_MOST: usize = 1024;
/// So many requests a connection's turn takes in that it cannot start.
pub(crate) const TAKEN_IN: usize = 64;
/// A queue that was not empty for so long is not a burst's: who waits too long in it is answered
/// OVERLOADED.
pub const STANDING: Duration = Duration::from_secs(2);
/// How often it is looked whether requests that wait have waited too long.
pub(crate) const WAIT_CHECKED: Duration = Duration::from_millis(10);
/// How long a listener waits after the system refused to accept (no file descriptors left, ...).
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Buffers for requests in flight that a shard keeps, and the capacity that each may keep.
pub(crate) const KEPT_BODIES: usize = 256;
/// See [`KEPT_BODIES`], in bytes.
pub(crate) const KEPT_BODY: usize = 8 << 10;
/// Options of STARTUP that a session remembers.
pub(crate) const MAX_CLIENT_OPTIONS: usize = 32;
/// Longest driver name or version that a session remembers, in bytes.
pub(crate) const MAX_DRIVER_NAME: usize = 256;
