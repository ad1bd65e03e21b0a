//! `nodetool compactionstats`.

use super::columns::Columns;
use super::number::{double, file_size, size};
use super::tree::Tree;
use crate::model::{AutoCompaction, CompactionStats, PastCompaction, RunningCompaction};
use types::time::{TimestampStyle, format_timestamp};

const MIB: f64 = 1_048_576.0;

/// The text of `compactionstats`; with `vtable` the running ones as `system_views.sstable_tasks`
/// has them.
pub(super) fn print(stats: &CompactionStats, human_readable: bool, vtable: bool) -> String {
    let mut columns = Columns::default();
    columns.row(["concurrent compactors", &stats.concurrent.to_string()]);
    let pending: u64 = stats.pending.iter().map(|of| of.tasks).sum();
    columns.row(["pending tasks", &pending.to_string()]);
    for of in &stats.pending {
        columns.row([&of.keyspace, &of.table, &of.tasks.to_string()]);
    }
    columns.row(["compactions completed", &stats.completed.to_string()]);
    columns.row(["data compacted", &size(stats.compacted_bytes, human_readable)]);
    columns.row([
        "compressed data compacted",
        &size(stats.compacted_compressed_bytes, human_readable),
    ]);
    columns.row(["compactions aborted", &stats.aborted.to_string()]);
    columns.row(["compactions reduced", &stats.reduced.to_string()]);
    columns.row(["sstables dropped from compaction", &stats.dropped_sstables.to_string()]);
    let recent = format!("{:.2}/minute", stats.fifteen_minute_rate_per_second * 60.0);
    columns.row(["15 minute rate", &recent]);
    columns.row(["mean rate", &format!("{:.2}/hour", stats.mean_rate_per_second * 3600.0)]);
    let throughput = match stats.throughput_bytes_per_second {
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
pub(super) fn history(past: &[PastCompaction]) -> String {
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
        let at = format_timestamp(one.compacted_at_millis, TimestampStyle::Literal);
        columns.row([
            &one.id,
            &one.keyspace,
            &one.table,
            at.trim_end_matches('Z'),
            &one.in_bytes.to_string(),
            &one.out_bytes.to_string(),
            &one.rows_merged,
            &one.properties,
        ]);
    }
    format!("{head}{}", columns.text(&columns.widths(), " "))
}

/// What `compactionhistory -F` prints.
pub(super) fn history_tree(past: &[PastCompaction]) -> Tree {
    let of_one = |one: &PastCompaction| {
        let at = format_timestamp(one.compacted_at_millis, TimestampStyle::Literal);
        Tree::map([
            ("id", Tree::text(&one.id)),
            ("keyspace_name", Tree::text(&one.keyspace)),
            ("columnfamily_name", Tree::text(&one.table)),
            ("compacted_at", Tree::text(at.trim_end_matches('Z'))),
            ("bytes_in", Tree::Signed(one.in_bytes)),
            ("bytes_out", Tree::Signed(one.out_bytes)),
            ("rows_merged", Tree::text(&one.rows_merged)),
            ("compaction_properties", Tree::text(&one.properties)),
        ])
    };
    let all: Vec<_> = past.iter().map(of_one).collect();
    let entry = (!all.is_empty()).then_some(("CompactionHistory", Tree::List(all)));
    Tree::map(entry)
}

/// The text of `getcompactionthroughput`; none where only the precise form would be right.
pub(super) fn throughput(bytes_per_second: u64, precise: bool) -> Option<String> {
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

/// The text of `statusautocompaction`.
pub(super) fn auto(tables: &[AutoCompaction], all: bool) -> String {
    let word = |enabled: bool| if enabled { "running" } else { "not running" };
    if !all {
        let mut states = tables.iter().map(|of| of.enabled);
        let text = match states.clone().all(|enabled| enabled) {
            true => "running",
            false if states.any(|enabled| enabled) => "partially running",
            false => "not running",
        };
        return format!("{text}\n");
    }
    let mut columns = Columns::default();
    columns.row(["Keyspace", "Table", "Status"]);
    for of in tables {
        columns.row([&of.keyspace, &of.table, word(of.enabled)]);
    }
    columns.text(&columns.widths(), " ")
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
    let time = match left.checked_div(stats.throughput_bytes_per_second) {
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
