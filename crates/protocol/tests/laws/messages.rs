//! Messages of every kind and version, drawn at random.

use std::net::{IpAddr, SocketAddr};

use proptest::{collection::vec, option, prelude::*, sample::select};
use protocol::{
    BatchKind, BindMetadata, Change, Column, Compression, Consistency, ErrorCode, ErrorDetail,
    ErrorResponse, Event, EventType, FailureReason, Failures, SchemaChange, StatusChange, Target,
    TopologyChange, Version, WriteType,
    client::{
        self, Answer, BatchItem, BatchRequest, Body, BoundValue, Call, OwnedRows, Parameters,
        PreparedAnswer, Response, RowsMetadata,
    },
};
use types::{CqlType, UserType};

pub fn versions() -> impl Strategy<Value = Version> {
    select(&Version::ALL[..])
}

fn consistencies() -> impl Strategy<Value = Consistency> {
    select(&Consistency::ALL[..])
}

pub fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..most)
}

fn bound_values(version: Version) -> impl Strategy<Value = BoundValue> {
    let unset = if version >= Version::V4 { BoundValue::Unset } else { BoundValue::Null };
    prop_oneof![
        4 => bytes(20).prop_map(BoundValue::Bytes),
        1 => Just(BoundValue::Null),
        1 => Just(unset),
    ]
}

fn paging_states(version: Version) -> impl Strategy<Value = Vec<u8>> {
    (bytes(20), 0..=i32::MAX, 0..=i32::MAX).prop_map(move |(key, remaining, in_partition)| {
        let state = protocol::PagingState {
            partition_key: (!key.is_empty()).then_some(key.as_slice()),
            row_mark: None,
            remaining,
            remaining_in_partition: in_partition,
        };
        let mut out = Vec::new();
        state.write(version, &mut out);
        out
    })
}

pub fn parameters(version: Version, with_values: bool) -> impl Strategy<Value = Parameters> {
    let values = vec((".{0,4}", bound_values(version)), 0..if with_values { 40 } else { 1 });
    let modern = version >= Version::V5;
    (
        (consistencies(), option::of(consistencies()), values, any::<bool>(), any::<bool>()),
        option::of(1..=i32::MAX),
        option::of(paging_states(version)),
        option::of(i64::MIN + 1..=i64::MAX),
        option::of("[a-z]{0,5}"),
        option::of(any::<u32>()),
    )
        .prop_map(move |(first, page_size, paging_state, timestamp, keyspace, now)| {
            let (consistency, serial, values, named, skip_metadata) = first;
            let (names, values): (Vec<_>, Vec<_>) = values.into_iter().unzip();
            Parameters {
                consistency,
                serial_consistency: serial.filter(|level| *level != Consistency::Serial),
                names: if named { names } else { Vec::new() },
                values,
                skip_metadata,
                page_size,
                paging_state,
                timestamp,
                keyspace: keyspace.filter(|_| modern),
                now_in_seconds: now.filter(|_| modern),
            }
        })
}

/// Requests of every kind, encoded.
pub fn requests(version: Version) -> impl Strategy<Value = Vec<u8>> {
    let call = (any::<i16>(), any::<bool>()).prop_map(move |(stream, tracing)| Call {
        version,
        stream,
        tracing,
    });
    let encode = move |write: fn(&mut Vec<u8>, Call, Ask), ask: BoxedStrategy<Ask>| {
        (call.clone(), ask).prop_map(move |(call, ask)| {
            let mut out = Vec::new();
            write(&mut out, call, ask);
            out
        })
    };
    encode(Ask::write, asks(version))
}

#[derive(Clone, Debug)]
enum Ask {
    Startup(Vec<(String, String)>),
    Auth(Vec<u8>),
    Options,
    Query(String, Parameters),
    Prepare(String, Option<String>),
    Execute(Vec<u8>, Vec<u8>, Parameters),
    Batch(BatchRequest),
    Register(Vec<EventType>),
}

