//! Responses into owned values.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use super::type_option;
use crate::{
    BindMetadata, Column, ErrorCode, ErrorDetail, ErrorResponse, Event, EventType, FailureReason,
    Failures, Flags, Frame, Opcode, ProtocolError, SchemaChange, StatusChange, TopologyChange,
    Version, WriteType, digest::Id, metadata::flag, reader::Reader, response::kind,
};

type Result<T> = std::result::Result<T, ProtocolError>;

/// A response and what travels with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Version of the connection.
    pub version: Version,
    /// Stream of the request.
    pub stream: i16,
    /// Id of the trace.
    pub tracing: Option<Id>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// The response itself.
    pub body: Body,
}

/// The kinds of response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named by the protocol's specification, section 4.2")]
pub enum Body {
    Error(ErrorResponse),
    Ready,
    Authenticate(String),
    AuthChallenge(Option<Vec<u8>>),
    AuthSuccess(Option<Vec<u8>>),
    Supported(Vec<(String, Vec<String>)>),
    Result(Answer),
    Event(Event),
}

/// The kinds of RESULT.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named by the protocol's specification, section 4.2.5")]
pub enum Answer {
    Void,
    Rows(OwnedRows),
    SetKeyspace(String),
    Prepared(PreparedAnswer),
    SchemaChange(SchemaChange),
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRows {
    /// What the page says of its columns.
    pub metadata: RowsMetadata,
    /// Rows of cells.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// Metadata of a page, or of what a prepared statement returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsMetadata {
    /// Its flags as they came.
    pub flags: i32,
    /// Number of columns.
    pub column_count: usize,
    /// State to ask for the next page with.
    pub paging_state: Option<Vec<u8>>,
    /// The new id, where the metadata changed.
    pub new_id: Option<Vec<u8>>,
    /// The columns; none where they were left out.
    pub columns: Vec<Column>,
}

/// A prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedAnswer {
    /// Its id.
    pub id: Vec<u8>,
    /// Id of the result's metadata (version 5 on).
    pub result_metadata_id: Option<Vec<u8>>,
    /// Its variables.
    pub variables: BindMetadata,
    /// What it returns.
    pub result: RowsMetadata,
}

impl Response {
    /// Reads a response. Nothing is allocated on the word of a count: every item read takes bytes
    /// of the body.
    pub fn parse(frame: Frame<'_>) -> Result<Self> {
        let version = frame.header.version;
        let flags = frame.header.flags;
        let reader = &mut Reader::new(frame.body);
        let tracing = if flags.contains(Flags::TRACING) { Some(reader.array()?) } else { None };
        let warnings =
            if flags.contains(Flags::WARNING) { string_list(reader)? } else { Vec::new() };
        if flags.contains(Flags::CUSTOM_PAYLOAD) {
            for _ in 0..reader.u16()? {
                reader.string()?;
                reader.bytes()?;
            }
        }
        let body = match frame.header.opcode {
            Opcode::Error => Body::Error(error(reader, version)?),
            Opcode::Ready => Body::Ready,
            Opcode::Authenticate => Body::Authenticate(reader.string()?.to_owned()),
            Opcode::AuthChallenge => Body::AuthChallenge(owned(reader.bytes()?)),
            Opcode::AuthSuccess => Body::AuthSuccess(owned(reader.bytes()?)),
            Opcode::Supported => {
                let count = reader.u16()?;
                let options =
                    (0..count).map(|_| Ok((reader.string()?.to_owned(), string_list(reader)?)));
                Body::Supported(options.collect::<Result<_>>()?)
            }
            Opcode::Result => Body::Result(result(reader, version)?),
            Opcode::Event => Body::Event(event(reader)?),
            opcode => {
                return Err(ProtocolError::WrongDirection { got: opcode.direction(), opcode });
            }
        };
        Ok(Self { version, stream: frame.header.stream, tracing, warnings, body })
    }
}

fn owned(bytes: Option<&[u8]>) -> Option<Vec<u8>> {
    bytes.map(<[u8]>::to_vec)
}

fn unknown(what: &'static str, value: i32) -> ProtocolError {
    ProtocolError::UnknownInResponse { what, value: i64::from(value) }
}

fn string_list(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    (0..reader.u16()?).map(|_| Ok(reader.string()?.to_owned())).collect()
}

