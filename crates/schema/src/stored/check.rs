//! What a keyspace of a peer must be beyond being understood (`KeyspaceMetadata.validate`,
//! `TableMetadata.validate` and `validateCompatibility`): names become those of directories,
//! options become sizes, ids name data that there is.

use std::collections::BTreeSet;

use crate::change::{MAX_TABLE_NAME, check_keyspace_name, is_word, tables};
use crate::error::SchemaError;
use crate::keyspace::Keyspace;
use crate::schema::Schema;
use crate::stored::{SchemaMutation, SchemaTable};
use crate::table::Table;

/// Are names of a keyspace and its tables such that directories can have them? Those of rows that
/// describe nothing yet, too: they may later.
///
/// # Errors
/// If they are not.
pub(crate) fn check_names(mutation: &SchemaMutation) -> Result<(), SchemaError> {
    check_keyspace_name(&mutation.keyspace)?;
    let described = [SchemaTable::Tables, SchemaTable::Views].map(|of| mutation.updates.get(&of));
    for name in described.into_iter().flatten().flat_map(|update| update.rows.keys()) {
        let name = name.first().map(Vec::as_slice).unwrap_or_default();
        let text = std::str::from_utf8(name).unwrap_or_default();
        if !is_word(text) || text.len() > MAX_TABLE_NAME {
            let name = String::from_utf8_lossy(name);
            return SchemaError::config(format!(
                "{}: \"{name}\" names no table",
                mutation.keyspace
            ));
        }
    }
    Ok(())
}

/// Does a keyspace do that is to take the place of one of the schema?
///
/// # Errors
/// If it does not; in Cassandra's words where it has any.
pub(crate) fn check(schema: &Schema, keyspace: &Keyspace) -> Result<(), SchemaError> {
    check_keyspace_name(&keyspace.name)?;
    let mut ids = BTreeSet::new();
    let views = keyspace.views.values().map(|view| &view.table);
    for table in keyspace.tables.values().chain(views) {
        tables::validate(table)?;
        if !ids.insert(table.id) {
            let name = &keyspace.name;
            return SchemaError::config(format!("{name}: two tables have ID {}", table.id));
        }
        if let Some(known) = schema.table_by_id(&table.id) {
            check_same(known, table)?;
        }
    }
    Ok(())
}

/// Can a table be what one was that has its id?
fn check_same(known: &Table, table: &Table) -> Result<(), SchemaError> {
    let refuse =
        |text: String| SchemaError::config(format!("{}.{}: {text}", table.keyspace, table.name));
    if (&known.keyspace, &known.name) != (&table.keyspace, &table.name) {
        let (keyspace, name) = (&known.keyspace, &known.name);
        return refuse(format!("Table ID {} is that of {keyspace}.{name}", table.id));
    }
    for (what, before, after) in [
        ("Partition keys", &known.partition_key, &table.partition_key),
        ("Clustering columns", &known.clustering, &table.clustering),
    ] {
        let (found, expected) = (after.len(), before.len());
        if found != expected {
            return refuse(format!(
                "{what} of different length (found {found}; expected {expected})"
            ));
        }
    }
    Ok(())
}
