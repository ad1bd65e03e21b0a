//! Verdicts on modifications that the conformance corpus found, each as Cassandra 5.0.9 gave it
//! there.

use crate::common;

use common::{Fixture, TS};
use cql::{CqlError, Plan};

fn fixture() -> Fixture {
    Fixture::from_cql(include_str!("../testdata/modify_schema.cql"))
}

fn refused(statement: &str) -> CqlError {
    fixture().prepare(statement).expect_err(statement)
}

#[test]
fn statements_know_whether_they_name_their_keyspace() {
    let fixture = fixture();
    let is_qualified = |statement: &str| fixture.prepare(statement).expect(statement).is_qualified;
    assert!(is_qualified("SELECT v FROM ks.ttl WHERE k = ?"));
    assert!(is_qualified("INSERT INTO ks.ttl (k, v) VALUES (?, ?)"));
    assert!(is_qualified("BEGIN BATCH DELETE FROM ks.ttl WHERE k = 1; APPLY BATCH"));
    assert!(is_qualified("TRUNCATE ks.ttl"));
    // whatever they name: no table is read or written
    assert!(!is_qualified("USE ks"));
    assert!(!is_qualified("CREATE TABLE ks.another (k int PRIMARY KEY)"));
    assert!(!is_qualified("DESCRIBE TABLE ks.ttl"));
}

#[test]
fn numbers_past_a_double_are_no_literals() {
    let of = |number| format!("INSERT INTO ks.scalars (k, de) VALUES (1, {number})");
    for number in ["1e400", "-1e309"] {
        let error = refused(&of(number));
        assert!(matches!(&error, CqlError::Syntax(text) if text.contains("NumberFormatException")));
    }
    assert!(fixture().prepare(&of("1e308")).is_ok());
}

#[test]
fn tuples_stand_for_frozen_types_only() {
    let of = |column| format!("INSERT INTO ks.coll (k, c, {column}) VALUES (1, 1, ('s', 3, {{}}))");
    assert!(matches!(refused(&of("ud")), CqlError::Invalid(_)));
    assert!(fixture().prepare(&of("fud")).is_ok());
}

#[test]
fn expirations_overflow_by_the_nodes_clock() {
    // the request's "now" is near the end, the node's is not
    let mut fixture = fixture();
    let clock = fixture.now_seconds;
    let limit = cql::Limits::default().max_deletion_time;
    fixture.now_seconds = limit - 10;
    let prepared =
        fixture.prepare("INSERT INTO ks.ttl (k, v) VALUES (1, 1) USING TTL 1000").unwrap();
    let Plan::Modify(modify) = &prepared.plan else { panic!("an INSERT") };
    let at = |millis| {
        fixture.with_bind(&[], |bind| modify.updates(cql::Bind { now_millis: millis, ..bind }))
    };
    assert!(matches!(at((limit - 10) * 1000), Err(CqlError::Invalid(_))));
    let updates = at(clock * 1000).unwrap().updates;
    let row = updates[0].rows.get(0).expect("a row");
    assert_eq!(row.liveness().expect("an inserted row").expires_at, limit);
}

#[test]
fn batches_give_their_own_timestamp() {
    let fixture = fixture();
    let timestamp = |statement: &str| {
        let prepared = fixture.prepare(statement).unwrap();
        let Plan::Batch(batch) = &prepared.plan else { panic!("a BATCH") };
        fixture.with_bind(&[], |bind| batch.timestamp(&bind)).unwrap()
    };
    let update = "UPDATE ks.coll SET l[0] = 1 WHERE k = 1 AND c = 1; APPLY BATCH";
    assert_eq!(timestamp(&format!("BEGIN BATCH USING TIMESTAMP 5 {update}")), 5);
    assert_eq!(timestamp(&format!("BEGIN BATCH {update}")), TS);
}

#[test]
fn functions_that_cannot_be_called_say_so() {
    let error = refused("INSERT INTO ks.ttl (k, v) VALUES (1, sum(1))");
    assert_eq!(error.to_string(), "Aggregation function are not supported in the where clause");
    let error = refused("INSERT INTO ks.ttl (k, v) VALUES (1, nosuch(1))");
    assert_eq!(error.to_string(), "Unknown function nosuch called");
}
