//! What breaches the protocol, and the answers that Apache Cassandra 5.0.9 was seen to give.

use crate::common;

use common::{frame, unhex};
use protocol::{
    Compression, Decoder, Direction, ErrorCode, Framer, Limits, Outcome, ProtocolError, Refusal,
    Request, Started, Version,
    client::{self, Body, Call, Parameters, Response},
    response,
};
use segment::{Form, SegmentHeader, crc32};

fn decoder(started: Option<Started>) -> Decoder {
    let mut decoder = Decoder::new(Limits::default());
    if let Some(started) = started {
        decoder.start(started);
        decoder.allow_large();
    }
    decoder
}

fn started(version: Version, compression: Option<Compression>) -> Option<Started> {
    Some(Started { version, compression })
}

fn envelope(version: u8, flags: u8, stream: i16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![version, flags];
    out.extend(stream.to_be_bytes());
    out.push(opcode);
    out.extend((body.len() as u32).to_be_bytes());
    out.extend(body);
    out
}

fn segment(form: Form, self_contained: bool, payload: &[u8]) -> Vec<u8> {
    let header = SegmentHeader { length: payload.len(), uncompressed: None, self_contained };
    let mut out = header.encode(form)[..form.header_length()].to_vec();
    out.extend(payload);
    out.extend(crc32(payload).to_le_bytes());
    out
}

fn refused(decoder: &mut Decoder, input: &[u8]) -> (usize, Refusal) {
    let step = decoder.next(input);
    match step.outcome {
        Outcome::Refused(refusal) => (step.consumed, refusal),
        other => panic!("{other:?}"),
    }
}

fn text(refusal: &Refusal) -> String {
    refusal.error.to_string()
}

#[test]
fn unknown_versions_are_answered_as_cassandra_does() {
    for number in [0u8, 7, 8, 65, 66, 127] {
        let input = envelope(number, 0, 0x0102, 5, &[]);
        let (consumed, refusal) = refused(&mut decoder(None), &input);
        assert_eq!(consumed, input.len());
        let stream = if number == 0 { 1 } else { 0x0102 };
        assert_eq!((refusal.version, refusal.stream, refusal.close), (5, Some(stream), false));
        let expected = format!(
            "Invalid or unsupported protocol version ({number}); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
        );
        assert_eq!(text(&refusal), expected);
        let mut out = Vec::new();
        response::refusal(&mut out, &refusal);
        let answer = Response::parse(frame(&out, Direction::Response)).unwrap();
        let Body::Error(error) = answer.body else { panic!() };
        assert_eq!(error.detail.code(), ErrorCode::ProtocolError);
        assert_eq!((answer.version, answer.stream), (Version::V5, stream));
    }
}

#[test]
fn versions_1_and_2_are_answered_with_their_own_header() {
    let golden = "81000500000000670000000a0061496e76616c6964206f7220756e737570706f727465642070726f746f636f6c2076657273696f6e202831293b20737570706f727465642076657273696f6e73206172652028332f76332c20342f76342c20352f76352c20362f76362d6265746129";
    // OPTIONS of version 1: 8 bytes of header, stream 5
    let input = [1, 0, 5, 5, 0, 0, 0, 0];
    let mut decoder = decoder(None);
    for cut in 0..input.len() {
        let step = decoder.next(&input[..cut]);
        assert!(matches!(step.outcome, Outcome::Wait(8 | 9)));
    }
    let (_, refusal) = refused(&mut decoder, &input);
    let mut out = Vec::new();
    response::refusal(&mut out, &refusal);
    assert_eq!(out, unhex(golden));
    // nor does a connection that compresses touch it
    let mut framer = Framer::new();
    framer.start(Started { version: Version::V4, compression: Some(Compression::Lz4) });
    let mut out = Vec::new();
    framer.write(&mut out, |out| response::refusal(out, &refusal));
    framer.flush(&mut out);
    assert_eq!(out, unhex(golden));
}

#[test]
fn beta_must_be_asked_for() {
    let (_, refusal) = refused(&mut decoder(None), &envelope(6, 0, 1, 5, &[]));
    assert_eq!(refusal.version, 6);
    assert_eq!(
        text(&refusal),
        "Beta version of the protocol used (6/v6-beta), but USE_BETA flag is unset"
    );
    let mut out = Vec::new();
    response::refusal(&mut out, &refusal);
    assert_eq!(out[..2], [0x86, 0x10]);
    let input = envelope(6, 0x10, 1, 5, &[]);
    assert!(matches!(decoder(None).next(&input).outcome, Outcome::Frame(_)));
}

