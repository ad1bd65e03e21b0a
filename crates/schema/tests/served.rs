//! What is not served is named, and a write that would be done by half is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{
    ColumnKind, Function, Index, Keyspace, Reason, Replication, Schema, Signature, Table,
    TableBuilder, TableFlags, TableId, TableKind, View, system, unserved,
};
use types::CqlType;

fn table(name: &str, id: u8) -> TableBuilder {
    Table::builder("Ks", name, TableId([id; 16])).column(
        "k",
        CqlType::Int,
        ColumnKind::PartitionKey,
    )
}

fn custom() -> CqlType {
    CqlType::Custom("org.example.Point".into())
}

fn schema(keyspaces: Vec<Keyspace>) -> Schema {
    let local = system::local_keyspaces(schema::Release::V5_0)
        .into_iter()
        .chain(system::virtual_keyspaces());
    let all = local.chain(keyspaces.into_iter().map(Arc::new));
    Schema::new(all, Schema::empty_version(), 0)
}

fn keyspace(tables: Vec<TableBuilder>) -> Keyspace {
    let mut keyspace = Keyspace::new("Ks", true, Replication::simple(1));
    for table in tables {
        let table = table.build();
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
    }
    keyspace
}

fn index(class: Option<&str>) -> Index {
    let class = class.map(|class| ("class_name".to_owned(), class.to_owned()));
    let kind = if class.is_some() { "CUSTOM" } else { "COMPOSITES" };
    let options = class.into_iter().collect();
    Index { name: "i".to_owned(), kind: kind.to_owned(), options }
}

#[test]
fn the_schema_of_a_first_start_is_served() {
    let replicated = system::replicated_keyspaces(schema::Release::V5_0);
    let keyspaces = replicated.iter().map(|keyspace| Keyspace::clone(keyspace)).collect();
    assert_eq!(unserved(&schema(keyspaces)), []);
}

#[test]
fn an_index_with_a_class_is_custom() {
    for (class, is_custom) in [(None, false), (Some("StorageAttachedIndex"), true)] {
        let mut table = table("t", 1);
        assert!(!table.clone().build().has_custom_index());
        table.indexes.insert("i".to_owned(), Index { name: "i".to_owned(), ..index(class) });
        assert_eq!(table.build().has_custom_index(), is_custom, "{class:?}");
    }
}

#[test]
fn each_object_that_is_not_served_is_named() {
    let mut triggered = table("audited", 1);
    triggered.triggers.insert("tr".to_owned(), "org.example.Audit".to_owned());
    let list = CqlType::List { element: Arc::new(custom()), frozen: false };
    let points = table("points", 2).column("v", list, ColumnKind::Regular);
    let mut old = table("old", 3);
    old.flags = TableFlags { super_table: true, dense: true, ..TableFlags::default() };
    let mut compact = table("compact", 7);
    compact.flags = TableFlags { dense: true, ..TableFlags::default() };
    let mut indexed = table("indexed", 4);
    for (name, class) in [
        ("plain", None),
        ("sai", Some("StorageAttachedIndex")),
        ("sasi", Some("org.apache.cassandra.index.sasi.SASIIndex")),
        ("lucene", Some("com.stratio.cassandra.lucene.Index")),
    ] {
        indexed.indexes.insert(name.to_owned(), Index { name: name.to_owned(), ..index(class) });
    }
    let mut keyspace = keyspace(vec![triggered, points, old, compact, indexed, table("base", 5)]);
    let view = View {
        table: Arc::new(table("mv", 6).kind(TableKind::View).build()),
        base_table_id: TableId([5; 16]),
        base_table_name: "base".to_owned(),
        where_clause: String::new(),
        include_all_columns: true,
    };
    keyspace.views.insert("mv".to_owned(), Arc::new(view));
    let function = Function {
        argument_names: Vec::new(),
        body: String::new(),
        language: "java".to_owned(),
        return_type: "int".to_owned(),
        called_on_null_input: true,
    };
    let signature = Signature { name: "f".to_owned(), argument_types: Vec::new() };
    keyspace.functions.insert(signature, Arc::new(function));
    let transient: BTreeMap<String, String> = [("dc1".to_owned(), "3/1".to_owned())].into();
    let class = "org.apache.cassandra.locator.NetworkTopologyStrategy";
    let transient = Keyspace::new("b", true, Replication::new(class, transient));
    let foreign = Keyspace::new("c", true, Replication::new("org.example.Near", BTreeMap::new()));
    let schema = schema(vec![keyspace, transient, foreign]);
    let named: Vec<String> = unserved(&schema).iter().map(ToString::to_string).collect();
    let expected = [
        "\"Ks\".audited: it has triggers",
        "\"Ks\".lucene: an index of a custom class",
        "\"Ks\".old: a super column family",
        "\"Ks\".points: it has a column of a custom type",
        "\"Ks\".mv: a materialized view",
        "\"Ks\".f: a user-defined function",
        "b: it has transient replicas",
        "c: it has a replication strategy of a custom class",
    ];
    assert_eq!(named, expected);
    let refused: Vec<Option<Reason>> =
        (1..=6).map(|id| schema.refuses_writes(&TableId([id; 16]))).collect();
    let expected = [
        Some(Reason::Trigger),
        Some(Reason::CustomType),
        Some(Reason::SuperColumns),
        None,
        Some(Reason::BaseOfView),
        None,
    ];
    assert_eq!(refused, expected);
}
