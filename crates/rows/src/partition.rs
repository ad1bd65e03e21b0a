//! What one write does to one partition of one table, and to one key of several tables.

use crate::builder::RowBuilder;
use crate::column_map::ColumnMap;
use crate::compare::{compare, compare_clusterings};
use crate::layout::Layout;
use crate::marker::Unfiltered;
use crate::merge::{update_row, update_versions};
use crate::ranges::{Markers, RangeTombstone, RangeTombstoneList};
use crate::row::RowRef;
use crate::time::Deletion;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{Few, KeyBytes, Token};

/// Packed rows in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    bytes: Vec<u8>,
    /// Start and end of each.
    spans: Few<(usize, usize)>,
}

impl Rows {
    /// Appends a row.
    pub fn push(&mut self, row: RowRef<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(row.as_packed());
        self.spans.push((start, self.bytes.len()));
    }

    /// Appends a row in a buffer of its own, which becomes that of the rows if it is the first.
    fn push_buffer(&mut self, row: Vec<u8>) {
        if !self.is_empty() {
            return self.push(RowRef::from_packed(&row));
        }
        self.spans.push((0, row.len()));
        self.bytes = row;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of the packed rows.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The row at an index.
    pub fn get(&self, index: usize) -> Option<RowRef<'_>> {
        self.spans.get(index).map(|span| self.at(*span))
    }

    fn at(&self, (start, end): (usize, usize)) -> RowRef<'_> {
        let row = self.bytes.get(start..end);
        RowRef::from_packed(row.expect("the span of a row lies within the bytes of the rows"))
    }

    /// The rows.
    pub fn iter(&self) -> RowsIter<'_> {
        RowsIter { rows: self, indexes: 0..self.len() }
    }

    /// Sorts by clustering and merges rows of one clustering.
    fn normalize(&mut self, layout: &Layout, builder: &mut RowBuilder) {
        let order = |rows: &Self, a: &(usize, usize), b: &(usize, usize)| {
            compare_clusterings(layout, rows.at(*a).clustering(), rows.at(*b).clustering())
        };
        if self.spans.is_sorted_by(|a, b| order(self, a, b) == Ordering::Less) {
            return;
        }
        let mut spans = std::mem::take(&mut self.spans);
        spans.sort_by(|a, b| order(self, a, b));
        let mut merged = Self::default();
        for versions in spans.chunk_by(|a, b| order(self, a, b) == Ordering::Equal) {
            let versions = versions.iter().map(|span| self.at(*span));
            if let Some(row) = update_versions(layout, versions, builder) {
                merged.push(row);
            }
        }
        assert!(merged.len() <= spans.len(), "a clustering has one row, merged of its versions");
        *self = merged;
    }
}

/// Iterates over [`Rows`].
#[derive(Clone, Debug)]
pub struct RowsIter<'a> {
    rows: &'a Rows,
    indexes: std::ops::Range<usize>,
}

impl<'a> Iterator for RowsIter<'a> {
    type Item = RowRef<'a>;

    fn next(&mut self) -> Option<RowRef<'a>> {
        self.rows.get(self.indexes.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.indexes.size_hint()
    }
}

impl DoubleEndedIterator for RowsIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.get(self.indexes.next_back()?)
    }
}

impl ExactSizeIterator for RowsIter<'_> {}

/// What one write does to one partition (`PartitionUpdate`).
#[derive(Clone, Debug)]
pub struct PartitionUpdate {
    /// Id of the table.
    pub table: [u8; 16],
    /// The layout its rows are of. Each shard holds an `Arc` of its own making, so that counting
    /// references stays on one core.
    pub layout: Arc<Layout>,
    /// The partition key.
    pub key: KeyBytes,
    /// The token of the key.
    pub token: Token,
    /// The deletion of the whole partition, [`Deletion::LIVE`] for none.
    pub deletion: Deletion,
    pub(crate) static_row: Option<Box<[u8]>>,
    /// Rows by clustering, each clustering once.
    pub rows: Rows,
    /// Deletions of ranges.
    pub ranges: RangeTombstoneList,
}

