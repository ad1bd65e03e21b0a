//! How a connection begins (`net.HandshakeProtocol`): the side that opened it says who it is, what
//! the connection is for and which versions it speaks; the other answers with the version to use.
//!
//! ```text
//! Initiate:  magic, flags (4 bytes each), address of the sender, CRC32 of all that (4 bytes)
//! flags:     bits 0-1 kind of messages, 2 and 4 framing, 3 streaming, 8-15 and 16-23 lowest
//!            version, 24-31 highest
//! Accept:    highest version of the answering side, version to use, CRC32 of both (4 bytes each)
//! ```
//!
//! All of it is big endian. The version to use is the initiator's highest as far as the acceptor
//! speaks it. Where that version is none of the initiator's, both sides close - the acceptor after
//! its answer, so that the other knows why.

use thiserror::Error;
use types::{Address, ReadError, Reader, WriteBytes};

use crate::{VERSION_40, VERSION_50};

/// First bytes of a connection.
const MAGIC: u32 = 0xCA55_2DFA;
/// Longest [`Initiate`], in bytes: magic, flags, checksum, an IPv6 address with its size and port.
pub const MAX_INITIATE: usize = 12 + 19;
/// Bytes of an [`Accept`].
pub const ACCEPT_LENGTH: usize = 12;
/// How long a handshake may take, in request timeouts.
pub const TIMEOUT_REQUESTS: u32 = 3;

const STREAMING: u32 = 1 << 3;
const FRAMING_LOW: u32 = 2;
const FRAMING_HIGH: u32 = 4;
const LEGACY_VERSION: u32 = 8;
const MIN_VERSION: u32 = 16;
const MAX_VERSION: u32 = 24;

/// Versions that one side speaks, from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Lowest.
    pub min: u8,
    /// Highest.
    pub max: u8,
}

impl Versions {
    /// What Helenus speaks: that of 4.x rings and of 5.0 rings in default mode.
    pub const OURS: Self = Self { min: VERSION_40, max: VERSION_40 };
    /// What a Cassandra 5.0 accepts whose compatibility mode is `NONE` or `UPGRADING`.
    pub const CASSANDRA_50: Self = Self { min: VERSION_40, max: VERSION_50 };

    /// Is it one of them?
    pub fn contains(self, version: u8) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// The one of these that comes nearest to a version.
    fn nearest(self, version: u8) -> u8 {
        version.min(self.max).max(self.min)
    }
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Connection {
    /// Gossip, echoes, truncations and failures: what must not wait behind data.
    Urgent,
    /// All else that is small.
    Small,
    /// Messages above [`crate::LARGE_MESSAGE`].
    Large,
    /// Streams of SSTables.
    Streaming,
}

impl Connection {
    /// Those that carry messages.
    pub const MESSAGING: [Self; 3] = [Self::Urgent, Self::Small, Self::Large];

    /// Its number in flags and in PING_REQ.
    pub fn number(self) -> u8 {
        match self {
            Self::Urgent => 1,
            Self::Small => 2,
            Self::Large => 3,
            Self::Streaming => 4,
        }
    }

    /// Of messages, by number. Number 0 was all messages of one connection before 4.0.
    pub fn messaging(number: u8) -> Option<Self> {
        Self::MESSAGING.into_iter().find(|kind| kind.number() == number)
    }
}

/// How messages are framed; the side that opens the connection decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Nothing guards payloads; of streams, not even headers: they are raw bytes.
    Unprotected,
    /// Compressed, with checksums.
    Lz4,
    /// With checksums.
    Crc,
}

impl Framing {
    fn number(self) -> u32 {
        match self {
            Self::Unprotected => 0,
            Self::Lz4 => 1,
            Self::Crc => 2,
        }
    }

    /// Their segments.
    pub fn form(self) -> segment::Form {
        match self {
            Self::Unprotected => segment::Form::Bare,
            Self::Lz4 => segment::Form::Lz4,
            Self::Crc => segment::Form::Plain,
        }
    }
}

