//! What this node says of the secondary indexes of the ring: that it has not built them (`INDEX_STATUS`,
//! `index.IndexStatusManager`). A coordinator of Cassandra then asks others: for storage attached indexes always, for the
//! older ones where it has a choice. What it asks of this node all the same is filtered row by row, and right.

use std::collections::BTreeMap;

use cql::permission::is_local_system;
use schema::{Release, Schema};

/// What is said where there are none: a node that never had one says nothing.
pub(super) const NONE: &str = "{}";
/// `Index.Status.BUILD_FAILED`, by name and by its number.
const BUILD_FAILED: (&str, u8) = ("BUILD_FAILED", 2);
/// The last of the releases 5.0 that does not read numbers.
const NAMES_UNTIL: u32 = 2;
/// A value of gossip is no longer, in bytes (`DataOutput.writeUTF`).
const BYTES_MAX: usize = u16::MAX as usize;
/// What an index takes beside its name and its keyspace's, in bytes at most.
const AROUND_NAMES: usize = 24;

/// The value for a ring with nodes of these releases; none where nobody would read it, as in 4.1. Indexes that would make it
/// too long to be sent are left out: of those this node says nothing.
pub(super) fn value<'r>(
    schema: &Schema,
    own: Release,
    mut others: impl Iterator<Item = &'r str>,
) -> Option<String> {
    if own < Release::V5_0 {
        return None;
    }
    let keyspaces = schema.keyspaces().values().filter(|keyspace| !is_local_system(&keyspace.name));
    let indexes = keyspaces.flat_map(|keyspace| {
        let tables = keyspace.tables.values();
        let names = tables.flat_map(|table| table.indexes.keys());
        names.map(|name| (keyspace.name.as_str(), name.as_str()))
    });
    let mut bytes = 2;
    let indexes = indexes.take_while(|(keyspace, name)| {
        bytes += keyspace.len() + name.len() + AROUND_NAMES;
        bytes <= BYTES_MAX
    });
    Some(match others.any(wants_names) {
        true => with_names(indexes),
        false => with_numbers(indexes),
    })
}

/// Of a node that does not say what it is Cassandra assumes the same.
fn wants_names(release: &str) -> bool {
    let patch = release.strip_prefix("5.0.").and_then(|rest| rest.split(['-', '.']).next());
    release.is_empty()
        || patch.and_then(|patch| patch.parse().ok()).is_some_and(|patch: u32| patch <= NAMES_UNTIL)
}

/// `{"ks.index":"BUILD_FAILED"}`. No name has what JSON would have to escape (`SchemaConstants.isValidName`).
fn with_names<'n>(indexes: impl Iterator<Item = (&'n str, &'n str)>) -> String {
    let parts =
        indexes.map(|(keyspace, name)| format!("\"{keyspace}.{name}\":\"{}\"", BUILD_FAILED.0));
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

/// `{"ks":{"index":2}}`
fn with_numbers<'n>(indexes: impl Iterator<Item = (&'n str, &'n str)>) -> String {
    let mut of: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (keyspace, name) in indexes {
        of.entry(keyspace).or_default().push(format!("\"{name}\":{}", BUILD_FAILED.1));
    }
    let parts =
        of.iter().map(|(keyspace, names)| format!("\"{keyspace}\":{{{}}}", names.join(",")));
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEXES: [(&str, &str); 3] = [("a", "t_v_idx"), ("a", "T_w_idx"), ("b", "i")];

    #[test]
    fn both_forms_are_as_cassandra_writes_them() {
        let numbers = r#"{"a":{"t_v_idx":2,"T_w_idx":2},"b":{"i":2}}"#;
        assert_eq!(with_numbers(INDEXES.into_iter()), numbers);
        let names =
            r#"{"a.t_v_idx":"BUILD_FAILED","a.T_w_idx":"BUILD_FAILED","b.i":"BUILD_FAILED"}"#;
        assert_eq!(with_names(INDEXES.into_iter()), names);
        for text in [numbers, names] {
            let around = text.len()
                - INDEXES.iter().map(|(keyspace, name)| keyspace.len() + name.len()).sum::<usize>();
            assert!(around <= 2 + AROUND_NAMES * INDEXES.len(), "{around}");
        }
    }

    #[test]
    fn early_releases_of_5_0_read_names() {
        for release in ["5.0.0", "5.0.2", "5.0.1-SNAPSHOT", ""] {
            assert!(wants_names(release), "{release}");
        }
        for release in ["5.0.3", "5.0.9", "5.0.10", "4.1.10", "5.1.0", "x"] {
            assert!(!wants_names(release), "{release}");
        }
    }

    #[test]
    fn nobody_before_5_0_is_told() {
        let schema = Schema::new([], Schema::empty_version(), 0);
        assert_eq!(value(&schema, Release::V4_1, std::iter::empty()), None);
        assert_eq!(value(&schema, Release::V5_0, ["5.0.9"].into_iter()), Some("{}".to_owned()));
    }
}
