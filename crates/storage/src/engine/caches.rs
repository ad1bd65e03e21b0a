//! What a shard keeps of what it read: chunks and places of keys, first rows of partitions, its
//! parts of counters.

use std::rc::Rc;

use env::Env;
use rows::PartitionUpdate;
use schema::{RowsPerPartition, Table};

use crate::caches::{
    CacheKind, CacheStats, CachedRows, Counted, CounterCache, CounterMark, CounterName, Lookup,
    Part, RowCache,
};
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::options::Options;
use crate::read::{PartitionCursor, Slices};
use crate::sstables::Files;
use crate::table_store::TableStore;
use crate::trace::Trace;

/// The caches of one shard.
pub struct Caches {
    env: Env,
    /// Open SSTables, their cached chunks, and the places of keys.
    files: Rc<Files>,
    /// The first rows of partitions.
    rows: RowCache,
    /// This node's parts of counters.
    counters: CounterCache,
}

impl Caches {
    pub(super) fn new(env: &Env, options: &Options, files: &Rc<Files>) -> Rc<Self> {
        let part = |bytes: u64| (bytes / env.shards() as u64) as usize;
        Rc::new(Self {
            env: env.clone(),
            files: Rc::clone(files),
            rows: RowCache::new(part(options.row_cache_bytes)),
            counters: CounterCache::new(part(options.counter_cache_bytes)),
        })
    }

    /// What a cache holds and did.
    pub fn stats(&self, kind: CacheKind) -> CacheStats {
        match kind {
            CacheKind::Chunks => self.files.chunk_stats(),
            CacheKind::Keys => self.files.key_stats(),
            CacheKind::Rows => self.rows.stats(),
            CacheKind::Counters => self.counters.stats(),
        }
    }

    /// Gives a cache another limit, of which this shard takes its part.
    pub fn set_limit(&self, kind: CacheKind, node_bytes: u64) {
        let limit = (node_bytes / self.env.shards() as u64) as usize;
        match kind {
            CacheKind::Chunks => self.files.set_chunk_limit(limit),
            CacheKind::Keys => self.files.set_key_limit(limit),
            CacheKind::Rows => self.rows.set_limit(limit),
            CacheKind::Counters => self.counters.set_limit(limit),
        }
    }

    /// Empties a cache.
    pub fn clear(&self, kind: CacheKind) {
        match kind {
            CacheKind::Chunks => self.files.clear_chunks(),
            CacheKind::Keys => self.files.clear_keys(),
            CacheKind::Rows => self.rows.clear(),
            CacheKind::Counters => self.counters.clear(),
        }
    }

    pub(crate) fn rows(&self) -> &RowCache {
        &self.rows
    }

    pub(crate) fn counters(&self) -> &CounterCache {
        &self.counters
    }

    /// An update has reached the memtable, and came to `counted` if it only adds to counters.
    pub(super) fn written(
        &self,
        store: &TableStore,
        update: &PartitionUpdate,
        counted: Option<&Counted>,
    ) {
        if self.rows.is_on() && !self.env.planted("row_cache_survives_write") {
            self.rows.forget(store, &update.key);
        }
        if update.layout.counter && self.counters.is_on() {
            // what was counted names columns as the update does
            let is_as_made = update.layout.has_columns_of(&store.table().layout);
            self.counters_written(store, update, counted.filter(|_| is_as_made));
        }
    }

    fn counters_written(
        &self,
        store: &TableStore,
        update: &PartitionUpdate,
        counted: Option<&Counted>,
    ) {
        let Some(counted) = counted else {
            if !self.env.planted("counter_cache_survives_delete") {
                self.counters.change(&update.key);
            }
            return;
        };
        let is_overtaken = self.counters.is_overtaken(store, &update.key, counted.mark());
        self.env.mark(if is_overtaken { "counters.overtaken" } else { "counters.kept" });
        if !is_overtaken || self.env.planted("counter_cache_keeps_overtaken") {
            self.counters.keep(store, &update.key, counted);
        }
    }

    /// To be asked for before anything of a partition is looked at that shall be counted.
    pub fn counter_mark(&self, store: &TableStore) -> CounterMark {
        self.counters.mark(store)
    }

    /// Is anything kept of counters?
    pub fn keeps_counters(&self) -> bool {
        self.counters.is_on()
    }

    /// What is kept of this node's part of a counter: what a read of it would find now.
    pub fn kept_counter(
        &self,
        mark: CounterMark,
        key: &[u8],
        counter: CounterName<'_>,
    ) -> Option<Part> {
        self.counters.get(mark, key, counter)
    }

    /// Keeps what was read of counters, by who has the turn at their partition.
    pub fn keep_counters(&self, store: &TableStore, key: &[u8], counted: &Counted) {
        if self.counters.is_on() && !self.counters.is_overtaken(store, key, counted.mark()) {
            self.counters.keep(store, key, counted);
        }
    }

    /// How many rows of each partition of a table are kept, if any.
    pub(crate) fn rows_of(&self, table: &Table) -> Option<usize> {
        match table.params.caching.rows_per_partition {
            RowsPerPartition::Head(rows) if self.rows.is_on() => Some(rows.max(1) as usize),
            RowsPerPartition::All if self.rows.is_on() => Some(usize::MAX),
            _ => None,
        }
    }

    /// A partition of a table of which so many rows are kept
    /// (`SinglePartitionReadCommand.getThroughCache`).
    pub(super) async fn partition(
        &self,
        store: &Rc<TableStore>,
        key: KeyRef<'_>,
        slices: &Slices,
        rows: usize,
        trace: &Trace,
    ) -> Result<Option<PartitionCursor>, StorageError> {
        let note = |text: &str| trace.note(&self.env, || text.to_owned());
        let files = &self.files;
        match self.rows.get(store, key.bytes) {
            Lookup::Kept(kept) => {
                if let Some(cursor) = PartitionCursor::open_kept(files, store, key, slices, &kept) {
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
                if let Some(cursor) = PartitionCursor::open_kept(files, store, key, slices, &kept) {
                    return Ok(cursor);
                }
            }
        }
        PartitionCursor::open(files, store, key, slices, trace).await
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
        let opened = PartitionCursor::open(&self.files, store, key, &all, trace).await?;
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
