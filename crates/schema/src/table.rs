//! A table: id, columns in Cassandra's orders, options.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::CqlType;

use crate::column::{Column, ColumnKind, ColumnMask, DroppedColumn, select_order};
use crate::params::TableParams;
use crate::table_id::TableId;

/// What a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Data of its own.
    Regular,
    /// Rows made up on demand.
    Virtual,
    /// A materialized view.
    View,
    /// The hidden table of a secondary index.
    Index,
}

/// Flags of a table (`TableMetadata.Flag`). All tables of CQL are compound and neither dense nor
/// super; the others are left from COMPACT STORAGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFlags {
    /// Not COMPACT STORAGE.
    pub compound: bool,
    /// COMPACT STORAGE with clustering columns.
    pub dense: bool,
    /// The table counts.
    pub counter: bool,
    /// A super column family of Thrift.
    pub super_table: bool,
}

impl Default for TableFlags {
    fn default() -> Self {
        Self { compound: true, dense: false, counter: false, super_table: false }
    }
}

impl TableFlags {
    /// The names of those set, sorted, as in column `flags` of `system_schema.tables`.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            ("compound", self.compound),
            ("counter", self.counter),
            ("dense", self.dense),
            ("super", self.super_table),
        ];
        all.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect()
    }

    /// Reads what [`TableFlags::names`] writes; unknown names are skipped.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut flags = Self { compound: false, ..Self::default() };
        for name in names {
            match name {
                "compound" => flags.compound = true,
                "counter" => flags.counter = true,
                "dense" => flags.dense = true,
                "super" => flags.super_table = true,
                _ => {}
            }
        }
        flags
    }

    /// Was it made by COMPACT STORAGE (or Thrift)?
    pub fn is_compact(self) -> bool {
        self.super_table || self.dense || !self.compound
    }
}

/// What of its column an index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// The value, or all values or elements of a collection.
    Values,
    /// The keys of a map.
    Keys,
    /// The entries of a map.
    Entries,
}

/// A secondary index, as `system_schema.indexes` has it. No files are kept for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// `COMPOSITES`, `KEYS` or `CUSTOM`.
    pub kind: String,
    /// Options, `target` among them.
    pub options: BTreeMap<String, String>,
}

impl Index {
    /// One that Cassandra itself keeps, of `column`, `keys(column)` and the like:
    /// `legacy_local_table`.
    pub fn legacy(name: String, target: String) -> Self {
        let options = [("target".to_owned(), target)].into();
        Self { name, kind: "COMPOSITES".to_owned(), options }
    }

    /// Is it of a class of its own, CUSTOM?
    pub fn is_custom(&self) -> bool {
        self.kind == "CUSTOM"
    }

    /// The function of the target, if there is one, and what it is of.
    fn target(&self) -> (Option<&str>, &str) {
        let target = self.options.get("target").map_or("", String::as_str);
        let call = target
            .split_once('(')
            .filter(|(function, _)| matches!(*function, "keys" | "values" | "entries" | "full"))
            .and_then(|(function, rest)| Some((function, rest.strip_suffix(')')?)));
        call.map_or((None, target), |(function, inner)| (Some(function), inner))
    }

    /// The column that it indexes, out of `column`, `keys(column)` and the like.
    pub fn target_column(&self) -> Option<String> {
        let (_, inner) = self.target();
        let quoted = inner.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let name = quoted.map_or_else(|| inner.to_owned(), |quoted| quoted.replace("\"\"", "\""));
        (!name.is_empty()).then_some(name)
    }

    /// What of its column it holds.
    pub fn part(&self) -> IndexPart {
        match self.target().0 {
            Some("keys") => IndexPart::Keys,
            Some("entries") => IndexPart::Entries,
            _ => IndexPart::Values,
        }
    }
}

/// A table. Immutable; build one with [`TableBuilder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its id.
    pub id: TableId,
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: TableKind,
    /// Its flags.
    pub flags: TableFlags,
    /// Its options.
    pub params: TableParams,
    /// Columns of the partition key, in order.
    pub partition_key: Vec<Column>,
    /// Columns of the clustering, in order.
    pub clustering: Vec<Column>,
    /// Static columns in Cassandra's order ([`rows::ColumnPlace`]).
    pub statics: Vec<Column>,
    /// Regular columns in Cassandra's order.
    pub regulars: Vec<Column>,
    /// Dropped columns by name.
    pub dropped: BTreeMap<String, DroppedColumn>,
    /// Secondary indexes by name.
    pub indexes: BTreeMap<String, Index>,
    /// Triggers: class by name.
    pub triggers: BTreeMap<String, String>,
    /// The columns as rows see them.
    pub layout: Arc<rows::Layout>,
    /// Where each column lies: kind and index, by name.
    by_name: BTreeMap<Arc<str>, (ColumnKind, u16)>,
    /// Where static and regular columns lie, in the order of `SELECT *`.
    select_order: Vec<(ColumnKind, u16)>,
}

