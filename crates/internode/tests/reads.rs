//! Reads and their answers, against what Cassandra's own classes write.

use crate::common;

use common::{RELEASES, hex, table_of, vectors};
use internode::FailureReason;
use internode::payload::PayloadError;
use internode::payload::read::*;
use proptest::prelude::*;
use rows::codec::{Header, Problem};
use rows::{BoundKind, Clustering, Unfiltered};
use std::sync::Arc;
use types::hex::to_hex;
use types::{Reader, Token};

fn parse(bytes: &[u8]) -> Result<(ReadCommand, Arc<schema::Table>), PayloadError> {
    let mut reader = Reader::new(bytes);
    let read = ReadCommand::read(&mut reader, &table_of)?;
    reader.finish()?;
    Ok(read)
}

/// The read of a vector by its name.
fn command(name: &str) -> ReadCommand {
    let found = vectors("5.0.9", "read").into_iter().find(|words| words[0] == name).expect(name);
    parse(&hex(found[2])).expect(name).0
}

#[test]
fn every_read_comes_back_as_cassandra_wrote_it() {
    for release in RELEASES {
        for words in vectors(release, "read") {
            let [name, table_name, text] = words[..] else { panic!("{words:?}") };
            let bytes = hex(text);
            let (command, table) = parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(table.name, table_name);
            assert_eq!(command.now, 1_700_000_000);
            assert_eq!(command.digest, name.ends_with("-digest").then_some(12), "{name}");
            let mut out = Vec::new();
            command.write(&table, &mut out).expect("what was read");
            assert_eq!(to_hex(&out), text, "{name}");
            for cut in 0..bytes.len() {
                assert!(parse(&bytes[..cut]).is_err(), "{name} cut at {cut}");
            }
        }
    }
}

fn names(set: &rows::codec::ColumnSet, columns: &[rows::ColumnLayout]) -> Vec<String> {
    set.indexes().map(|at| columns[usize::from(at)].name.to_string()).collect()
}

#[test]
fn what_reads_say() {
    let one = |text: &str| Clustering::new([Some(text.as_bytes())]);
    let all = command("0");
    assert_eq!(all.limits, Limits::of_rows(i32::MAX, i32::MAX));
    assert_eq!(all.columns, ColumnFilter::all(&table_of(&all.table).unwrap()));
    assert_eq!(all.target, Target::Partition { key: [0, 0, 0, 1].into(), rows: RowsOf::all() });

    let slice = command("1");
    assert_eq!(slice.limits.rows, 10);
    let Target::Partition { rows, .. } = slice.target else { panic!("of one partition") };
    let RowChoice::Slices(slices) = rows.choice else { panic!("slices") };
    assert_eq!((slices[0].0.kind, &slices[0].0.values), (BoundKind::InclStart, &one("a")));

    let layout = &table_of(&all.table).unwrap().layout;
    let some = command("3");
    assert_eq!(names(&some.columns.queried().regulars, &layout.regulars), ["v"]);
    assert_eq!(names(&some.columns.queried().statics, &layout.statics), ["s"]);
    assert_eq!(names(&some.columns.fetched().regulars, &layout.regulars).len(), 5);
    let Target::Partition { rows, .. } = some.target else { panic!("of one partition") };
    assert!(rows.reversed);
    assert_eq!(rows.choice, RowChoice::Names(vec![one("a"), one("b"), one("z")]));

    assert!(command("5").limits.distinct);
    let parts = command("6").columns.subselections;
    assert_eq!(
        parts,
        [
            Subselection::Element { column: "m".into(), path: (*b"x").into() },
            Subselection::Slice { column: "m".into(), from: (*b"y").into(), to: (*b"z").into() },
        ]
    );
    let filter = command("7").filter;
    assert!(filter.contains(&Expression::Simple {
        column: "v".into(),
        operator: Operator::Greater,
        value: [0, 0, 0, 5].into(),
    }));
    assert!(filter.iter().any(|one| matches!(one,
        Expression::MapEntry { key, value, .. } if **key == *b"x" && **value == [0, 0, 0, 1])));

    let Target::Range { keys, after, .. } = command("8").target else { panic!("a range") };
    // token(k) > 10 AND token(k) <= 20000
    assert_eq!((keys.from, keys.from_inclusive), (Position::After(Token(10)), false));
    assert_eq!((keys.to, after), (Position::After(Token(20_000)), None));

    let (groups, grouping) = command("11").limits.groups.expect("groups");
    assert_eq!((groups, grouping.clustering_columns), (i32::MAX, Some(1)));

    let paged = command("paging-2").limits;
    assert_eq!(paged.rows, 5);
    assert_eq!(paged.paging, Some(Paging { last_key: [0, 0, 0, 1].into(), remaining: 3 }));
    let Target::Range { keys, after, .. } = command("paging-3").target else { panic!("a range") };
    assert_eq!(after, Some((one("b"), false)));
    assert_eq!((keys.from, keys.from_inclusive), (Position::Key([0, 0, 0, 1].into()), true));
}

