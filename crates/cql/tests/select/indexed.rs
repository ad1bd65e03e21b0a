//! Reads that Cassandra does by an index: which need no ALLOW FILTERING, which are refused, what
//! they give.

use cql::{CqlError, Plan};

use crate::select::world::{Answer, Given, World};

const TABLE: &str = "(a int, b int, c int, d int, s int static, v int, w text, l list<int>, m map<int, int>, \
                     n map<int, int>, e set<int>, f frozen<list<int>>, PRIMARY KEY ((a, b), c, d))";

/// Two tables of the same rows, the first one with indexes.
fn world() -> World {
    let mut world = World::new();
    for table in ["t", "u"] {
        world.create(&format!("CREATE TABLE {table} {TABLE}"));
    }
    for target in ["b", "d", "s", "v", "w", "l", "entries(m)", "keys(n)", "n", "e", "full(f)"] {
        world.create(&format!("CREATE INDEX ON t ({target})"));
    }
    for table in ["t", "u"] {
        for at in 0..48 {
            let (a, b, c, d) = (at % 3, at % 2, at / 6 % 3, at / 18);
            let (v, e) = (at % 4, at % 5);
            world.apply(&format!(
                "INSERT INTO {table} (a, b, c, d, v, w, l, m, n, e, f) VALUES ({a}, {b}, {c}, {d}, {v}, 'w{v}', \
                 [{v}, {e}, {v}], {{{v}: {e}}}, {{{e}: {v}}}, {{{e}, 9}}, [{e}])"
            ));
            if a != 1 {
                world.apply(&format!("INSERT INTO {table} (a, b, s) VALUES ({a}, {b}, {b})"));
            }
        }
        // one partition of nothing else
        world.apply(&format!("INSERT INTO {table} (a, b, s) VALUES (7, 1, 1)"));
    }
    world
}

fn read(world: &World, text: &str, page: Option<u32>) -> Result<Answer, CqlError> {
    let prepared = world.prepare(text)?;
    let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
    world.run(select, &Given(Vec::new()), page)
}

const FILTERS: &str = "Cannot execute this query as it might involve data filtering";

#[test]
fn an_index_gives_what_a_filter_gives() {
    let world = world();
    for condition in [
        "b = 1",
        "a = 1 AND b = 1 AND d = 1",
        "a = 1 AND b = 1 AND c = 1 AND v = 1",
        "d = 1",
        "s = 1",
        "v = 1",
        "w = 'w2'",
        "v = 3 AND a = 0 AND b = 1",
        "a = 0 AND b = 1 AND c > 0 AND v = 3",
        "token(a, b) > 0 AND v = 1",
        "token(a, b) <= 0 AND d = 1",
        "l CONTAINS 2",
        "m[1] = 1",
        "n CONTAINS KEY 2",
        "n CONTAINS 3",
        "e CONTAINS 4",
        "f = [2]",
        "v = 1 LIMIT 5",
        "v = 1 PER PARTITION LIMIT 1",
    ] {
        let (by_index, by_filter) = (
            format!("SELECT * FROM t WHERE {condition}"),
            format!("SELECT * FROM u WHERE {condition} ALLOW FILTERING"),
        );
        let all = read(&world, &by_index, None).unwrap_or_else(|e| panic!("{condition}: {e}"));
        assert_eq!(all.rows, read(&world, &by_filter, None).unwrap().rows, "{condition}");
        assert!(!all.rows.is_empty(), "{condition}");
        for page in [1, 2, 7] {
            let paged = read(&world, &by_index, Some(page)).unwrap();
            assert_eq!(paged.rows, all.rows, "{condition}, pages of {page}");
        }
        let filtered = read(&world, &format!("{by_index} ALLOW FILTERING"), None).unwrap();
        assert_eq!(filtered.rows, all.rows, "{condition}");
    }
}

#[test]
fn an_index_serves_what_cassandras_serves_and_no_more() {
    let world = world();
    for (condition, why) in [
        ("b = 1 AND v = 1", FILTERS),
        ("b > 1", FILTERS),
        ("v > 1", FILTERS),
        ("v IN (1, 2)", FILTERS),
        ("v = 1 AND w = 'w1'", FILTERS),
        ("v = 1 AND c = 1", FILTERS),
        ("c > 0 AND d = 1", FILTERS),
        ("a = 1 AND b = 1 AND c > 0 AND d = 1", FILTERS),
        ("(c, d) = (1, 1)", FILTERS),
        ("l CONTAINS 1 AND l CONTAINS 2", FILTERS),
        ("m CONTAINS 1", FILTERS),
        ("m CONTAINS KEY 1", FILTERS),
        ("n[1] = 1", FILTERS),
        ("f CONTAINS 1", FILTERS),
        (
            "a IN (1, 2) AND b = 1 AND v = 1",
            "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
        ),
        (
            "a = 1 AND b = 1 AND v = 1 ORDER BY c DESC",
            "ORDER BY with 2ndary indexes is not supported, except for ANN queries.",
        ),
        ("w LIKE 'w%'", "LIKE restriction is only supported on properly indexed columns."),
    ] {
        let refused = read(&world, &format!("SELECT * FROM t WHERE {condition}"), None);
        let text = refused.expect_err(condition).to_string();
        assert!(text.starts_with(why), "{condition}: {text}");
    }
    // what needs no index goes as without one
    for condition in
        ["a = 1 AND b = 1 ORDER BY c DESC", "a IN (0, 1) AND b = 1 AND c = 1 AND d = 1"]
    {
        let of = |table| read(&world, &format!("SELECT * FROM {table} WHERE {condition}"), None);
        assert_eq!(of("t").unwrap(), of("u").unwrap(), "{condition}");
    }
}

#[test]
fn what_an_index_cannot_name_is_neither_asked_for_nor_written() {
    let mut world = world();
    world
        .create("CREATE TABLE x (k int PRIMARY KEY, w text, m map<text, text>, p map<text, text>)");
    for target in ["w", "entries(m)", "keys(p)"] {
        world.create(&format!("CREATE INDEX ON x ({target})"));
    }
    let text = |size: usize| "x".repeat(size);
    let asked = |size| read(&world, &format!("SELECT k FROM x WHERE w = '{}'", text(size)), None);
    assert!(asked(65_535).is_ok());
    let refused = asked(65_536).unwrap_err().to_string();
    assert_eq!(refused, "Index expression values may not be larger than 64K");
    let write = |values: &str| {
        let prepared = world.prepare(&format!("INSERT INTO x {values}"))?;
        let Plan::Modify(modify) = &prepared.plan else { panic!("an INSERT") };
        World::updates(modify).map(drop)
    };
    for (column, of, size, framing) in [
        ("w", "'V'", 65_534, 0),
        ("m", "{'abcd': 'V'}", 65_524, 10),
        ("p", "{'V': 'abcd'}", 65_534, 0),
    ] {
        let values = |size| format!("(k, {column}) VALUES (1, {})", of.replace('V', &text(size)));
        assert!(write(&values(size)).is_ok(), "{column}");
        let refused = write(&values(size + 1)).unwrap_err().to_string();
        let wanted = format!(
            "Cannot index value of size {} for index x_{column}_idx on sel.x({column}) (maximum allowed size=65535)",
            size + 1 + framing
        );
        assert_eq!(refused, wanted);
    }
    // the values of a map whose keys are indexed may have any length
    assert!(write(&format!("(k, p) VALUES (1, {{'a': '{}'}})", text(70_000))).is_ok());
}
