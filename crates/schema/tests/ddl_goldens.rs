//! Statements that a live Cassandra 5.0.9 executed (`conformance/schema_goldens`): the same errors,
//! warnings, rows, versions and descriptions come out here.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{golden, mutation, tombstone, unhex};
use schema::change::{Action, ColumnSpec, CreateTable, TableAlteration, TypeAlteration};
use schema::{
    ChangeKind, ChangeOptions, Keyspace, PropertyValue, Release, SchemaChange, SchemaMutation,
    SchemaRows, SchemaState, SchemaTable, TableId, TableParams, Target,
};
use serde_json::Value;
use types::CqlType;

/// Nothing here expires.
const NOW: i64 = 0;

fn text(v: &Value) -> String {
    v.as_str().unwrap().to_owned()
}

fn texts(v: &Value) -> Vec<String> {
    v.as_array().into_iter().flatten().map(text).collect()
}

fn pairs(v: &Value) -> Vec<(String, String)> {
    v.as_array().unwrap().iter().map(|p| (text(&p[0]), text(&p[1]))).collect()
}

fn properties(v: &Value) -> Vec<(String, PropertyValue)> {
    let property = |p: &Value| {
        let value = match &p[1] {
            Value::Object(map) => {
                PropertyValue::Map(map.iter().map(|(k, v)| (k.clone(), text(v))).collect())
            }
            other => PropertyValue::Text(text(other)),
        };
        (text(&p[0]), value)
    };
    v.as_array().into_iter().flatten().map(property).collect()
}

struct Translator<'a>(&'a SchemaState);

impl Translator<'_> {
    fn ty(&self, ks: &str, v: &Value) -> CqlType {
        let schema = self.0.schema();
        let mut resolve = |_: Option<&str>, name: &str| schema.user_type(ks, name).cloned();
        CqlType::parse_cql_name(v.as_str().unwrap(), &mut resolve).unwrap()
    }

    fn columns(&self, ks: &str, v: &Value) -> Vec<ColumnSpec> {
        let column = |c: &Value| ColumnSpec {
            name: text(&c[0]),
            ty: self.ty(ks, &c[1]),
            is_static: c.get(2).is_some(),
            mask: None,
        };
        v.as_array().unwrap().iter().map(column).collect()
    }

    fn change(&self, op: &Value) -> SchemaChange {
        let keyspace = text(&op["ks"]);
        let flag = |name: &str| op[name].as_bool().unwrap_or(false);
        let (if_exists, if_not_exists) = (flag("if_exists"), flag("if_not_exists"));
        let with = properties(&op["with"]);
        let name = op["type"].as_str().unwrap_or_default().to_owned();
        let table = op["table"].as_str().unwrap_or_default().to_owned();
        let action = match op["op"].as_str().unwrap() {
            "create_keyspace" => Action::CreateKeyspace { if_not_exists, properties: with },
            "alter_keyspace" => Action::AlterKeyspace { if_exists, properties: with },
            "drop_keyspace" => Action::DropKeyspace { if_exists },
            "create_type" => {
                let fields = op["fields"].as_array().unwrap();
                let fields =
                    fields.iter().map(|f| (text(&f[0]), self.ty(&keyspace, &f[1]))).collect();
                Action::CreateType { name, fields, if_not_exists }
            }
            "drop_type" => Action::DropType { name, if_exists },
            "alter_type" => {
                let alteration = if let Some(add) = op.get("add") {
                    let ty = self.ty(&keyspace, &add[1]);
                    TypeAlteration::AddField { if_not_exists, name: text(&add[0]), ty }
                } else if let Some(renames) = op.get("rename") {
                    TypeAlteration::RenameFields { if_exists: false, fields: pairs(renames) }
                } else {
                    TypeAlteration::AlterFieldType
                };
                Action::AlterType { name, if_exists, alteration }
            }
            "create_table" => {
                let order = op.get("order").map(pairs).unwrap_or_default().into_iter();
                Action::CreateTable(CreateTable {
                    table,
                    if_not_exists,
                    columns: self.columns(&keyspace, &op["columns"]),
                    partition_key: texts(&op["pk"]),
                    clustering: texts(&op["ck"]),
                    clustering_order: order.map(|(n, o)| (n, o == "DESC")).collect(),
                    properties: with,
                    compact_storage: flag("compact"),
                })
            }
            "drop_table" => Action::DropTable { table, if_exists },
            "alter_table" => {
                let alteration = self.alteration(&keyspace, op, with, if_not_exists);
                Action::AlterTable { table, if_exists, alteration }
            }
            other => panic!("{other}"),
        };
        SchemaChange { keyspace, action }
    }

    fn alteration(
        &self,
        ks: &str,
        op: &Value,
        with: Vec<(String, PropertyValue)>,
        if_not_exists: bool,
    ) -> TableAlteration {
        let if_exists = op["if_column_exists"].as_bool().unwrap_or(false);
        if let Some(columns) = op.get("add") {
            TableAlteration::AddColumns { if_not_exists, columns: self.columns(ks, columns) }
        } else if let Some(columns) = op.get("drop") {
            // without USING TIMESTAMP it is the time of execution, a little before that of the
            // mutation
            let stored = op["rows"][ks]["dropped_columns"]["rows"].as_object().and_then(|rows| {
                let value = rows.values().next()?["c"]["dropped_time"][1].as_str()?;
                Some(i64::from_str_radix(value, 16).unwrap() * 1000)
            });
            let timestamp = op["ts_given"].as_i64().or(stored);
            TableAlteration::DropColumns { if_exists, columns: texts(columns), timestamp }
        } else if let Some(columns) = op.get("rename") {
            TableAlteration::RenameColumns { if_exists, columns: pairs(columns) }
        } else if op.get("with").is_some() {
            TableAlteration::Options(with)
        } else if op.get("alter").is_some() {
            TableAlteration::AlterColumnType
        } else {
            TableAlteration::DropCompactStorage
        }
    }
}

