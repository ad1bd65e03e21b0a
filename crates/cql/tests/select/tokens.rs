//! `token()` of virtual tables: there is no ring, so the token of a key is the key itself.

use cql::select::{PageRequest, PartitionKey, Position, RangeBound, Read, Target};
use cql::{CqlError, Plan, Prepared};
use schema::Schema;
use types::CqlType;

use crate::select::world::{Given, World};

fn prepare(text: &str) -> Result<Prepared, CqlError> {
    let schema = Schema::new(schema::system::virtual_keyspaces(), Schema::empty_version(), 1);
    cql::prepare(&cql::parse(text).expect("it parses"), Some("system_views"), &schema)
}

fn bind_page(text: &str, values: Vec<&str>, page: &PageRequest<'_>) -> Result<Read, CqlError> {
    let prepared = prepare(text)?;
    let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
    let values = values.into_iter().map(|value| Some(Some(value.as_bytes().to_vec())));
    World::with_bind(&Given(values.collect()), |bind| select.bind(bind, page))
}

fn target(text: &str, values: Vec<&str>) -> Target {
    bind_page(text, values, &PageRequest::default()).expect("it binds").target
}

fn at(key: &str, inclusive: bool) -> RangeBound {
    RangeBound::Key { key: PartitionKey::new(key.as_bytes()), inclusive }
}

fn range(from: RangeBound, to: RangeBound) -> Target {
    Target::Range { from, to }
}

#[test]
fn a_range_of_tokens_is_one_of_keys() {
    let open = RangeBound::Unbounded;
    let found = target("SELECT name FROM settings WHERE token(name) > token('m')", vec![]);
    assert_eq!(found, range(at("m", false), open.clone()));
    let found = target("SELECT name FROM settings WHERE token(name) <= ?", vec!["m"]);
    assert_eq!(found, range(open.clone(), at("m", true)));
    let found = target("SELECT name FROM settings WHERE token(name) = token('m')", vec![]);
    assert_eq!(found, range(at("m", true), at("m", true)));
    // the least token is no bound
    let found = target("SELECT name FROM settings WHERE token(name) > ?", vec![""]);
    assert_eq!(found, range(open.clone(), open));
    let text = "SELECT name FROM settings WHERE token(name) > 'b' AND token(name) < 'a'";
    assert!(target(text, vec![]).is_nothing());
    let text = "SELECT name FROM settings WHERE token(name) > 'a' AND token(name) <= 'a'";
    assert!(target(text, vec![]).is_nothing());
}

#[test]
fn a_token_sorts_out_keys_by_their_own_order() {
    let text = "SELECT name FROM settings WHERE name IN ('a', 'b', 'c') AND token(name) > 'a'";
    let keys = |names: &[&str]| {
        Target::Keys(names.iter().map(|name| PartitionKey::new(name.as_bytes())).collect())
    };
    assert_eq!(target(text, vec![]), keys(&["b", "c"]));
    assert_eq!(target(&format!("{text} AND token(name) < 'c'"), vec![]), keys(&["b"]));
    assert!(target(&format!("{text} AND token(name) <= 'a'"), vec![]).is_nothing());
    // what ends before it starts goes round
    let round = "SELECT name FROM settings WHERE name IN ('a', 'b', 'c') AND token(name) > 'b' AND token(name) <= 'a'";
    assert_eq!(target(round, vec![]), keys(&["a", "c"]));
}

#[test]
fn a_token_has_the_type_of_its_key() {
    let shown = |text: &str| {
        prepare(text).expect("it prepares").result.expect("rows").first().expect("one").ty.clone()
    };
    assert_eq!(shown("SELECT token(name) FROM settings"), CqlType::Text);
    let CqlType::Custom(class) = shown("SELECT token(keyspace_name, table_name) FROM disk_usage")
    else {
        panic!("a class")
    };
    let text = "org.apache.cassandra.db.marshal.UTF8Type";
    assert_eq!(*class, format!("org.apache.cassandra.db.marshal.CompositeType({text},{text})"));
    // of the one virtual table that Cassandra spreads over the ring
    assert_eq!(shown("SELECT token(id) FROM streaming"), CqlType::BigInt);
    assert!(prepare("SELECT name FROM settings WHERE token(name) > 5").is_err());
}

#[test]
fn pages_go_on_in_the_order_of_keys() {
    let page = |key: &'static str| PageRequest {
        size: Some(2),
        after: Some(Position {
            key: Some(key.as_bytes()),
            row: None,
            remaining: 100,
            remaining_in_partition: 0,
        }),
    };
    let text = "SELECT name FROM settings WHERE token(name) > 'm'";
    let go_on = |key| bind_page(text, vec![], &page(key)).expect("it binds").target;
    // In the order of the ring half of these would come before `m`.
    for later in ["n", "o", "p", "q", "r", "s", "t", "u"] {
        assert_eq!(go_on(later), range(at(later, false), RangeBound::Unbounded));
    }
    // a position that the client made up never widens the read
    for before in ["a", "l", "m"] {
        assert_eq!(go_on(before), range(at("m", false), RangeBound::Unbounded));
    }
}
