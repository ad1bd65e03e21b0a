//! What clients ask of a node, in terms that any make of client can translate: writes of rows, and
//! reads.
//!
//! Two tables of one keyspace, `k INT, c INT, s BLOB STATIC, a BLOB, b BIGINT, PRIMARY KEY (k, c)`:
//! the first in ascending order and keeping its tombstones, the second in descending order and
//! purging them at once.

use std::collections::BTreeSet;

/// Tables that the clients use.
pub const TABLES: u8 = 2;

/// A partition: which table, which key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    /// Number of the table, below [`TABLES`].
    pub table: u8,
    /// Its partition key.
    pub key: i32,
}

impl Partition {
    /// Does the table cluster in descending order?
    pub fn is_descending(self) -> bool {
        self.table == 1
    }
}

/// A value that is written once and says itself whether it is whole: a number, and as a blob that
/// number followed by bytes that follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value(pub u64);

impl Value {
    /// As a blob of 8 to 400 bytes.
    pub fn to_blob(self) -> Vec<u8> {
        const SIZES: [usize; 8] = [0, 8, 20, 40, 60, 100, 250, 392];
        let mixed = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let size = SIZES[(mixed >> 61) as usize];
        let padding = (0..size).map(|at| (mixed >> (at % 56)) as u8);
        self.0.to_be_bytes().into_iter().chain(padding).collect()
    }

    /// Out of a blob; `None` if it is not one that [`Value::to_blob`] makes.
    pub fn from_blob(blob: &[u8]) -> Option<Self> {
        let value = Self(u64::from_be_bytes(blob.get(..8)?.try_into().ok()?));
        (value.to_blob() == blob).then_some(value)
    }
}

/// A column that a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// The blob.
    A,
    /// The number.
    B,
}

/// A part of a clustering: `None` reaches to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least value, and whether it belongs to the range.
    pub from: Option<(i32, bool)>,
    /// The greatest value, and whether it belongs to the range.
    pub to: Option<(i32, bool)>,
}

impl Range {
    /// Of everything.
    pub const ALL: Self = Self { from: None, to: None };

    /// Is a value in it?
    pub fn contains(&self, value: i32) -> bool {
        let after = self.from.is_none_or(|(at, with)| value > at || (with && value == at));
        let before = self.to.is_none_or(|(at, with)| value < at || (with && value == at));
        after && before
    }
}

/// One change of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `INSERT`: a row that is there even without values.
    Insert {
        /// Clustering.
        row: i32,
        /// Column `a`.
        a: Value,
        /// Column `b`, if it is set.
        b: Option<Value>,
        /// `USING TTL`, in seconds.
        ttl: Option<u32>,
    },
    /// `UPDATE` of one column, or `DELETE` of it where there is no value.
    Set {
        /// Clustering.
        row: i32,
        /// The column.
        column: Column,
        /// What it becomes.
        value: Option<Value>,
        /// `USING TTL`, in seconds.
        ttl: Option<u32>,
    },
    /// `UPDATE` or `DELETE` of the static column.
    Static {
        /// What it becomes.
        value: Option<Value>,
    },
    /// `DELETE` of a row.
    DeleteRow {
        /// Clustering.
        row: i32,
    },
    /// `DELETE` of a range.
    DeleteRange {
        /// Which.
        range: Range,
    },
    /// `DELETE` of the partition.
    DeletePartition,
}

/// Changes that one request asks for.
#[derive(Clone, Debug)]
pub struct Write {
    /// Each with its partition.
    pub changes: Vec<(Partition, Change)>,
}

impl Write {
    /// Do its changes happen together or not at all? Those of one key do, as one mutation. Those of
    /// several keys do as a logged batch, of the table that keeps its tombstones: where they go at
    /// once, a batch that is applied again after a crash may bring back what was deleted since, in
    /// Cassandra too.
    pub fn is_atomic(&self) -> bool {
        let keys: BTreeSet<i32> = self.changes.iter().map(|(partition, _)| partition.key).collect();
        keys.len() == 1 || self.changes.iter().all(|(partition, _)| partition.table == 0)
    }
}

/// A read of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// The partition.
    pub partition: Partition,
    /// Which rows.
    pub range: Range,
    /// `ORDER BY` against the table's order?
    pub reversed: bool,
    /// Rows of a page; `None` for all at once.
    pub page: Option<u32>,
}

impl Query {
    /// The whole partition at once.
    pub fn all(partition: Partition) -> Self {
        Self { partition, range: Range::ALL, reversed: false, page: None }
    }

    /// Do the rows come with growing clustering?
    pub fn is_ascending(&self) -> bool {
        self.partition.is_descending() == self.reversed
    }
}

/// A row as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Clustering.
    pub row: i32,
    /// Column `a`.
    pub a: Option<Value>,
    /// Column `b`.
    pub b: Option<Value>,
}

/// What a read gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The static column; outer `None` if the read does not tell.
    pub statics: Option<Option<Value>>,
    /// The rows in the order they came.
    pub rows: Vec<Row>,
    /// The second that counted as now.
    pub now: i64,
}
