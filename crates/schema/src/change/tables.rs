//! CREATE, ALTER and DROP TABLE.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use types::{CqlType, maybe_quote};

use crate::change::compatible::{expanded, reads_as};
use crate::change::{
    ColumnSpec, Context, CreateTable, MAX_TABLE_NAME, Outcome, TableAlteration, is_word,
};
use crate::column::{Column, ColumnKind, ColumnMask, DroppedColumn};
use crate::error::SchemaError;
use crate::keyspace::{Keyspace, View};
use crate::params::from_properties::table_id;
use crate::params::{ReadRepair, TableParams};
use crate::properties::{self, Properties};
use crate::table::{Table, TableBuilder, TableFlags, TableKind};

/// The most columns of a table: cells name them by 16 bits.
const MAX_COLUMNS: usize = rows::Layout::MAX_COLUMNS;

/// An unfrozen user type must not hold unfrozen collections.
fn nests_multicell(ty: &CqlType) -> bool {
    match ty {
        CqlType::Udt { definition, frozen: false } => {
            definition.fields.iter().any(|(_, ty)| ty.is_multicell())
        }
        _ => false,
    }
}

/// The checks that every table must pass (`TableMetadata.validate`).
pub(crate) fn validate(table: &Table) -> Result<(), SchemaError> {
    let refuse =
        |text: String| SchemaError::config(format!("{}.{}: {text}", table.keyspace, table.name));
    if !is_word(&table.name) {
        return refuse(format!(
            "Table name must not be empty or not contain non-alphanumeric-underscore characters (got \"{}\")",
            table.name
        ));
    }
    if table.name.len() > MAX_TABLE_NAME {
        return refuse(format!(
            "Table name must not be more than {MAX_TABLE_NAME} characters long (got {} characters for \"{}\")",
            table.name.len(),
            table.name
        ));
    }
    table.params.validate()?;
    if table.partition_key.iter().any(|column| column.ty == CqlType::Counter) {
        return refuse("PRIMARY KEY columns cannot contain counters".to_owned());
    }
    for column in table.statics.iter().chain(&table.regulars) {
        let counts = column.ty == CqlType::Counter;
        if table.is_counter() && !counts && !column.name.is_empty() {
            return refuse(format!(
                "Cannot have a non counter column (\"{}\") in a counter table",
                column.name
            ));
        }
        if !table.is_counter() && counts {
            return refuse(format!(
                "Cannot have a counter column (\"{}\") in a non counter table",
                column.name
            ));
        }
    }
    if table.partition_key.is_empty() {
        return refuse(format!("Missing partition keys for table {}", table.qualified_name()));
    }
    Ok(())
}

