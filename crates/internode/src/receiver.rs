//! The way in: finds messages in a connection's input, in place (`net.InboundMessageHandler`).
//!
//! What is damaged costs as little as it can: a segment of whole messages is passed over, a large
//! message whose parts came damaged is waited for and dropped. Where it is not known what comes
//! next, the connection must end.

use std::ops::Range;

use segment::{Form, Found, MAX_PAYLOAD, Mismatch, Segment, decompress, reset_scratch};
use thiserror::Error;
use types::ReadError;

use crate::handshake::Framing;
use crate::header::{Envelope, Flags, Header, HeaderError};

/// Default of `internode_max_message_size`, in bytes.
pub const DEFAULT_MAX_MESSAGE: u64 = crate::quota::ENDPOINT_BYTES;

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: &'a [u8],
    /// Bytes of it all.
    pub size: u64,
    /// Did it come in parts? [`Receiver::take_large`] hands such a payload over without a copy.
    pub is_large: bool,
}

/// A message that was passed over.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its id.
    pub id: u64,
    /// Its flags: its sender may want to know.
    pub flags: Flags,
    /// Bytes of it all.
    pub size: u64,
    /// What is wrong with its header.
    pub error: HeaderError,
}

/// What was lost to a wrong checksum.
#[derive(Debug, PartialEq, Eq)]
pub enum Corruption {
    /// A segment; which messages it held is not known.
    Segment(Mismatch),
    /// A large message, after all of it came.
    Large {
        /// Its header.
        header: Header,
        /// Bytes of it all.
        size: u64,
    },
}

/// Why the connection must end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The checksum of a segment's header is wrong.
    #[error("a frame's header fails its checksum: {:#08x} read, {:#08x} computed", .0.read, .0.computed)]
    Header(Mismatch),
    /// The first part of a large message was damaged: nobody knows how long it is.
    #[error("a large message's first frame fails its checksum: {:#010x} read, {:#010x} computed", .0.read, .0.computed)]
    FirstPart(Mismatch),
    /// A segment does not decompress to the length it was said to have.
    #[error("a frame does not decompress to its length")]
    Block,
    /// The outline of a message is malformed.
    #[error("malformed message: {0}")]
    Envelope(ReadError),
    /// A message goes on behind the end of its segment.
    #[error("a message of {size} bytes does not fit the {left} bytes left in its frame")]
    Bounds {
        /// What it says to have.
        size: u64,
        /// What there is.
        left: usize,
    },
    /// The parts of a large message have more bytes than it.
    #[error("the frames of a message of {size} bytes have {got} bytes")]
    Excess {
        /// What it says to have.
        size: u64,
        /// What came.
        got: u64,
    },
    /// Larger than `internode_max_message_size`.
    #[error("a message of {size} bytes is larger than internode_max_message_size, {max}")]
    TooLarge {
        /// What it says to have.
        size: u64,
        /// The setting.
        max: u64,
    },
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
    /// step to find anything (never more than a segment has).
    Wait(usize),
    /// A message.
    Message(Message<'a>),
    /// The start of a large message, which follows in parts unless [`Receiver::discard`] says that
    /// nobody wants it.
    Large {
        /// Its header.
        header: &'a Header,
        /// Bytes of it all.
        size: u64,
    },
    /// A message that cannot be understood.
    Refused(Refusal),
    /// Messages that are lost.
    Lost(Corruption),
    /// The connection must end; nothing more is found.
    Failed(WireError),
}

/// Finds messages in what one connection receives.
#[derive(Debug)]
pub struct Receiver {
    form: Form,
    max_message: u64,
    state: State,
    /// Holds a decompressed segment.
    plain: Vec<u8>,
    large: Option<Large>,
    /// Holds the parts of a large message.
    body: Vec<u8>,
    /// Where the payload of the last large message starts there.
    payload_at: usize,
}

#[derive(Clone, Debug)]
enum State {
    /// At the start of a segment.
    Boundary,
    /// Within the payload of a checked segment that lies in the input; `left` bytes of it are.
    InInput { left: usize },
    /// Within the payload of a segment that lies in `plain`.
    InPlain { at: usize },
    /// A large message has come, and is the next outcome.
    Complete,
    /// Nothing is read any more.
    Failed(WireError),
}

#[derive(Debug)]
struct Large {
    /// None if it was not understood.
    header: Option<Header>,
    payload_at: usize,
    size: u64,
    got: u64,
    damaged: bool,
    discarded: bool,
}

/// A step's outcome, by place.
enum Event {
    Nothing,
    Wait(usize),
    Message(Header, Place, u64),
    Large,
    Refused(Refusal),
    Lost(Corruption),
    Failed(WireError),
}

enum Place {
    Input(Range<usize>),
    Plain(Range<usize>),
    Body(usize),
}

impl Receiver {
    /// For a connection of a framing. `max_message` is `internode_max_message_size`, in bytes.
    pub fn new(framing: Framing, max_message: u64) -> Self {
        Self {
            form: framing.form(),
            max_message,
            state: State::Boundary,
            plain: Vec::new(),
            large: None,
            body: Vec::new(),
            payload_at: 0,
        }
    }