fn uuid(bytes: [u8; 16]) -> String {
    TableId(bytes).to_string()
}

/// The id that Cassandra drew for a new table.
fn drawn_id(op: &Value) -> TableId {
    let tables = &op["rows"][op["ks"].as_str().unwrap()]["tables"]["rows"];
    let rows = tables.as_object().into_iter().flat_map(|rows| rows.values());
    let id = rows.filter_map(|row| row["c"]["id"][1].as_str()).next();
    TableId(id.map(|id| unhex(id).try_into().unwrap()).unwrap_or_default())
}

struct Run {
    state: SchemaState,
    /// What DESCRIBE says now, by keyspace.
    told: BTreeMap<String, BTreeMap<String, String>>,
    failures: Vec<String>,
}

impl Run {
    fn fail(&mut self, op: &Value, what: String) {
        self.failures.push(format!("{}\n   {what}", op["cql"].as_str().unwrap()));
    }

    fn step(&mut self, op: &Value) {
        if op["op"] == "raw" {
            // not served here: merged as from a peer
            for (name, rows) in op["rows"].as_object().into_iter().flatten() {
                self.state.merge(&[mutation(name, rows)], NOW).unwrap();
            }
        } else {
            self.statement(op);
        }
        if op.get("version").is_some() {
            self.after(op);
        }
    }

    fn statement(&mut self, op: &Value) {
        let change = Translator(&self.state).change(op);
        let timestamp = op["ts"].as_i64().unwrap_or(0);
        let rows = op["rows"][op["ks"].as_str().unwrap()].as_object();
        let now = rows.and_then(|tables| {
            let all = tables.values().flat_map(|t| {
                let rows = t["rows"].as_object().into_iter().flat_map(|r| r.values());
                rows.map(|r| &r["d"]).chain([&t["del"]]).filter_map(tombstone).collect::<Vec<_>>()
            });
            all.filter(|t| t.timestamp >= timestamp - 1).map(|t| t.local_deletion_time).next()
        });
        let options = ChangeOptions {
            drop_compact_storage: true,
            now: now.unwrap_or_default(),
            ..ChangeOptions::default()
        };
        match self.state.change(&change, timestamp, drawn_id(op), &options) {
            Err(error) => {
                let theirs = (op["err"][0].as_i64(), op["err"][1].as_str());
                let ours = (Some(i64::from(error.code())), Some(error.to_string()));
                // a server error of Cassandra's is a configuration error of ours
                let excused = theirs.0 == Some(0) && error.code() == 0x2300;
                if (theirs.0, theirs.1.map(str::to_owned)) != ours && !excused {
                    self.fail(op, format!("ours {ours:?}\n   theirs {theirs:?}"));
                }
            }
            Ok(applied) => {
                if let Some(error) = op.get("err") {
                    return self.fail(op, format!("ours passed, theirs {error}"));
                }
                let event = applied.event.map(|event| {
                    let kind = match event.kind {
                        ChangeKind::Created => "CREATED",
                        ChangeKind::Updated => "UPDATED",
                        ChangeKind::Dropped => "DROPPED",
                    };
                    let (target, name) = match event.target {
                        Target::Keyspace => ("KEYSPACE", None),
                        Target::Table(name) => ("TABLE", Some(name)),
                        Target::Type(name) => ("TYPE", Some(name)),
                        _ => unreachable!(),
                    };
                    let own = [kind.to_owned(), target.to_owned(), event.keyspace];
                    own.into_iter().chain(name).collect::<Vec<_>>()
                });
                if event != op.get("event").map(texts) {
                    self.fail(op, format!("event {event:?}, theirs {:?}", op.get("event")));
                }
                if applied.warnings != texts(&op["warn"]) {
                    self.fail(
                        op,
                        format!("warnings {:?}, theirs {}", applied.warnings, op["warn"]),
                    );
                }
            }
        }
    }