fn result(reader: &mut Reader<'_>, version: Version) -> Result<Answer> {
    match reader.i32()? {
        kind::VOID => Ok(Answer::Void),
        kind::ROWS => Ok(Answer::Rows(rows(reader)?)),
        kind::SET_KEYSPACE => Ok(Answer::SetKeyspace(reader.string()?.to_owned())),
        kind::PREPARED => Ok(Answer::Prepared(prepared(reader, version)?)),
        kind::SCHEMA_CHANGE => Ok(Answer::SchemaChange(SchemaChange::parse(reader)?)),
        other => Err(unknown("kind of result", other)),
    }
}

fn rows(reader: &mut Reader<'_>) -> Result<OwnedRows> {
    let metadata = rows_metadata(reader)?;
    let count = reader.i32()?;
    // rows of no columns take no bytes, so their number cannot be believed
    let count = if metadata.column_count == 0 { 0 } else { count.max(0) };
    let row = |reader: &mut Reader<'_>| {
        (0..metadata.column_count).map(|_| Ok(owned(reader.bytes()?))).collect::<Result<Vec<_>>>()
    };
    let rows = (0..count).map(|_| row(reader)).collect::<Result<_>>()?;
    Ok(OwnedRows { metadata, rows })
}

fn column_count(reader: &mut Reader<'_>) -> Result<usize> {
    let count = reader.i32()?;
    usize::try_from(count).map_err(|_| unknown("column count", count))
}

fn rows_metadata(reader: &mut Reader<'_>) -> Result<RowsMetadata> {
    let flags = reader.i32()?;
    let column_count = column_count(reader)?;
    let has = |bit| flags & bit != 0;
    let paging_state = if has(flag::HAS_MORE_PAGES) { owned(reader.bytes()?) } else { None };
    let new_id =
        if has(flag::METADATA_CHANGED) { Some(reader.short_bytes()?.to_vec()) } else { None };
    let columns =
        if has(flag::NO_METADATA) { Vec::new() } else { columns(reader, flags, column_count)? };
    Ok(RowsMetadata { flags, column_count, paging_state, new_id, columns })
}

fn columns(reader: &mut Reader<'_>, flags: i32, count: usize) -> Result<Vec<Column>> {
    let table = |reader: &mut Reader<'_>| -> Result<(Arc<str>, Arc<str>)> {
        Ok((reader.string()?.into(), reader.string()?.into()))
    };
    let global = if flags & flag::GLOBAL_TABLES_SPEC != 0 && count > 0 {
        Some(table(reader)?)
    } else {
        None
    };
    let column = |_| {
        let (keyspace, table) = match &global {
            Some(global) => global.clone(),
            None => table(reader)?,
        };
        let name = reader.string()?.to_owned();
        let cql_type = type_option::parse(reader, 0)?;
        Ok(Column { keyspace, table, name, cql_type, reversed: false })
    };
    (0..count).map(column).collect()
}

fn prepared(reader: &mut Reader<'_>, version: Version) -> Result<PreparedAnswer> {
    let id = reader.short_bytes()?.to_vec();
    let result_metadata_id =
        if version >= Version::V5 { Some(reader.short_bytes()?.to_vec()) } else { None };
    let flags = reader.i32()?;
    let count = column_count(reader)?;
    let partition_key = if version >= Version::V4 {
        (0..reader.i32()?).map(|_| reader.u16()).collect::<Result<_>>()?
    } else {
        Vec::new()
    };
    let variables = BindMetadata { variables: columns(reader, flags, count)?, partition_key };
    Ok(PreparedAnswer { id, result_metadata_id, variables, result: rows_metadata(reader)? })
}

fn event(reader: &mut Reader<'_>) -> Result<Event> {
    match EventType::from_name(reader.string()?)? {
        EventType::TopologyChange => {
            Ok(Event::Topology(TopologyChange::from_name(reader.string()?)?, socket(reader)?))
        }
        EventType::StatusChange => {
            Ok(Event::Status(StatusChange::from_name(reader.string()?)?, socket(reader)?))
        }
        EventType::SchemaChange => Ok(Event::Schema(SchemaChange::parse(reader)?)),
        EventType::TraceComplete => Err(ProtocolError::UnknownName {
            value: EventType::TraceComplete.name().to_owned(),
            kind: "Type",
        }),
    }
}

fn address(reader: &mut Reader<'_>) -> Result<IpAddr> {
    match reader.u8()? {
        4 => Ok(reader.array::<4>()?.into()),
        16 => Ok(reader.array::<16>()?.into()),
        other => Err(unknown("length of an address", i32::from(other))),
    }
}

