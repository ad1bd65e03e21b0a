//! Laws: what one side writes the other reads, however it is framed and cut; and no bytes
//! whatsoever make either side panic.

use crate::common;
mod messages;

use common::{client_decoder, drain, server_decoder, write_request, write_response};
use messages::{bytes, compressions, parameters, requests, responses, versions};
use proptest::{collection::vec, option, prelude::*, sample::select};
use protocol::{
    Compression, Consistency, Decoder, Direction, ErrorDetail, ErrorResponse, FailureReason,
    Failures, Frame, Framer, Header, Limits, Outcome, Request, Started, Version, WriteType,
    client::{self, Body, Call, Parameters, Response},
};

/// Messages, the framing they travel in, sizes to cut the bytes at, and after how many messages the
/// segment is sealed.
fn conversations() -> impl Strategy<Value = (Started, Vec<Vec<u8>>, Vec<usize>, usize)> {
    versions().prop_flat_map(|version| {
        let message = (requests(version), prop_oneof![9 => Just(0usize), 1 => 0..300_000usize])
            .prop_map(move |(request, padding)| match padding {
                0 => request,
                _ => {
                    let mut out = Vec::new();
                    let text: String =
                        (0..padding).map(|at| ((at % 26) as u8 + b'a') as char).collect();
                    client::query(&mut out, Call::new(version, 1), &text, &Parameters::default());
                    out
                }
            });
        let started =
            compressions(version).prop_map(move |compression| Started { version, compression });
        (started, vec(message, 0..8), vec(1..40_000usize, 1..5), 1..4usize)
    })
}

fn framed(started: Started, messages: &[Vec<u8>], per_flush: usize) -> Vec<u8> {
    let mut framer = Framer::new();
    framer.start(started);
    let mut out = Vec::new();
    for batch in messages.chunks(per_flush) {
        batch.iter().for_each(|message| framer.push(&mut out, message));
        framer.flush(&mut out);
    }
    out
}

/// Feeds bytes in pieces, as a connection's buffer would hold them.
fn feed(decoder: &mut Decoder, bytes: &[u8], cuts: &[usize]) -> Vec<(Header, Vec<u8>)> {
    let (mut found, mut buffer, mut at) = (Vec::new(), Vec::new(), 0);
    for cut in cuts.iter().cycle() {
        let end = (at + cut).min(bytes.len());
        buffer.extend_from_slice(&bytes[at..end]);
        at = end;
        loop {
            let step = decoder.next(&buffer);
            let consumed = step.consumed;
            let waiting = match step.outcome {
                Outcome::Frame(frame) => {
                    found.push((frame.header, frame.body.to_vec()));
                    false
                }
                Outcome::Wait(needed) => {
                    assert!(needed > buffer.len() - consumed);
                    true
                }
                Outcome::Refused(refusal) => panic!("{refusal:?}"),
            };
            buffer.drain(..consumed);
            if waiting {
                break;
            }
        }
        if at == bytes.len() {
            assert!(buffer.is_empty());
            return found;
        }
    }
    found
}

