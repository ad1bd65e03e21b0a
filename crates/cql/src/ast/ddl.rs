//! CREATE, ALTER and DROP of keyspaces, tables, types, indexes, views, functions, aggregates and
//! triggers.

use super::{QualifiedName, RawType, Relation, Selectors, Term};

/// A property of a `WITH` clause. Names are unique within one clause.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The name, folded as an identifier.
    pub name: String,
    /// The value.
    pub value: PropertyValue,
}

/// The value of a property: literals lose their class here, as in Cassandra.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValue {
    /// A constant's text, or an unreserved keyword.
    Text(String),
    /// `{'k': 'v'}`: keys and values are the constants' texts, keys are unique.
    Map(Vec<(String, String)>),
}

/// `CREATE KEYSPACE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateKeyspace {
    /// Its name.
    pub name: String,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `WITH`.
    pub properties: Vec<Property>,
}

/// `ALTER KEYSPACE`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterKeyspace {
    /// Its name.
    pub name: String,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// `WITH`.
    pub properties: Vec<Property>,
}

/// `DROP KEYSPACE`.
#[derive(Debug, Clone, PartialEq)]
pub struct DropKeyspace {
    /// Its name.
    pub name: String,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// `DROP TABLE`, `TYPE`, `INDEX` or `MATERIALIZED VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub struct DropObject {
    /// What is dropped.
    pub name: QualifiedName,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// `CREATE TABLE`. Column names are unique; the same holds for the columns of the clustering order.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// Its name.
    pub name: QualifiedName,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The columns as written.
    pub columns: Vec<ColumnDefinition>,
    /// The primary key, from a column's own `PRIMARY KEY` or the clause; none if the text gives
    /// none.
    pub primary_key: Option<PrimaryKey>,
    /// `WITH`.
    pub options: TableOptions,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: RawType,
    /// `STATIC`.
    pub is_static: bool,
    /// `MASKED WITH`.
    pub mask: Option<ColumnMask>,
}

/// `MASKED WITH f(a)` or `MASKED WITH DEFAULT`.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnMask {
    /// `DEFAULT`: the native function `mask_default` without arguments.
    Default,
    /// A function and its further arguments.
    Function(QualifiedName, Vec<Term>),
}

/// The key of a table or view.
#[derive(Debug, Clone, PartialEq)]
pub struct PrimaryKey {
    /// The partition key, at least one column.
    pub partition: Vec<String>,
    /// The clustering columns.
    pub clustering: Vec<String>,
}

/// What follows `WITH` in CREATE TABLE and CREATE MATERIALIZED VIEW.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableOptions {
    /// Named properties.
    pub properties: Vec<Property>,
    /// `COMPACT STORAGE`.
    pub compact_storage: bool,
    /// `CLUSTERING ORDER BY`: column and whether it descends.
    pub clustering_order: Vec<(String, bool)>,
}

/// `ALTER TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// Its name.
    pub name: QualifiedName,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// What changes.
    pub change: TableChange,
}

/// The forms of ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum TableChange {
    /// `ALTER c TYPE t`: parses, and is always refused later.
    AlterType {
        /// The column.
        column: String,
        /// The type.
        data_type: RawType,
    },
    /// `ALTER c MASKED WITH ..` or, with no mask, `ALTER c DROP MASKED`.
    Mask {
        /// The column.
        column: String,
        /// `IF EXISTS` before the column.
        if_exists: bool,
        /// The mask, none to take it off.
        mask: Option<ColumnMask>,
    },
    /// `ADD`.
    Add {
        /// `IF NOT EXISTS` before the columns.
        if_not_exists: bool,
        /// The columns, at least one.
        columns: Vec<ColumnDefinition>,
    },
    /// `DROP`.
    Drop {
        /// `IF EXISTS` before the columns.
        if_exists: bool,
        /// The columns, at least one.
        columns: Vec<String>,
        /// `USING TIMESTAMP`, in microseconds.
        timestamp: Option<i64>,
    },
    /// `RENAME a TO b AND ..`.
    Rename {
        /// `IF EXISTS` before the columns.
        if_exists: bool,
        /// Old and new names; of an old name that occurs twice the last one counts.
        columns: Vec<(String, String)>,
    },
    /// `DROP COMPACT STORAGE`.
    DropCompactStorage,
    /// `WITH`.
    Properties(Vec<Property>),
}

