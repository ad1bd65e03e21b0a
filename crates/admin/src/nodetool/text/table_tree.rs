//! What `nodetool tablestats -F` prints (`stats.TableStatsHolder`).

use super::number::{fixed, size};
use super::tree::Tree;
use crate::model::{KeyspaceStats, Requests, TableStats};
use crate::nodetool::sorted;

/// Of all tables, by keyspace; or, with a key, of those with the most of a figure, all as one map.
pub(super) fn stats(
    keyspaces: &[KeyspaceStats],
    human_readable: bool,
    sort: Option<(&str, u32)>,
) -> Tree {
    let mut tables: Vec<&TableStats> = keyspaces.iter().flat_map(|of| &of.tables).collect();
    let total = ("total_number_of_tables".to_owned(), Tree::Number(tables.len() as u64));
    let entries: Vec<_> = match sort {
        None => {
            keyspaces.iter().map(|of| (of.keyspace.clone(), keyspace(of, human_readable))).collect()
        }
        Some((key, top)) => {
            sorted::sort(&mut tables, key);
            if top > 0 {
                tables.truncate(top as usize);
            }
            let name = |of: &TableStats| format!("{}.{}", of.keyspace, of.table);
            tables.iter().map(|of| (name(of), table(of, human_readable))).collect()
        }
    };
    Tree::map(std::iter::once(total).chain(entries))
}

fn keyspace(of: &KeyspaceStats, human_readable: bool) -> Tree {
    let mean = |of: Requests| match of.count {
        0 => Tree::Nothing,
        count => Tree::Double(of.total_micros as f64 / count as f64 / 1000.0),
    };
    let tables = of.tables.iter().map(|of| (of.table.clone(), table(of, human_readable)));
    Tree::map([
        ("read_latency", mean(of.reads)),
        ("read_count", Tree::Number(of.reads.count)),
        ("read_latency_ms", mean(of.reads)),
        ("write_count", Tree::Number(of.writes.count)),
        ("write_latency_ms", mean(of.writes)),
        ("pending_flushes", Tree::Number(of.pending_flushes)),
        ("tables", Tree::map(tables)),
    ])
}

fn table(t: &TableStats, human_readable: bool) -> Tree {
    let bytes = |bytes| Tree::text(size(bytes, human_readable));
    let number = Tree::Number;
    let levels = t.levels.iter().flatten();
    let counts = levels.clone().map(|level| match (level.sstables, level.max_sstables) {
        (count, most) if count > most => Tree::text(format!("{count}/{most}")),
        (count, _) => Tree::text(count.to_string()),
    });
    let ratio = match t.writes.count {
        0 => 0.0,
        writes => t.reads.count as f64 / writes as f64,
    };
    let off_heap = [
        t.memtable_off_heap_bytes,
        t.filter_memory_bytes,
        t.summary_memory_bytes,
        t.compression_memory_bytes,
    ];
    let rounded = |of: f64, places| Tree::text(fixed(of, places));
    let none = || Tree::map([] as [(&str, Tree); 0]);
    Tree::map([
        ("sstable_count", number(t.sstables)),
        ("old_sstable_count", number(t.old_sstables)),
        ("sstables_in_each_level", Tree::List(counts.collect())),
        (
            "sstable_bytes_in_each_level",
            Tree::List(levels.map(|level| bytes(level.size_bytes)).collect()),
        ),
        ("max_sstable_size", number(t.max_sstable_bytes)),
        ("twcs", t.time_window.as_ref().map_or(Tree::Nothing, Tree::text)),
        ("space_used_live", bytes(t.space_live_bytes)),
        ("space_used_total", bytes(t.space_total_bytes)),
        ("space_used_by_snapshots_total", bytes(t.space_snapshots_bytes)),
        ("off_heap_memory_used_total", bytes(off_heap.into_iter().sum())),
        ("sstable_compression_ratio", Tree::Double(t.compression_ratio)),
        ("number_of_partitions_estimate", Tree::Signed(t.partitions)),
        ("memtable_cell_count", number(t.memtable_cells)),
        ("memtable_data_size", bytes(t.memtable_data_bytes)),
        ("memtable_off_heap_memory_used", bytes(t.memtable_off_heap_bytes)),
        ("memtable_switch_count", number(t.memtable_switches)),
        ("speculative_retries", number(t.speculative_retries)),
        ("local_read_count", number(t.reads.count)),
        ("local_read_latency_ms", rounded(t.recent_read_micros / 1000.0, 3)),
        ("local_write_count", number(t.writes.count)),
        ("local_write_latency_ms", rounded(t.recent_write_micros / 1000.0, 3)),
        ("local_read_write_ratio", rounded(ratio, 5)),
        ("pending_flushes", number(t.pending_flushes)),
        ("percent_repaired", Tree::Double(t.percent_repaired)),
        ("bytes_repaired", number(t.repaired_bytes)),
        ("bytes_unrepaired", number(t.unrepaired_bytes)),
        ("bytes_pending_repair", number(t.pending_repair_bytes)),
        ("bloom_filter_false_positives", number(t.filter_false_positives)),
        ("bloom_filter_false_ratio", rounded(t.filter_false_ratio, 5)),
        ("bloom_filter_space_used", bytes(t.filter_space_bytes)),
        ("bloom_filter_off_heap_memory_used", bytes(t.filter_memory_bytes)),
        ("index_summary_off_heap_memory_used", bytes(t.summary_memory_bytes)),
        ("compression_metadata_off_heap_memory_used", bytes(t.compression_memory_bytes)),
        ("compacted_partition_minimum_bytes", number(t.partition_bytes.min)),
        ("compacted_partition_maximum_bytes", number(t.partition_bytes.max)),
        ("compacted_partition_mean_bytes", number(t.partition_bytes.mean)),
        ("average_live_cells_per_slice_last_five_minutes", Tree::Double(t.live_cells.mean)),
        ("maximum_live_cells_per_slice_last_five_minutes", number(t.live_cells.max)),
        ("average_tombstones_per_slice_last_five_minutes", Tree::Double(t.tombstones.mean)),
        ("maximum_tombstones_per_slice_last_five_minutes", number(t.tombstones.max)),
        ("droppable_tombstone_ratio", rounded(t.droppable_tombstone_ratio, 5)),
        ("top_size_partitions", none()),
        ("top_tombstone_partitions", none()),
        // of tables without such indexes
        ("sai_local_query_latency_ms", rounded(0.0, 3)),
        ("sai_post_filtering_read_latency", rounded(0.0, 3)),
        ("sai_disk_used_bytes", Tree::Nothing),
        ("sai_sstable_indexes_hit", Tree::Double(0.0)),
        ("sai_index_segments_hit", Tree::Double(0.0)),
        ("sai_rows_filtered", Tree::Double(0.0)),
        ("sai_total_query_timeouts", number(0)),
        ("sai_total_queryable_index_ratio", Tree::Nothing),
    ])
}
