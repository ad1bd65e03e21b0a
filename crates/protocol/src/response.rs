//! Responses, written straight into an output buffer; the length is patched when they end.
//!
//! Every connection wraps them in its framer, [`Framer::write`](crate::Framer::write), which
//! compresses or packs what they wrote.

use crate::{
    class_name::ClassName,
    decoder::Refusal,
    digest::Id,
    error_response::{ErrorDetail, ErrorResponse},
    event::{Event, SchemaChange},
    header::{self, EVENT_STREAM, Flags, RESPONSE},
    metadata::{BindMetadata, MetadataForm, ResultMetadata},
    opcode::Opcode,
    put,
    version::Version,
};

/// Kinds of RESULT.
pub(crate) mod kind {
    pub const VOID: i32 = 1;
    pub const ROWS: i32 = 2;
    pub const SET_KEYSPACE: i32 = 3;
    pub const PREPARED: i32 = 4;
    pub const SCHEMA_CHANGE: i32 = 5;
}

/// What every response needs to know of its request.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// Version of the connection.
    pub version: Version,
    /// Stream of the request.
    pub stream: i16,
    /// Id of the trace, where the client asked for one.
    pub tracing: Option<[u8; 16]>,
    /// Warnings; they are dropped before version 4.
    pub warnings: &'a [String],
}

impl Reply<'_> {
    /// A reply without trace and warnings.
    pub fn new(version: Version, stream: i16) -> Self {
        Self { version, stream, tracing: None, warnings: &[] }
    }

    /// Writes the header and what precedes the body; returns where the message starts.
    pub(crate) fn begin(&self, out: &mut Vec<u8>, opcode: Opcode) -> usize {
        let warnings = if self.version < Version::V4 { &[] } else { self.warnings };
        let mut flags = Flags::default();
        if self.tracing.is_some() {
            flags = flags.with(Flags::TRACING);
        }
        if !warnings.is_empty() {
            flags = flags.with(Flags::WARNING);
        }
        let start = header::begin(out, self.version, flags, self.stream, opcode);
        if let Some(id) = self.tracing {
            out.extend_from_slice(&id);
        }
        if !warnings.is_empty() {
            put::string_list(out, warnings.iter().map(String::as_str));
        }
        start
    }

    fn message(&self, out: &mut Vec<u8>, opcode: Opcode, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.begin(out, opcode);
        body(out);
        header::end(out, start);
    }

    fn result(&self, out: &mut Vec<u8>, kind: i32, body: impl FnOnce(&mut Vec<u8>)) {
        self.message(out, Opcode::Result, |out| {
            put::i32(out, kind);
            body(out);
        });
    }

    /// READY.
    pub fn ready(&self, out: &mut Vec<u8>) {
        self.message(out, Opcode::Ready, |_| {});
    }

    /// AUTHENTICATE with the class of the authenticator. Drivers know classes by name.
    pub fn authenticate(&self, out: &mut Vec<u8>, class: &str) {
        self.message(out, Opcode::Authenticate, |out| put::string(out, class));
    }

    /// AUTH_CHALLENGE.
    pub fn auth_challenge(&self, out: &mut Vec<u8>, token: &[u8]) {
        self.message(out, Opcode::AuthChallenge, |out| put::bytes(out, token));
    }

    /// AUTH_SUCCESS.
    pub fn auth_success(&self, out: &mut Vec<u8>, token: Option<&[u8]>) {
        self.message(out, Opcode::AuthSuccess, |out| put::nullable(out, token));
    }

    /// SUPPORTED: options and their values, in the order given.
    pub fn supported(&self, out: &mut Vec<u8>, options: &[(&str, &[&str])]) {
        self.message(out, Opcode::Supported, |out| {
            let count = put::count(out, options.len());
            for (key, values) in options.iter().take(count) {
                put::string(out, key);
                put::string_list(out, values.iter().copied());
            }
        });
    }

    /// ERROR, in the form that the version knows.
    pub fn error(&self, out: &mut Vec<u8>, error: &ErrorResponse) {
        self.message(out, Opcode::Error, |out| error.write(out, self.version));
    }

    /// RESULT of a statement that returns nothing.
    pub fn void(&self, out: &mut Vec<u8>) {
        self.result(out, kind::VOID, |_| {});
    }

    /// RESULT of USE.
    pub fn set_keyspace(&self, out: &mut Vec<u8>, keyspace: &str) {
        self.result(out, kind::SET_KEYSPACE, |out| put::string(out, keyspace));
    }

    /// RESULT of a change of the schema.
    pub fn schema_change(&self, out: &mut Vec<u8>, change: &SchemaChange) {
        self.result(out, kind::SCHEMA_CHANGE, |out| change.write(out, self.version));
    }

    /// RESULT of PREPARE.
    pub fn prepared(&self, out: &mut Vec<u8>, prepared: &Prepared<'_>) {
        self.result(out, kind::PREPARED, |out| {
            put::short_bytes(out, &prepared.id);
            if self.version >= Version::V5 {
                put::short_bytes(out, &prepared.result.id());
            }
            prepared.variables.write(out, self.version, prepared.names);
            prepared.result.write(out, self.version, MetadataForm::Full);
        });
    }
}

/// A prepared statement as its client learns of it.
#[derive(Clone, Copy, Debug)]
pub struct Prepared<'a> {
    /// Id of the statement ([`digest::prepared_id`](crate::digest::prepared_id)).
    pub id: Id,
    /// Its variables.
    pub variables: &'a BindMetadata,
    /// What it returns.
    pub result: &'a ResultMetadata,
    /// Class strings of types.
    pub names: ClassName,
}

/// Writes an EVENT.
pub fn event(out: &mut Vec<u8>, version: Version, event: &Event) {
    Reply::new(version, EVENT_STREAM).message(out, Opcode::Event, |out| event.write(out, version));
}

/// Writes the answer to a message that was refused; it goes through the connection's framer like
/// any other. Versions 1 and 2 are answered with a header of theirs.
pub fn refusal(out: &mut Vec<u8>, refusal: &Refusal) {
    let error =
        ErrorResponse { message: refusal.error.to_string(), ..ErrorResponse::from(&refusal.error) };
    let stream = refusal.stream.unwrap_or(0);
    match Version::from_number(refusal.version) {
        Ok(version) => Reply::new(version, stream).error(out, &error),
        Err(_) => {
            let [_, low] = stream.to_be_bytes();
            out.extend_from_slice(&[refusal.version | RESPONSE, 0, low, Opcode::Error as u8]);
            let length_at = out.len();
            put::i32(out, 0);
            error.write(out, Version::V3);
            let length = out.len() - length_at - size_of::<i32>();
            put::patch_i32(out, length_at, i32::try_from(length).unwrap_or(i32::MAX));
        }
    }
}

/// A plain error of this text, for codes that carry nothing else.
pub fn plain_error(detail: ErrorDetail, message: impl Into<String>) -> ErrorResponse {
    ErrorResponse { message: message.into(), detail }
}
