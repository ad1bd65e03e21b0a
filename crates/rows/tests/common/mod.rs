//! Arbitrary writes to one partition, and what of them is left, computed naively.
#![allow(dead_code)]

use proptest::prelude::*;
use rows::*;
use std::cmp::Ordering;
use std::sync::Arc;
use types::CqlType;

/// Two clustering columns of which the second is descending; two simple and two complex columns.
pub fn layout() -> Arc<Layout> {
    let column = |name: &str, ty| ColumnLayout { name: name.into(), ty };
    let map = CqlType::Map { key: CqlType::Text.into(), value: CqlType::Int.into(), frozen: false };
    let set = CqlType::Set { element: CqlType::Int.into(), frozen: false };
    Arc::new(Layout::new(
        vec![
            ClusteringColumn { ty: CqlType::Int, reversed: false },
            ClusteringColumn { ty: CqlType::Text, reversed: true },
        ],
        vec![column("s", CqlType::Int), column("sm", map.clone())],
        vec![
            column("v", CqlType::Int),
            column("t", CqlType::Text),
            column("m", map),
            column("s", set),
        ],
        false,
    ))
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFact {
    pub column: u16,
    pub kind: CellKind,
    pub timestamp: i64,
    pub ttl: i32,
    pub seconds: i64,
    pub path: Option<Vec<u8>>,
    pub value: Vec<u8>,
}

impl CellFact {
    pub fn as_ref(&self) -> CellRef<'_> {
        CellRef {
            column: self.column,
            kind: self.kind,
            timestamp: self.timestamp,
            ttl: self.ttl,
            local_deletion_time: self.seconds,
            path: self.path.as_deref(),
            value: &self.value,
        }
    }

    pub fn of(cell: CellRef<'_>) -> Self {
        Self {
            column: cell.column,
            kind: cell.kind,
            timestamp: cell.timestamp,
            ttl: cell.ttl,
            seconds: cell.local_deletion_time,
            path: cell.path.map(Into::into),
            value: cell.value.into(),
        }
    }
}

fn component(at: usize, value: u8) -> Vec<u8> {
    match at {
        0 => i32::from(value).to_be_bytes().to_vec(),
        _ => vec![b'a' + value; usize::from(value) + 1],
    }
}

pub fn clustering_of(values: &[u8]) -> Clustering {
    let values: Vec<_> = values.iter().enumerate().map(|(at, v)| component(at, *v)).collect();
    Clustering::new(values.iter().map(|v| Some(&v[..])))
}

fn clustering() -> impl Strategy<Value = Clustering> {
    (0u8..4, 0u8..4).prop_map(|(a, b)| clustering_of(&[a, b]))
}

pub fn all_clusterings() -> Vec<Clustering> {
    (0u8..4).flat_map(|a| (0u8..4).map(move |b| clustering_of(&[a, b]))).collect()
}

fn bound(start: bool) -> impl Strategy<Value = Bound> {
    (any::<bool>(), prop::collection::vec(0u8..4, 0..3)).prop_map(move |(inclusive, values)| {
        let kind = match (start, inclusive || values.is_empty()) {
            (true, true) => BoundKind::InclStart,
            (true, false) => BoundKind::ExclStart,
            (false, true) => BoundKind::InclEnd,
            (false, false) => BoundKind::ExclEnd,
        };
        Bound::new(kind, clustering_of(&values))
    })
}

/// Odd timestamps, so that none is a cell's: Cassandra itself keeps or drops a cell of a complex
/// column's deletion's very timestamp depending on how the row was put together.
fn deletion() -> impl Strategy<Value = Deletion> {
    (0i64..8, 0i64..3).prop_map(|(ts, seconds)| Deletion::new(2 * ts + 1, 1000 + seconds))
}

/// Timestamps of rows' and partitions' deletions may be those of cells.
fn any_deletion() -> impl Strategy<Value = Deletion> {
    (0i64..16, 0i64..3).prop_map(|(ts, seconds)| Deletion::new(ts, 1000 + seconds))
}

fn liveness() -> impl Strategy<Value = Liveness> {
    (0i64..16, 0i32..3, 0i64..3).prop_map(|(ts, ttl, at)| Liveness::expiring(ts, ttl, 1000 + at))
}

