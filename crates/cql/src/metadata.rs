//! What clients are told of bind markers and of the columns of a result.

use std::sync::Arc;

use types::CqlType;

/// What a bind marker stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Keyspace of the column.
    pub keyspace: Arc<str>,
    /// Table of the column.
    pub table: Arc<str>,
    /// Name: the marker's own, or the column's, or one such as `[limit]`.
    pub name: Arc<str>,
    /// Type of the value.
    pub ty: CqlType,
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Keyspace.
    pub keyspace: Arc<str>,
    /// Table.
    pub table: Arc<str>,
    /// Name as Cassandra gives it (`writetime(v)`, an alias, ...).
    pub name: Arc<str>,
    /// Type of the values.
    pub ty: CqlType,
    /// Is it that of a clustering column in descending order? It counts in the digest of the
    /// metadata.
    pub reversed: bool,
}
