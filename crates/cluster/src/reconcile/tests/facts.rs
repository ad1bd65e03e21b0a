//! Arbitrary writes to a few partitions, of which each replica has some.

use std::sync::Arc;

use proptest::prelude::*;
use rows::counter;
use rows::{
    Bound, BoundKind, CellKind, CellRef, Clustering, Deletion, Liveness, NO_DELETION_TIME,
    PartitionUpdate, RangeTombstone, RowBuilder, UpdateBuilder,
};
use schema::{ColumnKind, Table, TableFlags, TableId};
use types::CqlType;

/// Seconds: some of what expires has by then.
pub const NOW: i32 = 1001;
pub const KEYS: u8 = 4;

/// Two clustering columns, of which the second is descending; static and regular columns, simple
/// and complex ones.
pub fn table(is_counter: bool) -> Arc<Table> {
    let (key, value) = (CqlType::Text.into(), CqlType::Int.into());
    let map = CqlType::Map { key, value, frozen: false };
    let set = CqlType::Set { element: CqlType::Int.into(), frozen: false };
    let mut table = Table::builder("ks", "t", TableId([7; 16]))
        .column("k", CqlType::Int, ColumnKind::PartitionKey)
        .column("c", CqlType::Int, ColumnKind::Clustering)
        .clustering_desc("d", CqlType::Text);
    if is_counter {
        table.flags = TableFlags { counter: true, ..TableFlags::default() };
        table = table
            .column("s", CqlType::Counter, ColumnKind::Static)
            .column("t", CqlType::Counter, ColumnKind::Regular)
            .column("v", CqlType::Counter, ColumnKind::Regular);
    } else {
        table = table
            .column("s", CqlType::Int, ColumnKind::Static)
            .column("sm", map.clone(), ColumnKind::Static)
            .column("t", CqlType::Text, ColumnKind::Regular)
            .column("v", CqlType::Int, ColumnKind::Regular)
            .column("m", map, ColumnKind::Regular)
            .column("z", set, ColumnKind::Regular);
    }
    Arc::new(table.build())
}

/// One effect of a write.
#[derive(Clone, Debug)]
pub enum Fact {
    Partition(Deletion),
    Range(RangeTombstone),
    /// Of the row at a clustering, or of the static row.
    Row(Option<Clustering>, RowFact),
}

#[derive(Clone, Debug)]
pub enum RowFact {
    Liveness(Liveness),
    Deletion(Deletion),
    Complex(u16, Deletion),
    Cell(CellFact),
}

#[derive(Clone, Debug)]
pub struct CellFact {
    column: u16,
    kind: CellKind,
    timestamp: i64,
    ttl: i32,
    seconds: i64,
    path: Option<Vec<u8>>,
    value: u8,
}

/// A fact of a partition, and which replicas have it: a bit for each.
pub type Known = (u8, u8, Fact);

pub fn key_of(key: u8) -> Vec<u8> {
    i32::from(key).to_be_bytes().to_vec()
}

pub fn clustering_of(values: &[u8]) -> Clustering {
    let value = |(at, value): (usize, &u8)| match at {
        0 => i32::from(*value).to_be_bytes().to_vec(),
        _ => vec![b'a' + *value],
    };
    let values: Vec<_> = values.iter().enumerate().map(value).collect();
    Clustering::new(values.iter().map(|value| Some(&value[..])))
}

pub fn clustering() -> impl Strategy<Value = Clustering> {
    (0u8..3, 0u8..3).prop_map(|(c, d)| clustering_of(&[c, d]))
}

pub fn bound(is_start: bool) -> impl Strategy<Value = Bound> {
    (any::<bool>(), prop::collection::vec(0u8..3, 0..3)).prop_map(move |(inclusive, values)| {
        let kind = match (is_start, inclusive || values.is_empty()) {
            (true, true) => BoundKind::InclStart,
            (true, false) => BoundKind::ExclStart,
            (false, true) => BoundKind::InclEnd,
            (false, false) => BoundKind::ExclEnd,
        };
        Bound::new(kind, clustering_of(&values))
    })
}

/// Odd timestamps, so that none is a cell's: what becomes of a cell at the very time of its
/// column's deletion depends, in Cassandra too, on how the row was put together.
fn deletion() -> impl Strategy<Value = Deletion> {
    (0i64..6, 0i64..2).prop_map(|(at, seconds)| Deletion::new(2 * at + 1, 1000 + seconds))
}

fn any_deletion() -> impl Strategy<Value = Deletion> {
    (0i64..12, 0i64..2).prop_map(|(at, seconds)| Deletion::new(at, 1000 + seconds))
}

fn liveness() -> impl Strategy<Value = Liveness> {
    (0i64..12, 0i32..2, 0i64..3).prop_map(|(at, ttl, end)| Liveness::expiring(at, ttl, 1000 + end))
}

