//! `system_virtual_schema`: the virtual tables, described by themselves.

use crate::system::TableDefinition;

/// `system_virtual_schema`: the schema of the virtual tables.
pub(super) const SYSTEM_VIRTUAL_SCHEMA: &[TableDefinition] = &[
    TableDefinition {
        name: "columns",
        comment: "virtual column definitions",
        columns: &[
            "pk keyspace_name text",
            "ck table_name text",
            "ck column_name text",
            "clustering_order text",
            "column_name_bytes blob",
            "kind text",
            "position int",
            "type text",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "keyspaces",
        comment: "virtual keyspace definitions",
        columns: &["pk keyspace_name text"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "tables",
        comment: "virtual table definitions",
        columns: &["pk keyspace_name text", "ck table_name text", "comment text"],
        ..TableDefinition::NEW
    },
];
