//! ERROR messages: codes, what follows them, and what older versions get instead
//! (`org.apache.cassandra.transport.messages.ErrorMessage`).

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
};

use crate::{
    consistency::Consistency, digest::Id, error::ProtocolError, error_code::ErrorCode, put,
    version::Version, write_type::WriteType,
};

/// Why a replica failed (`org.apache.cassandra.exceptions.RequestFailureReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "each is named by Cassandra's enumeration")]
pub enum FailureReason {
    Unknown = 0,
    ReadTooManyTombstones = 1,
    Timeout = 2,
    IncompatibleSchema = 3,
    ReadSize = 4,
    NodeDown = 5,
    IndexNotAvailable = 6,
    ReadTooManyIndexes = 7,
}

impl FailureReason {
    /// Every reason, by code.
    pub const ALL: [Self; 8] = [
        Self::Unknown,
        Self::ReadTooManyTombstones,
        Self::Timeout,
        Self::IncompatibleSchema,
        Self::ReadSize,
        Self::NodeDown,
        Self::IndexNotAvailable,
        Self::ReadTooManyIndexes,
    ];

    /// Its code, here and between nodes.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The reason with this code; unknown codes are an unknown reason.
    pub fn from_code(code: u16) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Unknown)
    }

    /// Cassandra's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::ReadTooManyTombstones => "READ_TOO_MANY_TOMBSTONES",
            Self::Timeout => "TIMEOUT",
            Self::IncompatibleSchema => "INCOMPATIBLE_SCHEMA",
            Self::ReadSize => "READ_SIZE",
            Self::NodeDown => "NODE_DOWN",
            Self::IndexNotAvailable => "INDEX_NOT_AVAILABLE",
            Self::ReadTooManyIndexes => "READ_TOO_MANY_INDEXES",
        }
    }
}

/// An error, its text and what the code carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    /// Text for people.
    pub message: String,
    /// Code and details.
    pub detail: ErrorDetail,
}

/// Code of an error and the details that travel with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "variants are ErrorCode's; fields are named by the specification")]
pub enum ErrorDetail {
    ServerError,
    ProtocolError,
    BadCredentials,
    Unavailable {
        consistency: Consistency,
        required: i32,
        alive: i32,
    },
    Overloaded,
    IsBootstrapping,
    TruncateError,
    /// `contentions`: retries of a CAS; only with [`WriteType::Cas`], and only from version 5 on.
    WriteTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: WriteType,
        contentions: Option<u16>,
    },
    ReadTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    ReadFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Failures,
        data_present: bool,
    },
    FunctionFailure {
        keyspace: String,
        function: String,
        arguments: Vec<String>,
    },
    WriteFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Failures,
        write_type: WriteType,
    },
    CdcWriteFailure,
    CasWriteUnknown {
        consistency: Consistency,
        received: i32,
        block_for: i32,
    },
    SyntaxError,
    Unauthorized,
    Invalid,
    ConfigError,
    /// `table` is empty where the keyspace exists.
    AlreadyExists {
        keyspace: String,
        table: String,
    },
    Unprepared {
        id: Vec<u8>,
    },
}

/// Replicas that failed. Before version 5 only their number travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failures {
    /// Who failed and why.
    Known(Vec<(IpAddr, FailureReason)>),
    /// Their number alone, as a client of an older version learns it; what version 5 clients are
    /// told of it is an empty list.
    Counted(i32),
}

impl Failures {
    fn of(failures: &[(SocketAddr, FailureReason)]) -> Self {
        Self::Known(failures.iter().map(|(address, reason)| (address.ip(), *reason)).collect())
    }

    /// How many failed.
    pub fn count(&self) -> i32 {
        match self {
            Self::Known(failures) => i32::try_from(failures.len()).unwrap_or(i32::MAX),
            Self::Counted(count) => *count,
        }
    }

    fn write(&self, out: &mut Vec<u8>, version: Version) {
        let failures = match self {
            Self::Known(failures) => failures.as_slice(),
            Self::Counted(_) => &[],
        };
        if version < Version::V5 {
            put::i32(out, self.count());
            return;
        }
        put::i32(out, i32::try_from(failures.len()).unwrap_or(i32::MAX));
        for (address, reason) in failures {
            put::address(out, *address);
            put::u16(out, reason.code());
        }
    }
}

impl From<&ProtocolError> for ErrorResponse {
    fn from(error: &ProtocolError) -> Self {
        let detail = match error.code() {
            ErrorCode::Invalid => ErrorDetail::Invalid,
            _ => ErrorDetail::ProtocolError,
        };
        Self { message: error.to_string(), detail }
    }
}

