//! `nodetool snapshot`, `listsnapshots` and `clearsnapshot`.

use types::time::{TimestampStyle, format_timestamp};

use super::columns::Columns;
use super::number::file_size;
use crate::model::SnapshotDetails;

/// What is said before a snapshot is taken.
pub(super) fn requested(of: &str, name: &str, flush: bool, ttl: Option<&str>) -> String {
    let ttl = ttl.map_or(String::new(), |ttl| format!(", ttl={ttl}"));
    format!(
        "Requested creating snapshot(s) for [{of}] with snapshot name [{name}] and options {{skipFlush={}{ttl}}}\n",
        !flush
    )
}

/// What is said before snapshots are removed.
pub(super) fn clearing(
    keyspaces: &[String],
    name: Option<&str>,
    older_than: Option<u64>,
    before: Option<&str>,
) -> String {
    let of = if keyspaces.is_empty() { "all keyspaces".to_owned() } else { keyspaces.join(", ") };
    let mut text = format!("Requested clearing snapshot(s) for [{of}] with ");
    match name {
        None => text.push_str("[all snapshots]"),
        Some(name) => text.push_str(&format!("snapshot name [{name}]")),
    }
    if let Some(seconds) = older_than {
        text.push_str(&format!(" older than {seconds} seconds."));
    }
    if let Some(before) = before {
        text.push_str(&format!(" older than timestamp {before}"));
    }
    text + "\n"
}

/// The list, by name.
pub(super) fn list(snapshots: &[SnapshotDetails], ephemeral: bool) -> String {
    let head = "Snapshot Details: \n";
    if snapshots.is_empty() {
        return format!("{head}There are no snapshots\n");
    }
    let mut columns = Columns::default();
    let shown = |cells: [&str; 8], columns: &mut Columns| match ephemeral {
        true => columns.row(cells),
        false => {
            let [a, b, c, d, e, f, g, _] = cells;
            columns.row([a, b, c, d, e, f, g]);
        }
    };
    let titles = [
        "Snapshot name",
        "Keyspace name",
        "Column family name",
        "True size",
        "Size on disk",
        "Creation time",
        "Expiration time",
        "Ephemeral",
    ];
    shown(titles, &mut columns);
    let moment = |at: Option<i64>| {
        at.map_or(String::new(), |at| format_timestamp(at, TimestampStyle::Literal))
    };
    for of in snapshots {
        let (own, size) = (file_size(of.true_size_bytes), file_size(of.size_on_disk_bytes));
        let (made, goes) = (moment(of.created_at_millis), moment(of.expires_at_millis));
        let ephemeral = of.ephemeral.to_string();
        shown(
            [&of.name, &of.keyspace, &of.table, &own, &size, &made, &goes, &ephemeral],
            &mut columns,
        );
    }
    let own: u64 = snapshots.iter().map(|of| of.own_tables_bytes).sum();
    let table = columns.text(&columns.widths(), " ");
    format!("{head}{table}\nTotal TrueDiskSpaceUsed: {}\n\n", file_size(own))
}
