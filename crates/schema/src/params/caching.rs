//! What of a table is cached (`schema.CachingParams`).

use std::collections::BTreeMap;

use crate::error::SchemaError;
use crate::jvm;

/// Rows of a partition kept in the row cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsPerPartition {
    /// None: the partition is not cached.
    None,
    /// So many from its head.
    Head(i32),
    /// The whole partition.
    All,
}

/// What of a table is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingParams {
    /// Positions of keys?
    pub keys: bool,
    /// Rows of partitions.
    pub rows_per_partition: RowsPerPartition,
}

impl Default for CachingParams {
    fn default() -> Self {
        Self { keys: true, rows_per_partition: RowsPerPartition::None }
    }
}

impl CachingParams {
    /// From the statement's map or the stored one; keys are not cached unless told so.
    pub(crate) fn from_map(map: &BTreeMap<String, String>) -> Result<Self, SchemaError> {
        let keys = match map.get("keys") {
            None => false,
            Some(v) if v.eq_ignore_ascii_case("ALL") => true,
            Some(v) if v.eq_ignore_ascii_case("NONE") => false,
            Some(v) => {
                return SchemaError::config(format!(
                    "Invalid value '{v}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed"
                ));
            }
        };
        let rows_per_partition = match map.get("rows_per_partition") {
            None => RowsPerPartition::None,
            Some(v) => Self::rows(v)?,
        };
        let unknown: Vec<&String> =
            map.keys().filter(|k| !matches!(k.as_str(), "keys" | "rows_per_partition")).collect();
        if !unknown.is_empty() {
            let unknown = jvm::list(&jvm::string_order(unknown, jvm::copy_capacity(map.len())));
            return SchemaError::config(format!(
                "Invalid caching sub-options {unknown}: only 'keys' and 'rows_per_partition' are allowed"
            ));
        }
        Ok(Self { keys, rows_per_partition })
    }

    fn rows(value: &str) -> Result<RowsPerPartition, SchemaError> {
        if value.eq_ignore_ascii_case("ALL") {
            return Ok(RowsPerPartition::All);
        }
        if value.eq_ignore_ascii_case("NONE") {
            return Ok(RowsPerPartition::None);
        }
        match value.parse() {
            Ok(0) => Ok(RowsPerPartition::None),
            Ok(i32::MAX) => Ok(RowsPerPartition::All),
            Ok(rows) if jvm::is_numeric(value) => Ok(RowsPerPartition::Head(rows)),
            _ => SchemaError::config(format!(
                "Invalid value '{value}' for caching sub-option 'rows_per_partition': only 'ALL', \
                 'NONE', and integer values are allowed"
            )),
        }
    }

    /// As stored.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let keys = if self.keys { "ALL" } else { "NONE" };
        let rows = match self.rows_per_partition {
            RowsPerPartition::None => "NONE".to_owned(),
            RowsPerPartition::Head(rows) => rows.to_string(),
            RowsPerPartition::All => "ALL".to_owned(),
        };
        [("keys".to_owned(), keys.to_owned()), ("rows_per_partition".to_owned(), rows)].into()
    }
}
