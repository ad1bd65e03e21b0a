//! The way in: finds messages in a connection's input buffer, in place, without any I/O.

use std::ops::Range;

use segment::{Form, Found as InInput, Segment, TRAILER_LENGTH, decompress, reset_scratch};

use crate::{
    compression::{CLAIM_LENGTH, Compression, claimed_length, decompress_body},
    error::ProtocolError,
    header::{Flags, HEADER_LENGTH, Header, LENGTH_OFFSET, OLD_HEADER_LENGTH},
    opcode::Direction,
    version::Version,
};

/// Default of `native_transport_max_frame_size`, in bytes: header and body of a message outside
/// segments.
pub const DEFAULT_MAX_FRAME: u32 = 16 << 20;
/// Errors in a row within one segment after which the rest of it is garbage
/// (`consecutive_message_errors_threshold`).
pub const MAX_CONSECUTIVE_ERRORS: u32 = 1;

/// Limits of what a peer may make us buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Header and body of a message outside segments, and a body after decompression
    /// (`native_transport_max_frame_size`).
    pub frame: u32,
    /// Body of a message that spans segments (`native_transport_max_message_size`).
    pub message: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: DEFAULT_MAX_FRAME, message: DEFAULT_MAX_FRAME }
    }
}

/// What STARTUP settled for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Version of the STARTUP message.
    pub version: Version,
    /// The compression it asked for; Snappy only before version 5.
    pub compression: Option<Compression>,
}

impl Started {
    pub(crate) fn form(self) -> Form {
        if self.compression.is_some() { Form::Lz4 } else { Form::Plain }
    }
}

/// A message: its header, and its body decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header as it came; its length is that of the body as it travelled.
    pub header: Header,
    /// The body.
    pub body: &'a [u8],
}

/// Why a message was not taken. [`response::refusal`](crate::response::refusal) writes the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub error: ProtocolError,
    /// Stream to answer on; none where no stream can be known (Cassandra then answers on 0).
    pub stream: Option<i16>,
    /// Version to answer in. 1 and 2 stand for themselves: their header has 8 bytes.
    pub version: u8,
    /// Must the connection be closed after the answer?
    pub close: bool,
}

/// One step over the input.
#[derive(Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Bytes at the front of the input that are done with once the outcome is.
    pub consumed: usize,
    /// What was found.
    pub outcome: Outcome<'a>,
}

/// What a step found.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Nothing yet; behind what is consumed at least this many bytes must be there for the next
    /// step to find anything (never more than the limits and one segment).
    Wait(usize),
    /// A message.
    Frame(Frame<'a>),
    /// Something wrong.
    Refused(Refusal),
}

/// Finds messages in what one connection receives.
#[derive(Debug)]
pub struct Decoder {
    from: Direction,
    limits: Limits,
    started: Option<Started>,
    /// May messages span segments yet?
    large_allowed: bool,
    state: State,
    /// Errors in a row in the segment at hand.
    errors: u32,
    /// The last message found has not been reported as bad.
    sound: bool,
    closed: bool,
    /// Holds a decompressed body or segment.
    plain: Vec<u8>,
    /// Holds the parts of a message that spans segments.
    large: Option<Large>,
    large_body: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At the start of an envelope or segment.
    Boundary,
    /// Within a body that is not wanted.
    Discard(u64),
    /// Within the payload of a checked segment that lies in the input; `left` bytes of it are.
    InInput { left: usize },
    /// Within the payload of a segment that lies in `plain`.
    InPlain { at: usize },
}

#[derive(Clone, Copy, Debug)]
struct Large {
    header: Header,
    /// Bytes of the body that are still to come.
    left: u64,
    /// Drop the bytes: it was refused already.
    refused: bool,
}

enum Found {
    Nothing,
    Wait(usize),
    Message(Header, Place),
    Wrong(Refusal),
}

enum Place {
    Input(Range<usize>),
    Plain(Range<usize>),
    Large,
}

