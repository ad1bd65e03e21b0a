//! What was added to which counter, and what reads may therefore show.
//!
//! Each addition to a counter is a power of two of its own, up or down, so a value says which
//! additions it holds: the lowest bit that is set is that of one which is there. An addition that
//! is counted twice, in part or from before a deletion shows as such. Whether one must be there is
//! known as of any write ([`Fate`]): what was acknowledged must, what was refused must not, of the
//! others a read says whether they are, and what one read shows every later one does until the node
//! ends.
//!
//! Nobody adds to a partition while something of it is deleted, so the life of a counter falls into
//! epochs: what is there is of one epoch, and of the last one whose deletion certainly took place
//! or a later one.

use std::collections::{BTreeMap, BTreeSet};

use env::Instant;

use crate::history::{Fate, WriteId};
use crate::operation::{Column, Partition};

/// Additions that a counter takes in its life: a bit each, and the sign's.
const ADDITIONS_MAX: u32 = 62;

/// A counter of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// The static one.
    Static,
    /// That of a row and column.
    Cell(i32, Column),
}

/// Where a counter is.
pub type Place = (Partition, Unit);

/// What is deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// One counter, for good: what is added to it later does not count, as in Cassandra.
    Counter(Place),
    /// A row.
    Row(Partition, i32),
    /// A partition.
    Partition(Partition),
    /// All of a table.
    Table(u8),
}

impl Deleted {
    fn contains(self, (partition, unit): Place) -> bool {
        match self {
            Self::Counter(place) => place == (partition, unit),
            Self::Row(of, row) => {
                of == partition && matches!(unit, Unit::Cell(its, _) if its == row)
            }
            Self::Partition(of) => of == partition,
            Self::Table(table) => partition.table == table,
        }
    }
}

/// The counters that a read shows, with their values. Those of the partition that it does not show
/// are not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The row that was asked for; `None` for all of the partition.
    pub row: Option<i32>,
    /// Does it tell of the static counter? Where there is no row, there is none beside it.
    pub shows_statics: bool,
    /// What was there.
    pub values: BTreeMap<Unit, i64>,
}

