//! Requests into bytes.

use crate::{
    Consistency, EventType, Flags, Opcode, Version, batch::BatchKind, header, put,
    query_options::flag,
};

/// Bytes of a paging state, as a previous page brought them.
pub type OwnedPagingState = Vec<u8>;

/// What every request needs to know of its connection.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Version of the connection.
    pub version: Version,
    /// Stream to be answered on.
    pub stream: i16,
    /// Ask for a trace?
    pub tracing: bool,
}

impl Call {
    /// A call without a trace.
    pub fn new(version: Version, stream: i16) -> Self {
        Self { version, stream, tracing: false }
    }

    fn message(self, out: &mut Vec<u8>, opcode: Opcode, body: impl FnOnce(&mut Vec<u8>)) {
        let flags = if self.tracing { Flags::TRACING } else { Flags::default() };
        let start = header::begin(out, self.version, flags, self.stream, opcode);
        body(out);
        header::end(out, start);
    }
}

/// A bound value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundValue {
    /// Null.
    Null,
    /// Not set (version 4 on; null before).
    Unset,
    /// Serialized bytes.
    Bytes(Vec<u8>),
}

impl BoundValue {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => put::i32(out, put::NULL),
            Self::Unset => put::i32(out, put::UNSET),
            Self::Bytes(bytes) => put::bytes(out, bytes),
        }
    }
}

/// Options of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Consistency of the statement.
    pub consistency: Consistency,
    /// Consistency of a conditional update's Paxos part, where not the default.
    pub serial_consistency: Option<Consistency>,
    /// Values by position; with names where `names` holds as many.
    pub values: Vec<BoundValue>,
    /// Names of the values; none for positional values.
    pub names: Vec<String>,
    /// Leave the metadata of the result out.
    pub skip_metadata: bool,
    /// Rows per page.
    pub page_size: Option<i32>,
    /// Where the previous page ended.
    pub paging_state: Option<OwnedPagingState>,
    /// Timestamp of the write, in microseconds.
    pub timestamp: Option<i64>,
    /// Keyspace of unqualified names (version 5 on; dropped before).
    pub keyspace: Option<String>,
    /// "Now" in seconds (version 5 on; dropped before).
    pub now_in_seconds: Option<u32>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self::at(Consistency::One)
    }
}