/// `CREATE TYPE`. Fields may repeat here.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateType {
    /// Its name.
    pub name: QualifiedName,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Names and types of the fields.
    pub fields: Vec<(String, RawType)>,
}

/// `ALTER TYPE`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterType {
    /// Its name.
    pub name: QualifiedName,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// What changes.
    pub change: TypeChange,
}

/// The forms of ALTER TYPE.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeChange {
    /// `ALTER f TYPE t`: parses, and is always refused later.
    AlterField {
        /// The field.
        field: String,
        /// The type.
        data_type: RawType,
    },
    /// `ADD f t`.
    Add {
        /// `IF NOT EXISTS` before the field.
        if_not_exists: bool,
        /// The field.
        field: String,
        /// The type.
        data_type: RawType,
    },
    /// `RENAME a TO b AND ..`.
    Rename {
        /// `IF EXISTS` before the fields.
        if_exists: bool,
        /// Old and new names.
        fields: Vec<(String, String)>,
    },
}

/// `CREATE [CUSTOM] INDEX`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    /// Its name, where the text gives one.
    pub name: Option<String>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `CUSTOM`.
    pub custom: bool,
    /// The table.
    pub table: QualifiedName,
    /// What is indexed, possibly nothing.
    pub targets: Vec<IndexTarget>,
    /// `USING 'class'`.
    pub class: Option<String>,
    /// `WITH`.
    pub properties: Vec<Property>,
}

/// One target of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexTarget {
    /// Which aspect of the column.
    pub kind: IndexTargetKind,
    /// The column.
    pub column: String,
}

/// The aspects of a column that can be indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexTargetKind {
    /// The bare column.
    Simple,
    /// `VALUES(c)`.
    Values,
    /// `KEYS(c)`.
    Keys,
    /// `ENTRIES(c)`.
    Entries,
    /// `FULL(c)`.
    Full,
}

/// `CREATE MATERIALIZED VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// Its name.
    pub name: QualifiedName,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// What is selected.
    pub selectors: Selectors,
    /// The base table.
    pub base: QualifiedName,
    /// The relations.
    pub filter: Vec<Relation>,
    /// The primary key.
    pub primary_key: PrimaryKey,
    /// `WITH`; compact storage never occurs.
    pub options: TableOptions,
}

/// `ALTER MATERIALIZED VIEW`.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterView {
    /// Its name.
    pub name: QualifiedName,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// `WITH`.
    pub properties: Vec<Property>,
}

/// `CREATE FUNCTION`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    /// Its name.
    pub name: QualifiedName,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Names and types of the arguments.
    pub arguments: Vec<(String, RawType)>,
    /// `CALLED ON NULL INPUT`; otherwise `RETURNS NULL ON NULL INPUT`.
    pub called_on_null_input: bool,
    /// The type of the result.
    pub returns: RawType,
    /// The language, in lower case.
    pub language: String,
    /// The body.
    pub body: String,
}

/// `CREATE AGGREGATE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateAggregate {
    /// Its name.
    pub name: QualifiedName,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Types of the arguments.
    pub arguments: Vec<RawType>,
    /// `SFUNC`, in the aggregate's own keyspace.
    pub state_function: String,
    /// `STYPE`.
    pub state_type: RawType,
    /// `FINALFUNC`.
    pub final_function: Option<String>,
    /// `INITCOND`.
    pub initial: Option<Term>,
}

/// `DROP FUNCTION` or `DROP AGGREGATE`.
#[derive(Debug, Clone, PartialEq)]
pub struct DropFunction {
    /// Its name.
    pub name: QualifiedName,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The argument types, where the text gives parentheses.
    pub arguments: Option<Vec<RawType>>,
}

/// `CREATE TRIGGER`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTrigger {
    /// Its name.
    pub name: String,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The table.
    pub table: QualifiedName,
    /// `USING 'class'`.
    pub class: String,
}

/// `DROP TRIGGER`.
#[derive(Debug, Clone, PartialEq)]
pub struct DropTrigger {
    /// Its name.
    pub name: String,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The table.
    pub table: QualifiedName,
}
