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
            received: number("ReceivedMessages", "Messages of other nodes."),
            received_bytes: bytes("ReceivedBytes", "Bytes of messages of other nodes."),
            received_late: number("ExpiredMessages", "Messages that came too late to be of use."),
            received_corrupt: number("CorruptFrames", "Frames that arrived damaged."),
            received_unknown: number("ErrorMessages", "Messages that were not understood."),
            refused: number("RefusedConnections", "Connections that were no node's to be served."),
            paused: number("ThrottledCount", "Pauses because of too much that was received."),
            accept_errors: number("AcceptErrors", "Connections that could not be accepted."),
            sent: number("SentMessages", "Messages to other nodes."),
            sent_bytes: bytes("SentBytes", "Bytes to other nodes."),
            expired: number("PendingExpired", "Messages that waited too long to be sent."),
            failed: number("SendErrors", "Messages that could not be sent."),
            overloaded: number("PendingOverloaded", "Messages that found too many waiting."),
            connect_errors: number("ConnectErrors", "Attempts to reach another node that failed."),
            unasked: number("UnaskedAnswers", "Answers that nobody waited for."),
        }
    }
}