/// Why a handshake failed. The connection is to be closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// Something else connected: a client, another protocol, a TLS handshake where none is
    /// expected.
    #[error("it is not a Cassandra node: its first bytes are {}", types::hex::to_hex(.0))]
    Magic([u8; 4]),
    /// A node from before 4.0.
    #[error("the peer speaks internode messaging {0}, from before Cassandra 4.0, this node \
             {ours}; upgrade the peer", ours = range(*.1))]
    TooOld(u8, Versions),
    /// No version that both speak.
    #[error("the peer speaks internode messaging {theirs}, this node {ours}", theirs = range(*.0), ours = range(*.1))]
    NoVersion(Versions, Versions),
    /// The other side answered with a version that was not offered.
    #[error("the peer wants internode messaging {wanted}, up to {theirs}; this node speaks {ours}", ours = range(*.ours))]
    NotOffered {
        /// What it chose.
        wanted: u32,
        /// The highest that it speaks.
        theirs: u32,
        /// What was offered.
        ours: Versions,
    },
    /// The lowest version is above the highest.
    #[error("the peer speaks internode messaging from {min} to {max}", min = .0.min, max = .0.max)]
    BadRange(Versions),
    /// A kind of connection or framing that there is not.
    #[error("its handshake has invalid flags {0:#010x}")]
    Flags(u32),
    /// An address of an impossible size.
    #[error("its handshake has an invalid address: {0}")]
    Address(ReadError),
    /// The checksum is wrong.
    #[error("its handshake fails its checksum: {read:#010x} read, {computed:#010x} computed")]
    Checksum {
        /// As read.
        read: u32,
        /// As computed.
        computed: u32,
    },
}

fn range(versions: Versions) -> String {
    match versions.min == versions.max {
        true => versions.min.to_string(),
        false => format!("{} to {}", versions.min, versions.max),
    }
}

/// What the side that opens a connection says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initiate {
    /// The versions it speaks.
    pub versions: Versions,
    /// What the connection is for.
    pub connection: Connection,
    /// How messages will be framed.
    pub framing: Framing,
    /// Who it is: its broadcast address, whatever the socket's is.
    pub from: Address,
}

impl Initiate {
    fn flags(&self) -> u32 {
        let kind = match self.connection {
            Connection::Streaming => STREAMING,
            messages => messages.number().into(),
        };
        let framing = self.framing.number();
        let (min, max) = (u32::from(self.versions.min), u32::from(self.versions.max));
        kind | (framing & 1) << FRAMING_LOW
            | (framing >> 1) << FRAMING_HIGH
            | min << LEGACY_VERSION
            | min << MIN_VERSION
            | max << MAX_VERSION
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(MAGIC);
        out.put_u32(self.flags());
        self.from.write(out);
        put_checksum(out, start);
    }

    /// Reads it off the front of what a connection received, and says how many bytes it took; none
    /// if more must come. What cannot become one is refused with as many bytes as that takes to
    /// know.
    pub fn read(input: &[u8], ours: Versions) -> Result<Option<(Self, usize)>, HandshakeError> {
        let mut reader = Reader::new(input);
        let magic = MAGIC.to_be_bytes();
        if input.iter().zip(magic).any(|(read, wanted)| *read != wanted) {
            let mut first = [0; 4];
            first.iter_mut().zip(input).for_each(|(place, byte)| *place = *byte);
            return Err(HandshakeError::Magic(first));
        }
        let (Ok(_), Ok(flags)) = (reader.u32(), reader.u32()) else { return Ok(None) };
        let (versions, connection, framing) = parse_flags(flags, ours)?;
        let from = match Address::read(&mut reader) {
            Ok(from) => from,
            Err(ReadError::End { .. }) => return Ok(None),
            Err(error) => return Err(HandshakeError::Address(error)),
        };
        let covered = input.get(..reader.position()).unwrap_or_default();
        let Ok(read) = reader.u32() else { return Ok(None) };
        check(covered, read)?;
        Ok(Some((Self { versions, connection, framing, from }, reader.position())))
    }

