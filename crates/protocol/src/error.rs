//! What a peer may do wrong, in Cassandra's words.

use thiserror::Error;

use crate::{
    error_code::ErrorCode,
    opcode::{Direction, Opcode},
    version::Version,
};

/// Largest number of bytes of an undecodable string that an error quotes.
pub(crate) const MAX_QUOTED_BYTES: usize = 64;

/// A breach of the protocol. Its text is the one Cassandra answers with; where Cassandra lets an
/// index exception escape (a SERVER_ERROR naming Java classes), ours is a PROTOCOL_ERROR instead.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProtocolError {
    /// A version that we do not speak.
    #[error(
        "Invalid or unsupported protocol version ({0}); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
    )]
    UnsupportedVersion(u8),
    /// A beta version without the flag that asks for it.
    #[error("Beta version of the protocol used ({0}), but USE_BETA flag is unset")]
    BetaNotRequested(Version),
    /// A frame of another version than the connection's, before version 5.
    #[error(
        "Invalid message version. Got {got} but previous messages on this connection had version {had}"
    )]
    VersionChanged {
        /// Version of the frame.
        got: Version,
        /// Version of the STARTUP.
        had: Version,
    },
    /// A frame of another version than the connection's, from version 5 on (the missing space is
    /// Cassandra's).
    #[error(
        "Invalid message version. Got {got} but previousmessages on this connection had version {had}"
    )]
    VersionChangedInSegment {
        /// Version of the frame.
        got: Version,
        /// Version of the STARTUP.
        had: Version,
    },
    /// No message has this opcode.
    #[error("Unknown opcode {0}")]
    UnknownOpcode(u8),
    /// A request where a response is due, or the reverse.
    #[error("Wrong protocol direction (expected {}, got {}) for opcode {} ({})", .got.opposite(), .got, *.opcode as u8, .opcode)]
    WrongDirection {
        /// Direction bit of the frame.
        got: Direction,
        /// Opcode of the frame.
        opcode: Opcode,
    },
    /// A negative body length, from version 5 on.
    #[error("Invalid value for envelope header body length field: {0}")]
    NegativeLength(i32),
    /// A frame above `native_transport_max_frame_size`.
    #[error("Request is too big: length {length} exceeds maximum allowed length {limit}.")]
    FrameTooBig {
        /// Length of header and body.
        length: u64,
        /// The limit.
        limit: u32,
    },
    /// A message of several segments above `native_transport_max_message_size`.
    #[error("CQL Message of size {length} bytes exceeds allowed maximum of {limit} bytes")]
    MessageTooBig {
        /// Length of the body.
        length: u32,
        /// The limit.
        limit: u32,
    },
    /// A message of several segments before the client is authenticated.
    #[error(
        "The connection is not yet in a valid state to process multi frame CQL Messages, usually thismeans that authentication is still pending. type = {opcode}, size = {length}"
    )]
    LargeTooEarly {
        /// Opcode of the message.
        opcode: Opcode,
        /// Length of the body.
        length: u32,
    },
    /// The checksum of a segment's header does not match.
    #[error(
        "invalid, unrecoverable CRC mismatch detected in frame header. Read {read}, Computed {computed}"
    )]
    CorruptSegmentHeader {
        /// CRC24 in the segment.
        read: u32,
        /// CRC24 of the header.
        computed: u32,
    },
    /// The checksum of a segment's payload does not match.
    #[error("invalid, unrecoverable CRC mismatch detected in frame body. Read {}, Computed {}", *.read as i32, *.computed as i32)]
    CorruptSegmentBody {
        /// CRC32 in the segment.
        read: u32,
        /// CRC32 of the payload.
        computed: u32,
    },
    /// A segment's payload does not decompress to the length it names.
    #[error("Invalid compressed frame: {0}")]
    CorruptSegmentBlock(&'static str),
    /// A segment ends within an envelope's header.
    #[error("Undersized buffer supplied. Expected 9, actual {0}")]
    ShortEnvelope(usize),
    /// A self-contained segment ends within an envelope, or a large message's segments carry more
    /// bytes than its header names.
    #[error("Envelope of {length} bytes does not match the {available} bytes of its frame")]
    EnvelopeBounds {
        /// Length of header and body.
        length: u64,
        /// Bytes there.
        available: u64,
    },
    /// A compressed body that cannot be decompressed.
    #[error("{0}")]
    BadCompression(&'static str),
    /// A body that would decompress to more than `native_transport_max_frame_size`.
    #[error("Decompressed length {length} exceeds maximum allowed length {limit}.")]
    DecompressedTooBig {
        /// Length that the body declares.
        length: u64,
        /// The limit.
        limit: u32,
    },
    /// The body ends too early.
    #[error("Cannot read {needed} bytes, only {remaining} bytes remaining in the message")]
    Truncated {
        /// Bytes wanted.
        needed: usize,
        /// Bytes there.
        remaining: usize,
    },
    /// A `[string]` longer than the body.
    #[error("Not enough bytes to read an UTF8 serialized string preceded by its 2 bytes length")]
    ShortString,
    /// A `[long string]` longer than the body.
    #[error("Not enough bytes to read an UTF8 serialized string preceded by its 4 bytes length")]
    ShortLongString,
    /// A `[short bytes]` longer than the body.
    #[error("Not enough bytes to read a byte array preceded by its 2 bytes length")]
    ShortBytes,
    /// A string that is not UTF-8.
    #[error(
        "Cannot decode string as UTF8: '{hex}'; java.nio.charset.MalformedInputException: Input length = {bad}"
    )]
    NotUtf8 {
        /// The bytes from the first bad one, at most 64.
        hex: String,
        /// Number of bad bytes.
        bad: usize,
    },
    /// A value longer than the body.
    #[error(
        "Cannot read value of length {length}, only {remaining} bytes remaining in the message"
    )]
    ValueTooLong {
        /// Length of the value.
        length: i32,
        /// Bytes there.
        remaining: usize,
    },
    /// A negative length of a bound value that is neither null nor unset.
    #[error("Invalid ByteBuf length {0}")]
    ValueLength(i32),
    /// No consistency level has this code.
    #[error("Unknown code {0} for a consistency level")]
    UnknownConsistency(u16),
    /// No constant of this name.
    #[error("Invalid value '{value}' for {kind}")]
    UnknownName {
        /// What was sent.
        value: String,
        /// Cassandra's name of the enumeration.
        kind: &'static str,
    },
    /// An event that this version does not have.
    #[error("Event {event} not valid for protocol version {version}")]
    EventVersion {
        /// Name of the event.
        event: &'static str,
        /// Version of the connection.
        version: Version,
    },
    /// A batch entry that is neither text nor prepared.
    #[error("Invalid query kind in BATCH messages. Must be 0 or 1 but got {0}")]
    BatchEntryKind(i8),
    /// A batch that is neither logged, unlogged nor of counters.
    #[error("Invalid BATCH message type {0}")]
    BatchKind(i8),
    /// The smallest timestamp, which Cassandra keeps to itself.
    #[error(
        "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got -9223372036854775808)"
    )]
    Timestamp,
    /// A page of no rows.
    #[error("The page size cannot be 0")]
    PageSize,
    /// A paging state that we cannot have written.
    #[error("Invalid value for the paging state")]
    PagingState,
    /// A custom payload before version 4.
    #[error("Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4")]
    CustomPayload,
    /// CREDENTIALS, a message of version 1.
    #[error("Unsupported message")]
    UnsupportedMessage,
    /// An AUTH_RESPONSE whose token is null.
    #[error("Missing token in AUTH_RESPONSE message")]
    NullToken,
    /// A message that the state of the connection does not allow.
    #[error("Unexpected message {got}, {expected}")]
    UnexpectedMessage {
        /// What came.
        got: Opcode,
        /// What may come, in Cassandra's words.
        expected: &'static str,
    },
    /// STARTUP without a version of CQL.
    #[error("Missing value CQL_VERSION in STARTUP message")]
    MissingCqlVersion,
    /// STARTUP with something else than a version of CQL.
    #[error("Invalid version value: {0}")]
    BadCqlVersion(String),
    /// STARTUP with a version of CQL before 3.
    #[error(
        "CQL version {0} is not supported by the binary protocol (supported version are >= 3.0.0)"
    )]
    OldCqlVersion(String),
    /// STARTUP asks for Snappy from version 5 on.
    #[error("Snappy compression is not supported in protocol V5")]
    SnappyInV5,
    /// STARTUP asks for a compression that does not exist.
    #[error("Unknown compression algorithm: {0}")]
    UnknownCompression(String),
    /// A response with a kind, code or option that does not exist.
    #[error("Unknown {what} {value} in a response")]
    UnknownInResponse {
        /// What kind of number.
        what: &'static str,
        /// The number.
        value: i64,
    },
    /// A type nested deeper than we follow.
    #[error("Type nested deeper than {0} levels")]
    TypeDepth(usize),
}

impl ProtocolError {
    /// What the connection's state allows before STARTUP (for [`Self::UnexpectedMessage`]).
    pub const EXPECTING_STARTUP: &'static str = "expecting STARTUP or OPTIONS";
    /// What it allows between AUTHENTICATE and AUTH_SUCCESS.
    pub const EXPECTING_AUTH: &'static str = "expecting SASL_RESPONSE";
    /// Why it does not allow another STARTUP.
    pub const ALREADY_STARTED: &'static str = "the connection is already initialized";

    /// The code to answer with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::FrameTooBig { .. } | Self::MessageTooBig { .. } => ErrorCode::Invalid,
            _ => ErrorCode::ProtocolError,
        }
    }
}
