//! Exchanges with Apache Cassandra 5.0.9 over versions 3 to 6: both sides read them and write the
//! same bytes. Each line of `testdata/golden.txt` is name, version, request and response in hex;
//! names that begin with `raw_` hold bytes as they crossed the wire after STARTUP.

use crate::common;

use std::sync::Arc;

use common::{client_decoder, drain, frame, server_decoder, unhex, write_request, write_response};
use protocol::{
    BindMetadata, Column, Compression, Direction, Framer, Prepared, Reply, Request, ResultMetadata,
    Started, Version,
    class_name::class_name,
    client::{Answer, Body, Response},
    paging_state::{MarkShape, MarkedRow, PagingState, RowMark},
    prepared_id, result_metadata_id,
};
use types::{CqlType, UserType};

struct Exchange {
    name: &'static str,
    version: Version,
    request: Vec<u8>,
    response: Vec<u8>,
}

fn exchanges() -> Vec<Exchange> {
    include_str!("../testdata/golden.txt")
        .lines()
        .map(|line| {
            let [name, version, request, response] =
                line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let version = Version::from_number(version[1..].parse().unwrap()).unwrap();
            Exchange { name, version, request: unhex(request), response: unhex(response) }
        })
        .collect()
}

fn find(name: &str, version: Version) -> Exchange {
    exchanges().into_iter().find(|it| it.name == name && it.version == version).unwrap()
}

fn body(name: &str, version: Version) -> Body {
    let found = find(name, version);
    Response::parse(frame(&found.response, Direction::Response)).unwrap().body
}

#[test]
fn requests_are_read_and_written_alike() {
    let mut seen = 0;
    for it in exchanges() {
        if it.name.starts_with("raw_") || it.request.is_empty() {
            continue;
        }
        let frame = frame(&it.request, Direction::Request);
        let request = Request::parse(frame).unwrap();
        assert_eq!(write_request(&frame, request), it.request, "{} {}", it.name, it.version);
        seen += 1;
    }
    assert!(seen > 300);
}

#[test]
fn responses_are_read_and_written_alike() {
    for it in exchanges() {
        if it.name.starts_with("raw_") {
            continue;
        }
        let response = Response::parse(frame(&it.response, Direction::Response)).unwrap();
        // a function's change reaches version 3 as a keyspace's, with an empty name behind it
        let mut written = write_response(&response);
        let v3_function = it.version == Version::V3
            && it.name != "schema_fn_c"
            && (it.name.contains("_fn") || it.name.contains("agg_"))
            && matches!(response.body, Body::Result(Answer::SchemaChange(_)) | Body::Event(_));
        if v3_function {
            written.extend([0, 0]);
            let length = u32::try_from(written.len() - 9).unwrap();
            written[5..9].copy_from_slice(&length.to_be_bytes());
        }
        assert_eq!(written, it.response, "{} {}", it.name, it.version);
    }
}

fn list(element: CqlType, frozen: bool) -> CqlType {
    CqlType::List { element: Arc::new(element), frozen }
}

fn set(element: CqlType, frozen: bool) -> CqlType {
    CqlType::Set { element: Arc::new(element), frozen }
}

fn map(key: CqlType, value: CqlType, frozen: bool) -> CqlType {
    CqlType::Map { key: Arc::new(key), value: Arc::new(value), frozen }
}

fn vector(element: CqlType, dimension: u32) -> CqlType {
    CqlType::Vector { element: Arc::new(element), dimension }
}

fn address(frozen: bool) -> CqlType {
    let fields = vec![
        ("street".to_owned(), CqlType::Text),
        ("zip".to_owned(), CqlType::Int),
        ("tags".to_owned(), set(CqlType::Text, true)),
    ];
    let definition = UserType { keyspace: "g".to_owned(), name: "addr".to_owned(), fields };
    CqlType::Udt { definition: Arc::new(definition), frozen }
}