impl Counts {
    /// Does a read of this say whether a counter is there?
    fn covers(&self, unit: Unit) -> bool {
        match (self.row, unit) {
            (_, Unit::Static) => self.shows_statics,
            (None, Unit::Cell(..)) => true,
            (Some(row), Unit::Cell(its, _)) => its == row,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Addition {
    write: WriteId,
    bit: u32,
    delta: i64,
    epoch: usize,
    /// Since when the node that lives shows it.
    shown: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Counter {
    additions: Vec<Addition>,
    /// Its deletions: each begins an epoch.
    deletions: Vec<WriteId>,
    next_bit: u32,
    /// It was deleted for good.
    closed: bool,
}

impl Counter {
    /// The places of the additions that make up a value.
    fn decode(&self, value: i64) -> Option<BTreeSet<usize>> {
        let mut rest = value;
        let mut there = BTreeSet::new();
        for (at, addition) in self.additions.iter().enumerate() {
            if rest & (1 << addition.bit) != 0 {
                rest = rest.wrapping_sub(addition.delta);
                there.insert(at);
            }
        }
        (rest == 0).then_some(there)
    }
}

/// What a set of reads tells about writes that were open.
#[derive(Default)]
struct Findings {
    applied: BTreeSet<WriteId>,
    missing: BTreeSet<WriteId>,
}

/// All that was asked of counters.
#[derive(Default)]
pub struct History {
    fates: Vec<Fate>,
    /// Writes that last from their acknowledgement on, whatever the mode.
    lasting: BTreeSet<WriteId>,
    counters: BTreeMap<Place, Counter>,
}

impl History {
    fn fate(&self, write: WriteId) -> Fate {
        self.fates.get(write).copied().unwrap_or(Fate::Refused)
    }

    /// May a counter be added to as often as this?
    pub fn takes(&self, place: Place, times: u32) -> bool {
        let counter = self.counters.get(&place);
        let (closed, bit) = counter.map_or((false, 0), |it| (it.closed, it.next_bit));
        !closed && bit + times <= ADDITIONS_MAX
    }

    /// A write is about to be sent that adds once to each of these counters, up or down: what it
    /// adds.
    pub fn add(&mut self, places: &[(Place, bool)]) -> (WriteId, Vec<i64>) {
        let write = self.fates.len();
        self.fates.push(Fate::Open);
        let add = |(place, up): &(Place, bool)| {
            let counter = self.counters.entry(*place).or_default();
            let bit = counter.next_bit;
            counter.next_bit += 1;
            let delta = if *up { 1 << bit } else { -(1 << bit) };
            let epoch = counter.deletions.len();
            counter.additions.push(Addition { write, bit, delta, epoch, shown: None });
            delta
        };
        (write, places.iter().map(add).collect())
    }

    /// Something is about to be deleted.
    pub fn delete(&mut self, what: Deleted) -> WriteId {
        let write = self.fates.len();
        self.fates.push(Fate::Open);
        if let Deleted::Counter(place) = what {
            // even if nobody ever added to it
            self.counters.entry(place).or_default();
        }
        for (place, counter) in &mut self.counters {
            if what.contains(*place) {
                counter.deletions.push(write);
                counter.closed |= matches!(what, Deleted::Counter(_));
            }
        }
        if matches!(what, Deleted::Table(_)) {
            self.lasting.insert(write);
        }
        write
    }

    /// Its client was told that it is done.
    pub fn acknowledged(&mut self, write: WriteId, at: Instant) {
        let at = if self.lasting.contains(&write) { Instant::ZERO } else { at };
        self.set_fate(write, Fate::Acknowledged(at));
    }

    /// It certainly has no effect.
    pub fn refused(&mut self, write: WriteId) {
        self.set_fate(write, Fate::Refused);
    }

    fn set_fate(&mut self, write: WriteId, fate: Fate) {
        if let Some(known) = self.fates.get_mut(write) {
            *known = fate;
        }
    }

    /// A crash may have taken what was acknowledged after `safe`, and what was shown and not
    /// acknowledged. Returns how many writes are in doubt.
    pub fn crashed(&mut self, safe: Instant) -> usize {
        for fate in &mut self.fates {
            if matches!(fate, Fate::Acknowledged(at) if *at > safe) {
                *fate = Fate::Open;
            }
        }
        for addition in self.counters.values_mut().flat_map(|it| &mut it.additions) {
            addition.shown = None;
        }
        self.fates.iter().filter(|fate| **fate == Fate::Open).count()
    }

    /// All partitions that were ever written.
    pub fn partitions(&self) -> BTreeSet<Partition> {
        self.counters.keys().map(|(partition, _)| *partition).collect()
    }

    /// Checks a read that began at `began` and ended now, with writes of others perhaps under way.
    ///
    /// # Errors
    /// If nothing that may have happened explains it.
    pub fn check(
        &mut self,
        partition: Partition,
        counts: &Counts,
        began: Instant,
        now: Instant,
    ) -> Result<(), String> {
        let there = self.explain(partition, counts, Some(began), &mut Findings::default())?;
        for (place, additions) in there {
            let Some(counter) = self.counters.get_mut(&place) else { continue };
            for at in additions {
                if let Some(addition) = counter.additions.get_mut(at) {
                    addition.shown.get_or_insert(now);
                }
            }
        }
        Ok(())
    }

    /// Checks reads of whole partitions while nothing is under way, and takes what they show as
    /// settled.
    ///
    /// # Errors
    /// If nothing that may have happened explains them together.
    pub fn settle(&mut self, reads: &[(Partition, Counts)]) -> Result<(), String> {
        let mut known = 0;
        let there = loop {
            let (mut findings, mut there) = (Findings::default(), BTreeMap::new());
            for (partition, counts) in reads {
                there.extend(self.explain(*partition, counts, None, &mut findings)?);
            }
            if let Some(write) = findings.applied.intersection(&findings.missing).next() {
                return Err(format!("write #{write} of counters is there in part\n  {reads:?}"));
            }
            findings
                .applied
                .iter()
                .for_each(|id| self.set_fate(*id, Fate::Acknowledged(Instant::ZERO)));
            findings.missing.iter().for_each(|id| self.set_fate(*id, Fate::Refused));
            let found = findings.applied.len() + findings.missing.len();
            if found == known {
                break there;
            }
            known = found;
        };
        for (place, additions) in there {
            let Some(counter) = self.counters.get_mut(&place) else { continue };
            // all that there is, of an epoch that begins anew
            let kept =
                counter.additions.iter().enumerate().filter(|(at, _)| additions.contains(at));
            counter.additions = kept.map(|(_, it)| Addition { epoch: 0, ..*it }).collect();
            counter.deletions.clear();
        }
        Ok(())
    }

    /// The additions that each counter holds, by a read.
    fn explain(
        &self,
        partition: Partition,
        counts: &Counts,
        began: Option<Instant>,
        findings: &mut Findings,
    ) -> Result<BTreeMap<Place, BTreeSet<usize>>, String> {
        for unit in counts.values.keys() {
            if !self.counters.contains_key(&(partition, *unit)) {
                return Err(format!("{partition:?}: nobody counted {unit:?} of {counts:?}"));
            }
        }
        let of = (partition, Unit::Static)..=(partition, Unit::Cell(i32::MAX, Column::B));
        let mut all = BTreeMap::new();
        for (place, counter) in self.counters.range(of) {
            if !counts.covers(place.1) {
                continue;
            }
            let value = counts.values.get(&place.1).copied();
            let there = self.explain_one(counter, value, began, findings).map_err(|what| {
                format!("{what}\n  {place:?} is {value:?}\n  {}", self.describe(counter))
            })?;
            all.insert(*place, there);
        }
        Ok(all)
    }

    fn explain_one(
        &self,
        counter: &Counter,
        value: Option<i64>,
        began: Option<Instant>,
        findings: &mut Findings,
    ) -> Result<BTreeSet<usize>, &'static str> {
        if value == Some(0) {
            return Err("a counter of nothing");
        }
        let decoded = counter.decode(value.unwrap_or(0));
        let there = decoded.ok_or("a value that no additions give")?;
        let mut epochs =
            there.iter().filter_map(|at| counter.additions.get(*at)).map(|it| it.epoch);
        let epoch = epochs.next().unwrap_or(counter.deletions.len());
        if epochs.any(|other| other != epoch) {
            return Err("what was added before and after a deletion");
        }
        for (at, deletion) in counter.deletions.iter().enumerate() {
            match (at < epoch, there.is_empty()) {
                // with nothing there, it need not be the deletion's doing
                (true, true) => {}
                (true, false) => {
                    if self.fate(*deletion) == Fate::Refused {
                        return Err("a deletion that was refused shows");
                    }
                    findings.applied.insert(*deletion);
                }
                (false, _) => {
                    if self.is_certain(*deletion, began) {
                        return Err("an acknowledged deletion does not show");
                    }
                    findings.missing.insert(*deletion);
                }
            }
        }
        for (at, addition) in counter.additions.iter().enumerate() {
            if there.contains(&at) {
                if self.fate(addition.write) == Fate::Refused {
                    return Err("an addition that was refused");
                }
                findings.applied.insert(addition.write);
            } else if addition.epoch >= epoch {
                let was_shown = addition.shown.zip(began).is_some_and(|(at, began)| at <= began);
                if self.is_certain(addition.write, began) {
                    return Err("an acknowledged addition does not show");
                }
                if was_shown {
                    return Err("an addition that was shown before does not show");
                }
                findings.missing.insert(addition.write);
            }
        }
        Ok(there)
    }

    /// Must a write show? Where the read began at some time, only one acknowledged before.
    fn is_certain(&self, write: WriteId, began: Option<Instant>) -> bool {
        match self.fate(write) {
            Fate::Acknowledged(at) => began.is_none_or(|began| at <= began),
            Fate::Open | Fate::Refused => false,
        }
    }

    fn describe(&self, counter: &Counter) -> String {
        let additions = counter.additions.iter().rev().take(12).map(|it| {
            format!("#{} {:+} of epoch {}: {:?}", it.write, it.delta, it.epoch, self.fate(it.write))
        });
        let deletions = counter.deletions.iter().map(|id| format!("#{id}: {:?}", self.fate(*id)));
        let (additions, deletions) = (additions.collect::<Vec<_>>(), deletions.collect::<Vec<_>>());
        format!("additions: {}\n  deletions: {}", additions.join("\n    "), deletions.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Partition = Partition { table: 0, key: 0 };
    const A: Place = (P, Unit::Cell(0, Column::A));
    const B: Place = (P, Unit::Cell(1, Column::B));

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// A read of the partition that shows these values.
    fn shows<const N: usize>(values: [(Place, i64); N]) -> Counts {
        let values = values.into_iter().map(|((_, unit), value)| (unit, value)).collect();
        Counts { row: None, shows_statics: true, values }
    }

    #[test]
    fn an_acknowledged_addition_counts_once() {
        let mut history = History::default();
        let (first, deltas) = history.add(&[(A, true), (A, false)]);
        assert_eq!(deltas, [1, -2]);
        let (second, _) = history.add(&[(A, true)]);
        history.acknowledged(first, at(1));
        let mut check = |value| history.check(P, &shows([(A, value)]), at(2), at(3)).is_ok();
        assert!(check(-1) && check(3), "the second is under way");
        for value in [0, 1, -2, 4, 5, 7, -3, 2] {
            assert!(!check(value), "{value}");
        }
        history.acknowledged(second, at(4));
        assert!(history.check(P, &shows([(A, -1)]), at(5), at(6)).is_err());
        assert!(history.check(P, &shows([]), at(5), at(6)).is_err());
        assert!(history.check(P, &shows([(A, 3), (B, 1)]), at(5), at(6)).is_err());
    }

    #[test]
    fn what_a_read_shows_stays_until_the_node_ends() {
        let mut history = History::default();
        history.add(&[(A, true)]);
        assert!(history.check(P, &shows([(A, 1)]), at(1), at(2)).is_ok());
        assert!(history.check(P, &shows([]), at(1), at(3)).is_ok(), "it began before");
        assert!(history.check(P, &shows([]), at(2), at(3)).is_err());
        history.crashed(at(2));
        assert!(history.settle(&[(P, shows([]))]).is_ok());
        assert!(history.settle(&[(P, shows([(A, 1)]))]).is_err(), "it was gone");
    }

    #[test]
    fn a_crash_takes_what_is_not_safe_and_nothing_in_part() {
        let mut history = History::default();
        let (first, _) = history.add(&[(A, true)]);
        let (second, _) = history.add(&[(A, true), (B, true)]);
        history.acknowledged(first, at(1));
        history.acknowledged(second, at(9));
        assert_eq!(history.crashed(at(5)), 1);
        let mut settles = |counts: Counts| history.settle(&[(P, counts)]).is_ok();
        assert!(!settles(shows([])));
        assert!(!settles(shows([(A, 3)])), "half of a write");
        assert!(settles(shows([(A, 1)])));
        assert!(!settles(shows([(A, 3), (B, 1)])), "it was gone");
    }

    #[test]
    fn what_is_deleted_by_name_takes_no_more() {
        let mut history = History::default();
        assert!(history.takes(A, 1));
        history.delete(Deleted::Counter(A));
        assert!(!history.takes(A, 1));
        assert!(history.takes(B, ADDITIONS_MAX) && !history.takes(B, ADDITIONS_MAX + 1));
    }

    #[test]
    fn what_is_deleted_is_gone_and_does_not_come_back() {
        let mut history = History::default();
        let (add, _) = history.add(&[(A, true)]);
        history.acknowledged(add, at(1));
        let delete = history.delete(Deleted::Partition(P));
        assert!(history.check(P, &shows([]), at(2), at(3)).is_ok(), "perhaps by now");
        assert!(history.check(P, &shows([(A, 1)]), at(2), at(3)).is_ok(), "or not yet");
        history.acknowledged(delete, at(4));
        assert!(history.check(P, &shows([(A, 1)]), at(5), at(6)).is_err());
        let (add, _) = history.add(&[(A, true)]);
        history.acknowledged(add, at(7));
        assert!(history.check(P, &shows([(A, 3)]), at(8), at(9)).is_err());
        assert!(history.check(P, &shows([(A, 2)]), at(8), at(9)).is_ok());
        // a crash may take both or the last
        history.crashed(at(1));
        assert!(history.settle(&[(P, shows([(A, 3)]))]).is_err());
        assert!(history.settle(&[(P, shows([(A, 1)]))]).is_ok());
        assert!(history.settle(&[(P, shows([(A, 2)]))]).is_err(), "it was gone");
    }
}
