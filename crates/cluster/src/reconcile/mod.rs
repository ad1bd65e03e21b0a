//! What several replicas answered to one read, as one (`DataResolver`): their partitions merged as
//! far as all of them are known, and what each replica lacks of that (`RowIteratorMergeListener`).
//! Pure: no clock, no I/O.
//!
//! A replica stops at the limits, and nothing is known of it from there on. Where Cassandra then
//! asks that replica for more (`ShortReadProtection`), the merge here ends at the first of all such
//! places, and says where: the caller asks all again for what follows.
//!
//! Nothing is purged: what is deleted or has expired stays for the caller to look at.

mod asked;
mod decode;
mod ends;
mod merge;
mod repair;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use internode::payload::read::{ReadCommand, Target};
use rows::{Clustering, Deletion, Layout, RowRef, Unfiltered};
use schema::Table;
use storage::PartitionKey;

pub(crate) use decode::{decode, own};

use self::asked::page_before;
use self::ends::Cut;
use self::merge::{Merged, Merger};

/// A partition as a replica gave it, or merged of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub key: PartitionKey,
    pub deletion: Deletion,
    /// The static row, packed.
    pub statics: Option<Vec<u8>>,
    /// Rows and markers, packed, one after another, in the direction of the read.
    pub packed: Vec<u8>,
    /// Where each of them ends.
    pub ends: Vec<usize>,
}

impl Partition {
    /// Without anything in it.
    pub fn new(key: PartitionKey, deletion: Deletion, statics: Option<Vec<u8>>) -> Self {
        Self { key, deletion, statics, packed: Vec::new(), ends: Vec::new() }
    }

    /// The static row.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        self.statics.as_deref().map(RowRef::from_packed)
    }

    /// Its rows and markers.
    pub fn unfiltereds(&self) -> impl Iterator<Item = Unfiltered<'_>> {
        (0..self.ends.len()).filter_map(|at| self.get(at))
    }

    /// A row or marker.
    pub fn get(&self, at: usize) -> Option<Unfiltered<'_>> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let packed = self.packed.get(start..*self.ends.get(at)?);
        let packed = packed.expect("the rows of a partition are stored without gaps");
        Some(Unfiltered::from_packed(packed))
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live() && self.statics.is_none() && self.ends.is_empty()
    }

    /// Appends a row or marker.
    pub fn push(&mut self, unfiltered: Unfiltered<'_>) {
        unfiltered.pack(&mut self.packed);
        self.ends.push(self.packed.len());
    }

    /// The clustering of its last row.
    fn last_row(&self) -> Option<Clustering> {
        (0..self.ends.len()).rev().find_map(|at| match self.get(at) {
            Some(Unfiltered::Row(row)) => Some(row.clustering().to_owned()),
            _ => None,
        })
    }
}

/// What a replica gave, in the order of the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub partitions: Vec<Partition>,
    /// Where the limits cut it, if they did: nothing is known of the replica from there on.
    pub end: Option<End>,
    /// The partitions that the limit of a partition cut, each at its last row.
    cut: Vec<usize>,
}

/// Up to where something is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The partition.
    pub key: PartitionKey,
    /// Its last row; nothing if all of it is known, or nothing more of it is wanted.
    pub row: Option<Clustering>,
}

impl End {
    /// Which comes first in the direction of reading?
    fn compare(&self, other: &Self, layout: &Layout, reversed: bool) -> Ordering {
        self.key.cmp(&other.key).then_with(|| match (&self.row, &other.row) {
            (Some(a), Some(b)) => ends::compare(layout, reversed, a.into(), b.into()),
            (a, b) => a.is_none().cmp(&b.is_none()),
        })
    }
}

/// What the answers of several replicas come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reconciled {
    /// In the order of the ring, rows in the direction of the read. Nothing comes after the row
    /// that the limits were reached with, of a partition or of all; ranges that stay open are
    /// closed there.
    pub partitions: Vec<Partition>,
    /// Up to where that is all there is, be it for a replica's limits or because they were reached
    /// here; `None` if it is all that was asked for.
    pub end: Option<End>,
    /// What brings each replica level with that, by partition; nothing for those that lack nothing.
    pub repairs: Vec<Vec<rows::PartitionUpdate>>,
}

