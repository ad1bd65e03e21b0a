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

/// Regular columns of `tables` and `views` that hold options.
const OPTIONS: [&str; 22] = [
    "additional_write_policy",
    "allow_auto_snapshot",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "dclocal_read_repair_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "read_repair_chance",
    "speculative_retry",
];

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

    /// Names of its regular columns in byte order, as release 5.0.9 defines them: the digest takes them all,
    /// present or not.
    pub fn regular_columns(self) -> Vec<&'static str> {
        let mut columns: Vec<&str> = match self {
            Self::ColumnMasks => vec![
                "function_argument_nulls",
                "function_argument_types",
                "function_argument_values",
                "function_keyspace",
                "function_name",
            ],
            Self::Columns => {
                vec!["clustering_order", "column_name_bytes", "kind", "position", "type"]
            }
            Self::DroppedColumns => vec!["dropped_time", "kind", "type"],
            Self::Triggers => vec!["options"],
            Self::Types => vec!["field_names", "field_types"],
            Self::Functions => {
                vec!["argument_names", "body", "called_on_null_input", "language", "return_type"]
            }
            Self::Aggregates => {
                vec!["final_func", "initcond", "return_type", "state_func", "state_type"]
            }
            Self::Indexes => vec!["kind", "options"],
            Self::Tables => ["flags"].into_iter().chain(OPTIONS).collect(),
            Self::Views => {
                let own =
                    ["base_table_id", "base_table_name", "include_all_columns", "where_clause"];
                own.into_iter().chain(OPTIONS).collect()
            }
            Self::Keyspaces => vec!["durable_writes", "replication"],
        };
        columns.sort_unstable();
        columns
    }
}