fn cell(columns: &'static [bool]) -> impl Strategy<Value = CellFact> {
    let ints = |v: u8| i32::from(v).to_be_bytes().to_vec();
    (0..columns.len(), 0i64..8, 0u8..3, 0i32..3, 0i64..2, 0u8..3, 0u8..3).prop_map(
        move |(column, ts, kind, ttl, seconds, path, value)| {
            let kind = [CellKind::Live, CellKind::Expiring, CellKind::Tombstone][usize::from(kind)];
            let path = columns[column].then(|| match column {
                3 => ints(path),
                _ => vec![b'a' + path],
            });
            let value = match (kind, column) {
                (CellKind::Tombstone, _) | (_, 3) => vec![],
                _ => ints(value),
            };
            CellFact {
                column: column as u16,
                kind,
                timestamp: 2 * ts,
                ttl: if kind == CellKind::Expiring { ttl + 1 } else { 0 },
                seconds: if kind == CellKind::Live { NO_DELETION_TIME } else { 1000 + seconds },
                path,
                value,
            }
        },
    )
}

pub fn row_fact(is_static: bool) -> BoxedStrategy<RowFact> {
    let columns: &[bool] = if is_static { &[false, true] } else { &[false, false, true, true] };
    let complex = (if is_static { 1u16..2 } else { 2u16..4 }, deletion());
    if is_static {
        return prop_oneof![
            1 => complex.prop_map(|(column, deletion)| RowFact::Complex(column, deletion)),
            6 => cell(columns).prop_map(RowFact::Cell),
        ]
        .boxed();
    }
    prop_oneof![
        2 => liveness().prop_map(RowFact::Liveness),
        1 => any_deletion().prop_map(RowFact::Deletion),
        1 => complex.prop_map(|(column, deletion)| RowFact::Complex(column, deletion)),
        6 => cell(columns).prop_map(RowFact::Cell),
    ]
    .boxed()
}

pub fn range() -> impl Strategy<Value = RangeTombstone> {
    (bound(true), bound(false), any_deletion()).prop_map(|(start, end, deletion)| RangeTombstone {
        start,
        end,
        deletion,
    })
}

pub fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        1 => any_deletion().prop_map(Fact::Partition),
        4 => range().prop_map(Fact::Range),
        2 => row_fact(true).prop_map(|fact| Fact::Row(None, fact)),
        12 => (clustering(), row_fact(false)).prop_map(|(at, fact)| Fact::Row(Some(at), fact)),
    ]
}

/// A row of several facts, as a builder makes it.
pub fn build_row<'b>(
    layout: &Layout,
    at: Option<&Clustering>,
    facts: &[&RowFact],
    out: &'b mut RowBuilder,
) -> RowRef<'b> {
    match at {
        Some(clustering) => out.start_row(clustering.as_ref()),
        None => out.start_static(),
    }
    let best =
        facts.iter().filter_map(|f| if let RowFact::Liveness(l) = f { Some(*l) } else { None });
    if let Some(best) = best.reduce(|a, b| if b.supersedes(&a) { b } else { a }) {
        out.liveness(best);
    }
    let deletions =
        facts.iter().filter_map(|f| if let RowFact::Deletion(d) = f { Some(*d) } else { None });
    if let Some(deletion) = deletions.reduce(Deletion::max) {
        out.deletion(deletion);
    }
    let mut complex: Vec<(u16, Deletion)> = Vec::new();
    for fact in facts {
        match fact {
            RowFact::Complex(column, deletion) => complex.push((*column, *deletion)),
            RowFact::Cell(cell) => out.cell(cell.as_ref()),
            RowFact::Liveness(_) | RowFact::Deletion(_) => {}
        }
    }
    // Of equal timestamps the builder keeps the first; only the newest is handed to it.
    complex.sort_by(|a, b| {
        let supersedes = if a.1.supersedes(&b.1) { Ordering::Less } else { Ordering::Greater };
        a.0.cmp(&b.0).then(if a.1 == b.1 { Ordering::Equal } else { supersedes })
    });
    complex.dedup_by_key(|(column, _)| *column);
    for (column, deletion) in complex {
        out.complex_deletion(column, deletion);
    }
    out.finish_row(layout)
}

/// The facts as one update, a row for each fact.
pub fn update_of(layout: &Arc<Layout>, facts: &[Fact]) -> PartitionUpdate {
    let mut builder = UpdateBuilder::new([7; 16], layout.clone(), b"key");
    let (mut out, mut scratch) = (RowBuilder::new(), RowBuilder::new());
    for fact in facts {
        match fact {
            Fact::Partition(deletion) => builder.delete_partition(*deletion),
            Fact::Range(range) => builder.delete_range(range.clone()),
            Fact::Row(at, fact) => {
                builder.add(build_row(layout, at.as_ref(), &[fact], &mut out), &mut scratch);
            }
        }
    }
    builder.finish(&mut scratch)
}

