//! `nodetool compactionstats`.

use super::columns::Columns;
use super::number::{double, file_size, size};
use crate::operator::{CompactionStats, PastCompaction, RunningCompaction};
use types::time::{TimestampStyle, format_timestamp};

const MIB: f64 = 1_048_576.0;

/// The text of `compactionstats`; with `vtable` the running ones as `system_views.sstable_tasks` has
/// them.
pub(crate) fn print(stats: &CompactionStats, human_readable: bool, vtable: bool) -> String {
    let mut columns = Columns::default();
    columns.row(["concurrent compactors", &stats.concurrent.to_string()]);
    let pending: u64 = stats.pending.iter().map(|(_, _, n)| n).sum();
    columns.row(["pending tasks", &pending.to_string()]);
    for (keyspace, table, n) in &stats.pending {
        columns.row([keyspace, table, &n.to_string()]);
    }
    columns.row(["compactions completed", &stats.completed.to_string()]);
    columns.row(["data compacted", &size(stats.bytes, human_readable)]);
    columns.row(["compressed data compacted", &size(stats.compressed_bytes, human_readable)]);
    columns.row(["compactions aborted", &stats.aborted.to_string()]);
    columns.row(["compactions reduced", &stats.reduced.to_string()]);
    columns.row(["sstables dropped from compaction", &stats.dropped_sstables.to_string()]);
    let recent = format!("{:.2}/minute", stats.fifteen_minute_rate * 60.0);
    columns.row(["15 minute rate", &recent]);
    columns.row(["mean rate", &format!("{:.2}/hour", stats.mean_rate * 3600.0)]);
    let throughput = match stats.throughput {
        0 => "throttling disabled (0)".to_owned(),
        bytes => double(bytes as f64 / MIB),
    };
    columns.row(["compaction throughput (MiB/s)", &throughput]);
    if !stats.running.is_empty() {
        running(&mut columns, stats, human_readable, vtable);
    }
    columns.text(&columns.widths(), " ")
}

/// The text of `compactionhistory`.
pub(crate) fn history(past: &[PastCompaction]) -> String {
    let head = "Compaction History: \n";
    if past.is_empty() {
        return format!("{head}There is no compaction history");
    }
    let mut columns = Columns::default();
    columns.row([
        "id",
        "keyspace_name",
        "columnfamily_name",
        "compacted_at",
        "bytes_in",
        "bytes_out",
        "rows_merged",
        "compaction_properties",
    ]);
    for one in past {
        // a local time without its zone; the zone of nodes is UTC
        let at = format_timestamp(one.compacted_at, TimestampStyle::Literal);
        columns.row([
            &one.id,
            &one.keyspace,
            &one.table,
            at.trim_end_matches('Z'),
            &one.bytes_in.to_string(),
            &one.bytes_out.to_string(),
            &one.rows_merged,
            &one.properties,
        ]);
    }
    format!("{head}{}", columns.text(&columns.widths(), " "))
}

/// The text of `getcompactionthroughput`; none where only the precise form would be right.
pub(crate) fn throughput(bytes_per_second: u64, precise: bool) -> Option<String> {
    let mebibytes = bytes_per_second as f64 / MIB;
    let shown = match precise {
        true => format!("{} MiB/s", double(mebibytes)),
        false if bytes_per_second.is_multiple_of(1 << 20) => {
            format!("{} MB/s", bytes_per_second >> 20)
        }
        false => return None,
    };
    Some(format!("Current compaction throughput: {shown}\n"))
}

/// The text of `statusautocompaction`: of tables with their keyspaces.
pub(crate) fn auto(tables: &[(String, String, bool)], all: bool) -> String {
    let word = |enabled: bool| if enabled { "running" } else { "not running" };
    if !all {
        let mut states = tables.iter().map(|(.., enabled)| *enabled);
        let text = match states.clone().all(|enabled| enabled) {
            true => "running",
            false if states.any(|enabled| enabled) => "partially running",
            false => "not running",
        };
        return format!("{text}\n");
    }
    let mut columns = Columns::default();
    columns.row(["Keyspace", "Table", "Status"]);
    for (keyspace, table, enabled) in tables {
        columns.row([keyspace, table, word(*enabled)]);
    }
    columns.text(&columns.widths(), " ")
}

/// The text of `datapaths`: of keyspaces with the directories of their tables.
pub(crate) fn data_paths(keyspaces: &[(String, Vec<(String, Vec<String>)>)]) -> String {
    let mut text = String::new();
    for (keyspace, tables) in keyspaces {
        text.push_str(&format!("Keyspace: {keyspace}\n"));
        for (table, paths) in tables {
            text.push_str(&format!("\tTable: {table}\n\tPaths:\n"));
            for path in paths {
                text.push_str(&format!("\t\t{path}\n"));
            }
            text.push('\n');
        }
    }
    text
}

fn running(columns: &mut Columns, stats: &CompactionStats, human_readable: bool, vtable: bool) {
    if vtable {
        columns.row([
            "keyspace",
            "table",
            "task id",
            "completion ratio",
            "kind",
            "progress",
            "sstables",
            "total",
            "total compressed",
            "unit",
            "target directory",
        ]);
    } else {
        columns.row([
            "id",
            "compaction type",
            "keyspace",
            "table",
            "completed",
            "total",
            "unit",
            "progress",
        ]);
    }
    for compaction in &stats.running {
        row(columns, compaction, human_readable, vtable);
    }
    let left = stats.running.iter().map(|c| c.total.saturating_sub(c.completed));
    let left = left.fold(0, u64::saturating_add);
    let time = match left.checked_div(stats.throughput) {
        Some(s) => format!("{}h{:02}m{:02}s", s / 3600, s % 3600 / 60, s % 60),
        None => "n/a".to_owned(),
    };
    columns.row(["active compaction remaining time", &time]);
}

fn row(columns: &mut Columns, c: &RunningCompaction, human_readable: bool, vtable: bool) {
    // Only bytes have a human's form.
    let amount = |n| if human_readable && c.unit == "bytes" { file_size(n) } else { n.to_string() };
    let (completed, total) = (amount(c.completed), amount(c.total));
    let percent = match c.total {
        0 => "n/a".to_owned(),
        total => format!("{:.2}%", c.completed as f64 / total as f64 * 100.0),
    };
    if vtable {
        let compressed = c.total_compressed.map_or_else(|| "n/a".to_owned(), amount);
        let sstables = c.sstables.to_string();
        columns.row([
            &c.keyspace,
            &c.table,
            &c.id,
            &percent,
            &c.kind,
            &completed,
            &sstables,
            &total,
            &compressed,
            &c.unit,
            &c.directory,
        ]);
    } else {
        columns.row([&c.id, &c.kind, &c.keyspace, &c.table, &completed, &total, &c.unit, &percent]);
    }
}
