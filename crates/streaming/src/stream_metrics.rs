//! What streams count, under Cassandra's names (`StreamingMetrics`); on the first shard.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Name, Registry, Unit};
use types::Address;

use crate::progress::Direction;
use crate::wire::Operation;

/// Other nodes that have metrics of their own; what goes to and comes from more of them counts in
/// the totals alone.
const PEERS_MAX: usize = 1024;

/// Of one other node.
#[derive(Clone)]
struct OfPeer {
    incoming: Counter,
    outgoing: Counter,
    process_time: Histogram,
    whole_in: Counter,
    parts_in: Counter,
}

/// Of all nodes, and of each.
pub(crate) struct StreamMetrics {
    /// What is registered there may hold on to whoever holds this.
    registry: Weak<Registry>,
    active_out: Gauge,
    incoming: Counter,
    outgoing: Counter,
    repair_bytes: Counter,
    repair_files: Counter,
    peers: RefCell<BTreeMap<Address, OfPeer>>,
}

fn name(name: &'static str) -> Name {
    Name::new("Streaming", name)
}

impl StreamMetrics {
    pub fn new(registry: &Rc<Registry>) -> Self {
        // the names say their unit
        let bytes = |of, help| registry.counter(name(of), Unit::Count, help);
        Self {
            registry: Rc::downgrade(registry),
            active_out: registry.gauge(
                name("ActiveOutboundStreams"),
                Unit::Count,
                "Sessions under way that send files.",
            ),
            incoming: bytes("TotalIncomingBytes", "Bytes of SSTables that came."),
            outgoing: bytes("TotalOutgoingBytes", "Bytes of SSTables that were sent."),
            repair_bytes: bytes(
                "TotalOutgoingRepairBytes",
                "Bytes of SSTables that were sent for repairs.",
            ),
            repair_files: registry.counter(
                name("TotalOutgoingRepairSSTables"),
                Unit::Count,
                "Files that were sent for repairs.",
            ),
            peers: RefCell::default(),
        }
    }

    /// Part of a file went.
    pub fn went_on(&self, peer: Address, operation: Operation, way: Direction, bytes: u64) {
        match way {
            Direction::In => self.incoming.add(bytes),
            Direction::Out => self.outgoing.add(bytes),
        }
        if way == Direction::Out && operation == Operation::Repair {
            self.repair_bytes.add(bytes);
        }
        self.of(peer, |of| match way {
            Direction::In => of.incoming.add(bytes),
            Direction::Out => of.outgoing.add(bytes),
        });
    }

    /// The other node has files that this one sent.
    pub fn sent(&self, operation: Operation, files: u32) {
        if operation == Operation::Repair {
            self.repair_files.add(files.into());
        }
    }

    /// An SSTable came, and it took so long until it was taken in.
    pub fn received(&self, peer: Address, is_whole: bool, took: Duration) {
        self.of(peer, |of| {
            of.process_time.record_duration(took);
            if is_whole { of.whole_in.inc() } else { of.parts_in.inc() }
        });
    }

    /// Sessions under way that send.
    pub fn show_active(&self, sessions: usize) {
        self.active_out.set(i64::try_from(sessions).unwrap_or(i64::MAX));
    }

    fn of(&self, peer: Address, count: impl FnOnce(&OfPeer)) {
        let mut peers = self.peers.borrow_mut();
        if peers.len() >= PEERS_MAX && !peers.contains_key(&peer) {
            return;
        }
        // there is none when the shard ends
        let Some(registry) = self.registry.upgrade() else { return };
        count(peers.entry(peer).or_insert_with(|| Self::of_new(&registry, peer)));
    }

    fn of_new(registry: &Registry, peer: Address) -> OfPeer {
        // as Cassandra writes it, which puts it into the name of an MBean
        let scope = format!("/{peer}").replace(':', ".");
        let count = |of, help| registry.counter(name(of).scope(scope.as_str()), Unit::Count, help);
        OfPeer {
            incoming: count("IncomingBytes", "Bytes of SSTables that came from it."),
            outgoing: count("OutgoingBytes", "Bytes of SSTables that went to it."),
            process_time: registry.timer(
                name("IncomingProcessTime").scope(scope.as_str()),
                "Time until an SSTable that came was taken in.",
            ),
            whole_in: count("EntireSSTablesStreamedIn", "SSTables that came whole."),
            parts_in: count("PartialSSTablesStreamedIn", "SSTables of which parts came."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::metrics::Snapshot;

    #[test]
    fn bytes_count_in_all_and_of_each_node() {
        let registry = Rc::new(Registry::new(0));
        let metrics = StreamMetrics::new(&registry);
        let peer = |last| Address::new([10, 0, 0, last], 7000);
        metrics.went_on(peer(1), Operation::Rebuild, Direction::In, 5);
        metrics.went_on(peer(2), Operation::Repair, Direction::Out, 7);
        metrics.sent(Operation::Repair, 3);
        metrics.received(peer(1), true, Duration::from_millis(2));
        let text = metrics::prometheus::write(&[Snapshot::merge([registry.snapshot()])]);
        for line in [
            "cassandra_streaming_totalincomingbytes_total 5",
            "cassandra_streaming_totaloutgoingbytes_total 7",
            "cassandra_streaming_totaloutgoingrepairbytes_total 7",
            "cassandra_streaming_totaloutgoingrepairsstables_total 3",
            "cassandra_streaming_incomingbytes_total{scope=\"/10.0.0.1.7000\"} 5",
            "cassandra_streaming_outgoingbytes_total{scope=\"/10.0.0.2.7000\"} 7",
            "cassandra_streaming_entiresstablesstreamedin_total{scope=\"/10.0.0.1.7000\"} 1",
            "cassandra_streaming_incomingprocesstime_seconds_count{scope=\"/10.0.0.1.7000\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn nodes_with_metrics_of_their_own_are_bounded() {
        let registry = Rc::new(Registry::new(0));
        let metrics = StreamMetrics::new(&registry);
        for port in 0..=PEERS_MAX as u16 {
            let peer = Address::new([10, 0, 0, 1], port);
            metrics.went_on(peer, Operation::Rebuild, Direction::In, 1);
        }
        assert_eq!(metrics.peers.borrow().len(), PEERS_MAX);
        assert_eq!(metrics.incoming.get(), PEERS_MAX as u64 + 1);
    }
}
