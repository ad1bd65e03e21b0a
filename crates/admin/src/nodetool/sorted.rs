//! `nodetool tablestats -s`: tables by one of their figures (`stats.StatsTableComparator`).

use std::cmp::Ordering;

use crate::model::TableStats;

/// What a table is sorted by: its greatest first, or its name's last.
type Figure = fn(&TableStats) -> f64;

/// Keys of `-s` in the order in which Cassandra lists them. Those of indexes are zero.
const KEYS: &[(&str, Figure)] = &[
    ("average_live_cells_per_slice_last_five_minutes", |t| t.live_cells.mean),
    ("average_tombstones_per_slice_last_five_minutes", |t| t.tombstones.mean),
    ("bloom_filter_false_positives", |t| t.filter_false_positives as f64),
    ("bloom_filter_false_ratio", |t| t.filter_false_ratio),
    ("bloom_filter_off_heap_memory_used", |t| t.filter_memory_bytes as f64),
    ("bloom_filter_space_used", |t| t.filter_space_bytes as f64),
    ("compacted_partition_maximum_bytes", |t| t.partition_bytes.max as f64),
    ("compacted_partition_mean_bytes", |t| t.partition_bytes.mean as f64),
    ("compacted_partition_minimum_bytes", |t| t.partition_bytes.min as f64),
    ("compression_metadata_off_heap_memory_used", |t| t.compression_memory_bytes as f64),
    ("dropped_mutations", |_| 0.0),
    ("full_name", |_| 0.0),
    ("index_summary_off_heap_memory_used", |t| t.summary_memory_bytes as f64),
    ("local_read_count", |t| t.reads.count as f64),
    ("local_read_latency_ms", |t| t.recent_read_micros),
    ("local_write_latency_ms", |t| t.recent_write_micros),
    ("maximum_live_cells_per_slice_last_five_minutes", |t| t.live_cells.max as f64),
    ("maximum_tombstones_per_slice_last_five_minutes", |t| t.tombstones.max as f64),
    ("memtable_cell_count", |t| t.memtable_cells as f64),
    ("memtable_data_size", |t| t.memtable_data_bytes as f64),
    ("memtable_off_heap_memory_used", |t| t.memtable_off_heap_bytes as f64),
    ("memtable_switch_count", |t| t.memtable_switches as f64),
    ("number_of_partitions_estimate", |t| t.partitions as f64),
    ("off_heap_memory_used_total", |t| {
        let parts = [
            t.memtable_off_heap_bytes,
            t.filter_memory_bytes,
            t.summary_memory_bytes,
            t.compression_memory_bytes,
        ];
        parts.into_iter().sum::<u64>() as f64
    }),
    ("pending_flushes", |t| t.pending_flushes as f64),
    ("percent_repaired", |t| t.percent_repaired),
    ("read_latency", |t| t.recent_read_micros),
    ("reads", |t| t.reads.count as f64),
    ("space_used_by_snapshots_total", |t| t.space_snapshots_bytes as f64),
    ("space_used_live", |t| t.space_live_bytes as f64),
    ("space_used_total", |t| t.space_total_bytes as f64),
    ("sstable_compression_ratio", |t| t.compression_ratio),
    ("sstable_count", |t| t.sstables as f64),
    ("table_name", |_| 0.0),
    ("write_latency", |t| t.recent_write_micros),
    ("writes", |t| t.writes.count as f64),
    ("max_sstable_size", |t| t.max_sstable_bytes as f64),
    ("local_read_write_ratio", |t| match t.writes.count {
        0 => 0.0,
        writes => t.reads.count as f64 / writes as f64,
    }),
    ("twcs_max_duration", |_| 0.0),
    ("sai_local_query_latency_ms", |_| 0.0),
    ("sai_post_filtering_read_latency", |_| 0.0),
    ("sai_disk_used_bytes", |_| 0.0),
    ("sai_sstable_indexes_hit", |_| 0.0),
    ("sai_index_segments_hit", |_| 0.0),
    ("sai_rows_filtered", |_| 0.0),
    ("sai_total_query_timeouts", |_| 0.0),
    ("sai_total_queryable_index_ratio", |_| 0.0),
];

/// Is there such a key?
pub(super) fn is_key(name: &str) -> bool {
    KEYS.iter().any(|(known, _)| *known == name)
}

/// What is said of another.
pub(super) fn wanted() -> String {
    let names: Vec<_> = KEYS.iter().map(|(name, _)| *name).collect();
    format!("argument for sort must be one of: {}", names.join(", "))
}

/// Sorts tables: those with the greatest figure first, names from the last to the first.
pub(super) fn sort(tables: &mut [&TableStats], key: &str) {
    let figure = KEYS.iter().find(|(known, _)| *known == key).map(|(_, figure)| *figure);
    let Some(figure) = figure else { return };
    let full = |t: &TableStats| (t.keyspace.clone() + "." + &t.table).into_bytes();
    tables.sort_by(|a, b| match key {
        "full_name" => full(b).cmp(&full(a)),
        "table_name" => b.table.cmp(&a.table),
        _ => {
            let number = |of: f64| if of.is_nan() { 0.0 } else { of };
            let order = number(figure(b)).total_cmp(&number(figure(a)));
            match order {
                Ordering::Equal => full(a).cmp(&full(b)),
                order => order,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cassandras() {
        assert!(is_key("writes") && !is_key("weather"));
        let wanted = wanted();
        assert!(
            wanted.starts_with("argument for sort must be one of: average_live_cells_per_slice")
        );
        assert!(wanted.ends_with("sai_total_query_timeouts, sai_total_queryable_index_ratio"));
    }
}
