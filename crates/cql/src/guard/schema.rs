//! Guardrails of changes of the schema: before a change is tried, and of what came of it.

use schema::change::{Action, SchemaChange, TableAlteration, TypeAlteration};
use schema::{Keyspace, PropertyValue, Schema, Strategy, Table};
use types::CqlType;

use super::{Guard, Passed};
use crate::error::CqlError;
use crate::system_keyspaces::is_system;

/// Why a time-window table whose rows do not expire is not liked.
const ZERO_TTL: &str = "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please keep in mind that data will not start to automatically expire after they are older than a respective compaction window unit of a certain size. Please set TTL for your INSERT or UPDATE statements if you expect data to be expired as table settings will not do it. ";

fn is_users(keyspace: &Keyspace) -> bool {
    !keyspace.is_virtual && !is_system(&keyspace.name)
}

impl Guard {
    /// DROP TABLE and TRUNCATE.
    ///
    /// # Errors
    /// If it is not allowed, as all of these.
    pub fn drop_or_truncate(&self) -> Result<(), CqlError> {
        let feature = "DROP and TRUNCATE TABLE functionality";
        self.flag("drop_truncate_table_enabled", self.rails.drop_truncate_table, feature)
    }

    /// CREATE INDEX.
    #[allow(clippy::missing_errors_doc)]
    pub fn create_index(&self) -> Result<(), CqlError> {
        let feature = "Creating secondary indexes";
        self.flag("secondary_indexes", self.rails.secondary_indexes, feature)
    }

    /// A change that is asked for. Properties that are to be ignored are taken out of it.
    #[allow(clippy::missing_errors_doc)]
    pub fn asked(&self, change: &mut SchemaChange, schema: &Schema) -> Result<(), CqlError> {
        let keyspace = change.keyspace.clone();
        match &mut change.action {
            Action::CreateKeyspace { .. } => self.create_keyspace(&keyspace, schema),
            Action::DropKeyspace { .. } => {
                let feature = "DROP KEYSPACE functionality";
                self.flag("drop_keyspace_enabled", self.rails.drop_keyspace, feature)
            }
            Action::CreateTable(create) => {
                self.table_properties(&mut create.properties)?;
                self.columns(&create.table, create.columns.len())?;
                self.tables(&create.table, schema)?;
                let compact = !create.compact_storage || self.rails.compact_tables;
                self.flag("compact_tables", compact, "Creation of new COMPACT STORAGE tables")?;
                let mut columns = create.columns.iter();
                columns.try_for_each(|column| self.vector(&column.name, &column.ty))
            }
            Action::AlterTable { table, alteration, .. } => {
                let enabled = self.rails.alter_table;
                let columns = "ALTER TABLE changing columns";
                match alteration {
                    TableAlteration::AddColumns { columns: added, .. } => {
                        self.flag("alter_table", enabled, columns)?;
                        let before = schema.table(&keyspace, table).map_or(0, |table| count(table));
                        self.columns(table, before + added.len())?;
                        added.iter().try_for_each(|column| self.vector(&column.name, &column.ty))
                    }
                    TableAlteration::DropColumns { .. } | TableAlteration::RenameColumns { .. } => {
                        self.flag("alter_table", enabled, columns)
                    }
                    TableAlteration::Options(properties) => self.table_properties(properties),
                    _ => Ok(()),
                }
            }
            Action::CreateIndex(create) => {
                let before = schema.table(&keyspace, &create.table);
                let before = before.map_or(0, |table| table.indexes.len());
                self.indexes(&create.table, create.name.as_deref(), before + 1)
            }
            Action::DropTable { .. } => self.drop_or_truncate(),
            Action::CreateType { name, fields, .. } => self.fields(name, fields.len()),
            Action::AlterType { name, alteration: TypeAlteration::AddField { .. }, .. } => {
                let types = schema.keyspace(&keyspace).map(|keyspace| &keyspace.types);
                let before =
                    types.and_then(|types| types.get(name)).map_or(0, |ty| ty.fields.len());
                self.fields(name, before + 1)
            }
            _ => Ok(()),
        }
    }

    /// What a change came to, before it is done.
    #[allow(clippy::missing_errors_doc)]
    pub fn came_to(&self, change: &SchemaChange, after: &Schema) -> Result<(), CqlError> {
        match &change.action {
            Action::CreateKeyspace { properties, .. }
            | Action::AlterKeyspace { properties, .. } => {
                let Some(keyspace) = after.keyspace(&change.keyspace) else { return Ok(()) };
                self.replication(keyspace, properties.iter().any(|(name, _)| name == "replication"))
            }
            Action::CreateTable(create) => self.table(after.table(&change.keyspace, &create.table)),
            Action::AlterTable { table, .. } => self.table(after.table(&change.keyspace, table)),
            _ => Ok(()),
        }
    }

    fn create_keyspace(&self, name: &str, schema: &Schema) -> Result<(), CqlError> {
        let count = 1 + schema.keyspaces().values().filter(|ks| is_users(ks)).count();
        self.max("keyspaces", self.rails.keyspaces, count, |passed| match passed.is_warning {
            true => format!(
                "Creating keyspace {name}, current number of keyspaces {count} exceeds warning threshold of {}.",
                passed.threshold
            ),
            false => format!(
                "Cannot have more than {} keyspaces, aborting the creation of keyspace {name}",
                passed.threshold
            ),
        })
    }