#[test]
fn bad_headers_before_segments_leave_the_connection_open() {
    for (first, opcode, expected) in [
        (4, 0x33, "Unknown opcode 51"),
        (4, 8, "Wrong protocol direction (expected RESPONSE, got REQUEST) for opcode 8 (RESULT)"),
        (
            0x84,
            5,
            "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode 5 (OPTIONS)",
        ),
    ] {
        let mut input = envelope(first, 0, 1, opcode, b"body");
        input.extend(envelope(4, 0, 9, 5, &[]));
        let mut decoder = decoder(started(Version::V4, None));
        let (consumed, refusal) = refused(&mut decoder, &input);
        assert_eq!(text(&refusal), expected);
        assert_eq!((refusal.version, refusal.stream, refusal.close), (4, Some(1), false));
        let step = decoder.next(&input[consumed..]);
        let Outcome::Frame(frame) = step.outcome else { panic!() };
        assert_eq!(frame.header.stream, 9);
    }
}

#[test]
fn connection_keeps_its_version() {
    let mut bare = decoder(started(Version::V4, None));
    let (_, refusal) = refused(&mut bare, &envelope(3, 0, 1, 5, &[]));
    assert_eq!(
        text(&refusal),
        "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4"
    );
    let mut segments = decoder(started(Version::V5, None));
    let input = segment(Form::Plain, true, &envelope(3, 0, 1, 5, &[]));
    let (_, refusal) = refused(&mut segments, &input);
    assert_eq!(
        text(&refusal),
        "Invalid message version. Got 3/v3 but previousmessages on this connection had version 5/v5"
    );
    assert!(!refusal.close);
}

#[test]
fn frames_above_the_limit_are_passed_over_without_buffering() {
    let mut decoder = decoder(None);
    let total = 17_825_801u64;
    let mut input = envelope(4, 0, 1, 7, &[]);
    input[5..].copy_from_slice(&((total - 9) as u32).to_be_bytes());
    let (consumed, refusal) = refused(&mut decoder, &input);
    assert_eq!(consumed, 9);
    assert_eq!(
        text(&refusal),
        "Request is too big: length 17825801 exceeds maximum allowed length 16777216."
    );
    assert_eq!(refusal.error.code(), ErrorCode::Invalid);
    let chunk = vec![0; 1 << 16];
    let mut left = total - 9;
    while left > 0 {
        let part = &chunk[..chunk.len().min(left as usize)];
        let step = decoder.next(part);
        assert!(matches!(step.outcome, Outcome::Wait(_)));
        assert_eq!(step.consumed, part.len());
        left -= part.len() as u64;
    }
    assert_eq!(decoder.buffered(), 0);
    let next = envelope(4, 0, 2, 5, &[]);
    assert!(matches!(decoder.next(&next).outcome, Outcome::Frame(_)));
}

#[test]
fn corrupt_segments_close_the_connection() {
    for (compression, form) in [(None, Form::Plain), (Some(Compression::Lz4), Form::Lz4)] {
        let good = segment(form, true, &envelope(5, 0, 1, 5, &[]));
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 1;
            let mut decoder = decoder(started(Version::V5, compression));
            let (_, refusal) = refused(&mut decoder, &bad);
            let header = index < form.header_length();
            let part = if header { "header" } else { "body" };
            assert!(text(&refusal).starts_with(&format!(
                "invalid, unrecoverable CRC mismatch detected in frame {part}. Read "
            )));
            assert_eq!((refusal.stream, refusal.close), (None, true));
            // nothing more is read from it
            assert!(matches!(decoder.next(&good).outcome, Outcome::Wait(_)));
        }
    }
}

