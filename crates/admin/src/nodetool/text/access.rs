//! `nodetool clientstats`, `getauthcacheconfig`, `setauthcacheconfig`.

use std::collections::BTreeMap;

use types::time::{TimestampStyle, format_timestamp};

use super::columns::Columns;
use crate::model::{AuthCacheChange, AuthCacheSettings, ClientConnection, RecentClient};

/// What stands for what a client did not say (`ConnectedClient`).
const UNDEFINED: &str = "undefined";
const HEADS: [&str; 10] = [
    "Address",
    "SSL",
    "Cipher",
    "Protocol",
    "Version",
    "User",
    "Keyspace",
    "Requests",
    "Driver-Name",
    "Driver-Version",
];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The text of `getauthcacheconfig`.
pub(super) fn auth_cache(of: &AuthCacheSettings) -> String {
    let AuthCacheSettings { validity_millis, update_interval_millis, max_entries, active_update } =
        of;
    format!(
        "Validity Period: {validity_millis}\nUpdate Interval: {update_interval_millis}\n\
         Max Entries: {max_entries}\nActive Update: {active_update}\n"
    )
}

/// The text of `setauthcacheconfig`: what was changed.
pub(super) fn changed(change: &AuthCacheChange) -> String {
    let number = |what: &str, number: Option<i32>| {
        number.map(|number| format!("Changed {what} to {number}\n")).unwrap_or_default()
    };
    let active = change.active_update.map(|is| format!("Changed Active Update to {is}\n"));
    number("Validity Period", change.validity_millis)
        + &number("Update Interval", change.update_interval_millis)
        + &number("Max Entries", change.max_entries)
        + &active.unwrap_or_default()
}

/// The text of `clientstats`, with each connection, and each with its options.
pub(super) fn clients(all: &[ClientConnection], lists: bool, with_options: bool) -> String {
    let mut text = String::new();
    if lists {
        text.push_str(&connections(all, false));
    }
    if with_options {
        text.push_str(&connections(all, true));
    }
    let mut users: BTreeMap<&str, usize> = BTreeMap::new();
    for client in all {
        *users.entry(client.user.as_deref().unwrap_or("null")).or_default() += 1;
    }
    text.push_str(&format!("Total connected clients: {}\n\n", all.len()));
    let mut table = Columns::default();
    table.row(["User", "Connections"]);
    for (user, count) in users {
        table.row([user, &count.to_string()]);
    }
    text + &table.text(&table.widths(), " ")
}

fn connections(all: &[ClientConnection], with_options: bool) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Columns::default();
    let last = with_options.then_some("Client-Options");
    table.extend(HEADS.into_iter().chain(last));
    for of in all {
        let defined = |value: &Option<String>| value.as_deref().unwrap_or(UNDEFINED).to_owned();
        let (protocol, cipher) = of.tls.clone().unzip();
        let mut row = vec![
            format!("/{}", of.address),
            of.tls.is_some().to_string(),
            defined(&cipher),
            defined(&protocol),
            of.version.to_string(),
            defined(&of.user),
            of.keyspace.clone().unwrap_or_default(),
            of.requests.to_string(),
            defined(&of.driver_name),
            defined(&of.driver_version),
        ];
        if with_options {
            let options = of.options.iter().map(|(name, value)| format!("{name}={value}"));
            row.push(options.collect::<Vec<_>>().join(", "));
        }
        table.extend(row.iter().map(String::as_str));
    }
    table.text(&table.widths(), " ") + "\n"
}

/// The text of `clientstats --by-protocol`; times are UTC.
pub(super) fn recent(all: &[RecentClient]) -> String {
    let mut text = "Clients by protocol version\n\n".to_owned();
    if all.is_empty() {
        return text;
    }
    let mut table = Columns::default();
    table.row(["Protocol-Version", "IP-Address", "Last-Seen"]);
    for RecentClient { version, address, at_unix_millis } in all {
        let version = format!("{version}/v{version}");
        table.row([&version, &format!("/{address}"), &moment(*at_unix_millis)]);
    }
    text.push_str(&table.text(&table.widths(), " "));
    text.push('\n');
    text
}

/// As Java's pattern `MMM dd, yyyy HH:mm:ss` has it.
fn moment(unix_millis: i64) -> String {
    let text = format_timestamp(unix_millis, TimestampStyle::Json);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().ok().and_then(|n| MONTHS.get(n.checked_sub(1)?));
    let (month, day, year) = (month.copied().unwrap_or_default(), part(8, 10), part(0, 4));
    format!("{month} {day}, {year} {}", part(11, 19))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> ClientConnection {
        ClientConnection {
            address: "127.0.0.1:51000".parse().unwrap(),
            tls: None,
            version: 5,
            user: Some("anonymous".into()),
            keyspace: None,
            requests: 12,
            driver_name: Some("DataStax Java driver".into()),
            driver_version: None,
            options: vec![("CQL_VERSION".into(), "3.0.0".into())],
        }
    }

    #[test]
    fn clients_are_counted_by_user() {
        assert_eq!(clients(&[], true, true), "Total connected clients: 0\n\nUser Connections\n");
        let text = clients(&[client(), client()], false, false);
        let totals = "Total connected clients: 2\n\nUser      Connections\nanonymous 2          \n";
        assert_eq!(text, totals);
        let text = clients(&[client()], true, false);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("Address          SSL   Cipher    Protocol  Version User "));
        assert!(
            lines[1].starts_with("/127.0.0.1:51000 false undefined undefined 5       anonymous")
        );
        assert_eq!((lines[2], lines[3]), ("", "Total connected clients: 1"));
        let text = clients(&[client()], false, true);
        assert!(text.contains(" Client-Options   \n") && text.contains("CQL_VERSION=3.0.0"));
    }

    #[test]
    fn recent_clients_stand_by_version() {
        let of = RecentClient {
            version: 4,
            address: "127.0.0.1".parse().unwrap(),
            at_unix_millis: 1_795_298_978_123,
        };
        assert_eq!(
            recent(&[of]),
            "Clients by protocol version\n\n\
             Protocol-Version IP-Address Last-Seen            \n\
             4/v4             /127.0.0.1 Nov 21, 2026 22:09:38\n\n"
        );
        assert_eq!(recent(&[]), "Clients by protocol version\n\n");
    }
}
