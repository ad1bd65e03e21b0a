//! What the coordinator answers.

use std::sync::Arc;

use cql::CqlError;
use protocol::{
    BindMetadata, Consistency, ErrorDetail, ErrorResponse, Id, ResultMetadata, SchemaChange,
    WriteType,
};
use storage::StorageError;

/// How a statement ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its answer.
    pub result: Result<Answer, ErrorResponse>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Was nothing done since the shard that was asked knows another schema than the one it was
    /// planned for?
    pub(crate) is_outdated: bool,
}

impl Outcome {
    pub(crate) fn new(result: Result<Answer, ErrorResponse>, warnings: Vec<String>) -> Self {
        Self { result, warnings, is_outdated: false }
    }
}

impl From<ErrorResponse> for Outcome {
    fn from(error: ErrorResponse) -> Self {
        Self::new(Err(error), Vec::new())
    }
}

/// An answer other than an error.
#[derive(Debug)]
pub enum Answer {
    /// Nothing to say.
    Void,
    /// Of USE.
    SetKeyspace(String),
    /// Of a statement that changed the schema; every shard has the change.
    SchemaChange(SchemaChange),
    /// Rows.
    Rows(Page),
}

/// A page of rows.
#[derive(Debug)]
pub struct Page {
    /// The columns.
    pub metadata: Arc<ResultMetadata>,
    /// Number of rows.
    pub rows: u32,
    /// The cells of all rows: `i32` length (-1: null) and bytes.
    pub cells: Vec<u8>,
    /// Where the next page begins.
    pub paging_state: Option<Vec<u8>>,
}

/// A prepared statement, as PREPARE answers it.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    /// Its id.
    pub id: Id,
    /// Its variables.
    pub variables: Arc<BindMetadata>,
    /// What it returns.
    pub result: Arc<ResultMetadata>,
    /// Is it a conditional statement or batch? What it returns is only known once it ran.
    pub is_conditional: bool,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// What a session is warned of, once: what the statement means depends on the session's
    /// keyspace, and it was not known yet, or is run in a session with another.
    pub use_warning: Option<Box<UseWarning>>,
}

/// A warning of a prepared statement that does not name its keyspace.
#[derive(Clone, Debug)]
pub struct UseWarning {
    session: Option<String>,
    statement: Option<String>,
    id: Id,
}

impl UseWarning {
    /// Of a statement of one keyspace, in a session with maybe another.
    pub(crate) fn new(session: Option<&str>, statement: Option<&str>, id: &Id) -> Box<Self> {
        let owned = |keyspace: Option<&str>| keyspace.map(str::to_owned);
        Box::new(Self { session: owned(session), statement: owned(statement), id: *id })
    }
}

impl std::fmt::Display for UseWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |keyspace: &Option<String>| keyspace.clone().unwrap_or_else(|| "null".into());
        write!(
            f,
            "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified table names. Please consider removing instances of `Session#setKeyspace(<keyspace>)`, `Session#execute(\"USE <keyspace>\")` and `cluster.newSession(<keyspace>)` from your code, and always use fully qualified table names (e.g. <keyspace>.<table>). Keyspace used: {}, statement keyspace: {}, statement id: {}",
            shown(&self.session),
            shown(&self.statement),
            types::hex::to_hex(&self.id)
        )
    }
}

fn plain(detail: ErrorDetail, message: impl Into<String>) -> ErrorResponse {
    ErrorResponse { message: message.into(), detail }
}

/// An INVALID error.
pub(crate) fn server_error(error: impl std::fmt::Display) -> ErrorResponse {
    ErrorResponse { message: error.to_string(), detail: ErrorDetail::ServerError }
}

pub(crate) fn invalid(message: impl Into<String>) -> ErrorResponse {
    plain(ErrorDetail::Invalid, message)
}

/// The answer to a statement that cannot be prepared or bound.
pub(crate) fn cql_error(error: CqlError) -> ErrorResponse {
    let message = error.to_string();
    match error {
        CqlError::Syntax(_) => plain(ErrorDetail::SyntaxError, message),
        CqlError::Invalid(_) | CqlError::CannotPage => plain(ErrorDetail::Invalid, message),
        CqlError::Config(_) => plain(ErrorDetail::ConfigError, message),
        CqlError::Unauthorized(_) => plain(ErrorDetail::Unauthorized, message),
        CqlError::AlreadyExists { keyspace, table, .. } => {
            plain(ErrorDetail::AlreadyExists { keyspace, table }, message)
        }
        CqlError::Function { keyspace, name, arguments, .. } => {
            plain(ErrorDetail::FunctionFailure { keyspace, function: name, arguments }, message)
        }
    }
}

/// The answer to text that is no CQL.
pub(crate) fn parse_error(error: &cql::ParseError) -> ErrorResponse {
    let detail = match error {
        cql::ParseError::Syntax(_) => ErrorDetail::SyntaxError,
        cql::ParseError::Invalid(_) => ErrorDetail::Invalid,
    };
    plain(detail, error.to_string())
}

/// The answer to a write that storage refused. Nothing is said to be written that may not be.
pub(crate) fn write_error(
    error: &StorageError,
    consistency: Consistency,
    write_type: WriteType,
) -> ErrorResponse {
    match error {
        StorageError::Deadline => ErrorResponse::write_timeout(consistency, 0, 1, write_type),
        StorageError::MutationTooLarge(_) | StorageError::UnknownTable(_) => {
            invalid(error.to_string())
        }
        StorageError::Encode(_) => plain(ErrorDetail::ServerError, error.to_string()),
        _ => {
            let mut response = ErrorResponse::write_failure(consistency, 0, 1, write_type, &[]);
            response.message = format!("{}: {error}", response.message);
            response
        }
    }
}

/// The answer to a read that storage refused.
pub(crate) fn read_error(error: &StorageError, consistency: Consistency) -> ErrorResponse {
    match error {
        StorageError::Deadline => ErrorResponse::read_timeout(consistency, 0, 1, false),
        StorageError::UnknownTable(_) => invalid(error.to_string()),
        _ => {
            let mut response = ErrorResponse::read_failure(consistency, 0, 1, false, &[]);
            response.message = format!("{}: {error}", response.message);
            response
        }
    }
}
