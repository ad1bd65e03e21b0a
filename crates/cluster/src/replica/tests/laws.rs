//! What must hold of any answer to a read, whatever Cassandra says.

use std::sync::Arc;

use internode::payload::read::{
    ColumnFilter, DataDigest, DataReader, Expression, KeyRange, Limits, Operator, Position,
    ReadCommand, ReadResponse, RowsOf, Target,
};
use internode::{FailureReason, Flags, Param, Verb};
use rows::Unfiltered;
use schema::Table;
use types::{Reader, Token};

use super::{TestNode, config};

pub(super) const KEYSPACE: &str =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

pub(super) fn table(node: &TestNode, name: &str) -> Arc<Table> {
    Arc::clone(node.shard(0).schema().table("ks", name).expect(name))
}

/// A read of all of a table.
pub(super) fn everything(table: &Table, now: i32) -> ReadCommand {
    let keys = KeyRange {
        from: Position::Before(Token::MIN),
        from_inclusive: true,
        to: Position::After(Token::MIN),
        to_inclusive: true,
    };
    ReadCommand {
        table: table.id.0,
        digest: None,
        accepts_transient: false,
        needs_reconciliation: false,
        now,
        columns: ColumnFilter::all(table),
        filter: Vec::new(),
        limits: Limits::of_rows(i32::MAX, i32::MAX),
        index: None,
        target: Target::Range { keys, rows: RowsOf::all(), after: None },
    }
}

pub(super) fn written(command: &ReadCommand, table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    command.write(table, &mut out).expect("what can be written");
    out
}

/// Rows of an answer that are alive: keys with the value of `v`.
fn live_rows(command: &ReadCommand, table: &Table, answer: &[u8]) -> Vec<(Vec<u8>, i32)> {
    let ReadResponse::Data { data, .. } =
        ReadResponse::read(&mut Reader::new(answer)).expect("an answer")
    else {
        panic!("no data");
    };
    let fetched = command.columns.header();
    let mut reader = DataReader::new(&table.layout, &fetched, data).expect("data");
    let mut rows = Vec::new();
    while let Some(start) = reader.next_partition().expect("a partition") {
        while let Some(unfiltered) = reader.next_unfiltered().expect("in order") {
            if let Unfiltered::Row(row) = unfiltered
                && row.has_live_data(command.now.into(), false)
            {
                let v = row.cell(0).and_then(|cell| cell.value.first_chunk().copied());
                rows.push((start.key.to_vec(), v.map_or(-1, i32::from_be_bytes)));
            }
        }
    }
    rows
}

/// A node with a table of some partitions and rows, some of them deleted.
fn filled(node: &TestNode) -> Arc<Table> {
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))");
    for k in 0..20 {
        for c in 0..(k % 7) {
            node.cql(&format!("INSERT INTO ks.t (k, c, v) VALUES ({k}, {c}, {})", k * 100 + c));
        }
        node.cql(&format!("DELETE FROM ks.t WHERE k = {k} AND c = 1"));
    }
    node.flush("ks");
    node.cql("INSERT INTO ks.t (k, c, v) VALUES (3, 9, 309)");
    table(node, "t")
}

fn now(node: &TestNode) -> i32 {
    (node.shard(0).engine().env().unix_micros() / 1_000_000) as i32
}

#[test]
fn a_read_gives_the_rows_that_a_client_sees_and_its_limits_hold() {
    let node = TestNode::new(3);
    let table = filled(&node);
    let mut command = everything(&table, now(&node));
    let page = node.cql("SELECT v FROM ks.t").expect("rows");
    let seen: Vec<i32> = page
        .cells
        .chunks(8)
        .map(|cell| i32::from_be_bytes(*cell[4..].as_array().unwrap()))
        .collect();
    for limit in [i32::MAX, 1, 5, 17, 18, 1000] {
        for per_partition in [i32::MAX, 1, 3] {
            command.limits = Limits::of_rows(limit, per_partition);
            let answer = node.ask(Verb::RangeReq, &written(&command, &table)).expect("an answer");
            let rows = live_rows(&command, &table, &answer);
            let mut expected = Vec::new();
            let mut of_partition = std::collections::BTreeMap::new();
            for v in &seen {
                let taken = of_partition.entry(v / 100).or_insert(0);
                if *taken < per_partition && expected.len() < limit as usize {
                    *taken += 1;
                    expected.push(*v);
                }
            }
            let values: Vec<i32> = rows.iter().map(|(_, v)| *v).collect();
            assert_eq!(values, expected, "{limit} {per_partition}");
        }
    }
}

