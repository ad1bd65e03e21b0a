//! The tables of `system_views` with a row for each stored table: latencies, what reads went over,
//! sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::Shard;
use cluster::virtual_tables::{Histogram, Latency, TableStats};
use metrics::Distribution;
use storage::shards::Stopping;
use storage::{Measure, SSTable};

use crate::measures::measured_by_all;

/// Their names.
pub(super) const TABLES: &[&str] = &[
    "coordinator_read_latency",
    "coordinator_scan_latency",
    "coordinator_write_latency",
    "disk_usage",
    "local_read_latency",
    "local_scan_latency",
    "local_write_latency",
    "max_partition_size",
    "max_sstable_duration",
    "max_sstable_size",
    "rows_per_read",
    "tombstones_per_read",
];

/// Nanoseconds in a microsecond, in which durations are kept.
const NANOS: f64 = 1000.0;

/// What a table of numbers is about.
fn measure(name: &str) -> Option<Measure> {
    Some(match name {
        "coordinator_read_latency" => Measure::CoordinatorRead,
        "coordinator_scan_latency" => Measure::CoordinatorScan,
        "coordinator_write_latency" => Measure::CoordinatorWrite,
        "local_read_latency" => Measure::LocalRead,
        "local_scan_latency" => Measure::LocalScan,
        "local_write_latency" => Measure::LocalWrite,
        "rows_per_read" => Measure::RowsPerRead,
        "tombstones_per_read" => Measure::TombstonesPerRead,
        _ => return None,
    })
}

pub(super) fn histogram(of: &Distribution) -> Histogram {
    Histogram {
        count: of.count() as i64,
        max: of.recent_max() as f64,
        median: of.quantile(0.5) as f64,
        p99: of.quantile(0.99) as f64,
        p999: of.quantile(0.999) as f64,
    }
}

fn latency(of: &Distribution) -> Latency {
    Latency {
        count: of.count() as i64,
        max: of.recent_max() as f64 * NANOS,
        median: of.quantile(0.5) as f64 * NANOS,
        p99: of.quantile(0.99) as f64 * NANOS,
        per_second: of.recent_rate(),
    }
}

fn fill(stats: &mut TableStats, measure: Measure, of: &Distribution) {
    match measure {
        Measure::LocalRead => stats.local_read = latency(of),
        Measure::LocalScan => stats.local_scan = latency(of),
        Measure::LocalWrite => stats.local_write = latency(of),
        Measure::CoordinatorRead => stats.coordinator_read = latency(of),
        Measure::CoordinatorScan => stats.coordinator_scan = latency(of),
        Measure::CoordinatorWrite => stats.coordinator_write = latency(of),
        Measure::TombstonesPerRead => stats.tombstones_per_read = histogram(of),
        Measure::RowsPerRead => stats.rows_per_read = histogram(of),
        // No such table: nodetool alone shows them.
        Measure::SSTablesPerRead => {}
    }
}

/// Every stored table, with what the table of this name shows of it.
pub(super) async fn distributions(shard: &Shard, name: &str) -> Result<Vec<TableStats>, Stopping> {
    let measure = measure(name);
    let found = match measure {
        Some(measure) => measured_by_all(shard, measure).await?,
        None => BTreeMap::new(),
    };
    let schema = shard.engine().schema();
    let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
    let mut all = Vec::new();
    for table in tables.filter(|table| !table.is_virtual()) {
        let Ok(store) = shard.engine().store(table.id) else { continue };
        let mut stats = TableStats {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            ..TableStats::default()
        };
        if let (Some(measure), Some(of)) = (measure, found.get(&table.id)) {
            fill(&mut stats, measure, of);
        }
        sizes(&mut stats, store.live().tables());
        all.push(stats);
    }
    Ok(all)
}

fn sizes(stats: &mut TableStats, tables: &[Arc<SSTable>]) {
    let all = tables.iter().map(|sstable| (sstable.bytes_on_disk, &sstable.table.statistics.stats));
    for (bytes, of) in all {
        let bytes = bytes as i64;
        stats.disk_usage += bytes;
        stats.max_sstable_size = stats.max_sstable_size.max(bytes);
        stats.max_partition_size = stats.max_partition_size.max(of.partition_sizes.max());
        let span = of.max_timestamp.saturating_sub(of.min_timestamp);
        stats.max_sstable_duration = stats.max_sstable_duration.max(span);
    }
}
