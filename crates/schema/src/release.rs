//! The release of Cassandra whose schema a ring shares.

use crate::error::SchemaError;
use crate::stored::{SchemaMutation, SchemaTable};

/// A release: what `system_schema` has there, in the digest and in what nodes send each other.
/// Releases of the same major and minor number agree in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 4.1.
    V4_1,
    /// 5.0.
    #[default]
    V5_0,
}

/// Options of tables that came with 5.0.
const OPTIONS_OF_5_0: [&str; 2] = ["allow_auto_snapshot", "incremental_backups"];

/// Parts of values that 4.1 does not know: by column.
const VALUES_OF_5_0: [(&str, &str); 4] = [
    ("type", "vector<"),
    ("field_types", "vector<"),
    ("compaction", "UnifiedCompactionStrategy"),
    ("options", "StorageAttachedIndex"),
];

impl Release {
    /// Of a version such as `5.0.9`.
    pub fn parse(version: &str) -> Option<Self> {
        let mut numbers = version.split(['.', '-']);
        match (numbers.next()?, numbers.next()?) {
            ("4", "1") => Some(Self::V4_1),
            ("5", "0") => Some(Self::V5_0),
            _ => None,
        }
    }

    /// The major number: nodes pull the schema of those alone that have the same.
    pub fn major(self) -> &'static str {
        match self {
            Self::V4_1 => "4",
            Self::V5_0 => "5",
        }
    }

    /// Has it this table?
    pub fn has(self, table: SchemaTable) -> bool {
        self >= Self::V5_0 || table != SchemaTable::ColumnMasks
    }

    /// Has it this column of a table?
    pub fn has_column(self, table: SchemaTable, column: &str) -> bool {
        self.has(table) && self.has_option(column)
    }

    /// Has it this option of tables?
    pub fn has_option(self, name: &str) -> bool {
        self >= Self::V5_0 || !OPTIONS_OF_5_0.contains(&name)
    }

    /// Leaves out of a change what says nothing to this release.
    ///
    /// # Errors
    /// If the change asks for what it does not know.
    pub(crate) fn fit(self, change: &mut SchemaMutation) -> Result<(), SchemaError> {
        if self >= Self::V5_0 {
            return Ok(());
        }
        let unknown = |what: &str| {
            Err(SchemaError::Invalid(format!("{what} is not known to Cassandra 4.1, the ring's")))
        };
        for (table, partition) in &change.updates {
            let rows = partition.rows.values();
            let cells = rows.flat_map(|row| &row.cells);
            for (column, value) in
                cells.filter_map(|(name, cell)| Some((name, cell.value.as_ref()?)))
            {
                if !self.has_column(*table, column) {
                    return unknown(if self.has(*table) { column } else { table.name() });
                }
                let text = String::from_utf8_lossy(value);
                let new =
                    VALUES_OF_5_0.iter().find(|(of, part)| of == column && text.contains(part));
                if let Some((_, part)) = new {
                    return unknown(part.trim_end_matches('<'));
                }
            }
        }
        self.leave_out(change);
        Ok(())
    }

    /// Leaves out of a change the tables that this release has not.
    pub(crate) fn leave_out(self, change: &mut SchemaMutation) {
        change.updates.retain(|table, _| self.has(*table));
    }
}