#[test]
fn the_digest_is_that_of_the_data() {
    let node = TestNode::new(2);
    let table = filled(&node);
    for reversed in [false, true] {
        for limit in [i32::MAX, 3] {
            let mut command = everything(&table, now(&node));
            command.limits = Limits::of_rows(limit, i32::MAX);
            if let Target::Range { rows, .. } = &mut command.target {
                rows.reversed = reversed;
            }
            let data = node.ask(Verb::RangeReq, &written(&command, &table)).expect("data");
            command.digest = Some(12);
            let digest = node.ask(Verb::RangeReq, &written(&command, &table)).expect("a digest");
            let ReadResponse::Data { data, .. } =
                ReadResponse::read(&mut Reader::new(&data)).expect("data")
            else {
                panic!("no data");
            };
            let fetched = command.columns.header();
            let mut reader = DataReader::new(&table.layout, &fetched, data).expect("data");
            let mut of_data = DataDigest::new(&table.layout);
            while let Some(start) = reader.next_partition().expect("a partition") {
                of_data.start(&start, start.header.as_ref());
                while let Some(unfiltered) = reader.next_unfiltered().expect("in order") {
                    of_data.unfiltered(unfiltered);
                }
            }
            let of_data = of_data.finish();
            let answer = ReadResponse::read(&mut Reader::new(&digest)).expect("a digest");
            assert_eq!(answer, ReadResponse::Digest(&of_data));
        }
    }
}

/// A range that is open where a limit ends the answer is closed at the last row, in both
/// directions.
#[test]
fn an_open_range_is_closed_at_the_last_row() {
    let node = TestNode::new(1);
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))");
    node.cql("DELETE FROM ks.t USING TIMESTAMP 5 WHERE k = 1 AND c > 0 AND c < 100");
    for c in 1..9 {
        node.cql(&format!("INSERT INTO ks.t (k, c, v) VALUES (1, {c}, {c}) USING TIMESTAMP 9"));
    }
    let table = table(&node, "t");
    for reversed in [false, true] {
        let rows = RowsOf { reversed, ..RowsOf::all() };
        let mut command = everything(&table, now(&node));
        command.limits = Limits::of_rows(3, i32::MAX);
        command.target = Target::Partition { key: [0, 0, 0, 1].into(), rows };
        let answer = node.ask(Verb::ReadReq, &written(&command, &table)).expect("an answer");
        // that ranges are closed is what reading it checks
        let rows = live_rows(&command, &table, &answer);
        let expected = if reversed { [8, 7, 6] } else { [1, 2, 3] };
        assert_eq!(rows.iter().map(|(_, v)| *v).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn too_many_tombstones_fail_a_read_or_are_told_of() {
    let mut config = config();
    (config.tombstone_warn, config.tombstone_failure) = (3, 6);
    let node = TestNode::with(2, config);
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))");
    for (k, deleted) in [(1, 3), (2, 6), (3, 7)] {
        for c in 0..deleted {
            node.cql(&format!("DELETE FROM ks.t WHERE k = {k} AND c = {c}"));
        }
    }
    let table = table(&node, "t");
    let mut command = everything(&table, now(&node));
    let mut ask = |key: u8, flags| {
        command.target = Target::Partition { key: [0, 0, 0, key].into(), rows: RowsOf::all() };
        let answer = node.ask_as(0, Verb::ReadReq, &written(&command, &table), flags);
        answer.map(|answer| {
            let answer = answer.expect("in time");
            answer.params.iter().cloned().collect::<Vec<_>>()
        })
    };
    let (told, not_told) = (Flags::TRACK_WARNINGS, Flags::NONE);
    assert_eq!(ask(1, told), Ok(vec![]));
    assert_eq!(ask(2, told), Ok(vec![Param::TombstoneWarn(6)]));
    assert_eq!(ask(3, told), Ok(vec![Param::TombstoneFail(7)]));
    assert_eq!(ask(1, not_told), Ok(vec![]));
    assert_eq!(ask(2, not_told), Ok(vec![]));
    assert_eq!(ask(3, not_told), Err(FailureReason::TooManyTombstones));
}

#[test]
fn an_index_is_served_by_going_over_all_rows() {
    let node = TestNode::new(2);
    let table = filled(&node);
    let mut command = everything(&table, now(&node));
    command.index = Some(types::Uuid::from_bytes([7; 16]));
    let value = 305_i32.to_be_bytes().into();
    command.filter = vec![Expression::Simple { column: "v".into(), operator: Operator::Eq, value }];
    let answer = node.ask(Verb::RangeReq, &written(&command, &table)).expect("an answer");
    assert_eq!(live_rows(&command, &table, &answer), []);
    command.filter = vec![Expression::Simple {
        column: "v".into(),
        operator: Operator::Eq,
        value: 309_i32.to_be_bytes().into(),
    }];
    let answer = node.ask(Verb::RangeReq, &written(&command, &table)).expect("an answer");
    assert_eq!(live_rows(&command, &table, &answer), [(vec![0, 0, 0, 3], 309)]);
}
