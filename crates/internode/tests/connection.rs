//! Both sides of a connection, with what waits to be sent.

use std::sync::Arc;

use internode::*;
use types::Address;

const NOW: i64 = 1_700_000_000_000;

fn initiate(connection: Connection, framing: Framing) -> Initiate {
    let from = Address::new([127, 0, 0, 41], 7000);
    Initiate { versions: Versions::OURS, connection, framing, from }
}

fn message(id: u64, length: usize, expires_in: u64) -> Queued {
    Queued {
        header: Header::new(id, Verb::MutationReq, NOW, expires_in),
        payload: Arc::from(vec![id as u8; length]),
        expires_at: NOW + expires_in as i64,
    }
}

/// Ids of messages by what became of them.
#[derive(Debug, Default, PartialEq)]
struct Ids {
    sent: Vec<u64>,
    expired: Vec<u64>,
    failed: Vec<u64>,
}

impl Ids {
    fn note(&mut self, gone: Gone) {
        match gone {
            Gone::Sent(message) => self.sent.push(message.header.id),
            Gone::Expired(message) => self.expired.push(message.header.id),
            Gone::Failed(message, _) => self.failed.push(message.header.id),
        }
    }
}

struct Side {
    out: Outgoing,
    endpoint: Quota,
    global: Quota,
    ids: Ids,
}

impl Side {
    fn new(connection: Connection, framing: Framing, capacity: u64, endpoint: u64) -> Self {
        Self {
            out: Outgoing::new(initiate(connection, framing), 1 << 20, capacity),
            endpoint: Quota::new(endpoint),
            global: Quota::new(1 << 30),
            ids: Ids::default(),
        }
    }

    fn push(&mut self, message: Queued, now: i64) -> Result<(), QueueError> {
        let quotas = [&mut self.endpoint, &mut self.global];
        self.out.push(message, now, quotas, &mut |gone| self.ids.note(gone))
    }

    fn flush(&mut self, now: i64, limit: usize) -> Vec<u8> {
        let mut wire = Vec::new();
        let quotas = [&mut self.endpoint, &mut self.global];
        self.out.flush(now, quotas, limit, &mut wire, &mut |gone| self.ids.note(gone));
        wire
    }
}

/// Ids of the messages that come.
fn receive(incoming: &mut Incoming, mut wire: &[u8]) -> Vec<u64> {
    let mut ids = Vec::new();
    loop {
        let mut answer = Vec::new();
        let (consumed, arrival) = incoming.next(wire, &mut answer);
        match arrival {
            Arrival::Messages(Outcome::Message(message)) => ids.push(message.header.id),
            Arrival::Messages(Outcome::Wait(_)) => return ids,
            Arrival::Messages(Outcome::Large { .. }) => {}
            other => panic!("{other:?}"),
        }
        wire = &wire[consumed..];
    }
}

#[test]
fn messages_wait_until_both_sides_agree() {
    for framing in [Framing::Crc, Framing::Lz4, Framing::Unprotected] {
        let mut side = Side::new(Connection::Small, framing, 1 << 20, 0);
        for id in 1..=3 {
            side.push(message(id, 100 * id as usize, 2000), NOW).expect("room");
        }
        assert_eq!((side.flush(NOW, 1 << 20), side.out.waiting()), (vec![], 3));
        let mut wire = Vec::new();
        side.out.connected(&mut wire);
        assert!(!side.out.is_open());
        let mut incoming = Incoming::new(Accepted::default());
        let mut answer = Vec::new();
        for cut in 0..wire.len() {
            let (consumed, arrival) = incoming.next(&wire[..cut], &mut answer);
            assert!(matches!(arrival, Arrival::Wait(n) if n > cut), "{arrival:?}");
            assert_eq!((consumed, answer.len()), (0, 0));
        }
        let opened = Arrival::Opened(initiate(Connection::Small, framing));
        assert_eq!(incoming.next(&wire, &mut answer), (wire.len(), opened));
        assert_eq!(side.out.received(&answer[..5]), Ok(None));
        assert_eq!(side.out.received(&answer), Ok(Some(answer.len())));
        assert!(side.out.is_open());
        let wire = side.flush(NOW, 1 << 20);
        assert_eq!(receive(&mut incoming, &wire), [1, 2, 3]);
        assert_eq!(side.ids.sent, [1, 2, 3]);
        assert_eq!((side.out.waiting(), side.out.waiting_bytes()), (0, 0));
        // what was handed over is gone; what waits, waits for the next connection
        side.push(message(4, 10, 2000), NOW).expect("room");
        side.out.closed();
        assert!(side.flush(NOW, 1 << 20).is_empty());
        assert_eq!(side.out.waiting(), 1);
    }
}