    /// Rows, version and texts after a statement that changed something.
    fn after(&mut self, op: &Value) {
        for (name, tables) in op["rows"].as_object().unwrap() {
            let theirs = mutation(name, tables);
            for (table, partition) in &theirs.updates {
                let ours = self.state.rows().partition(name, *table);
                let ours = ours.cloned().unwrap_or_default();
                if partition.deletion.is_some() && partition.deletion != ours.deletion {
                    self.fail(op, format!("deletion of {table:?}: ours {:?}", ours.deletion));
                }
                for (key, row) in &partition.rows {
                    if ours.rows.get(key) != Some(row) {
                        let ours = ours.rows.get(key);
                        self.fail(
                            op,
                            format!("{table:?} {key:?}\n   ours {ours:?}\n   theirs {row:?}"),
                        );
                    }
                }
            }
        }
        let version = uuid(self.state.schema().version());
        if version != op["version"] {
            self.fail(op, format!("version {version}, theirs {}", op["version"]));
        }
        let ks = text(&op["ks"]);
        let told = self.told.entry(ks.clone()).or_default();
        for (name, text) in op["desc"].as_object().unwrap() {
            match text.as_str() {
                Some(text) => told.insert(name.clone(), text.to_owned()),
                None => told.remove(name),
            };
        }
        let told = told.clone();
        let ours = describe(&self.state, &ks, false);
        if ours != told {
            let differing = |a: &BTreeMap<String, String>, b: &BTreeMap<String, String>| {
                let keys = a.keys().filter(|k| a.get(*k) != b.get(*k)).cloned();
                keys.map(|k| format!("{k}: {}", a[&k])).collect::<Vec<_>>()
            };
            self.fail(
                op,
                format!(
                    "describe ours {:#?}\n theirs {:#?}",
                    differing(&ours, &told),
                    differing(&told, &ours)
                ),
            );
        }
        // what is derived from the stored rows is what the change made of the model
        // (column `cdc` aside: without `cdc_enabled` it is in the model until the next start, and
        // not stored)
        let plain = |keyspace: &Keyspace| {
            let mut keyspace = keyspace.clone();
            for table in keyspace.tables.values_mut() {
                let params = TableParams { cdc: false, ..table.params.clone() };
                *table = Arc::new(table.to_builder().params(params).build());
            }
            keyspace
        };
        let stored = self.state.rows().keyspace(&ks, NOW).unwrap();
        let model = self.state.schema().keyspace(&ks);
        if stored.as_ref().map(plain) != model.map(|keyspace| plain(keyspace)) {
            self.fail(op, "model and rows differ".to_owned());
        }
    }
}

fn describe(state: &SchemaState, ks: &str, internals: bool) -> BTreeMap<String, String> {
    let schema = state.schema();
    let elements = schema.describe_keyspace(ks, false, internals, Release::V5_0).into_iter();
    elements.map(|d| (format!("{} {}", d.kind, d.name), d.create_statement)).collect()
}

/// What Cassandra answered to a SCHEMA_PULL before the first statement.
fn start() -> SchemaState {
    let start: Value = serde_json::from_str(golden("start.json")).unwrap();
    let mut rows = SchemaRows::new();
    for (name, tables) in start["rows"].as_object().unwrap() {
        rows.apply(&mutation(name, tables));
    }
    let state = SchemaState::new(rows, [], Release::V5_0, NOW).unwrap();
    assert_eq!(uuid(state.schema().version()), start["version"].as_str().unwrap());
    state
}

/// Statements that changed the schema, at least: what is asked of the goldens.
const CHANGES: usize = 200;

#[test]
fn mutations_of_cassandra_give_its_version() {
    let mut state = start();
    let mut count = 0;
    for line in golden("ddl.jsonl").lines() {
        let op: Value = serde_json::from_str(line).unwrap();
        let Some(version) = op["version"].as_str() else { continue };
        let rows = op["rows"].as_object().unwrap();
        let mutations: Vec<_> = rows.iter().map(|(name, tables)| mutation(name, tables)).collect();
        state.merge(&mutations, NOW).unwrap();
        assert_eq!(uuid(state.schema().version()), version, "{}", op["cql"]);
        count += 1;
    }
    assert!(count >= CHANGES, "{count}");
}

