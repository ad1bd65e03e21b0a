//! A keyspace: its replication, tables and types, and what we keep without serving it.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::UserType;

use crate::replication::Replication;
use crate::table::Table;

/// A keyspace. Immutable; snapshots share it where a change left it alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    /// Its name.
    pub name: String,
    /// Are writes to it logged before they are acknowledged?
    pub durable_writes: bool,
    /// How many replicas, and where.
    pub replication: Replication,
    /// Its tables by name, virtual ones included.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Its user types by name.
    pub types: BTreeMap<String, Arc<UserType>>,
    /// Materialized views by name: described and kept, not served.
    pub views: BTreeMap<String, Arc<View>>,
    /// Functions by name and argument types: described and kept, not served.
    pub functions: BTreeMap<Signature, Arc<Function>>,
    /// Aggregates by name and argument types: described and kept, not served.
    pub aggregates: BTreeMap<Signature, Arc<Aggregate>>,
    /// One of `system_virtual_schema` and `system_views`, which no row of `system_schema`
    /// describes?
    pub is_virtual: bool,
}

/// What tells functions apart: the name, and the CQL types of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// Name of the function or aggregate.
    pub name: String,
    /// CQL types of its arguments, as stored.
    pub argument_types: Vec<String>,
}

/// A materialized view, as `system_schema.views` has it.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Columns and options, as of a table; its kind is [`TableKind::View`](crate::TableKind::View).
    pub table: Arc<Table>,
    /// Id of the base table.
    pub base_table_id: crate::TableId,
    /// Name of the base table.
    pub base_table_name: String,
    /// Text after WHERE.
    pub where_clause: String,
    /// Was it defined by `SELECT *`?
    pub include_all_columns: bool,
}

/// A user-defined function, as `system_schema.functions` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Names of the arguments.
    pub argument_names: Vec<String>,
    /// Source text.
    pub body: String,
    /// `java` or another.
    pub language: String,
    /// CQL type of the result.
    pub return_type: String,
    /// Is it called when an argument is null?
    pub called_on_null_input: bool,
}

/// A user-defined aggregate, as `system_schema.aggregates` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// Name of the final function.
    pub final_func: Option<String>,
    /// CQL literal of the initial state.
    pub initcond: Option<String>,
    /// CQL type of the result.
    pub return_type: String,
    /// Name of the state function.
    pub state_func: String,
    /// CQL type of the state.
    pub state_type: String,
}

impl Keyspace {
    /// A keyspace with nothing in it.
    pub fn new(name: impl Into<String>, durable_writes: bool, replication: Replication) -> Self {
        Self {
            name: name.into(),
            durable_writes,
            replication,
            tables: BTreeMap::new(),
            types: BTreeMap::new(),
            views: BTreeMap::new(),
            functions: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            is_virtual: false,
        }
    }

    /// The table or materialized view of this name.
    pub fn table_or_view(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name).or_else(|| self.views.get(name).map(|view| &view.table))
    }

    /// The table that has the index of this name.
    pub fn table_of_index(&self, index: &str) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.indexes.contains_key(index))
    }
}
