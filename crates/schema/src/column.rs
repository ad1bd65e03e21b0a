//! A column of a table, and one that was dropped.

use std::sync::Arc;

use types::CqlType;

/// What part of a row a column is. In Cassandra's order of kinds (`ColumnMetadata.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKind {
    /// A component of the partition key.
    PartitionKey,
    /// A component of the clustering.
    Clustering,
    /// One value a row.
    Regular,
    /// One value a partition.
    Static,
}

impl ColumnKind {
    /// As in column `kind` of `system_schema.columns`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PartitionKey => "partition_key",
            Self::Clustering => "clustering",
            Self::Regular => "regular",
            Self::Static => "static",
        }
    }

    /// Reads what [`ColumnKind::name`] writes, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::PartitionKey, Self::Clustering, Self::Regular, Self::Static]
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(text))
    }

    /// Partition key or clustering?
    pub fn is_primary_key(self) -> bool {
        matches!(self, Self::PartitionKey | Self::Clustering)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, case as stored.
    pub name: Arc<str>,
    /// Its type, without regard to the clustering order.
    pub ty: CqlType,
    /// What part of a row it is.
    pub kind: ColumnKind,
    /// Place among the columns of its kind for key columns; -1 for others, as in
    /// `system_schema.columns`.
    pub position: i32,
    /// A clustering column stored in descending order?
    pub reversed: bool,
    /// Its index in the table's list of its kind: [`Table::partition_key`](crate::Table), `clustering`,
    /// `statics` or `regulars`. For statics and regulars this is the index in the layout of rows.
    pub index: u16,
    /// The masking function attached to it, kept as stored.
    pub mask: Option<Arc<ColumnMask>>,
}

impl Column {
    /// Is this a static column?
    pub fn is_static(&self) -> bool {
        self.kind == ColumnKind::Static
    }

    /// Has it one cell an element?
    pub fn is_complex(&self) -> bool {
        !self.kind.is_primary_key() && self.ty.is_multicell()
    }
}

/// A masking function with its arguments, as `system_schema.column_masks` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMask {
    /// Keyspace of the function.
    pub function_keyspace: String,
    /// Name of the function.
    pub function_name: String,
    /// CQL types of the arguments after the first.
    pub argument_types: Vec<String>,
    /// Those arguments as text, without the quotes of a literal; `None` for null.
    pub arguments: Vec<Option<String>>,
}

/// A column that a table once had: its cells up to the time of the drop are to be skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedColumn {
    /// Its name.
    pub name: Arc<str>,
    /// Its type with user types expanded to tuples, so that the types can be dropped.
    pub ty: CqlType,
    /// [`ColumnKind::Regular`] or [`ColumnKind::Static`].
    pub kind: ColumnKind,
    /// Cells written at or before this time are gone, in microseconds since the epoch (a multiple of
    /// 1000: `system_schema` keeps milliseconds).
    pub dropped_at: i64,
}