/// A change that makes a table, by name; the keyspace that it is in; and the state before it.
fn before_a_table() -> (SchemaState, SchemaMutation, String) {
    let mut state = start();
    for line in golden("ddl.jsonl").lines() {
        let op: Value = serde_json::from_str(line).unwrap();
        for (name, rows) in op["rows"].as_object().into_iter().flatten() {
            let mutation = mutation(name, rows);
            let mut after = state.clone();
            after.merge(std::slice::from_ref(&mutation), NOW).unwrap();
            let tables = |state: &SchemaState| {
                let keyspace = state.schema().keyspace(name);
                keyspace.map(|keyspace| keyspace.tables.keys().cloned().collect::<Vec<_>>())
            };
            if let (Some(before), Some(with)) = (tables(&state), tables(&after))
                && let Some(new) = with.iter().find(|table| !before.contains(table))
            {
                return (state, mutation, new.clone());
            }
            state = after;
        }
    }
    panic!("no table is made");
}

/// Gives a table another name wherever a mutation names it.
fn renamed(mutation: &SchemaMutation, from: &str, to: &str) -> SchemaMutation {
    let mut mutation = mutation.clone();
    for update in mutation.updates.values_mut() {
        let rows = std::mem::take(&mut update.rows).into_iter();
        update.rows = rows
            .map(|(mut key, row)| {
                if key.first().is_some_and(|name| name == from.as_bytes()) {
                    key[0] = to.as_bytes().to_vec();
                }
                (key, row)
            })
            .collect();
    }
    mutation
}

/// Whoever sends a schema does not say where this node makes directories, nor what becomes of
/// tables that there are.
#[test]
fn what_a_peer_says_of_tables_must_do() {
    let (state, mutation, table) = before_a_table();
    let refused = |mutation: &SchemaMutation| {
        let mut state = state.clone();
        let version = state.schema().version();
        let merged = state.merge(std::slice::from_ref(mutation), NOW);
        assert_eq!(state.schema().version() == version, merged.is_err());
        merged.is_err()
    };
    for name in ["", "../../tmp/x", "a/b", "..", "a b", "\u{e9}", &"x".repeat(223)] {
        assert!(refused(&renamed(&mutation, &table, name)), "{name}");
    }
    for name in ["", "..", "a/b", &"x".repeat(49)] {
        // no row says that there is such a keyspace; one may come
        assert!(
            refused(&SchemaMutation { keyspace: name.to_owned(), ..mutation.clone() }),
            "{name}"
        );
    }
    // what is right for all of them but the id, which is that of a table that there is
    let mut after = state.clone();
    after.merge(std::slice::from_ref(&mutation), NOW).unwrap();
    let version = after.schema().version();
    assert!(after.merge(&[renamed(&mutation, &table, "another")], NOW).is_err());
    assert_eq!(after.schema().version(), version);
    let mut with_no_number = mutation.clone();
    let tables = with_no_number.updates.get_mut(&SchemaTable::Tables).unwrap();
    for row in tables.rows.values_mut() {
        let chance = row.cells.get_mut("bloom_filter_fp_chance").unwrap();
        chance.value = Some(f64::NAN.to_be_bytes().to_vec());
    }
    assert!(refused(&with_no_number));
    assert!(!refused(&mutation));
}

#[test]
fn statements_do_what_they_do_on_cassandra() {
    let state = start();
    let mut run = Run { state, told: BTreeMap::new(), failures: Vec::new() };
    let ddl = golden("ddl.jsonl");
    let mut count = 0;
    for line in ddl.lines() {
        let op: Value = serde_json::from_str(line).unwrap();
        // the local system's keyspaces are not here; what is refused before they are looked at is
        run.step(&op);
        // those of later issues are merged as rows, and not counted
        count += usize::from(op.get("version").is_some() && op["op"] != "raw");
    }
    let internals: Value = serde_json::from_str(golden("internals.json")).unwrap();
    for (ks, theirs) in internals.as_object().unwrap() {
        for (name, text) in theirs.as_object().unwrap() {
            let ours = describe(&run.state, ks, true).remove(name);
            if ours.as_deref() != text.as_str() {
                run.failures.push(format!("internals of {name}:\n{ours:?}\n{text}"));
            }
        }
    }
    assert!(count >= CHANGES, "{count}");
    assert!(
        run.failures.is_empty(),
        "{} failures\n{}",
        run.failures.len(),
        run.failures.join("\n")
    );
}
