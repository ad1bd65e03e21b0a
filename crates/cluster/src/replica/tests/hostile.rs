//! Payloads that no node of ours or Cassandra's writes: refused, and nothing is asked of memory
//! that was not sent.

use internode::payload::read::{KeyRange, Position, ReadCommand, RowChoice, RowsOf, Target};
use internode::{FailureReason, Flags, Verb};
use proptest::prelude::*;
use proptest::test_runner::{Config as TestConfig, TestRunner};
use rows::{Bound, BoundKind, Clustering};
use types::Token;

use super::TestNode;
use super::laws::{KEYSPACE, everything, table, written};
use crate::replica_read::READ_REQUEST_BYTES_MAX;

const RECORDED: &str = include_str!("../../../testdata/replica-5.0.9.txt");

#[test]
fn whatever_is_sent_is_answered_or_refused() {
    let node = TestNode::new(2);
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c text, s int static, v int, m map<text, int>, PRIMARY KEY (k, c))");
    let id = types::hex::to_hex(&table(&node, "t").id.0);
    let recorded = RECORDED.replace("00000000000010008000000000000001", &id);
    let seeds: Vec<Vec<u8>> = recorded
        .lines()
        .filter(|line| line.starts_with("read") || line.starts_with("mutation"))
        .filter_map(|line| types::hex::from_hex(line.split(' ').nth(1)?))
        .collect();
    let verbs: Vec<Verb> =
        Verb::ALL.iter().copied().filter(|verb| *verb != Verb::TruncateReq).collect();
    let mutated = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        any::<prop::sample::Index>(),
        any::<bool>(),
        prop::collection::vec(any::<u8>(), 0..40),
    );
    let mut runner = TestRunner::new(TestConfig { cases: 1500, ..TestConfig::default() });
    let ran = runner.run(&mutated, |(verb, seed, changes, cut, is_cut, noise)| {
        let mut payload = seed.get(&seeds).clone();
        for (at, byte) in changes {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        if is_cut {
            payload.truncate(cut.index(payload.len()));
            payload.extend(noise);
        }
        // no answer but these: whatever else ends the node
        let _ = node.ask_as(0, *verb.get(&verbs), &payload, Flags::TRACK_WARNINGS);
        Ok(())
    });
    ran.expect("nothing breaks it");
}

#[test]
fn reads_out_of_order_and_around_the_ring_are_refused() {
    let node = TestNode::new(1);
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))");
    node.cql("INSERT INTO ks.t (k, c, v) VALUES (1, 1, 1)");
    let table = table(&node, "t");
    let ask = |command: &ReadCommand| {
        let verb = match command.target {
            Target::Partition { .. } => Verb::ReadReq,
            Target::Range { .. } => Verb::RangeReq,
        };
        node.ask(verb, &written(command, &table)).map(drop)
    };
    let mut command = everything(&table, 1_700_000_000);
    let bound = |kind, c: i32| Bound::new(kind, Clustering::new([Some(&c.to_be_bytes()[..])]));
    let slice = |from, to| (bound(BoundKind::InclStart, from), bound(BoundKind::InclEnd, to));
    for slices in
        [vec![slice(3, 1)], vec![slice(1, 2), slice(2, 4)], vec![slice(5, 6), slice(1, 2)]]
    {
        let rows = RowsOf { reversed: false, choice: RowChoice::Slices(slices) };
        command.target = Target::Partition { key: [0, 0, 0, 1].into(), rows };
        assert_eq!(ask(&command), Err(FailureReason::Unknown));
    }
    let names = [4, 1, 1].map(|c: i32| Clustering::new([Some(&c.to_be_bytes()[..])]));
    let rows = RowsOf { reversed: false, choice: RowChoice::Names(names.to_vec()) };
    command.target = Target::Partition { key: [0, 0, 0, 1].into(), rows };
    assert_eq!(ask(&command), Ok(()));
    let keys = KeyRange {
        from: Position::Before(Token(5)),
        from_inclusive: true,
        to: Position::After(Token(-5)),
        to_inclusive: true,
    };
    command.target = Target::Range { keys, rows: RowsOf::all(), after: None };
    assert_eq!(ask(&command), Err(FailureReason::Unknown));
}

#[test]
fn a_request_that_would_take_too_much_memory_is_refused_unread() {
    let node = TestNode::new(1);
    let payload = vec![0; READ_REQUEST_BYTES_MAX + 1];
    assert_eq!(node.ask(Verb::ReadReq, &payload), Err(FailureReason::ReadSize));
}

#[test]
fn an_answer_that_would_take_too_much_memory_fails_for_its_size() {
    let mut config = super::config();
    config.memory_budget = Some(1 << 20);
    let node = TestNode::with(2, config);
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c int, v int, x text, PRIMARY KEY (k, c))");
    let text = "x".repeat(1000);
    for k in 0..20 {
        for c in 0..10 {
            node.cql(&format!("INSERT INTO ks.t (k, c, x) VALUES ({k}, {c}, '{text}')"));
        }
    }
    let table = table(&node, "t");
    let mut command = everything(&table, 1_700_000_000);
    let ask = |command: &ReadCommand| node.ask(Verb::RangeReq, &written(command, &table)).map(drop);
    let own = |command: &ReadCommand| node.own(0, &table, command).map(drop);
    assert_eq!(ask(&command), Err(FailureReason::ReadSize));
    assert_eq!(own(&command), Err(FailureReason::ReadSize));
    command.limits.rows = 50;
    assert_eq!(ask(&command), Ok(()));
    assert_eq!(own(&command), Ok(()));
    // a digest takes none
    command.limits.rows = i32::MAX;
    command.digest = Some(12);
    assert_eq!(ask(&command), Ok(()));
}