#[test]
fn what_is_not_known_is_incompatible_schema() {
    let bytes = hex(vectors("5.0.9", "read")[0][2]);
    let mut reader = Reader::new(&bytes);
    let unknown = ReadCommand::read(&mut reader, &|_| None).unwrap_err();
    assert!(matches!(unknown, PayloadError::UnknownTable(_)));
    assert_eq!(unknown.reason(), FailureReason::IncompatibleSchema);
    // the first column's name
    let at = bytes.windows(2).position(|two| two == [1, b's']).expect("its name") + 1;
    let mut other = bytes.clone();
    other[at] = b'Q';
    let column = parse(&other).unwrap_err();
    assert!(matches!(&column, PayloadError::UnknownColumn(name) if name == "Q"), "{column}");
    assert_eq!(column.reason(), FailureReason::IncompatibleSchema);
    // a slice that starts at an end
    let slice = vectors("5.0.9", "read").into_iter().find(|words| words[0] == "1").expect("it")[2];
    let slice = slice.replacen("010001000161", "060001000161", 1);
    assert!(matches!(parse(&hex(&slice)), Err(PayloadError::Kind { number: 6, .. })));
    let mut thrift = bytes.clone();
    thrift[1] = 2;
    assert!(matches!(parse(&thrift), Err(PayloadError::Kind { .. })));
    let mut kind = bytes;
    kind[0] = 2;
    assert_eq!(parse(&kind).unwrap_err().reason(), FailureReason::Unknown);
}

/// Reads all of an answer's data and writes it again; the data written, and its digest.
fn copy(
    layout: &rows::Layout,
    fetched: &Header,
    data: &[u8],
) -> Result<(Vec<u8>, [u8; DIGEST_BYTES]), PayloadError> {
    let mut reader = DataReader::new(layout, fetched, data)?;
    let mut writer = DataWriter::new(layout, fetched, Vec::new());
    let mut digest = DataDigest::new(layout);
    while let Some(start) = reader.next_partition()? {
        digest.start(&start, start.header.as_ref());
        let Some(header) = start.header.clone() else {
            writer.empty_partition(start.key, start.is_reversed);
            continue;
        };
        writer.start(&header, &start).expect("what was read");
        while let Some(unfiltered) = reader.next_unfiltered()? {
            digest.unfiltered(unfiltered);
            writer.unfiltered(&header, unfiltered).expect("what was read");
        }
        writer.end();
    }
    Ok((writer.finish(), digest.finish()))
}

#[test]
fn every_answer_comes_back_and_has_cassandras_digest() {
    for release in RELEASES {
        for words in vectors(release, "response") {
            let [read, table, data_name, text, wanted] = words[..] else { panic!("{words:?}") };
            let what = format!("{release} {read} {table} {data_name}");
            let command = command(read);
            let table = table_of(&command.table).expect("its table");
            let bytes = hex(text);
            let mut reader = Reader::new(&bytes);
            let response = ReadResponse::read(&mut reader).expect(&what);
            assert!(reader.is_empty());
            let mut again = Vec::new();
            response.write(&mut again);
            assert_eq!(to_hex(&again), text, "{what}");
            let ReadResponse::Data { repaired, data } = response else { panic!("{what}: data") };
            assert_eq!(repaired, RepairedDigest::NONE);
            let fetched = command.columns.header();
            let (copied, digest) = copy(&table.layout, &fetched, data).expect(&what);
            assert_eq!(to_hex(&copied), to_hex(data), "{what}");
            assert_eq!(to_hex(&digest), wanted, "{what}");
            for cut in 0..data.len() {
                assert!(copy(&table.layout, &fetched, &data[..cut]).is_err(), "{what} at {cut}");
            }
        }
    }
}

