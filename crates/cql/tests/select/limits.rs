//! Limits at their edges.

use cql::select::{MAX_COMBINATIONS, NO_LIMIT, PageRequest, Read, RowFilter, Target};
use cql::{CqlError, Plan, Prepared, parse_of_shard_aware, prepare};
use schema::Schema;
use types::value::pack_list;

use crate::select::world::{Given, World};

fn world() -> World {
    let mut world = World::new();
    world.create("CREATE TABLE t (k int, a int, b int, v int, PRIMARY KEY (k, a, b))");
    world
}

fn bind(world: &World, statement: &str, values: Vec<Vec<u8>>) -> Result<Read, CqlError> {
    bind_prepared(&world.prepare(statement)?, values)
}

fn bind_prepared(prepared: &Prepared, values: Vec<Vec<u8>>) -> Result<Read, CqlError> {
    let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
    let values = Given(values.into_iter().map(|value| Some(Some(value))).collect());
    World::with_bind(&values, |bind| select.bind(bind, &PageRequest::default()))
}

fn ints(count: usize) -> Vec<u8> {
    pack_list((0..count as i32).map(|n| n.to_be_bytes()))
}

#[test]
fn one_list_may_be_long_and_a_product_may_not() {
    let world = world();
    let one = bind(&world, "SELECT v FROM t WHERE k IN ?", vec![ints(MAX_COMBINATIONS + 1)]);
    let Target::Keys(keys) = one.expect("it binds").target else { panic!("keys") };
    assert_eq!(keys.len(), MAX_COMBINATIONS + 1);

    let two = "SELECT v FROM t WHERE k = 1 AND a IN ? AND b IN ?";
    let most = bind(&world, two, vec![ints(MAX_COMBINATIONS / 100), ints(100)]);
    let RowFilter::Names(names) = most.expect("it binds").rows else { panic!("names") };
    assert_eq!(names.len(), MAX_COMBINATIONS);
    let more = bind(&world, two, vec![ints(MAX_COMBINATIONS / 100 + 1), ints(100)]);
    let message = more.expect_err("too many").to_string();
    assert!(message.starts_with("Guardrail in_select_cartesian_product violated"), "{message}");
}

#[test]
fn a_statement_may_set_its_deadline() {
    let virtuals = Schema::new(schema::system::virtual_keyspaces(), Schema::empty_version(), 1);
    let bind_text = |rest: &str| {
        let text = format!("SELECT name FROM system_views.caches {rest}");
        let parsed = parse_of_shard_aware(&text).expect("it parses");
        bind_prepared(&prepare(&parsed, None, &virtuals).expect("it prepares"), vec![])
    };
    let read = bind_text("LIMIT 3 USING TIMEOUT 1500ms").expect("it binds");
    assert_eq!((read.timeout_nanos, read.limit), (Some(1_500_000_000), 3));
    let read = bind_text("").expect("it binds");
    assert_eq!((read.timeout_nanos, read.limit), (None, NO_LIMIT));
    for refused in ["1mo", "-1s", "0s"] {
        let read = bind_text(&format!("USING TIMEOUT {refused}"));
        assert!(matches!(read, Err(CqlError::Invalid(_))), "{refused}");
    }
}

#[test]
fn any_number_of_relations_about_contents_is_cheap() {
    let mut world = world();
    world.create("CREATE TABLE c (k int PRIMARY KEY, s set<int>)");
    let relations = vec!["s CONTAINS 1"; 20_000].join(" AND ");
    world
        .prepare(&format!("SELECT k FROM c WHERE {relations} ALLOW FILTERING"))
        .expect("it prepares");
}
