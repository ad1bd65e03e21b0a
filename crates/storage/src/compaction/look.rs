//! A table's SSTables as its strategy sees them.

use std::rc::Rc;
use std::sync::Arc;

use schema::{Table, TableId};
use sstable::table::Index;
use types::Token;

use super::table::TableCompactions;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::PartitionKey;
use crate::node_tables::NodeTable;
use crate::repair_status::RepairStatus;
use crate::sstables::{LiveSet, SSTable};
use crate::strategies::{Candidate, View};

/// Samples of an index at full sampling, of every `min_index_interval` keys.
const FULL_SAMPLING: u64 = 128;
/// With no more samples than this, nothing can be said of ranges.
const SAMPLES_MIN: usize = 2;

/// A table at one moment.
pub(crate) struct Look {
    pub live: Arc<LiveSet>,
    pub tables: Vec<Candidate>,
    /// The last change of the set by which new content came in.
    pub epoch: u64,
    memtable_min_timestamp: i64,
    pub now_seconds: i64,
    now_millis: i64,
    gc_before: i64,
    flush_bytes: f64,
    random: u64,
    /// A planted bug: what repairs keep apart is compacted together.
    pub mixes: bool,
}

impl Look {
    /// Looks at a table and at what its memtables hold.
    pub async fn at(
        engine: &Rc<Engine>,
        table: &Table,
        (node_table, compactions): (&NodeTable, &TableCompactions),
    ) -> Result<Self, StorageError> {
        let memtable_min_timestamp = oldest_in_memory(engine, table.id).await?;
        let now_millis = engine.env().unix_micros() / 1000;
        let mut gc_before = now_millis / 1000 - i64::from(table.params.gc_grace_seconds);
        if engine.env().planted("tombstone_purged_before_repair") {
            gc_before = now_millis / 1000;
        }
        let live = node_table.live();
        let mixes = engine.env().planted("repair_states_mixed");
        let mut tables: Vec<_> = live
            .tables()
            .iter()
            .map(|sstable| candidate(sstable, gc_before, compactions.is_busy(sstable.number)))
            .collect();
        if mixes {
            tables.iter_mut().for_each(|table| table.repair = RepairStatus::Unrepaired);
        }
        Ok(Self {
            live: Arc::clone(&live),
            tables,
            epoch: node_table.epoch(),
            memtable_min_timestamp,
            now_seconds: now_millis / 1000,
            now_millis,
            gc_before,
            flush_bytes: compactions.flush_bytes(),
            random: engine.env().random_u64(),
            mixes,
        })
    }

    /// Lets no task begin on what is known to be damaged: it would fail each time.
    pub fn leave_out_suspects(&mut self) {
        for (candidate, sstable) in self.tables.iter_mut().zip(self.live.tables()) {
            candidate.is_compacting |= sstable.is_suspect();
        }
    }

    pub fn gc_before(&self) -> i64 {
        self.gc_before
    }

    /// Shows it to `with`.
    pub fn view<T>(&self, with: impl FnOnce(&View<'_>) -> T) -> T {
        let keys_in = |id, ranges: &[(Token, Token)]| {
            let sstable = self.live.tables().iter().find(|sstable| sstable.number == id)?;
            keys_in(sstable, ranges)
        };
        let random = |below: u32| (self.random % u64::from(below.max(1))) as u32;
        with(&View {
            tables: &self.tables,
            now_millis: self.now_millis,
            gc_before: self.gc_before,
            memtable_min_timestamp: self.memtable_min_timestamp,
            flush_bytes: self.flush_bytes,
            keys_in: &keys_in,
            random: &random,
        })
    }
}

pub(crate) fn candidate(sstable: &SSTable, gc_before: i64, is_compacting: bool) -> Candidate {
    let stats = &sstable.table.statistics.stats;
    let (first, last) = sstable.table.index.keys();
    let partitions = stats.cell_counts.count();
    let cells = stats.cell_counts.mean().unwrap_or_default();
    let all = cells.saturating_mul(partitions);
    let droppable = stats.tombstone_drop_times.sum(gc_before);
    Candidate {
        id: sstable.number,
        data_bytes: sstable.table.data_length,
        total_bytes: sstable.bytes_on_disk,
        first: PartitionKey::new(first),
        last: PartitionKey::new(last),
        min_timestamp: stats.min_timestamp,
        max_timestamp: stats.max_timestamp,
        max_local_deletion_time: stats.max_local_deletion_time,
        created_millis: sstable.created_millis,
        level: sstable.level(),
        repair: sstable.repair_status(),
        droppable_ratio: if all > 0 { droppable / all as f64 } else { 0.0 },
        keys: estimated_keys(&sstable.table.index),
        cells: (cells, partitions),
        hotness: 0.0,
        is_compacting,
    }
}

/// `SSTableReader.estimatedKeys`.
fn estimated_keys(index: &Index) -> u64 {
    match index {
        Index::Big { summary, .. } => {
            (u64::from(summary.size_at_full_sampling) + 1) * u64::from(summary.min_interval)
        }
        Index::Bti { partitions, .. } => partitions.count,
    }
}

/// `SSTableReader.estimatedKeysForRanges`: from how many samples lie in the ranges. One that ends
/// where it starts is the whole ring. A trie has no samples: then too nobody knows.
fn keys_in(sstable: &SSTable, ranges: &[(Token, Token)]) -> Option<u64> {
    let summary = sstable.table.index.summary()?;
    if summary.len() <= SAMPLES_MIN {
        return None;
    }
    sampled_keys(sstable, |token| {
        ranges.iter().any(|(start, end)| start == end || (*start < token && token <= *end))
    })
}

/// The same of tokens that `is_in` says, however few samples there are.
pub(crate) fn sampled_keys(sstable: &SSTable, is_in: impl Fn(Token) -> bool) -> Option<u64> {
    let summary = sstable.table.index.summary()?;
    let keys = (0..summary.len()).filter_map(|index| summary.entry(index));
    let samples = keys.filter(|(key, _)| is_in(Token::of(key))).count() as u64;
    let keys = samples * FULL_SAMPLING * u64::from(summary.min_interval);
    Some((keys / u64::from(summary.sampling_level.max(1))).max(1))
}

/// The oldest timestamp in a table's memtables on all shards.
async fn oldest_in_memory(engine: &Rc<Engine>, id: TableId) -> Result<i64, StorageError> {
    let mut oldest = i64::MAX;
    for shard in 0..engine.shards().count() {
        let of_shard = move |engine: &Rc<Engine>| engine.memtables().oldest(id);
        oldest = oldest.min(engine.shards().call(shard, of_shard).await?);
    }
    Ok(oldest)
}
