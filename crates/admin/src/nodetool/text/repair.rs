//! `repair` and `repair_admin`: the lines of `tools.RepairRunner` and the tables of
//! `tools.nodetool.RepairAdmin`.

use types::time::{TimestampStyle, format_timestamp};

use super::columns::Columns;
use super::number::file_size;
use crate::model::{
    PendingRepair, PendingStats, RepairCleanup, RepairEvent, RepairEventKind, RepairSession,
    RepairStats, RepairedSection, WatchedRepair,
};

const DELIMITER: &str = " | ";

/// What is said of repairs; of one that runs, as far as it came.
pub(super) fn watched(all: &[WatchedRepair]) -> String {
    let mut text = String::new();
    for of in all {
        if of.command <= 0 {
            let none = format!(
                "Replication factor is 1. No repair is needed for keyspace '{}'",
                of.keyspace
            );
            line(&mut text, of.at_unix_millis, &none);
        }
        for event in &of.events {
            line(&mut text, event.at_unix_millis, &message(event));
        }
        // nodetool asks how the repair ended only where no event said that it failed
        if let (Some(end), None) = (&of.end, &of.error) {
            let state = if end.has_failed { "failed" } else { "completed" };
            let found = format!(
                "condition satisfied queried for parent session status and discovered repair \
                 {state}."
            );
            line(&mut text, of.at_unix_millis, &found);
            for message in &end.messages {
                line(&mut text, of.at_unix_millis, message);
            }
        }
    }
    text
}

/// In UTC, as all times here.
fn line(text: &mut String, at_unix_millis: i64, message: &str) {
    let at = format_timestamp(at_unix_millis, TimestampStyle::Json);
    let at = at.trim_end_matches('Z').replace('.', ",");
    text.push_str(&format!("[{at}] {message}\n"));
}

fn message(of: &RepairEvent) -> String {
    match of.kind {
        RepairEventKind::Progress => {
            let percent = (u64::from(of.done) * 100).checked_div(of.total.into()).unwrap_or(0);
            format!("{} (progress: {percent}%)", of.message)
        }
        _ => of.message.clone(),
    }
}

/// `repair_admin list`
pub(super) fn sessions(all: &[RepairSession]) -> String {
    if all.is_empty() {
        return "no sessions\n".to_owned();
    }
    let mut columns = Columns::default();
    columns.row(["id", "state", "last activity", "coordinator", "participants", "participants_wp"]);
    for of in all {
        let idle = format!("{} (s)", of.idle_seconds);
        // as `InetAddressAndPort.toString` writes it
        let coordinator = format!("/{}", of.coordinator);
        let hosts: Vec<_> = of.participants.iter().map(|node| node.ip().to_string()).collect();
        let nodes: Vec<_> = of.participants.iter().map(ToString::to_string).collect();
        columns.row([&of.id, &of.state, &idle, &coordinator, &hosts.join(","), &nodes.join(",")]);
    }
    table(&columns)
}

/// `repair_admin summarize-pending`. Each figure is its own: Cassandra's nodetool reads the columns
/// shifted by one (`PendingStats.fromComposite`).
pub(super) fn pending(all: &[PendingStats], verbose: bool) -> String {
    let mut columns = Columns::default();
    let shown = if verbose { 6 } else { 3 };
    let head = ["keyspace", "table", "total", "pending", "finalized", "failed"];
    columns.extend(head.into_iter().take(shown));
    for of in all {
        let [total, pending, finalized, failed] =
            [&of.total, &of.pending, &of.finalized, &of.failed].map(size);
        let cells = [&of.keyspace, &of.table, &total, &pending, &finalized, &failed];
        columns.extend(cells.into_iter().map(String::as_str).take(shown));
    }
    table(&columns)
}

fn size(of: &PendingRepair) -> String {
    let size = file_size(of.bytes);
    format!("{size} ({} sstables / {} sessions)", of.sstables, of.sessions.len())
}

/// `repair_admin summarize-repaired`
pub(super) fn repaired(all: &[RepairStats], verbose: bool) -> String {
    if all.is_empty() {
        return "no stats\n".to_owned();
    }
    let mut columns = Columns::default();
    let shown = if verbose { 5 } else { 4 };
    let head = ["keyspace", "table", "min_repaired", "max_repaired", "detail"];
    columns.extend(head.into_iter().take(shown));
    for of in all {
        let least = of.min_repaired_unix_millis.to_string();
        let most = of.max_repaired_unix_millis.to_string();
        let detail = of.sections.iter().map(section).collect::<Vec<_>>().join(", ");
        let cells = [&of.keyspace, &of.table, &least, &most, &detail];
        columns.extend(cells.into_iter().map(String::as_str).take(shown));
    }
    table(&columns)
}

fn section(of: &RepairedSection) -> String {
    format!("({},{}]={}", of.start, of.end, of.repaired_unix_millis)
}

/// `repair_admin cleanup`, behind what is said before.
pub(super) fn cleanup(all: &[RepairCleanup]) -> String {
    let mut columns = Columns::default();
    columns.row(["keyspace", "table", "successful sessions", "unsuccessful sessions"]);
    for of in all {
        let (done, left) = (of.successful.len().to_string(), of.unsuccessful.len().to_string());
        columns.row([&of.keyspace, &of.table, &done, &left]);
    }
    let has_left = all.iter().any(|of| !of.unsuccessful.is_empty());
    let said = if has_left { "Some tables couldn't be cleaned up completely\n" } else { "" };
    format!("{said}{}", table(&columns))
}

fn table(columns: &Columns) -> String {
    columns.text(&columns.widths(), DELIMITER)
}
