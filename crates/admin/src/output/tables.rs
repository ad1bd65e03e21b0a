//! `nodetool tablestats`: a block for each keyspace, within it one for each table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use super::number::{double, fixed, memory, size};
use crate::operator::{OperatorError, TableStats};
use crate::verb::TableFilter;

const RULE: &str = "----------------\n";

/// A keyspace to show.
pub(crate) struct Group<'a> {
    name: &'a str,
    /// Of the keyspace, shown or not.
    all: Vec<&'a TableStats>,
    /// Those to show.
    pub shown: Vec<&'a TableStats>,
}

/// The tables that `filter` asks for, by keyspace, those without any left out; refuses names that
/// stand for nothing, as Cassandra's `OptionFilter`.
pub(crate) fn select<'a>(
    tables: &'a [TableStats],
    keyspaces: &BTreeSet<String>,
    filter: &TableFilter,
) -> Result<Vec<Group<'a>>, OperatorError> {
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in &filter.names {
        let (keyspace, table) = name.split_once('.').unwrap_or((name, ""));
        let tables = named.entry(keyspace).or_default();
        if !table.is_empty() {
            tables.insert(table);
        }
    }
    if let Some(unknown) = named.keys().find(|name| !keyspaces.contains(**name)) {
        return Err(OperatorError::BadUse(format!("Unknown keyspace: {unknown}")));
    }
    for (keyspace, wanted) in &named {
        let exists =
            |table: &str| tables.iter().any(|t| t.keyspace == *keyspace && t.table == table);
        let unknown: Vec<&str> = wanted.iter().copied().filter(|table| !exists(table)).collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            let text = format!("Unknown tables: [{unknown}] in keyspace: {keyspace}");
            return Err(OperatorError::BadUse(text));
        }
    }
    let is_named = |table: &TableStats| match named.get(table.keyspace.as_str()) {
        None => filter.names.is_empty(),
        Some(tables) => tables.is_empty() || tables.contains(table.table.as_str()),
    };
    let mut groups: Vec<Group<'a>> = Vec::new();
    for table in tables {
        if groups.last().is_none_or(|group| group.name != table.keyspace) {
            groups.push(Group { name: &table.keyspace, all: Vec::new(), shown: Vec::new() });
        }
        if let Some(group) = groups.last_mut() {
            group.all.push(table);
            if is_named(table) != filter.ignore {
                group.shown.push(table);
            }
        }
    }
    groups.retain(|group| !group.shown.is_empty());
    Ok(groups)
}

/// What stands above all keyspaces; nothing if none is shown.
pub(crate) fn head(groups: &[Group<'_>]) -> String {
    match groups.iter().map(|group| group.shown.len()).sum::<usize>() {
        0 => String::new(),
        tables => format!("Total number of tables: {tables}\n{RULE}"),
    }
}

/// What stands above a keyspace's tables.
pub(crate) fn group_head(group: &Group<'_>) -> String {
    let sum = |of: fn(&TableStats) -> (u64, u64)| {
        group.all.iter().fold((0u64, 0u64), |(count, time), table| {
            let (n, t) = of(table);
            (count.saturating_add(n), time.saturating_add(t))
        })
    };
    let (reads, writes) = (sum(|t| t.reads), sum(|t| t.writes));
    let pending: u64 = group.all.iter().map(|t| t.pending_flushes).sum();
    let text = &mut String::new();
    let _ = writeln!(text, "Keyspace: {}", group.name);
    let _ = writeln!(text, "\tRead Count: {}", reads.0);
    let _ = writeln!(text, "\tRead Latency: {} ms", mean_millis(reads));
    let _ = writeln!(text, "\tWrite Count: {}", writes.0);
    let _ = writeln!(text, "\tWrite Latency: {} ms", mean_millis(writes));
    let _ = writeln!(text, "\tPending Flushes: {pending}");
    std::mem::take(text)
}

/// What stands below a keyspace's tables.
pub(crate) fn group_foot() -> &'static str {
    RULE
}

fn mean_millis((count, micros): (u64, u64)) -> String {
    double(micros as f64 / count as f64 / 1000.0)
}