/// The partition of interop.md, section 4.9, as a live node answered, and its digest.
#[test]
fn the_answer_of_a_live_node() {
    let data = hex(
        "0001040000000108fce9d96a43bffff015014f5383e80000a001000100000005640001610108048000475608\
         1400000002000000040000000100000004000000020802000308000000070000020801780400000001080179\
         04000000020201000100016202000200000100016402000c00017a030083e8170d000100",
    );
    let table = table_of(&command("0").table).expect("t");
    let fetched = ColumnFilter::all(&table).header();
    let (copied, digest) = copy(&table.layout, &fetched, &data).expect("well formed");
    assert_eq!(copied, data);
    assert_eq!(to_hex(&digest), "c2c0f47dbe9f0218271a84c7cc8515cc");
}

#[test]
fn answers_out_of_order_are_refused() {
    let words = vectors("5.0.9", "response");
    let found = words.iter().find(|words| words[..3] == ["0", "t", "rows"]).expect("rows");
    let bytes = hex(found[3]);
    let ReadResponse::Data { data, .. } = ReadResponse::read(&mut Reader::new(&bytes)).unwrap()
    else {
        panic!("data")
    };
    let table = table_of(&command("0").table).expect("t");
    let fetched = command("0").columns.header();
    let problem = |from: &str, to: &str| {
        let text = to_hex(data).replacen(from, to, 1);
        match copy(&table.layout, &fetched, &hex(&text)) {
            Err(PayloadError::Rows(error)) => error.problem,
            other => panic!("{other:?}"),
        }
    };
    // row 'b' becomes one behind what follows; the end of the range a start, its start an end
    assert_eq!(problem("000162", "00017b"), Problem::Order);
    assert_eq!(problem("0200000100016d", "0201000100016d"), Problem::Unbalanced);
    assert_eq!(problem("02010001000163", "02000001000163"), Problem::Unbalanced);
}

#[test]
fn a_digest_is_an_answer() {
    let mut out = Vec::new();
    ReadResponse::Digest(&[7; DIGEST_BYTES]).write(&mut out);
    assert_eq!(out.len(), 1 + DIGEST_BYTES);
    let read = ReadResponse::read(&mut Reader::new(&out));
    assert_eq!(read, Ok(ReadResponse::Digest(&[7; DIGEST_BYTES])));
}

#[test]
fn what_was_passed_over_does_not_disturb_the_next_partition() {
    let command = command("0");
    let table = table_of(&command.table).expect("t");
    let fetched = command.columns.header();
    let words = vectors("5.0.9", "response");
    let part = |name: &str| {
        let found = words.iter().find(|w| w[..3] == ["0", "t", name]).expect("it").clone();
        let bytes = hex(found[3]);
        match ReadResponse::read(&mut Reader::new(&bytes)).unwrap() {
            ReadResponse::Data { data, .. } => data[1..data.len() - 1].to_vec(),
            ReadResponse::Digest(_) => panic!("data"),
        }
    };
    let data = [&[0][..], &part("rows"), &part("static"), &part("deleted"), &[0]].concat();
    let mut reader = DataReader::new(&table.layout, &fetched, &data).unwrap();
    assert!(reader.next_partition().unwrap().is_some());
    assert!(matches!(reader.next_unfiltered().unwrap(), Some(Unfiltered::Row(_))));
    let second = reader.next_partition().unwrap().expect("the second");
    assert!(second.static_row.is_some());
    let third = reader.next_partition().unwrap().expect("the third");
    assert!(!third.deletion.is_live());
    assert!(reader.next_partition().unwrap().is_none());
}

proptest! {
    #[test]
    fn damaged_reads_and_answers_are_refused_or_read(
        which: prop::sample::Index, at: prop::sample::Index, bit in 0u8..8, more: Vec<u8>,
    ) {
        let reads = vectors("5.0.9", "read");
        let mut bytes = hex(which.get(&reads)[2]);
        let place = at.index(bytes.len());
        bytes[place] ^= 1 << bit;
        bytes.extend(&more);
        if let Ok((command, table)) = ReadCommand::read(&mut Reader::new(&bytes), &table_of) {
            let _ = command.write(&table, &mut Vec::new());
        }
        let answers = vectors("5.0.9", "response");
        let words = which.get(&answers);
        let mut bytes = hex(words[3]);
        let place = at.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok(ReadResponse::Data { data, .. }) = ReadResponse::read(&mut Reader::new(&bytes)) {
            let command = command(words[0]);
            let table = table_of(&command.table).unwrap();
            let _ = copy(&table.layout, &command.columns.header(), data);
        }
    }
}