impl Context<'_> {
    fn check_transient(
        &self,
        keyspace: &Keyspace,
        params: &TableParams,
    ) -> Result<(), SchemaError> {
        if keyspace.replication.has_transient_replicas() && params.read_repair != ReadRepair::None {
            return SchemaError::invalid(
                "read_repair must be set to 'NONE' for transiently replicated keyspaces",
            );
        }
        Ok(())
    }

    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<Outcome, SchemaError> {
        properties::check_unique(&create.properties)?;
        TableParams::check_values(&create.properties, &self.options.memtables)?;
        let keyspace = self.existing()?;
        if keyspace.table_or_view(&create.table).is_some() {
            if create.if_not_exists {
                return Ok(Outcome::Unchanged);
            }
            return Err(SchemaError::AlreadyExists {
                keyspace: self.keyspace.to_owned(),
                table: create.table.clone(),
            });
        }
        let table = self.new_table(create)?;
        validate(&table)?;
        self.check_transient(keyspace, &table.params)?;
        let mut keyspace = Keyspace::clone(keyspace);
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
        Ok(Outcome::Changed(Box::new(keyspace)))
    }

    fn new_table(&self, create: &CreateTable) -> Result<Table, SchemaError> {
        let name = &create.table;
        let params = TableParams::from_properties(&create.properties, &self.options.memtables)?;
        let mut columns: BTreeMap<&str, &ColumnSpec> = BTreeMap::new();
        for column in &create.columns {
            if columns.insert(&column.name, column).is_some() {
                return SchemaError::invalid(format!(
                    "Duplicate column '{}' declaration for table '{}.{name}'",
                    column.name, self.keyspace
                ));
            }
        }
        if columns.len() > MAX_COLUMNS {
            return SchemaError::invalid("Too many columns");
        }
        if columns.values().any(|column| nests_multicell(&column.ty)) {
            return SchemaError::invalid(
                "Non-frozen UDTs with nested non-frozen collections are not supported",
            );
        }
        check_primary_key(create, &columns)?;
        check_clustering_order(create)?;
        let keys: BTreeSet<&str> =
            create.partition_key.iter().chain(&create.clustering).map(String::as_str).collect();
        let others: Vec<&ColumnSpec> =
            columns.values().copied().filter(|column| !keys.contains(&*column.name)).collect();
        check_others(create, &others)?;
        let counter = create.columns.iter().any(|column| column.ty == CqlType::Counter);
        if counter {
            if others.iter().any(|column| column.ty != CqlType::Counter) {
                return SchemaError::invalid(
                    "Cannot mix counter and non counter columns in the same table",
                );
            }
            if params.default_time_to_live > 0 {
                return SchemaError::invalid(
                    "Cannot set default_time_to_live on a table with counters",
                );
            }
        }
        let id = table_id(&create.properties)?.unwrap_or(self.new_id);
        let mut builder = Table::builder(self.keyspace, name.as_str(), id).params(params);
        builder.flags.counter = counter;
        for key in &create.partition_key {
            let (ty, mask) = of_key(&columns, key);
            builder.add(key, ty, ColumnKind::PartitionKey, false, mask);
        }
        for key in &create.clustering {
            let (ty, mask) = of_key(&columns, key);
            let descends = create.clustering_order.iter().any(|(name, desc)| name == key && *desc);
            builder.add(key, ty, ColumnKind::Clustering, descends, mask);
        }
        if create.compact_storage {
            add_compact_columns(&mut builder, create, &others);
        } else {
            for column in others {
                let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
                builder.add(&column.name, column.ty.clone(), kind, false, column.mask.clone());
            }
        }
        Ok(builder.build())
    }

    pub(super) fn drop_table(
        &mut self,
        name: &str,
        if_exists: bool,
    ) -> Result<Outcome, SchemaError> {
        let current = self.current();
        let Some((keyspace, table)) =
            current.and_then(|keyspace| Some((keyspace, keyspace.table_or_view(name)?)))
        else {
            return self.no_table(name, if_exists);
        };
        if table.kind == TableKind::View {
            return SchemaError::invalid(
                "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW instead.",
            );
        }
        if views_of(keyspace, table).next().is_some() {
            // the keyspace stands where the views should: Cassandra's own slip
            return SchemaError::invalid(format!(
                "Cannot drop a table when materialized views still depend on it ({})",
                self.keyspace
            ));
        }
        let mut keyspace = Keyspace::clone(keyspace);
        keyspace.tables.remove(name);
        Ok(Outcome::Changed(Box::new(keyspace)))
    }

    fn no_table(&self, name: &str, if_exists: bool) -> Result<Outcome, SchemaError> {
        if if_exists {
            return Ok(Outcome::Unchanged);
        }
        SchemaError::invalid(format!("Table '{}.{name}' doesn't exist", self.keyspace))
    }

    pub(super) fn alter_table(
        &mut self,
        name: &str,
        if_exists: bool,
        alteration: &TableAlteration,
    ) -> Result<Outcome, SchemaError> {
        if let TableAlteration::Options(properties) = alteration {
            properties::check_unique(properties)?;
            TableParams::check_values(properties, &self.options.memtables)?;
        }
        let current = self.current().cloned();
        let Some((keyspace, table)) = current
            .as_ref()
            .and_then(|keyspace| Some((keyspace, keyspace.table_or_view(name)?.as_ref())))
        else {
            return self.no_table(name, if_exists);
        };
        if table.kind == TableKind::View {
            return SchemaError::invalid(
                "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW instead",
            );
        }
        let mut after = Keyspace::clone(keyspace);
        let altered = self.altered(&mut after, table, alteration)?;
        after.tables.insert(name.to_owned(), Arc::new(altered));
        Ok(Outcome::Changed(Box::new(after)))
    }

    fn altered(
        &self,
        keyspace: &mut Keyspace,
        table: &Table,
        alteration: &TableAlteration,
    ) -> Result<Table, SchemaError> {
        match alteration {
            TableAlteration::AddColumns { if_not_exists, columns } => {
                add_columns(keyspace, table, columns, *if_not_exists)
            }
            TableAlteration::DropColumns { if_exists, columns, timestamp } => {
                let at = timestamp.unwrap_or(self.timestamp);
                drop_columns(keyspace, table, columns, *if_exists, at)
            }
            TableAlteration::RenameColumns { columns, .. } => {
                rename_columns(keyspace, table, columns)
            }
            TableAlteration::Options(properties) => self.alter_options(keyspace, table, properties),
            TableAlteration::AlterColumnType => {
                SchemaError::invalid("Altering column types is no longer supported")
            }
            TableAlteration::Mask { if_exists, column, mask } => {
                if table.column(column).is_none() && !if_exists {
                    return SchemaError::invalid(format!(
                        "Column with name '{column}' doesn't exist on table '{}'",
                        table.name
                    ));
                }
                let mut builder = table.to_builder();
                for masked in builder.columns.iter_mut().filter(|c| *c.name == **column) {
                    masked.mask.clone_from(mask);
                }
                Ok(builder.build())
            }
            TableAlteration::DropCompactStorage => self.drop_compact_storage(table),
        }
    }

    fn alter_options(
        &self,
        keyspace: &Keyspace,
        table: &Table,
        properties: &Properties,
    ) -> Result<Table, SchemaError> {
        let params = table.params.altered(properties, &self.options.memtables)?;
        if table.is_counter() && params.default_time_to_live > 0 {
            return SchemaError::invalid(
                "Cannot set default_time_to_live on a table with counters",
            );
        }
        if params.gc_grace_seconds == 0 && views_of(keyspace, table).next().is_some() {
            return SchemaError::invalid(
                "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, since \
                 this value is used to TTL undelivered updates. Setting gc_grace_seconds too low \
                 might cause undelivered updates to expire before being replayed.",
            );
        }
        self.check_transient(keyspace, &params)?;
        params.validate()?;
        Ok(table.to_builder().params(params).build())
    }

    fn drop_compact_storage(&self, table: &Table) -> Result<Table, SchemaError> {
        if !self.options.drop_compact_storage {
            return SchemaError::invalid(
                "DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use.",
            );
        }
        if !table.flags.is_compact() {
            return SchemaError::invalid(
                "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE",
            );
        }
        if let Some(why) = &self.options.keeps_compact_storage {
            return SchemaError::invalid(why.as_str());
        }
        let mut builder = table.to_builder();
        builder.flags = TableFlags { counter: table.flags.counter, ..TableFlags::default() };
        Ok(builder.build())
    }
}

