//! SELECT: selectors, the WHERE clause that it shares with UPDATE, DELETE and views, ordering and
//! limits.

use super::{Arithmetic, Literal, NativeType, QualifiedName, RawType, Term};

/// `SELECT [JSON] [DISTINCT] selectors FROM table ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// `JSON` was given.
    pub json: bool,
    /// `DISTINCT` was given.
    pub distinct: bool,
    /// What is selected.
    pub selectors: Selectors,
    /// The table or view.
    pub table: QualifiedName,
    /// The relations, all of which must hold.
    pub filter: Vec<Relation>,
    /// `GROUP BY`.
    pub group_by: Vec<Selectable>,
    /// `ORDER BY`.
    pub order_by: Vec<Ordering>,
    /// `PER PARTITION LIMIT n`.
    pub per_partition_limit: Option<Term>,
    /// `LIMIT n`.
    pub limit: Option<Term>,
    /// `ALLOW FILTERING`.
    pub allow_filtering: bool,
    /// `USING TIMEOUT duration`: our extension, taken from shard-aware drivers that ask for
    /// metadata.
    pub timeout: Option<Term>,
}

/// `*` or a list.
#[derive(Debug, Clone, PartialEq)]
pub enum Selectors {
    /// `*`.
    All,
    /// At least one selector.
    List(Vec<Selector>),
}

/// One selected expression and its name in the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    /// The expression.
    pub expression: Selectable,
    /// `AS alias`.
    pub alias: Option<String>,
}

/// The three things that can be asked about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CellMeta {
    Writetime,
    MaxWritetime,
    Ttl,
}

/// An expression of the SELECT clause, or of GROUP BY.
#[derive(Debug, Clone, PartialEq)]
pub enum Selectable {
    /// A column.
    Column(String),
    /// A constant.
    Literal(Literal),
    /// `null`.
    Null,
    /// A bind marker, by number.
    Marker(u32),
    /// `count(*)`.
    CountRows,
    /// `writetime(c)` and kin; the operand is a column with any fields, elements and slices of it.
    CellMeta(CellMeta, Box<Selectable>),
    /// `CAST(a AS type)`.
    Cast(Box<Selectable>, NativeType),
    /// `f(a, b)`, aggregates and `token` included.
    Function(QualifiedName, Vec<Selectable>),
    /// `a.field`.
    Field(Box<Selectable>, String),
    /// `a[key]`.
    Element(Box<Selectable>, Term),
    /// `a[from..to]`; at least one bound is given.
    Slice(Box<Selectable>, Option<Term>, Option<Term>),
    /// `(type) a`.
    TypeHint(RawType, Box<Selectable>),
    /// `(a, b)`; a single one may be a mere parenthesis.
    Tuple(Vec<Selectable>),
    /// `[a, b]`: a list or a vector.
    List(Vec<Selectable>),
    /// `{a, b}`; `{}` is the empty set or map.
    Set(Vec<Selectable>),
    /// `{k: v}`, never empty: a map, or a user type's fields where every key is a column name.
    Map(Vec<(Selectable, Selectable)>),
    /// `a + b` and so on.
    Binary(Arithmetic, Box<Selectable>, Box<Selectable>),
    /// `-a`.
    Negate(Box<Selectable>),
}

/// How a relation or condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
    Neq,
    Like,
    Contains,
    ContainsKey,
}

/// The right side of `IN` over single values.
#[derive(Debug, Clone, PartialEq)]
pub enum InValues {
    /// `IN ?`.
    Marker(u32),
    /// `IN (a, b)`, possibly empty.
    List(Vec<Term>),
}

/// The right side of `(a, b) IN`.
#[derive(Debug, Clone, PartialEq)]
pub enum InTuples {
    /// `IN ?`.
    Marker(u32),
    /// `IN (?, ?)`: one marker per tuple.
    Markers(Vec<u32>),
    /// `IN ((1, 2), (3, 4))`, possibly empty.
    List(Vec<Vec<Term>>),
}

/// The right side of `(a, b) =`.
#[derive(Debug, Clone, PartialEq)]
pub enum TupleValue {
    /// A marker for the whole tuple.
    Marker(u32),
    /// `(1, 2)`.
    Literal(Vec<Term>),
}

/// One relation of a WHERE clause.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    /// `c = v`, `c LIKE v`, `c CONTAINS v` and so on.
    Column(String, Operator, Term),
    /// `c IS NOT NULL`.
    NotNull(String),
    /// `c IN ..`.
    In(String, InValues),
    /// `c[key] = v`; never LIKE or CONTAINS.
    Element(String, Term, Operator, Term),
    /// `token(a, b) = v`; never LIKE or CONTAINS.
    Token(Vec<String>, Operator, Term),
    /// `(a, b) = (1, 2)`; never LIKE or CONTAINS.
    Tuple(Vec<String>, Operator, TupleValue),
    /// `(a, b) IN ..`.
    TupleIn(Vec<String>, InTuples),
    /// `expr(index, v)`.
    Expression(String, Term),
}

/// One column of ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct Ordering {
    /// The column.
    pub column: String,
    /// `ANN OF v`.
    pub ann_of: Option<Term>,
    /// `DESC` was given.
    pub descending: bool,
}