#[test]
fn a_second_error_in_a_row_closes() {
    let bad = envelope(5, 0, 2, 0x33, b"abc");
    let good = envelope(5, 0, 4, 5, &[]);
    let input = segment(Form::Plain, true, &[bad.clone(), bad.clone(), good.clone()].concat());
    let mut twice = decoder(started(Version::V5, None));
    let (consumed, first) = refused(&mut twice, &input);
    let (_, second) = refused(&mut twice, &input[consumed..]);
    assert_eq!((first.close, second.close), (false, true));

    let input = segment(Form::Plain, true, &[bad.clone(), good, bad].concat());
    let mut apart = decoder(started(Version::V5, None));
    let (mut at, _) = refused(&mut apart, &input);
    let step = apart.next(&input[at..]);
    assert!(matches!(step.outcome, Outcome::Frame(_)));
    at += step.consumed;
    let (_, refusal) = refused(&mut apart, &input[at..]);
    assert!(!refusal.close);

    // bodies count as well, as the server reports them
    let message = envelope(5, 0, 1, 7, &[]);
    let input = segment(Form::Plain, true, &[message.clone(), message].concat());
    let mut bodies = decoder(started(Version::V5, None));
    let consumed = bodies.next(&input).consumed;
    assert!(!bodies.report_bad_body());
    assert!(matches!(bodies.next(&input[consumed..]).outcome, Outcome::Frame(_)));
    assert!(bodies.report_bad_body());
}

#[test]
fn envelopes_that_do_not_fit_their_segment_close() {
    let mut negative = envelope(5, 0, 2, 5, &[]);
    negative[5..].copy_from_slice(&[0xff; 4]);
    let mut beyond = envelope(5, 0, 2, 5, &[]);
    beyond[8] = 9;
    for (payload, expected, stream) in [
        (negative, "Invalid value for envelope header body length field: -1", Some(2)),
        (beyond, "Envelope of 18 bytes does not match the 9 bytes of its frame", Some(2)),
        (vec![5, 0, 0], "Undersized buffer supplied. Expected 9, actual 3", None),
    ] {
        let input = segment(Form::Plain, true, &payload);
        let (_, refusal) = refused(&mut decoder(started(Version::V5, None)), &input);
        assert_eq!(text(&refusal), expected);
        assert_eq!((refusal.stream, refusal.close), (stream, true));
    }
    let empty = segment(Form::Plain, true, &[]);
    let step = decoder(started(Version::V5, None)).next(&empty).consumed;
    assert_eq!(step, empty.len());
}

#[test]
fn large_messages_wait_for_authentication_and_have_a_limit() {
    let body = vec![b'x'; 200];
    let message = envelope(5, 0, 3, 7, &body);
    let (first, second) = message.split_at(100);
    let parts = [segment(Form::Plain, false, first), segment(Form::Plain, false, second)].concat();

    let mut early = Decoder::new(Limits::default());
    early.start(Started { version: Version::V5, compression: None });
    let (_, refusal) = refused(&mut early, &parts);
    assert!(refusal.close);
    assert!(text(&refusal).ends_with("authentication is still pending. type = QUERY, size = 200"));

    let mut small = Decoder::new(Limits { frame: 1000, message: 199 });
    small.start(Started { version: Version::V5, compression: None });
    small.allow_large();
    let mut input = parts.clone();
    input.extend(segment(Form::Plain, true, &envelope(5, 0, 4, 5, &[])));
    let (consumed, refusal) = refused(&mut small, &input);
    assert_eq!(
        text(&refusal),
        "CQL Message of size 200 bytes exceeds allowed maximum of 199 bytes"
    );
    assert_eq!((refusal.stream, refusal.close), (Some(3), false));
    let Outcome::Frame(next) = small.next(&input[consumed..]).outcome else { panic!() };
    assert_eq!(next.header.stream, 4);

    let mut too_much = decoder(started(Version::V5, None));
    let mut input = parts[..parts.len() / 2].to_vec();
    input.truncate(segment(Form::Plain, false, first).len());
    input.extend(segment(Form::Plain, false, &[second, b"more"].concat()));
    let (_, refusal) = refused(&mut too_much, &input);
    assert!(refusal.close);
}