impl Parameters {
    /// Nothing but a consistency.
    pub fn at(consistency: Consistency) -> Self {
        Self {
            consistency,
            serial_consistency: None,
            values: Vec::new(),
            names: Vec::new(),
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }

    fn named(&self) -> bool {
        !self.values.is_empty() && self.names.len() == self.values.len()
    }

    fn flags(&self, version: Version) -> u32 {
        let modern = version >= Version::V5;
        let bits = [
            (!self.values.is_empty(), flag::VALUES),
            (self.skip_metadata, flag::SKIP_METADATA),
            (self.page_size.is_some(), flag::PAGE_SIZE),
            (self.paging_state.is_some(), flag::PAGING_STATE),
            (self.serial_consistency.is_some(), flag::SERIAL_CONSISTENCY),
            (self.timestamp.is_some(), flag::TIMESTAMP),
            (self.named(), flag::NAMES),
            (modern && self.keyspace.is_some(), flag::KEYSPACE),
            (modern && self.now_in_seconds.is_some(), flag::NOW_IN_SECONDS),
        ];
        bits.into_iter().filter(|(set, _)| *set).fold(0, |flags, (_, bit)| flags | bit)
    }

    fn write(&self, out: &mut Vec<u8>, version: Version) {
        let flags = self.flags(version);
        put::consistency(out, self.consistency);
        if version >= Version::V5 {
            put::i32(out, flags as i32);
        } else {
            put::u8(out, flags as u8);
        }
        if !self.values.is_empty() {
            let count = put::count(out, self.values.len());
            for (index, value) in self.values.iter().take(count).enumerate() {
                if let (true, Some(name)) = (self.named(), self.names.get(index)) {
                    put::string(out, name);
                }
                value.write(out);
            }
        }
        if let Some(size) = self.page_size {
            put::i32(out, size);
        }
        if let Some(state) = &self.paging_state {
            put::bytes(out, state);
        }
        if let Some(consistency) = self.serial_consistency {
            put::consistency(out, consistency);
        }
        if let Some(timestamp) = self.timestamp {
            put::i64(out, timestamp);
        }
        if version >= Version::V5 {
            if let Some(keyspace) = &self.keyspace {
                put::string(out, keyspace);
            }
            if let Some(now) = self.now_in_seconds {
                put::i32(out, now as i32);
            }
        }
    }
}

/// A statement of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchItem {
    /// Its text.
    Text(String),
    /// Id of a prepared statement.
    Prepared(Vec<u8>),
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRequest {
    /// Its kind.
    pub kind: BatchKind,
    /// Its statements and their values.
    pub items: Vec<(BatchItem, Vec<BoundValue>)>,
    /// Options of all of it; its values stay empty.
    pub parameters: Parameters,
}

/// Appends STARTUP.
pub fn startup(out: &mut Vec<u8>, call: Call, options: &[(&str, &str)]) {
    call.message(out, Opcode::Startup, |out| {
        let count = put::count(out, options.len());
        for (key, value) in options.iter().take(count) {
            put::string(out, key);
            put::string(out, value);
        }
    });
}

/// Appends OPTIONS.
pub fn options(out: &mut Vec<u8>, call: Call) {
    call.message(out, Opcode::Options, |_| {});
}

/// Appends AUTH_RESPONSE.
pub fn auth_response(out: &mut Vec<u8>, call: Call, token: &[u8]) {
    call.message(out, Opcode::AuthResponse, |out| put::bytes(out, token));
}

/// Appends REGISTER.
pub fn register(out: &mut Vec<u8>, call: Call, events: &[EventType]) {
    call.message(out, Opcode::Register, |out| {
        put::string_list(out, events.iter().map(|event| event.name()));
    });
}

/// Appends QUERY.
pub fn query(out: &mut Vec<u8>, call: Call, text: &str, parameters: &Parameters) {
    call.message(out, Opcode::Query, |out| {
        put::long_string(out, text);
        parameters.write(out, call.version);
    });
}

/// Appends PREPARE; the keyspace is dropped before version 5.
pub fn prepare(out: &mut Vec<u8>, call: Call, text: &str, keyspace: Option<&str>) {
    call.message(out, Opcode::Prepare, |out| {
        put::long_string(out, text);
        if call.version >= Version::V5 {
            put::i32(out, i32::from(keyspace.is_some()));
            if let Some(keyspace) = keyspace {
                put::string(out, keyspace);
            }
        }
    });
}

/// Appends EXECUTE; the id of the metadata is dropped before version 5.
pub fn execute(
    out: &mut Vec<u8>,
    call: Call,
    id: &[u8],
    result_metadata_id: &[u8],
    parameters: &Parameters,
) {
    call.message(out, Opcode::Execute, |out| {
        put::short_bytes(out, id);
        if call.version >= Version::V5 {
            put::short_bytes(out, result_metadata_id);
        }
        parameters.write(out, call.version);
    });
}

/// Appends BATCH.
pub fn batch(out: &mut Vec<u8>, call: Call, batch: &BatchRequest) {
    call.message(out, Opcode::Batch, |out| {
        put::u8(out, batch.kind as u8);
        let count = put::count(out, batch.items.len());
        for (item, values) in batch.items.iter().take(count) {
            match item {
                BatchItem::Text(text) => {
                    put::u8(out, 0);
                    put::long_string(out, text);
                }
                BatchItem::Prepared(id) => {
                    put::u8(out, 1);
                    put::short_bytes(out, id);
                }
            }
            let count = put::count(out, values.len());
            values.iter().take(count).for_each(|value| value.write(out));
        }
        batch.parameters.write(out, call.version);
    });
}
