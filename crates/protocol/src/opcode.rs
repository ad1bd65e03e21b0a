//! What a message is, and which way it travels (specification, section 2.4).

use std::fmt;

/// Which way a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    Request,
    /// From the server.
    Response,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Request => Self::Response,
            Self::Response => Self::Request,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "REQUEST",
            Self::Response => "RESPONSE",
        })
    }
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is named by the protocol's specification, section 2.4")]
pub enum Opcode {
    Error = 0,
    Startup = 1,
    Ready = 2,
    Authenticate = 3,
    Credentials = 4,
    Options = 5,
    Supported = 6,
    Query = 7,
    Result = 8,
    Prepare = 9,
    Execute = 10,
    Register = 11,
    Event = 12,
    Batch = 13,
    AuthChallenge = 14,
    AuthResponse = 15,
    AuthSuccess = 16,
}

impl Opcode {
    /// Every opcode, by number.
    pub const ALL: [Self; 17] = [
        Self::Error,
        Self::Startup,
        Self::Ready,
        Self::Authenticate,
        Self::Credentials,
        Self::Options,
        Self::Supported,
        Self::Query,
        Self::Result,
        Self::Prepare,
        Self::Execute,
        Self::Register,
        Self::Event,
        Self::Batch,
        Self::AuthChallenge,
        Self::AuthResponse,
        Self::AuthSuccess,
    ];

    /// Cassandra's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Startup => "STARTUP",
            Self::Ready => "READY",
            Self::Authenticate => "AUTHENTICATE",
            Self::Credentials => "CREDENTIALS",
            Self::Options => "OPTIONS",
            Self::Supported => "SUPPORTED",
            Self::Query => "QUERY",
            Self::Result => "RESULT",
            Self::Prepare => "PREPARE",
            Self::Execute => "EXECUTE",
            Self::Register => "REGISTER",
            Self::Event => "EVENT",
            Self::Batch => "BATCH",
            Self::AuthChallenge => "AUTH_CHALLENGE",
            Self::AuthResponse => "AUTH_RESPONSE",
            Self::AuthSuccess => "AUTH_SUCCESS",
        }
    }

    /// Which way it travels.
    pub fn direction(self) -> Direction {
        match self {
            Self::Startup
            | Self::Credentials
            | Self::Options
            | Self::Query
            | Self::Prepare
            | Self::Execute
            | Self::Register
            | Self::Batch
            | Self::AuthResponse => Direction::Request,
            _ => Direction::Response,
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
