//! The tables that the clients use, as a schema for the engine, and changes of them as mutations.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{
    Bound, BoundKind, CellRef, Clustering, Deletion, Liveness, Mutation, RangeTombstone,
    RowBuilder, UpdateBuilder,
};
use schema::{
    ColumnKind, CompressionParams, Keyspace, Replication, RowsPerPartition, Schema, Table, TableId,
    TableParams,
};
use storage::Slices;
use types::CqlType;

use crate::operation::{Change, Column, Partition, Range, TABLES, Value, Write};

/// The keyspace.
pub const KEYSPACE: &str = "sim";

/// A table of that number.
pub fn table(number: u8) -> Arc<Table> {
    // where it is enabled, one table is captured
    let mut params = TableParams { cdc: number == 0, ..TableParams::default() };
    params.compaction.options.insert("min_threshold".into(), "2".into());
    // the first rows of the one, all of the other, as far as the cache goes
    params.caching.rows_per_partition = match number {
        1 => RowsPerPartition::All,
        _ => RowsPerPartition::Head(3),
    };
    if number == 1 {
        // files of different sizes stay apart, so that tombstones and what they delete meet late
        params.compaction.options.insert("min_sstable_size".into(), "1024".into());
        params.gc_grace_seconds = 0;
        params.compression = CompressionParams::none();
    }
    let name = format!("t{number}");
    let builder = Table::builder(KEYSPACE, name, TableId([number + 1; 16]))
        .params(params)
        .column("k", CqlType::Int, ColumnKind::PartitionKey)
        .column("s", CqlType::Blob, ColumnKind::Static)
        .column("a", CqlType::Blob, ColumnKind::Regular)
        .column("b", CqlType::BigInt, ColumnKind::Regular);
    let builder = match number {
        1 => builder.clustering_desc("c", CqlType::Int),
        _ => builder.column("c", CqlType::Int, ColumnKind::Clustering),
    };
    Arc::new(builder.build())
}

/// The schema of all of them.
pub fn schema() -> Arc<Schema> {
    schema_of(table)
}

/// The same, where nothing is compacted that nobody asks for.
pub fn schema_at_rest() -> Arc<Schema> {
    schema_of(|number| {
        let mut table = table(number);
        let options = &mut Arc::make_mut(&mut table).params.compaction.options;
        options.insert("enabled".into(), "false".into());
        table
    })
}

fn schema_of(table: impl Fn(u8) -> Arc<Table>) -> Arc<Schema> {
    let tables = (0..TABLES).map(|number| (format!("t{number}"), table(number))).collect();
    let keyspace = Keyspace {
        name: KEYSPACE.into(),
        durable_writes: true,
        replication: Replication::simple(1),
        tables,
        types: BTreeMap::new(),
        views: BTreeMap::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    };
    Arc::new(Schema::new([Arc::new(keyspace)], Schema::empty_version(), 1))
}

/// A partition's key in bytes.
pub fn key_bytes(partition: Partition) -> [u8; 4] {
    partition.key.to_be_bytes()
}

/// The bounds of a range in the table's clustering order.
fn bounds(partition: Partition, range: Range) -> (Bound, Bound) {
    let clustering = |value: i32| Clustering::new([Some(&value.to_be_bytes()[..])]);
    let (first, last) = match partition.is_descending() {
        false => (range.from, range.to),
        true => (range.to, range.from),
    };
    let start = first.map_or(Bound::bottom(), |(value, with)| {
        let kind = if with { BoundKind::InclStart } else { BoundKind::ExclStart };
        Bound::new(kind, clustering(value))
    });
    let end = last.map_or(Bound::top(), |(value, with)| {
        let kind = if with { BoundKind::InclEnd } else { BoundKind::ExclEnd };
        Bound::new(kind, clustering(value))
    });
    (start, end)
}

/// A range as slices.
pub fn slices(partition: Partition, range: Range, reversed: bool) -> Slices {
    Slices::new([bounds(partition, range)], reversed)
}

