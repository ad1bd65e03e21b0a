//! CREATE INDEX and DROP INDEX. A statement that Cassandra would refuse is refused with its words;
//! an index of a class of its own (CUSTOM, USING), which Cassandra would make, gets a clear error.

use std::collections::BTreeSet;

use schema::change::{Action, CreateIndex as NewIndex};
use schema::{Column, Keyspace, Release, Table};
use types::CqlType;

use crate::ast::{CreateIndex, DropObject, IndexTargetKind, PropertyValue};
use crate::error::CqlError;
use crate::scope::Scope;

/// The class behind `default_secondary_index`.
const LEGACY: &str = "legacy_local_table";
const SASI: &str = "org.apache.cassandra.index.sasi.SASIIndex";
/// Names of the storage-attached index, in lower case.
const SAI: [&str; 3] =
    ["sai", "storageattachedindex", "org.apache.cassandra.index.sai.storageattachedindex"];
/// The longest name of a column that a custom index takes.
const MAX_CUSTOM_TARGET: usize = 48;

fn fail<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::Invalid(message.into()))
}

/// What a DROP INDEX does, if anything.
pub(super) fn drop(
    drop: &DropObject,
    name: &str,
    keyspace: Option<&Keyspace>,
) -> Result<Option<Action>, CqlError> {
    let index = &drop.name.name;
    if let Some(table) = keyspace.and_then(|keyspace| keyspace.table_of_index(index)) {
        let (table, index) = (table.name.clone(), index.clone());
        return Ok(Some(Action::DropIndex { table, index }));
    }
    if drop.if_exists {
        return Ok(None);
    }
    // the stray quote is Cassandra's
    fail(format!("Index '{name}.{index}' doesn't exist'"))
}

/// What a CREATE INDEX does, if anything.
pub(super) fn create(
    create: &CreateIndex,
    name: &str,
    keyspace: Option<&Keyspace>,
    release: Release,
) -> Result<Option<Action>, CqlError> {
    if release < Release::V5_0 {
        check_class(create)?;
    }
    let legacy = !create.custom
        && create.class.as_ref().is_none_or(|class| class.eq_ignore_ascii_case(LEGACY));
    let class = create.class.as_deref().unwrap_or(LEGACY);
    check_properties(create, legacy)?;
    if !legacy && class == SASI {
        return fail("SASI indexes are disabled. Enable in cassandra.yaml to use.");
    }
    let Some(keyspace) = keyspace else {
        return fail(format!("Keyspace '{name}' doesn't exist"));
    };
    let Some(table) = keyspace.table_or_view(&create.table.name) else {
        return fail(format!("Table '{}' doesn't exist", create.table.name));
    };
    if let Some(index) = &create.name
        && keyspace.table_of_index(index).is_some()
    {
        if create.if_not_exists {
            return Ok(None);
        }
        return fail(format!("Index '{index}' already exists"));
    }
    if table.is_counter() {
        return fail("Secondary indexes on counter tables aren't supported");
    }
    if table.kind == schema::TableKind::View {
        return fail("Secondary indexes on materialized views aren't supported");
    }
    if keyspace.replication.has_transient_replicas() {
        return fail("Secondary indexes are not supported on transiently replicated keyspaces");
    }
    check_targets(create, table, legacy)?;
    if !legacy && !SAI.contains(&class.to_ascii_lowercase().as_str()) {
        return Err(CqlError::Config(format!("Unable to find custom indexer class '{class}'")));
    }
    let Some(target) = create.targets.first().filter(|_| legacy) else {
        return Err(CqlError::unsupported(format!("An index of class '{class}'")));
    };
    let column = Scope::column(table, &target.column)?;
    Ok(Some(Action::CreateIndex(NewIndex {
        table: table.name.clone(),
        name: create.name.clone(),
        column: column.name.to_string(),
        target: target_text(column, target.kind),
        if_not_exists: create.if_not_exists,
    })))
}

/// Until 5.0 a class and CUSTOM belong together (`IndexAttributes.validate` of 4.1, whose
/// misspelling this is).
fn check_class(create: &CreateIndex) -> Result<(), CqlError> {
    match (create.custom, &create.class) {
        (true, None) => fail("CUSTOM index requires specifiying the index class"),
        (false, Some(_)) => fail("Cannot specify index class for a non-CUSTOM index"),
        _ => Ok(()),
    }
}

