//! The schema's version: a digest over the live rows of `system_schema`
//! (`SchemaKeyspace.calculateSchemaDigest`, `RowIterators.digest`; interop.md, section 3).

use std::cmp::Ordering;

use md5::{Digest, Md5};
use types::Token;

use crate::schema::version_of_digest;
use crate::stored::rows::{SchemaPartition, SchemaRow, SchemaRows};
use crate::stored::table::SchemaTable;
use crate::stored::value;

/// Keyspaces that each node defines for itself; no digest takes them.
const LOCAL_KEYSPACES: [&str; 4] =
    ["system", "system_schema", "system_views", "system_virtual_schema"];

/// Is it one of those?
pub(crate) fn is_local(keyspace: &str) -> bool {
    LOCAL_KEYSPACES.contains(&keyspace)
}

/// No timestamp.
const NONE: [u8; 8] = i64::MIN.to_be_bytes();
/// How a boolean hashes: inverted.
const FALSE: [u8; 1] = [1];
/// `ClusteringPrefix.Kind` of rows.
const CLUSTERING: [u8; 1] = [4];
/// `ClusteringPrefix.Kind` of static rows.
const STATIC_CLUSTERING: [u8; 1] = [3];
/// Marks a row (`Unfiltered.Kind`).
const ROW: [u8; 1] = [0];
/// The TTL of cells that do not expire.
const NO_TTL: [u8; 4] = [0; 4];

impl SchemaRows {
    /// The version of this schema, a version 3 UUID.
    pub fn version(&self) -> [u8; 16] {
        let mut keyspaces: Vec<&str> = self.keyspaces().filter(|name| !is_local(name)).collect();
        keyspaces.sort_by_cached_key(|name| (Token::of(name.as_bytes()), *name));
        let mut digest = Md5::new();
        for table in SchemaTable::ALL {
            let columns = table.regular_columns();
            for keyspace in &keyspaces {
                if let Some(partition) = self.partition(keyspace, table) {
                    digest_partition(&mut digest, keyspace, table, &columns, partition);
                }
            }
        }
        version_of_digest(digest.finalize().into())
    }
}

fn digest_partition(
    digest: &mut Md5,
    keyspace: &str,
    table: SchemaTable,
    columns: &[&str],
    partition: &SchemaPartition,
) {
    let mut rows: Vec<(&Vec<Vec<u8>>, &SchemaRow)> = partition.live_rows().collect();
    if rows.is_empty() {
        return;
    }
    if matches!(table, SchemaTable::Functions | SchemaTable::Aggregates) {
        rows.sort_by(|(a, _), (b, _)| compare_signatures(a, b));
    }
    digest.update(keyspace);
    for column in columns {
        digest.update(column);
    }
    digest.update(FALSE);
    digest.update(ROW);
    digest.update(STATIC_CLUSTERING);
    digest.update(NONE);
    digest.update(FALSE);
    digest.update(NONE);
    for (clustering, row) in rows {
        digest_row(digest, clustering, row);
    }
}

fn digest_row(digest: &mut Md5, clustering: &[Vec<u8>], row: &SchemaRow) {
    digest.update(ROW);
    for value in clustering {
        digest.update(value);
    }
    digest.update(CLUSTERING);
    // a read purges deletions
    digest.update(NONE);
    digest.update(FALSE);
    digest.update(row.liveness.map_or(NONE, i64::to_be_bytes));
    for cell in row.cells.values() {
        if let Some(value) = &cell.value {
            digest.update(value);
            digest.update(cell.timestamp.to_be_bytes());
            digest.update(NO_TTL);
            digest.update(FALSE);
        }
    }
}

/// Name, then the list of argument types, element by element.
fn compare_signatures(a: &[Vec<u8>], b: &[Vec<u8>]) -> Ordering {
    let types = |clustering: &[Vec<u8>]| {
        let types = clustering.get(1).and_then(|bytes| value::read_list(bytes));
        types.unwrap_or_default().into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    a.first().cmp(&b.first()).then_with(|| types(a).cmp(&types(b)))
}
