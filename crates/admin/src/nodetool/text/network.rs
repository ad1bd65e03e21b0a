//! `nodetool netstats`, `tpstats` and `proxyhistograms`.

use std::fmt::Write;

use super::columns::Columns;
use super::streams;
use super::tree::Tree;
use crate::model::{NetStats, Percentiles, PoolStats, ProxyHistograms};

/// What Cassandra prints where it has no figures: here messages wait in no queue between the socket
/// and who serves them.
const NO_QUEUE: &str = "N/A";

/// The text of `netstats`.
pub(super) fn netstats(stats: &NetStats, human_readable: bool, print_port: bool) -> String {
    let mut text = format!("Mode: {}\n", stats.mode);
    text.push_str(&streams::plans(&stats.streams, human_readable, print_port));
    let repairs = &stats.read_repair;
    let _ = writeln!(text, "Read Repair Statistics:\nAttempted: {}", repairs.attempted);
    let _ = writeln!(text, "Mismatch (Blocking): {}", repairs.blocking);
    let _ = writeln!(text, "Mismatch (Background): {}", repairs.background);
    let mut row = |cells: [&str; 5]| {
        let [name, active, pending, completed, dropped] = cells;
        let _ = writeln!(text, "{name:<25}{active:>10}{pending:>10}{completed:>15}{dropped:>10}");
    };
    row(["Pool Name", "Active", "Pending", "Completed", "Dropped"]);
    for (name, of) in [
        ("Large messages", &stats.large),
        ("Small messages", &stats.small),
        ("Gossip messages", &stats.gossip),
    ] {
        let [pending, completed, dropped] =
            [of.pending, of.completed, of.dropped].map(|n| n.to_string());
        row([name, "n/a", &pending, &completed, &dropped]);
    }
    text
}

/// The text of `tpstats`.
pub(super) fn tpstats(stats: &PoolStats) -> String {
    let mut pools = Columns::default();
    pools.row(["Pool Name", "Active", "Pending", "Completed", "Blocked", "All time blocked"]);
    for pool in &stats.pools {
        let figures =
            [pool.active, pool.pending, pool.completed, pool.blocked, pool.all_time_blocked];
        let [active, pending, completed, blocked, ever] = figures.map(|n| n.to_string());
        pools.row([&pool.name, &active, &pending, &completed, &blocked, &ever]);
    }
    let mut text = pools.text(&pools.widths(), " ");
    text.push_str("\nLatencies waiting in queue (micros) per dropped message types\n");
    let mut dropped = Columns::default();
    dropped.row(["Message type", "Dropped    ", "50%     ", "95%     ", "99%     ", "Max"]);
    for of in &stats.dropped {
        dropped.row([&of.verb, &of.count.to_string(), NO_QUEUE, NO_QUEUE, NO_QUEUE, NO_QUEUE]);
    }
    text.push_str(&dropped.text(&dropped.widths(), " "));
    text
}

/// What `tpstats -F` prints.
pub(super) fn tpstats_tree(stats: &PoolStats) -> Tree {
    let pools = stats.pools.iter().map(|pool| {
        let figures = [
            ("ActiveTasks", pool.active),
            ("PendingTasks", pool.pending),
            ("CompletedTasks", pool.completed),
            ("CurrentlyBlockedTasks", pool.blocked),
            ("TotalBlockedTasks", pool.all_time_blocked),
        ];
        (pool.name.as_str(), Tree::map(figures.map(|(name, of)| (name, Tree::Number(of)))))
    });
    let dropped = stats.dropped.iter().map(|of| (of.verb.as_str(), Tree::Number(of.count)));
    Tree::map([
        ("ThreadPools", Tree::map(pools)),
        ("DroppedMessage", Tree::map(dropped)),
        ("WaitLatencies", Tree::map([] as [(&str, Tree); 0])),
    ])
}

/// The text of `proxyhistograms`.
pub(super) fn histograms(of: &ProxyHistograms) -> String {
    let mut text = "proxy histograms\n".to_owned();
    let mut row = |first: &str, cells: [String; 6]| {
        let _ = write!(text, "{first:<10}");
        cells.iter().for_each(|cell| _ = write!(text, "{cell:>19}"));
        text.push('\n');
    };
    let heads = [
        "Read Latency",
        "Write Latency",
        "Range Latency",
        "CAS Read Latency",
        "CAS Write Latency",
        "View Write Latency",
    ];
    row("Percentile", heads.map(str::to_owned));
    row("", heads.map(|_| "(micros)".to_owned()));
    let all = [
        of.read_micros,
        of.write_micros,
        of.range_micros,
        of.cas_read_micros,
        of.cas_write_micros,
        of.view_write_micros,
    ];
    let all = all.map(|of| of.values());
    for (at, name) in Percentiles::NAMES.into_iter().enumerate() {
        row(name, all.map(|of| format!("{:.2}", of.get(at).copied().unwrap_or_default())));
    }
    text.push('\n');
    text
}
