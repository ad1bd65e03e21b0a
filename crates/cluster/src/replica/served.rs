//! Which tables this node serves for others. What it would do only half - a table with views or triggers, which it does
//! not run, a column of a type that it does not know - it does not do at all.

use cql::permission::is_local_system;
use internode::FailureReason;
use schema::{Column, Schema, Table};
use types::CqlType;

use crate::coordinator::Coordinator;

/// Is there something in the schema that must happen with each write of a table, and does not happen here?
fn has_unserved(schema: &Schema, table: &Table) -> bool {
    let keyspace = schema.keyspace(&table.keyspace);
    let views = keyspace.into_iter().flat_map(|keyspace| keyspace.views.values());
    let is_base = |view: &std::sync::Arc<schema::View>| {
        view.base_table_id == table.id || view.table.id == table.id
    };
    !table.triggers.is_empty() || views.into_iter().any(is_base)
}

/// Is it a super column family, or is there a key whose order only a class of Java's knows?
fn is_foreign(table: &Table) -> bool {
    let is_custom = |column: &Column| matches!(column.ty, CqlType::Custom(_));
    table.flags.super_table || table.primary_key().any(is_custom)
}

impl Coordinator {
    /// May others read a table here?
    pub(super) fn check_readable(
        &self,
        schema: &Schema,
        table: &Table,
    ) -> Result<(), FailureReason> {
        let keyspace = schema.keyspace(&table.keyspace);
        let is_view = keyspace.is_some_and(|keyspace| keyspace.views.contains_key(&table.name));
        match table.is_virtual() || is_view || is_foreign(table) {
            true => Err(FailureReason::IncompatibleSchema),
            false => Ok(()),
        }
    }

    /// May others write to a table here? The node's own tables are nobody else's, and the schema has ways of its own.
    pub(super) fn check_writable(
        &self,
        schema: &Schema,
        table: &Table,
    ) -> Result<(), FailureReason> {
        if is_local_system(&table.keyspace) {
            return Err(FailureReason::Unknown);
        }
        match table.is_virtual() || has_unserved(schema, table) || is_foreign(table) {
            true => Err(FailureReason::IncompatibleSchema),
            false => Ok(()),
        }
    }
}