impl Table {
    /// Does a prepared statement of this table mean the same on `now`, as the table has become? If
    /// not, whoever prepared it has to be told, since columns and types may be others than they
    /// know of.
    pub fn keeps_statements(&self, now: &Self) -> bool {
        self.id == now.id
            && self.partition_key == now.partition_key
            && self.clustering == now.clustering
            && self.statics == now.statics
            && self.regulars == now.regulars
            && self.indexes == now.indexes
            && self.flags == now.flags
            && self.params.default_time_to_live == now.params.default_time_to_live
            && self.params.gc_grace_seconds == now.params.gc_grace_seconds
    }

    /// Starts a table.
    pub fn builder(
        keyspace: impl Into<String>,
        name: impl Into<String>,
        id: TableId,
    ) -> TableBuilder {
        TableBuilder::new(keyspace.into(), name.into(), id)
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.column_at(*self.by_name.get(name)?)
    }

    fn column_at(&self, (kind, index): (ColumnKind, u16)) -> Option<&Column> {
        self.columns_of(kind).get(usize::from(index))
    }

    /// The columns of one kind.
    pub fn columns_of(&self, kind: ColumnKind) -> &[Column] {
        match kind {
            ColumnKind::PartitionKey => &self.partition_key,
            ColumnKind::Clustering => &self.clustering,
            ColumnKind::Regular => &self.regulars,
            ColumnKind::Static => &self.statics,
        }
    }

    /// All columns by name (byte order).
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.by_name.values().filter_map(|place| self.column_at(*place))
    }

    /// Partition key, then clustering.
    pub fn primary_key(&self) -> impl Iterator<Item = &Column> {
        self.partition_key.iter().chain(&self.clustering)
    }

    /// The order of `SELECT *`: partition key, clustering, static columns, regular columns
    /// ([`select_order`]); without what COMPACT STORAGE hides.
    pub fn all_columns_in_select_order(&self) -> impl Iterator<Item = &Column> {
        let others = self.select_order.iter().filter_map(|place| self.column_at(*place));
        self.primary_key().chain(others).filter(|column| !self.is_hidden(column))
    }

    /// The order of INSERT JSON, which names the columns that COMPACT STORAGE hides too: those of
    /// `SELECT *`, then they.
    pub fn all_columns_in_json_order(&self) -> impl Iterator<Item = &Column> {
        let hidden = self.columns().filter(|column| self.is_hidden(column));
        self.all_columns_in_select_order().chain(hidden)
    }

    /// The order of DESCRIBE: partition key, clustering, statics, regulars, the latter two in
    /// Cassandra's order (simple before complex); without what COMPACT STORAGE hides.
    pub fn all_columns_in_create_order(&self) -> impl Iterator<Item = &Column> {
        self.primary_key()
            .chain(&self.statics)
            .chain(&self.regulars)
            .filter(|column| !self.is_hidden(column))
    }

    /// Made by COMPACT STORAGE without clustering columns: those that clients see are static.
    pub fn is_static_compact(&self) -> bool {
        !self.flags.super_table && !self.flags.dense && !self.flags.compound
    }

    /// The one value that a row of a table WITH COMPACT STORAGE is.
    pub fn compact_value(&self) -> Option<&Column> {
        self.regulars.first().filter(|_| self.flags.is_compact())
    }

    /// Is it a column that COMPACT STORAGE made up, which clients do not see
    /// (`CompactTableMetadata.hiddenColumns`)?
    pub fn is_hidden(&self, column: &Column) -> bool {
        if !self.flags.is_compact() {
            return false;
        }
        match column.kind {
            ColumnKind::Regular if self.flags.dense => column.ty == CqlType::Empty,
            ColumnKind::Regular | ColumnKind::Clustering => !self.flags.dense,
            _ => false,
        }
    }

    /// Has it an index of a class of its own, as storage-attached ones are?
    pub fn has_custom_index(&self) -> bool {
        self.indexes.values().any(Index::is_custom)
    }

    /// The indexes that Cassandra itself keeps, each with its column.
    pub fn legacy_indexes(&self) -> impl Iterator<Item = (&Index, &Column)> {
        let legacy = self.indexes.values().filter(|index| !index.is_custom());
        legacy.filter_map(move |index| Some((index, self.column(&index.target_column()?)?)))
    }

    /// `keyspace.table`, each quoted where it must be.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", types::maybe_quote(&self.keyspace), types::maybe_quote(&self.name))
    }

    /// Does it count?
    pub fn is_counter(&self) -> bool {
        self.flags.counter
    }

    /// Are its rows made up on demand?
    pub fn is_virtual(&self) -> bool {
        self.kind == TableKind::Virtual
    }

    /// A builder that starts from this table.
    pub fn to_builder(&self) -> TableBuilder {
        let mut builder = TableBuilder::new(self.keyspace.clone(), self.name.clone(), self.id);
        builder.kind = self.kind;
        builder.flags = self.flags;
        builder.params = self.params.clone();
        let others = self.statics.iter().chain(&self.regulars);
        builder.columns = self.primary_key().chain(others).cloned().collect();
        builder.dropped = self.dropped.clone();
        builder.indexes = self.indexes.clone();
        builder.triggers = self.triggers.clone();
        builder
    }
}

