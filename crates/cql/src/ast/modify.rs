//! INSERT, UPDATE, DELETE and BATCH.

use super::{InValues, Operator, QualifiedName, Relation, Term};

/// `USING TIMESTAMP t AND TTL t`. Given twice, the last one counts, as in Cassandra.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes {
    /// Microseconds: an integer literal or a marker.
    pub timestamp: Option<Term>,
    /// Seconds: an integer literal or a marker.
    pub ttl: Option<Term>,
}

/// `INSERT INTO table ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// The table.
    pub table: QualifiedName,
    /// What is inserted.
    pub values: InsertValues,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `USING`.
    pub attributes: Attributes,
}

/// Columns and values, or one JSON document.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertValues {
    /// `(a, b) VALUES (1, 2)`; the two lists may differ in length here.
    Columns(Vec<String>, Vec<Term>),
    /// `JSON '..'` with what becomes of columns that the document leaves out.
    Json(JsonValue, JsonDefault),
}

/// The document of `INSERT JSON`.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonValue {
    /// A string literal.
    Text(String),
    /// A marker, by number.
    Marker(u32),
}

/// What `INSERT JSON` does to columns that are not in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonDefault {
    /// Write null (the default).
    Null,
    /// Leave them alone.
    Unset,
}

/// `UPDATE table SET ... WHERE ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The table.
    pub table: QualifiedName,
    /// `USING`.
    pub attributes: Attributes,
    /// The assignments, at least one.
    pub assignments: Vec<Assignment>,
    /// The relations.
    pub filter: Vec<Relation>,
    /// `IF`.
    pub condition: Option<Condition>,
}

/// One assignment: which column and what happens to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The column.
    pub column: String,
    /// The change.
    pub operation: Operation,
}

/// What an assignment does.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// `c = v`.
    Set(Term),
    /// `c = c + v`, `c += v`; `c = c -3` is this with the literal `-3`.
    Add(Term),
    /// `c = c - v`, `c -= v`.
    Subtract(Term),
    /// `c = v + c`.
    Prepend(Term),
    /// `c[k] = v`.
    SetElement(Term, Term),
    /// `c.f = v`.
    SetField(String, Term),
}

/// The IF clause of UPDATE and DELETE.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// `IF EXISTS`.
    Exists,
    /// `IF a AND b`, at least one.
    All(Vec<ColumnCondition>),
}

/// One condition of an IF clause.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnCondition {
    /// The column.
    pub column: String,
    /// Which part of it.
    pub part: ColumnPart,
    /// What it must satisfy.
    pub test: ConditionTest,
}

/// A whole column, one element of it or one field.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnPart {
    /// The column itself.
    Whole,
    /// `c[k]`.
    Element(Term),
    /// `c.f`.
    Field(String),
}

/// The right side of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionTest {
    /// An operator and its value. Never LIKE; CONTAINS only on whole columns.
    Compare(Operator, Term),
    /// `IN`.
    In(InValues),
}

/// `DELETE selection FROM table ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// What is deleted; empty for whole rows.
    pub targets: Vec<DeleteTarget>,
    /// The table.
    pub table: QualifiedName,
    /// `USING TIMESTAMP`.
    pub timestamp: Option<Term>,
    /// The relations.
    pub filter: Vec<Relation>,
    /// `IF`.
    pub condition: Option<Condition>,
}

/// `c`, `c[k]` or `c.f`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTarget {
    /// The column.
    pub column: String,
    /// Which part of it.
    pub part: ColumnPart,
}

/// The three kinds of batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BatchKind {
    Logged,
    Unlogged,
    Counter,
}

/// `BEGIN BATCH ... APPLY BATCH`.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Logged unless the text says otherwise.
    pub kind: BatchKind,
    /// `USING`.
    pub attributes: Attributes,
    /// The statements, possibly none.
    pub statements: Vec<Modification>,
}

/// A statement inside a batch.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Modification {
    Insert(Insert),
    Update(Update),
    Delete(Delete),
}