    /// Looks for the next message at the front of `input`: what was not consumed, and what came
    /// since.
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> Step<'a> {
        let mut consumed = 0;
        let event = loop {
            let rest = input.get(consumed..).unwrap_or_default();
            let (used, event) = self.step(rest);
            match event {
                Event::Nothing => consumed += used,
                Event::Message(header, Place::Input(range), size) => {
                    let range = range.start + consumed..range.end + consumed;
                    consumed += used;
                    break Event::Message(header, Place::Input(range), size);
                }
                event => {
                    consumed += used;
                    break event;
                }
            }
        };
        let outcome = match event {
            Event::Nothing => Outcome::Wait(0),
            Event::Wait(needed) => Outcome::Wait(needed),
            Event::Message(header, place, size) => {
                let is_large = matches!(place, Place::Body(_));
                let payload = match place {
                    Place::Input(range) => input.get(range),
                    Place::Plain(range) => self.plain.get(range),
                    Place::Body(at) => {
                        self.payload_at = at;
                        self.body.get(at..)
                    }
                };
                let payload = payload.unwrap_or_default();
                Outcome::Message(Message { header, payload, size, is_large })
            }
            Event::Large => match &self.large {
                Some(Large { header: Some(header), size, .. }) => {
                    Outcome::Large { header, size: *size }
                }
                _ => Outcome::Wait(0),
            },
            Event::Refused(refusal) => Outcome::Refused(refusal),
            Event::Lost(corruption) => Outcome::Lost(corruption),
            Event::Failed(error) => {
                self.state = State::Failed(error.clone());
                Outcome::Failed(error)
            }
        };
        Step { consumed, outcome }
    }

    /// The payload of the large message that was the last outcome.
    pub fn take_large(&mut self) -> Vec<u8> {
        let mut body = std::mem::take(&mut self.body);
        body.drain(..self.payload_at.min(body.len()));
        body
    }

    /// Nobody wants the large message that is coming in: it is too late, or there is no room for
    /// it. Its parts are passed over.
    pub fn discard(&mut self) {
        if let Some(large) = &mut self.large {
            large.discarded = true;
            self.body = Vec::new();
        }
    }

    /// The connection ended: the header of the large message of which not all had come, if somebody
    /// waits for it.
    pub fn abandoned(&mut self) -> Option<Header> {
        self.large.take().filter(|large| !large.discarded)?.header
    }

    /// Bytes that are held beside the input: a segment decompressed, and as much of a large message
    /// as came.
    pub fn buffered(&self) -> usize {
        self.plain.capacity() + self.body.capacity()
    }

    fn step(&mut self, input: &[u8]) -> (usize, Event) {
        match self.state {
            State::Boundary => self.segment(input),
            State::InInput { left } => self.in_input(input, left),
            State::InPlain { at } => (0, self.in_plain(at)),
            State::Complete => (0, self.complete()),
            State::Failed(ref error) => (0, Event::Failed(error.clone())),
        }
    }

    /// The start of a segment.
    fn segment(&mut self, input: &[u8]) -> (usize, Event) {
        if self.large.is_none() {
            reset_scratch(&mut self.body);
        }
        reset_scratch(&mut self.plain);
        let segment = match Segment::find(self.form, input) {
            Found::Part(needed) => return (0, Event::Wait(needed)),
            Found::BadHeader(mismatch) => return (0, Event::Failed(WireError::Header(mismatch))),
            Found::BadPayload(mismatch, segment) => {
                return (segment.total, self.damaged(mismatch, &segment));
            }
            Found::Whole(segment) => segment,
        };
        let Segment { header, payload, total } = segment;
        if let Some(length) = header.uncompressed {
            self.plain.resize(length, 0);
            if decompress(payload, &mut self.plain).is_none() {
                return (total, Event::Failed(WireError::Block));
            }
        }
        match (header.self_contained, header.uncompressed) {
            (true, None) => {
                self.state = State::InInput { left: header.length };
                (self.form.header_length(), Event::Nothing)
            }
            (true, Some(_)) => {
                self.state = State::InPlain { at: 0 };
                (total, Event::Nothing)
            }
            (false, None) => (total, self.part(payload)),
            (false, Some(_)) => {
                let plain = std::mem::take(&mut self.plain);
                let event = self.part(&plain);
                self.plain = plain;
                (total, event)
            }
        }
    }

    fn damaged(&mut self, mismatch: Mismatch, segment: &Segment<'_>) -> Event {
        if segment.header.self_contained {
            return Event::Lost(Corruption::Segment(mismatch));
        }
        match self.large.take() {
            None => Event::Failed(WireError::FirstPart(mismatch)),
            Some(mut large) => {
                large.damaged = true;
                self.body = Vec::new();
                self.add(large, segment.plain_length() as u64)
            }
        }
    }

    fn in_input(&mut self, input: &[u8], left: usize) -> (usize, Event) {
        if left == 0 {
            self.state = State::Boundary;
            return (self.form.trailer_length(), Event::Nothing);
        }
        // the segment was complete when it was found, so its payload still is
        match self.contained(input.get(..left).unwrap_or(input)) {
            Ok((range, size, header)) => {
                self.state = State::InInput { left: left - range.end };
                (range.end, message(header, Place::Input(range), size))
            }
            Err(error) => (0, Event::Failed(error)),
        }
    }

    fn in_plain(&mut self, at: usize) -> Event {
        let rest = self.plain.get(at..).unwrap_or_default();
        if rest.is_empty() {
            self.state = State::Boundary;
            return Event::Nothing;
        }
        match self.contained(rest) {
            Ok((range, size, header)) => {
                self.state = State::InPlain { at: at + range.end };
                message(header, Place::Plain(at + range.start..at + range.end), size)
            }
            Err(error) => Event::Failed(error),
        }
    }

    /// The message at the front of a segment of whole messages: where its payload is, its size, its
    /// header.
    fn contained(
        &self,
        rest: &[u8],
    ) -> Result<(Range<usize>, u64, Result<Header, Refusal>), WireError> {
        let (envelope, header) = Envelope::read(rest).map_err(WireError::Envelope)?;
        let size = self.checked_size(&envelope)?;
        let end = usize::try_from(size).ok().filter(|end| *end <= rest.len());
        let end = end.ok_or(WireError::Bounds { size, left: rest.len() })?;
        Ok((envelope.payload_at..end, size, header.map_err(|error| refusal(&envelope, error))))
    }

    fn checked_size(&self, envelope: &Envelope) -> Result<u64, WireError> {
        let (size, max) = (envelope.size(), self.max_message);
        if size > max { Err(WireError::TooLarge { size, max }) } else { Ok(size) }
    }

    /// A part of a large message.
    fn part(&mut self, payload: &[u8]) -> Event {
        match self.large.take() {
            None => self.first_part(payload),
            Some(large) => self.next_part(large, payload),
        }
    }

    fn first_part(&mut self, payload: &[u8]) -> Event {
        let (envelope, header) = match Envelope::read(payload) {
            Ok(read) => read,
            Err(error) => return Event::Failed(WireError::Envelope(error)),
        };
        let size = match self.checked_size(&envelope) {
            Ok(size) => size,
            Err(error) => return Event::Failed(error),
        };
        let (header, refused) = match header {
            Ok(header) => (Some(header), None),
            Err(error) => (None, Some(refusal(&envelope, error))),
        };
        let large = Large {
            discarded: header.is_none(),
            header,
            payload_at: envelope.payload_at,
            size,
            got: 0,
            damaged: false,
        };
        match (self.next_part(large, payload), refused) {
            (Event::Failed(error), _) => Event::Failed(error),
            (_, Some(refusal)) => Event::Refused(refusal),
            (_, None) => Event::Large,
        }
    }

    fn next_part(&mut self, large: Large, payload: &[u8]) -> Event {
        let got = large.got.saturating_add(payload.len() as u64);
        if !large.damaged && !large.discarded && got <= large.size {
            self.make_room(large.size, payload.len());
            self.body.extend_from_slice(payload);
        }
        self.add(large, payload.len() as u64)
    }

    /// Room for more of a large message: what came is believed, what is to come is not.
    fn make_room(&mut self, size: u64, more: usize) {
        let needed = self.body.len() + more;
        if needed > self.body.capacity() {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let wanted = needed.saturating_mul(2).min(size).max(needed);
            self.body.reserve_exact(wanted - self.body.len());
        }
    }

    /// Counts bytes of a large message.
    fn add(&mut self, mut large: Large, bytes: u64) -> Event {
        large.got = large.got.saturating_add(bytes);
        let (size, got) = (large.size, large.got);
        self.large = Some(large);
        if got > size {
            return Event::Failed(WireError::Excess { size, got });
        }
        if got == size {
            self.state = State::Complete;
        }
        Event::Nothing
    }

    /// All of a large message has come.
    fn complete(&mut self) -> Event {
        self.state = State::Boundary;
        match self.large.take() {
            Some(Large { header: Some(header), payload_at, size, damaged, discarded, .. }) => {
                match (discarded, damaged) {
                    (true, _) => Event::Nothing,
                    (false, true) => Event::Lost(Corruption::Large { header, size }),
                    (false, false) => Event::Message(header, Place::Body(payload_at), size),
                }
            }
            _ => Event::Nothing,
        }
    }
}

fn refusal(envelope: &Envelope, error: HeaderError) -> Refusal {
    Refusal { id: envelope.id, flags: envelope.flags, size: envelope.size(), error }
}

fn message(header: Result<Header, Refusal>, place: Place, size: u64) -> Event {
    match header {
        Ok(header) => Event::Message(header, place, size),
        Err(refusal) => Event::Refused(refusal),
    }
}

/// The most that a receiver holds beside its input: a segment decompressed, and a large message.
pub const fn most_buffered(max_message: u64) -> u64 {
    max_message + MAX_PAYLOAD as u64 + segment::KEPT_SCRATCH as u64
}
