//! Reads of partitions, with what is kept of their rows.

use std::rc::Rc;
use std::sync::Arc;

use schema::{RowsPerPartition, Table, TableId};

use super::Engine;
use crate::caches::{CachedRows, Lookup};
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::{PartitionCursor, Slices, locate};
use crate::sstables::SSTable;
use crate::table_store::TableStore;
use crate::trace::Trace;

impl Engine {
    /// The SSTables of a table that have a partition.
    ///
    /// # Errors
    /// If the table is unknown or an index cannot be read.
    pub async fn sstables_with(
        &self,
        table: TableId,
        key: KeyRef<'_>,
    ) -> Result<Vec<Arc<SSTable>>, StorageError> {
        let live = self.store(table)?.live();
        let mut found = Vec::new();
        for sstable in live.candidates(key) {
            if locate(&self.files, sstable, key, false).await?.is_some() {
                found.push(Arc::clone(sstable));
            }
        }
        Ok(found)
    }

    /// A partition of this shard, in slices.
    ///
    /// # Errors
    /// If the table is unknown or an SSTable cannot be read.
    pub async fn partition(
        &self,
        table: &Table,
        key: KeyRef<'_>,
        slices: &Slices,
    ) -> Result<Option<PartitionCursor>, StorageError> {
        self.traced_partition(table, key, slices, &Trace::OFF).await
    }

    /// As [`Self::partition`], for a request that may be traced.
    ///
    /// # Errors
    /// If the table is unknown or an SSTable cannot be read.
    pub async fn traced_partition(
        &self,
        table: &Table,
        key: KeyRef<'_>,
        slices: &Slices,
        trace: &Trace,
    ) -> Result<Option<PartitionCursor>, StorageError> {
        let store = self.store(table.id)?;
        store.stats.reads.set(store.stats.reads.get() + 1);
        match self.rows_kept(table) {
            Some(rows) => self.partition_through_cache(&store, key, slices, rows, trace).await,
            None => PartitionCursor::open(self, &store, key, slices, trace).await,
        }
    }

    /// How many rows of each partition of a table are kept, if any.
    pub(crate) fn rows_kept(&self, table: &Table) -> Option<usize> {
        match table.params.caching.rows_per_partition {
            RowsPerPartition::Head(rows) if self.rows.is_on() => Some(rows.max(1) as usize),
            RowsPerPartition::All if self.rows.is_on() => Some(usize::MAX),
            _ => None,
        }
    }

    /// As [`Self::traced_partition`], for reads of many partitions, which no cache of rows need
    /// remember.
    ///
    /// # Errors
    /// If the table is unknown or an SSTable cannot be read.
    pub async fn scanned_partition(
        &self,
        table: &Table,
        key: KeyRef<'_>,
        slices: &Slices,
        trace: &Trace,
    ) -> Result<Option<PartitionCursor>, StorageError> {
        let store = self.store(table.id)?;
        store.stats.reads.set(store.stats.reads.get() + 1);
        PartitionCursor::open(self, &store, key, slices, trace).await
    }

    /// A partition of a table of which so many rows are kept
    /// (`SinglePartitionReadCommand.getThroughCache`).
    async fn partition_through_cache(
        &self,
        store: &Rc<TableStore>,
        key: KeyRef<'_>,
        slices: &Slices,
        rows: usize,
        trace: &Trace,
    ) -> Result<Option<PartitionCursor>, StorageError> {
        let note = |text: &str| trace.note(&self.env, || text.to_owned());
        match self.rows.get(store, key.bytes) {
            Lookup::Kept(kept) => {
                if let Some(cursor) = PartitionCursor::open_kept(self, store, key, slices, &kept) {
                    note("Row cache hit");
                    return Ok(cursor);
                }
                note("Ignoring row cache as cached value could not satisfy query");
            }
            Lookup::Filling => note("Row cache miss (race)"),
            Lookup::Absent if rows < usize::MAX && !slices.from_the_start() => {
                note(
                    "Fetching data but not populating cache as query does not query from the start of the partition",
                );
            }
            Lookup::Absent => {
                note("Row cache miss");
                let kept = self.fill_rows(store, key, rows, trace).await?;
                if let Some(cursor) = PartitionCursor::open_kept(self, store, key, slices, &kept) {
                    return Ok(cursor);
                }
            }
        }
        PartitionCursor::open(self, store, key, slices, trace).await
    }

    /// Reads the first rows of a partition to keep them.
    pub(crate) async fn fill_rows(
        &self,
        store: &Rc<TableStore>,
        key: KeyRef<'_>,
        rows: usize,
        trace: &Trace,
    ) -> Result<Rc<CachedRows>, StorageError> {
        let fill = self.rows.fill(store, key.bytes);
        let (table, all) = (store.table(), Slices::all(false));
        let opened = PartitionCursor::open(self, store, key, &all, trace).await?;
        let (update, upto) = match opened {
            None => (None, None),
            Some(opened) => {
                let bytes = self.rows.partition_bytes_max();
                let (update, upto) = opened.into_first(key.bytes, rows, bytes).await?;
                (Some(update), upto)
            }
        };
        let kept = Rc::new(CachedRows::new(&table, update.as_ref(), upto));
        fill.end(&kept, &self.env);
        Ok(kept)
    }
}