fn cell(columns: &'static [bool]) -> impl Strategy<Value = RowFact> {
    let parts = (0..columns.len(), 0i64..12, 0u8..5, 0i64..3, 0u8..3, 0u8..3);
    parts.prop_map(move |(column, timestamp, kind, seconds, path, value)| {
        let kind = match kind {
            0 => CellKind::Tombstone,
            1 => CellKind::Expiring,
            _ => CellKind::Live,
        };
        RowFact::Cell(CellFact {
            column: column as u16,
            kind,
            timestamp: if columns[column] { timestamp & !1 } else { timestamp },
            ttl: i32::from(kind == CellKind::Expiring),
            seconds: if kind == CellKind::Live { NO_DELETION_TIME } else { 1000 + seconds },
            path: columns[column].then(|| match column {
                3 => i32::from(path).to_be_bytes().to_vec(),
                _ => vec![b'a' + path],
            }),
            value,
        })
    })
}

fn row_fact() -> impl Strategy<Value = RowFact> {
    prop_oneof![
        3 => liveness().prop_map(RowFact::Liveness),
        2 => any_deletion().prop_map(RowFact::Deletion),
        1 => (2u16..4, deletion()).prop_map(|(column, deletion)| RowFact::Complex(column, deletion)),
        6 => cell(&[false, false, true, true]),
    ]
}

fn static_fact() -> impl Strategy<Value = RowFact> {
    prop_oneof![
        1 => deletion().prop_map(|deletion| RowFact::Complex(1, deletion)),
        4 => cell(&[false, true]),
    ]
}

fn range() -> impl Strategy<Value = RangeTombstone> {
    let of_bounds = (bound(true), bound(false));
    // just before or after rows, where merges are cut
    let of_rows = (clustering(), clustering(), any::<bool>(), any::<bool>()).prop_map(
        |(first, last, with_first, with_last)| {
            let start = if with_first { BoundKind::InclStart } else { BoundKind::ExclStart };
            let end = if with_last { BoundKind::InclEnd } else { BoundKind::ExclEnd };
            (Bound::new(start, first), Bound::new(end, last))
        },
    );
    let bounds = prop_oneof![of_bounds, of_rows];
    let range = |((start, end), deletion)| RangeTombstone { start, end, deletion };
    (bounds, any_deletion()).prop_map(range)
}

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        1 => any_deletion().prop_map(Fact::Partition),
        4 => range().prop_map(Fact::Range),
        2 => static_fact().prop_map(|fact| Fact::Row(None, fact)),
        16 => (clustering(), row_fact()).prop_map(|(at, fact)| Fact::Row(Some(at), fact)),
    ]
}

/// Facts of a few partitions; most are known to several replicas.
pub fn known() -> impl Strategy<Value = Vec<Known>> {
    let replicas = prop_oneof![1u8..16, (0u32..4).prop_map(|replica| 1 << replica)];
    prop::collection::vec((replicas, 0..KEYS, fact()), 0..60)
}

fn build(table: &Table, at: Option<&Clustering>, fact: &RowFact, out: &mut RowBuilder) {
    let is_counter = table.layout.counter;
    match at {
        Some(clustering) => out.start_row(clustering.as_ref()),
        None => out.start_static(),
    }
    match fact {
        RowFact::Liveness(liveness) if !is_counter => out.liveness(*liveness),
        RowFact::Deletion(deletion) => out.deletion(*deletion),
        RowFact::Complex(column, deletion) if !is_counter => {
            out.complex_deletion(*column, *deletion);
        }
        RowFact::Liveness(_) | RowFact::Complex(..) => {}
        RowFact::Cell(cell) if is_counter => {
            let column = if at.is_none() { 0 } else { cell.column % 2 };
            let value = counter::global([cell.value; 16], cell.timestamp, cell.seconds & 0xff);
            match cell.kind {
                CellKind::Tombstone => {
                    out.cell(CellRef::tombstone(column, None, cell.timestamp, cell.seconds));
                }
                _ => out.cell(CellRef::live(column, None, cell.timestamp, &value)),
            }
        }
        RowFact::Cell(cell) => {
            let value = i32::from(cell.value).to_be_bytes();
            let has_value = cell.kind != CellKind::Tombstone && cell.column != 3;
            out.cell(CellRef {
                column: cell.column,
                kind: cell.kind,
                timestamp: cell.timestamp,
                ttl: cell.ttl,
                local_deletion_time: cell.seconds,
                path: cell.path.as_deref(),
                value: if has_value { &value } else { &[] },
            });
        }
    }
}

/// What a replica has of each partition.
pub fn updates(table: &Table, known: &[Known], replica: usize) -> Vec<PartitionUpdate> {
    let (mut out, mut scratch) = (RowBuilder::new(), RowBuilder::new());
    let mut updates = Vec::new();
    for key in 0..KEYS {
        let layout = Arc::clone(&table.layout);
        let mut update = UpdateBuilder::new(table.id.0, layout, &key_of(key));
        let has = |known: &&Known| known.0 & 1 << replica != 0 && known.1 == key;
        for (_, _, fact) in known.iter().filter(has) {
            match fact {
                Fact::Partition(deletion) => update.delete_partition(*deletion),
                Fact::Range(range) => update.delete_range(range.clone()),
                Fact::Row(at, fact) => {
                    build(table, at.as_ref(), fact, &mut out);
                    update.add(out.finish_row(&table.layout), &mut scratch);
                }
            }
        }
        let update = update.finish(&mut scratch);
        updates.extend(Some(update).filter(|update| !update.is_empty()));
    }
    updates
}