impl Decoder {
    /// A decoder for the server's side of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self::reading(Direction::Request, limits)
    }

    /// A decoder of what `from` sends.
    pub fn reading(from: Direction, limits: Limits) -> Self {
        Self {
            from,
            limits,
            started: None,
            large_allowed: false,
            state: State::Boundary,
            errors: 0,
            sound: true,
            closed: false,
            plain: Vec::new(),
            large: None,
            large_body: Vec::new(),
        }
    }

    /// STARTUP is agreed on: what follows it is read accordingly. The server calls this between
    /// taking STARTUP and the next step; the client when the answer to its STARTUP is there.
    pub fn start(&mut self, started: Started) {
        self.started = Some(started);
    }

    /// The client is authenticated: messages may span segments from now on.
    pub fn allow_large(&mut self) {
        self.large_allowed = true;
    }

    /// Is what comes next of no use to anybody: the rest of a message that was refused?
    pub fn is_discarding(&self) -> bool {
        matches!(self.state, State::Discard(_)) || self.large.is_some_and(|large| large.refused)
    }

    /// Bytes that the decoder itself holds for the connection: never more than a body outside
    /// segments or one segment after decompression, and a message that spans segments.
    pub fn buffered(&self) -> usize {
        self.plain.capacity() + self.large_body.capacity()
    }

    /// The body of the last message found is malformed. Returns whether that is the error in a row
    /// after which the connection must be closed (from version 5 on).
    pub fn report_bad_body(&mut self) -> bool {
        self.sound = false;
        if !self.is_segmented() {
            return false;
        }
        self.errors += 1;
        self.closed |= self.errors > MAX_CONSECUTIVE_ERRORS;
        self.closed
    }

    /// Looks for the next message at the front of `input`.
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> Step<'a> {
        let mut consumed = 0;
        loop {
            let rest = input.get(consumed..).unwrap_or_default();
            let (used, found) = self.advance(rest);
            let at = consumed;
            consumed += used.min(rest.len());
            let outcome = match found {
                Found::Nothing => continue,
                Found::Wait(bytes) => Outcome::Wait(bytes),
                Found::Wrong(refusal) => {
                    self.closed |= refusal.close;
                    Outcome::Refused(refusal)
                }
                Found::Message(header, place) => {
                    self.sound = true;
                    let body = match place {
                        Place::Input(range) => input.get(at + range.start..at + range.end),
                        Place::Plain(range) => self.plain.get(range),
                        Place::Large => Some(self.large_body.as_slice()),
                    };
                    Outcome::Frame(Frame { header, body: body.unwrap_or_default() })
                }
            };
            return Step { consumed, outcome };
        }
    }

    fn is_segmented(&self) -> bool {
        self.started.is_some_and(|started| started.version.is_segmented())
    }

    fn answer_version(&self) -> u8 {
        self.started.map_or(Version::CURRENT, |started| started.version).number()
    }

    fn refuse(&self, error: ProtocolError, stream: Option<i16>, close: bool) -> Found {
        let version = match &error {
            ProtocolError::UnsupportedVersion(number @ (1 | 2)) => *number,
            ProtocolError::BetaNotRequested(version) => version.number(),
            _ => self.answer_version(),
        };
        Found::Wrong(Refusal { error, stream, version, close })
    }

    /// One move: bytes used, and what they held.
    fn advance(&mut self, input: &[u8]) -> (usize, Found) {
        if self.closed {
            return (input.len(), Found::Wait(1));
        }
        if self.sound {
            self.errors = 0;
        }
        match self.state {
            State::Discard(left) => self.discard(input, left),
            State::Boundary => match self.started.filter(|it| it.version.is_segmented()) {
                Some(started) => self.segment(input, started),
                None => self.bare(input),
            },
            State::InInput { left } => self.in_input(input, left),
            State::InPlain { at } => self.in_plain(at),
        }
    }

    fn discard(&mut self, input: &[u8], left: u64) -> (usize, Found) {
        let used = left.min(input.len() as u64);
        if used == left {
            self.state = State::Boundary;
            (used as usize, Found::Nothing)
        } else {
            self.state = State::Discard(left - used);
            (used as usize, Found::Wait(1))
        }
    }

    /// An envelope outside segments.
    fn bare(&mut self, input: &[u8]) -> (usize, Found) {
        reset_scratch(&mut self.plain);
        let Some(first) = input.first() else { return (0, Found::Wait(HEADER_LENGTH)) };
        if let Err(error) = Version::from_number(first & 0x7f) {
            return self.unknown_version(input, first & 0x7f, error);
        }
        let Some(bytes) = input.first_chunk::<HEADER_LENGTH>() else {
            return (0, Found::Wait(HEADER_LENGTH));
        };
        let length = raw_length(bytes);
        let total = HEADER_LENGTH as u64 + u64::from(length);
        let header = match Header::parse(bytes, self.from) {
            Ok(header) => header,
            Err(error @ ProtocolError::BetaNotRequested(_)) => {
                return (input.len(), self.refuse(error, Some(raw_stream(bytes)), false));
            }
            Err(error) => return self.skip(bytes, error),
        };
        if total > u64::from(self.limits.frame) {
            let limit = self.limits.frame;
            return self.skip(bytes, ProtocolError::FrameTooBig { length: total, limit });
        }
        if let Some(started) = self.started
            && started.version != header.version
        {
            let (got, had) = (header.version, started.version);
            return self.skip(bytes, ProtocolError::VersionChanged { got, had });
        }
        let total = total as usize;
        if input.len() < total {
            return self.bare_beginning(bytes, header, input, total);
        }
        (total, self.bare_body(header, input.get(HEADER_LENGTH..total).unwrap_or_default()))
    }

    /// An envelope of which `input` is the beginning. A body that claims to become too much is
    /// refused before megabytes of it are held.
    fn bare_beginning(
        &mut self,
        bytes: &[u8; HEADER_LENGTH],
        header: Header,
        input: &[u8],
        total: usize,
    ) -> (usize, Found) {
        let Some(compression) = self.compression_of(header) else {
            return (0, Found::Wait(total));
        };
        let claim_end = total.min(HEADER_LENGTH + CLAIM_LENGTH);
        let Some(start) = input.get(HEADER_LENGTH..claim_end) else {
            return (0, Found::Wait(claim_end));
        };
        match claimed_length(compression, start, total - HEADER_LENGTH, self.limits.frame) {
            Ok(_) => (0, Found::Wait(total)),
            Err(error) => self.skip(bytes, error),
        }
    }

    /// How the body of an envelope outside segments is compressed.
    fn compression_of(&self, header: Header) -> Option<Compression> {
        let is_compressed = header.flags.contains(Flags::COMPRESSED);
        self.started.and_then(|started| started.compression).filter(|_| is_compressed)
    }

    fn bare_body(&mut self, header: Header, body: &[u8]) -> Found {
        let range = HEADER_LENGTH..HEADER_LENGTH + body.len();
        match self.compression_of(header) {
            Some(compression) => {
                match decompress_body(compression, body, self.limits.frame, &mut self.plain) {
                    Ok(()) => Found::Message(header, Place::Plain(0..self.plain.len())),
                    Err(error) => self.refuse(error, Some(header.stream), false),
                }
            }
            None => Found::Message(header, Place::Input(range)),
        }
    }

    /// Answers a version that we do not speak. Its framing is unknown, so all that is there goes.
    fn unknown_version(
        &mut self,
        input: &[u8],
        number: u8,
        error: ProtocolError,
    ) -> (usize, Found) {
        let old = number < Version::V3.number();
        let needed = if old { OLD_HEADER_LENGTH } else { HEADER_LENGTH };
        match (input.len() >= needed, input) {
            (true, [_, _, high, low, ..]) => {
                // versions 1 and 2 have one byte of stream
                let stream = if old {
                    i16::from(i8::from_be_bytes([*high]))
                } else {
                    i16::from_be_bytes([*high, *low])
                };
                (input.len(), self.refuse(error, Some(stream), false))
            }
            _ => (0, Found::Wait(needed)),
        }
    }

    /// Refuses an envelope whose header is understood well enough to pass over its body.
    fn skip(&mut self, bytes: &[u8; HEADER_LENGTH], error: ProtocolError) -> (usize, Found) {
        self.state = State::Discard(u64::from(raw_length(bytes)));
        (HEADER_LENGTH, self.refuse(error, Some(raw_stream(bytes)), false))
    }

    /// The start of a segment.
    fn segment(&mut self, input: &[u8], started: Started) -> (usize, Found) {
        let form = started.form();
        if self.large.is_none() {
            reset_scratch(&mut self.large_body);
        }
        let Segment { header, payload, total } = match Segment::find(form, input) {
            InInput::Part(needed) => return (0, Found::Wait(needed)),
            InInput::Whole(segment) => segment,
            InInput::BadHeader(mismatch) => {
                let (read, computed) = (mismatch.read, mismatch.computed);
                let error = ProtocolError::CorruptSegmentHeader { read, computed };
                return (input.len(), self.refuse(error, None, true));
            }
            InInput::BadPayload(mismatch, _) => {
                let (read, computed) = (mismatch.read, mismatch.computed);
                let error = ProtocolError::CorruptSegmentBody { read, computed };
                return (input.len(), self.refuse(error, None, true));
            }
        };
        self.errors = 0;
        if let Some(length) = header.uncompressed {
            self.plain.clear();
            self.plain.resize(length, 0);
            if decompress(payload, &mut self.plain).is_none() {
                let error = ProtocolError::CorruptSegmentBlock("lengths do not match");
                return (input.len(), self.refuse(error, None, true));
            }
        }
        match (header.self_contained, header.uncompressed) {
            (true, None) => {
                self.state = State::InInput { left: header.length };
                (form.header_length(), Found::Nothing)
            }
            (true, Some(_)) => {
                self.state = State::InPlain { at: 0 };
                (total, Found::Nothing)
            }
            (false, None) => (total, self.part(payload, started)),
            (false, Some(_)) => {
                let plain = std::mem::take(&mut self.plain);
                let found = self.part(&plain, started);
                self.plain = plain;
                (total, found)
            }
        }
    }

    fn in_input(&mut self, input: &[u8], left: usize) -> (usize, Found) {
        if left == 0 {
            self.state = State::Boundary;
            return (TRAILER_LENGTH, Found::Nothing);
        }
        // the segment was complete when its checksum was verified, so its payload still is
        let payload = input.get(..left).unwrap_or(input);
        match self.envelope(payload) {
            Ok((header, used)) => {
                self.state = State::InInput { left: left - used };
                (used, Found::Message(header, Place::Input(HEADER_LENGTH..used)))
            }
            Err((used, found)) => {
                self.state = State::InInput { left: left - used };
                (used, found)
            }
        }
    }

    fn in_plain(&mut self, at: usize) -> (usize, Found) {
        let plain = std::mem::take(&mut self.plain);
        let payload = plain.get(at..).unwrap_or_default();
        let found = if payload.is_empty() {
            self.state = State::Boundary;
            Found::Nothing
        } else {
            match self.envelope(payload) {
                Ok((header, used)) => {
                    self.state = State::InPlain { at: at + used };
                    Found::Message(header, Place::Plain(at + HEADER_LENGTH..at + used))
                }
                Err((used, found)) => {
                    self.state = State::InPlain { at: at + used };
                    found
                }
            }
        };
        self.plain = plain;
        (0, found)
    }

    /// The envelope at the front of a self-contained segment's payload and its length; or what is
    /// wrong with it and how far to go on.
    fn envelope(&mut self, payload: &[u8]) -> Result<(Header, usize), (usize, Found)> {
        let Some(bytes) = payload.first_chunk::<HEADER_LENGTH>() else {
            let error = ProtocolError::ShortEnvelope(payload.len());
            return Err((payload.len(), self.refuse(error, None, true)));
        };
        let stream = Some(raw_stream(bytes));
        let length = raw_length(bytes);
        let total = HEADER_LENGTH as u64 + u64::from(length);
        if length > i32::MAX as u32 {
            let error = ProtocolError::NegativeLength(length as i32);
            return Err((payload.len(), self.refuse(error, stream, true)));
        }
        let header = Header::parse(bytes, self.from).and_then(|header| self.same_version(header));
        let available = payload.len() as u64;
        match header {
            Ok(header) if total <= available => Ok((header, total as usize)),
            Ok(_) => {
                let error = ProtocolError::EnvelopeBounds { length: total, available };
                Err((payload.len(), self.refuse(error, stream, true)))
            }
            Err(error) => {
                self.errors += 1;
                self.sound = false;
                let close = self.errors > MAX_CONSECUTIVE_ERRORS;
                Err((total.min(available) as usize, self.refuse(error, stream, close)))
            }
        }
    }

    fn same_version(&self, header: Header) -> Result<Header, ProtocolError> {
        match self.started {
            Some(started) if started.version != header.version => {
                let (got, had) = (header.version, started.version);
                Err(ProtocolError::VersionChangedInSegment { got, had })
            }
            _ => Ok(header),
        }
    }

    /// A part of a message that spans segments.
    fn part(&mut self, payload: &[u8], started: Started) -> Found {
        match self.large.take() {
            None => self.first_part(payload, started),
            Some(large) => self.next_part(large, payload),
        }
    }

    fn first_part(&mut self, payload: &[u8], started: Started) -> Found {
        let Some((bytes, rest)) = payload.split_first_chunk::<HEADER_LENGTH>() else {
            return self.refuse(ProtocolError::ShortEnvelope(payload.len()), None, true);
        };
        let stream = Some(raw_stream(bytes));
        let length = raw_length(bytes);
        if length > i32::MAX as u32 {
            return self.refuse(ProtocolError::NegativeLength(length as i32), stream, true);
        }
        let header = match Header::parse(bytes, self.from).and_then(|it| self.same_version(it)) {
            Ok(header) => header,
            Err(error) => return self.refuse(error, stream, true),
        };
        if !self.large_allowed && self.from == Direction::Request {
            let error = ProtocolError::LargeTooEarly { opcode: header.opcode, length };
            return self.refuse(error, stream, true);
        }
        let refused = length > self.limits.message;
        let large = Large { header, left: u64::from(length), refused };
        debug_assert_eq!(header.version, started.version);
        if refused {
            self.errors = 0;
            let limit = self.limits.message;
            let found = self.refuse(ProtocolError::MessageTooBig { length, limit }, stream, false);
            return match self.next_part(large, rest) {
                Found::Wrong(wrong) => Found::Wrong(wrong),
                _ => found,
            };
        }
        self.next_part(large, rest)
    }

    fn next_part(&mut self, mut large: Large, payload: &[u8]) -> Found {
        let available = payload.len() as u64;
        let Some(left) = large.left.checked_sub(available) else {
            let error = ProtocolError::EnvelopeBounds { length: large.left, available };
            return self.refuse(error, Some(large.header.stream), true);
        };
        if !large.refused {
            self.large_body.extend_from_slice(payload);
        }
        if left > 0 {
            large.left = left;
            self.large = Some(large);
            return Found::Nothing;
        }
        if large.refused { Found::Nothing } else { Found::Message(large.header, Place::Large) }
    }
}

fn raw_length(bytes: &[u8; HEADER_LENGTH]) -> u32 {
    let length = bytes.get(LENGTH_OFFSET..).and_then(|length| length.first_chunk());
    length.map_or(0, |length| u32::from_be_bytes(*length))
}

fn raw_stream(bytes: &[u8; HEADER_LENGTH]) -> i16 {
    let [_, _, high, low, ..] = *bytes;
    i16::from_be_bytes([high, low])
}
