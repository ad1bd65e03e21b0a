//! Partitions and collections that are larger, when they are written to an SSTable, than the
//! operator finds good (`SortedTableWriter.guardPartitionThreshold`, `guardCollectionSize`). They
//! are written all the same.
//!
//! `crates/cluster/src/oversized.rs` puts them into words.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rows::{CellKind, Deletion, MarkerRef, RowRef, Unfiltered};
use schema::{Column, Table};
use types::CqlType;

/// Bytes of a cell beside its value and path: timestamp, time to live, time of deletion.
const CELL_BYTES: u64 = 8 + 4 + 8;
/// Bytes of the deletion that each collection has, if only for nothing.
const DELETION_BYTES: u64 = 8 + 4;

/// Beyond the first the operator is warned, beyond the second it is an error; 0 is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeLimit {
    /// More than this: a warning.
    pub warn: u64,
    /// More than this: an error.
    pub fail: u64,
}

impl SizeLimit {
    fn is_on(self) -> bool {
        self.warn > 0 || self.fail > 0
    }

    /// The threshold that was passed, and whether it is that of an error.
    fn passed(self, value: u64) -> Option<(u64, bool)> {
        let is_beyond = |limit: u64| limit > 0 && value > limit;
        match () {
            () if is_beyond(self.fail) => Some((self.fail, true)),
            () if is_beyond(self.warn) => Some((self.warn, false)),
            () => None,
        }
    }
}

/// The limits of what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteLimits {
    /// Bytes of a partition, before compression.
    pub partition_bytes: SizeLimit,
    /// Tombstones of a partition.
    pub partition_tombstones: SizeLimit,
    /// Bytes of a collection.
    pub collection_bytes: SizeLimit,
    /// Items of a collection.
    pub collection_items: SizeLimit,
}

impl WriteLimits {
    fn are_on(&self) -> bool {
        let all = [
            self.partition_bytes,
            self.partition_tombstones,
            self.collection_bytes,
            self.collection_items,
        ];
        all.iter().any(|limit| limit.is_on())
    }
}

/// What is too large.
#[derive(Clone, Copy)]
pub enum Oversized<'a> {
    /// Bytes of a partition.
    PartitionBytes,
    /// Tombstones of a partition.
    PartitionTombstones,
    /// Bytes of a collection.
    CollectionBytes(RowRef<'a>, &'a Column),
    /// Items of a collection.
    CollectionItems(RowRef<'a>, &'a Column),
}

/// One that is.
pub struct Finding<'a> {
    /// The table.
    pub table: &'a Table,
    /// The partition's key.
    pub key: &'a [u8],
    /// The file of the data.
    pub file: &'a Path,
    /// What it is.
    pub what: Oversized<'a>,
    /// How large it is.
    pub value: u64,
    /// What it passed.
    pub threshold: u64,
    /// Is it an error?
    pub is_failure: bool,
}

/// Who is told.
pub type Tell = Rc<dyn Fn(&Finding<'_>)>;

/// Limits, and who is told of what passes them.
pub(crate) type Watcher = (WriteLimits, Tell);

/// Watches over one SSTable while it is written.
pub(crate) struct Watch {
    limits: WriteLimits,
    tell: Tell,
    table: Arc<Table>,
    file: PathBuf,
    now: i64,
    key: Vec<u8>,
    /// Where the partition began.
    start: u64,
    tombstones: u64,
}

impl Watch {
    /// Over a file of a table; none where nothing is limited.
    pub fn new(watcher: Watcher, table: &Arc<Table>, file: PathBuf, now: i64) -> Option<Self> {
        let (limits, tell) = watcher;
        let table = Arc::clone(table);
        let key = Vec::new();
        let watch = Self { limits, tell, table, file, now, key, start: 0, tombstones: 0 };
        limits.are_on().then_some(watch)
    }

    /// A partition begins at this byte.
    pub fn start(&mut self, key: &[u8], at: u64, deletion: Deletion, row: Option<RowRef<'_>>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.start = at;
        self.tombstones = u64::from(!deletion.is_live());
        if let Some(row) = row {
            self.row(row);
        }
    }

    /// It goes on.
    pub fn append(&mut self, unfiltered: Unfiltered<'_>) {
        match unfiltered {
            Unfiltered::Row(row) => self.row(row),
            Unfiltered::Marker(MarkerRef { end, start, .. }) => {
                let ends = [end, start];
                self.tombstones += ends.iter().filter(|end| !end.is_live()).count() as u64;
            }
        }
    }

    /// It ends before this byte.
    pub fn end(&self, at: u64) {
        let bytes = at.saturating_sub(self.start);
        self.check(self.limits.partition_bytes, bytes, Oversized::PartitionBytes);
        let limit = self.limits.partition_tombstones;
        self.check(limit, self.tombstones, Oversized::PartitionTombstones);
    }

    fn check(&self, limit: SizeLimit, value: u64, what: Oversized<'_>) {
        let Some((threshold, is_failure)) = limit.passed(value) else { return };
        let (table, key, file) = (&*self.table, &*self.key, &*self.file);
        (self.tell)(&Finding { table, key, file, what, value, threshold, is_failure });
    }

    fn row(&mut self, row: RowRef<'_>) {
        let is_dead = row.liveness().is_some_and(|liveness| !liveness.is_live(self.now));
        self.tombstones += u64::from(is_dead) + u64::from(!row.deletion().is_live());
        for cell in row.cells() {
            let is_dead = match cell.kind {
                CellKind::ComplexDeletion => !cell.as_deletion().is_live(),
                _ => !cell.is_live(self.now),
            };
            self.tombstones += u64::from(is_dead);
        }
        let (bytes, items) = (self.limits.collection_bytes, self.limits.collection_items);
        if bytes.is_on() || items.is_on() {
            let table = Arc::clone(&self.table);
            let columns = if row.is_static() { &table.statics } else { &table.regulars };
            columns.iter().filter(|column| is_collection(column)).for_each(|column| {
                let (count, size) = live(row, column, self.now);
                if count > 0 {
                    self.check(bytes, size, Oversized::CollectionBytes(row, column));
                    self.check(items, count, Oversized::CollectionItems(row, column));
                }
            });
        }
    }
}

fn is_collection(column: &Column) -> bool {
    let is_one =
        matches!(column.ty, CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. });
    is_one && column.ty.is_multicell()
}

/// Live items of a collection, and their bytes.
fn live(row: RowRef<'_>, column: &Column, now: i64) -> (u64, u64) {
    let is_item = |cell: &rows::CellRef<'_>| {
        cell.column == column.index && cell.kind != CellKind::ComplexDeletion && cell.is_live(now)
    };
    row.cells().filter(is_item).fold((0, DELETION_BYTES), |(count, size), cell| {
        let path = cell.path.map_or(0, <[u8]>::len);
        (count + 1, size + CELL_BYTES + (cell.value.len() + path) as u64)
    })
}
