//! A column of a result, or a variable of a prepared statement.

use std::sync::Arc;
use types::CqlType;

/// A column of a result, or a variable of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Keyspace it comes from.
    pub keyspace: Arc<str>,
    /// Table it comes from.
    pub table: Arc<str>,
    /// Its name, or that of the selector.
    pub name: String,
    /// Its type.
    pub cql_type: CqlType,
    /// Is it a clustering column in descending order, selected as it is? Only the id of the
    /// metadata tells.
    pub reversed: bool,
}
