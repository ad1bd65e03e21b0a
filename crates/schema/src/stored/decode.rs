//! The model of a keyspace, from the stored rows (`SchemaKeyspace.fetchKeyspace`).
//!
//! Rows come from peers and disks. What cannot be understood is an error of the keyspace, never a
//! panic; what is understood but not served (views, functions, indexes, triggers) is kept for
//! DESCRIBE.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{CqlType, UserType};

use crate::column::{Column, ColumnKind, ColumnMask, DroppedColumn};
use crate::keyspace::{Aggregate, Function, Keyspace, Signature, View};
use crate::params::caching::CachingParams;
use crate::params::compaction::CompactionParams;
use crate::params::compression::CompressionParams;
use crate::params::retry::SpeculativeRetry;
use crate::params::{ReadRepair, TableParams};
use crate::replication::Replication;
use crate::stored::rows::{SchemaPartition, SchemaRow, SchemaRows};
use crate::stored::table::SchemaTable;
use crate::stored::value;
use crate::table::{Index, Table, TableBuilder, TableFlags, TableKind};
use crate::table_id::TableId;

/// Why rows of `system_schema` describe no keyspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A cell is absent or not of its type.
    #[error(
        "column {column} of system_schema.{table} is missing or malformed in keyspace {keyspace}, row {row}"
    )]
    Cell {
        /// The keyspace described.
        keyspace: String,
        /// The table of `system_schema`.
        table: &'static str,
        /// The clustering.
        row: String,
        /// The column.
        column: &'static str,
    },
    /// A type's name cannot be parsed or resolved.
    #[error("in keyspace {keyspace}: {source}")]
    Type {
        /// The keyspace described.
        keyspace: String,
        /// Why.
        source: types::NameError,
    },
    /// A table has no partition key, as if half of it were dropped.
    #[error("No partition key columns found in schema table for {0}.{1}")]
    NoPartitionKey(String, String),
    /// A table has more columns than rows can name.
    #[error("too many columns in table {0}.{1}")]
    TooManyColumns(String, String),
    /// An option does not do.
    #[error("in table {keyspace}.{table}: {source}")]
    Option {
        /// The keyspace described.
        keyspace: String,
        /// The table described.
        table: String,
        /// Why.
        source: crate::SchemaError,
    },
    /// User types that contain each other.
    #[error("user types of keyspace {0} form a cycle or name unknown types")]
    TypeCycle(String),
}

/// Most passes over the user types that wait for others: they nest no deeper than types do.
const MAX_TYPE_PASSES: usize = types::MAX_DEPTH;

impl SchemaRows {
    /// The model of a keyspace at `now` (seconds); `None` if there is no live row of it.
    pub fn keyspace(&self, name: &str, now: i64) -> Result<Option<Keyspace>, LoadError> {
        let Some(row) = self.partition(name, SchemaTable::Keyspaces).and_then(|p| p.row(&[]))
        else {
            return Ok(None);
        };
        if !row.is_live(now) {
            return Ok(None);
        }
        let reader = Reader { keyspace: name, rows: self, now };
        let table = SchemaTable::Keyspaces;
        let row = Cells { row, keyspace: name, table, clustering: &[], now };
        let durable_writes = row.boolean("durable_writes")?;
        let replication = Replication::from_map(row.text_map("replication")?);
        let mut keyspace = Keyspace::new(name, durable_writes, replication);
        keyspace.types = reader.types()?;
        reader.tables(&mut keyspace)?;
        reader.views(&mut keyspace)?;
        reader.functions(&mut keyspace)?;
        Ok(Some(keyspace))
    }
}

/// Reads cells of one row.
struct Cells<'a> {
    row: &'a SchemaRow,
    keyspace: &'a str,
    table: SchemaTable,
    clustering: &'a [Vec<u8>],
    now: i64,
}

impl<'a> Cells<'a> {
    fn bad(&self, column: &'static str) -> LoadError {
        let row = self.clustering.iter().map(|v| String::from_utf8_lossy(v).into_owned());
        LoadError::Cell {
            keyspace: self.keyspace.to_owned(),
            table: self.table.name(),
            row: row.collect::<Vec<_>>().join(", "),
            column,
        }
    }

