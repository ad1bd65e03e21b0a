//! Which tables this node serves for others. What it would do only half - a table with views or
//! triggers, which it does not run, a column of a type that it does not know - it does not do at
//! all.
//!
//! Others do not read views and virtual tables here, and do not write to the node's own tables.

use cql::permission::is_local_system;
use internode::FailureReason;
use rows::PartitionUpdate;
use schema::{Column, Schema, Table, TableId};
use types::CqlType;

/// Is there something in the schema that must happen with each write of a table, and does not
/// happen here?
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

/// A write with the keyspace that it is of.
pub(crate) struct Checked {
    pub keyspace: String,
    pub is_durable: bool,
}

/// May others read a table here?
pub(crate) fn check_readable(schema: &Schema, table: &Table) -> Result<(), FailureReason> {
    let keyspace = schema.keyspace(&table.keyspace);
    let is_view = keyspace.is_some_and(|keyspace| keyspace.views.contains_key(&table.name));
    match table.is_virtual() || is_view || is_foreign(table) {
        true => Err(FailureReason::IncompatibleSchema),
        false => Ok(()),
    }
}

/// May others write to a table here? The node's own tables are nobody else's, and the schema has
/// ways of its own.
pub(crate) fn check_writable(schema: &Schema, table: &Table) -> Result<(), FailureReason> {
    if is_local_system(&table.keyspace) {
        return Err(FailureReason::Unknown);
    }
    match table.is_virtual() || has_unserved(schema, table) || is_foreign(table) {
        true => Err(FailureReason::IncompatibleSchema),
        false => Ok(()),
    }
}

/// Refuses a write to what this node does not serve, or is no replica of.
pub(crate) fn check_updates(
    schema: &Schema,
    updates: &[PartitionUpdate],
) -> Result<Checked, FailureReason> {
    let mut of: Option<&str> = None;
    for update in updates {
        let table = schema.table_by_id(&TableId(update.table));
        let table = table.ok_or(FailureReason::IncompatibleSchema)?;
        check_writable(schema, table)?;
        // Cassandra's coordinator sends such a deletion, and then no replica's memtable can take
        // it.
        if update.ranges.has_null_bound() {
            return Err(FailureReason::Unknown);
        }
        // a mutation is of one keyspace
        if of.replace(&table.keyspace).is_some_and(|before| before != table.keyspace) {
            return Err(FailureReason::Unknown);
        }
    }
    let keyspace = of.ok_or(FailureReason::Unknown)?.to_owned();
    let known = schema.keyspace(&keyspace);
    Ok(Checked { is_durable: known.is_none_or(|known| known.durable_writes), keyspace })
}