fn open(side: &mut Side) -> Incoming {
    let (mut wire, mut answer) = (Vec::new(), Vec::new());
    side.out.connected(&mut wire);
    let mut incoming = Incoming::new(Accepted::default());
    incoming.next(&wire, &mut answer);
    side.out.received(&answer).expect("it agrees").expect("whole");
    incoming
}

#[test]
fn what_is_late_is_not_sent() {
    let mut side = Side::new(Connection::Small, Framing::Crc, 1 << 20, 0);
    side.push(message(1, 10, 100), NOW).expect("room");
    side.push(message(2, 10, 300), NOW).expect("room");
    side.push(message(3, 2 << 20, 300), NOW).unwrap_err();
    assert!(side.flush(NOW + 100, 1 << 20).is_empty());
    assert_eq!(side.ids, Ids { expired: vec![1], ..Ids::default() });
    let mut incoming = open(&mut side);
    let wire = side.flush(NOW + 299, 1 << 20);
    assert_eq!(receive(&mut incoming, &wire), [2]);
    side.push(message(4, 10, 300), NOW).expect("room");
    assert!(side.flush(NOW + 300, 1 << 20).is_empty());
    assert_eq!(side.ids.expired, [1, 4]);
}

#[test]
fn queues_are_bounded_and_the_late_make_room() {
    let mut side = Side::new(Connection::Small, Framing::Crc, 1000, 2000);
    let mut pushed = 0;
    while side.push(message(pushed + 1, 400, 100), NOW).is_ok() {
        pushed += 1;
    }
    assert!((4..=7).contains(&pushed), "{pushed}");
    assert!(side.out.waiting_bytes() <= 3000);
    assert_eq!(side.push(message(90, 400, 500), NOW), Err(QueueError::Full(Shortage::Endpoint)));
    assert_eq!(side.push(message(91, 400, 500), NOW + 100), Ok(()));
    assert_eq!((side.ids.expired.len() as u64, side.out.waiting()), (pushed, 1));
    assert_eq!(side.endpoint.used(), 0);
    // a flush hands over as much as the socket is to take
    let mut incoming = open(&mut side);
    for id in 92..94 {
        side.push(message(id, 400, 500), NOW).expect("room");
    }
    let wire = side.flush(NOW, 500);
    assert_eq!(receive(&mut incoming, &wire), [91, 92]);
    assert_eq!(side.out.waiting(), 1);
}

#[test]
fn what_cannot_be_sent_is_told_and_the_rest_goes() {
    let mut side = Side::new(Connection::Large, Framing::Lz4, 8 << 20, 0);
    side.push(message(1, 200_000, 300), NOW).expect("room");
    side.push(message(2, 2 << 20, 300), NOW).expect("room");
    side.push(message(3, 10, 300), NOW).expect("room");
    let mut incoming = open(&mut side);
    let wire = side.flush(NOW, usize::MAX);
    assert_eq!(receive(&mut incoming, &wire), [1, 3]);
    assert_eq!(side.ids, Ids { sent: vec![1, 3], failed: vec![2], ..Ids::default() });
}

#[test]
fn streams_are_left_alone_and_strangers_refused() {
    let mut incoming = Incoming::new(Accepted::default());
    let (mut wire, mut answer) = (Vec::new(), Vec::new());
    initiate(Connection::Streaming, Framing::Unprotected).write(&mut wire);
    let (_, arrival) = incoming.next(&wire, &mut answer);
    assert!(matches!(arrival, Arrival::Opened(i) if i.connection == Connection::Streaming));
    assert_eq!(incoming.next(&[1, 2, 3], &mut answer), (0, Arrival::Stream));
    assert!(incoming.receiver().is_none());

    let mut incoming = Incoming::new(Accepted::default());
    answer.clear();
    let refused = incoming.next(b"GET / HTTP/1.1", &mut answer).1;
    assert_eq!(refused, Arrival::Refused(HandshakeError::Magic(*b"GET ")));
    assert_eq!(answer, [0u8; 0]);
    assert!(matches!(incoming.next(&wire, &mut answer).1, Arrival::Refused(_)), "it stays so");

    // a node that speaks other versions only is told which this one speaks
    let mut incoming = Incoming::new(Accepted::default());
    let mut later = initiate(Connection::Small, Framing::Crc);
    later.versions = Versions { min: 13, max: 14 };
    wire.clear();
    later.write(&mut wire);
    let refused = incoming.next(&wire, &mut answer).1;
    assert!(matches!(refused, Arrival::Refused(HandshakeError::NoVersion(..))));
    let mut other = Outgoing::new(later, 1, 1);
    other.connected(&mut Vec::new());
    assert!(matches!(other.received(&answer), Err(HandshakeError::NotOffered { wanted: 12, .. })));
}