/// What is left of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    pub liveness: Option<Liveness>,
    pub deletion: Deletion,
    pub cells: Vec<CellFact>,
}

impl Remains {
    pub fn of(row: RowRef<'_>) -> Self {
        Self {
            liveness: row.liveness(),
            deletion: row.deletion(),
            cells: row.cells().map(CellFact::of).collect(),
        }
    }

    /// Without the deletion of a column at the time of the row's, which an update keeps and a merge
    /// of updates does not: it deletes nothing more.
    pub fn of_updates(row: RowRef<'_>) -> Self {
        let mut remains = Self::of(row);
        let deletion = row.deletion();
        let says_more =
            |cell: &CellRef<'_>| !cell.is_complex_deletion() || cell.as_deletion() != deletion;
        remains.cells = row.cells().filter(says_more).map(CellFact::of).collect();
        remains
    }

    pub fn is_empty(&self) -> bool {
        self.liveness.is_none() && self.deletion.is_live() && self.cells.is_empty()
    }
}

/// The newest deletion of ranges that covers a row, by asking every range; of one timestamp the
/// first.
pub fn covering(layout: &Layout, facts: &[Fact], at: &Clustering) -> Deletion {
    let covers = |range: &RangeTombstone| {
        compare(layout, &range.start, at) == Ordering::Less
            && compare(layout, at, &range.end) == Ordering::Less
    };
    let ranges = facts.iter().filter_map(|f| if let Fact::Range(r) = f { Some(r) } else { None });
    let newer = |before: Deletion, after: Deletion| {
        if after.marked_for_delete_at > before.marked_for_delete_at { after } else { before }
    };
    ranges.filter(|r| covers(r)).map(|r| r.deletion).fold(Deletion::LIVE, newer)
}

pub fn partition_deletion(facts: &[Fact]) -> Deletion {
    let deletions =
        facts.iter().map(|f| if let Fact::Partition(d) = f { *d } else { Deletion::LIVE });
    deletions.fold(Deletion::LIVE, Deletion::max)
}

/// What the facts leave of a row under a deletion, without any of the code that is tested but the
/// comparison of two versions of a liveness and of a path's type.
pub fn remains(facts: &[&RowFact], active: Deletion) -> Remains {
    let mut deletion = Deletion::LIVE;
    for fact in facts {
        if let RowFact::Deletion(d) = fact {
            deletion = deletion.max(*d);
        }
    }
    if !deletion.supersedes(&active) {
        deletion = Deletion::LIVE;
    }
    let active = active.max(deletion);
    let mut liveness: Option<Liveness> = None;
    for fact in facts {
        if let RowFact::Liveness(l) = fact
            && !active.deletes(l.timestamp)
            && liveness.is_none_or(|best| l.supersedes(&best))
        {
            liveness = Some(*l);
        }
    }
    let mut cells = Vec::new();
    for column in 0..4u16 {
        let mut complex = Deletion::LIVE;
        for fact in facts {
            if let RowFact::Complex(c, d) = fact
                && *c == column
            {
                complex = complex.max(*d);
            }
        }
        let mut active = active;
        if complex.supersedes(&active) {
            active = complex;
            cells.push(CellFact::of(CellRef::complex_deletion(column, complex)));
        }
        let mut versions: Vec<&CellFact> = Vec::new();
        for fact in facts {
            if let RowFact::Cell(cell) = fact
                && cell.column == column
                && !active.deletes(cell.timestamp)
            {
                versions.push(cell);
            }
        }
        // Paths of these columns are ordered as their bytes are: text, and small non-negative ints.
        versions.sort_by(|a, b| a.path.cmp(&b.path).then(strength(b).cmp(&strength(a))));
        versions.dedup_by(|a, b| a.path == b.path);
        cells.extend(versions.into_iter().cloned());
    }
    Remains { liveness, deletion, cells }
}

/// Spelled out once more, from `Cells.resolveRegular`.
fn strength(cell: &CellFact) -> (i64, u8, i64, i32, Vec<u8>) {
    let kind = match cell.kind {
        CellKind::Live => 0,
        CellKind::Expiring => 1,
        _ => 2,
    };
    (cell.timestamp, kind, cell.seconds, -cell.ttl, cell.value.clone())
}
