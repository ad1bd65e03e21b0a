//! The header of a message (`net.Message.Serializer`).
//!
//! ```text
//! id, creation (low 32 bits of the milliseconds since 1970), milliseconds until it expires, verb,
//! flags, number of parameters, parameters, length of the payload, payload
//! ```
//!
//! Creation has four bytes, big endian; all else are unsigned vints.

use thiserror::Error;
use types::{ReadError, Reader, WriteBytes};

use crate::param::{ParamError, Params};
use crate::verb::Verb;

/// How far a sender's clock may be from ours, in milliseconds: beyond that its time of creation is
/// not believed.
pub const MAX_CLOCK_SKEW: i64 = 15 * 60 * 1000;

/// Flags of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// If this fails, say so.
    pub const CALL_BACK_ON_FAILURE: Self = Self(1);
    /// Tell a digest of repaired data, too.
    pub const TRACK_REPAIRED_DATA: Self = Self(2);
    /// Tell warnings, too.
    pub const TRACK_WARNINGS: Self = Self(4);

    /// Are all of these set?
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and others.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a message says before its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number that the sender gave it, which its answer has, too.
    pub id: u64,
    /// When it was made, by the sender's clock: the low 32 bits of the milliseconds since 1970.
    pub created: u32,
    /// Milliseconds from then on after which it is worth nothing.
    pub expires_in: u64,
    /// What it is.
    pub verb: Verb,
    /// Flags.
    pub flags: Flags,
    /// What else.
    pub params: Params,
}

/// Why a header cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// It is malformed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A kind of message that nobody knows.
    #[error("unknown verb {0}")]
    Verb(u64),
    /// A parameter is malformed.
    #[error("malformed parameter: {0}")]
    Param(#[from] ParamError),
}

impl Header {
    /// Of a message made now.
    pub fn new(id: u64, verb: Verb, now_millis: i64, expires_in: u64) -> Self {
        let (flags, params) = (Flags::NONE, Params::NONE);
        Self { id, created: now_millis as u32, expires_in, verb, flags, params }
    }

    /// Of an answer to this, made now: it is worth anything as long as the request is. `None` if
    /// nothing answers this, or if it is too late.
    pub fn answer(&self, now_millis: i64, expires_at: i64) -> Option<Self> {
        self.reply(self.verb.answer()?, now_millis, expires_at)
    }

    /// Of a message that tells the failure of this. `None` if nobody wants to know, or if it is too
    /// late.
    pub fn failure(&self, now_millis: i64, expires_at: i64) -> Option<Self> {
        let is_wanted = self.flags.contains(Flags::CALL_BACK_ON_FAILURE);
        self.reply(Verb::FailureRsp, now_millis, expires_at).filter(|_| is_wanted)
    }

    fn reply(&self, verb: Verb, now_millis: i64, expires_at: i64) -> Option<Self> {
        let left =
            u64::try_from(expires_at.saturating_sub(now_millis)).ok().filter(|left| *left > 0)?;
        Some(Self::new(self.id, verb, now_millis, left))
    }

    /// When it was made, in milliseconds since 1970. Where the sender's clock is not to be
    /// believed - it is too far from ours, or `internode_timeout` says so - that is now.
    pub fn created_at(&self, now_millis: i64, believe: bool) -> i64 {
        let behind = (now_millis as u32).wrapping_sub(self.created).cast_signed();
        match believe && i64::from(behind).abs() <= MAX_CLOCK_SKEW {
            true => now_millis.saturating_sub(behind.into()),
            false => now_millis,
        }
    }

    /// When it is worth nothing any more, in milliseconds since 1970.
    pub fn expires_at(&self, now_millis: i64, believe: bool) -> i64 {
        let after = i64::try_from(self.expires_in).unwrap_or(i64::MAX);
        self.created_at(now_millis, believe).saturating_add(after)
    }

    /// Appends it, all but the payload's length.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), ParamError> {
        out.put_uvint(self.id);
        out.put_u32(self.created);
        out.put_uvint(self.expires_in);
        out.put_uvint(self.verb.number().into());
        out.put_uvint32(self.flags.0.cast_signed());
        self.params.write(out)
    }
}

/// A message's frame of reference, which is known even where its header is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its id.
    pub id: u64,
    /// Its flags.
    pub flags: Flags,
    /// Bytes up to the payload.
    pub payload_at: usize,
    /// Bytes of the payload.
    pub payload_length: u64,
}

impl Envelope {
    /// Reads the start of a message: its outline, and its header if that is understood.
    pub fn read(bytes: &[u8]) -> Result<(Self, Result<Header, HeaderError>), ReadError> {
        let mut reader = Reader::new(bytes);
        let id = reader.uvint()?;
        let created = reader.u32()?;
        let expires_in = reader.uvint()?;
        let verb = reader.uvint()?;
        let flags = Flags(reader.uvint32()?.cast_unsigned());
        let mut params = reader;
        Params::skip(&mut reader)?;
        let payload_length = reader.uvint()?;
        let envelope = Self { id, flags, payload_at: reader.position(), payload_length };
        let mut header = || {
            let verb = Verb::from_number(verb).ok_or(HeaderError::Verb(verb))?;
            let params = Params::read(&mut params)?;
            Ok(Header { id, created, expires_in, verb, flags, params })
        };
        let header = header();
        Ok((envelope, header))
    }

    /// Bytes of the whole message.
    pub fn size(&self) -> u64 {
        (self.payload_at as u64).saturating_add(self.payload_length)
    }
}
