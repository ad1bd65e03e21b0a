//! The statements of the corpus about expressions, aggregates and JSON, against what a Cassandra
//! 5.0.9 answered. Values, pages and metadata are the node's to show (`cargo xtask oracle
//! --golden`); here are rows, names and codes.

use cql::{CqlError, Plan};
use serde_json::Value;
use types::hex::to_hex;

use crate::select::world::{Answer, Given, World};

const FILES: [(&str, &str); 6] = [
    ("expressions", include_str!("../../../../conformance/golden/expressions.json")),
    ("aggregates", include_str!("../../../../conformance/golden/aggregates.json")),
    ("json", include_str!("../../../../conformance/golden/json.json")),
    ("selections", include_str!("../../../../conformance/golden/selections.json")),
    ("indexes", include_str!("../../../../conformance/golden/indexes.json")),
    ("functions", include_str!("../../../../conformance/golden/functions.json")),
];

/// Tables WITH COMPACT STORAGE, each file up to a line: this executor has no deletions of rows.
const COMPACT: [(&str, &str, u64); 3] = [
    ("compact_static", include_str!("../../../../conformance/golden/compact_static.json"), 140),
    ("compact_dense", include_str!("../../../../conformance/golden/compact_dense.json"), 100),
    (
        "compact_composite",
        include_str!("../../../../conformance/golden/compact_composite.json"),
        123,
    ),
];

/// Statements that were recorded with values, as they are here.
const WITH_VALUES: [(&str, &str); 2] = [
    ("UPDATE n SET c = 10 / (int) ? WHERE k = 15", "UPDATE n SET c = 10 / 3 WHERE k = 15"),
    (
        "INSERT INTO t JSON ? DEFAULT UNSET",
        r#"INSERT INTO t JSON '{"k": 7, "c": "m", "b": 9, "li": [1]}'"#,
    ),
];

/// Parts of statements that need more than this executor: counters, times, limits of groups, the
/// keyspace in names of types, lists written twice, changes and descriptions of the schema.
const ELSEWHERE: [&str; 13] = [
    "cnt",
    "writetime(",
    "now()",
    "CREATE ",
    "USE ",
    "PER PARTITION LIMIT",
    "?",
    "(pt)",
    "(20, 21, 22)",
    "ALTER TABLE",
    "DROP INDEX",
    "DESCRIBE ",
    "system_schema.",
];

fn code(error: &CqlError) -> &'static str {
    match error {
        CqlError::Syntax(_) => "2000",
        CqlError::Unauthorized(_) => "2100",
        CqlError::Invalid(_) | CqlError::CannotPage => "2200",
        CqlError::Config(_) => "2300",
        CqlError::AlreadyExists { .. } => "2400",
        CqlError::Function { .. } => "1400",
    }
}

/// The rows of an answer, all pages together.
fn rows(answer: &Value) -> Option<Vec<Value>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match answer["kind"].as_str()? {
        "rows" => Some(list(&answer["rows"])),
        "pages" => Some(list(&answer["pages"]).iter().flat_map(list).collect()),
        _ => None,
    }
}

fn ours(answer: &Answer) -> Vec<Value> {
    let cell = |cell: &Option<Vec<u8>>| cell.as_ref().map_or(Value::Null, |v| to_hex(v).into());
    answer.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

fn select(world: &World, text: &str) -> Result<(Vec<String>, Vec<Value>), CqlError> {
    let prepared = world.prepare(text)?;
    let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
    let answer = world.run(select, &Given(Vec::new()), None)?;
    let columns = prepared.result.iter().flat_map(|columns| columns.iter());
    Ok((columns.map(|column| column.name.to_string()).collect(), ours(&answer)))
}

fn modify(world: &mut World, text: &str) -> Result<(), CqlError> {
    let prepared = world.prepare(text)?;
    let Plan::Modify(modify) = &prepared.plan else { return Ok(()) };
    World::updates(modify)?;
    world.apply(text);
    Ok(())
}

/// What differs, if something does.
fn difference(world: &mut World, text: &str, answer: &Value) -> Option<String> {
    let theirs_failed = answer["code"].as_str();
    if text.starts_with("SELECT") {
        return match (select(world, text), theirs_failed) {
            (Err(error), Some(code_of_theirs)) => (code(&error) != code_of_theirs)
                .then(|| format!("theirs {code_of_theirs}, ours {error}")),
            (Err(error), None) => Some(format!("ours {error}")),
            (Ok(_), Some(code)) => Some(format!("theirs {code}, ours has rows")),
            (Ok((names, rows_of_ours)), None) => {
                let columns = answer["columns"].as_array().cloned().unwrap_or_default();
                let named = columns.len() == names.len()
                    && columns.iter().zip(&names).all(|(theirs, ours)| {
                        theirs.as_str().is_some_and(|it| it.contains(&format!(".{ours} ")))
                    });
                let theirs = rows(answer)?;
                (!named || theirs != rows_of_ours).then(|| {
                    format!("theirs {columns:?} {theirs:?}, ours {names:?} {rows_of_ours:?}")
                })
            }
        };
    }
    match (modify(world, text), theirs_failed) {
        (Ok(()), None) => None,
        (Err(error), Some(theirs)) if code(&error) == theirs => None,
        (ours, theirs) => Some(format!("theirs {theirs:?}, ours {ours:?}")),
    }
}

/// Compares the answers of files up to their last lines; how many there were.
fn compare(files: &[(&str, &str, u64)]) -> usize {
    let (mut compared, mut differences) = (0, Vec::new());
    for (file, text, until) in files {
        let steps: Vec<Value> = serde_json::from_str(text).unwrap();
        let mut world = World::new();
        for step in steps.iter().filter(|step| step["line"].as_u64() < Some(*until)) {
            let (cql, answer) = (step["cql"].as_str().unwrap(), &step["answers"][0]);
            let kind = answer["kind"].as_str().unwrap_or_default();
            if kind == "schema_change" {
                world.create(cql);
                continue;
            }
            if let Some((_, here)) = WITH_VALUES.iter().find(|(recorded, _)| *recorded == cql) {
                world.apply(here);
                continue;
            }
            // what Cassandra fails at by mistake, and what pages alone are refused for
            let is_here = matches!(kind, "rows" | "pages" | "void" | "error")
                && !ELSEWHERE.iter().any(|part| cql.contains(part))
                && answer["code"] != "0000"
                && !answer["message"].as_str().is_some_and(|it| it.starts_with("Cannot page"));
            if !is_here {
                continue;
            }
            compared += 1;
            if let Some(difference) = difference(&mut world, cql, answer) {
                differences.push(format!("{file}: {cql}\n  {difference}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    compared
}

#[test]
fn answers_are_those_of_cassandra() {
    let compared = compare(&FILES.map(|(file, text)| (file, text, u64::MAX)));
    assert!(compared > 350, "{compared} compared");
}

#[test]
fn answers_with_compact_storage_are_those_of_cassandra() {
    let compared = compare(&COMPACT);
    assert!(compared > 200, "{compared} compared");
}