fn check_properties(create: &CreateIndex, legacy: bool) -> Result<(), CqlError> {
    for property in &create.properties {
        if property.name != "options" {
            return Err(CqlError::Syntax(format!("Unknown property '{}'", property.name)));
        }
    }
    if legacy && !create.properties.is_empty() {
        return fail("Cannot specify options for a non-CUSTOM index");
    }
    for property in &create.properties {
        let PropertyValue::Map(options) = &property.value else {
            return Err(CqlError::Syntax(format!(
                "Invalid value for property '{}'. It should be a map.",
                property.name
            )));
        };
        for reserved in ["class_name", "target"] {
            if options.iter().any(|(name, _)| name == reserved) {
                return fail(format!("Cannot specify {reserved} as a CUSTOM option"));
            }
        }
    }
    Ok(())
}

fn check_targets(create: &CreateIndex, table: &Table, legacy: bool) -> Result<(), CqlError> {
    let targets = create.targets.iter();
    let columns = targets.map(|target| Ok((Scope::column(table, &target.column)?, target.kind)));
    let columns = columns.collect::<Result<Vec<_>, CqlError>>()?;
    if columns.is_empty() && legacy {
        return fail("Only CUSTOM indexes can be created without specifying a target column");
    }
    if columns.len() > 1 {
        if legacy {
            return fail("Only CUSTOM indexes support multiple columns");
        }
        let mut seen = BTreeSet::new();
        if let Some((column, _)) = columns.iter().find(|(column, _)| !seen.insert(&column.name)) {
            return fail(format!("Duplicate column '{}' in index target list", column.name));
        }
    }
    for (column, kind) in columns {
        if !legacy {
            check_custom_name(&column.name)?;
        }
        check_target(table, column, kind)?;
    }
    Ok(())
}

fn check_custom_name(name: &str) -> Result<(), CqlError> {
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return fail(format!("Column '{name}' contains non-alphanumeric-underscore characters"));
    }
    if name.len() > MAX_CUSTOM_TARGET {
        return fail(format!(
            "Column '{name}' is longer than the permissible name length of {MAX_CUSTOM_TARGET} characters"
        ));
    }
    Ok(())
}

/// What an index is of, as the schema has it.
fn target_text(column: &Column, kind: IndexTargetKind) -> String {
    let name = types::maybe_quote(&column.name);
    match function_of(column, kind) {
        Some(function) => format!("{function}({name})"),
        None => name.into_owned(),
    }
}

/// A collection's own name stands for its values.
fn function_of(column: &Column, kind: IndexTargetKind) -> Option<&'static str> {
    match kind {
        IndexTargetKind::Simple if column.ty.is_collection() => Some("values"),
        IndexTargetKind::Simple => None,
        IndexTargetKind::Values => Some("values"),
        IndexTargetKind::Keys => Some("keys"),
        IndexTargetKind::Entries => Some("entries"),
        IndexTargetKind::Full => Some("full"),
    }
}

fn check_target(table: &Table, column: &Column, kind: IndexTargetKind) -> Result<(), CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    if ty.any(&mut |ty| *ty == CqlType::Duration) {
        return fail(format!(
            "Secondary indexes are not supported on {}",
            match ty {
                CqlType::Tuple(_) => "tuples containing durations",
                CqlType::Udt { .. } => "UDTs containing durations",
                ty if ty.is_collection() => "collections containing durations",
                _ => "duration columns",
            }
        ));
    }
    if table.flags.is_compact() {
        if column.kind.is_primary_key() {
            return fail(
                "Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables",
            );
        }
        if !column.is_static() {
            return fail(
                "Secondary indexes are not supported on compact value column of COMPACT STORAGE tables",
            );
        }
    }
    if column.kind == schema::ColumnKind::PartitionKey && table.partition_key.len() == 1 {
        return fail(format!(
            "Cannot create secondary index on the only partition key column {name}"
        ));
    }
    let frozen = ty.is_collection() && !ty.is_multicell();
    let is_map = matches!(ty, CqlType::Map { frozen: false, .. });
    let shown = function_of(column, kind).unwrap_or_default();
    if frozen && kind != IndexTargetKind::Full {
        return fail(format!(
            "Cannot create {shown}() index on frozen column {name}. Frozen collections are immutable and must \
             be fully indexed by using the 'full({})' modifier",
            types::maybe_quote(name)
        ));
    }
    if !frozen && kind == IndexTargetKind::Full {
        return fail("full() indexes can only be created on frozen collections");
    }
    if !ty.is_collection() && kind != IndexTargetKind::Simple {
        return fail(format!(
            "Cannot create {shown}() index on {name}. Non-collection columns only support simple indexes"
        ));
    }
    if !is_map && matches!(kind, IndexTargetKind::Keys | IndexTargetKind::Entries) {
        return fail(format!("Cannot create index on {shown} of column {name} with non-map type"));
    }
    if matches!(ty, CqlType::Udt { frozen: false, .. }) {
        return fail(format!("Cannot create index on non-frozen UDT column {name}"));
    }
    Ok(())
}
