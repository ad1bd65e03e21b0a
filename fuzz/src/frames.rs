//! What a client sends: frames before and after STARTUP, segments, and the messages in them.

use protocol::{
    Compression, Decoder, Frame, Header, Limits, Outcome, PagingState, Request, Started, Version,
};
use segment::{Form, SegmentHeader, TRAILER_LENGTH, crc32};

/// Small limits: lengths that lie are found with short inputs.
const LIMITS: Limits = Limits { frame: 1 << 16, message: 1 << 17 };
/// The most that a decoder may hold: a frame, a message over segments, a segment after
/// decompression.
const BUFFERED_MAX: usize = (1 << 16) + (1 << 17) + (1 << 18);

fn started(choice: u8) -> Option<Started> {
    let (version, compression) = match choice % 8 {
        0 => return None,
        1 => (Version::V3, None),
        2 => (Version::V4, None),
        3 => (Version::V4, Some(Compression::Lz4)),
        4 => (Version::V3, Some(Compression::Snappy)),
        5 => (Version::V5, None),
        _ => (Version::V5, Some(Compression::Lz4)),
    };
    Some(Started { version, compression })
}

/// Feeds bytes as they would come, `piece` at a time.
fn feed(decoder: &mut Decoder, bytes: &[u8], piece: usize) {
    let mut input: Vec<u8> = Vec::new();
    for part in bytes.chunks(piece.max(1)) {
        input.extend_from_slice(part);
        loop {
            let step = decoder.next(&input);
            let consumed = step.consumed;
            assert!(consumed <= input.len(), "more is consumed than there is");
            let (waits, bad) = match step.outcome {
                Outcome::Wait(_) => (true, false),
                Outcome::Frame(frame) => (false, message(frame).is_none()),
                Outcome::Refused(_) => (false, false),
            };
            if bad {
                decoder.report_bad_body();
            }
            assert!(decoder.buffered() <= BUFFERED_MAX, "{} bytes are held", decoder.buffered());
            input.drain(..consumed);
            if waits {
                break;
            }
        }
    }
}

/// Looks at all of a message. None if it is malformed.
fn message(frame: Frame<'_>) -> Option<()> {
    let request = Request::parse(frame).ok()?;
    match request {
        Request::Query { options, .. } | Request::Execute { options, .. } => {
            (0..options.values.len()).for_each(|index| _ = options.values.get(index));
        }
        Request::Batch(batch) => {
            let entries: Vec<_> = batch.entries().collect();
            assert_eq!(entries.len(), batch.len(), "entries of a batch");
            for entry in entries {
                (0..entry.values.len()).for_each(|index| _ = entry.values.get(index));
            }
        }
        Request::Register(register) => register.events().for_each(drop),
        Request::Startup(startup) => {
            startup.options().for_each(drop);
            let _ = startup.negotiate(frame.header.version);
        }
        Request::Options | Request::AuthResponse(_) | Request::Prepare { .. } => {}
    }
    Some(())
}

/// Bytes of a connection: the first says what STARTUP settled, the second how many come at a time.
pub fn frames(data: &[u8]) {
    let Some(([choice, piece], bytes)) = data.split_first_chunk::<2>() else { return };
    let mut decoder = Decoder::new(LIMITS);
    if let Some(started) = started(*choice) {
        decoder.start(started);
    }
    if choice & 0x80 != 0 {
        decoder.allow_large();
    }
    feed(&mut decoder, bytes, usize::from(*piece));
}

/// Payloads in segments whose checksums are right: each is preceded by its flags and length.
pub fn segments(data: &[u8]) {
    let Some(([choice], mut rest)) = data.split_first_chunk::<1>() else { return };
    let compressed = choice & 1 != 0;
    let form = if compressed { Form::Lz4 } else { Form::Plain };
    let mut wire = Vec::new();
    while let Some(([flags, length, claimed], more)) = rest.split_first_chunk::<3>() {
        let (payload, after) = more.split_at(usize::from(*length).min(more.len()));
        rest = after;
        let claimed = usize::from(*claimed) << (flags >> 5);
        let header = SegmentHeader {
            length: payload.len(),
            uncompressed: compressed.then_some(claimed),
            self_contained: flags & 1 != 0,
        };
        wire.extend_from_slice(&header.encode(form)[..form.header_length()]);
        wire.extend_from_slice(payload);
        let checksum = crc32(payload).to_le_bytes();
        wire.extend_from_slice(&checksum[..TRAILER_LENGTH]);
    }
    let mut decoder = Decoder::new(LIMITS);
    let compression = compressed.then_some(Compression::Lz4);
    decoder.start(Started { version: Version::V5, compression });
    if choice & 2 != 0 {
        decoder.allow_large();
    }
    feed(&mut decoder, &wire, if choice & 4 != 0 { 7 } else { wire.len() });
}

/// One message with a header that is right: version, flags, opcode, body. And the body as a paging
/// state.
pub fn messages(data: &[u8]) {
    let Some(([version, flags, opcode], body)) = data.split_first_chunk::<3>() else { return };
    let version = [3, 4, 5][usize::from(version % 3)];
    let mut bytes = vec![version, *flags, 0, 1, *opcode];
    bytes.extend_from_slice(&(body.len() as u32).to_be_bytes());
    let header = bytes.first_chunk().map(|head| Header::parse(head, protocol::Direction::Request));
    if let Some(Ok(header)) = header {
        let _ = message(Frame { header, body });
        if let Ok(state) = PagingState::parse(body, header.version) {
            let again = written(&state, header.version);
            let read = PagingState::parse(&again, header.version).expect("what was written");
            assert_eq!(written(&read, header.version), again, "a paging state read back");
        }
    }
}

fn written(state: &PagingState<'_>, version: Version) -> Vec<u8> {
    use protocol::paging_state::RowMark;
    // a state of another version's form is written in this one's only by who knows the table
    let row_mark = match (state.row_mark, version) {
        (Some(RowMark::CellName(_)), Version::V4 | Version::V5) => None,
        (Some(RowMark::Clustering(_)), Version::V3) => None,
        (mark, _) => mark,
    };
    let mut out = Vec::new();
    PagingState { row_mark, ..*state }.write(version, &mut out);
    out
}
