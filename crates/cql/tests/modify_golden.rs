//! Mutations that a Cassandra 5.0.9 sent for statements (interop.md, 4.9), made by ours bit for
//! bit.

use crate::common;

use common::{Fixture, TS};
use rows::Mutation;
use rows::codec::MutationEncoder;
use types::hex::to_hex;

const TABLE: &str = "3c5b3720e5dd11f19a151b96078e4459";

#[track_caller]
fn assert_mutation(statement: &str, timestamp: i64, now: i64, expected: &str) {
    let mut fixture = Fixture::golden();
    fixture.timestamp = timestamp;
    fixture.now_seconds = now;
    let updates = fixture.run(statement, &[]).expect("it binds");
    let [update] = &updates[..] else { panic!("one update") };
    let mut out = Vec::new();
    MutationEncoder::new().mutation(&Mutation::new(update.clone()), &mut out).expect("encodes");
    let digits: String = expected.chars().filter(char::is_ascii_hexdigit).collect();
    assert_eq!(to_hex(&out), digits);
}

#[test]
fn m1_an_insert_with_a_static_row_and_a_map() {
    assert_mutation(
        "INSERT INTO ks.t (k, c, s, v, m, f, si, d) VALUES (1, 'a', 5, 7, {'y': 2, 'x': 1}, [1, 2], 3, '2020-01-01')",
        TS,
        common::NOW_OF_M1,
        &format!(
            "01 {TABLE} 0400000001 18 fce9d96a43bfff f015014f53 00 | 010173 |
             05 0164 0166 027369 0176 016d | a001 00 01 00000005 | 01 | 64 00 0161 01 | 08 04 80004756 |
             08 14 00000002000000040000000100000004 00000002 | 08 02 0003 | 08 00000007 |
             00 00 02 08 0178 04 00000001 08 0179 04 00000002 | 01"
        ),
    );
}

#[test]
fn m2_a_range_deletion() {
    assert_mutation(
        "DELETE FROM ks.t WHERE k = 1 AND c >= 'b' AND c < 'd'",
        TS + 1,
        common::NOW_OF_M1,
        &format!(
            "01 {TABLE} 0400000001 10 fce9d96a43c001 f015014f53 00 00 00 | 02 01 0001 00 0162 00 00 |
             02 00 0001 00 0164 00 00 | 01"
        ),
    );
}

#[test]
fn m3_an_expiring_insert_of_null() {
    assert_mutation(
        "INSERT INTO ks.t (k, c, v) VALUES (1, 'z', null) USING TTL 1000",
        TS + 2,
        common::NOW_OF_M1,
        &format!(
            "01 {TABLE} 0400000001 10 fce9d96a43c002 f015014f53 83e8 010176 01 |
             2c 00 017a 00 00 83e8 | 0d 00 | 01"
        ),
    );
}