/// A write as mutations, one for each key, at one timestamp.
pub fn mutations(schema: &Schema, write: &Write, timestamp: i64, now: i64) -> Vec<Mutation> {
    let mut builders: BTreeMap<(i32, u8), UpdateBuilder> = BTreeMap::new();
    let mut scratch = RowBuilder::new();
    for (partition, change) in &write.changes {
        let name = format!("t{}", partition.table);
        let Some(table) = schema.table(KEYSPACE, &name) else { continue };
        let builder = builders.entry((partition.key, partition.table)).or_insert_with(|| {
            UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &key_bytes(*partition))
        });
        add(builder, *partition, change, Stamp { timestamp, now }, &mut scratch);
    }
    let mut mutations: BTreeMap<i32, Mutation> = BTreeMap::new();
    for ((key, _), builder) in builders {
        let update = builder.finish(&mut scratch);
        match mutations.get_mut(&key) {
            None => drop(mutations.insert(key, Mutation::new(update))),
            Some(mutation) => drop(mutation.push(update)),
        }
    }
    mutations.into_values().collect()
}

#[derive(Clone, Copy)]
struct Stamp {
    timestamp: i64,
    now: i64,
}

impl Stamp {
    fn deletion(self) -> Deletion {
        Deletion::new(self.timestamp, self.now)
    }

    fn cell(self, column: u16, value: Option<&[u8]>, ttl: Option<u32>) -> CellRef<'_> {
        match (value, ttl) {
            (None, _) => CellRef::tombstone(column, None, self.timestamp, self.now),
            (Some(value), None) => CellRef::live(column, None, self.timestamp, value),
            (Some(value), Some(ttl)) => {
                let expires = self.now + i64::from(ttl);
                CellRef::expiring(column, None, self.timestamp, ttl as i32, expires, value)
            }
        }
    }
}

/// Places in the layout: simple columns by name.
const S: u16 = 0;
const A: u16 = 0;
const B: u16 = 1;

fn add(
    builder: &mut UpdateBuilder,
    partition: Partition,
    change: &Change,
    stamp: Stamp,
    scratch: &mut RowBuilder,
) {
    let layout = Arc::clone(builder.layout());
    let mut row = RowBuilder::new();
    let clustering = |value: i32| Clustering::new([Some(&value.to_be_bytes()[..])]);
    let blob = |value: Option<Value>| value.map(Value::to_blob);
    let number = |value: Option<Value>| value.map(|value| value.0.to_be_bytes());
    match *change {
        Change::Insert { row: at, a, b, ttl } => {
            row.start_row(clustering(at).as_ref());
            let expires = stamp.now + i64::from(ttl.unwrap_or(0));
            let ttl_seconds = ttl.unwrap_or(0) as i32;
            row.liveness(Liveness::expiring(stamp.timestamp, ttl_seconds, expires));
            row.cell(stamp.cell(A, Some(&a.to_blob()), ttl));
            if let Some(b) = number(b) {
                row.cell(stamp.cell(B, Some(&b), ttl));
            }
        }
        Change::Set { row: at, column: Column::A, value, ttl } => {
            row.start_row(clustering(at).as_ref());
            row.cell(stamp.cell(A, blob(value).as_deref(), ttl));
        }
        Change::Set { row: at, column: Column::B, value, ttl } => {
            row.start_row(clustering(at).as_ref());
            row.cell(stamp.cell(B, number(value).as_ref().map(|b| &b[..]), ttl));
        }
        Change::Static { value } => {
            row.start_static();
            row.cell(stamp.cell(S, blob(value).as_deref(), None));
        }
        Change::DeleteRow { row: at } => {
            row.start_row(clustering(at).as_ref());
            row.deletion(stamp.deletion());
        }
        Change::DeleteRange { range } => {
            let (start, end) = bounds(partition, range);
            builder.delete_range(RangeTombstone { start, end, deletion: stamp.deletion() });
            return;
        }
        Change::DeletePartition => return builder.delete_partition(stamp.deletion()),
    }
    builder.add(row.finish_row(&layout), scratch);
}
