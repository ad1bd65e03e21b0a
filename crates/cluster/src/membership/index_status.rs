//! What this node says of the secondary indexes of the ring (`INDEX_STATUS`,
//! `index.IndexStatusManager`). It has files of none, and filters row by row what it is asked: that
//! is right wherever an index finds what its condition says. Of those it says nothing: coordinators
//! of Cassandra then ask it only where others are not enough. Of indexes that find more or in
//! another order (analyzed text, vectors, SASI) it says that their build failed, and with
//! `serve_index_reads: false` of all: a read by one that would need this node fails then with
//! INDEX_NOT_AVAILABLE.

use std::collections::BTreeMap;

use cql::permission::is_local_system;
use schema::{Index, Release, Schema, Table};
use types::CqlType;

/// What is said where there are none: a node that never had one says nothing.
pub(super) const NONE: &str = "{}";
/// `Index.Status.BUILD_FAILED`, by name and by its number.
const BUILD_FAILED: (&str, u8) = ("BUILD_FAILED", 2);
/// Classes of storage attached indexes, without their package, in lower case.
const STORAGE_ATTACHED: [&str; 2] = ["sai", "storageattachedindex"];
/// The options of an index that say nothing of how it compares.
const PLAIN_OPTIONS: [&str; 2] = ["target", "class_name"];
/// The last of the releases 5.0 that does not read numbers.
const NAMES_UNTIL: u32 = 2;
/// A value of gossip is no longer, in bytes (`DataOutput.writeUTF`).
const BYTES_MAX: usize = u16::MAX as usize;
/// What an index takes beside its name and its keyspace's, in bytes at most.
const AROUND_NAMES: usize = 24;

/// The value for a ring with nodes of these releases; none where nobody would read it, as in 4.1.
/// Indexes that would make it too long to be sent are left out: of those this node says nothing.
pub(super) fn value<'r>(
    schema: &Schema,
    own: Release,
    serves_reads: bool,
    mut others: impl Iterator<Item = &'r str>,
) -> Option<String> {
    if own < Release::V5_0 {
        return None;
    }
    let keyspaces = schema.keyspaces().values().filter(|keyspace| !is_local_system(&keyspace.name));
    let indexes = keyspaces.flat_map(|keyspace| {
        let tables = keyspace.tables.values();
        let all = tables.flat_map(|table| table.indexes.values().map(move |index| (table, index)));
        let failed = all.filter(move |(table, index)| !serves_reads || !is_scanned(table, index));
        failed.map(|(_, index)| (keyspace.name.as_str(), index.name.as_str()))
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

/// Does a scan find what an index does?
fn is_scanned(table: &Table, index: &Index) -> bool {
    let class = index.options.get("class_name").map(|class| class.to_ascii_lowercase());
    let class = class.as_deref().and_then(|class| class.rsplit('.').next());
    let is_attached = class.is_some_and(|class| STORAGE_ATTACHED.contains(&class));
    let is_plain = || index.options.keys().all(|option| PLAIN_OPTIONS.contains(&option.as_str()));
    let column = index.target_column().and_then(|name| table.column(&name));
    let is_vector = || column.is_none_or(|column| matches!(column.ty, CqlType::Vector { .. }));
    !index.is_custom() || (is_attached && is_plain() && !is_vector())
}

/// Of a node that does not say what it is Cassandra assumes the same.
fn wants_names(release: &str) -> bool {
    let patch = release.strip_prefix("5.0.").and_then(|rest| rest.split(['-', '.']).next());
    release.is_empty()
        || patch.and_then(|patch| patch.parse().ok()).is_some_and(|patch: u32| patch <= NAMES_UNTIL)
}

/// `{"ks.index":"BUILD_FAILED"}`. No name has what JSON would have to escape
/// (`SchemaConstants.isValidName`).
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
    use schema::{ColumnKind, TableId};

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
    fn what_a_scan_finds_is_served() {
        let vector = CqlType::Vector { element: CqlType::Float.into(), dimension: 2 };
        let table = Table::builder("ks", "t", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("a", CqlType::Text, ColumnKind::Regular)
            .column("v", vector, ColumnKind::Regular)
            .build();
        let scanned = |kind: &str, options: &[(&str, &str)]| {
            let options =
                options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let index = Index { name: "i".into(), kind: kind.into(), options: options.collect() };
            is_scanned(&table, &index)
        };
        let class = "org.apache.cassandra.index.sai.StorageAttachedIndex";
        assert!(scanned("COMPOSITES", &[("target", "a")]));
        assert!(scanned("CUSTOM", &[("target", "a"), ("class_name", class)]));
        assert!(scanned("CUSTOM", &[("target", "a"), ("class_name", "sai")]));
        assert!(!scanned("CUSTOM", &[("target", "v"), ("class_name", class)]));
        let analyzed = [("target", "a"), ("class_name", class), ("case_sensitive", "false")];
        assert!(!scanned("CUSTOM", &analyzed));
        let sasi = "org.apache.cassandra.index.sasi.SASIIndex";
        assert!(!scanned("CUSTOM", &[("target", "a"), ("class_name", sasi)]));
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
        assert_eq!(value(&schema, Release::V4_1, true, std::iter::empty()), None);
        let told = value(&schema, Release::V5_0, true, ["5.0.9"].into_iter());
        assert_eq!(told, Some("{}".to_owned()));
    }
}
