//! DESCRIBE in all its forms.

use super::QualifiedName;

/// `DESCRIBE target [WITH INTERNALS]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Describe {
    /// What is described.
    pub target: DescribeTarget,
    /// `WITH INTERNALS`.
    pub internals: bool,
}

/// What is described.
#[derive(Debug, Clone, PartialEq)]
pub enum DescribeTarget {
    /// `CLUSTER`.
    Cluster,
    /// `[FULL] SCHEMA`.
    Schema {
        /// `FULL`: system keyspaces too.
        full: bool,
    },
    /// `KEYSPACES`.
    Keyspaces,
    /// `[ONLY] KEYSPACE [ks]`; without a name, the session's.
    Keyspace {
        /// The keyspace.
        name: Option<String>,
        /// `ONLY`: without what it contains.
        only: bool,
    },
    /// `TABLES`.
    Tables,
    /// `TABLE t`.
    Table(QualifiedName),
    /// `INDEX i`.
    Index(QualifiedName),
    /// `MATERIALIZED VIEW v`.
    View(QualifiedName),
    /// `TYPES`.
    Types,
    /// `TYPE t`.
    Type(QualifiedName),
    /// `FUNCTIONS`.
    Functions,
    /// `FUNCTION f`.
    Function(QualifiedName),
    /// `AGGREGATES`.
    Aggregates,
    /// `AGGREGATE a`.
    Aggregate(QualifiedName),
    /// A bare name: a keyspace, else a table, index or view.
    Generic(QualifiedName),
}
