//! `system.compaction_history`: a row for each compaction, for a week
//! (`SystemKeyspace.updateCompactionHistory`).

use std::rc::Rc;

use protocol::ErrorResponse;
use storage::StorageError;
use storage::compaction::Record;
use types::CqlType;

use crate::internal::{self, Internal, Times};
use crate::own_cql::OwnCql;
use crate::shard_context::ShardContext;

const TABLE: &str = "compaction_history";
/// The one property that Cassandra keeps of a compaction.
const KIND: &str = "compaction_type";

/// A row, as `nodetool compactionhistory` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionRow {
    /// A time-UUID.
    pub id: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// When it ended, in milliseconds since the epoch.
    pub compacted_at: i64,
    /// Bytes of its inputs' data.
    pub bytes_in: i64,
    /// Bytes of its outputs' data.
    pub bytes_out: i64,
    /// How many partitions were in so many inputs: `{1:5, 4:1}`.
    pub rows_merged: String,
    /// `{compaction_type:Compaction}`.
    pub properties: String,
}

/// What compactions did.
pub struct CompactionHistory {
    shard: Rc<ShardContext>,
    own_cql: Rc<OwnCql>,
}

impl CompactionHistory {
    pub(crate) fn new(shard: &Rc<ShardContext>, own_cql: &Rc<OwnCql>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), own_cql: Rc::clone(own_cql) })
    }

    /// Writes the row of a compaction; none for those of the table itself.
    ///
    /// # Errors
    /// If it cannot be logged.
    pub async fn note(&self, record: &Record) -> Result<(), StorageError> {
        let schema = self.shard.schema();
        let Some(table) = schema.table("system", TABLE) else { return Ok(()) };
        if record.keyspace == "system" && record.table == TABLE {
            return Ok(());
        }
        let long = |value: u64| Internal::Value(value.to_be_bytes().to_vec());
        let text = |value: &str| Internal::Value(value.as_bytes().to_vec());
        let mut columns = vec![
            ("bytes_in", long(record.bytes_in)),
            ("bytes_out", long(record.bytes_out)),
            ("columnfamily_name", text(&record.table)),
            ("compacted_at", Internal::Value(record.millis.to_be_bytes().to_vec())),
            ("compaction_properties", Internal::Value(properties(record.kind))),
            ("keyspace_name", text(&record.keyspace)),
        ];
        for (inputs, partitions) in &record.merged {
            let (key, value) = (inputs.to_be_bytes().to_vec(), partitions.to_be_bytes().to_vec());
            columns.push(("rows_merged", Internal::Entry(key, value)));
        }
        let timestamp = self.shard.env.unique_micros();
        let ttl = table.params.default_time_to_live;
        let times = Times { timestamp, now_seconds: timestamp / 1_000_000, ttl };
        let row = internal::insert(table, &[&record.id], &[], &columns, &times);
        internal::apply(&self.shard.engine, row).await
    }

    /// The rows, the latest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn rows(&self) -> Result<Vec<CompactionRow>, ErrorResponse> {
        let text = "SELECT id, keyspace_name, columnfamily_name, compacted_at, bytes_in, bytes_out, rows_merged, \
             compaction_properties FROM system.compaction_history";
        let mut rows: Vec<_> = self
            .own_cql
            .run(text, &[])
            .await?
            .into_iter()
            .map(|row| CompactionRow {
                id: row.bytes(0).map(|id| CqlType::TimeUuid.to_text(id)).unwrap_or_default(),
                keyspace: row.text(1).unwrap_or_default(),
                table: row.text(2).unwrap_or_default(),
                compacted_at: row.long(3).unwrap_or_default(),
                bytes_in: row.long(4).unwrap_or_default(),
                bytes_out: row.long(5).unwrap_or_default(),
                rows_merged: shown(row.entries(6), |bytes| number(bytes).to_string()),
                properties: shown(row.entries(7), |bytes| {
                    String::from_utf8_lossy(bytes).into_owned()
                }),
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.compacted_at));
        Ok(rows)
    }
}

/// A frozen map with one entry.
fn properties(kind: &str) -> Vec<u8> {
    let mut map = 1i32.to_be_bytes().to_vec();
    for text in [KIND, kind] {
        map.extend_from_slice(&(text.len() as i32).to_be_bytes());
        map.extend_from_slice(text.as_bytes());
    }
    map
}

/// A big-endian integer of 4 or 8 bytes.
fn number(bytes: &[u8]) -> i64 {
    match (bytes.try_into().map(i32::from_be_bytes), bytes.try_into().map(i64::from_be_bytes)) {
        (Ok(short), _) => short.into(),
        (_, Ok(long)) => long,
        _ => 0,
    }
}

/// `{key:value, key:value}` (`FBUtilities.toString`).
fn shown(entries: Vec<(Vec<u8>, Vec<u8>)>, text: impl Fn(&[u8]) -> String) -> String {
    let entry = |(key, value): &(Vec<u8>, Vec<u8>)| format!("{}:{}", text(key), text(value));
    format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
}
