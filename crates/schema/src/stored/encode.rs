//! The mutation that turns one keyspace into another (`SchemaKeyspace.convertSchemaDiffToMutations`
//! and what it calls): which cells are written, and which tombstones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rows::Liveness;
use types::UserType;

use crate::column::{Column, DroppedColumn};
use crate::keyspace::{Keyspace, View};
use crate::params::TableParams;
use crate::stored::rows::{SchemaCell, SchemaMutation, SchemaPartition, SchemaRow, Tombstone};
use crate::stored::table::SchemaTable;
use crate::stored::value;
use crate::table::{Index, Table};

/// Keyspaces that are replicated and yet the system's: no masks are written for their columns.
pub(crate) const REPLICATED_SYSTEM_KEYSPACES: [&str; 3] =
    ["system_auth", "system_distributed", "system_traces"];

/// The times of a mutation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// Timestamp of its cells and deletions, in microseconds.
    pub timestamp: i64,
    /// "Now" of its deletions, in seconds since the epoch.
    pub now: i64,
    /// Does this node know change data capture (`cdc_enabled`)? Column `cdc` is written only then.
    pub cdc: bool,
}

/// The mutation from `before` to `after`; none if both are the same.
pub(crate) fn diff(
    before: Option<&Keyspace>,
    after: Option<&Keyspace>,
    stamp: Stamp,
) -> Option<SchemaMutation> {
    match (before, after) {
        (None, None) => None,
        (Some(before), Some(after)) if before == after => None,
        (Some(before), None) => Some(drop_keyspace(&before.name, stamp)),
        (None, Some(after)) => Some(create_keyspace(after, stamp)),
        (Some(before), Some(after)) => Some(alter_keyspace(before, after, stamp)),
    }
}

/// Everything of a keyspace.
pub(crate) fn create_keyspace(keyspace: &Keyspace, stamp: Stamp) -> SchemaMutation {
    let mut writer = Writer::new(keyspace, stamp);
    for table in keyspace.tables.values() {
        writer.table(table, true);
    }
    for view in keyspace.views.values() {
        writer.view(view, true);
    }
    for user_type in keyspace.types.values() {
        writer.user_type(user_type);
    }
    writer.mutation
}

fn drop_keyspace(name: &str, stamp: Stamp) -> SchemaMutation {
    let deletion = Some(stamp.tombstone());
    let gone = SchemaPartition { deletion, ..SchemaPartition::default() };
    let updates = SchemaTable::ALL.into_iter().map(|table| (table, gone.clone())).collect();
    SchemaMutation { keyspace: name.to_owned(), updates }
}

fn alter_keyspace(before: &Keyspace, after: &Keyspace, stamp: Stamp) -> SchemaMutation {
    let mut writer = Writer::new(after, stamp);
    for name in before.types.keys().filter(|name| !after.types.contains_key(*name)) {
        writer.delete(SchemaTable::Types, &[name]);
    }
    for (name, user_type) in &after.types {
        if before.types.get(name).is_none_or(|old| type_cells(old) != type_cells(user_type)) {
            writer.user_type(user_type);
        }
    }
    for (_, table) in before.tables.iter().filter(|(name, _)| !after.tables.contains_key(*name)) {
        writer.drop_table(table);
    }
    for (name, table) in &after.tables {
        match before.tables.get(name) {
            None => writer.table(table, true),
            Some(old) if !differs(old, table) => {}
            Some(old) => writer.alter_table(old, table),
        }
    }
    for (name, view) in before.views.iter().filter(|(name, _)| !after.views.contains_key(*name)) {
        writer.delete(SchemaTable::Views, &[name]);
        writer.drop_columns(&view.table);
    }
    for (name, view) in &after.views {
        match before.views.get(name) {
            None => writer.view(view, true),
            Some(old) if old == view || !differs(&old.table, &view.table) => {}
            Some(old) => {
                writer.view(view, false);
                writer.alter_columns(&old.table, &view.table);
            }
        }
    }
    writer.mutation
}

/// Do the rows of two tables differ? A change inside a user type does not show in them.
fn differs(a: &Table, b: &Table) -> bool {
    a.id != b.id
        || a.params != b.params
        || a.flags != b.flags
        || a.dropped != b.dropped
        || a.indexes != b.indexes
        || a.triggers != b.triggers
        || !a.columns().map(column_cells).eq(b.columns().map(column_cells))
}

