//! Headers, parameters, verbs and failure reasons, against what Cassandra writes.

use crate::common;

use common::{RELEASES, hex, vectors};
use internode::header::MAX_CLOCK_SKEW;
use internode::{
    Connection, Envelope, FailureReason, Flags, Header, HeaderError, LARGE_MESSAGE, Param, Params,
    Priority, Timeouts, TraceType, Verb,
};
use proptest::prelude::*;
use types::{Address, Reader, Token, Uuid};

#[test]
fn verbs_are_cassandras() {
    for release in RELEASES {
        let known = vectors(release, "verb");
        assert_eq!(known.len(), Verb::ALL.len());
        for words in known {
            let [number, name, priority, expires, answer, is_answer] = words[..] else {
                panic!("{words:?}")
            };
            let verb = Verb::from_number(number.parse().unwrap()).expect(name);
            assert_eq!((verb.name(), verb.number().to_string()), (name, number.to_owned()));
            assert_eq!(format!("{:?}", verb.priority()), priority, "{name}");
            let timeout = Timeouts::default().of(verb.expiry());
            assert_eq!(timeout.map_or("-".to_owned(), |t| t.to_string()), expires, "{name}");
            assert_eq!(verb.answer().map_or("-", Verb::name), answer, "{name}");
            assert_eq!(verb.is_answer().to_string(), is_answer, "{name}");
        }
    }
    assert_eq!(Verb::from_number(116), None);
    assert_eq!(Verb::from_number(801), None);
}

#[test]
fn connections_by_size_and_priority() {
    for verb in Verb::ALL {
        let small =
            if verb.priority() == Priority::P0 { Connection::Urgent } else { Connection::Small };
        assert_eq!(verb.connection(LARGE_MESSAGE), small);
        assert_eq!(verb.connection(LARGE_MESSAGE + 1), Connection::Large);
    }
}

#[test]
fn failure_reasons_are_cassandras() {
    for words in vectors("5.0.9", "reason") {
        let names = [
            "UNKNOWN",
            "READ_TOO_MANY_TOMBSTONES",
            "TIMEOUT",
            "INCOMPATIBLE_SCHEMA",
            "READ_SIZE",
            "NODE_DOWN",
            "INDEX_NOT_AVAILABLE",
            "READ_TOO_MANY_INDEXES",
        ];
        let number: usize = words[0].parse().unwrap();
        assert_eq!(names[number], words[1]);
        assert_eq!(usize::from(FailureReason::ALL[number].number()), number);
    }
    assert!(vectors("4.1.10", "reason").len() < FailureReason::ALL.len());
}

fn addresses() -> (Address, Address) {
    let six = "2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap();
    (Address::new([127, 0, 0, 42], 7000), Address::new(six, 7012))
}

fn params(name: &str) -> Params {
    let (other, third) = addresses();
    match name {
        "forward" => Params::NONE.with(Param::ForwardTo(vec![(other, 5), (third, 300)])),
        "traced" => Params::NONE
            .with(Param::TraceType(TraceType::Query))
            .with(Param::RespondTo(third))
            .with(Param::TraceSession(Uuid(0x5c3b3720_e5dd_11f1_9a15_1b96078e4459))),
        "warned" => Params::NONE
            .with(Param::TombstoneFail(100_001))
            .with(Param::TombstoneWarn(1001))
            .with(Param::ReadSizeFail(1 << 33))
            .with(Param::ReadSizeWarn(4096))
            .with(Param::RowIndexSizeFail(5000))
            .with(Param::RowIndexSizeWarn(6000))
            .with(Param::Custom(vec![("k\u{e9}y".to_owned(), vec![1, 2, 3])])),
        "indexes" => {
            Params::NONE.with(Param::TooManyIndexesFail(9)).with(Param::TooManyIndexesWarn(9))
        }
        _ => Params::NONE,
    }
}

#[test]
fn messages_as_cassandra_writes_them() {
    for release in RELEASES {
        for words in vectors(release, "message") {
            let [name, verb, id, bytes] = words[..] else { panic!("{words:?}") };
            let bytes = hex(bytes);
            let (envelope, header) = Envelope::read(&bytes).expect("whole");
            let header = header.expect("well formed");
            assert_eq!((header.verb.name(), header.id.to_string()), (verb, id.to_owned()));
            assert_eq!(header.expires_in, 12345);
            let flags = match name {
                "flags" => Flags(7),
                "ping" | "forward" => Flags::CALL_BACK_ON_FAILURE,
                _ => Flags::NONE,
            };
            assert_eq!(header.flags, flags);
            if name != "indexes" || release == "5.0.9" {
                assert_eq!(header.params, params(name), "{name}");
            }
            assert_eq!(envelope.size(), bytes.len() as u64);
            let payload = &bytes[envelope.payload_at..];
            match name {
                "failure" => assert_eq!(
                    FailureReason::read(&mut Reader::new(payload)),
                    Ok(FailureReason::IncompatibleSchema)
                ),
                "ping" => assert_eq!(payload, [Connection::Large.number()]),
                _ => assert_eq!(payload, [0u8; 0]),
            }
            let mut out = Vec::new();
            header.write(&mut out).expect("what was read");
            assert_eq!(out, bytes[..envelope.payload_at - 1], "{name}");
            for cut in 0..envelope.payload_at {
                assert!(Envelope::read(&bytes[..cut]).is_err(), "{name} {cut}");
            }
        }
    }
}