    /// The acceptor's answer, and the version that the connection speaks if it is to live.
    pub fn accept(&self, ours: Versions) -> (Accept, Result<u8, HandshakeError>) {
        let version = ours.nearest(self.versions.max);
        let answer = Accept { max: ours.max.into(), version: version.into() };
        let agreed = match self.versions.contains(version) {
            true => Ok(version),
            false => Err(HandshakeError::NoVersion(self.versions, ours)),
        };
        (answer, agreed)
    }
}

fn parse_flags(
    flags: u32,
    ours: Versions,
) -> Result<(Versions, Connection, Framing), HandshakeError> {
    let byte = |shift: u32| (flags >> shift) as u8;
    let versions = Versions { min: byte(MIN_VERSION), max: byte(MAX_VERSION) };
    // before 4.0 there was this version alone
    let legacy = byte(LEGACY_VERSION);
    let newest = if legacy < VERSION_40 { legacy } else { versions.max };
    if newest < VERSION_40 {
        return Err(HandshakeError::TooOld(newest, ours));
    }
    if versions.min > versions.max {
        return Err(HandshakeError::BadRange(versions));
    }
    let framing = match flags >> FRAMING_LOW & 1 | (flags >> FRAMING_HIGH & 1) << 1 {
        0 => Framing::Unprotected,
        1 => Framing::Lz4,
        2 => Framing::Crc,
        _ => return Err(HandshakeError::Flags(flags)),
    };
    let connection = match flags & STREAMING {
        0 => Connection::messaging(flags as u8 & 0b11).ok_or(HandshakeError::Flags(flags))?,
        _ if framing == Framing::Unprotected => Connection::Streaming,
        _ => return Err(HandshakeError::Flags(flags)),
    };
    Ok((versions, connection, framing))
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The highest version that the answering side speaks.
    pub max: u32,
    /// The version to use.
    pub version: u32,
}

impl Accept {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(self.max);
        out.put_u32(self.version);
        put_checksum(out, start);
    }

    /// Reads it off the front of what a connection received; none if more must come. It takes
    /// [`ACCEPT_LENGTH`] bytes.
    pub fn read(input: &[u8], ours: Versions) -> Result<Option<Self>, HandshakeError> {
        let mut reader = Reader::new(input);
        let Ok(max) = reader.u32() else { return Ok(None) };
        // a node from before 4.0 sends this alone
        if max < u32::from(VERSION_40) {
            return Err(HandshakeError::TooOld(max as u8, ours));
        }
        let (Ok(version), Ok(read)) = (reader.u32(), reader.u32()) else { return Ok(None) };
        check(input.get(..8).unwrap_or_default(), read)?;
        Ok(Some(Self { max, version }))
    }

    /// The version that the connection speaks, as the side that opened it sees it.
    pub fn agreed(&self, ours: Versions) -> Result<u8, HandshakeError> {
        let agreed = u8::try_from(self.version).ok().filter(|version| ours.contains(*version));
        let (wanted, theirs) = (self.version, self.max);
        agreed.ok_or(HandshakeError::NotOffered { wanted, theirs, ours })
    }
}

/// Appends the checksum of what was written since `start`.
fn put_checksum(out: &mut Vec<u8>, start: usize) {
    let checksum = segment::crc32(out.get(start..).unwrap_or_default());
    out.put_u32(checksum);
}

fn check(covered: &[u8], read: u32) -> Result<(), HandshakeError> {
    let computed = segment::crc32(covered);
    match read == computed {
        true => Ok(()),
        false => Err(HandshakeError::Checksum { read, computed }),
    }
}
