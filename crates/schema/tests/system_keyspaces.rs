//! The system's keyspaces against a live 5.0.9's description of itself
//! (`conformance/schema_goldens`).

use crate::common;

use common::{golden, mutation, unhex};
use schema::{
    Release, Schema, SchemaMutation, SchemaPartition, SchemaRows, SchemaState, SchemaTable,
    TableId, system,
};
use serde_json::Value;

/// Rows of a result: `(column, value)` lists.
fn rows(v: &Value) -> Vec<Vec<(String, Option<Vec<u8>>)>> {
    let mut found = Vec::new();
    for result in v.as_array().unwrap() {
        let columns: Vec<String> = result["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c.as_str().unwrap().into())
            .collect();
        for row in result["rows"].as_array().unwrap() {
            let values = row.as_array().unwrap().iter().map(|v| v.as_str().map(unhex));
            found.push(columns.iter().cloned().zip(values).collect());
        }
    }
    found
}

/// A stored row as a SELECT would give it.
fn check(partition: &SchemaPartition, keys: &[&str], row: &[(String, Option<Vec<u8>>)]) {
    let value = |name: &str| row.iter().find(|(n, _)| n == name).unwrap().1.clone();
    let clustering: Vec<Vec<u8>> = keys.iter().map(|key| value(key).unwrap()).collect();
    let Some(ours) = partition.rows.get(&clustering) else {
        panic!(
            "no row {:?}",
            clustering.iter().map(|c| String::from_utf8_lossy(c)).collect::<Vec<_>>()
        );
    };
    for (name, theirs) in row {
        if name != "keyspace_name" && !keys.contains(&name.as_str()) {
            assert_eq!(ours.get(name, 0), theirs.as_deref(), "{clustering:?} {name}");
        }
    }
}

#[test]
fn tables_and_columns_are_those_of_a_live_node() {
    let golden: Value = serde_json::from_str(golden("system.json")).unwrap();
    let mut stored = SchemaRows::new();
    for mutation in system::local_mutations(Release::V5_0, 1, 0)
        .iter()
        .chain(&system::replicated_mutations(Release::V5_0, 0))
    {
        stored.apply(mutation);
    }
    let mut counts = [0; 2];
    let kinds = [
        (SchemaTable::Tables, &["table_name"][..]),
        (SchemaTable::Columns, &["table_name", "column_name"]),
    ];
    for ((table, keys), count) in kinds.into_iter().zip(&mut counts) {
        for row in rows(&golden[format!("system_schema.{}", table.name())]) {
            let keyspace = String::from_utf8(row[0].1.clone().unwrap()).unwrap();
            check(stored.partition(&keyspace, table).unwrap(), keys, &row);
            *count += 1;
        }
    }
    assert_eq!(counts, [48, 313]);
}

#[test]
fn descriptions_are_those_of_a_live_node() {
    let golden: Value = serde_json::from_str(golden("system.json")).unwrap();
    let keyspaces =
        system::local_keyspaces(Release::V5_0).into_iter().chain(system::virtual_keyspaces());
    let keyspaces = keyspaces.chain(system::replicated_keyspaces(Release::V5_0));
    let schema = Schema::new(keyspaces, Schema::empty_version(), 0);
    let mut tables = 0;
    for (keyspace, theirs) in golden["describe"].as_object().unwrap() {
        let ours = schema.describe_keyspace(keyspace, false, false, Release::V5_0);
        // the capture has altered this one's replication
        let altered = |kind: &str| keyspace == "system_auth" && kind == "keyspace";
        for element in &ours {
            let key = format!("{} {}", element.kind, element.name);
            if !altered(element.kind) {
                assert_eq!(
                    Some(&*element.create_statement),
                    theirs[&key].as_str(),
                    "{keyspace} {key}"
                );
            }
        }
        assert_eq!(ours.len(), theirs.as_object().unwrap().len(), "{keyspace}");
        tables += ours.iter().filter(|element| element.kind == "table").count();
    }
    assert_eq!(tables, 94);
}

#[test]
fn the_first_node_writes_what_cassandras_writes() {
    let start: Value = serde_json::from_str(golden("start.json")).unwrap();
    let mut ours = SchemaRows::new();
    let mut theirs = SchemaRows::new();
    for (name, tables) in start["rows"].as_object().unwrap() {
        theirs.apply(&mutation(name, tables));
    }
    let now = start["rows"]["system_auth"]["tables"]["rows"].as_object().unwrap();
    let now = now.values().next().unwrap()["d"][1].as_i64().unwrap();
    for mutation in system::replicated_mutations(Release::V5_0, now) {
        ours.apply(&mutation);
    }
    for keyspace in ["system_auth", "system_distributed", "system_traces"] {
        for table in SchemaTable::ALL {
            let (a, b) = (ours.partition(keyspace, table), theirs.partition(keyspace, table));
            let keys =
                |p: Option<&SchemaPartition>| p.map(|p| p.rows.keys().cloned().collect::<Vec<_>>());
            assert_eq!(keys(a), keys(b), "{keyspace} {table:?}");
            for (key, row) in a.iter().flat_map(|p| &p.rows) {
                let other = &b.unwrap().rows[key];
                assert_eq!(row.cells, other.cells);
                let times =
                    |row: &schema::SchemaRow| (row.liveness, row.deletion.map(|d| d.timestamp));
                assert_eq!(times(row), times(other));
            }
        }
    }
    let version = TableId(ours.version(Release::V5_0, now)).to_string();
    assert_eq!(version, start["version"].as_str().unwrap());
    assert_eq!(version, "d03783d7-b468-3c1a-82f1-8e30b2edde8b");
    let state =
        SchemaState::new(ours, system::local_keyspaces(Release::V5_0), Release::V5_0, now).unwrap();
    assert_eq!(state.schema().keyspaces().len(), 5);
    assert_eq!(state.schema().version(), theirs.version(Release::V5_0, now));
}

/// A SCHEMA_PULL answer, through the codec of messages and back.
#[test]
fn a_pull_is_read_and_written() {
    let start: Value = serde_json::from_str(golden("start.json")).unwrap();
    let bytes = unhex(start["pull"].as_str().unwrap());
    let schema = Schema::new(system::local_keyspaces(Release::V5_0), Schema::empty_version(), 0);
    let layout = |id: &[u8; 16]| Some(schema.table_by_id(&TableId(*id))?.layout.clone());
    let mut reader = types::Reader::new(&bytes[4..]);
    let mut decoder = rows::codec::MutationDecoder::new();
    let mut encoder = rows::codec::MutationEncoder::new();
    let count = u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let mut all = SchemaRows::new();
    for _ in 0..count {
        let theirs = decoder.mutation(&mut reader, &layout).unwrap();
        let read = SchemaMutation::from_mutation(&theirs).unwrap();
        let golden = mutation(&read.keyspace, &start["rows"][&read.keyspace]);
        for (table, partition) in &read.updates {
            assert_eq!(Some(partition), golden.updates.get(table), "{} {table:?}", read.keyspace);
        }
        all.apply(&read);
        // what we would send says the same
        let mut sent = Vec::new();
        encoder.mutation(&read.to_mutation(&schema).unwrap().unwrap(), &mut sent).unwrap();
        let again = decoder.mutation(&mut types::Reader::new(&sent), &layout).unwrap();
        assert_eq!(SchemaMutation::from_mutation(&again).unwrap(), read);
    }
    assert_eq!(
        TableId(all.version(Release::V5_0, 0)).to_string(),
        start["version"].as_str().unwrap()
    );
}
