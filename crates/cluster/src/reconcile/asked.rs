//! What a read asks for: partitions, rows of them, and how much.

use std::cmp::Ordering;

use internode::payload::PayloadError;
use internode::payload::read::{Position, ReadCommand, Target};
use rows::{ClusteringRef, Layout, compare};
use schema::Table;
use storage::{PartitionKey, Slices};

use super::End;
use crate::replica_read::conditions::Conditions;
use crate::replica_read::limit::Counter;
use crate::replica_read::slices::{Stretch, after, slices, takes_all};

/// What an answer may hold.
pub(super) struct Asked<'c> {
    table: &'c Table,
    command: &'c ReadCommand,
    slices: Slices,
    /// Of reads of a range.
    stretch: Option<Stretch>,
    /// The first partition, and what of it, where that is less than of others.
    first: Option<(&'c [u8], Slices)>,
}

impl<'c> Asked<'c> {
    /// # Errors
    /// If the command is none that makes sense.
    pub fn new(table: &'c Table, command: &'c ReadCommand) -> Result<Self, PayloadError> {
        let (Target::Partition { rows, .. } | Target::Range { rows, .. }) = &command.target;
        let slices = slices(&table.layout, rows)?;
        let (stretch, first) = match &command.target {
            Target::Partition { .. } => (None, None),
            Target::Range { keys, after: last, .. } => {
                let first = match (&keys.from, last) {
                    (Position::Key(first), Some(last)) => {
                        Some((&**first, after(&table.layout, &slices, last)))
                    }
                    _ => None,
                };
                (Some(Stretch::new(keys)?), first)
            }
        };
        Ok(Self { table, command, slices, stretch, first })
    }

    pub fn is_reversed(&self) -> bool {
        self.slices.reversed()
    }

    /// Was a partition asked for?
    pub fn has(&self, key: &PartitionKey) -> bool {
        match (&self.command.target, &self.stretch) {
            (Target::Partition { key: wanted, .. }, _) => *wanted == key.bytes,
            (_, Some(stretch)) => stretch.holds(key),
            _ => false,
        }
    }

    /// The rows that were asked for of a partition.
    pub fn slices_of(&self, key: &PartitionKey) -> &Slices {
        match &self.first {
            Some((first, slices)) if **first == *key.bytes => slices,
            _ => &self.slices,
        }
    }

    /// Counts as the replicas do.
    pub fn counter(&self) -> Counter<'c> {
        counter(self.table, self.command)
    }
}

/// Counts live rows as replicas do.
pub(super) fn counter<'c>(table: &'c Table, command: &'c ReadCommand) -> Counter<'c> {
    let (Target::Partition { rows, .. } | Target::Range { rows, .. }) = &command.target;
    let conditions = Conditions::new(table, &command.filter, command.needs_reconciliation);
    let has_of_row = conditions.is_ok_and(|conditions| conditions.has_of_row());
    // as Cassandra's replicas and this node's own count it (`Wanted::counts_static_alone`)
    let counts_static_alone = table.is_static_compact() || (takes_all(rows) && !has_of_row);
    Counter::new(&command.limits, table, command.now.into(), counts_static_alone)
}

/// Where the page before this ended, if rows form groups: nothing but that it did so may be learned
/// from an answer.
pub(super) fn page_before(command: &ReadCommand) -> Option<End> {
    let (_, grouping) = command.limits.groups.as_ref()?;
    let (key, row) = grouping.last.clone()?;
    Some(End { key: PartitionKey::new(key), row })
}

/// Is a row in slices?
pub(super) fn holds(layout: &Layout, slices: &Slices, row: ClusteringRef<'_>) -> bool {
    let ranges = slices.ranges();
    let passed = ranges.partition_point(|(_, end)| compare(layout, end, row) == Ordering::Less);
    ranges.get(passed).is_some_and(|(start, _)| compare(layout, start, row) == Ordering::Less)
}
