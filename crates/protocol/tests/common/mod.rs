//! Writes what was read: a response that the client's side read is written by the server's, and the
//! reverse.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use protocol::{
    BatchStatement, Column, Decoder, Direction, Flags, Frame, Limits, MetadataForm, Opcode,
    Outcome, Prepared, Reply, Request, ResultMetadata, Rows, Value, Version,
    class_name::class_name,
    client::{
        self, Answer, BatchItem, BatchRequest, Body, BoundValue, Call, Parameters, PreparedAnswer,
        Response, RowsMetadata,
    },
    header::{HEADER_LENGTH, Header},
    response,
};
use types::CqlType;

pub fn unhex(text: &str) -> Vec<u8> {
    if text == "-" {
        return Vec::new();
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The one message that `bytes` are, outside segments.
pub fn frame(bytes: &[u8], from: Direction) -> Frame<'_> {
    let header = Header::parse(bytes.first_chunk().unwrap(), from).unwrap();
    let body = &bytes[HEADER_LENGTH..];
    assert_eq!(header.length as usize, body.len());
    Frame { header, body }
}

/// Every message in `input`, copied.
pub fn drain(decoder: &mut Decoder, mut input: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut messages = Vec::new();
    loop {
        let step = decoder.next(input);
        match step.outcome {
            Outcome::Frame(frame) => messages.push((frame.header, frame.body.to_vec())),
            Outcome::Wait(_) => {
                assert_eq!(step.consumed, input.len());
                return messages;
            }
            Outcome::Refused(refusal) => panic!("{refusal:?}"),
        }
        input = &input[step.consumed..];
    }
}

pub fn server_decoder() -> Decoder {
    Decoder::new(Limits::default())
}

pub fn client_decoder() -> Decoder {
    Decoder::reading(Direction::Response, Limits::default())
}

fn bound(value: Value<'_>) -> BoundValue {
    match value {
        Value::Null => BoundValue::Null,
        Value::Unset => BoundValue::Unset,
        Value::Bytes(bytes) => BoundValue::Bytes(bytes.to_vec()),
    }
}

fn parameters(options: &protocol::QueryOptions<'_>, version: Version) -> Parameters {
    Parameters {
        consistency: options.consistency,
        serial_consistency: Some(options.serial_consistency)
            .filter(|level| *level != protocol::Consistency::Serial),
        values: options.values.iter().map(bound).collect(),
        names: match options.values.is_named() {
            true => options.values.named().map(|(name, _)| name.to_owned()).collect(),
            false => Vec::new(),
        },
        skip_metadata: options.skip_metadata,
        page_size: options.page_size,
        paging_state: options.paging_state.map(|state| {
            let mut out = Vec::new();
            state.write(version, &mut out);
            out
        }),
        timestamp: options.timestamp,
        keyspace: options.keyspace.map(str::to_owned),
        now_in_seconds: options.now_in_seconds,
    }
}

pub fn write_request(frame: &Frame<'_>, request: Request<'_>) -> Vec<u8> {
    let version = frame.header.version;
    let tracing = frame.header.flags.contains(Flags::TRACING);
    let call = Call { version, stream: frame.header.stream, tracing };
    let out = &mut Vec::new();
    match request {
        Request::Startup(startup) => {
            client::startup(out, call, &startup.options().collect::<Vec<_>>());
        }
        Request::AuthResponse(token) => client::auth_response(out, call, token),
        Request::Options => client::options(out, call),
        Request::Query { text, options } => {
            client::query(out, call, text, &parameters(&options, version));
        }
        Request::Prepare { text, keyspace } => client::prepare(out, call, text, keyspace),
        Request::Execute { id, result_metadata_id, options } => {
            let metadata = result_metadata_id.unwrap_or_default();
            client::execute(out, call, id, metadata, &parameters(&options, version));
        }
        Request::Batch(batch) => {
            let items = batch.entries().map(|entry| {
                let item = match entry.statement {
                    BatchStatement::Text(text) => BatchItem::Text(text.to_owned()),
                    BatchStatement::Prepared(id) => BatchItem::Prepared(id.to_vec()),
                };
                (item, entry.values.iter().map(bound).collect())
            });
            let batch = BatchRequest {
                kind: batch.kind,
                items: items.collect(),
                parameters: parameters(&batch.options, version),
            };
            client::batch(out, call, &batch);
        }
        Request::Register(register) => {
            client::register(out, call, &register.events().collect::<Vec<_>>());
        }
    }
    std::mem::take(out)
}

/// Metadata to write the same again. Where columns were left out, others stand in for them.
fn metadata(of: &RowsMetadata, id: [u8; 16]) -> ResultMetadata {
    let no_metadata = of.flags & 4 != 0;
    if no_metadata && of.column_count == 0 {
        return ResultMetadata::none();
    }
    let column = |index: usize| Column {
        keyspace: "k".into(),
        table: if of.flags & 1 != 0 { "t".into() } else { Arc::from(format!("t{index}")) },
        name: "c".to_owned(),
        cql_type: CqlType::Int,
        reversed: false,
    };
    match no_metadata {
        true => {
            let columns: Vec<_> = (0..of.column_count).map(column).collect();
            ResultMetadata::with_id(&columns, id, class_name)
        }
        false => ResultMetadata::with_id(&of.columns, id, class_name),
    }
}

fn id(bytes: &Option<Vec<u8>>) -> [u8; 16] {
    bytes.as_ref().map_or([0; 16], |id| id.as_slice().try_into().unwrap())
}

fn write_rows(out: &mut Vec<u8>, reply: &Reply<'_>, page: &client::OwnedRows) {
    let form = match (&page.metadata.new_id, page.metadata.flags & 4) {
        (Some(_), _) => MetadataForm::Changed,
        (None, 0) => MetadataForm::Full,
        (None, _) => MetadataForm::Skipped,
    };
    let metadata = metadata(&page.metadata, id(&page.metadata.new_id));
    let mut rows = Rows::begin(out, reply, &metadata, form);
    for row in &page.rows {
        for cell in row {
            match cell {
                None => Rows::null(out),
                Some(cell) => Rows::value(out, cell),
            }
        }
        rows.end_row();
    }
    rows.finish(out, page.metadata.paging_state.as_deref());
}

fn write_prepared(out: &mut Vec<u8>, reply: &Reply<'_>, prepared: &PreparedAnswer) {
    let prepared = Prepared {
        id: prepared.id.as_slice().try_into().unwrap(),
        variables: &prepared.variables,
        result: &metadata(&prepared.result, id(&prepared.result_metadata_id)),
        names: class_name,
    };
    reply.prepared(out, &prepared);
}

pub fn write_response(of: &Response) -> Vec<u8> {
    let reply = Reply {
        version: of.version,
        stream: of.stream,
        tracing: of.tracing,
        warnings: &of.warnings,
    };
    let out = &mut Vec::new();
    match &of.body {
        Body::Error(error) => reply.error(out, error),
        Body::Ready => reply.ready(out),
        Body::Authenticate(class) => reply.authenticate(out, class),
        Body::AuthChallenge(token) => {
            reply.auth_challenge(out, token.as_deref().unwrap_or_default());
        }
        Body::AuthSuccess(token) => reply.auth_success(out, token.as_deref()),
        Body::Supported(options) => {
            let values: Vec<Vec<&str>> = options
                .iter()
                .map(|(_, values)| values.iter().map(String::as_str).collect())
                .collect();
            let options: Vec<_> = options
                .iter()
                .zip(&values)
                .map(|((key, _), values)| (key.as_str(), values.as_slice()))
                .collect();
            reply.supported(out, &options);
        }
        Body::Result(Answer::Void) => reply.void(out),
        Body::Result(Answer::Rows(page)) => write_rows(out, &reply, page),
        Body::Result(Answer::SetKeyspace(keyspace)) => reply.set_keyspace(out, keyspace),
        Body::Result(Answer::Prepared(prepared)) => write_prepared(out, &reply, prepared),
        Body::Result(Answer::SchemaChange(change)) => reply.schema_change(out, change),
        Body::Event(event) => response::event(out, of.version, event),
    }
    std::mem::take(out)
}

pub fn is_request(opcode: Opcode) -> bool {
    opcode.direction() == Direction::Request
}