    fn tables(&self, name: &str, schema: &Schema) -> Result<(), CqlError> {
        let users = schema.keyspaces().values().filter(|ks| is_users(ks));
        let count = 1 + users.map(|keyspace| keyspace.tables.len()).sum::<usize>();
        self.max("tables", self.rails.tables, count, |passed| match passed.is_warning {
            true => format!(
                "Creating table {name}, current number of tables {count} exceeds warning threshold of {}.",
                passed.threshold
            ),
            false => format!(
                "Cannot have more than {} tables, aborting the creation of table {name}",
                passed.threshold
            ),
        })
    }

    fn columns(&self, table: &str, count: usize) -> Result<(), CqlError> {
        self.max("columns_per_table", self.rails.columns_per_table, count, |passed| {
            match passed.is_warning {
                true => format!(
                    "The table {table} has {count} columns, this exceeds the warning threshold of {}.",
                    passed.threshold
                ),
                false => format!(
                    "Tables cannot have more than {} columns, but {count} provided for table {table}",
                    passed.threshold
                ),
            }
        })
    }

    fn indexes(&self, table: &str, name: Option<&str>, count: usize) -> Result<(), CqlError> {
        let what = match name {
            Some(name) => format!("{name} on table {table}"),
            None => format!("on table {table}"),
        };
        let threshold = self.rails.secondary_indexes_per_table;
        self.max("secondary_indexes_per_table", threshold, count, |passed| match passed.is_warning {
            true => format!(
                "Creating secondary index {what}, current number of indexes {count} exceeds warning threshold of {}.",
                passed.threshold
            ),
            false => format!(
                "Tables cannot have more than {} secondary indexes, aborting the creation of secondary index {what}",
                passed.threshold
            ),
        })
    }

    fn fields(&self, user_type: &str, count: usize) -> Result<(), CqlError> {
        self.max("fields_per_udt", self.rails.fields_per_udt, count, |passed| {
            match passed.is_warning {
                true => format!(
                    "The user type {user_type} has {count} columns, this exceeds the warning threshold of {}.",
                    passed.threshold
                ),
                false => format!(
                    "User types cannot have more than {} columns, but {count} provided for user type {user_type}.",
                    passed.threshold
                ),
            }
        })
    }

    fn vector(&self, column: &str, ty: &CqlType) -> Result<(), CqlError> {
        let CqlType::Vector { dimension, .. } = ty else { return Ok(()) };
        let name = format!("Column {column}");
        self.flag("vector_type_enabled", self.rails.vector_type, &name)?;
        let dimension = *dimension as usize;
        self.max("vector_dimensions", self.rails.vector_dimensions, dimension, |passed| {
            format!(
                "{name} has a vector of {dimension} dimensions, this exceeds the {} threshold of {}.",
                passed.side(),
                passed.threshold
            )
        })
    }

    fn table_properties(
        &self,
        properties: &mut Vec<(String, PropertyValue)>,
    ) -> Result<(), CqlError> {
        let given: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
        let shown = |all: &[String]| schema::hash_order(all.to_vec()).join(", ");
        let words = &self.rails.table_properties;
        let ignored = self.words("table_properties", words, &given, "Table Properties", shown)?;
        properties.retain(|(name, _)| !ignored.contains(name));
        Ok(())
    }

    fn replication(&self, keyspace: &Keyspace, is_given: bool) -> Result<(), CqlError> {
        let strategy = &keyspace.replication.strategy;
        let simple = !is_given || !matches!(strategy, Strategy::Simple(_));
        self.flag("simplestrategy", simple || self.rails.simplestrategy, "SimpleStrategy")?;
        let factors: Vec<u32> = match strategy {
            Strategy::Simple(count) => vec![count.all],
            Strategy::NetworkTopology(counts) => counts.values().map(|count| count.all).collect(),
            _ => Vec::new(),
        };
        for factor in factors.into_iter().map(i64::from) {
            let message = |passed: &Passed, place: &str| {
                format!(
                    "The keyspace {} has a replication factor of {factor}, {place} the {} threshold of {}.",
                    keyspace.name,
                    passed.side(),
                    passed.threshold
                )
            };
            let (name, least) =
                ("minimum_replication_factor", self.rails.minimum_replication_factor);
            self.threshold((name, None), least, |limit| factor < limit, |p| message(p, "below"))?;
            let (name, most) =
                ("maximum_replication_factor", self.rails.maximum_replication_factor);
            self.threshold((name, None), most, |limit| factor > limit, |p| message(p, "above"))?;
        }
        Ok(())
    }

    fn table(&self, table: Option<&std::sync::Arc<Table>>) -> Result<(), CqlError> {
        let Some(table) = table else { return Ok(()) };
        let compressed = table.params.compression.is_enabled() || self.rails.uncompressed_tables;
        self.flag("uncompressed_tables_enabled", compressed, "Uncompressed table")?;
        let windows = table.params.compaction.class.ends_with("TimeWindowCompactionStrategy");
        if !windows || table.params.default_time_to_live != 0 {
            return Ok(());
        }
        let feature = "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy";
        let name = "zero_ttl_on_twcs";
        match (self.rails.zero_ttl_on_twcs, self.rails.zero_ttl_on_twcs_warned) {
            (false, _) => {
                Err(self.fail(name, Some(ZERO_TTL), &format!("{feature} is not allowed")))
            }
            (true, true) => {
                self.warn(name, Some(ZERO_TTL), &format!("{feature} is not recommended"));
                Ok(())
            }
            (true, false) => Ok(()),
        }
    }
}

fn count(table: &Table) -> usize {
    table.partition_key.len() + table.clustering.len() + table.statics.len() + table.regulars.len()
}