fn check_primary_key(
    create: &CreateTable,
    columns: &BTreeMap<&str, &ColumnSpec>,
) -> Result<(), SchemaError> {
    let mut seen = BTreeSet::new();
    for name in create.partition_key.iter().chain(&create.clustering) {
        let Some(column) = columns.get(name.as_str()) else {
            return SchemaError::invalid(format!(
                "Unknown column '{name}' referenced in PRIMARY KEY for table '{}'",
                create.table
            ));
        };
        let ty = &column.ty;
        let text = if !seen.insert(name) {
            format!("Duplicate column '{name}' in PRIMARY KEY clause for table '{}'", create.table)
        } else if let CqlType::Udt { definition, frozen: false } = ty {
            format!(
                "Invalid non-frozen user-defined type \"{}.{}\" for PRIMARY KEY column '{name}'",
                definition.keyspace, definition.name
            )
        } else if ty.is_multicell() {
            format!("Invalid non-frozen collection type {ty} for PRIMARY KEY column '{name}'")
        } else if *ty == CqlType::Counter {
            format!("counter type is not supported for PRIMARY KEY column '{name}'")
        } else if ty.any(&mut |ty| *ty == CqlType::Duration) {
            format!("duration type is not supported for PRIMARY KEY column '{name}'")
        } else if column.is_static {
            format!("Static column '{name}' cannot be part of the PRIMARY KEY")
        } else {
            continue;
        };
        return SchemaError::invalid(text);
    }
    Ok(())
}

