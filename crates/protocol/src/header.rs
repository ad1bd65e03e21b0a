//! The nine bytes in front of every message: version, flags, stream, opcode, length of the body
//! (specification, section 2; `org.apache.cassandra.transport.Envelope`).

use crate::{
    error::ProtocolError,
    opcode::{Direction, Opcode},
    put,
    version::Version,
};

/// Length of a header, in bytes.
pub const HEADER_LENGTH: usize = 9;
/// Length of a header of versions 1 and 2, whose stream has one byte.
pub const OLD_HEADER_LENGTH: usize = 8;
/// Stream of events.
pub const EVENT_STREAM: i16 = -1;
/// Bit of the first byte that marks a response.
const RESPONSE_BIT: u8 = 0x80;

/// Flags of a header; unknown bits are ignored, as Cassandra does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The body is compressed (versions 3 and 4).
    pub const COMPRESSED: Self = Self(0x01);
    /// Request: trace it. Response: begins with the id of the trace.
    pub const TRACING: Self = Self(0x02);
    /// The body begins with a custom payload (version 4 on).
    pub const CUSTOM_PAYLOAD: Self = Self(0x04);
    /// The response carries warnings (version 4 on).
    pub const WARNING: Self = Self(0x08);
    /// The client agrees to a beta version.
    pub const USE_BETA: Self = Self(0x10);

    /// Are all bits of `other` set?
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the message.
    pub version: Version,
    /// Flags.
    pub flags: Flags,
    /// Which request this is or answers; negative streams are the server's.
    pub stream: i16,
    /// Kind of the message.
    pub opcode: Opcode,
    /// Length of the body as it travels, in bytes.
    pub length: u32,
}

impl Header {
    /// Reads a header that must travel in `direction`. The order of checks is Cassandra's: version,
    /// beta flag, opcode; the length is the caller's to judge.
    pub fn parse(bytes: &[u8; HEADER_LENGTH], direction: Direction) -> Result<Self, ProtocolError> {
        let [first, flags, stream_high, stream_low, opcode, length @ ..] = *bytes;
        let version = Version::from_number(first & !RESPONSE_BIT)?;
        let flags = Flags(flags);
        if version.is_beta() && !flags.contains(Flags::USE_BETA) {
            return Err(ProtocolError::BetaNotRequested(version));
        }
        let got = if first & RESPONSE_BIT == 0 { Direction::Request } else { Direction::Response };
        let opcode = Opcode::from_number(opcode)?;
        if got != opcode.direction() || got != direction {
            return Err(ProtocolError::WrongDirection { got, opcode });
        }
        let stream = i16::from_be_bytes([stream_high, stream_low]);
        Ok(Self { version, flags, stream, opcode, length: u32::from_be_bytes(length) })
    }

    /// Writes the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let direction = match self.opcode.direction() {
            Direction::Request => 0,
            Direction::Response => RESPONSE_BIT,
        };
        out.push(self.version.number() | direction);
        out.push(self.flags.0);
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.push(self.opcode as u8);
        out.extend_from_slice(&self.length.to_be_bytes());
    }
}

/// Begins a message: writes its header with a length of zero and returns where it starts.
pub(crate) fn begin(
    out: &mut Vec<u8>,
    version: Version,
    flags: Flags,
    stream: i16,
    opcode: Opcode,
) -> usize {
    let start = out.len();
    let flags = if version.is_beta() { flags.with(Flags::USE_BETA) } else { flags };
    Header { version, flags, stream, opcode, length: 0 }.write(out);
    start
}

/// Ends the message that starts at `start`: patches the length of its body.
pub(crate) fn end(out: &mut [u8], start: usize) {
    let length = out.len().saturating_sub(start + HEADER_LENGTH);
    put::patch_i32(out, start + LENGTH_OFFSET, i32::try_from(length).unwrap_or(i32::MAX));
}

/// Where in the header the length is.
pub(crate) const LENGTH_OFFSET: usize = 5;
/// Where in the header the flags are.
pub(crate) const FLAGS_OFFSET: usize = 1;
/// Bit of the first byte that marks a response, for headers written by hand.
pub(crate) const RESPONSE: u8 = RESPONSE_BIT;
