//! Codes of the ERROR message.

/// What an ERROR message is about (`org.apache.cassandra.exceptions.ExceptionCode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
#[expect(missing_docs, reason = "each is named by the protocol's specification, section 9")]
pub enum ErrorCode {
    ServerError = 0x0000,
    ProtocolError = 0x000A,
    BadCredentials = 0x0100,
    Unavailable = 0x1000,
    Overloaded = 0x1001,
    IsBootstrapping = 0x1002,
    TruncateError = 0x1003,
    WriteTimeout = 0x1100,
    ReadTimeout = 0x1200,
    ReadFailure = 0x1300,
    FunctionFailure = 0x1400,
    WriteFailure = 0x1500,
    CdcWriteFailure = 0x1600,
    CasWriteUnknown = 0x1700,
    SyntaxError = 0x2000,
    Unauthorized = 0x2100,
    Invalid = 0x2200,
    ConfigError = 0x2300,
    AlreadyExists = 0x2400,
    Unprepared = 0x2500,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 20] = [
        Self::ServerError,
        Self::ProtocolError,
        Self::BadCredentials,
        Self::Unavailable,
        Self::Overloaded,
        Self::IsBootstrapping,
        Self::TruncateError,
        Self::WriteTimeout,
        Self::ReadTimeout,
        Self::ReadFailure,
        Self::FunctionFailure,
        Self::WriteFailure,
        Self::CdcWriteFailure,
        Self::CasWriteUnknown,
        Self::SyntaxError,
        Self::Unauthorized,
        Self::Invalid,
        Self::ConfigError,
        Self::AlreadyExists,
        Self::Unprepared,
    ];

    /// Its number on the wire.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The code with this number.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    /// Cassandra's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServerError => "SERVER_ERROR",
            Self::ProtocolError => "PROTOCOL_ERROR",
            Self::BadCredentials => "BAD_CREDENTIALS",
            Self::Unavailable => "UNAVAILABLE",
            Self::Overloaded => "OVERLOADED",
            Self::IsBootstrapping => "IS_BOOTSTRAPPING",
            Self::TruncateError => "TRUNCATE_ERROR",
            Self::WriteTimeout => "WRITE_TIMEOUT",
            Self::ReadTimeout => "READ_TIMEOUT",
            Self::ReadFailure => "READ_FAILURE",
            Self::FunctionFailure => "FUNCTION_FAILURE",
            Self::WriteFailure => "WRITE_FAILURE",
            Self::CdcWriteFailure => "CDC_WRITE_FAILURE",
            Self::CasWriteUnknown => "CAS_WRITE_UNKNOWN",
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Invalid => "INVALID",
            Self::ConfigError => "CONFIG_ERROR",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::Unprepared => "UNPREPARED",
        }
    }
}