/// Texts that Cassandra answered malformed bodies with.
#[test]
fn malformed_bodies_are_refused_in_cassandras_words() {
    let query = |version: Version, text: &[u8], rest: &[u8]| {
        let mut body = (text.len() as u32).to_be_bytes().to_vec();
        body.extend(text);
        body.extend(rest);
        let bytes = envelope(version.number(), 0, 1, 7, &body);
        Request::parse(frame(&bytes, Direction::Request)).map(drop)
    };
    let parse = |version: u8, flags: u8, opcode: u8, body: &[u8]| {
        let bytes = envelope(version, flags, 1, opcode, body);
        Request::parse(frame(&bytes, Direction::Request)).map(drop).unwrap_err().to_string()
    };
    let v4 = |rest: &[u8]| query(Version::V4, b"select", rest).unwrap_err().to_string();
    let long = "Not enough bytes to read an UTF8 serialized string preceded by its 4 bytes length";
    for body in [&[][..], b"\0\0\0\x64abc", b"\xff\xff\xff\xffabc"] {
        assert_eq!(parse(4, 0, 7, body), long);
    }
    assert_eq!(
        query(Version::V4, b"a\xff", &[]).unwrap_err().to_string(),
        "Cannot decode string as UTF8: 'ff'; java.nio.charset.MalformedInputException: Input length = 1"
    );
    assert_eq!(v4(b"\0\x0c\0"), "Unknown code 12 for a consistency level");
    assert_eq!(
        v4(b"\0\x01\x01\0\x01\0\0\0\x63"),
        "Cannot read value of length 99, only 0 bytes remaining in the message"
    );
    assert_eq!(v4(b"\0\x01\x01\0\x01\xff\xff\xff\xfd"), "Invalid ByteBuf length -3");
    assert_eq!(query(Version::V3, b"select", b"\0\x01\x01\0\x01\xff\xff\xff\xfd"), Ok(()));
    assert_eq!(v4(b"\0\x01\x04\0\0\0\0"), "The page size cannot be 0");
    assert_eq!(
        v4(b"\0\x01\x20\x80\0\0\0\0\0\0\0"),
        "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got -9223372036854775808)"
    );
    assert_eq!(v4(b"\0\x01\x08\0\0\0\x03xyz"), "Invalid value for the paging state");
    assert_eq!(query(Version::V4, b"select", b"\0\x01\x08\xff\xff\xff\xff"), Ok(()));
    // flag 0x80 is the keyspace's, in every version
    assert_eq!(
        v4(b"\0\x01\x80"),
        "Not enough bytes to read an UTF8 serialized string preceded by its 2 bytes length"
    );
    assert_eq!(query(Version::V5, b"select", b"\0\x01\x80\0\0\0"), Ok(()));
    assert_eq!(query(Version::V4, b"select", b"\0\x01\0trailing"), Ok(()));
    assert_eq!(
        parse(4, 0, 10, &[]),
        "Not enough bytes to read a byte array preceded by its 2 bytes length"
    );
    assert_eq!(
        parse(4, 0, 13, b"\0\0\x01\x07"),
        "Invalid query kind in BATCH messages. Must be 0 or 1 but got 7"
    );
    assert_eq!(parse(4, 0, 13, b"\x07\0\0\0\x01\0"), "Invalid BATCH message type 7");
    assert_eq!(parse(4, 0, 4, &[]), "Unsupported message");
    assert_eq!(parse(4, 0, 11, b"\0\x01\0\x04NOPE"), "Invalid value 'NOPE' for Type");
    assert_eq!(
        parse(3, 0, 11, b"\0\x01\0\x0etrace_complete"),
        "Event TRACE_COMPLETE not valid for protocol version 3/v3"
    );
    assert_eq!(
        parse(3, 4, 5, b"\0\x01\0\x01k\0\0\0\x01v"),
        "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4"
    );
}

