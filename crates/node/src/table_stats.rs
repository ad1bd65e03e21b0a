//! `nodetool tablestats`: what all shards count of each table, and what its SSTables say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admin::{PartitionBytes, PerRead, Requests, TableStats};
use cluster::Shard;
use env::Env;
use schema::{Table, TableId};
use sstable::table::Storage;
use storage::shards::Stopping;
use storage::{Engine, LiveSet, SSTable, TableStore};

use crate::all_shards::ask_all;
use crate::figures::NANOS;

/// Bytes that a filter's file has beside its bits: their number and that of the hashes.
const FILTER_HEAD: u64 = 8;

/// What shards count of a table, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reads: u64,
    read_ns: u64,
    writes: u64,
    write_ns: u64,
    switches: u64,
    filter_checks: u64,
    filter_misses: u64,
    speculative_retries: u64,
    memtable_bytes: u64,
    memtable_operations: u64,
    memtable_partitions: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_ns += other.read_ns;
        self.writes += other.writes;
        self.write_ns += other.write_ns;
        self.switches += other.switches;
        self.filter_checks += other.filter_checks;
        self.filter_misses += other.filter_misses;
        self.speculative_retries += other.speculative_retries;
        self.memtable_bytes += other.memtable_bytes;
        self.memtable_operations += other.memtable_operations;
        self.memtable_partitions += other.memtable_partitions;
    }
}

/// One shard's counts.
fn counts(engine: &Engine) -> Vec<(TableId, Counts)> {
    let counts = |store: &TableStore| {
        let stats = &store.stats;
        let (active, frozen) = store.memtable_bytes();
        let slot = store.active();
        let memtable = slot.read();
        Counts {
            reads: stats.reads.get(),
            read_ns: stats.read_ns.get(),
            writes: stats.writes.get(),
            write_ns: stats.write_ns.get(),
            switches: stats.flushes.get(),
            filter_checks: stats.filter_checks.get(),
            filter_misses: stats.filter_misses.get(),
            speculative_retries: stats.speculative_retries.get(),
            memtable_bytes: (active + frozen) as u64,
            memtable_operations: memtable.operations(),
            memtable_partitions: memtable.len() as u64,
        }
    };
    engine.stores().iter().map(|(id, store)| (*id, counts(store))).collect()
}

/// Of all tables but virtual ones, by keyspace and name; on the first shard.
///
/// # Errors
/// If a shard ends first.
pub(crate) async fn table_stats(
    shard: &Shard,
    data_directories: &[PathBuf],
) -> Result<Vec<TableStats>, Stopping> {
    let mut by_table: BTreeMap<TableId, Counts> = BTreeMap::new();
    for of_shard in ask_all(shard.others(), |there| counts(there.engine())).await? {
        for (id, more) in of_shard {
            by_table.entry(id).or_default().add(&more);
        }
    }
    let engine = shard.engine();
    let (env, schema) = (engine.env(), engine.schema());
    let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
    let mut all = Vec::new();
    for table in tables.filter(|table| !table.is_virtual()) {
        let Ok(store) = engine.store(table.id) else { continue };
        let counts = by_table.get(&table.id).copied().unwrap_or_default();
        let now = env.unix_micros() / 1_000_000;
        let mut stats = describe(table, &store.live(), &counts, now);
        for directory in data_directories {
            let directory = storage::table_directory(directory, table);
            stats.space_snapshots_bytes += snapshots(env, &directory).await;
        }
        all.push(stats);
        env.maybe_yield().await;
    }
    Ok(all)
}

/// Bytes of a table's snapshots; what cannot be read counts nothing.
async fn snapshots(env: &Env, directory: &Path) -> u64 {
    let root = directory.join("snapshots");
    if !env.exists(&root).await.unwrap_or(false) {
        return 0;
    }
    let mut bytes = 0;
    for snapshot in env.read_dir(&root).await.unwrap_or_default() {
        let directory = root.join(&snapshot.name);
        for file in env.read_dir(&directory).await.unwrap_or_default() {
            let metadata = env.metadata(directory.join(&file.name)).await;
            bytes += metadata.ok().flatten().map_or(0, |metadata| metadata.len);
        }
    }
    bytes
}

/// Mean time of each of `count`, in microseconds; NaN without any.
fn mean(ns: u64, count: u64) -> f64 {
    ns as f64 / NANOS as f64 / count as f64
}