impl PartitionUpdate {
    /// One that changes nothing.
    pub fn empty(table: [u8; 16], layout: Arc<Layout>, key: &[u8]) -> Self {
        Self {
            table,
            layout,
            key: key.into(),
            token: Token::of(key),
            deletion: Deletion::LIVE,
            static_row: None,
            rows: Rows::default(),
            ranges: RangeTombstoneList::new(),
        }
    }

    /// The static row.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        self.static_row.as_deref().map(RowRef::from_packed)
    }

    /// Does it do nothing?
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live()
            && self.static_row.is_none()
            && self.rows.is_empty()
            && self.ranges.is_empty()
    }

    /// The latest timestamp in it (`PartitionUpdate.maxTimestamp`); `i64::MIN` if there is nothing.
    pub fn max_timestamp(&self) -> i64 {
        let of = |deletion: Deletion| match deletion.is_live() {
            true => i64::MIN,
            false => deletion.marked_for_delete_at,
        };
        let row = |row: RowRef<'_>| {
            let cells = row.cells().map(|cell| cell.timestamp).max();
            let liveness = row.liveness().map(|liveness| liveness.timestamp);
            of(row.deletion()).max(cells.max(liveness).unwrap_or(i64::MIN))
        };
        let rows = self.static_row().into_iter().chain(self.rows.iter()).map(row);
        let ranges = self.ranges.iter().map(|range| of(range.deletion));
        rows.chain(ranges).max().unwrap_or(i64::MIN).max(of(self.deletion))
    }

    /// About how many bytes it takes: what memory is accounted with.
    pub fn size(&self) -> usize {
        const RANGE: usize = size_of::<RangeTombstone>();
        let ranges = self.ranges.iter().map(|range| {
            let values = [&range.start, &range.end].map(|b| b.as_ref().values.as_packed().len());
            values.iter().sum::<usize>() + RANGE
        });
        let static_row = self.static_row.as_ref().map_or(0, |row| row.len());
        self.key.len() + self.rows.size() + static_row + ranges.sum::<usize>()
    }

    /// The same update of a table whose columns were altered since it was made: cells name other
    /// columns by the same index there. What it says of columns that are gone is left out, as it is
    /// when a log is replayed. `scratch` is written to.
    pub fn under(&self, layout: &Arc<Layout>, scratch: &mut RowBuilder) -> Self {
        let map = ColumnMap::new(&self.layout, layout);
        let mut out = UpdateBuilder::new(self.table, Arc::clone(layout), &self.key);
        out.delete_partition(self.deletion);
        self.ranges.iter().for_each(|range| out.delete_range(range.clone()));
        if let Some(row) = self.static_row().and_then(|row| map.apply(row, layout, scratch)) {
            out.set_static(Some(row.as_packed().into()));
        }
        for row in self.rows.iter() {
            if let Some(row) = map.apply(row, layout, scratch) {
                out.push_in_order(row);
            }
        }
        let altered = out.finish_in_order();
        assert!(altered.rows.len() <= self.rows.len(), "an ALTER adds no rows to an update");
        altered
    }

    /// Rows and markers in clustering order or reversed. Rows that a range deletes are among them.
    pub fn unfiltereds(&self, reversed: bool) -> Unfiltereds<'_> {
        Unfiltereds {
            layout: &self.layout,
            rows: self.rows.iter(),
            row: None,
            markers: self.ranges.markers(&self.layout, reversed).peekable(),
            reversed,
        }
    }
}

/// Iterates over the rows and markers of a [`PartitionUpdate`].
#[derive(Clone, Debug)]
pub struct Unfiltereds<'a> {
    layout: &'a Layout,
    rows: RowsIter<'a>,
    /// The next row, if it was looked at.
    row: Option<RowRef<'a>>,
    markers: std::iter::Peekable<Markers<'a>>,
    reversed: bool,
}

impl<'a> Iterator for Unfiltereds<'a> {
    type Item = Unfiltered<'a>;

