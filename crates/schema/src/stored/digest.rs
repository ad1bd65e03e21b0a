//! The schema's version: a digest over the live rows of `system_schema`
//! (`SchemaKeyspace.calculateSchemaDigest`, `RowIterators.digest`; interop.md, section 3).
//!
//! Nodes of different releases may say different versions of one schema: a digest is of a
//! `Release`.

use std::cmp::Ordering;

use md5::{Digest, Md5};
use rows::RowBuilder;
use rows::digest::{PartitionDigest, digest_row};
use types::Token;

use crate::release::Release;
use crate::schema::version_of_digest;
use crate::stored::mutation::build_row;
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

impl SchemaRows {
    /// The version of this schema among nodes of a release, a version 3 UUID. `now` in seconds:
    /// what has expired by then is left out, as deletions are.
    pub fn version(&self, release: Release, now: i64) -> [u8; 16] {
        let mut keyspaces: Vec<&str> = self.keyspaces().filter(|name| !is_local(name)).collect();
        keyspaces.sort_by_cached_key(|name| (Token::of(name.as_bytes()), *name));
        let mut digest = Md5::new();
        for table in SchemaTable::ALL.into_iter().filter(|table| release.has(*table)) {
            let read = Read { table, layout: &table.layout(), release, now };
            for keyspace in &keyspaces {
                if let Some(partition) = self.partition(keyspace, table) {
                    read.digest(keyspace, partition, &mut |bytes| digest.update(bytes));
                }
            }
        }
        version_of_digest(digest.finalize().into())
    }
}

/// The read of a whole table that is hashed.
struct Read<'a> {
    table: SchemaTable,
    layout: &'a rows::Layout,
    release: Release,
    now: i64,
}

impl Read<'_> {
    fn digest(&self, keyspace: &str, partition: &SchemaPartition, sink: &mut impl FnMut(&[u8])) {
        let mut rows: Vec<(&Vec<Vec<u8>>, &SchemaRow)> = partition.live_rows(self.now).collect();
        if rows.is_empty() {
            return;
        }
        if matches!(self.table, SchemaTable::Functions | SchemaTable::Aggregates) {
            rows.sort_by(|(a, _), (b, _)| compare_signatures(a, b));
        }
        let head = PartitionDigest {
            key: keyspace.as_bytes(),
            deletion: None,
            is_reversed: false,
            static_row: None,
        };
        let is_fetched = |_, at: u16| {
            let column = self.layout.regulars.get(usize::from(at));
            column.is_some_and(|column| self.release.has_column(self.table, &column.name))
        };
        head.digest(self.layout, is_fetched, sink);
        let mut builder = RowBuilder::new();
        for (clustering, row) in rows {
            let row = row.live_at(self.now);
            // a read purges deletions, and columns that there are not have no cells
            if build_row(self.layout, clustering, &row, &mut builder).is_ok() {
                digest_row(self.layout, builder.finish_row(self.layout), sink);
            }
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
