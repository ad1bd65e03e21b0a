//! Reading the golden files.

use rows::Liveness;
use schema::{SchemaCell, SchemaMutation, SchemaPartition, SchemaRow, SchemaTable, Tombstone};
use serde_json::Value;

/// A golden file's text.
pub fn golden(name: &str) -> &'static str {
    macro_rules! files {
        ($($file:literal),*) => {
            match name {
                $($file => include_str!(
                    concat!("../../../../conformance/schema_goldens/goldens/", $file)
                ),)*
                _ => panic!("no golden file {name}"),
            }
        };
    }
    files!("ddl.jsonl", "internals.json", "start.json", "system.json")
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

pub fn tombstone(v: &Value) -> Option<Tombstone> {
    let v = v.as_array()?;
    Some(Tombstone { timestamp: v[0].as_i64()?, local_deletion_time: v[1].as_i64()? })
}

pub fn row(v: &Value) -> SchemaRow {
    let mut row = SchemaRow {
        deletion: tombstone(&v["d"]),
        liveness: v["t"].as_i64().map(Liveness::new),
        ..SchemaRow::default()
    };
    for (name, cell) in v["c"].as_object().into_iter().flatten() {
        let value = cell[1].as_str().map(unhex);
        let timestamp = cell[0].as_i64().unwrap();
        let cell = SchemaCell { timestamp, value, ttl: 0, local_deletion_time: 0 };
        row.cells.insert(name.clone(), cell);
    }
    row
}

/// The rows of a keyspace that a statement changed, as a mutation.
pub fn mutation(keyspace: &str, tables: &Value) -> SchemaMutation {
    let mut mutation = SchemaMutation { keyspace: keyspace.into(), ..SchemaMutation::default() };
    for (table, part) in tables.as_object().unwrap() {
        let mut partition =
            SchemaPartition { deletion: tombstone(&part["del"]), ..SchemaPartition::default() };
        for (key, value) in part["rows"].as_object().into_iter().flatten() {
            if value.is_null() {
                continue;
            }
            let key = if key.is_empty() { vec![] } else { key.split(' ').map(unhex).collect() };
            partition.rows.insert(key, row(value));
        }
        mutation.updates.insert(SchemaTable::by_name(table).unwrap(), partition);
    }
    mutation
}