/// The columns of the table `g.alltypes` in the order that Cassandra answers with.
fn all_types() -> Vec<Column> {
    let types = vec![
        CqlType::Ascii,
        CqlType::BigInt,
        CqlType::Blob,
        CqlType::Boolean,
        CqlType::Date,
        CqlType::Decimal,
        CqlType::Double,
        CqlType::Duration,
        CqlType::Float,
        CqlType::Inet,
        CqlType::Int,
        CqlType::SmallInt,
        CqlType::Text,
        CqlType::Time,
        CqlType::Timestamp,
        CqlType::TimeUuid,
        CqlType::TinyInt,
        CqlType::Uuid,
        CqlType::VarInt,
        list(CqlType::Int, false),
        set(CqlType::Text, false),
        map(CqlType::Text, CqlType::Int, false),
        list(CqlType::Int, true),
        map(CqlType::Int, set(CqlType::Text, true), true),
        CqlType::Tuple([CqlType::Int, CqlType::Text, list(CqlType::Int, true)].into()),
        address(false),
        address(true),
        list(address(true), false),
        vector(CqlType::Float, 3),
        vector(CqlType::Text, 2),
        vector(list(CqlType::Int, true), 2),
        list(CqlType::Tuple([CqlType::Duration, CqlType::SmallInt].into()), false),
        map(CqlType::Date, CqlType::Duration, false),
    ];
    let named =
        types.into_iter().enumerate().map(|(index, cql_type)| (format!("c{index:02}"), cql_type));
    std::iter::once(("k".to_owned(), CqlType::Int))
        .chain(named)
        .map(|(name, cql_type)| column("alltypes", &name, cql_type))
        .collect()
}

fn column(table: &str, name: &str, cql_type: CqlType) -> Column {
    let name = name.to_owned();
    Column { keyspace: "g".into(), table: table.into(), name, cql_type, reversed: false }
}

#[test]
fn every_type_is_described_as_cassandra_does_in_every_version() {
    for version in Version::ALL {
        let golden = find("prep_select", version);
        let variables = BindMetadata {
            variables: vec![column("alltypes", "k", CqlType::Int)],
            partition_key: vec![0],
        };
        let prepared = Prepared {
            id: prepared_id(None, "SELECT * FROM g.alltypes WHERE k=?"),
            variables: &variables,
            result: &ResultMetadata::new(&all_types(), class_name),
            names: class_name,
        };
        let mut out = Vec::new();
        Reply::new(version, 1).prepared(&mut out, &prepared);
        assert_eq!(out, golden.response, "{version}");
    }
}

#[test]
fn prepared_ids_are_cassandras() {
    let id = |name| match body(name, Version::V5) {
        Body::Result(Answer::Prepared(prepared)) => prepared.id,
        other => panic!("{other:?}"),
    };
    let insert = "INSERT INTO t (k,c,d,v) VALUES (?,?,?,?)";
    assert_eq!(id("prep_insert"), prepared_id(Some("g"), insert));
    // the connection used `g` here as well
    let qualified = "INSERT INTO g.t (k,c,d,v) VALUES (?,?,?,?)";
    assert_eq!(id("prep_insert_q"), prepared_id(None, qualified));
    assert_eq!(id("prep_ks"), prepared_id(Some("g"), "SELECT * FROM t WHERE k=?"));
}