fn check_clustering_order(create: &CreateTable) -> Result<(), SchemaError> {
    let order = &create.clustering_order;
    for (i, (name, _)) in order.iter().enumerate() {
        if order.iter().take(i).any(|(other, _)| other == name) {
            return SchemaError::invalid(format!(
                "Duplicate column '{name}' in CLUSTERING ORDER BY clause for table '{}'",
                create.table
            ));
        }
    }
    let strangers: Vec<&str> = order
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !create.clustering.iter().any(|c| c == name))
        .collect();
    if !strangers.is_empty() {
        return SchemaError::invalid(format!(
            "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not \
             clustering columns",
            strangers.join(", ")
        ));
    }
    for ((name, _), column) in order.iter().zip(&create.clustering) {
        if name == column {
            continue;
        }
        return SchemaError::invalid(if order.iter().any(|(name, _)| name == column) {
            format!(
                "The order of columns in the CLUSTERING ORDER directive must match that of the \
                 clustering columns ({column} must appear before {name})"
            )
        } else {
            format!("Missing CLUSTERING ORDER for column {column}")
        });
    }
    Ok(())
}

fn check_others(create: &CreateTable, others: &[&ColumnSpec]) -> Result<(), SchemaError> {
    let statics = create.columns.iter().any(|column| column.is_static);
    if !create.compact_storage {
        if create.clustering.is_empty() && statics {
            return SchemaError::invalid(STATIC_WITHOUT_CLUSTERING);
        }
        return Ok(());
    }
    if others.iter().any(|column| column.ty.is_multicell()) {
        return SchemaError::invalid(
            "Non-frozen collections and UDTs are not supported with COMPACT STORAGE",
        );
    }
    if statics {
        return SchemaError::invalid("Static columns are not supported in COMPACT STORAGE tables");
    }
    if create.clustering.is_empty() && others.is_empty() {
        return SchemaError::invalid("No definition found that is not part of the PRIMARY KEY");
    }
    if !create.clustering.is_empty() && others.len() > 1 {
        let names: Vec<&str> = others.iter().map(|column| column.name.as_str()).collect();
        return SchemaError::invalid(format!(
            "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part of \
             the PRIMARY KEY (got: {})",
            names.join(", ")
        ));
    }
    Ok(())
}

const STATIC_WITHOUT_CLUSTERING: &str = "Static columns are only useful (and thus allowed) if the \
    table has at least one clustering column";

/// Columns of a table WITH COMPACT STORAGE: without clustering columns those declared are static,
/// and a clustering and a value column stand beside them; with, there is one value column.
fn add_compact_columns(builder: &mut TableBuilder, create: &CreateTable, others: &[&ColumnSpec]) {
    let counter = builder.flags.counter;
    let dense = !create.clustering.is_empty();
    let compound = create.clustering.len() > 1;
    builder.flags = TableFlags { compound, dense, counter, super_table: false };
    let kind = if dense { ColumnKind::Regular } else { ColumnKind::Static };
    for column in others {
        builder.add(&column.name, column.ty.clone(), kind, false, column.mask.clone());
    }
    let free = |builder: &TableBuilder, base: &str, first: usize| {
        let name = |i: usize| if i == 0 { base.to_owned() } else { format!("{base}{i}") };
        let used = |name: &String| builder.columns.iter().any(|column| *column.name == **name);
        (first..).map(name).find(|name| !used(name)).unwrap_or_default()
    };
    if !dense {
        let name = free(builder, "column", 1);
        builder.add(&name, CqlType::Text, ColumnKind::Clustering, false, None);
        let name = free(builder, "value", 0);
        let ty = if counter { CqlType::Counter } else { CqlType::Blob };
        builder.add(&name, ty, ColumnKind::Regular, false, None);
    } else if others.is_empty() {
        let name = free(builder, "value", 0);
        builder.add(&name, CqlType::Empty, ColumnKind::Regular, false, None);
    }
}

