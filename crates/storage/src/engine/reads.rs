//! Reads of a shard: partitions, and the keys that it has.

use std::rc::Rc;
use std::sync::Arc;

use schema::{Table, TableId};

use super::Engine;
use super::memtables::NANOS;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::{KeyScan, PartitionCursor, ScanStart, Slices, locate};
use crate::sstables::SSTable;
use crate::table_store::Measure;
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
        match self.caches.rows_of(table) {
            Some(rows) => self.caches.partition(&store, key, slices, rows, trace).await,
            None => PartitionCursor::open(&self.files, &store, key, slices, trace).await,
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
        PartitionCursor::open(&self.files, &store, key, slices, trace).await
    }

    /// The keys of this shard's partitions of a table, in the order of tokens.
    ///
    /// # Errors
    /// If the table is unknown or an SSTable cannot be read.
    pub async fn scan(
        self: &Rc<Self>,
        table: &Table,
        start: ScanStart,
    ) -> Result<KeyScan, StorageError> {
        let store = self.store(table.id)?;
        store.stats.range_reads.set(store.stats.range_reads.get() + 1);
        KeyScan::start(&self.files, &store, start).await
    }

    /// Counts a read of a partition that began at `started` and took something from so many
    /// SSTables.
    pub fn read_ended(&self, table: TableId, started: env::Instant, sstables: usize) {
        if let Ok(store) = self.store(table) {
            let took = self.env.now().as_nanos().saturating_sub(started.as_nanos());
            store.stats.read_ns.set(store.stats.read_ns.get() + took);
            store.stats.record(Measure::LocalRead, took / NANOS);
            store.stats.record(Measure::SSTablesPerRead, sstables as u64 + 1);
        }
    }
}
