//! Rows of `system_schema` in a simple owned shape, merged last-write-wins as any rows are.
//!
//! The tables have no static, no complex and no counter columns: a cell is named by its column, a tombstone
//! deletes a partition, the rows of a prefix of the clustering, a row or a cell.

use std::collections::BTreeMap;

use crate::stored::table::SchemaTable;

/// A deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tombstone {
    /// Deletes what was written at or before it, in microseconds.
    pub timestamp: i64,
    /// When it was made, in seconds since the epoch.
    pub local_deletion_time: i64,
}

/// A cell, live or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaCell {
    /// When it was written, in microseconds.
    pub timestamp: i64,
    /// The value; none = deleted.
    pub value: Option<Vec<u8>>,
    /// When it was deleted, in seconds since the epoch; 0 for live cells.
    pub local_deletion_time: i64,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRow {
    /// Deletion of the row, if any.
    pub deletion: Option<Tombstone>,
    /// When the row was inserted, in microseconds.
    pub liveness: Option<i64>,
    /// Cells by the column's name.
    pub cells: BTreeMap<String, SchemaCell>,
}

/// The part of one table that describes one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaPartition {
    /// Deletion of the partition, if any.
    pub deletion: Option<Tombstone>,
    /// Deletions of all rows whose clustering starts with these values: an operator's clean-up makes them.
    pub prefixes: BTreeMap<Vec<Vec<u8>>, Tombstone>,
    /// Rows by their clustering's values. The order is that of bytes; see `digest` for Cassandra's.
    pub rows: BTreeMap<Vec<Vec<u8>>, SchemaRow>,
}

/// One keyspace's update of several tables: a `Mutation` of `system_schema`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaMutation {
    /// The partition key of all updates.
    pub keyspace: String,
    /// One partition update a table.
    pub updates: BTreeMap<SchemaTable, SchemaPartition>,
}

impl SchemaCell {
    /// A live cell.
    pub fn live(timestamp: i64, value: Vec<u8>) -> Self {
        Self { timestamp, value: Some(value), local_deletion_time: 0 }
    }

    /// Does this one win over another of the same column (`Cells.resolveRegular`)?
    fn supersedes(&self, other: &Self) -> bool {
        let rank = |cell: &Self| {
            let deleted = cell.value.is_none();
            (cell.timestamp, deleted, if deleted { cell.local_deletion_time } else { 0 })
        };
        (rank(self), &self.value) > (rank(other), &other.value)
    }
}

impl SchemaRow {
    /// Does it show in a read? (Not if it is a tombstone only.)
    pub fn is_live(&self) -> bool {
        self.liveness.is_some() || self.cells.values().any(|cell| cell.value.is_some())
    }

    /// The value of a column.
    pub fn get(&self, column: &str) -> Option<&[u8]> {
        self.cells.get(column)?.value.as_deref()
    }

    fn is_empty(&self) -> bool {
        self.deletion.is_none() && self.liveness.is_none() && self.cells.is_empty()
    }

    /// Drops what a deletion deletes.
    fn delete(&mut self, timestamp: i64) {
        self.liveness = self.liveness.filter(|&written| written > timestamp);
        self.cells.retain(|_, cell| cell.timestamp > timestamp);
    }

    fn merge(&mut self, other: &Self) {
        self.deletion = self.deletion.max(other.deletion);
        self.liveness = self.liveness.max(other.liveness);
        for (name, cell) in &other.cells {
            match self.cells.get(name) {
                Some(own) if !cell.supersedes(own) => {}
                _ => {
                    self.cells.insert(name.clone(), cell.clone());
                }
            }
        }
        if let Some(deletion) = self.deletion {
            self.delete(deletion.timestamp);
        }
    }
}

impl SchemaPartition {
    /// The row of a clustering.
    pub fn row(&self, clustering: &[&str]) -> Option<&SchemaRow> {
        let clustering: Vec<Vec<u8>> = clustering.iter().map(|v| v.as_bytes().to_vec()).collect();
        self.rows.get(&clustering)
    }

    /// Rows that show in a read.
    pub fn live_rows(&self) -> impl Iterator<Item = (&Vec<Vec<u8>>, &SchemaRow)> {
        self.rows.iter().filter(|(_, row)| row.is_live())
    }

    fn merge(&mut self, other: &Self) {
        self.deletion = self.deletion.max(other.deletion);
        for (clustering, row) in &other.rows {
            self.rows.entry(clustering.clone()).or_default().merge(row);
        }
        for (prefix, deletion) in &other.prefixes {
            let own = self.prefixes.entry(prefix.clone()).or_insert(*deletion);
            *own = (*own).max(*deletion);
        }
        if let Some(deletion) = self.deletion {
            self.prefixes.retain(|_, own| own.timestamp > deletion.timestamp);
        }
        for (clustering, row) in &mut self.rows {
            let prefixes =
                self.prefixes.iter().filter(|(prefix, _)| clustering.starts_with(prefix));
            for deletion in prefixes.map(|(_, deletion)| deletion).chain(&self.deletion) {
                row.delete(deletion.timestamp);
                row.deletion = row.deletion.filter(|own| own.timestamp > deletion.timestamp);
            }
        }
        self.rows.retain(|_, row| !row.is_empty());
    }
}

/// The merged rows of `system_schema`, by keyspace. This is the truth from which the model is derived: what it
/// was given, it keeps, served or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRows {
    keyspaces: BTreeMap<String, BTreeMap<SchemaTable, SchemaPartition>>,
}

impl SchemaRows {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges a mutation, from here or from a peer.
    pub fn apply(&mut self, mutation: &SchemaMutation) {
        let tables = self.keyspaces.entry(mutation.keyspace.clone()).or_default();
        for (table, update) in &mutation.updates {
            tables.entry(*table).or_default().merge(update);
        }
    }

    /// Names of all keyspaces that rows or tombstones speak of.
    pub fn keyspaces(&self) -> impl Iterator<Item = &str> {
        self.keyspaces.keys().map(String::as_str)
    }

    /// The partition of one table that describes a keyspace.
    pub fn partition(&self, keyspace: &str, table: SchemaTable) -> Option<&SchemaPartition> {
        self.keyspaces.get(keyspace)?.get(&table)
    }

    /// Everything known of a keyspace, tombstones too: what a schema pull or push sends.
    pub fn mutation(&self, keyspace: &str) -> Option<SchemaMutation> {
        let updates = self.keyspaces.get(keyspace)?.clone();
        Some(SchemaMutation { keyspace: keyspace.to_owned(), updates })
    }
}
