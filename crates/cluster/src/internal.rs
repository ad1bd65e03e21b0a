//! The node's own reads and writes of system tables, without CQL.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use env::Class;
use rows::{
    CellRef, ClusteringBuilder, Deletion, Liveness, Mutation, RowBuilder, Unfiltered, UpdateBuilder,
};
use schema::Table;
use storage::{Engine, PartitionKey, ScanStart, Slices, StorageError};

/// A value that the node writes.
#[derive(Clone, Debug)]
pub enum Internal {
    /// Of a simple column.
    Value(Vec<u8>),
    /// All elements of a set.
    Set(Vec<Vec<u8>>),
    /// More elements of a set.
    Elements(Vec<Vec<u8>>),
    /// One more entry of a map.
    Entry(Vec<u8>, Vec<u8>),
}

/// When a row is written, and how long it lives.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// In microseconds.
    pub timestamp: i64,
    /// The same time in seconds, for expiry.
    pub now_seconds: i64,
    /// Seconds; 0: for good.
    pub ttl: i32,
}

impl Times {
    /// Of a row that stays.
    pub fn new(timestamp: i64) -> Self {
        Self { timestamp, now_seconds: timestamp / 1_000_000, ttl: 0 }
    }
}

/// A row as an INSERT would write it. Names that are no columns of the table are left out.
pub fn insert(
    table: &Arc<Table>,
    key: &[&[u8]],
    clustering: &[&[u8]],
    columns: &[(&str, Internal)],
    times: &Times,
) -> Mutation {
    let key = table.partition_key_bytes(key).unwrap_or_default();
    let mut row = RowBuilder::new();
    build_row(table, clustering, columns, times, &mut row);
    let mut scratch = RowBuilder::new();
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &key);
    update.add(row.finish_row(&table.layout), &mut scratch);
    Mutation::new(update.finish(&mut scratch))
}

/// A row as an INSERT would write it, left in `row` to be finished.
pub(crate) fn build_row(
    table: &Table,
    clustering: &[&[u8]],
    columns: &[(&str, Internal)],
    times: &Times,
    row: &mut RowBuilder,
) {
    let Times { timestamp, now_seconds, ttl } = *times;
    let expires_at = now_seconds + i64::from(ttl);
    let cell = |column, path, value| match ttl {
        0 => CellRef::live(column, path, timestamp, value),
        _ => CellRef::expiring(column, path, timestamp, ttl, expires_at, value),
    };
    let mut prefix = ClusteringBuilder::default();
    clustering.iter().for_each(|value| prefix.push(Some(value)));
    row.start_row(prefix.finish());
    row.liveness(Liveness::expiring(timestamp, ttl, expires_at));
    for (name, value) in columns {
        let Some(column) = table.column(name).filter(|column| !column.kind.is_primary_key()) else {
            continue;
        };
        let at = column.index;
        let replaced = Deletion::new(timestamp - 1, now_seconds);
        match value {
            Internal::Value(value) => row.cell(cell(at, None, value)),
            Internal::Set(elements) | Internal::Elements(elements) => {
                if matches!(value, Internal::Set(_)) {
                    row.complex_deletion(at, replaced);
                }
                for element in elements {
                    row.cell(cell(at, Some(element), &[]));
                }
            }
            Internal::Entry(key, value) => row.cell(cell(at, Some(key), value)),
        }
    }
}

/// Applies a mutation on the shard that owns its key, and waits until it may be acknowledged.
///
/// # Errors
/// If it cannot be logged.
pub async fn apply(engine: &Rc<Engine>, mutation: Mutation) -> Result<(), StorageError> {
    let shard = engine.owner(mutation.token());
    let run = move |engine: Rc<Engine>| async move {
        let ticket = engine.apply(&mutation, true).await?;
        Ok::<_, StorageError>(ticket.durable().await?)
    };
    engine.shards().call_async(shard, Class::Admin, run).await?
}

/// A text of a row.
pub fn text(cells: &Cells, column: &str) -> Option<String> {
    let value = cells.get(column)?.values().next()?;
    String::from_utf8(value.clone()).ok()
}

/// A row's live cells: by column, then by path (empty for simple columns).
pub type Cells = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// The first row of a partition.
///
/// # Errors
/// If it cannot be read.
pub async fn read_row(
    engine: &Rc<Engine>,
    table: &Arc<Table>,
    key: &[u8],
) -> Result<Option<Cells>, StorageError> {
    let key = PartitionKey::new(key);
    let (shard, table) = (engine.owner(key.token), Arc::clone(table));
    let read = move |engine: Rc<Engine>| async move {
        let now = engine.env().unix_micros() / 1_000_000;
        let slices = Slices::all(false);
        let partition = engine.partition(&table, key.as_ref(), &slices).await?;
        let Some(mut partition) = partition else { return Ok(None) };
        while let Some(unfiltered) = partition.next().await? {
            let Unfiltered::Row(row) = unfiltered else { continue };
            let mut cells = Cells::new();
            for cell in row.cells().filter(|cell| cell.is_live(now)) {
                let Some(column) = table.regulars.get(usize::from(cell.column)) else { continue };
                let values = cells.entry(column.name.to_string()).or_default();
                values.insert(cell.path.unwrap_or_default().to_vec(), cell.value.to_vec());
            }
            return Ok(Some(cells));
        }
        Ok(None)
    };
    engine.shards().call_async(shard, Class::Admin, read).await?
}

/// Everything of a small table, tombstones included: one mutation a partition.
///
/// # Errors
/// If it cannot be read.
pub async fn read_all(
    engine: &Rc<Engine>,
    table: &Arc<Table>,
) -> Result<Vec<Mutation>, StorageError> {
    let mut all = Vec::new();
    for shard in 0..engine.shards().count() {
        let table = Arc::clone(table);
        let read = move |engine: Rc<Engine>| async move {
            let mut mutations = Vec::new();
            let mut scan = engine.scan(&table, ScanStart::Beginning).await?;
            while let Some(key) = scan.next().await? {
                let slices = Slices::all(false);
                let partition = engine.partition(&table, key.as_ref(), &slices).await?;
                if let Some(partition) = partition {
                    mutations.push(Mutation::new(partition.into_update(&key.bytes).await?));
                }
            }
            Ok::<_, StorageError>(mutations)
        };
        all.extend(engine.shards().call_async(shard, Class::Admin, read).await??);
    }
    Ok(all)
}

/// Waits until all that the owner of a key logged is synced.
///
/// # Errors
/// If the log failed.
pub async fn sync_owner(engine: &Rc<Engine>, key: &[u8]) -> Result<(), StorageError> {
    sync_shard(engine, engine.owner(types::Token::of(key))).await
}

/// Waits until all that a shard logged is synced.
///
/// # Errors
/// If the log failed.
pub async fn sync_shard(engine: &Rc<Engine>, shard: usize) -> Result<(), StorageError> {
    let sync = |engine: Rc<Engine>| async move {
        match engine.log() {
            Some(log) => Ok(log.sync().await?),
            None => Ok(()),
        }
    };
    engine.shards().call_async(shard, Class::Admin, sync).await?
}
