//! Records of a queue: what `FullQueryLogger` and `BinAuditLogger` write, field by field.

use crate::wire::Wire;

/// The only version of records.
const VERSION: i32 = 0;
/// What Cassandra writes for a timestamp that it did not make.
const NO_TIMESTAMP: i64 = i64::MIN;
/// The same of a time in seconds.
const NO_SECONDS: i32 = i32::MIN;

/// The statements of a record.
#[derive(Clone, Debug)]
pub enum Queried<'a> {
    /// One.
    Single(&'a str),
    /// Those of a BATCH message: its kind, their texts, and their values.
    Batch(&'a str, Vec<&'a str>, Vec<Vec<Option<&'a [u8]>>>),
}

/// A record of the full query log.
#[derive(Clone, Debug)]
pub struct QueryRecord<'a> {
    /// When the request began, in milliseconds since 1970.
    pub start_millis: i64,
    /// The protocol's version.
    pub version: u8,
    /// The options as the protocol has them.
    pub options: &'a [u8],
    /// The timestamp of what it wrote, in microseconds, if the node made it.
    pub timestamp: Option<i64>,
    /// The time that it ran at, in seconds, if the node made it.
    pub now_seconds: Option<i32>,
    /// The session's keyspace.
    pub keyspace: Option<&'a str>,
    /// What was asked.
    pub queried: Queried<'a>,
}

impl QueryRecord<'_> {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        let mut wire = Wire::new(&mut out, 0);
        wire.field("version").int(VERSION);
        let kind = match &self.queried {
            Queried::Single(_) => "single-query",
            Queried::Batch(..) => "batch",
        };
        wire.field("type").text(Some(kind));
        wire.field("query-start-time").long(self.start_millis);
        wire.field("protocol-version").int(self.version.into());
        wire.field("query-options").bytes(Some(self.options));
        wire.field("generated-timestamp").long(self.timestamp.unwrap_or(NO_TIMESTAMP));
        wire.field("generated-now-in-seconds").int(self.now_seconds.unwrap_or(NO_SECONDS));
        wire.field("keyspace").text(self.keyspace);
        match &self.queried {
            Queried::Single(text) => wire.field("query").text(Some(text)),
            Queried::Batch(kind, texts, values) => {
                wire.field("batch-type").text(Some(kind));
                // a message has at most 65535 statements of as many values
                wire.field("queries").int(texts.len() as i32);
                texts.iter().for_each(|text| wire.text(Some(text)));
                wire.field("values").int(values.len() as i32);
                for values in values {
                    wire.int(values.len() as i32);
                    values.iter().for_each(|value| wire.bytes(*value));
                }
            }
        }
        out
    }
}

/// The bytes of a record of the audit log.
pub fn audit_record(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut wire = Wire::new(&mut out, 0);
    wire.field("version").int(VERSION);
    wire.field("type").text(Some("audit"));
    wire.field("message").text(Some(text));
    out
}