fn describe(table: &Arc<Table>, live: &LiveSet, counts: &Counts, now: i64) -> TableStats {
    let tables = live.tables();
    let sum = |of: fn(&Arc<SSTable>) -> u64| tables.iter().map(of).sum::<u64>();
    let space = sum(|sstable| sstable.bytes_on_disk);
    let uncompressed = |s: &Arc<SSTable>| s.table.uncompressed_length();
    let repaired = |s: &&Arc<SSTable>| s.repair_status().is_repaired();
    let in_repair = |s: &&Arc<SSTable>| s.repair_status().session().is_some();
    let bytes_repaired: u64 = tables.iter().filter(repaired).map(uncompressed).sum();
    let bytes_pending_repair: u64 = tables.iter().filter(in_repair).map(uncompressed).sum();
    let all: u64 = tables.iter().map(uncompressed).sum();
    let filter_memory = sum(|s| s.table.filter.as_ref().map_or(0, |f| f.size() as u64));
    let filter_space =
        sum(|s| s.table.filter.as_ref().map_or(0, |f| f.size() as u64 + FILTER_HEAD));
    let estimate = |s: &Arc<SSTable>| s.table.statistics.stats.partition_sizes.count();
    let partitions = tables.iter().map(estimate).sum::<i64>();
    TableStats {
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
        sstables: tables.len() as u64,
        old_sstables: 0,
        max_sstable_bytes: tables.iter().map(|s| s.bytes_on_disk).max().unwrap_or(0),
        time_window: None,
        levels: None,
        space_live_bytes: space,
        space_total_bytes: space,
        space_snapshots_bytes: 0,
        compression_ratio: compression_ratio(tables),
        partitions: partitions.saturating_add_unsigned(counts.memtable_partitions),
        memtable_cells: counts.memtable_operations,
        memtable_data_bytes: counts.memtable_bytes,
        memtable_off_heap_bytes: counts.memtable_bytes,
        memtable_switches: counts.switches,
        speculative_retries: counts.speculative_retries,
        reads: Requests { count: counts.reads, total_micros: counts.read_ns / NANOS },
        writes: Requests { count: counts.writes, total_micros: counts.write_ns / NANOS },
        recent_read_micros: mean(counts.read_ns, counts.reads),
        recent_write_micros: mean(counts.write_ns, counts.writes),
        pending_flushes: 0,
        percent_repaired: percent_repaired(tables),
        repaired_bytes: bytes_repaired,
        unrepaired_bytes: all.saturating_sub(bytes_repaired).saturating_sub(bytes_pending_repair),
        pending_repair_bytes: bytes_pending_repair,
        filter_false_positives: counts.filter_misses,
        filter_false_ratio: counts.filter_misses as f64 / counts.filter_checks.max(1) as f64,
        filter_space_bytes: filter_space,
        filter_memory_bytes: filter_memory,
        summary_memory_bytes: sum(|s| {
            s.table.index.summary().map_or(0, |summary| summary.memory() as u64)
        }),
        compression_memory_bytes: sum(|s| match &s.table.storage {
            Storage::Compressed(info, _) => (info.offsets.len() * size_of::<u64>()) as u64,
            Storage::Plain(_) => 0,
        }),
        partition_bytes: partition_sizes(tables),
        live_cells: PerRead { mean: f64::NAN, max: 0 },
        tombstones: PerRead { mean: f64::NAN, max: 0 },
        droppable_tombstone_ratio: droppable(table, tables, now),
    }
}

/// 100 where there is nothing to repair.
pub(crate) fn percent_repaired(tables: &[Arc<SSTable>]) -> f64 {
    let bytes = |of: &Arc<SSTable>| of.table.uncompressed_length();
    let repaired = tables.iter().filter(|of| of.repair_status().is_repaired());
    let (repaired, all) = (repaired.map(bytes).sum::<u64>(), tables.iter().map(bytes).sum::<u64>());
    if all == 0 { 100.0 } else { repaired as f64 * 100.0 / all as f64 }
}

fn compression_ratio(tables: &[Arc<SSTable>]) -> f64 {
    let compressed = tables.iter().filter(|s| matches!(s.table.storage, Storage::Compressed(..)));
    let lengths = compressed.map(|s| (s.table.data_length, s.table.uncompressed_length()));
    let (stored, all) = lengths.fold((0, 0), |(a, b), (stored, all)| (a + stored, b + all));
    if all == 0 { -1.0 } else { stored as f64 / all as f64 }
}

/// Smallest, largest and mean.
fn partition_sizes(tables: &[Arc<SSTable>]) -> PartitionBytes {
    let sizes = || tables.iter().map(|s| &s.table.statistics.stats.partition_sizes);
    let positive = |n: i64| u64::try_from(n).unwrap_or(0);
    let weighed = |s: &sstable::histogram::EstimatedHistogram| {
        let count = i128::from(s.count());
        (i128::from(s.mean().unwrap_or(0)) * count, count)
    };
    let (sum, count) = sizes().map(weighed).fold((0, 0), |(a, b), (sum, n)| (a + sum, b + n));
    let mean = if count == 0 { 0 } else { u64::try_from(sum / count).unwrap_or(0) };
    let least = sizes().map(|s| s.min()).min().unwrap_or(0);
    let most = sizes().map(|s| s.max()).max().unwrap_or(0);
    PartitionBytes { min: positive(least), max: positive(most), mean }
}

/// Share of the cells that are tombstones past `gc_grace_seconds`, about.
fn droppable(table: &Table, tables: &[Arc<SSTable>], now: i64) -> f64 {
    let before = now - i64::from(table.params.gc_grace_seconds);
    let stats = || tables.iter().map(|s| &s.table.statistics.stats);
    let dropped: f64 = stats().map(|s| s.tombstone_drop_times.sum(before)).sum();
    let cells: f64 = stats()
        .map(|s| s.cell_counts.mean().unwrap_or(0) as f64 * s.cell_counts.count() as f64)
        .sum();
    if cells > 0.0 { dropped / cells } else { 0.0 }
}