fn socket(reader: &mut Reader<'_>) -> Result<SocketAddr> {
    let address = address(reader)?;
    let port = reader.i32()?;
    let port = u16::try_from(port).map_err(|_| unknown("port", port))?;
    Ok(SocketAddr::new(address, port))
}

fn write_type(reader: &mut Reader<'_>) -> Result<WriteType> {
    let name = reader.string()?;
    WriteType::from_name(name).ok_or_else(|| ProtocolError::UnknownName {
        value: name.chars().take(32).collect(),
        kind: "WriteType",
    })
}

fn failures(reader: &mut Reader<'_>, version: Version) -> Result<Failures> {
    let count = reader.i32()?;
    if version < Version::V5 {
        return Ok(Failures::Counted(count));
    }
    let failure = |_| Ok((address(reader)?, FailureReason::from_code(reader.u16()?)));
    Ok(Failures::Known((0..count).map(failure).collect::<Result<_>>()?))
}

fn error(reader: &mut Reader<'_>, version: Version) -> Result<ErrorResponse> {
    let number = reader.i32()?;
    let code = ErrorCode::from_code(number).ok_or_else(|| unknown("error code", number))?;
    let message = reader.string()?.to_owned();
    let detail = match code {
        ErrorCode::ServerError => ErrorDetail::ServerError,
        ErrorCode::ProtocolError => ErrorDetail::ProtocolError,
        ErrorCode::BadCredentials => ErrorDetail::BadCredentials,
        ErrorCode::Overloaded => ErrorDetail::Overloaded,
        ErrorCode::IsBootstrapping => ErrorDetail::IsBootstrapping,
        ErrorCode::TruncateError => ErrorDetail::TruncateError,
        ErrorCode::CdcWriteFailure => ErrorDetail::CdcWriteFailure,
        ErrorCode::SyntaxError => ErrorDetail::SyntaxError,
        ErrorCode::Unauthorized => ErrorDetail::Unauthorized,
        ErrorCode::Invalid => ErrorDetail::Invalid,
        ErrorCode::ConfigError => ErrorDetail::ConfigError,
        ErrorCode::FunctionFailure => ErrorDetail::FunctionFailure {
            keyspace: reader.string()?.to_owned(),
            function: reader.string()?.to_owned(),
            arguments: string_list(reader)?,
        },
        ErrorCode::AlreadyExists => ErrorDetail::AlreadyExists {
            keyspace: reader.string()?.to_owned(),
            table: reader.string()?.to_owned(),
        },
        ErrorCode::Unprepared => ErrorDetail::Unprepared { id: reader.short_bytes()?.to_vec() },
        _ => replicas(reader, version, code)?,
    };
    Ok(ErrorResponse { message, detail })
}

/// Errors that count replicas.
fn replicas(reader: &mut Reader<'_>, version: Version, code: ErrorCode) -> Result<ErrorDetail> {
    let consistency = reader.consistency()?;
    let (received, block_for) = (reader.i32()?, reader.i32()?);
    Ok(match code {
        ErrorCode::WriteTimeout => {
            let write_type = write_type(reader)?;
            // Cassandra writes CAS timeouts with and without it
            let has_contentions = version >= Version::V5
                && write_type == WriteType::Cas
                && reader.remaining() >= size_of::<u16>();
            let contentions = if has_contentions { Some(reader.u16()?) } else { None };
            ErrorDetail::WriteTimeout { consistency, received, block_for, write_type, contentions }
        }
        ErrorCode::ReadTimeout => {
            let data_present = reader.u8()? != 0;
            ErrorDetail::ReadTimeout { consistency, received, block_for, data_present }
        }
        ErrorCode::ReadFailure => {
            let failures = failures(reader, version)?;
            let data_present = reader.u8()? != 0;
            ErrorDetail::ReadFailure { consistency, received, block_for, failures, data_present }
        }
        ErrorCode::WriteFailure => {
            let failures = failures(reader, version)?;
            let write_type = write_type(reader)?;
            ErrorDetail::WriteFailure { consistency, received, block_for, failures, write_type }
        }
        ErrorCode::CasWriteUnknown => {
            ErrorDetail::CasWriteUnknown { consistency, received, block_for }
        }
        _ => ErrorDetail::Unavailable { consistency, required: received, alive: block_for },
    })
}
