//! What the server counts, under Cassandra's names where it has them
//! (`metrics.ClientMetrics`, `ClientMessageSizeMetrics`, `CQLMetrics`).

use metrics::{Counter, Gauge, Histogram, Name, Registry, Unit};

/// Handles of the server's metrics.
#[derive(Debug)]
pub(crate) struct Tally {
    pub connected: Gauge,
    pub in_flight_bytes: Gauge,
    pub requests_in_flight: Gauge,
    pub paused: Gauge,
    pub paused_bytes: Counter,
    pub paused_requests: Counter,
    pub paused_unread: Counter,
    pub paused_rate: Counter,
    pub discarded: Counter,
    pub discarded_draining: Counter,
    pub dispatched: Counter,
    pub answered_inline: Counter,
    pub answers_dropped: Counter,
    pub timed_out_before: Counter,
    pub protocol_errors: Counter,
    pub unknown_errors: Counter,
    pub auth_success: Counter,
    pub auth_failure: Counter,
    pub refused: Counter,
    pub refused_per_ip: Counter,
    pub accept_errors: Counter,
    pub handed_over: Counter,
    pub handshake_timeouts: Counter,
    pub handshakes_evicted: Counter,
    pub idle_timeouts: Counter,
    pub linger_timeouts: Counter,
    pub events_sent: Counter,
    pub events_unread: Counter,
    pub bytes_received: Counter,
    pub bytes_sent: Counter,
    pub bytes_per_request: Histogram,
    pub bytes_per_response: Histogram,
    pub regular: Counter,
    pub prepared: Counter,
}

impl Tally {
    pub fn new(registry: &Registry) -> Self {
        let count = |kind, name, help| registry.counter(Name::new(kind, name), Unit::Count, help);
        let client = |name, help| count("Client", name, help);
        let gauge = |name, unit, help| registry.gauge(Name::new("Client", name), unit, help);
        let size =
            |name, help| registry.counter(Name::new("ClientMessageSize", name), Unit::Bytes, help);
        let sizes = |name, help| {
            registry.histogram(Name::new("ClientMessageSize", name), Unit::Bytes, help)
        };
        Self {
            connected: gauge("connectedNativeClients", Unit::Count, "Client connections."),
            in_flight_bytes: gauge("RequestsSize", Unit::Bytes, "Bytes of requests in flight."),
            requests_in_flight: gauge("RequestsInFlight", Unit::Count, "Requests in flight."),
            paused: gauge("PausedConnections", Unit::Count, "Connections whose reading is paused."),
            paused_bytes: client("ConnectionPaused", "Pauses because of bytes in flight."),
            paused_requests: client(
                "ConnectionPausedByRequests",
                "Pauses because of requests in flight on the connection.",
            ),
            paused_unread: client(
                "ConnectionPausedByUnreadAnswers",
                "Pauses because the client does not read its answers.",
            ),
            paused_rate: client(
                "ConnectionPausedByRate",
                "Pauses because of the limit of requests a second.",
            ),
            discarded: client("RequestDiscarded", "Requests answered OVERLOADED at admission."),
            discarded_draining: client(
                "RequestDiscardedDraining",
                "Requests answered OVERLOADED because the node shuts down.",
            ),
            dispatched: client("RequestDispatched", "Requests admitted."),
            answered_inline: client("RequestAnsweredInline", "Requests answered without a task."),
            answers_dropped: client(
                "AnswersDropped",
                "Answers dropped because the client had closed the connection.",
            ),
            timed_out_before: client(
                "TimedOutBeforeProcessing",
                "Requests that timed out before they started.",
            ),
            protocol_errors: client("ProtocolException", "Malformed or unexpected messages."),
            unknown_errors: client("UnknownException", "Socket errors."),
            auth_success: client("AuthSuccess", "Successful logins."),
            auth_failure: client("AuthFailure", "Failed logins."),
            refused: client(
                "ConnectionsRefused",
                "Connections refused above native_transport_max_concurrent_connections.",
            ),
            refused_per_ip: client(
                "ConnectionsRefusedPerIp",
                "Connections refused above native_transport_max_concurrent_connections_per_ip.",
            ),
            accept_errors: client("AcceptErrors", "Connections that could not be accepted."),
            handed_over: client("ConnectionsHandedOver", "Connections handed to another shard."),
            handshake_timeouts: client(
                "HandshakeTimeouts",
                "Connections closed because their handshake took too long.",
            ),
            handshakes_evicted: client(
                "HandshakesEvicted",
                "Oldest handshakes closed for new ones.",
            ),
            idle_timeouts: client(
                "IdleTimeouts",
                "Connections closed after native_transport_idle_timeout.",
            ),
            linger_timeouts: client(
                "LingerTimeouts",
                "Connections closed before the client read all answers.",
            ),
            events_sent: client("EventsSent", "Events queued for clients."),
            events_unread: client(
                "EventsUnread",
                "Connections closed because events were not read.",
            ),
            bytes_received: size("BytesReceived", "Bytes of requests."),
            bytes_sent: size("BytesSent", "Bytes of responses."),
            bytes_per_request: sizes("BytesReceivedPerRequest", "Size of requests."),
            bytes_per_response: sizes("BytesSentPerResponse", "Size of responses."),
            regular: count(
                "CQL",
                "RegularStatementsExecuted",
                "Statements executed from their text.",
            ),
            prepared: count("CQL", "PreparedStatementsExecuted", "Prepared statements executed."),
        }
    }
}