impl Ask {
    fn write(out: &mut Vec<u8>, call: Call, ask: Self) {
        match ask {
            Self::Startup(options) => {
                let options: Vec<_> =
                    options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
                client::startup(out, call, &options);
            }
            Self::Auth(token) => client::auth_response(out, call, &token),
            Self::Options => client::options(out, call),
            Self::Query(text, parameters) => client::query(out, call, &text, &parameters),
            Self::Prepare(text, keyspace) => {
                client::prepare(out, call, &text, keyspace.as_deref());
            }
            Self::Execute(id, metadata, parameters) => {
                client::execute(out, call, &id, &metadata, &parameters);
            }
            Self::Batch(batch) => client::batch(out, call, &batch),
            Self::Register(events) => client::register(out, call, &events),
        }
    }
}

fn asks(version: Version) -> BoxedStrategy<Ask> {
    let item =
        prop_oneof![".{0,9}".prop_map(BatchItem::Text), bytes(20).prop_map(BatchItem::Prepared),];
    let items = vec((item, vec(bound_values(version), 0..20)), 0..5);
    let kinds = select(vec![BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter]);
    let events = select(EventType::ALL.to_vec())
        .prop_filter("of the version", move |event| event.since() <= version);
    prop_oneof![
        vec((".{0,9}", ".{0,9}"), 0..4).prop_map(Ask::Startup),
        bytes(30).prop_map(Ask::Auth),
        Just(Ask::Options),
        (".{0,30}", parameters(version, true)).prop_map(|(text, it)| Ask::Query(text, it)),
        (".{0,30}", option::of(".{0,5}")).prop_map(|(text, keyspace)| Ask::Prepare(text, keyspace)),
        (bytes(20), bytes(20), parameters(version, true))
            .prop_map(|(id, metadata, it)| Ask::Execute(id, metadata, it)),
        (kinds, items, parameters(version, false)).prop_map(|(kind, items, mut parameters)| {
            parameters.values.clear();
            parameters.names.clear();
            Ask::Batch(BatchRequest { kind, items, parameters })
        }),
        vec(events, 0..5).prop_map(Ask::Register),
    ]
    .boxed()
}

fn cql_types() -> impl Strategy<Value = CqlType> {
    let leaf = prop_oneof![
        select(vec![
            CqlType::Ascii,
            CqlType::BigInt,
            CqlType::Counter,
            CqlType::Int,
            CqlType::Text,
            CqlType::Uuid,
        ]),
        "[a-zA-Z.]{1,20}".prop_map(|class| CqlType::Custom(class.into())),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|it| CqlType::List { element: it.into(), frozen: true }),
            inner.clone().prop_map(|it| CqlType::Set { element: it.into(), frozen: true }),
            two.prop_map(|(key, value)| CqlType::Map {
                key: key.into(),
                value: value.into(),
                frozen: true
            }),
            vec(inner.clone(), 0..4).prop_map(|elements| CqlType::Tuple(elements.into())),
            vec(("[a-z]{1,4}", inner), 0..4).prop_map(|fields| {
                let definition =
                    UserType { keyspace: "k".to_owned(), name: "u".to_owned(), fields };
                CqlType::Udt { definition: definition.into(), frozen: true }
            }),
        ]
    })
}

fn columns(one_table: bool) -> impl Strategy<Value = Vec<Column>> {
    vec(("[a-z]{1,3}", ".{0,5}", cql_types()), 1..5).prop_map(move |columns| {
        let column = |(table, name, cql_type): (String, String, CqlType)| Column {
            keyspace: "ks".into(),
            table: if one_table { "t".into() } else { table.into() },
            name,
            cql_type,
            reversed: false,
        };
        columns.into_iter().map(column).collect()
    })
}

fn global(columns: &[Column]) -> i32 {
    i32::from(columns.iter().all(|column| column.table == columns[0].table))
}

