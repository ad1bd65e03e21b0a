//! `to_json` against what a Cassandra 5.0.9 answered, and where its argument has no type by itself.

use cql::Plan;
use types::hex::{from_hex, to_hex};

use crate::select::world::{Given, World};

const CORPUS: &str = include_str!("../../../../conformance/corpus/functions.cql");
const GOLDEN: &str = include_str!("../../../../conformance/golden/functions.json");

fn world() -> World {
    let mut world = World::new();
    let mut lines = CORPUS.lines().filter(|line| !line.starts_with("--"));
    let table = lines.find(|line| line.starts_with("CREATE TABLE t ")).unwrap();
    world.create(table.trim_end_matches(';'));
    for insert in lines.take(3) {
        world.apply(insert.trim_end_matches(';'));
    }
    world
}

/// The texts of the only row, or the refusal.
fn select(world: &World, text: &str) -> Result<Vec<String>, String> {
    let prepared = world.prepare(text).map_err(|e| e.to_string())?;
    let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
    let mut answer = world.run(select, &Given(Vec::new()), None).map_err(|e| e.to_string())?;
    let row = answer.rows.pop().unwrap();
    Ok(row.into_iter().map(|cell| String::from_utf8(cell.unwrap()).unwrap()).collect())
}

#[test]
fn texts_are_those_of_cassandra() {
    let golden = GOLDEN.lines().find(|line| line.contains("\"SELECT to_json(m)")).unwrap();
    let (statement, answer) = golden.split_once("\", \"answers\"").unwrap();
    let statement = statement.split_once("\"cql\": \"").unwrap().1;
    let rows = answer.split_once("\"rows\": [[").unwrap().1.trim_end_matches("]]}]},");
    let want: Vec<String> = rows
        .split(", ")
        .map(|cell| String::from_utf8(from_hex(cell.trim_matches('"')).unwrap()).unwrap())
        .collect();
    assert_eq!(select(&world(), statement).unwrap(), want);
}

#[test]
fn the_other_types_of_the_recorded_row() {
    // as SELECT JSON * showed them
    let golden = GOLDEN.lines().find(|line| line.contains("\"SELECT JSON * FROM t\"")).unwrap();
    let columns = ["a", "b", "i", "j", "l", "p", "q", "t"];
    let calls: Vec<_> = columns.iter().map(|c| format!("to_json({c})")).collect();
    let statement = format!("SELECT {} FROM t WHERE k = 1", calls.join(", "));
    for (column, text) in columns.iter().zip(select(&world(), &statement).unwrap()) {
        let member = to_hex(format!("\"{column}\": {text}").as_bytes());
        assert!(golden.contains(&member), "{column}: {text}");
    }
}

#[test]
fn null_and_what_has_no_type() {
    let world = world();
    let one = |call: &str| select(&world, &format!("SELECT {call} FROM t WHERE k = 3"));
    assert_eq!(one("to_json(a)").unwrap(), ["null"]);
    assert_eq!(one("to_json(3000000000)").unwrap(), ["3000000000"]);
    assert_eq!(one("to_json('x\"')").unwrap(), [r#""x\"""#]);
    assert_eq!(one("to_json(to_json('x'))").unwrap(), [r#""\"x\"""#]);
    assert_eq!(one("to_json(blob_as_int(0x))").unwrap(), ["null"]);
    assert_eq!(one("to_json([1, 2])").unwrap(), ["[1, 2]"]);
    assert_eq!(
        one("to_json(?)").unwrap_err(),
        "Cannot infer type of argument ? in call to function system.to_json(any): use type casts to disambiguate"
    );
    assert_eq!(
        one("to_json(a, b)").unwrap_err(),
        "Invalid number of arguments for function system.to_json(any)"
    );
}
