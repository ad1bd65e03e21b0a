//! Exchanges with Apache Cassandra 5.0.9, byte for byte: a coordinator that knows Cassandra's
//! answers gives them through the server, and the bytes on the wire are Cassandra's.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use env::{Env, Mesh, TcpStream};
use metrics::Registry;
use protocol::class_name::class_name;
use protocol::client::{self, Body, Response, RowsMetadata};
use protocol::{
    Batch, Column, Direction, ErrorDetail, ErrorResponse, Frame, Header, MetadataForm,
    QueryOptions, ResultMetadata, Version,
};
use server::{
    Answer, ConnectionLimits, Context, Coordinator, EventHub, Execute, Outcome, PrepareOutcome,
    PreparedAnswer, RowsAnswer, Server,
};
use types::CqlType;

use crate::world::{Msg, real, settings};

struct Exchange {
    name: &'static str,
    version: Version,
    request: Vec<u8>,
    response: Vec<u8>,
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    if text == "-" { Vec::new() } else { text.as_bytes().chunks(2).map(digit).collect() }
}

fn exchanges() -> Vec<Exchange> {
    let lines = include_str!("../../../protocol/testdata/golden.txt").lines();
    let exchange = |line: &'static str| {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap();
        let name = next();
        let version = Version::from_number(next()[1..].parse().unwrap()).unwrap();
        Exchange { name, version, request: unhex(next()), response: unhex(next()) }
    };
    lines.map(exchange).collect()
}

/// Knows what Cassandra answered.
#[derive(Default)]
struct Replay(RefCell<Option<Response>>);

fn metadata(of: &RowsMetadata, id: &Option<Vec<u8>>) -> Arc<ResultMetadata> {
    let id = id.as_ref().map_or([0; 16], |id| id.as_slice().try_into().unwrap());
    let no_metadata = of.flags & 4 != 0;
    if no_metadata && of.column_count == 0 {
        return Arc::new(ResultMetadata::none());
    }
    let column = |index: usize| Column {
        keyspace: "k".into(),
        table: if of.flags & 1 != 0 { "t".into() } else { Arc::from(format!("t{index}")) },
        name: "c".to_owned(),
        cql_type: CqlType::Int,
        reversed: false,
    };
    let stand_ins: Vec<_> = (0..of.column_count).map(column).collect();
    let columns = if no_metadata { &stand_ins } else { &of.columns };
    Arc::new(ResultMetadata::with_id(columns, id, class_name))
}

fn rows(page: client::OwnedRows) -> RowsAnswer {
    let form = match (&page.metadata.new_id, page.metadata.flags & 4) {
        (Some(_), _) => MetadataForm::Changed,
        (None, 0) => MetadataForm::Full,
        (None, _) => MetadataForm::Skipped,
    };
    let mut cells = Vec::new();
    for cell in page.rows.iter().flatten() {
        let length = cell.as_ref().map_or(-1, |cell| cell.len() as i32);
        cells.extend(length.to_be_bytes());
        cells.extend(cell.iter().flatten());
    }
    RowsAnswer {
        metadata: metadata(&page.metadata, &page.metadata.new_id),
        form,
        rows: page.rows.len() as u32,
        cells,
        paging_state: page.metadata.paging_state,
    }
}

impl Replay {
    fn outcome(&self) -> Outcome {
        let response = self.0.borrow_mut().take().unwrap();
        let result = match response.body {
            Body::Error(error) => Err(error),
            Body::Result(client::Answer::Void) => Ok(Answer::Void),
            Body::Result(client::Answer::SetKeyspace(keyspace)) => {
                Ok(Answer::SetKeyspace(keyspace))
            }
            Body::Result(client::Answer::SchemaChange(change)) => Ok(Answer::SchemaChange(change)),
            Body::Result(client::Answer::Rows(page)) => Ok(Answer::Rows(rows(page))),
            other => panic!("{other:?}"),
        };
        Outcome { result, warnings: response.warnings, tracing: response.tracing }
    }
}

impl Coordinator for Replay {
    async fn query(&self, context: &Context, _: &str, _: &QueryOptions<'_>) -> Outcome {
        let outcome = self.outcome();
        assert_eq!(context.tracing, outcome.tracing.is_some());
        outcome
    }

    async fn prepare(&self, _: &Context, _: &str, _: Option<&str>) -> PrepareOutcome {
        let response = self.0.borrow_mut().take().unwrap();
        let result = match response.body {
            Body::Result(client::Answer::Prepared(prepared)) => Ok(PreparedAnswer {
                id: prepared.id.as_slice().try_into().unwrap(),
                variables: Arc::new(prepared.variables),
                result: metadata(&prepared.result, &prepared.result_metadata_id),
                names: class_name,
            }),
            Body::Error(error) => Err(error),
            _ => Err(ErrorResponse { message: String::new(), detail: ErrorDetail::ServerError }),
        };
        PrepareOutcome { result, warnings: response.warnings, tracing: response.tracing }
    }

    async fn execute(&self, _: &Context, _: &Execute<'_>) -> Outcome {
        self.outcome()
    }

