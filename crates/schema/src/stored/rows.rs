//! Rows of `system_schema` in a simple owned shape, merged last-write-wins as any rows are.
//!
//! The tables have no static, no complex and no counter columns: a cell is named by its column, a
//! tombstone deletes a partition, the rows of a prefix of the clustering, a row or a cell.

use std::collections::BTreeMap;

use rows::{CellRef, Liveness};

use crate::stored::table::SchemaTable;

/// A deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tombstone {
    /// Deletes what was written at or before it, in microseconds.
    pub timestamp: i64,
    /// When it was made, in seconds since the epoch.
    pub local_deletion_time: i64,
}

/// A cell: live, deleted, or expiring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaCell {
    /// When it was written, in microseconds.
    pub timestamp: i64,
    /// The value; none = deleted.
    pub value: Option<Vec<u8>>,
    /// For how long, in seconds; 0: for good.
    pub ttl: i32,
    /// When it was deleted or expires, in seconds since the epoch; 0 for live cells.
    pub local_deletion_time: i64,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRow {
    /// Deletion of the row, if any.
    pub deletion: Option<Tombstone>,
    /// When the row was inserted, and until when it lives.
    pub liveness: Option<Liveness>,
    /// Cells by the column's name.
    pub cells: BTreeMap<String, SchemaCell>,
}

/// The part of one table that describes one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaPartition {
    /// Deletion of the partition, if any.
    pub deletion: Option<Tombstone>,
    /// Deletions of all rows whose clustering starts with these values: an operator's clean-up
    /// makes them.
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

impl SchemaMutation {
    /// Leaves out column `cdc`, which older nodes do not know: a node without `cdc_enabled` sends
    /// it nobody.
    pub fn without_cdc(mut self) -> Self {
        for table in [SchemaTable::Tables, SchemaTable::Views] {
            let partition = self.updates.get_mut(&table);
            for row in partition.into_iter().flat_map(|partition| partition.rows.values_mut()) {
                row.cells.remove("cdc");
            }
        }
        self
    }
}

impl SchemaCell {
    /// A live cell.
    pub fn live(timestamp: i64, value: Vec<u8>) -> Self {
        Self { timestamp, value: Some(value), ttl: 0, local_deletion_time: 0 }
    }

    /// As a cell of a column.
    pub(crate) fn as_ref(&self, column: u16) -> CellRef<'_> {
        let (timestamp, at) = (self.timestamp, self.local_deletion_time);
        match &self.value {
            None => CellRef::tombstone(column, None, timestamp, at),
            Some(value) if self.ttl == 0 => CellRef::live(column, None, timestamp, value),
            Some(value) => CellRef::expiring(column, None, timestamp, self.ttl, at, value),
        }
    }

    /// Is there a value at `now` (seconds)?
    fn is_live(&self, now: i64) -> bool {
        self.value.is_some() && (self.ttl == 0 || now < self.local_deletion_time)
    }

    /// Does this one win over another of the same column?
    fn supersedes(&self, other: &Self) -> bool {
        let (own, other) = (self.as_ref(0), other.as_ref(0));
        own != other && rows::reconcile(other, own) == own
    }
}

impl SchemaRow {
    /// Does it show in a read at `now` (seconds)? (Not if it is a tombstone only.)
    pub fn is_live(&self, now: i64) -> bool {
        self.liveness.is_some_and(|liveness| liveness.is_live(now))
            || self.cells.values().any(|cell| cell.is_live(now))
    }

    /// What a read at `now` shows of it.
    pub(crate) fn live_at(&self, now: i64) -> Self {
        let live = self.cells.iter().filter(|(_, cell)| cell.is_live(now));
        Self {
            deletion: None,
            liveness: self.liveness.filter(|liveness| liveness.is_live(now)),
            cells: live.map(|(name, cell)| (name.clone(), cell.clone())).collect(),
        }
    }

    /// The value of a column at `now`.
    pub fn get(&self, column: &str, now: i64) -> Option<&[u8]> {
        self.cells.get(column).filter(|cell| cell.is_live(now))?.value.as_deref()
    }

    fn is_empty(&self) -> bool {
        self.deletion.is_none() && self.liveness.is_none() && self.cells.is_empty()
    }

    /// Drops what a deletion deletes.
    fn delete(&mut self, timestamp: i64) {
        self.liveness = self.liveness.filter(|liveness| liveness.timestamp > timestamp);
        self.cells.retain(|_, cell| cell.timestamp > timestamp);
    }

    fn merge(&mut self, other: &Self) {
        self.deletion = self.deletion.max(other.deletion);
        self.liveness = match (self.liveness, other.liveness) {
            (Some(own), Some(other)) => Some(if other.supersedes(&own) { other } else { own }),
            (own, other) => own.or(other),
        };
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

    /// Rows that show in a read at `now` (seconds).
    pub fn live_rows(&self, now: i64) -> impl Iterator<Item = (&Vec<Vec<u8>>, &SchemaRow)> {
        self.rows.iter().filter(move |(_, row)| row.is_live(now))
    }

    fn newest(&self) -> Option<i64> {
        let of_row = |row: &SchemaRow| {
            let cells = row.cells.values().map(|cell| cell.timestamp);
            let liveness = row.liveness.map(|liveness| liveness.timestamp);
            cells.chain(liveness).chain(row.deletion.map(|deletion| deletion.timestamp)).max()
        };
        let deletions = self.deletion.iter().chain(self.prefixes.values());
        let deletions = deletions.map(|deletion| deletion.timestamp);
        self.rows.values().filter_map(of_row).chain(deletions).max()
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

/// The merged rows of `system_schema`, by keyspace. This is the truth from which the model is
/// derived: what it was given, it keeps, served or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRows {
    keyspaces: BTreeMap<String, BTreeMap<SchemaTable, SchemaPartition>>,
}

impl SchemaRows {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges a mutation, from here or from a peer. Did it say anything new?
    pub fn apply(&mut self, mutation: &SchemaMutation) -> bool {
        let tables = self.keyspaces.entry(mutation.keyspace.clone()).or_default();
        let mut is_new = false;
        for (table, update) in &mutation.updates {
            let own = tables.entry(*table).or_default();
            let before = own.clone();
            own.merge(update);
            is_new |= *own != before;
        }
        is_new
    }

    /// The newest timestamp in what is known of a keyspace, in microseconds: a change has to be
    /// newer to count.
    pub fn newest(&self, keyspace: &str) -> Option<i64> {
        let tables = self.keyspaces.get(keyspace)?.values();
        tables.filter_map(SchemaPartition::newest).max()
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