type Cells = Vec<(&'static str, Vec<u8>)>;

fn column_cells(column: &Column) -> (&str, Cells, Option<&crate::column::ColumnMask>) {
    let order = match (column.kind, column.reversed) {
        (crate::ColumnKind::Clustering, true) => "desc",
        (crate::ColumnKind::Clustering, false) => "asc",
        _ => "none",
    };
    let cells = vec![
        ("column_name_bytes", column.name.as_bytes().to_vec()),
        ("kind", column.kind.name().into()),
        ("position", column.position.to_be_bytes().to_vec()),
        ("clustering_order", order.into()),
        ("type", column.ty.cql_name().into_bytes()),
    ];
    (&column.name, cells, column.mask.as_deref())
}

fn type_cells(user_type: &UserType) -> Cells {
    let names = user_type.fields.iter().map(|(name, _)| name);
    let types = user_type.fields.iter().map(|(_, ty)| ty.cql_name());
    vec![("field_names", value::list(names)), ("field_types", value::list(types))]
}

fn params_cells(params: &TableParams, cdc: bool) -> Cells {
    let double = |value: f64| value.to_be_bytes().to_vec();
    let int = |value: i32| value.to_be_bytes().to_vec();
    let mut cells = vec![
        ("bloom_filter_fp_chance", double(params.bloom_filter_fp_chance)),
        ("comment", params.comment.clone().into_bytes()),
        // no longer used, kept for drivers
        ("dclocal_read_repair_chance", double(0.0)),
        ("default_time_to_live", int(params.default_time_to_live)),
        ("gc_grace_seconds", int(params.gc_grace_seconds)),
        ("max_index_interval", int(params.max_index_interval)),
        ("memtable_flush_period_in_ms", int(params.memtable_flush_period_in_ms)),
        ("min_index_interval", int(params.min_index_interval)),
        ("read_repair_chance", double(0.0)),
        ("speculative_retry", params.speculative_retry.to_string().into_bytes()),
        ("additional_write_policy", params.additional_write_policy.to_string().into_bytes()),
        ("crc_check_chance", double(params.crc_check_chance)),
        ("caching", value::map(&params.caching.to_map())),
        ("compaction", value::map(&params.compaction.to_map())),
        ("compression", value::map(&params.compression.to_map())),
        ("read_repair", params.read_repair.name().into()),
        ("extensions", value::map(&params.extensions)),
    ];
    // these are written only where they say something, for the sake of older peers
    if cdc {
        cells.push(("cdc", vec![params.cdc.into()]));
    }
    if params.memtable != "default" {
        cells.push(("memtable", params.memtable.clone().into_bytes()));
    }
    if !params.allow_auto_snapshot {
        cells.push(("allow_auto_snapshot", vec![0]));
    }
    if !params.incremental_backups {
        cells.push(("incremental_backups", vec![0]));
    }
    cells
}

impl Stamp {
    fn tombstone(self) -> Tombstone {
        Tombstone { timestamp: self.timestamp, local_deletion_time: self.now }
    }
}

/// A mutation in the making.
struct Writer {
    mutation: SchemaMutation,
    stamp: Stamp,
}

impl Writer {
    /// Every mutation carries the keyspace's own row, should a peer have missed its creation.
    fn new(keyspace: &Keyspace, stamp: Stamp) -> Self {
        let updates = BTreeMap::new();
        let mutation = SchemaMutation { keyspace: keyspace.name.clone(), updates };
        let mut writer = Self { mutation, stamp };
        let cells = vec![
            ("durable_writes", vec![keyspace.durable_writes.into()]),
            ("replication", value::map(&keyspace.replication.to_map())),
        ];
        writer.insert(SchemaTable::Keyspaces, &[], cells);
        writer
    }

    fn row(&mut self, table: SchemaTable, clustering: &[&str]) -> &mut SchemaRow {
        let clustering = clustering.iter().map(|v| v.as_bytes().to_vec()).collect();
        let partition = self.mutation.updates.entry(table).or_default();
        partition.rows.entry(clustering).or_default()
    }

    fn insert(&mut self, table: SchemaTable, clustering: &[&str], cells: Cells) -> &mut SchemaRow {
        let timestamp = self.stamp.timestamp;
        let row = self.row(table, clustering);
        row.liveness = Some(Liveness::new(timestamp));
        for (name, value) in cells {
            row.cells.insert(name.to_owned(), SchemaCell::live(timestamp, value));
        }
        row
    }

    fn delete(&mut self, table: SchemaTable, clustering: &[&str]) {
        let deletion = self.stamp.tombstone();
        self.row(table, clustering).deletion = Some(deletion);
    }

    fn user_type(&mut self, user_type: &Arc<UserType>) {
        self.insert(SchemaTable::Types, &[&user_type.name], type_cells(user_type));
    }

    /// The row of a table or view: it replaces the previous one.
    fn replace(&mut self, kind: SchemaTable, table: &Table, mut cells: Cells) {
        let previous = Tombstone {
            timestamp: self.stamp.timestamp.saturating_sub(1),
            local_deletion_time: self.stamp.now,
        };
        cells.push(("id", table.id.0.to_vec()));
        cells.extend(params_cells(&table.params, self.stamp.cdc));
        self.insert(kind, &[&table.name], cells).deletion = Some(previous);
    }

    fn table(&mut self, table: &Table, with_parts: bool) {
        let flags = value::list(table.flags.names().into_iter());
        self.replace(SchemaTable::Tables, table, vec![("flags", flags)]);
        if !with_parts {
            return;
        }
        for column in table.columns() {
            self.column(table, column);
        }
        for dropped in table.dropped.values() {
            self.dropped(table, dropped);
        }
        for (name, class) in &table.triggers {
            self.trigger(table, name, class);
        }
        for index in table.indexes.values() {
            self.index(table, index);
        }
    }

    fn view(&mut self, view: &View, with_parts: bool) {
        let cells = vec![
            ("include_all_columns", vec![view.include_all_columns.into()]),
            ("base_table_id", view.base_table_id.0.to_vec()),
            ("base_table_name", view.base_table_name.clone().into_bytes()),
            ("where_clause", view.where_clause.clone().into_bytes()),
        ];
        self.replace(SchemaTable::Views, &view.table, cells);
        if with_parts {
            for column in view.table.columns() {
                self.column(&view.table, column);
            }
            for dropped in view.table.dropped.values() {
                self.dropped(&view.table, dropped);
            }
        }
    }

    fn alter_table(&mut self, old: &Table, new: &Table) {
        self.table(new, false);
        self.alter_columns(old, new);
        for dropped in new.dropped.values() {
            if old.dropped.get(&*dropped.name) != Some(dropped) {
                self.dropped(new, dropped);
            }
        }
        for name in old.triggers.keys().filter(|name| !new.triggers.contains_key(*name)) {
            self.delete(SchemaTable::Triggers, &[&old.name, name]);
        }
        for (name, class) in &new.triggers {
            if !old.triggers.contains_key(name) {
                self.trigger(new, name, class);
            }
        }
        for name in old.indexes.keys().filter(|name| !new.indexes.contains_key(*name)) {
            self.delete(SchemaTable::Indexes, &[&old.name, name]);
        }
        for (name, index) in &new.indexes {
            if old.indexes.get(name) != Some(index) {
                self.index(new, index);
            }
        }
    }

    fn alter_columns(&mut self, old: &Table, new: &Table) {
        let names: BTreeSet<&str> =
            old.columns().chain(new.columns()).map(|column| &*column.name).collect();
        for name in names {
            match (old.column(name), new.column(name)) {
                (Some(column), None) => {
                    self.delete(SchemaTable::Columns, &[&old.name, &column.name]);
                }
                (None, Some(column)) => self.column(new, column),
                (Some(a), Some(b)) if column_cells(a) != column_cells(b) => self.column(new, b),
                _ => {}
            }
        }
    }

    fn drop_columns(&mut self, table: &Table) {
        for column in table.columns() {
            self.delete(SchemaTable::Columns, &[&table.name, &column.name]);
        }
    }

    fn drop_table(&mut self, table: &Table) {
        self.delete(SchemaTable::Tables, &[&table.name]);
        self.drop_columns(table);
        for name in table.triggers.keys() {
            self.delete(SchemaTable::Triggers, &[&table.name, name]);
        }
        for name in table.dropped.keys() {
            self.delete(SchemaTable::DroppedColumns, &[&table.name, name]);
        }
        for name in table.indexes.keys() {
            self.delete(SchemaTable::Indexes, &[&table.name, name]);
        }
    }

    fn column(&mut self, table: &Table, column: &Column) {
        let (name, cells, mask) = column_cells(column);
        self.insert(SchemaTable::Columns, &[&table.name, name], cells);
        if REPLICATED_SYSTEM_KEYSPACES.contains(&table.keyspace.as_str()) {
            return;
        }
        let Some(mask) = mask else {
            return self.delete(SchemaTable::ColumnMasks, &[&table.name, name]);
        };
        let values = mask.arguments.iter().map(|v| v.as_deref().unwrap_or_default());
        let nulls = mask.arguments.iter().map(|v| [u8::from(v.is_none())]);
        let cells = vec![
            ("function_keyspace", mask.function_keyspace.clone().into_bytes()),
            ("function_name", mask.function_name.clone().into_bytes()),
            ("function_argument_types", value::list(mask.argument_types.iter())),
            ("function_argument_values", value::list(values)),
            ("function_argument_nulls", value::list(nulls)),
        ];
        self.insert(SchemaTable::ColumnMasks, &[&table.name, name], cells);
    }

    fn dropped(&mut self, table: &Table, dropped: &DroppedColumn) {
        let millis = dropped.dropped_at.div_euclid(1000);
        let cells = vec![
            ("dropped_time", millis.to_be_bytes().to_vec()),
            ("type", dropped.ty.cql_name().into_bytes()),
            ("kind", dropped.kind.name().into()),
        ];
        self.insert(SchemaTable::DroppedColumns, &[&table.name, &dropped.name], cells);
    }

    fn trigger(&mut self, table: &Table, name: &str, class: &str) {
        let options = value::map(&[("class".to_owned(), class)].into());
        self.insert(SchemaTable::Triggers, &[&table.name, name], vec![("options", options)]);
    }

    fn index(&mut self, table: &Table, index: &Index) {
        let cells = vec![
            ("kind", index.kind.clone().into_bytes()),
            ("options", value::map(&index.options)),
        ];
        self.insert(SchemaTable::Indexes, &[&table.name, &index.name], cells);
    }
}