/// Puts together what replicas gave to one command.
pub(crate) fn reconcile(table: &Table, command: &ReadCommand, given: &[Given]) -> Reconciled {
    let (Target::Partition { rows, .. } | Target::Range { rows, .. }) = &command.target;
    let (layout, reversed) = (&*table.layout, rows.reversed);
    let ends = given.iter().filter_map(|one| one.end.as_ref());
    let least = ends.min_by(|a, b| a.compare(b, layout, reversed));
    let mut out = Reconciled { repairs: vec![Vec::new(); given.len()], ..Reconciled::default() };
    let mut merger = Merger::new(table, command, given.len());
    let mut at = vec![0; given.len()];
    let mut done: Option<End> = None;
    while let Some(key) = first_key(given, &at) {
        if merger.is_done() || least.is_some_and(|least| least.key < *key) {
            break;
        }
        let (sources, cut) = sources(given, &at, key, least, (layout, reversed));
        let is_given = sources.iter().any(Option::is_some);
        assert!(is_given, "a merged partition comes from at least one replica");
        let Some(Merged { partition, repairs, end }) = merger.merge(key, &sources, cut) else {
            out.end = done.or_else(|| page_before(command)).map(|end| End { row: None, ..end });
            return out.of(command);
        };
        for (at, source) in at.iter_mut().zip(&sources) {
            *at += usize::from(source.is_some());
        }
        assert_eq!(repairs.len(), given.len(), "each replica has its own repair");
        for (all, repair) in out.repairs.iter_mut().zip(repairs) {
            all.extend(repair);
        }
        if !partition.is_empty() {
            let follows = out.partitions.last().is_none_or(|last| last.key < partition.key);
            assert!(follows, "partitions are merged in the order of the ring");
            out.partitions.push(partition);
        }
        // one that a replica was cut in, and yet as many rows of it are known as are wanted
        let is_done = || least.filter(|least| least.key == *key && least.row.is_some());
        let end = end.or_else(|| is_done().map(|_| End { key: key.clone(), row: None }));
        if end.is_some() {
            out.end = end;
            return out.of(command);
        }
        done = Some(End { key: key.clone(), row: None });
    }
    out.end = least.cloned();
    out.of(command)
}

/// What one replica gave, alone or as others did: with nothing to merge it with, and no limit
/// reached, it is as it is.
pub(crate) fn reconcile_one(table: &Table, command: &ReadCommand, given: Given) -> Reconciled {
    if given.end.is_some() || !given.cut.is_empty() {
        return reconcile(table, command, &[given]);
    }
    // Not on in release: it merges each answer that nothing is to be merged with. And a peer that
    // sends markers which say nothing new makes it fail.
    debug_assert!({
        let merged = reconcile(table, command, std::slice::from_ref(&given));
        merged.partitions == given.partitions
            && merged.end.is_none()
            && merged.repairs.iter().all(Vec::is_empty)
    });
    Reconciled { partitions: given.partitions, ..Reconciled::default() }
}

impl Reconciled {
    /// Of one partition there is no more once it is done.
    fn of(mut self, command: &ReadCommand) -> Self {
        if matches!(command.target, Target::Partition { .. }) {
            self.end = self.end.filter(|end| end.row.is_some());
        }
        self
    }
}

fn first_key<'g>(given: &'g [Given], at: &[usize]) -> Option<&'g PartitionKey> {
    let next = given.iter().zip(at).filter_map(|(one, at)| one.partitions.get(*at));
    next.map(|partition| &partition.key).min()
}

/// What each has of a partition, and where the first of them was cut in it.
fn sources<'g>(
    given: &'g [Given],
    at: &[usize],
    key: &PartitionKey,
    least: Option<&End>,
    (layout, reversed): (&Layout, bool),
) -> (Vec<Option<&'g Partition>>, Option<Cut>) {
    let mut cut = least.filter(|end| end.key == *key).and_then(|end| end.row.clone());
    let mut sources = Vec::with_capacity(given.len());
    for (one, at) in given.iter().zip(at) {
        let partition = one.partitions.get(*at).filter(|partition| partition.key == *key);
        sources.push(partition);
        let Some(partition) = partition.filter(|_| one.cut.binary_search(at).is_ok()) else {
            continue;
        };
        let row = partition.last_row();
        let is_before = |row: &Clustering, cut: &Clustering| {
            ends::compare(layout, reversed, row.into(), cut.into()).is_lt()
        };
        if row.as_ref().is_some_and(|row| cut.as_ref().is_none_or(|cut| is_before(row, cut))) {
            cut = row;
        }
    }
    (sources, cut.map(|row| Cut { row, reversed }))
}