fn pages(version: Version) -> impl Strategy<Value = OwnedRows> {
    let modern = version >= Version::V5;
    (any::<bool>().prop_flat_map(columns), 0..3u8, option::of(bytes(9)))
        .prop_flat_map(move |(columns, form, paging_state)| {
            let rows = vec(vec(option::of(bytes(9)), columns.len()), 0..5);
            (Just((columns, form, paging_state)), rows)
        })
        .prop_map(move |((columns, form, paging_state), rows)| {
            let changed = form == 1 && modern;
            let skipped = form == 2;
            let flags = global(&columns)
                | if paging_state.is_some() { 2 } else { 0 }
                | if skipped { 4 } else { 0 }
                | if changed { 8 } else { 0 };
            let metadata = RowsMetadata {
                flags,
                column_count: columns.len(),
                paging_state,
                new_id: changed.then(|| vec![7; 16]),
                columns: if skipped { Vec::new() } else { columns },
            };
            OwnedRows { metadata, rows }
        })
}

fn prepared_answers(version: Version) -> impl Strategy<Value = PreparedAnswer> {
    let variables = any::<bool>().prop_flat_map(columns);
    let indexes = vec(any::<u16>(), 0..3);
    (any::<[u8; 16]>(), variables, indexes, any::<bool>().prop_flat_map(columns)).prop_map(
        move |(id, variables, indexes, columns)| {
            let with_indexes = version >= Version::V4 && global(&variables) == 1;
            PreparedAnswer {
                id: id.to_vec(),
                result_metadata_id: (version >= Version::V5).then(|| vec![9; 16]),
                variables: BindMetadata {
                    variables,
                    partition_key: if with_indexes { indexes } else { Vec::new() },
                },
                result: RowsMetadata {
                    flags: global(&columns),
                    column_count: columns.len(),
                    paging_state: None,
                    new_id: None,
                    columns,
                },
            }
        },
    )
}

fn schema_changes(version: Version) -> impl Strategy<Value = SchemaChange> {
    let names = ("[a-z]{1,5}", "[a-z]{1,5}", vec("[a-z]{1,5}", 0..4));
    (select(Change::ALL), select(Target::ALL), names).prop_map(
        move |(change, target, (keyspace, name, arguments))| {
            let callable = matches!(target, Target::Function | Target::Aggregate);
            let target = if callable && version < Version::V4 { Target::Table } else { target };
            let callable = callable && version >= Version::V4;
            SchemaChange {
                change,
                target,
                keyspace,
                name: if target == Target::Keyspace { String::new() } else { name },
                arguments: if callable { arguments } else { Vec::new() },
            }
        },
    )
}

fn sockets() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(address, port)| SocketAddr::new(address, port))
}

fn events(version: Version) -> impl Strategy<Value = Event> {
    prop_oneof![
        (select(TopologyChange::ALL), sockets()).prop_map(|(it, node)| Event::Topology(it, node)),
        (select(StatusChange::ALL), sockets()).prop_map(|(it, node)| Event::Status(it, node)),
        schema_changes(version).prop_map(Event::Schema),
    ]
}