#[test]
fn result_metadata_ids_are_cassandras() {
    let id = |name| match body(name, Version::V5) {
        Body::Result(Answer::Prepared(prepared)) => prepared.result_metadata_id.unwrap(),
        Body::Result(Answer::Rows(rows)) => rows.metadata.new_id.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(id("prep_select"), result_metadata_id(&all_types(), class_name));
    assert_eq!(id("exec_changed"), result_metadata_id(&all_types(), class_name));
    assert_eq!(id("prep_use"), result_metadata_id(&[], class_name));
    assert_eq!(id("prep_use"), ResultMetadata::none().id());
    // clustering column `c` descends
    let columns = [
        column("t", "k", CqlType::Int),
        Column { reversed: true, ..column("t", "c", CqlType::Int) },
        column("t", "d", CqlType::Text),
        column("t", "v", CqlType::Text),
    ];
    assert_eq!(id("prep_ks"), result_metadata_id(&columns, class_name));
}

#[test]
fn paging_states_of_both_forms_name_the_same_rows() {
    let mut seen = 0;
    for it in exchanges().iter().filter(|it| it.name.starts_with("page_")) {
        let response = Response::parse(frame(&it.response, Direction::Response)).unwrap();
        let Body::Result(Answer::Rows(page)) = response.body else { panic!("{}", it.name) };
        let Some(bytes) = page.metadata.paging_state else { continue };
        let state = PagingState::parse(&bytes, it.version).unwrap();
        let mut out = Vec::new();
        state.write(it.version, &mut out);
        assert_eq!(out, bytes);
        // a client may bring it over a connection of another version
        for other in Version::ALL {
            assert_eq!(PagingState::parse(&bytes, other), Ok(state));
        }
        let clustering =
            if it.name.contains("static") || it.name.contains("distinct") { 1 } else { 2 };
        let shape = MarkShape { clustering, compact: false };
        let Some(mark) = state.row_mark else { continue };
        assert_eq!(matches!(mark, RowMark::CellName(_)), it.version == Version::V3);
        let MarkedRow::Row(values) = mark.row(shape).unwrap() else { panic!() };
        assert_eq!(values.len(), clustering);
        if it.name.starts_with("page_part") || it.name.starts_with("page_all") {
            // the last row of the page: k, c, d
            let last = page.rows.last().unwrap();
            assert_eq!(values[0], last[1].as_deref());
            assert_eq!(values[1], last[2].as_deref());
        }
        seen += 1;
    }
    assert!(seen > 50);
}

/// The answer that all raw captures hold.
fn all_types_answer(version: Version) -> Vec<u8> {
    find("rows_all", version).response
}

#[test]
fn compressed_bodies_are_read_and_ours_read_back() {
    for version in [Version::V3, Version::V4] {
        for compression in [Compression::Lz4, Compression::Snappy] {
            let started = Started { version, compression: Some(compression) };
            let raw = find(&format!("raw_{}", compression.name()), version);
            let mut decoder = client_decoder();
            decoder.start(started);
            let messages = drain(&mut decoder, &raw.response);
            let [(_, body)] = messages.as_slice() else { panic!() };
            // rows of one more insert are in it, so only the front is the same
            assert_eq!(body[..40], all_types_answer(version)[9..49]);
            let ready = find(&format!("raw_{}_startup", compression.name()), version);
            assert_eq!(drain(&mut decoder, &ready.response)[0].1, []);
            let mut framer = Framer::new();
            framer.start(started);
            let mut out = Vec::new();
            framer.push(&mut out, &all_types_answer(version));
            framer.flush(&mut out);
            assert!(out.len() < all_types_answer(version).len());
            assert_eq!(drain(&mut decoder, &out)[0].1, all_types_answer(version)[9..]);
        }
    }
}

#[test]
fn segments_are_read_and_written() {
    for (name, compression) in [("raw_crc", None), ("raw_lz4", Some(Compression::Lz4))] {
        let started = Started { version: Version::V5, compression };
        let raw = find(name, Version::V5);
        let (mut client, mut server) = (client_decoder(), server_decoder());
        client.start(started);
        server.start(started);
        let requests = drain(&mut server, &raw.request);
        assert_eq!(requests.len(), 1);
        let answers = drain(&mut client, &raw.response);
        let [(header, body)] = answers.as_slice() else { panic!() };
        let mut message = Vec::new();
        header.write(&mut message);
        message.extend(body);
        let mut framer = Framer::new();
        framer.start(started);
        let mut out = Vec::new();
        framer.push(&mut out, &message);
        framer.flush(&mut out);
        match compression {
            None => assert_eq!(out, raw.response),
            Some(_) => assert_eq!(drain(&mut client, &out), answers),
        }
    }
}

#[test]
fn several_envelopes_share_a_segment() {
    let started = Started { version: Version::V5, compression: None };
    let raw = find("raw_three", Version::V5);
    let mut server = server_decoder();
    server.start(started);
    let streams: Vec<_> =
        drain(&mut server, &raw.request).iter().map(|(header, _)| header.stream).collect();
    assert_eq!(streams, [1, 2, 3]);
    let mut client = client_decoder();
    client.start(started);
    assert_eq!(drain(&mut client, &raw.response).len(), 3);
}

#[test]
fn large_message_spans_compressed_segments() {
    let started = Started { version: Version::V5, compression: Some(Compression::Lz4) };
    let raw = find("raw_big_lz4", Version::V5);
    let mut client = client_decoder();
    client.start(started);
    let answers = drain(&mut client, &raw.response);
    let [(header, body)] = answers.as_slice() else { panic!() };
    assert_eq!(header.length, 300_046);
    assert!(body.ends_with(&[b'a'; 300_000]));
}
