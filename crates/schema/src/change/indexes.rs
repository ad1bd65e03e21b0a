//! CREATE INDEX and DROP INDEX.

use std::sync::Arc;

use crate::change::{Context, CreateIndex, Outcome, is_word};
use crate::error::SchemaError;
use crate::keyspace::Keyspace;
use crate::table::{Index, Table};

impl Context<'_> {
    pub(super) fn create_index(&self, create: &CreateIndex) -> Result<Outcome, SchemaError> {
        let keyspace = self.existing()?;
        let Some(table) = keyspace.tables.get(&create.table) else {
            return SchemaError::invalid(format!("Table '{}' doesn't exist", create.table));
        };
        let name = create.name.clone();
        let name = name.unwrap_or_else(|| free_name(keyspace, &create.table, &create.column));
        let index = Index::legacy(name, create.target.clone());
        let same = |own: &&Index| own.kind == index.kind && own.options == index.options;
        if let Some(equal) = table.indexes.values().find(same) {
            if create.if_not_exists {
                return Ok(Outcome::Unchanged);
            }
            return SchemaError::invalid(format!(
                "Index {} is a duplicate of existing index {}",
                index.name, equal.name
            ));
        }
        if !is_word(&index.name) {
            return SchemaError::config(format!("Illegal index name {}", index.name));
        }
        let mut builder = table.to_builder();
        builder.indexes.insert(index.name.clone(), index);
        Ok(with_table(keyspace, builder.build()))
    }

    pub(super) fn drop_index(&self, table: &str, index: &str) -> Result<Outcome, SchemaError> {
        let keyspace = self.existing()?;
        let Some(table) = keyspace.tables.get(table) else { return Ok(Outcome::Unchanged) };
        let mut builder = table.to_builder();
        builder.indexes.remove(index);
        Ok(with_table(keyspace, builder.build()))
    }
}

fn with_table(keyspace: &Keyspace, table: Table) -> Outcome {
    let mut keyspace = keyspace.clone();
    keyspace.tables.insert(table.name.clone(), Arc::new(table));
    Outcome::Changed(Box::new(keyspace))
}

/// The name of an index that is given none: of table and column without what no name may have, and
/// with a number where an index of the keyspace has that name.
fn free_name(keyspace: &Keyspace, table: &str, column: &str) -> String {
    let mut name = format!("{table}_{column}_idx");
    name.retain(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_free = |name: &str| keyspace.table_of_index(name).is_none();
    if is_free(&name) {
        return name;
    }
    let mut numbered = (1_u64..).map(|number| format!("{name}_{number}"));
    numbered.find(|name| is_free(name)).unwrap_or(name)
}