    fn key(&self, index: usize) -> Result<String, LoadError> {
        let bytes = self.clustering.get(index).ok_or_else(|| self.bad("clustering"))?;
        String::from_utf8(bytes.clone()).map_err(|_| self.bad("clustering"))
    }

    fn read<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<T, LoadError> {
        self.row.get(column, self.now).and_then(read).ok_or_else(|| self.bad(column))
    }

    fn optional<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<Option<T>, LoadError> {
        match self.row.get(column, self.now) {
            None => Ok(None),
            Some(bytes) => read(bytes).map(Some).ok_or_else(|| self.bad(column)),
        }
    }

    fn text(&self, column: &'static str) -> Result<String, LoadError> {
        self.read(column, text)
    }

    fn boolean(&self, column: &'static str) -> Result<bool, LoadError> {
        self.read(column, boolean)
    }

    fn int(&self, column: &'static str) -> Result<i32, LoadError> {
        self.read(column, |bytes| Some(i32::from_be_bytes(bytes.try_into().ok()?)))
    }

    fn double(&self, column: &'static str) -> Result<f64, LoadError> {
        self.read(column, |bytes| Some(f64::from_be_bytes(bytes.try_into().ok()?)))
    }

    fn id(&self, column: &'static str) -> Result<TableId, LoadError> {
        self.read(column, |bytes| Some(TableId(bytes.try_into().ok()?)))
    }

    fn text_map(&self, column: &'static str) -> Result<BTreeMap<String, String>, LoadError> {
        self.read(column, value::read_text_map)
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(bytes).ok()?.to_owned())
}

fn boolean(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [byte] => Some(*byte != 0),
        _ => None,
    }
}

type UserTypes = BTreeMap<String, Arc<UserType>>;

struct Reader<'a> {
    keyspace: &'a str,
    rows: &'a SchemaRows,
    now: i64,
}