    async fn batch(&self, _: &Context, _: &Batch<'_>) -> Outcome {
        self.outcome()
    }
}

async fn read(env: &Env, stream: &TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let read =
            env.timeout(std::time::Duration::from_secs(2), stream.read(std::slice::from_mut(byte)));
        assert!(matches!(read.await, Ok(Ok(1))), "byte {index} of {length}");
    }
    bytes
}

/// One exchange over versions without segments, where bytes on the wire are one message each.
async fn replay(env: &Env, stream: &TcpStream, exchange: &Exchange, answers: &Replay) {
    let header = Header::parse(exchange.response.first_chunk().unwrap(), Direction::Response);
    let body = exchange.response.get(9..).unwrap();
    let response = Response::parse(Frame { header: header.unwrap(), body }).unwrap();
    *answers.0.borrow_mut() = Some(response);
    stream.write_all(&exchange.request).await.unwrap();
    let bytes = read(env, stream, exchange.response.len()).await;
    assert_eq!(bytes, exchange.response, "{} {}", exchange.name, exchange.version);
    answers.0.borrow_mut().take();
}

async fn replay_all(env: Env, _: Mesh<Msg>) -> io::Result<()> {
    let answers = std::rc::Rc::new(Replay::default());
    let coordinator = std::rc::Rc::clone(&answers);
    let (hub, registry) = (EventHub::new(), Registry::new(0));
    let limits = ConnectionLimits::new();
    let server = Server::start(&env, settings(), coordinator, hub, &registry, limits, None)?;
    let mut seen = 0;
    for version in [Version::V3, Version::V4] {
        let stream = TcpStream::connect(&env, server.address()).await?;
        // What version 3 is told of a new aggregate has an empty name behind it that a client
        // drops.
        let is_odd = |it: &Exchange| version == Version::V3 && it.name == "schema_agg_c";
        let of_version =
            |it: &Exchange| it.version == version && !it.name.starts_with("raw_") && !is_odd(it);
        for exchange in exchanges().into_iter().filter(of_version) {
            if !exchange.request.is_empty() {
                replay(&env, &stream, &exchange, &answers).await;
                seen += 1;
            }
        }
    }
    assert!(seen > 150, "{seen}");
    // in segments: the answer to STARTUP is bare, then come segments as Cassandra sends them
    let find =
        |name| exchanges().into_iter().find(|it| it.version == Version::V5 && it.name == name);
    let (startup, wanted) = (find("startup").unwrap(), find("rows_all").unwrap());
    let stream = TcpStream::connect(&env, server.address()).await?;
    replay(&env, &stream, &startup, &answers).await;
    let raw = find("raw_crc").unwrap();
    let header =
        Header::parse(wanted.response.first_chunk().unwrap(), Direction::Response).unwrap();
    let response = Response::parse(Frame { header, body: &wanted.response[9..] }).unwrap();
    *answers.0.borrow_mut() = Some(response);
    stream.write_all(&raw.request).await?;
    assert_eq!(read(&env, &stream, raw.response.len()).await, raw.response);
    Ok(())
}

#[test]
fn answers_are_cassandras_bytes() {
    real(1, replay_all);
}

/// Raw requests over version 4 and what Cassandra answers them with, captured from 5.0.9.
const RAW: [(&[u8], &[u8]); 4] = [
    (
        b"\x04\0\0\x01\x01\0\0\0\x02\0\0",
        b"\x84\0\0\x01\0\0\0\0\x32\0\0\0\n\0\x2cMissing value CQL_VERSION in STARTUP message",
    ),
    (b"\x04\0\0\x02\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0", b"\x84\0\0\x02\x02\0\0\0\0"),
    (b"\x04\0\0\x07\x0f\0\0\0\x06\0\0\0\x02ab", b"\x84\0\0\x07\x10\0\0\0\x04\xff\xff\xff\xff"),
    (
        b"\x03\0\0\x09\x05\0\0\0\0",
        b"\x84\0\0\x09\0\0\0\0\x61\0\0\0\n\0\x5bInvalid message version. Got 3/v3 but previous \
          messages on this connection had version 4/v4",
    ),
];

#[test]
fn answers_around_startup_are_cassandras_bytes() {
    real(1, |env: Env, _: Mesh<Msg>| async move {
        let (hub, registry) = (EventHub::new(), Registry::new(0));
        let coordinator = std::rc::Rc::new(Replay::default());
        let limits = ConnectionLimits::new();
        let server = Server::start(&env, settings(), coordinator, hub, &registry, limits, None)?;
        let stream = TcpStream::connect(&env, server.address()).await?;
        for (request, answer) in RAW {
            stream.write_all(request).await?;
            let got = read(&env, &stream, answer.len()).await;
            assert_eq!(got, answer, "{}", String::from_utf8_lossy(&got));
        }
        // dropped, the server closes what is open
        drop(server);
        let end = env.timeout(std::time::Duration::from_secs(5), stream.read(&mut [0; 9])).await;
        assert!(matches!(end, Ok(Ok(0) | Err(_))), "{end:?}");
        Ok(())
    });
}