/// A table in the making: columns in any order.
#[derive(Clone, Debug)]
pub struct TableBuilder {
    /// Id to be.
    pub id: TableId,
    /// Keyspace to be.
    pub keyspace: String,
    /// Name to be.
    pub name: String,
    /// What it will be.
    pub kind: TableKind,
    /// Flags to be.
    pub flags: TableFlags,
    /// Options to be.
    pub params: TableParams,
    /// Columns to be; positions are set for key columns, indexes by [`TableBuilder::build`].
    pub columns: Vec<Column>,
    /// Dropped columns.
    pub dropped: BTreeMap<String, DroppedColumn>,
    /// Secondary indexes.
    pub indexes: BTreeMap<String, Index>,
    /// Triggers.
    pub triggers: BTreeMap<String, String>,
}

impl TableBuilder {
    fn new(keyspace: String, name: String, id: TableId) -> Self {
        Self {
            id,
            keyspace,
            name,
            kind: TableKind::Regular,
            flags: TableFlags::default(),
            params: TableParams::default(),
            columns: Vec::new(),
            dropped: BTreeMap::new(),
            indexes: BTreeMap::new(),
            triggers: BTreeMap::new(),
        }
    }

    /// Sets what it is.
    pub fn kind(mut self, kind: TableKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the options.
    pub fn params(mut self, params: TableParams) -> Self {
        self.params = params;
        self
    }

    /// Appends a column; key columns take the next position of their kind.
    pub fn column(mut self, name: &str, ty: CqlType, kind: ColumnKind) -> Self {
        self.add(name, ty, kind, false, None);
        self
    }

    /// Appends a clustering column in descending order.
    pub fn clustering_desc(mut self, name: &str, ty: CqlType) -> Self {
        self.add(name, ty, ColumnKind::Clustering, true, None);
        self
    }

    /// Appends a column with all its properties.
    pub fn add(
        &mut self,
        name: &str,
        ty: CqlType,
        kind: ColumnKind,
        reversed: bool,
        mask: Option<Arc<ColumnMask>>,
    ) {
        let position = if kind.is_primary_key() {
            self.columns.iter().filter(|c| c.kind == kind).count() as i32
        } else {
            -1
        };
        self.columns.push(Column {
            name: name.into(),
            ty,
            kind,
            position,
            reversed,
            index: 0,
            mask,
        });
    }

    /// Sorts the columns into Cassandra's order and builds the table. Of two columns of one name
    /// the later one stays.
    pub fn build(self) -> Table {
        let mut by_name: BTreeMap<Arc<str>, Column> = BTreeMap::new();
        for column in self.columns {
            by_name.insert(Arc::clone(&column.name), column);
        }
        let mut lists: [Vec<Column>; 4] = Default::default();
        for column in by_name.into_values() {
            lists[column.kind as usize].push(column);
        }
        let mut places = BTreeMap::new();
        for list in &mut lists {
            list.sort_by(|a, b| (a.position, a.place()).cmp(&(b.position, b.place())));
            for (index, column) in list.iter_mut().enumerate() {
                column.index = index as u16;
                places.insert(Arc::clone(&column.name), (column.kind, column.index));
            }
        }
        let [partition_key, clustering, regulars, statics] = lists;
        let in_select_order = select_order(&statics).into_iter().chain(select_order(&regulars));
        let in_select_order = in_select_order.map(|column| (column.kind, column.index)).collect();
        let layout = Arc::new(layout(
            &clustering,
            &statics,
            &regulars,
            self.flags.counter,
            self.dropped.values(),
        ));
        Table {
            id: self.id,
            keyspace: self.keyspace,
            name: self.name,
            kind: self.kind,
            flags: self.flags,
            params: self.params,
            partition_key,
            clustering,
            statics,
            regulars,
            dropped: self.dropped,
            indexes: self.indexes,
            triggers: self.triggers,
            layout,
            by_name: places,
            select_order: in_select_order,
        }
    }
}

fn layout<'a>(
    clustering: &[Column],
    statics: &[Column],
    regulars: &[Column],
    counter: bool,
    dropped: impl Iterator<Item = &'a DroppedColumn>,
) -> rows::Layout {
    let clustering = clustering
        .iter()
        .map(|column| rows::ClusteringColumn { ty: column.ty.clone(), reversed: column.reversed });
    let layout =
        |column: &Column| rows::ColumnLayout { name: (*column.name).into(), ty: column.ty.clone() };
    let dropped = dropped.map(|column| rows::DroppedColumn {
        name: (*column.name).into(),
        ty: column.ty.clone(),
        is_static: column.kind == ColumnKind::Static,
        dropped_at: column.dropped_at,
    });
    rows::Layout::new(
        clustering.collect(),
        statics.iter().map(layout).collect(),
        regulars.iter().map(layout).collect(),
        counter,
    )
    .with_dropped(dropped.collect())
}
