//! The tables of `system_schema`.

use crate::table_id::TableId;

/// A table of `system_schema` that describes keyspaces, in the order in which the digest takes them
/// (`SchemaKeyspaceTables.ALL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemaTable {
    /// `column_masks`.
    ColumnMasks,
    /// `columns`.
    Columns,
    /// `dropped_columns`.
    DroppedColumns,
    /// `triggers`.
    Triggers,
    /// `types`.
    Types,
    /// `functions`.
    Functions,
    /// `aggregates`.
    Aggregates,
    /// `indexes`.
    Indexes,
    /// `tables`.
    Tables,
    /// `views`.
    Views,
    /// `keyspaces`.
    Keyspaces,
}

impl SchemaTable {
    /// All of them, in the digest's order.
    pub const ALL: [Self; 11] = [
        Self::ColumnMasks,
        Self::Columns,
        Self::DroppedColumns,
        Self::Triggers,
        Self::Types,
        Self::Functions,
        Self::Aggregates,
        Self::Indexes,
        Self::Tables,
        Self::Views,
        Self::Keyspaces,
    ];

    /// Those whose rows are parts of tables, named by their table first.
    pub(crate) const PARTS_OF_TABLES: [Self; 5] =
        [Self::ColumnMasks, Self::Columns, Self::DroppedColumns, Self::Triggers, Self::Indexes];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ColumnMasks => "column_masks",
            Self::Columns => "columns",
            Self::DroppedColumns => "dropped_columns",
            Self::Triggers => "triggers",
            Self::Types => "types",
            Self::Functions => "functions",
            Self::Aggregates => "aggregates",
            Self::Indexes => "indexes",
            Self::Tables => "tables",
            Self::Views => "views",
            Self::Keyspaces => "keyspaces",
        }
    }

    /// The table of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its id.
    pub fn id(self) -> TableId {
        TableId::of_system_table("system_schema", self.name())
    }

    /// The table of this id.
    pub fn by_id(id: &TableId) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.id() == *id)
    }
}