fn views_of<'a>(keyspace: &'a Keyspace, table: &'a Table) -> impl Iterator<Item = &'a Arc<View>> {
    keyspace.views.values().filter(|view| view.base_table_id == table.id)
}

/// Type and mask of a column of the primary key.
fn of_key(columns: &BTreeMap<&str, &ColumnSpec>, name: &str) -> (CqlType, Option<Arc<ColumnMask>>) {
    let column = columns.get(name);
    column.map_or((CqlType::Blob, None), |column| (column.ty.clone(), column.mask.clone()))
}

fn add_columns(
    keyspace: &mut Keyspace,
    table: &Table,
    columns: &[ColumnSpec],
    if_not_exists: bool,
) -> Result<Table, SchemaError> {
    let mut builder = table.to_builder();
    for column in columns {
        let name = &column.name;
        if builder.columns.iter().any(|own| *own.name == **name) {
            if if_not_exists {
                continue;
            }
            return SchemaError::invalid(format!("Column with name '{name}' already exists"));
        }
        if table.flags.is_compact() {
            return SchemaError::invalid("Cannot add new column to a COMPACT STORAGE table");
        }
        if column.is_static && table.clustering.is_empty() {
            return SchemaError::invalid(STATIC_WITHOUT_CLUSTERING);
        }
        if nests_multicell(&column.ty) {
            return SchemaError::invalid(format!(
                "Non-frozen UDTs with nested non-frozen collections are not supported for column {name}"
            ));
        }
        if let Some(dropped) = table.dropped.get(name) {
            check_added_again(table, column, dropped)?;
        }
        let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
        builder.add(name, column.ty.clone(), kind, false, column.mask.clone());
        if !column.is_static {
            add_to_views(keyspace, table, column);
        }
    }
    if builder.columns.len() > MAX_COLUMNS {
        return SchemaError::invalid("Too many columns");
    }
    let altered = builder.build();
    validate(&altered)?;
    Ok(altered)
}

fn add_to_views(keyspace: &mut Keyspace, table: &Table, column: &ColumnSpec) {
    for view in keyspace.views.values_mut() {
        if view.base_table_id == table.id && view.include_all_columns {
            let builder = view.table.to_builder();
            let builder = builder.column(&column.name, column.ty.clone(), ColumnKind::Regular);
            let table = Arc::new(builder.build());
            *view = Arc::new(View { table, ..View::clone(view) });
        }
    }
}

/// Data of the dropped column may still be around: what comes again must be able to read it.
fn check_added_again(
    table: &Table,
    column: &ColumnSpec,
    dropped: &DroppedColumn,
) -> Result<(), SchemaError> {
    let name = &column.name;
    if !reads_as(&column.ty, &dropped.ty) {
        return SchemaError::invalid(format!(
            "Cannot add a column '{name}' of type {}, incompatible with previously dropped column \
             '{name}' of type {}",
            column.ty, dropped.ty
        ));
    }
    if column.is_static != (dropped.kind == ColumnKind::Static) {
        let kind = if column.is_static { "STATIC" } else { "REGULAR" };
        return SchemaError::invalid(format!(
            "Cannot re-add previously dropped column '{name}' of kind {kind}, incompatible with \
             previous kind {}",
            dropped.kind.name().to_ascii_uppercase()
        ));
    }
    if table.is_counter() {
        return SchemaError::invalid(format!(
            "Cannot re-add previously dropped counter column {name}"
        ));
    }
    Ok(())
}

