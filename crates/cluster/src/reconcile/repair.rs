//! What each replica lacks of what was merged (`RowIteratorMergeListener`), as writes that bring it
//! level.

use internode::payload::read::ColumnFilter;
use rows::{
    Bound, BoundRef, ClusteringRef, Deletion, Heads, PartitionUpdate, RangeTombstone, RowBuilder,
    RowRef, Unfiltered, UpdateBuilder, diff_rows,
};
use schema::Table;
use storage::PartitionKey;

use super::Partition;
use super::ends::{after, as_edge};
use crate::replica_read::fetched::Fetched;

/// Compares the sources of a merge, partition by partition, with what comes out.
pub(super) struct Repairs<'c> {
    table: &'c Table,
    fetched: Fetched<'c>,
    reversed: bool,
    /// Of the partition, which all are told of: ranges within count only where they are newer.
    deletion: Deletion,
    sources: Vec<Source>,
    row: RowBuilder,
    scratch: RowBuilder,
}

/// What one source lacks of a partition.
struct Source {
    update: UpdateBuilder,
    /// In the direction of reading.
    ranges: Vec<RangeTombstone>,
    /// The range that it has open.
    open: Deletion,
    /// The range that it lacks where the merge is, and since where.
    lacks: Option<(Bound, Deletion)>,
}

impl<'c> Repairs<'c> {
    pub fn new(table: &'c Table, columns: &'c ColumnFilter, reversed: bool) -> Self {
        Self {
            table,
            fetched: Fetched::new(table, columns),
            reversed,
            deletion: Deletion::LIVE,
            sources: Vec::new(),
            row: RowBuilder::new(),
            scratch: RowBuilder::new(),
        }
    }

    /// A partition begins.
    pub fn start(
        &mut self,
        key: &PartitionKey,
        deletion: Deletion,
        statics: Option<RowRef<'_>>,
        partitions: &[Option<&Partition>],
    ) {
        self.deletion = deletion;
        self.sources.clear();
        for (at, partition) in partitions.iter().enumerate() {
            let layout = self.table.layout.clone();
            let update = UpdateBuilder::new(self.table.id.0, layout, &key.bytes);
            let (ranges, open) = (Vec::new(), Deletion::LIVE);
            self.sources.push(Source { update, ranges, open, lacks: None });
            let has = partition.map_or(Deletion::LIVE, |partition| partition.deletion);
            if deletion.supersedes(&has) {
                let source = self
                    .sources
                    .last_mut()
                    .expect("the source that was just added is the last one");
                source.update.delete_partition(deletion);
            }
            if let Some(statics) = statics {
                self.lacks_of_row(at, statics, partition.and_then(Partition::static_row));
            }
        }
    }

    /// A row came out, of those that the consumed sources have next.
    pub fn row<H: Heads + ?Sized>(&mut self, merged: RowRef<'_>, heads: &H, consumed: &[usize]) {
        let mut consumed = consumed.iter().peekable();
        for at in 0..self.sources.len() {
            let has = consumed.next_if_eq(&&at).and_then(|at| match heads.head(*at) {
                Some(Unfiltered::Row(row)) => Some(row),
                _ => None,
            });
            self.lacks_of_row(at, merged, has);
        }
    }

    fn lacks_of_row(&mut self, at: usize, merged: RowRef<'_>, has: Option<RowRef<'_>>) {
        if has == Some(merged) {
            return;
        }
        let source =
            self.sources.get_mut(at).expect("a compared row comes from one of the sources");
        let is_static = merged.is_static();
        let has_value = |cell: &rows::CellRef<'_>| self.fetched.has_value(cell, is_static);
        let lacking = diff_rows(&self.table.layout, merged, has, has_value, &mut self.row);
        if let Some(row) = lacking {
            source.update.add(row, &mut self.scratch);
        }
    }

    /// The consumed sources come to markers, if that is what they have next; from there on `active`
    /// is what is deleted.
    pub fn marker<H: Heads + ?Sized>(&mut self, active: Deletion, heads: &H, consumed: &[usize]) {
        let mut here = None;
        for at in consumed {
            if let Some(Unfiltered::Marker(marker)) = heads.head(*at) {
                let source = self.sources.get_mut(*at);
                let source = source.expect("a merged marker comes from one of the sources");
                source.open = marker.opens(self.reversed).unwrap_or(Deletion::LIVE);
                here = Some(marker.bound);
            }
        }
        let Some(here) = here else { return };
        let range = Some(active).filter(|active| active.supersedes(&self.deletion));
        for source in &mut self.sources {
            source.comes_to(here, range, self.reversed);
        }
    }

    /// The partition ends, with a row if not with its own end. What there is to tell each source.
    pub fn finish(&mut self, last: Option<ClusteringRef<'_>>) -> Vec<Option<PartitionUpdate>> {
        let reversed = self.reversed;
        let end = last.map_or(BoundRef::TOP, |last| after(last, reversed));
        let sources = self.sources.drain(..).map(|mut source| {
            source.close(end, reversed);
            let mut update = source.update;
            // in clustering order, where each is appended to those before
            if reversed {
                source.ranges.reverse();
            }
            source.ranges.into_iter().for_each(|range| update.delete_range(range));
            Some(update.finish(&mut self.scratch)).filter(|update| !update.is_empty())
        });
        sources.collect()
    }
}

impl Source {
    fn comes_to(&mut self, here: BoundRef<'_>, range: Option<Deletion>, reversed: bool) {
        let lacks = range.filter(|range| range.supersedes(&self.open));
        if self.lacks.as_ref().map(|(_, deletion)| *deletion) == lacks {
            return;
        }
        self.close(here, reversed);
        self.lacks = lacks.map(|deletion| (as_edge(here, !reversed), deletion));
    }

    fn close(&mut self, here: BoundRef<'_>, reversed: bool) {
        let Some((opened, deletion)) = self.lacks.take() else { return };
        let closed = as_edge(here, reversed);
        let (start, end) = if reversed { (closed, opened) } else { (opened, closed) };
        self.ranges.push(RangeTombstone { start, end, deletion });
    }
}