fn any_frames() -> impl Strategy<Value = (Header, Vec<u8>)> {
    let opcode = select(&protocol::Opcode::ALL[..]);
    (versions(), any::<u8>(), opcode, bytes(120)).prop_map(|(version, flags, opcode, body)| {
        let flags = protocol::Flags(flags & 0x0e);
        let header = Header { version, flags, stream: 1, opcode, length: body.len() as u32 };
        (header, body)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn requests_round_trip(bytes in versions().prop_flat_map(requests)) {
        let frame = common::frame(&bytes, Direction::Request);
        let request = Request::parse(frame).unwrap();
        prop_assert_eq!(write_request(&frame, request), bytes);
    }

    #[test]
    fn responses_round_trip(response in versions().prop_flat_map(responses)) {
        let bytes = write_response(&response);
        let frame = common::frame(&bytes, Direction::Response);
        prop_assert_eq!(Response::parse(frame).unwrap(), response);
    }

    #[test]
    fn values_are_found_by_index(
        (version, parameters) in versions()
            .prop_flat_map(|version| (Just(version), parameters(version, true))),
    ) {
        let mut bytes = Vec::new();
        client::query(&mut bytes, Call::new(version, 1), "", &parameters);
        let frame = common::frame(&bytes, Direction::Request);
        let Request::Query { options, .. } = Request::parse(frame).unwrap() else { panic!() };
        let values = options.values;
        let all: Vec<_> = values.iter().collect();
        prop_assert_eq!(all.len(), parameters.values.len());
        for (index, value) in all.iter().enumerate() {
            prop_assert_eq!(values.get(index), Some(*value));
        }
        prop_assert_eq!(values.get(all.len()), None);
        for name in &parameters.names {
            let first = parameters.names.iter().position(|other| other == name).unwrap();
            prop_assert_eq!(values.by_name(name), Some(all[first]));
        }
    }

    /// Every request cut short is refused or, where the end was optional, read.
    #[test]
    fn truncated_requests_do_no_harm(bytes in versions().prop_flat_map(requests)) {
        let whole = common::frame(&bytes, Direction::Request);
        for cut in 0..whole.body.len() {
            let frame = Frame { header: whole.header, body: &whole.body[..cut] };
            if let Ok(request) = Request::parse(frame) {
                write_request(&frame, request);
            }
        }
    }

    #[test]
    fn truncated_responses_do_no_harm(response in versions().prop_flat_map(responses)) {
        let bytes = write_response(&response);
        let whole = common::frame(&bytes, Direction::Response);
        for cut in 0..whole.body.len() {
            let _ = Response::parse(Frame { header: whole.header, body: &whole.body[..cut] });
        }
    }

    /// Lengths that lie: every byte of a message, changed.
    #[test]
    fn damaged_requests_do_no_harm(
        bytes in versions().prop_flat_map(requests),
        by in 1u8..=255,
    ) {
        let whole = common::frame(&bytes, Direction::Request);
        let mut body = whole.body.to_vec();
        for index in 0..body.len() {
            body[index] = body[index].wrapping_add(by);
            let frame = Frame { header: whole.header, body: &body };
            if let Ok(request) = Request::parse(frame) {
                write_request(&frame, request);
            }
            body[index] = body[index].wrapping_sub(by);
        }
    }

    #[test]
    fn any_body_is_read_or_refused((header, body) in any_frames()) {
        let frame = Frame { header, body: &body };
        if let Ok(request) = Request::parse(frame) {
            write_request(&frame, request);
        }
        let _ = Response::parse(frame);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn framing_round_trips((started, messages, cuts, per_flush) in conversations()) {
        let bytes = framed(started, &messages, per_flush);
        let mut decoder = server_decoder();
        decoder.start(started);
        decoder.allow_large();
        let found = feed(&mut decoder, &bytes, &cuts);
        prop_assert_eq!(found.len(), messages.len());
        for ((header, body), message) in found.iter().zip(&messages) {
            let sent = common::frame(message, Direction::Request);
            prop_assert_eq!(header.opcode, sent.header.opcode);
            prop_assert_eq!(body.as_slice(), sent.body);
        }
    }

    /// Any bytes at all, in any state of a connection; what is held for it stays in bounds.
    #[test]
    fn any_bytes_are_decoded_or_refused(
        version in versions(),
        compression in option::of(select(vec![Compression::Lz4, Compression::Snappy])),
        before in any::<bool>(),
        bytes in vec(any::<u8>(), 0..2000),
        cuts in vec(1..200usize, 1..5),
    ) {
        let compression = compression
            .filter(|it| *it != Compression::Snappy || version < Version::V5);
        let limits = Limits { frame: 4096, message: 4096 };
        let mut decoder = Decoder::new(limits);
        if !before {
            decoder.start(Started { version, compression });
            decoder.allow_large();
        }
        run(&mut decoder, &bytes, &cuts)?;
    }

    /// Valid framing around damaged envelopes.
    #[test]
    fn damaged_payloads_are_decoded_or_refused(
        (started, messages, cuts, per_flush) in conversations(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut messages = messages;
        for message in &mut messages {
            for (index, value) in &damage {
                let at = index.index(message.len());
                message[at] = *value;
            }
        }
        let bytes = framed(started, &messages, per_flush);
        let mut decoder = server_decoder();
        decoder.start(started);
        decoder.allow_large();
        run(&mut decoder, &bytes, &cuts)?;
    }

    /// Damaged bytes on the wire.
    #[test]
    fn damaged_framing_is_decoded_or_refused(
        (started, messages, cuts, per_flush) in conversations(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = framed(started, &messages, per_flush);
        for (index, value) in damage {
            if !bytes.is_empty() {
                let at = index.index(bytes.len());
                bytes[at] = value;
            }
        }
        let mut decoder = server_decoder();
        decoder.start(started);
        decoder.allow_large();
        run(&mut decoder, &bytes, &cuts)?;
    }
}

/// Decodes until the input ends or the connection closes.
fn run(decoder: &mut Decoder, bytes: &[u8], cuts: &[usize]) -> Result<(), TestCaseError> {
    /// What a decoder may hold: a body, a message of several segments (doubled by growth) and one
    /// segment, at the default limits.
    const MOST_HELD: usize = 3 * (16 << 20) + (128 << 10);
    let (mut buffer, mut at) = (Vec::new(), 0);
    for cut in cuts.iter().cycle() {
        let end = (at + cut).min(bytes.len());
        buffer.extend_from_slice(&bytes[at..end]);
        at = end;
        loop {
            let step = decoder.next(&buffer);
            let consumed = step.consumed;
            prop_assert!(consumed <= buffer.len());
            let (waiting, bad) = match step.outcome {
                Outcome::Frame(frame) => (false, Request::parse(frame).is_err()),
                Outcome::Wait(_) => (true, false),
                Outcome::Refused(refusal) => {
                    protocol::response::refusal(&mut Vec::new(), &refusal);
                    if refusal.close {
                        return Ok(());
                    }
                    (false, false)
                }
            };
            if bad && decoder.report_bad_body() {
                return Ok(());
            }
            prop_assert!(decoder.buffered() <= MOST_HELD);
            buffer.drain(..consumed);
            if waiting {
                break;
            }
        }
        if at == bytes.len() {
            break;
        }
    }
    Ok(())
}

#[test]
fn downgraded_errors_are_cassandras() {
    let endpoint = "127.0.0.1:7000".parse().unwrap();
    let failures = [(endpoint, FailureReason::ReadTooManyTombstones)];
    let error = |version: Version, error: &ErrorResponse| {
        let mut out = Vec::new();
        protocol::Reply::new(version, 1).error(&mut out, error);
        let frame = common::frame(&out, Direction::Response);
        let Body::Error(error) = Response::parse(frame).unwrap().body else { panic!() };
        error
    };
    let level = Consistency::Quorum;
    let read = ErrorResponse::read_failure(level, 1, 2, true, &failures);
    assert_eq!(
        read.message,
        "Operation failed - received 1 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from /127.0.0.1:7000"
    );
    assert_eq!(error(Version::V3, &read), ErrorResponse::read_timeout(level, 1, 2, true));
    assert!(matches!(
        error(Version::V4, &read).detail,
        ErrorDetail::ReadFailure { failures: Failures::Counted(1), .. }
    ));
    assert_eq!(error(Version::V5, &read), read);
    let write = ErrorResponse::write_failure(level, 1, 2, WriteType::Simple, &failures);
    assert_eq!(
        error(Version::V3, &write),
        ErrorResponse::write_timeout(level, 1, 2, WriteType::Simple)
    );
    for cas in [ErrorResponse::cas_timeout(level, 1, 2, 3), ErrorResponse::cas_unknown(level, 1, 2)]
    {
        for version in [Version::V3, Version::V4] {
            let older = ErrorResponse::write_timeout(level, 1, 2, WriteType::Cas);
            assert_eq!(error(version, &cas), older);
        }
        assert_eq!(error(Version::V5, &cas), cas);
    }
    let cdc = ErrorResponse { message: "full".to_owned(), detail: ErrorDetail::CdcWriteFailure };
    let older = ErrorResponse {
        message: "ERROR CDC_WRITE_FAILURE: full".to_owned(),
        detail: ErrorDetail::Invalid,
    };
    assert_eq!(error(Version::V3, &cdc), older);
    assert_eq!(error(Version::V4, &cdc), cdc);
}

#[test]
fn deeply_nested_types_are_refused() {
    let mut body = vec![0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1];
    body.extend([0, 0, 0, 0, 0, 0]);
    body.extend([0, 0x20].repeat(100_000));
    let header = Header {
        version: Version::V5,
        flags: protocol::Flags::default(),
        stream: 1,
        opcode: protocol::Opcode::Result,
        length: body.len() as u32,
    };
    let refused = Response::parse(Frame { header, body: &body });
    assert_eq!(refused, Err(protocol::ProtocolError::TypeDepth(64)));
}

#[test]
fn nothing_is_left_of_an_abandoned_page() {
    let metadata = protocol::ResultMetadata::none();
    let reply = protocol::Reply::new(Version::V5, 1);
    let mut out = b"before".to_vec();
    let mut rows = protocol::Rows::begin(&mut out, &reply, &metadata, protocol::MetadataForm::Full);
    protocol::Rows::value_with(&mut out, |out| out.extend(b"abc"));
    rows.end_row();
    assert!(rows.body_length(&out) > 0);
    rows.abandon(&mut out);
    assert_eq!(out, b"before");
}

#[test]
fn metadata_changes_from_version_5_on_only() {
    let metadata = protocol::ResultMetadata::new(&[], protocol::class_name::class_name);
    let page = |version, form| {
        let mut out = Vec::new();
        let reply = protocol::Reply::new(version, 1);
        protocol::Rows::begin(&mut out, &reply, &metadata, form).finish(&mut out, None);
        out
    };
    use protocol::MetadataForm::{Changed, Full};
    assert_eq!(page(Version::V4, Changed), page(Version::V4, Full));
    assert_eq!(page(Version::V5, Changed).len(), page(Version::V5, Full).len() + 18);
}

#[test]
fn flushing_nothing_writes_nothing() {
    let mut framer = Framer::new();
    framer.start(Started { version: Version::V5, compression: None });
    let mut out = Vec::new();
    framer.begin(&mut out);
    framer.flush(&mut out);
    framer.flush(&mut out);
    assert!(out.is_empty());
    assert!(drain(&mut client_decoder(), &out).is_empty());
}