    fn next(&mut self) -> Option<Unfiltered<'a>> {
        let next_row = || if self.reversed { self.rows.next_back() } else { self.rows.next() };
        let row = self.row.take().or_else(next_row);
        let (Some(row), Some(marker)) = (row, self.markers.peek()) else {
            return row
                .map(Unfiltered::Row)
                .or_else(|| self.markers.next().map(Unfiltered::Marker));
        };
        let order = compare(self.layout, marker.bound, row.clustering());
        if order == if self.reversed { Ordering::Greater } else { Ordering::Less } {
            self.row = Some(row);
            return self.markers.next().map(Unfiltered::Marker);
        }
        Some(Unfiltered::Row(row))
    }
}

/// Builds a [`PartitionUpdate`] from parts in any order.
#[derive(Clone, Debug)]
pub struct UpdateBuilder {
    update: PartitionUpdate,
}

impl UpdateBuilder {
    /// For a partition of a table.
    pub fn new(table: [u8; 16], layout: Arc<Layout>, key: &[u8]) -> Self {
        Self { update: PartitionUpdate::empty(table, layout, key) }
    }

    /// The layout that its rows are of.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.update.layout
    }

    /// The partition's key.
    pub fn key(&self) -> &KeyBytes {
        &self.update.key
    }

    /// Deletes the partition.
    pub fn delete_partition(&mut self, deletion: Deletion) {
        self.update.deletion = self.update.deletion.max(deletion);
    }

    /// Deletes a range.
    pub fn delete_range(&mut self, range: RangeTombstone) {
        self.update.ranges.insert(&self.update.layout, range);
    }

    /// Adds a row; a static one is merged with those before. Empty rows add nothing.
    pub fn add(&mut self, row: RowRef<'_>, scratch: &mut RowBuilder) {
        if row.is_empty() {
            return;
        }
        if !row.is_static() {
            return self.update.rows.push(row);
        }
        let merged = match self.update.static_row() {
            None => Some(row),
            Some(before) => update_row(&self.update.layout, before, row, scratch),
        };
        self.update.static_row = merged.map(|row| row.as_packed().into());
    }

    /// Adds the row that a builder has, which is left without its buffer if it is the first row.
    /// Empty ones add nothing.
    pub fn add_built(&mut self, builder: &mut RowBuilder, scratch: &mut RowBuilder) {
        let row = builder.finish_row(&self.update.layout);
        if row.is_static() || row.is_empty() {
            return self.add(row, scratch);
        }
        self.update.rows.push_buffer(builder.take_buffer());
    }

    /// The update; rows of one clustering are merged. `scratch` is written to.
    pub fn finish(mut self, scratch: &mut RowBuilder) -> PartitionUpdate {
        self.update.rows.normalize(&self.update.layout, scratch);
        self.update
    }

    pub(crate) fn set_static(&mut self, row: Option<Box<[u8]>>) {
        self.update.static_row = row;
    }

    pub(crate) fn push_in_order(&mut self, row: RowRef<'_>) {
        self.update.rows.push(row);
    }

    /// The update, of rows that were added in order.
    pub(crate) fn finish_in_order(self) -> PartitionUpdate {
        self.update
    }
}

/// Updates of one key in one or more tables of a keyspace: what is atomic (`Mutation`).
#[derive(Clone, Debug)]
pub struct Mutation {
    updates: Few<PartitionUpdate>,
}

impl Mutation {
    /// Of one update.
    pub fn new(update: PartitionUpdate) -> Self {
        Self { updates: Few::one(update) }
    }

    /// Adds an update of another table; hands it back if it is of another key or of a table that
    /// the mutation has already.
    pub fn push(&mut self, update: PartitionUpdate) -> Result<(), Box<PartitionUpdate>> {
        if update.key[..] != *self.key() || self.updates.iter().any(|u| u.table == update.table) {
            return Err(Box::new(update));
        }
        assert!(update.token == self.token(), "updates of one key have one token");
        self.updates.push(update);
        Ok(())
    }

    /// The partition key.
    pub fn key(&self) -> &[u8] {
        &self.first().key
    }

    /// Its token.
    pub fn token(&self) -> Token {
        self.first().token
    }

    fn first(&self) -> &PartitionUpdate {
        self.updates.first().expect("a mutation has at least one update")
    }

    /// The updates, at least one.
    pub fn updates(&self) -> &[PartitionUpdate] {
        &self.updates
    }

    /// The updates.
    pub fn into_updates(self) -> Few<PartitionUpdate> {
        self.updates
    }
}