impl<'a> Reader<'a> {
    fn partition(&self, table: SchemaTable) -> Option<&'a SchemaPartition> {
        self.rows.partition(self.keyspace, table)
    }

    /// Live rows of a table, of one table or view described if `of` is given.
    fn cells(&self, table: SchemaTable, of: Option<&str>) -> Vec<Cells<'a>> {
        let wanted = |clustering: &[Vec<u8>]| {
            of.is_none_or(|of| clustering.first().is_some_and(|name| name == of.as_bytes()))
        };
        let rows = self.partition(table).into_iter().flat_map(|p| p.live_rows(self.now));
        let rows = rows.filter(|(clustering, _)| wanted(clustering));
        let (keyspace, now) = (self.keyspace, self.now);
        rows.map(|(clustering, row)| Cells { row, keyspace, table, clustering, now }).collect()
    }

    fn parse(&self, name: &str, types: &UserTypes) -> Result<CqlType, LoadError> {
        let mut resolve = |keyspace: Option<&str>, name: &str| match keyspace {
            Some(other) if other != self.keyspace => None,
            _ => types.get(name).cloned(),
        };
        CqlType::parse_cql_name(name, &mut resolve)
            .map_err(|source| LoadError::Type { keyspace: self.keyspace.to_owned(), source })
    }

    /// User types, each after those that it contains.
    fn types(&self) -> Result<UserTypes, LoadError> {
        let mut types = UserTypes::new();
        let mut waiting = Vec::new();
        for cells in self.cells(SchemaTable::Types, None) {
            let names = cells.read("field_names", value::read_texts)?;
            let kinds = cells.read("field_types", value::read_texts)?;
            if names.len() != kinds.len() {
                return Err(cells.bad("field_types"));
            }
            waiting.push((cells.key(0)?, names, kinds));
        }
        for _ in 0..MAX_TYPE_PASSES {
            let mut still = Vec::new();
            for (name, names, kinds) in waiting {
                let parsed: Result<Vec<CqlType>, LoadError> =
                    kinds.iter().map(|kind| self.parse(kind, &types)).collect();
                let Ok(parsed) = parsed else {
                    still.push((name, names, kinds));
                    continue;
                };
                let fields = names.into_iter().zip(parsed).collect();
                let keyspace = self.keyspace.to_owned();
                types.insert(name.clone(), Arc::new(UserType { keyspace, name, fields }));
            }
            if still.is_empty() {
                return Ok(types);
            }
            waiting = still;
        }
        Err(LoadError::TypeCycle(self.keyspace.to_owned()))
    }

    fn tables(&self, keyspace: &mut Keyspace) -> Result<(), LoadError> {
        for cells in self.cells(SchemaTable::Tables, None) {
            let flags = cells.optional("flags", value::read_texts)?.unwrap_or_default();
            let mut builder = self.table(&cells, &keyspace.types)?;
            builder.flags = TableFlags::from_names(flags.iter().map(String::as_str));
            for cells in self.cells(SchemaTable::Indexes, Some(&builder.name)) {
                let name = cells.key(1)?;
                let index = Index {
                    name: name.clone(),
                    kind: cells.text("kind")?,
                    options: cells.text_map("options")?,
                };
                builder.indexes.insert(name, index);
            }
            for cells in self.cells(SchemaTable::Triggers, Some(&builder.name)) {
                let class = cells.text_map("options")?.remove("class").unwrap_or_default();
                builder.triggers.insert(cells.key(1)?, class);
            }
            let table = self.build(builder)?;
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
        }
        Ok(())
    }

    fn views(&self, keyspace: &mut Keyspace) -> Result<(), LoadError> {
        for cells in self.cells(SchemaTable::Views, None) {
            let builder = self.table(&cells, &keyspace.types)?.kind(TableKind::View);
            let view = View {
                table: Arc::new(self.build(builder)?),
                base_table_id: cells.id("base_table_id")?,
                base_table_name: cells.text("base_table_name")?,
                where_clause: cells.text("where_clause")?,
                include_all_columns: cells.boolean("include_all_columns")?,
            };
            keyspace.views.insert(view.table.name.clone(), Arc::new(view));
        }
        Ok(())
    }

    fn build(&self, builder: TableBuilder) -> Result<Table, LoadError> {
        if builder.columns.len() > rows::Layout::MAX_COLUMNS {
            return Err(LoadError::TooManyColumns(self.keyspace.to_owned(), builder.name));
        }
        let table = builder.build();
        if table.partition_key.is_empty() {
            return Err(LoadError::NoPartitionKey(self.keyspace.to_owned(), table.name));
        }
        Ok(table)
    }

    /// Name, id, options and columns, from a row of `tables` or `views`.
    fn table(&self, cells: &Cells<'a>, types: &UserTypes) -> Result<TableBuilder, LoadError> {
        let name = cells.key(0)?;
        let mut builder = Table::builder(self.keyspace, name, cells.id("id")?);
        builder.params = self.params(cells, &builder.name)?;
        for cells in self.cells(SchemaTable::Columns, Some(&builder.name)) {
            let column = self.column(&cells, &builder.name, types)?;
            builder.columns.push(column);
        }
        for cells in self.cells(SchemaTable::DroppedColumns, Some(&builder.name)) {
            let name = cells.key(1)?;
            let kind = cells.optional("kind", text)?;
            let millis = cells
                .read("dropped_time", |bytes| Some(i64::from_be_bytes(bytes.try_into().ok()?)))?;
            let dropped = DroppedColumn {
                name: name.as_str().into(),
                // dropped columns name no user types
                ty: self.parse(&cells.text("type")?, &UserTypes::new())?,
                kind: kind.and_then(|k| ColumnKind::parse(&k)).unwrap_or(ColumnKind::Regular),
                dropped_at: millis.saturating_mul(1000),
            };
            builder.dropped.insert(name, dropped);
        }
        Ok(builder)
    }

    fn column(
        &self,
        cells: &Cells<'a>,
        table: &str,
        types: &UserTypes,
    ) -> Result<Column, LoadError> {
        let name = cells.key(1)?;
        let mask = self.partition(SchemaTable::ColumnMasks).and_then(|p| p.row(&[table, &name]));
        let mask = mask.filter(|row| row.is_live(self.now)).map(|row| {
            let table = SchemaTable::ColumnMasks;
            let (keyspace, clustering, now) = (self.keyspace, cells.clustering, self.now);
            self.mask(&Cells { row, keyspace, table, clustering, now })
        });
        let kind = ColumnKind::parse(&cells.text("kind")?).ok_or_else(|| cells.bad("kind"))?;
        let order = cells.optional("clustering_order", text)?.unwrap_or_default();
        Ok(Column {
            name: name.into(),
            ty: self.parse(&cells.text("type")?, types)?,
            kind,
            position: if kind.is_primary_key() { cells.int("position")? } else { -1 },
            reversed: order.eq_ignore_ascii_case("desc"),
            index: 0,
            mask: mask.transpose()?.map(Arc::new),
        })
    }

    fn mask(&self, cells: &Cells<'a>) -> Result<ColumnMask, LoadError> {
        let nulls = cells.read("function_argument_nulls", value::read_list)?;
        let values = cells.read("function_argument_values", value::read_texts)?;
        let argument = |(null, text): (&[u8], String)| (null == [0]).then_some(text);
        Ok(ColumnMask {
            function_keyspace: cells.text("function_keyspace")?,
            function_name: cells.text("function_name")?,
            argument_types: cells.read("function_argument_types", value::read_texts)?,
            arguments: nulls.into_iter().zip(values).map(argument).collect(),
        })
    }

    fn params(&self, cells: &Cells<'a>, table: &str) -> Result<TableParams, LoadError> {
        let option = |source| LoadError::Option {
            keyspace: self.keyspace.to_owned(),
            table: table.to_owned(),
            source,
        };
        let caching = CachingParams::from_map(&cells.text_map("caching")?).map_err(option)?;
        let compaction =
            CompactionParams::from_stored(&cells.text_map("compaction")?).map_err(option)?;
        let compression =
            CompressionParams::from_map(&cells.text_map("compression")?).map_err(option)?;
        let retry = |text: String| SpeculativeRetry::parse(&text).map_err(option);
        let additional = cells.optional("additional_write_policy", text)?;
        let read_repair = cells.optional("read_repair", text)?;
        Ok(TableParams {
            comment: cells.text("comment")?,
            allow_auto_snapshot: cells.optional("allow_auto_snapshot", boolean)?.unwrap_or(true),
            bloom_filter_fp_chance: cells.double("bloom_filter_fp_chance")?,
            crc_check_chance: cells.double("crc_check_chance")?,
            gc_grace_seconds: cells.int("gc_grace_seconds")?,
            incremental_backups: cells.optional("incremental_backups", boolean)?.unwrap_or(true),
            default_time_to_live: cells.int("default_time_to_live")?,
            memtable_flush_period_in_ms: cells.int("memtable_flush_period_in_ms")?,
            min_index_interval: cells.int("min_index_interval")?,
            max_index_interval: cells.int("max_index_interval")?,
            speculative_retry: retry(cells.text("speculative_retry")?)?,
            additional_write_policy: match additional {
                Some(text) => retry(text)?,
                None => SpeculativeRetry::DEFAULT,
            },
            caching,
            compaction,
            compression,
            memtable: cells.optional("memtable", text)?.unwrap_or_else(|| "default".to_owned()),
            extensions: cells.optional("extensions", value::read_map)?.unwrap_or_default(),
            cdc: cells.optional("cdc", boolean)?.unwrap_or(false),
            read_repair: read_repair.and_then(|t| ReadRepair::parse(&t)).unwrap_or_default(),
        })
    }

    fn functions(&self, keyspace: &mut Keyspace) -> Result<(), LoadError> {
        let signature = |cells: &Cells<'_>| -> Result<Signature, LoadError> {
            let types = cells.clustering.get(1).and_then(|bytes| value::read_texts(bytes));
            let argument_types = types.ok_or_else(|| cells.bad("argument_types"))?;
            Ok(Signature { name: cells.key(0)?, argument_types })
        };
        for cells in self.cells(SchemaTable::Functions, None) {
            let function = Function {
                argument_names: cells.read("argument_names", value::read_texts)?,
                body: cells.text("body")?,
                language: cells.text("language")?,
                return_type: cells.text("return_type")?,
                called_on_null_input: cells.boolean("called_on_null_input")?,
            };
            keyspace.functions.insert(signature(&cells)?, Arc::new(function));
        }
        for cells in self.cells(SchemaTable::Aggregates, None) {
            let aggregate = Aggregate {
                final_func: cells.optional("final_func", text)?,
                initcond: cells.optional("initcond", text)?,
                return_type: cells.text("return_type")?,
                state_func: cells.text("state_func")?,
                state_type: cells.text("state_type")?,
            };
            keyspace.aggregates.insert(signature(&cells)?, Arc::new(aggregate));
        }
        Ok(())
    }
}