/// Errors with the texts that Cassandra gives them.
impl ErrorResponse {
    /// Fewer replicas are alive than must answer.
    pub fn unavailable(consistency: Consistency, required: i32, alive: i32) -> Self {
        Self {
            message: format!("Cannot achieve consistency level {consistency}"),
            detail: ErrorDetail::Unavailable { consistency, required, alive },
        }
    }

    /// Too few replicas answered a read in time.
    pub fn read_timeout(
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
    ) -> Self {
        Self {
            message: timed_out(received),
            detail: ErrorDetail::ReadTimeout { consistency, received, block_for, data_present },
        }
    }

    /// Too few replicas acknowledged a write in time.
    pub fn write_timeout(
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: WriteType,
    ) -> Self {
        Self {
            message: timed_out(received),
            detail: ErrorDetail::WriteTimeout {
                consistency,
                received,
                block_for,
                write_type,
                contentions: None,
            },
        }
    }

    /// A conditional update timed out after so many lost races.
    pub fn cas_timeout(
        consistency: Consistency,
        received: i32,
        block_for: i32,
        contentions: u16,
    ) -> Self {
        Self {
            message: format!(
                "CAS operation timed out: received {received} of {block_for} required responses \
                 after {contentions} contention retries"
            ),
            detail: ErrorDetail::WriteTimeout {
                consistency,
                received,
                block_for,
                write_type: WriteType::Cas,
                contentions: Some(contentions),
            },
        }
    }

    /// A conditional update was accepted by some, but not by a quorum.
    pub fn cas_unknown(consistency: Consistency, received: i32, block_for: i32) -> Self {
        Self {
            message: format!(
                "CAS operation result is unknown - proposal accepted by {received} but not a quorum."
            ),
            detail: ErrorDetail::CasWriteUnknown { consistency, received, block_for },
        }
    }

    /// Replicas failed to read; they are named by their internode addresses.
    pub fn read_failure(
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
        failures: &[(SocketAddr, FailureReason)],
    ) -> Self {
        Self {
            message: failed(received, failures),
            detail: ErrorDetail::ReadFailure {
                consistency,
                received,
                block_for,
                failures: Failures::of(failures),
                data_present,
            },
        }
    }

    /// Replicas gave a read up, for a reason that is spelled out.
    pub fn read_aborted(
        consistency: Consistency,
        (received, block_for): (i32, i32),
        data_present: bool,
        why: &str,
        failures: &[(SocketAddr, FailureReason)],
    ) -> Self {
        let message = named(format!("Operation failed - {why}"), failures);
        Self {
            message,
            ..Self::read_failure(consistency, received, block_for, data_present, failures)
        }
    }

    /// Replicas failed to write; they are named by their internode addresses.
    pub fn write_failure(
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: WriteType,
        failures: &[(SocketAddr, FailureReason)],
    ) -> Self {
        Self {
            message: failed(received, failures),
            detail: ErrorDetail::WriteFailure {
                consistency,
                received,
                block_for,
                failures: Failures::of(failures),
                write_type,
            },
        }
    }

