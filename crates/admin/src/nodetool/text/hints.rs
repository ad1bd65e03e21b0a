//! `nodetool statushandoff`, `listpendinghints`, `getmaxhintwindow`.

use std::fmt::Write;

use types::time::{TimestampStyle, format_timestamp};

use super::address;
use super::columns::Columns;
use crate::model::{Handoff, PendingHints};

/// Of a node that is in no ring.
const UNKNOWN: &str = "Unknown";

/// The text of `statushandoff`.
pub(super) fn status(handoff: &Handoff) -> String {
    let word = if handoff.is_enabled { "running" } else { "not running" };
    let mut text = format!("Hinted handoff is {word}\n");
    for center in &handoff.disabled_datacenters {
        let _ = writeln!(text, "Data center {center} is disabled");
    }
    text
}

/// The text of `getmaxhintwindow`.
pub(super) fn window(handoff: &Handoff) -> String {
    format!("Current max hint window: {} ms\n", handoff.window_millis)
}

/// The text of `listpendinghints`.
pub(super) fn pending(hints: &[PendingHints], print_port: bool) -> String {
    if hints.is_empty() {
        return "This node does not have any pending hints\n".to_owned();
    }
    let mut columns = Columns::default();
    columns.row(["Host ID", "Address", "Rack", "DC", "Status", "Total files", "Newest", "Oldest"]);
    for hints in hints {
        let (place, rack, center, status) = match &hints.node {
            None => (UNKNOWN.to_owned(), UNKNOWN, UNKNOWN, UNKNOWN),
            Some(node) => {
                let status = if node.is_up { "UP" } else { "DOWN" };
                (address(node.address, print_port), &*node.rack, &*node.data_center, status)
            }
        };
        let (files, host) = (hints.files.to_string(), hints.host_id.as_str());
        let (newest, oldest) = (time(hints.newest_millis), time(hints.oldest_millis));
        columns.row([host, &place, rack, center, status, &files, &newest, &oldest]);
    }
    columns.text(&columns.widths(), " ")
}

/// A time as `yyyy-MM-dd HH:mm:ss,SSS`, in UTC.
fn time(millis: i64) -> String {
    let text = format_timestamp(millis, TimestampStyle::Json);
    text.trim_end_matches('Z').replace('.', ",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_cassandra_does() {
        let handoff = Handoff {
            is_enabled: true,
            disabled_datacenters: vec!["dc2".into()],
            window_millis: 10_800_000,
        };
        let status_of = "Hinted handoff is running\nData center dc2 is disabled\n";
        assert_eq!(status(&handoff), status_of);
        assert_eq!(window(&handoff), "Current max hint window: 10800000 ms\n");
        assert_eq!(pending(&[], false), "This node does not have any pending hints\n");
        let hints = PendingHints {
            host_id: "5c3b3720-e5dd-41f1-9a15-1b96078e4459".into(),
            node: None,
            files: 2,
            newest_millis: 1_700_000_000_123,
            oldest_millis: 1_700_000_000_000,
        };
        assert_eq!(
            pending(&[hints], false),
            "Host ID                              Address Rack    DC      Status  Total files \
             Newest                  Oldest                 \n\
             5c3b3720-e5dd-41f1-9a15-1b96078e4459 Unknown Unknown Unknown Unknown 2           \
             2023-11-14 22:13:20,123 2023-11-14 22:13:20,000\n"
        );
    }
}
