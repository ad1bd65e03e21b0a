//! `system_virtual_schema`: the virtual keyspaces, their tables and columns
//! (`VirtualSchemaKeyspace`).

use schema::{ColumnKind, Keyspace, Schema, Table};

use super::data::NodeData;
use super::sink::{Datum, Sink};

fn virtual_keyspaces(schema: &Schema) -> impl Iterator<Item = &Keyspace> {
    schema.keyspaces().values().map(AsRef::as_ref).filter(|keyspace| keyspace.is_virtual)
}

fn virtual_tables(schema: &Schema) -> impl Iterator<Item = &Table> {
    virtual_keyspaces(schema).flat_map(|keyspace| keyspace.tables.values().map(AsRef::as_ref))
}

pub(super) fn keyspaces(sink: &mut Sink<'_>, schema: &Schema, _: &NodeData) -> Option<()> {
    for keyspace in virtual_keyspaces(schema) {
        sink.row(&[("keyspace_name", Datum::Text(&keyspace.name))]);
    }
    Some(())
}

pub(super) fn tables(sink: &mut Sink<'_>, schema: &Schema, _: &NodeData) -> Option<()> {
    for table in virtual_tables(schema) {
        sink.row(&[
            ("keyspace_name", Datum::Text(&table.keyspace)),
            ("table_name", Datum::Text(&table.name)),
            ("comment", Datum::Text(&table.params.comment)),
        ]);
    }
    Some(())
}

pub(super) fn columns(sink: &mut Sink<'_>, schema: &Schema, _: &NodeData) -> Option<()> {
    for table in virtual_tables(schema) {
        for column in table.columns() {
            let order = match column.kind {
                ColumnKind::Clustering if column.reversed => "desc",
                ColumnKind::Clustering => "asc",
                _ => "none",
            };
            sink.row(&[
                ("keyspace_name", Datum::Text(&table.keyspace)),
                ("table_name", Datum::Text(&table.name)),
                ("column_name", Datum::Text(&column.name)),
                ("clustering_order", Datum::Text(order)),
                ("column_name_bytes", Datum::Blob(column.name.as_bytes())),
                ("kind", Datum::Text(column.kind.name())),
                ("position", Datum::Int(column.position)),
                ("type", Datum::Text(&column.ty.cql_name())),
            ]);
        }
    }
    Some(())
}