    /// A keyspace, or with a table's name a table, exists already.
    pub fn already_exists(keyspace: &str, table: Option<&str>) -> Self {
        let message = match table {
            None => format!("Cannot add existing keyspace \"{keyspace}\""),
            Some(table) => {
                format!("Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
            }
        };
        let (keyspace, table) = (keyspace.to_owned(), table.unwrap_or_default().to_owned());
        Self { message, detail: ErrorDetail::AlreadyExists { keyspace, table } }
    }

    /// Nobody prepared this id, or it was evicted.
    pub fn unprepared(id: &[u8]) -> Self {
        let hex: String = id.iter().take(size_of::<Id>()).map(|b| format!("{b:02x}")).collect();
        Self {
            message: format!(
                "Prepared query with ID {hex} not found (either the query was not prepared on this \
                 host (maybe the host has been restarted?) or you have prepared too many queries and \
                 it has been evicted from the internal cache)"
            ),
            detail: ErrorDetail::Unprepared { id: id.to_vec() },
        }
    }

    /// The node does not serve reads yet.
    pub fn bootstrapping() -> Self {
        Self {
            message: "Cannot read from a bootstrapping node".to_owned(),
            detail: ErrorDetail::IsBootstrapping,
        }
    }
}

fn timed_out(received: i32) -> String {
    format!("Operation timed out - received only {received} responses.")
}

fn failed(received: i32, failures: &[(SocketAddr, FailureReason)]) -> String {
    let count = failures.len();
    named(
        format!("Operation failed - received {received} responses and {count} failures"),
        failures,
    )
}

fn named(mut text: String, failures: &[(SocketAddr, FailureReason)]) -> String {
    for (index, (address, reason)) in failures.iter().enumerate() {
        text.push_str(if index == 0 { ": " } else { ", " });
        text.push_str(&format!("{} from /{address}", reason.name()));
    }
    text
}

impl ErrorDetail {
    /// The code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::ServerError => ErrorCode::ServerError,
            Self::ProtocolError => ErrorCode::ProtocolError,
            Self::BadCredentials => ErrorCode::BadCredentials,
            Self::Unavailable { .. } => ErrorCode::Unavailable,
            Self::Overloaded => ErrorCode::Overloaded,
            Self::IsBootstrapping => ErrorCode::IsBootstrapping,
            Self::TruncateError => ErrorCode::TruncateError,
            Self::WriteTimeout { .. } => ErrorCode::WriteTimeout,
            Self::ReadTimeout { .. } => ErrorCode::ReadTimeout,
            Self::ReadFailure { .. } => ErrorCode::ReadFailure,
            Self::FunctionFailure { .. } => ErrorCode::FunctionFailure,
            Self::WriteFailure { .. } => ErrorCode::WriteFailure,
            Self::CdcWriteFailure => ErrorCode::CdcWriteFailure,
            Self::CasWriteUnknown { .. } => ErrorCode::CasWriteUnknown,
            Self::SyntaxError => ErrorCode::SyntaxError,
            Self::Unauthorized => ErrorCode::Unauthorized,
            Self::Invalid => ErrorCode::Invalid,
            Self::ConfigError => ErrorCode::ConfigError,
            Self::AlreadyExists { .. } => ErrorCode::AlreadyExists,
            Self::Unprepared { .. } => ErrorCode::Unprepared,
        }
    }

    fn write(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Unavailable { consistency, required, alive } => {
                numbers(out, *consistency, *required, *alive);
            }
            Self::WriteTimeout { consistency, received, block_for, write_type, contentions } => {
                numbers(out, *consistency, *received, *block_for);
                put::string(out, write_type.name());
                if let (Some(contentions), true) = (contentions, version >= Version::V5) {
                    put::u16(out, *contentions);
                }
            }
            Self::ReadTimeout { consistency, received, block_for, data_present } => {
                numbers(out, *consistency, *received, *block_for);
                put::u8(out, u8::from(*data_present));
            }
            Self::ReadFailure { consistency, received, block_for, failures, data_present } => {
                numbers(out, *consistency, *received, *block_for);
                failures.write(out, version);
                put::u8(out, u8::from(*data_present));
            }
            Self::WriteFailure { consistency, received, block_for, failures, write_type } => {
                numbers(out, *consistency, *received, *block_for);
                failures.write(out, version);
                put::string(out, write_type.name());
            }
            Self::FunctionFailure { keyspace, function, arguments } => {
                put::string(out, keyspace);
                put::string(out, function);
                put::string_list(out, arguments.iter().map(String::as_str));
            }
            Self::CasWriteUnknown { consistency, received, block_for } => {
                numbers(out, *consistency, *received, *block_for);
            }
            Self::AlreadyExists { keyspace, table } => {
                put::string(out, keyspace);
                put::string(out, table);
            }
            Self::Unprepared { id } => put::short_bytes(out, id),
            _ => {}
        }
    }
}

fn numbers(out: &mut Vec<u8>, consistency: Consistency, first: i32, second: i32) {
    put::consistency(out, consistency);
    put::i32(out, first);
    put::i32(out, second);
}

impl ErrorResponse {
    /// The error as a client of `version` may hear it.
    fn for_version(&self, version: Version) -> Cow<'_, Self> {
        let older = match &self.detail {
            ErrorDetail::ReadFailure { consistency, received, block_for, data_present, .. }
                if version < Version::V4 =>
            {
                Self::read_timeout(*consistency, *received, *block_for, *data_present)
            }
            ErrorDetail::WriteFailure { consistency, received, block_for, write_type, .. }
                if version < Version::V4 =>
            {
                Self::write_timeout(*consistency, *received, *block_for, *write_type)
            }
            detail @ (ErrorDetail::FunctionFailure { .. } | ErrorDetail::CdcWriteFailure)
                if version < Version::V4 =>
            {
                Self {
                    message: format!("ERROR {}: {}", detail.code().name(), self.message),
                    detail: ErrorDetail::Invalid,
                }
            }
            ErrorDetail::WriteTimeout {
                consistency,
                received,
                block_for,
                contentions: Some(_),
                ..
            }
            | ErrorDetail::CasWriteUnknown { consistency, received, block_for }
                if version < Version::V5 =>
            {
                Self::write_timeout(*consistency, *received, *block_for, WriteType::Cas)
            }
            _ => return Cow::Borrowed(self),
        };
        Cow::Owned(older)
    }

    /// Appends the body of an ERROR message.
    pub(crate) fn write(&self, out: &mut Vec<u8>, version: Version) {
        let error = self.for_version(version);
        put::i32(out, error.detail.code().code());
        put::string(out, &error.message);
        error.detail.write(out, version);
    }
}
