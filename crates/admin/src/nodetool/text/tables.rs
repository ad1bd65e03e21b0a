//! `nodetool tablestats`: a block for each keyspace, within it one for each table.

use std::fmt::{Display, Write};

use super::number::{double, fixed, memory, size};
use super::tree::Tree;
use crate::model::{
    DataFile, KeyspacePaths, KeyspaceStats, Level, PartitionBytes, Requests, TablePaths, TableStats,
};
use crate::nodetool::sorted;

const RULE: &str = "----------------\n";

/// The text of `tablestats`.
pub(super) fn print(keyspaces: &[KeyspaceStats], human_readable: bool) -> String {
    let mut text = match keyspaces.iter().map(|of| of.tables.len()).sum::<usize>() {
        0 => String::new(),
        tables => format!("Total number of tables: {tables}\n{RULE}"),
    };
    for of in keyspaces {
        keyspace(&mut text, of);
        of.tables.iter().for_each(|of| table(&mut text, of, human_readable));
        text.push_str(RULE);
    }
    text
}

/// The text of `tablestats -s`: the `top` tables with the most of a figure; 0: all of them.
pub(super) fn print_sorted(
    keyspaces: &[KeyspaceStats],
    human_readable: bool,
    key: &str,
    top: u32,
) -> String {
    let mut tables: Vec<_> = keyspaces.iter().flat_map(|of| &of.tables).collect();
    let all = tables.len();
    if all == 0 {
        return String::new();
    }
    sorted::sort(&mut tables, key);
    let shown = if top == 0 { all } else { all.min(top as usize) };
    tables.truncate(shown);
    let mut text = format!("Total number of tables: {all}");
    if top > 0 {
        let _ = write!(text, " (showing top {shown} by {key})");
    }
    let _ = write!(text, "\n{RULE}");
    for of in tables {
        let mut block = String::new();
        let named = TableStats { table: format!("{}.{}", of.keyspace, of.table), ..of.clone() };
        let is_index = of.table.contains('.');
        table_block(&mut block, &named, is_index, human_readable);
        // one tab less than below a keyspace
        block.lines().for_each(|line| {
            let _ = writeln!(text, "{}", line.strip_prefix('\t').unwrap_or(line));
        });
    }
    text.push_str(RULE);
    text
}

/// What stands above a keyspace's tables.
fn keyspace(text: &mut String, of: &KeyspaceStats) {
    let _ = writeln!(text, "Keyspace: {}", of.keyspace);
    let _ = writeln!(text, "\tRead Count: {}", of.reads.count);
    let _ = writeln!(text, "\tRead Latency: {} ms", mean_millis(of.reads));
    let _ = writeln!(text, "\tWrite Count: {}", of.writes.count);
    let _ = writeln!(text, "\tWrite Latency: {} ms", mean_millis(of.writes));
    let _ = writeln!(text, "\tPending Flushes: {}", of.pending_flushes);
}

fn mean_millis(of: Requests) -> String {
    double(of.total_micros as f64 / of.count as f64 / 1000.0)
}

fn line(text: &mut String, name: &str, value: impl Display) {
    let _ = writeln!(text, "\t\t{name}: {value}");
}

/// A table's block.
fn table(text: &mut String, t: &TableStats, human_readable: bool) {
    table_block(text, t, t.table.contains('.'), human_readable);
}

