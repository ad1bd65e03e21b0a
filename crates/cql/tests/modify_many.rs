//! Many partitions and rows at once.

use crate::common;

use common::Fixture;

#[test]
fn many_keys_are_many_updates() {
    let fixture = Fixture::from_cql(include_str!("../testdata/modify_schema.cql"));
    let keys: Vec<String> = (0..500).map(|key| (key % 250).to_string()).collect();
    let statement = format!("UPDATE ks.ttl SET v = 1 WHERE k IN ({})", keys.join(", "));
    let updates = fixture.run(&statement, &[]).expect("it binds");
    assert_eq!(updates.len(), 250);
    assert!(updates.is_sorted_by(|a, b| a.key < b.key));

    let inserts =
        keys.iter().map(|key| format!("INSERT INTO ks.ttl (k, v) VALUES ({key}, {key});"));
    let batch = format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", inserts.collect::<String>());
    let prepared = fixture.prepare(&batch).expect("it prepares");
    let done = fixture.bind(&prepared, &[]).expect("it binds");
    assert_eq!(done.updates.len(), 250);
    assert!(!done.needs_log);
}

#[test]
fn combinations_have_a_limit() {
    let fixture = Fixture::from_cql(include_str!("../testdata/modify_schema.cql"));
    let list: Vec<String> = (0..300).map(|number: i32| number.to_string()).collect();
    let list = list.join(", ");
    let statement = format!(
        "DELETE FROM ks.comp WHERE a = 1 AND b = 'x' AND c1 IN ({list}) AND c2 = 'x' AND c3 IN ({list})"
    );
    let refused = fixture.run(&statement, &[]).expect_err("too many");
    assert_eq!(refused.to_string(), "The IN restrictions make more than 65536 combinations");
}

#[test]
fn calls_nest_only_so_deep() {
    let fixture = Fixture::from_cql(include_str!("../testdata/modify_schema.cql"));
    let nested = |depth| {
        let call = "todate(totimestamp(".repeat(depth) + "?" + &"))".repeat(depth);
        fixture.prepare(&format!("INSERT INTO ks.scalars (k, da) VALUES (1, {call})"))
    };
    // each level tries all overloads, and the work must not multiply
    for depth in [2, 25] {
        let shallow = nested(depth).expect_err("ambiguous").to_string();
        assert!(shallow.starts_with("Ambiguous call to function"), "{shallow}");
    }
    let sum = vec!["1"; 60].join(" + ");
    fixture.prepare(&format!("INSERT INTO ks.scalars (k, n) VALUES (1, {sum})")).expect("a sum");
    let deep = nested(40).expect_err("too deep").to_string();
    assert_eq!(deep, "Calls of functions are nested too deep");
}
