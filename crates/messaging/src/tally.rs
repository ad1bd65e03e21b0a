//! What is counted of connections between nodes (`metrics.InternodeInboundMetrics`,
//! `InternodeOutboundMetrics`, `DroppedMessageMetrics`), all nodes together.

use metrics::{Counter, Gauge, Name, Registry, Unit};

/// Handles of the metrics.
#[derive(Debug)]
pub(crate) struct Tally {
    pub inbound: Gauge,
    pub outbound: Gauge,
    pub received: Counter,
    pub received_bytes: Counter,
    pub received_late: Counter,
    pub received_corrupt: Counter,
    pub received_unknown: Counter,
    pub refused: Counter,
    pub paused: Counter,
    pub accept_errors: Counter,
    pub sent: Counter,
    pub sent_bytes: Counter,
    pub expired: Counter,
    pub failed: Counter,
    pub overloaded: Counter,
    pub connect_errors: Counter,
    pub unasked: Counter,
}

impl Tally {
    pub fn new(registry: &Registry) -> Self {
        let count = |name, unit, help| registry.counter(Name::new("Internode", name), unit, help);
        let gauge = |name, help| registry.gauge(Name::new("Internode", name), Unit::Count, help);
        let number = |name, help| count(name, Unit::Count, help);
        let bytes = |name, help| count(name, Unit::Bytes, help);
        Self {
            inbound: gauge("InboundConnections", "Connections that other nodes opened."),
            outbound: gauge("OutboundConnections", "Connections to other nodes."),
            received: number("ReceivedMessages", "Messages received from other nodes."),
            received_bytes: bytes("ReceivedBytes", "Bytes of messages received from other nodes."),
            received_late: number("ExpiredMessages", "Messages received after they expired."),
            received_corrupt: number("CorruptFrames", "Damaged frames received."),
            received_unknown: number(
                "ErrorMessages",
                "Messages rejected as malformed or not supported.",
            ),
            refused: number("RefusedConnections", "Connections of other nodes refused."),
            paused: number(
                "ThrottledCount",
                "Pauses of reading because the budget for received messages was used up.",
            ),
            accept_errors: number("AcceptErrors", "Connections that could not be accepted."),
            sent: number("SentMessages", "Messages sent to other nodes."),
            sent_bytes: bytes("SentBytes", "Bytes sent to other nodes."),
            expired: number("PendingExpired", "Messages that expired before they were sent."),
            failed: number("SendErrors", "Messages that could not be sent."),
            overloaded: number(
                "PendingOverloaded",
                "Messages dropped because too many waited to be sent.",
            ),
            connect_errors: number("ConnectErrors", "Attempts to reach another node that failed."),
            unasked: number("UnaskedAnswers", "Answers that arrived after their request ended."),
        }
    }
}