fn line(text: &mut String, name: &str, value: impl Display) {
    let _ = writeln!(text, "\t\t{name}: {value}");
}

/// A table's block.
pub(crate) fn table(t: &TableStats, human_readable: bool) -> String {
    let text = &mut String::new();
    let size = |bytes| size(bytes, human_readable);
    let name = if t.table.contains('.') { "Table (index)" } else { "Table" };
    line(text, name, &t.table);
    line(text, "SSTable count", t.sstables);
    line(text, "Old SSTable count", t.old_sstables);
    line(text, "Max SSTable size", memory(t.max_sstable_size));
    if let Some(window) = &t.time_window {
        line(text, "SSTables Time Window", window);
    }
    if let Some(levels) = &t.levels {
        let counts: Vec<_> = levels.iter().map(|(count, _)| count.as_str()).collect();
        line(text, "SSTables in each level", format!("[{}]", counts.join(", ")));
        let bytes: Vec<_> = levels.iter().map(|(_, bytes)| size(*bytes)).collect();
        line(text, "SSTable bytes in each level", format!("[{}]", bytes.join(", ")));
    }
    line(text, "Space used (live)", size(t.space_live));
    line(text, "Space used (total)", size(t.space_total));
    line(text, "Space used by snapshots (total)", size(t.space_snapshots));
    let off_heap = [t.memtable_off_heap, t.filter_memory, t.summary_memory, t.compression_memory];
    line(text, "Off heap memory used (total)", size(off_heap.into_iter().sum()));
    line(text, "SSTable Compression Ratio", fixed(t.compression_ratio, 5));
    line(text, "Number of partitions (estimate)", t.partitions);
    line(text, "Memtable cell count", t.memtable_cells);
    line(text, "Memtable data size", size(t.memtable_size));
    line(text, "Memtable off heap memory used", size(t.memtable_off_heap));
    line(text, "Memtable switch count", t.memtable_switches);
    line(text, "Speculative retries", t.speculative_retries);
    requests(text, t);
    line(text, "Percent repaired", double(t.percent_repaired));
    line(text, "Bytes repaired", memory(t.bytes_repaired));
    line(text, "Bytes unrepaired", memory(t.bytes_unrepaired));
    line(text, "Bytes pending repair", memory(t.bytes_pending_repair));
    line(text, "Bloom filter false positives", t.filter_false_positives);
    line(text, "Bloom filter false ratio", fixed(t.filter_false_ratio, 5));
    line(text, "Bloom filter space used", size(t.filter_space));
    line(text, "Bloom filter off heap memory used", size(t.filter_memory));
    line(text, "Index summary off heap memory used", size(t.summary_memory));
    line(text, "Compression metadata off heap memory used", size(t.compression_memory));
    partitions(text, t);
    text.push('\n');
    std::mem::take(text)
}

fn requests(text: &mut String, t: &TableStats) {
    let millis = |micros: f64| format!("{} ms", fixed(micros / 1000.0, 3));
    line(text, "Local read count", t.reads.0);
    line(text, "Local read latency", millis(t.recent_read_latency));
    line(text, "Local write count", t.writes.0);
    line(text, "Local write latency", millis(t.recent_write_latency));
    let ratio = match t.writes.0 {
        0 => 0.0,
        writes => t.reads.0 as f64 / writes as f64,
    };
    line(text, "Local read/write ratio", fixed(ratio, 5));
    line(text, "Pending flushes", t.pending_flushes);
}

fn partitions(text: &mut String, t: &TableStats) {
    let (least, most, mean) = t.partition_sizes;
    line(text, "Compacted partition minimum bytes", least);
    line(text, "Compacted partition maximum bytes", most);
    line(text, "Compacted partition mean bytes", mean);
    line(text, "Average live cells per slice (last five minutes)", double(t.live_cells.0));
    line(text, "Maximum live cells per slice (last five minutes)", t.live_cells.1);
    line(text, "Average tombstones per slice (last five minutes)", double(t.tombstones.0));
    line(text, "Maximum tombstones per slice (last five minutes)", t.tombstones.1);
    line(text, "Droppable tombstone ratio", fixed(t.droppable_tombstones, 5));
}
