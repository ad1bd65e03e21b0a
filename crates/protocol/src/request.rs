//! Requests, read in place.

use crate::{
    batch::Batch,
    decoder::Frame,
    error::ProtocolError,
    event::EventType,
    header::{Flags, Header},
    opcode::Opcode,
    query_options::QueryOptions,
    reader::Reader,
    startup::Startup,
    version::Version,
};

/// A request, borrowed from its frame.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Opens the connection.
    Startup(Startup<'a>),
    /// A token of SASL.
    AuthResponse(&'a [u8]),
    /// What does the server support?
    Options,
    /// A statement.
    Query {
        /// Its text.
        text: &'a str,
        /// Its options.
        options: QueryOptions<'a>,
    },
    /// Prepare a statement.
    Prepare {
        /// Its text.
        text: &'a str,
        /// Keyspace to resolve unqualified names in, instead of the connection's (version 5 on).
        keyspace: Option<&'a str>,
    },
    /// A prepared statement.
    Execute {
        /// Its id; any other length than 16 is an id that nobody prepared.
        id: &'a [u8],
        /// Id of the result's metadata that the client holds (version 5 on).
        result_metadata_id: Option<&'a [u8]>,
        /// Its options.
        options: QueryOptions<'a>,
    },
    /// A batch.
    Batch(Batch<'a>),
    /// Send events.
    Register(Register<'a>),
}

impl<'a> Request<'a> {
    /// Reads a request. Bytes behind it are ignored, as Cassandra does; a custom payload is passed
    /// over.
    pub fn parse(frame: Frame<'a>) -> Result<Self, ProtocolError> {
        let version = frame.header.version;
        let reader = &mut Reader::new(frame.body);
        if frame.header.flags.contains(Flags::CUSTOM_PAYLOAD) {
            skip_custom_payload(reader, version)?;
        }
        match frame.header.opcode {
            Opcode::Startup => Ok(Self::Startup(Startup::parse(reader)?)),
            Opcode::AuthResponse => {
                Ok(Self::AuthResponse(reader.bytes()?.ok_or(ProtocolError::NullToken)?))
            }
            Opcode::Options => Ok(Self::Options),
            Opcode::Query => {
                let text = reader.long_string()?;
                let options = QueryOptions::parse(reader, version)?.check_page_size()?;
                Ok(Self::Query { text, options })
            }
            Opcode::Prepare => prepare(reader, version),
            Opcode::Execute => execute(reader, version),
            Opcode::Batch => Ok(Self::Batch(Batch::parse(reader, version)?)),
            Opcode::Register => Ok(Self::Register(Register::parse(reader, version)?)),
            Opcode::Credentials => Err(ProtocolError::UnsupportedMessage),
            opcode => Err(ProtocolError::WrongDirection { got: opcode.direction(), opcode }),
        }
    }
}

/// Is the request to be traced?
pub fn wants_tracing(header: &Header) -> bool {
    header.flags.contains(Flags::TRACING)
}

fn skip_custom_payload(reader: &mut Reader<'_>, version: Version) -> Result<(), ProtocolError> {
    for _ in 0..reader.u16()? {
        reader.string()?;
        reader.bytes()?;
    }
    if version < Version::V4 { Err(ProtocolError::CustomPayload) } else { Ok(()) }
}

fn prepare<'a>(reader: &mut Reader<'a>, version: Version) -> Result<Request<'a>, ProtocolError> {
    /// Flag of PREPARE: a keyspace follows.
    const KEYSPACE: u32 = 1;
    let text = reader.long_string()?;
    let flags = if version >= Version::V5 { reader.u32()? } else { 0 };
    let keyspace = if flags & KEYSPACE != 0 { Some(reader.string()?) } else { None };
    Ok(Request::Prepare { text, keyspace })
}

fn execute<'a>(reader: &mut Reader<'a>, version: Version) -> Result<Request<'a>, ProtocolError> {
    let id = reader.short_bytes()?;
    let result_metadata_id =
        if version >= Version::V5 { Some(reader.short_bytes()?) } else { None };
    let options = QueryOptions::parse(reader, version)?.check_page_size()?;
    Ok(Request::Execute { id, result_metadata_id, options })
}

/// The events of a REGISTER request.
#[derive(Clone, Copy, Debug)]
pub struct Register<'a> {
    bytes: &'a [u8],
    count: u16,
}

impl<'a> Register<'a> {
    fn parse(reader: &mut Reader<'a>, version: Version) -> Result<Self, ProtocolError> {
        let count = reader.u16()?;
        let register = Self { bytes: reader.rest(), count };
        for _ in 0..count {
            let event = EventType::from_name(reader.string()?)?;
            if event.since() > version {
                return Err(ProtocolError::EventVersion { event: event.name(), version });
            }
        }
        Ok(register)
    }

    /// The events in order.
    pub fn events(&self) -> impl Iterator<Item = EventType> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        (0..self.count).map_while(move |_| EventType::from_name(reader.string().ok()?).ok())
    }
}