#[test]
fn what_is_unknown_is_passed_over_or_refused() {
    let read = |bytes: &[u8]| Envelope::read(bytes).expect("its outline").1;
    // parameters 2 and 40, of nobody's, around one that is known
    let bytes = [1, 0, 0, 0, 0, 10, 31, 0, 3, 2, 1, 9, 8, 4, 0, 0, 0, 7, 40, 0, 0];
    let header = read(&bytes).expect("well formed");
    assert_eq!(header.params, Params::NONE.with(Param::TombstoneFail(7)));
    assert_eq!(read(&[1, 0, 0, 0, 0, 10, 116, 0, 0, 0]), Err(HeaderError::Verb(116)));
    // an address of 4 bytes; a trace of an unknown kind; a list that claims more than there is
    for param in [&[1, 5, 4, 1, 2, 3, 4][..], &[6, 1, 3], &[0, 2, 0x7f, 6], &[15, 4, 0x7f, 0, 0, 0]]
    {
        let mut bytes = vec![1, 0, 0, 0, 0, 10, 31, 0, 1];
        bytes.extend_from_slice(param);
        bytes.push(0);
        assert!(matches!(read(&bytes), Err(HeaderError::Param(_))), "{param:?}");
    }
    // the last of a kind counts
    let bytes = [1, 0, 0, 0, 0, 10, 31, 0, 2, 8, 4, 0, 0, 0, 7, 8, 4, 0, 0, 0, 9, 0];
    assert_eq!(read(&bytes).unwrap().params, Params::NONE.with(Param::TombstoneFail(9)));
}

#[test]
fn times() {
    const NOW: i64 = 1_700_000_000_000;
    // also where the low bits wrapped in between
    for now in [NOW, (NOW >> 32 << 32) + 5, (NOW >> 32 << 32) - 5] {
        for skew in [0, 1, -1, 1000, -1000, MAX_CLOCK_SKEW, -MAX_CLOCK_SKEW] {
            let header = Header::new(1, Verb::MutationReq, now - skew, 2000);
            assert_eq!(header.created_at(now, true), now - skew);
            assert_eq!(header.created_at(now, false), now);
            assert_eq!(header.expires_at(now, true), now - skew + 2000);
        }
        for skew in [MAX_CLOCK_SKEW + 1, -MAX_CLOCK_SKEW - 1, 1 << 31, -(1 << 31)] {
            let header = Header::new(1, Verb::MutationReq, now - skew, 2000);
            assert_eq!(header.created_at(now, true), now, "{skew}");
        }
    }
    let mut request = Header::new(7, Verb::MutationReq, NOW, 2000);
    let answer = request.answer(NOW + 500, request.expires_at(NOW, true)).expect("in time");
    assert_eq!((answer.id, answer.verb, answer.expires_in), (7, Verb::MutationRsp, 1500));
    assert_eq!(answer.created, (NOW + 500) as u32);
    assert_eq!(request.answer(NOW + 2000, NOW + 2000), None);
    assert_eq!(request.failure(NOW, NOW + 1), None);
    request.flags = Flags::TRACK_WARNINGS.with(Flags::CALL_BACK_ON_FAILURE);
    let failure = request.failure(NOW, NOW + 1).expect("asked for");
    assert_eq!((failure.id, failure.verb, failure.expires_in), (7, Verb::FailureRsp, 1));
    assert_eq!(Header::new(1, Verb::GossipDigestSyn, NOW, 1).answer(NOW, NOW + 1), None);
}

fn any_address() -> impl Strategy<Value = Address> {
    (any::<std::net::IpAddr>(), any::<u16>()).prop_filter_map("mapped", |(ip, port)| {
        let mapped = matches!(ip, std::net::IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
        (!mapped).then(|| Address::new(ip, port))
    })
}

fn any_param() -> impl Strategy<Value = Param> {
    prop_oneof![
        prop::collection::vec((any_address(), any::<u64>()), 0..4).prop_map(Param::ForwardTo),
        any_address().prop_map(Param::RespondTo),
        any::<u128>().prop_map(|bits| Param::TraceSession(Uuid(bits))),
        prop_oneof![Just(TraceType::None), Just(TraceType::Query), Just(TraceType::Repair)]
            .prop_map(Param::TraceType),
        any::<i32>().prop_map(Param::TombstoneFail),
        any::<i32>().prop_map(Param::TooManyIndexesWarn),
        any::<i64>().prop_map(Param::ReadSizeFail),
        any::<i64>().prop_map(Param::RowIndexSizeWarn),
        prop::collection::vec((any::<String>(), any::<Vec<u8>>()), 0..3).prop_map(Param::Custom),
        prop::collection::vec((any::<i64>(), any::<i64>()), 0..3).prop_map(|ranges| {
            let token = |(a, b): (i64, i64)| (Token(a), Token(b));
            Param::SnapshotRanges(ranges.into_iter().map(token).collect())
        }),
    ]
}

proptest! {
    #[test]
    fn headers_come_back(
        id: u64, created: u32, expires_in: u64, verb in prop::sample::select(Verb::ALL), flags: u32,
        list in prop::collection::vec(any_param(), 0..5), payload: u32,
    ) {
        let mut params = Params::NONE;
        list.into_iter().for_each(|param| params.set(param));
        let header = Header { id, created, expires_in, verb, flags: Flags(flags), params };
        let mut bytes = Vec::new();
        header.write(&mut bytes).unwrap();
        types::WriteBytes::put_uvint(&mut bytes, payload.into());
        let (envelope, read) = Envelope::read(&bytes).unwrap();
        prop_assert_eq!(read, Ok(header));
        prop_assert_eq!(envelope.size(), bytes.len() as u64 + u64::from(payload));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok((envelope, Ok(header))) = Envelope::read(&bytes) {
            prop_assert!(envelope.payload_at <= bytes.len());
            let mut out = Vec::new();
            header.write(&mut out).unwrap();
        }
    }
}
