//! The merge of one partition: as far as it is known of all sources, and as far as the limits go.

use internode::payload::read::{ReadCommand, Target};
use rows::{
    Clustering, Deletion, Heads, PartitionUpdate, RowBuilder, RowRef, Step, Unfiltered,
    UnfilteredMerger, merge_versions,
};
use schema::Table;
use storage::PartitionKey;

use super::asked::counter;
use super::ends::{Cut, closing};
use super::repair::Repairs;
use super::{End, Partition};
use crate::replica_read::conditions::Conditions;
use crate::replica_read::limit::Counter;

/// Merges one partition after another.
pub(super) struct Merger<'c> {
    table: &'c Table,
    now: i64,
    reversed: bool,
    /// None if they are not served; then nothing is known to count.
    conditions: Option<Conditions>,
    counter: Counter<'c>,
    repairs: Repairs<'c>,
    merger: UnfilteredMerger,
    row: RowBuilder,
    seen: RowBuilder,
}

/// A partition merged.
pub(super) struct Merged {
    pub partition: Partition,
    /// What each source lacks of it.
    pub repairs: Vec<Option<PartitionUpdate>>,
    /// Where all ends, if it does here.
    pub end: Option<End>,
}

/// Where the sources of a merge are.
struct Sources<'s> {
    partitions: &'s [Option<&'s Partition>],
    /// The next of each, and up to where it is merged.
    at: Vec<(usize, usize)>,
}

impl Sources<'_> {
    fn advance(&mut self, sources: &[usize]) {
        for source in sources {
            let (at, until) =
                self.at.get_mut(*source).expect("a merged row comes from one of the sources");
            assert!(*at < *until, "a merge reads no more rows than a source has");
            *at += 1;
        }
    }
}

impl Heads for Sources<'_> {
    fn sources(&self) -> usize {
        self.partitions.len()
    }

    fn head(&self, source: usize) -> Option<Unfiltered<'_>> {
        let (at, until) = *self.at.get(source)?;
        let partition = (*self.partitions.get(source)?)?;
        if at < until { partition.get(at) } else { None }
    }
}

/// Is all of a row newer than what is deleted where it stands? Asked once for each row that several
/// replicas have: an answer that agrees with the others' digests is not merged. The deletion of a
/// column of several cells may be as old.
fn is_left_by(active: Deletion, row: RowRef<'_>) -> bool {
    let is_left = |timestamp: i64| active.is_live() || !active.deletes(timestamp);
    row.liveness().is_none_or(|liveness| is_left(liveness.timestamp))
        && row.cells().all(|cell| cell.is_complex_deletion() || is_left(cell.timestamp))
}

impl<'c> Merger<'c> {
    pub fn new(table: &'c Table, command: &'c ReadCommand, sources: usize) -> Self {
        let (Target::Partition { rows, .. } | Target::Range { rows, .. }) = &command.target;
        Self {
            table,
            now: command.now.into(),
            reversed: rows.reversed,
            conditions: Conditions::new(table, &command.filter, false).ok(),
            counter: counter(table, command),
            repairs: Repairs::new(table, &command.columns, rows.reversed),
            merger: UnfilteredMerger::new(sources, Deletion::LIVE, rows.reversed),
            row: RowBuilder::new(),
            seen: RowBuilder::new(),
        }
    }

    /// Is nothing more wanted?
    pub fn is_done(&self) -> bool {
        self.counter.stops()
    }

    /// Merges what the sources have of a partition; `None` if with its beginning it turns out that
    /// no more is wanted, since the last group was whole.
    pub fn merge(
        &mut self,
        key: &PartitionKey,
        partitions: &[Option<&Partition>],
        cut: Option<Cut>,
    ) -> Option<Merged> {
        let layout = &*self.table.layout;
        let deletion = partitions.iter().flatten().map(|partition| partition.deletion);
        let deletion = deletion.fold(Deletion::LIVE, Deletion::max);
        let statics = partitions.iter().flatten().filter_map(|partition| partition.static_row());
        let statics = merge_versions(layout, statics, deletion, &mut self.row);
        self.repairs.start(key, deletion, statics, partitions);
        let statics = statics.map(|row| row.as_packed().to_vec());
        let mut partition = Partition::new(key.clone(), deletion, statics);
        let passes = self.start(&partition);
        if self.is_done() {
            return None;
        }
        let until = partitions.iter().map(|one| match (one, &cut) {
            (Some(partition), Some(cut)) => cut.of(layout, partition),
            (one, _) => one.map_or(0, |partition| partition.ends.len()),
        });
        let mut sources = Sources { partitions, at: until.map(|until| (0, until)).collect() };
        self.merger.reset(partitions.len(), deletion, self.reversed);
        while !self.counter.stops_in_partition() && self.step(&mut sources, &mut partition, passes)
        {
        }
        Some(self.end(partition, cut))
    }

    /// Begins to count a partition; does it pass the conditions?
    fn start(&mut self, partition: &Partition) -> bool {
        let (key, statics) = (&partition.key.bytes, partition.static_row());
        let conditions = self.conditions.as_ref();
        let passes =
            conditions.is_some_and(|of| of.partition_passes(self.table, key, statics, self.now));
        self.counter.start(key, statics.filter(|_| passes));
        passes
    }

    /// Merges what comes next; false if nothing does.
    fn step(&mut self, sources: &mut Sources<'_>, into: &mut Partition, passes: bool) -> bool {
        let layout = &*self.table.layout;
        match self.merger.step(layout, &*sources, &mut self.row) {
            Step::End => return false,
            Step::Nothing => {}
            Step::Next(unfiltered) => {
                into.push(unfiltered);
                if let Unfiltered::Row(row) = unfiltered {
                    let active = self.merger.active_deletion();
                    assert!(
                        is_left_by(active, row),
                        "a merged row is not covered by a newer deletion"
                    );
                    self.repairs.row(row, &*sources, self.merger.consumed());
                    let key = &into.key.bytes;
                    let conditions = self.conditions.as_ref().filter(|_| passes);
                    if conditions.is_some_and(|of| {
                        of.row_passes(self.table, key, row, self.now, &mut self.seen)
                    }) {
                        self.counter.row(key, row);
                    }
                }
            }
        }
        self.repairs.marker(self.merger.active_deletion(), &*sources, self.merger.consumed());
        sources.advance(self.merger.consumed());
        true
    }

    /// Ends a partition: at the row that the limits were reached with, or where it was cut.
    fn end(&mut self, mut partition: Partition, cut: Option<Cut>) -> Merged {
        let (is_full, is_last) = (self.counter.stops_in_partition(), self.counter.stops());
        let last = if is_full { partition.last_row() } else { cut.map(|cut| cut.row) };
        let open = self.merger.active_deletion();
        if let Some(last) = &last
            && open.supersedes(&partition.deletion)
        {
            let marker = closing(last.as_ref(), self.reversed, open);
            partition.push(Unfiltered::Marker(marker));
        }
        let repairs = self.repairs.finish(last.as_ref().map(Clustering::as_ref));
        let key = partition.key.clone();
        if is_last || (!is_full && last.is_some()) {
            return Merged { partition, repairs, end: Some(End { key, row: last }) };
        }
        self.counter.end();
        let end = self.counter.stops().then_some(End { key, row: None });
        Merged { partition, repairs, end }
    }
}