fn table_block(text: &mut String, t: &TableStats, is_index: bool, human_readable: bool) {
    let size = |bytes| size(bytes, human_readable);
    let name = if is_index { "Table (index)" } else { "Table" };
    line(text, name, &t.table);
    line(text, "SSTable count", t.sstables);
    line(text, "Old SSTable count", t.old_sstables);
    line(text, "Max SSTable size", memory(t.max_sstable_bytes));
    if let Some(window) = &t.time_window {
        line(text, "SSTables Time Window", window);
    }
    if let Some(levels) = &t.levels {
        let count = |level: &Level| match (level.sstables, level.max_sstables) {
            (count, max) if count > max => format!("{count}/{max}"),
            (count, _) => count.to_string(),
        };
        let counts: Vec<_> = levels.iter().map(count).collect();
        line(text, "SSTables in each level", format!("[{}]", counts.join(", ")));
        let bytes: Vec<_> = levels.iter().map(|level| size(level.size_bytes)).collect();
        line(text, "SSTable bytes in each level", format!("[{}]", bytes.join(", ")));
    }
    line(text, "Space used (live)", size(t.space_live_bytes));
    line(text, "Space used (total)", size(t.space_total_bytes));
    line(text, "Space used by snapshots (total)", size(t.space_snapshots_bytes));
    let off_heap = [
        t.memtable_off_heap_bytes,
        t.filter_memory_bytes,
        t.summary_memory_bytes,
        t.compression_memory_bytes,
    ];
    line(text, "Off heap memory used (total)", size(off_heap.into_iter().sum()));
    line(text, "SSTable Compression Ratio", fixed(t.compression_ratio, 5));
    line(text, "Number of partitions (estimate)", t.partitions);
    line(text, "Memtable cell count", t.memtable_cells);
    line(text, "Memtable data size", size(t.memtable_data_bytes));
    line(text, "Memtable off heap memory used", size(t.memtable_off_heap_bytes));
    line(text, "Memtable switch count", t.memtable_switches);
    line(text, "Speculative retries", t.speculative_retries);
    requests(text, t);
    line(text, "Percent repaired", double(t.percent_repaired));
    line(text, "Bytes repaired", memory(t.repaired_bytes));
    line(text, "Bytes unrepaired", memory(t.unrepaired_bytes));
    line(text, "Bytes pending repair", memory(t.pending_repair_bytes));
    line(text, "Bloom filter false positives", t.filter_false_positives);
    line(text, "Bloom filter false ratio", fixed(t.filter_false_ratio, 5));
    line(text, "Bloom filter space used", size(t.filter_space_bytes));
    line(text, "Bloom filter off heap memory used", size(t.filter_memory_bytes));
    line(text, "Index summary off heap memory used", size(t.summary_memory_bytes));
    line(text, "Compression metadata off heap memory used", size(t.compression_memory_bytes));
    partitions(text, t);
    text.push('\n');
}

fn requests(text: &mut String, t: &TableStats) {
    let millis = |micros: f64| format!("{} ms", fixed(micros / 1000.0, 3));
    line(text, "Local read count", t.reads.count);
    line(text, "Local read latency", millis(t.recent_read_micros));
    line(text, "Local write count", t.writes.count);
    line(text, "Local write latency", millis(t.recent_write_micros));
    let ratio = match t.writes.count {
        0 => 0.0,
        writes => t.reads.count as f64 / writes as f64,
    };
    line(text, "Local read/write ratio", fixed(ratio, 5));
    line(text, "Pending flushes", t.pending_flushes);
}

fn partitions(text: &mut String, t: &TableStats) {
    let PartitionBytes { min: least, max: most, mean } = t.partition_bytes;
    line(text, "Compacted partition minimum bytes", least);
    line(text, "Compacted partition maximum bytes", most);
    line(text, "Compacted partition mean bytes", mean);
    line(text, "Average live cells per slice (last five minutes)", double(t.live_cells.mean));
    line(text, "Maximum live cells per slice (last five minutes)", t.live_cells.max);
    line(text, "Average tombstones per slice (last five minutes)", double(t.tombstones.mean));
    line(text, "Maximum tombstones per slice (last five minutes)", t.tombstones.max);
    line(text, "Droppable tombstone ratio", fixed(t.droppable_tombstone_ratio, 5));
}

/// The text of `datapaths`.
pub(super) fn data_paths(keyspaces: &[KeyspacePaths]) -> String {
    let mut text = String::new();
    for KeyspacePaths { keyspace, tables } in keyspaces {
        let _ = writeln!(text, "Keyspace: {keyspace}");
        for TablePaths { table, paths } in tables {
            let _ = writeln!(text, "\tTable: {table}\n\tPaths:");
            paths.iter().for_each(|path| _ = writeln!(text, "\t\t{path}"));
            text.push('\n');
        }
    }
    text
}

/// What `datapaths -F` prints.
pub(super) fn data_paths_tree(keyspaces: &[KeyspacePaths]) -> Tree {
    let table = |TablePaths { table, paths }: &TablePaths| {
        (table.clone(), Tree::List(paths.iter().map(Tree::text).collect()))
    };
    let keyspace = |KeyspacePaths { keyspace, tables }: &KeyspacePaths| {
        (keyspace.clone(), Tree::map(tables.iter().map(table)))
    };
    Tree::map(keyspaces.iter().map(keyspace))
}

/// The text of `getsstables`; with the level of each where `levels` and it has one.
pub(super) fn data_files(files: &[DataFile], levels: bool) -> String {
    let line = |DataFile { level, path }: &DataFile| match level.filter(|_| levels) {
        Some(level) => format!("{level}: {path}\n"),
        None => format!("{path}\n"),
    };
    files.iter().map(line).collect()
}
