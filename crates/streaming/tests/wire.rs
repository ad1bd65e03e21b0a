//! What a Cassandra sent (`conformance/streaming/capture.py`), read and written again; and what
//! nobody sends.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use schema::TableId;
use streaming::wire::{Init, Message, Operation, Preview, Request, Summary};
use types::{Address, Token, TokenRange, Uuid};

/// Runs what has all its bytes.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it has all its bytes and waits"),
    }
}

fn read(mut bytes: &[u8]) -> (Message, &[u8]) {
    let message = now(Message::read(&mut bytes)).expect("a message").expect("not the end");
    (message, bytes)
}

fn written(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.write(&mut out).expect("it fits");
    out
}

macro_rules! recorded {
    ($name:literal) => {
        (
            include_bytes!(concat!("../testdata/", $name, "-control.bin")).as_slice(),
            include_bytes!(concat!("../testdata/", $name, "-file.bin")).as_slice(),
        )
    };
}

/// The node's sums of them would overflow.
#[test]
fn more_than_numbers_hold_is_not_announced() {
    let announced = |files: [u32; 2], bytes: [u64; 2]| {
        let of = |at: usize| Summary {
            table: TableId([at as u8; 16]),
            files: files[at],
            bytes: bytes[at],
        };
        let written = written(&Message::PrepareSynAck { summaries: vec![of(0), of(1)] });
        now(Message::read(&mut written.as_slice())).map(|read| read.is_some())
    };
    let (files, bytes) = (i32::MAX as u32, i64::MAX as u64);
    assert!(announced([files, 0], [0, bytes]).is_ok_and(|is_some| is_some));
    assert!(announced([files, 1], [0, 0]).is_err());
    assert!(announced([0, 0], [bytes, 1]).is_err());
}

/// Of each table what came on the first connection and on the other.
const RECORDED: [(&str, (&[u8], &[u8])); 8] = [
    ("lz4", recorded!("lz4")),
    ("plain", recorded!("plain")),
    ("wide", recorded!("wide")),
    ("counted", recorded!("counted")),
    ("lz4-part", recorded!("lz4-part")),
    ("plain-part", recorded!("plain-part")),
    ("wide-part", recorded!("wide-part")),
    ("counted-part", recorded!("counted-part")),
];

#[test]
fn what_cassandra_sends_is_read_and_written_alike() {
    for (name, (control, file)) in RECORDED {
        let (answer, rest) = read(control);
        assert!(rest.is_empty(), "{name}");
        assert_eq!(written(&answer), control, "{name}");
        let Message::PrepareSynAck { summaries } = answer else { panic!("{name}: {answer:?}") };
        let (message, body) = read(file);
        let head = file.len() - body.len();
        assert_eq!(written(&message), &file[..head], "{name}");
        let Message::Stream(header) = message else { panic!("{name}: {message:?}") };
        let announced =
            Summary { table: header.table, files: header.files(), bytes: header.bytes() };
        assert_eq!(summaries, [announced], "{name}");
        // of what is not compressed, the header has the bytes before it is for the journey
        if header.whole.is_some() || header.compression.is_some() {
            assert_eq!(body.len() as u64, header.bytes(), "{name}");
        }
    }
}

#[test]
fn a_message_that_is_cut_off_is_no_message() {
    for (name, (control, file)) in RECORDED {
        let (_, body) = read(file);
        for (bytes, whole) in [(control, control.len()), (file, file.len() - body.len())] {
            for length in 1..whole {
                let mut cut = &bytes[..length];
                let found = now(Message::read(&mut cut));
                assert!(found.is_err(), "{name}: {length} of {whole} bytes");
            }
        }
    }
    assert!(matches!(now(Message::read(&mut [].as_slice())), Ok(None)));
}

#[test]
fn counts_that_no_node_sends_take_no_memory() {
    let huge = 0x7fff_ffff_u32.to_be_bytes();
    for kind in [1, 8] {
        let mut bytes = vec![kind];
        bytes.extend(huge);
        assert!(now(Message::read(&mut bytes.as_slice())).is_err(), "{kind}");
    }
    for kind in [0, 4, 11, 255] {
        assert!(now(Message::read(&mut [kind].as_slice())).is_err(), "{kind}");
    }
}

fn address() -> impl Strategy<Value = Address> {
    (any::<[u8; 4]>(), any::<u16>()).prop_map(|(ip, port)| Address::new(ip, port))
}

fn ranges() -> impl Strategy<Value = Vec<TokenRange>> {
    let range = (any::<i64>(), any::<i64>());
    let range = range.prop_map(|(l, r)| TokenRange { left: Token(l), right: Token(r) });
    prop::collection::vec(range, 0..4)
}

/// Two of them together are no more than a message may announce.
fn summary() -> impl Strategy<Value = Summary> {
    (any::<[u8; 16]>(), 0..=i32::MAX as u32 / 2, 0..=i64::MAX as u64 / 2)
        .prop_map(|(id, files, bytes)| Summary { table: TableId(id), files, bytes })
}

fn request() -> impl Strategy<Value = Request> {
    let tables = prop::collection::vec("\\PC{0,6}", 0..3);
    ("\\PC{0,8}", address(), ranges(), ranges(), tables).prop_map(
        |(keyspace, endpoint, ranges, transient_ranges, tables)| Request {
            keyspace,
            endpoint,
            ranges,
            transient_ranges,
            tables,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let init = (address(), any::<i32>(), any::<u128>(), prop::option::of(any::<u128>()));
    let init = init.prop_map(|(from, session, plan, repair)| {
        Message::Init(Init {
            from,
            session,
            plan: Uuid(plan),
            operation: Operation::Bootstrap,
            pending_repair: repair.map(Uuid),
            preview: Preview::Unrepaired,
        })
    });
    let summaries = || prop::collection::vec(summary(), 0..3);
    let syn = (prop::collection::vec(request(), 0..3), summaries())
        .prop_map(|(requests, summaries)| Message::PrepareSyn { requests, summaries });
    let received = (any::<[u8; 16]>(), any::<i32>())
        .prop_map(|(id, sequence)| Message::Received { table: TableId(id), sequence });
    prop_oneof![
        init,
        syn,
        received,
        summaries().prop_map(|summaries| Message::PrepareSynAck { summaries }),
        Just(Message::PrepareAck),
        Just(Message::Complete),
        Just(Message::SessionFailed),
        Just(Message::KeepAlive),
    ]
}

proptest! {
    #[test]
    fn messages_are_read_as_they_were_written(all in prop::collection::vec(message(), 1..5)) {
        let bytes: Vec<u8> = all.iter().flat_map(written).collect();
        let mut rest = bytes.as_slice();
        for message in &all {
            let (read, behind) = read(rest);
            prop_assert_eq!(&read, message);
            rest = behind;
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let mut rest = bytes.as_slice();
        while let Ok(Some(_)) = now(Message::read(&mut rest)) {}
    }
}