/// Indexes on a column, joined; `None` if there is none.
fn indexes_on(table: &Table, column: &str) -> Option<String> {
    let names: Vec<&str> = table
        .indexes
        .values()
        .filter(|index| index.target_column().is_some_and(|target| target == column))
        .map(|index| index.name.as_str())
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn drop_columns(
    keyspace: &Keyspace,
    table: &Table,
    columns: &[String],
    if_exists: bool,
    timestamp: i64,
) -> Result<Table, SchemaError> {
    let mut builder = table.to_builder();
    for name in columns {
        let Some(column) = table.column(name) else {
            if if_exists {
                continue;
            }
            return SchemaError::invalid(format!(
                "Column {name} was not found in table '{}'",
                table.qualified_name()
            ));
        };
        check_drop(keyspace, table, column)?;
        builder.columns.retain(|own| own.name != column.name);
        let dropped = DroppedColumn {
            name: Arc::clone(&column.name),
            ty: expanded(&column.ty),
            kind: column.kind,
            dropped_at: timestamp.div_euclid(1000).saturating_mul(1000),
        };
        builder.dropped.insert(name.clone(), dropped);
    }
    Ok(builder.build())
}

fn check_drop(keyspace: &Keyspace, table: &Table, column: &Column) -> Result<(), SchemaError> {
    let name = &column.name;
    if column.kind.is_primary_key() {
        return SchemaError::invalid(format!("Cannot drop PRIMARY KEY column {name}"));
    }
    if table.compact_value().is_some_and(|value| value.name == *name) {
        return SchemaError::invalid(format!(
            "Cannot drop column {name}: each row of a COMPACT STORAGE table is its value"
        ));
    }
    // it would have to be kept as an unfrozen tuple, and there is no such thing
    if matches!(column.ty, CqlType::Udt { frozen: false, .. }) {
        return SchemaError::invalid(format!(
            "Cannot drop non-frozen column {name} of user type {}",
            column.ty
        ));
    }
    if let Some(indexes) = indexes_on(table, name) {
        return SchemaError::invalid(format!(
            "Cannot drop column {name} because it has dependent secondary indexes ({indexes})"
        ));
    }
    if views_of(keyspace, table).next().is_some() {
        return SchemaError::invalid(format!(
            "Cannot drop column {name} on base table {} with materialized views",
            table.name
        ));
    }
    Ok(())
}

fn rename_columns(
    keyspace: &Keyspace,
    table: &Table,
    renames: &[(String, String)],
) -> Result<Table, SchemaError> {
    let mut builder = table.to_builder();
    for (from, to) in renames {
        let Some(column) = table.column(from).filter(|column| !table.is_hidden(column)) else {
            return SchemaError::invalid(format!(
                "Undefined column name {} in table {}",
                maybe_quote(from),
                table.qualified_name()
            ));
        };
        if !column.kind.is_primary_key() {
            return SchemaError::invalid(format!("Cannot rename non PRIMARY KEY column {from}"));
        }
        if table.column(to).is_some() {
            return SchemaError::invalid(format!(
                "Cannot rename column {from} to {to} in table '{}'; another column with that name already exists",
                table.qualified_name()
            ));
        }
        if let Some(indexes) = indexes_on(table, from) {
            return SchemaError::invalid(format!(
                "Can't rename column {from} because it has dependent secondary indexes ({indexes})"
            ));
        }
        if views_of(keyspace, table).any(|view| view.table.column(from).is_some()) {
            return SchemaError::invalid(format!(
                "Cannot rename column {from}: materialized views of it are not supported by this node"
            ));
        }
        for column in builder.columns.iter_mut().filter(|column| *column.name == **from) {
            column.name = to.as_str().into();
        }
    }
    Ok(builder.build())
}