/// Details of every code, in the form that the version knows.
fn details(version: Version) -> impl Strategy<Value = ErrorDetail> {
    let code = select(ErrorCode::ALL.to_vec());
    let numbers = (consistencies(), any::<i32>(), any::<i32>());
    let failures = vec((any::<IpAddr>(), select(FailureReason::ALL.to_vec())), 0..4);
    let strings = (".{0,5}", ".{0,5}", vec(".{0,5}", 0..3));
    let rest = (any::<bool>(), select(WriteType::ALL.to_vec()), any::<u16>(), bytes(20));
    (code, numbers, failures, strings, rest).prop_map(move |it| {
        let (code, (consistency, received, block_for), failures, strings, rest) = it;
        let (keyspace, second, arguments) = strings;
        let (data_present, write_type, contentions, id) = rest;
        let failures = match version >= Version::V5 {
            true => Failures::Known(failures),
            false => Failures::Counted(failures.len() as i32),
        };
        let contentions =
            Some(contentions).filter(|_| write_type == WriteType::Cas && version >= Version::V5);
        match code {
            ErrorCode::Unavailable => {
                ErrorDetail::Unavailable { consistency, required: received, alive: block_for }
            }
            ErrorCode::WriteTimeout => ErrorDetail::WriteTimeout {
                consistency,
                received,
                block_for,
                write_type,
                contentions,
            },
            ErrorCode::ReadTimeout => {
                ErrorDetail::ReadTimeout { consistency, received, block_for, data_present }
            }
            ErrorCode::ReadFailure if version >= Version::V4 => ErrorDetail::ReadFailure {
                consistency,
                received,
                block_for,
                failures,
                data_present,
            },
            ErrorCode::WriteFailure if version >= Version::V4 => {
                ErrorDetail::WriteFailure { consistency, received, block_for, failures, write_type }
            }
            ErrorCode::FunctionFailure if version >= Version::V4 => {
                ErrorDetail::FunctionFailure { keyspace, function: second, arguments }
            }
            ErrorCode::CasWriteUnknown if version >= Version::V5 => {
                ErrorDetail::CasWriteUnknown { consistency, received, block_for }
            }
            ErrorCode::CdcWriteFailure if version >= Version::V4 => ErrorDetail::CdcWriteFailure,
            ErrorCode::AlreadyExists => ErrorDetail::AlreadyExists { keyspace, table: second },
            ErrorCode::Unprepared => ErrorDetail::Unprepared { id },
            ErrorCode::ProtocolError => ErrorDetail::ProtocolError,
            ErrorCode::BadCredentials => ErrorDetail::BadCredentials,
            ErrorCode::Overloaded => ErrorDetail::Overloaded,
            ErrorCode::IsBootstrapping => ErrorDetail::IsBootstrapping,
            ErrorCode::TruncateError => ErrorDetail::TruncateError,
            ErrorCode::SyntaxError => ErrorDetail::SyntaxError,
            ErrorCode::Unauthorized => ErrorDetail::Unauthorized,
            ErrorCode::Invalid => ErrorDetail::Invalid,
            ErrorCode::ConfigError => ErrorDetail::ConfigError,
            _ => ErrorDetail::ServerError,
        }
    })
}

fn bodies(version: Version) -> impl Strategy<Value = Body> {
    let result = prop_oneof![
        Just(Answer::Void),
        pages(version).prop_map(Answer::Rows),
        "[a-z]{0,9}".prop_map(Answer::SetKeyspace),
        prepared_answers(version).prop_map(Answer::Prepared),
        schema_changes(version).prop_map(Answer::SchemaChange),
    ];
    prop_oneof![
        4 => (".{0,20}", details(version))
            .prop_map(|(message, detail)| Body::Error(ErrorResponse { message, detail })),
        1 => Just(Body::Ready),
        1 => "[a-z.]{0,20}".prop_map(Body::Authenticate),
        1 => bytes(20).prop_map(|token| Body::AuthChallenge(Some(token))),
        1 => option::of(bytes(20)).prop_map(Body::AuthSuccess),
        1 => vec(("[A-Z]{0,5}", vec("[a-z]{0,5}", 0..3)), 0..3).prop_map(Body::Supported),
        6 => result.prop_map(Body::Result),
        2 => events(version).prop_map(Body::Event),
    ]
}

pub fn responses(version: Version) -> impl Strategy<Value = Response> {
    let warnings = vec(".{0,9}", 0..3);
    (any::<i16>(), option::of(any::<[u8; 16]>()), warnings, bodies(version)).prop_map(
        move |(stream, tracing, warnings, body)| {
            let event = matches!(body, Body::Event(_));
            Response {
                version,
                stream: if event { -1 } else { stream },
                tracing: tracing.filter(|_| !event),
                warnings: if event || version < Version::V4 { Vec::new() } else { warnings },
                body,
            }
        },
    )
}

pub fn compressions(version: Version) -> impl Strategy<Value = Option<Compression>> {
    let snappy = if version < Version::V5 { Compression::Snappy } else { Compression::Lz4 };
    select(vec![None, Some(Compression::Lz4), Some(snappy)])
}