#[test]
fn startup_is_negotiated_in_cassandras_words() {
    let negotiate = |version: Version, options: &[(&str, &str)]| {
        let mut out = Vec::new();
        client::startup(&mut out, Call::new(version, 1), options);
        match Request::parse(frame(&out, Direction::Request)).unwrap() {
            Request::Startup(startup) => {
                startup.negotiate(version).map_err(|error| error.to_string())
            }
            other => panic!("{other:?}"),
        }
    };
    let refused = |version, options: &[(&str, &str)], text: &str| {
        assert_eq!(negotiate(version, options), Err(text.to_owned()));
    };
    let cql = ("cql_version", "3.0.0");
    refused(Version::V4, &[], "Missing value CQL_VERSION in STARTUP message");
    refused(
        Version::V4,
        &[("CQL_VERSION", "2.0.0")],
        "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= 3.0.0)",
    );
    refused(Version::V4, &[("CQL_VERSION", "x")], "Invalid version value: x");
    refused(
        Version::V5,
        &[cql, ("Compression", "Snappy")],
        "Snappy compression is not supported in protocol V5",
    );
    refused(Version::V4, &[cql, ("COMPRESSION", "ZStd")], "Unknown compression algorithm: zstd");
    let snappy = Started { version: Version::V4, compression: Some(Compression::Snappy) };
    assert_eq!(negotiate(Version::V4, &[cql, ("compression", "SNAPPY")]), Ok(snappy));
    let lz4 = Started { version: Version::V5, compression: Some(Compression::Lz4) };
    assert_eq!(
        negotiate(Version::V5, &[("CQL_VERSION", "3.4.7"), ("COMPRESSION", "LZ4")]),
        Ok(lz4)
    );
}

#[test]
fn compression_bombs_are_refused_before_they_are_allocated() {
    // a claim above the limit, a claim that the block cannot keep, blocks of garbage
    let claims: [&[u8]; 5] = [
        &[0x7f, 0xff, 0xff, 0xff, 0],
        &[0x00, 0xff, 0xff, 0xff, 0, 0, 0],
        &[0, 0, 0, 9, 0x10, b'a', 0, 0],
        &[0, 0],
        &[],
    ];
    let snappy: [&[u8]; 4] =
        [&[0xff, 0xff, 0xff, 0xff, 0x0f, 0], &[0xff, 0xff, 0xff, 0x07, 0], &[9, 0, b'a'], &[]];
    for (compression, bodies) in
        [(Compression::Lz4, &claims[..]), (Compression::Snappy, &snappy[..])]
    {
        for body in bodies {
            let mut decoder = decoder(started(Version::V4, Some(compression)));
            let input = envelope(4, 1, 1, 7, body);
            let (consumed, refusal) = refused(&mut decoder, &input);
            assert_eq!((consumed, refusal.stream, refusal.close), (input.len(), Some(1), false));
            assert!(decoder.buffered() < 4096, "{compression:?} {body:?}");
            assert!(matches!(
                refusal.error,
                ProtocolError::BadCompression(_) | ProtocolError::DecompressedTooBig { .. }
            ));
        }
    }
}

#[test]
fn a_bomb_is_refused_when_its_claim_is_there_and_the_rest_is_passed_over() {
    let claims: [(Compression, &[u8]); 2] = [
        (Compression::Lz4, &[0x0c, 0x80, 0, 0, 0]),
        (Compression::Snappy, &[0x80, 0x80, 0x80, 0x64, 0]),
    ];
    for (compression, claim) in claims {
        let mut decoder = decoder(started(Version::V4, Some(compression)));
        let mut input = envelope(4, 1, 1, 7, &[claim, &[0; 10_000_000]].concat());
        let body = input.split_off(9);
        let step = decoder.next(&input);
        assert_eq!((step.consumed, &step.outcome), (0, &Outcome::Wait(14)), "{compression:?}");
        input.extend_from_slice(claim);
        let (consumed, refusal) = refused(&mut decoder, &input);
        assert_eq!((consumed, refusal.stream, refusal.close), (9, Some(1), false));
        let length = 200 << 20;
        let too_big = ProtocolError::DecompressedTooBig { length, limit: Limits::default().frame };
        assert_eq!(refusal.error, too_big);
        for part in body.chunks(1 << 20) {
            let step = decoder.next(part);
            assert_eq!(step.consumed, part.len());
            assert!(matches!(step.outcome, Outcome::Wait(1 | 9)), "{:?}", step.outcome);
        }
        let mut next = Vec::new();
        client::query(&mut next, Call::new(Version::V4, 2), "select", &Parameters::default());
        assert!(matches!(decoder.next(&next).outcome, Outcome::Frame(_)));
    }
}

#[test]
fn compressed_flag_without_compression_is_ignored() {
    let mut message = Vec::new();
    client::query(&mut message, Call::new(Version::V4, 1), "select", &Parameters::default());
    message[1] |= 1;
    let mut decoder = decoder(started(Version::V4, None));
    let Outcome::Frame(frame) = decoder.next(&message).outcome else { panic!() };
    assert!(Request::parse(frame).is_ok());
}
