//! What was written, in order, and what reads may therefore see: a model of CQL by cell.
//!
//! Each partition is written by one client at a time and server timestamps never step back, so the
//! writes of a cell have an order, and of those applied the last one counts. Whether a write was
//! applied is certain (it was acknowledged), impossible (it was refused) or open (a crash took the
//! answer, or, where the mode allows it, the write). A read is right if some choice for the open
//! ones explains it; what it shows of them closes them: a write is applied as a whole or not at
//! all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use env::Instant;

use crate::operation::{Answer, Change, Column, Partition, Query, Row, Value, Write};

/// Names a write.
pub type WriteId = usize;

/// What is known of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Under way, or its answer was lost.
    Open,
    /// Acknowledged, when its client saw it.
    Acknowledged(Instant),
    /// Certainly not applied.
    Refused,
}

/// A place that holds one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Static,
    /// That the row was inserted.
    Liveness(i32),
    Cell(i32, Column),
}

#[derive(Clone, Copy, Debug)]
enum Effect {
    Set { value: Value, ttl: Option<u32> },
    Delete,
}

#[derive(Clone, Copy, Debug)]
struct Version {
    write: WriteId,
    effect: Effect,
}

#[derive(Clone, Debug)]
struct Record {
    fate: Fate,
    /// The second that its TTLs count from.
    now: i64,
    write: Write,
}

/// Whether a version shows, as far as time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Yes,
    No,
    /// Expired by a clock that was set back since: it may have been purged.
    Either,
}

/// What a read shows of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Value(Value),
    Absent,
    /// There, but not which write it is from.
    Some,
}

/// A read that no order of the writes explains.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}\n  {at}\n  read: {read}\n  history: {history}")]
pub struct Violation {
    /// In a word.
    pub what: &'static str,
    /// Where.
    at: String,
    read: String,
    history: String,
}

/// What a set of reads tells about open writes.
#[derive(Default)]
struct Findings {
    applied: BTreeSet<WriteId>,
    missing: BTreeSet<WriteId>,
}

/// The writes so far.
#[derive(Clone, Default)]
pub struct History {
    writes: Vec<Record>,
    partitions: BTreeMap<Partition, BTreeMap<Unit, Vec<Version>>>,
    /// The latest second that the node's clock ever showed.
    latest: i64,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "History({} writes)", self.writes.len())
    }
}

impl History {
    /// The node's clock shows this second.
    pub fn clock_shows(&mut self, second: i64) {
        self.latest = self.latest.max(second);
    }

    /// A write is about to be sent. `now` is the second that its TTLs count from.
    pub fn begin(&mut self, write: Write, now: i64) -> WriteId {
        let id = self.writes.len();
        for (partition, change) in &write.changes {
            let units = self.partitions.entry(*partition).or_default();
            for (unit, effect) in effects(units, change) {
                units.entry(unit).or_default().push(Version { write: id, effect });
            }
        }
        self.writes.push(Record { fate: Fate::Open, now, write });
        id
    }

    /// The second that its TTLs count from turned out to be another.
    pub fn written_at(&mut self, id: WriteId, now: i64) {
        if let Some(record) = self.writes.get_mut(id) {
            record.now = now;
        }
    }

    /// Its client was told that it is done.
    pub fn acknowledged(&mut self, id: WriteId, at: Instant) {
        self.set_fate(id, Fate::Acknowledged(at));
    }

    /// It certainly has no effect.
    pub fn refused(&mut self, id: WriteId) {
        self.set_fate(id, Fate::Refused);
    }

    fn set_fate(&mut self, id: WriteId, fate: Fate) {
        if let Some(record) = self.writes.get_mut(id) {
            record.fate = fate;
        }
    }

    fn fate(&self, id: WriteId) -> Fate {
        self.writes.get(id).map_or(Fate::Refused, |record| record.fate)
    }

    /// Writes acknowledged.
    pub fn acknowledgements(&self) -> usize {
        self.writes.iter().filter(|w| matches!(w.fate, Fate::Acknowledged(_))).count()
    }

    /// A crash may have taken what was acknowledged after `safe`. Returns how many writes are in
    /// doubt.
    pub fn crashed(&mut self, safe: Instant) -> usize {
        for record in &mut self.writes {
            if matches!(record.fate, Fate::Acknowledged(at) if at > safe) {
                record.fate = Fate::Open;
            }
        }
        self.writes.iter().filter(|record| record.fate == Fate::Open).count()
    }

    /// As it is known in a world that begins after a crash: what was acknowledged before `safe` was
    /// so long ago.
    #[must_use]
    pub fn after_crash(&self, safe: Instant) -> Self {
        let mut later = self.clone();
        later.crashed(safe);
        for record in &mut later.writes {
            if matches!(record.fate, Fate::Acknowledged(_)) {
                record.fate = Fate::Acknowledged(Instant::ZERO);
            }
        }
        later
    }

    /// All partitions that were ever written.
    pub fn partitions(&self) -> Vec<Partition> {
        self.partitions.keys().copied().collect()
    }

    /// Checks a read that began at `began`, with writes of others perhaps under way.
    ///
    /// # Errors
    /// If no order of the writes explains it.
    pub fn check(&self, query: &Query, answer: &Answer, began: Instant) -> Result<(), Violation> {
        self.check_shape(query, answer)?;
        let mut findings = Findings::default();
        for (unit, seen) in self.seen(query, answer) {
            self.explain(query.partition, unit, seen, answer, Some(began), &mut findings)?;
        }
        Ok(())
    }

    /// Checks reads of whole partitions while nothing is under way, and takes what they show as
    /// settled.
    ///
    /// # Errors
    /// If no order of the writes explains them together.
    pub fn settle(&mut self, reads: &[(Partition, Answer)]) -> Result<(), Violation> {
        let mut known = Findings::default();
        loop {
            let mut findings = Findings::default();
            for (partition, answer) in reads {
                let query = Query::all(*partition);
                self.check_shape(&query, answer)?;
                for (unit, seen) in self.seen(&query, answer) {
                    self.explain(*partition, unit, seen, answer, None, &mut findings)?;
                }
            }
            if let Some(torn) = findings.applied.intersection(&findings.missing).next() {
                return Err(self.torn(*torn, reads));
            }
            for id in &findings.applied {
                self.set_fate(*id, Fate::Acknowledged(Instant::ZERO));
            }
            for id in &findings.missing {
                self.set_fate(*id, Fate::Refused);
            }
            let before = known.applied.len() + known.missing.len();
            known.applied.extend(findings.applied);
            known.missing.extend(findings.missing);
            if known.applied.len() + known.missing.len() == before {
                break;
            }
        }
        for (partition, answer) in reads {
            self.forget_the_past(*partition, answer);
        }
        Ok(())
    }

    /// What was seen while nothing was under way is all that there is.
    fn forget_the_past(&mut self, partition: Partition, answer: &Answer) {
        let seen: BTreeMap<Unit, Seen> =
            self.seen(&Query::all(partition), answer).into_iter().collect();
        let Some(units) = self.partitions.get_mut(&partition) else { return };
        for (unit, versions) in units.iter_mut() {
            match seen.get(unit) {
                Some(Seen::Value(value)) => {
                    let is = |v: &Version| matches!(v.effect, Effect::Set { value: set, .. } if set == *value);
                    versions.retain(is);
                }
                // a clock set back may bring an expired one to life
                Some(Seen::Absent) => {
                    if !versions
                        .iter()
                        .any(|v| matches!(v.effect, Effect::Set { ttl: Some(_), .. }))
                    {
                        versions.clear();
                    }
                }
                Some(Seen::Some) | None => {}
            }
        }
    }

    /// What an answer says of each unit that its query covers.
    fn seen(&self, query: &Query, answer: &Answer) -> Vec<(Unit, Seen)> {
        let Some(units) = self.partitions.get(&query.partition) else { return Vec::new() };
        let rows: BTreeMap<i32, &Row> = answer.rows.iter().map(|row| (row.row, row)).collect();
        let value = |value: Option<Value>| value.map_or(Seen::Absent, Seen::Value);
        let mut seen = Vec::new();
        for unit in units.keys() {
            let what = match unit {
                Unit::Static => answer.statics.map(value),
                Unit::Liveness(row) | Unit::Cell(row, _) if !query.range.contains(*row) => None,
                Unit::Liveness(row) => match rows.get(row) {
                    None => Some(Seen::Absent),
                    Some(row) if row.a.is_none() && row.b.is_none() => Some(Seen::Some),
                    // it may live by its cells
                    Some(_) => None,
                },
                Unit::Cell(row, Column::A) => Some(value(rows.get(row).and_then(|row| row.a))),
                Unit::Cell(row, Column::B) => Some(value(rows.get(row).and_then(|row| row.b))),
            };
            seen.extend(what.map(|what| (*unit, what)));
        }
        seen
    }

    /// Rows of the range asked for, each once, in order, of writes that there were.
    fn check_shape(&self, query: &Query, answer: &Answer) -> Result<(), Violation> {
        let fail = |what, row: i32| Violation {
            what,
            at: format!("{:?} row {row}", query.partition),
            read: format!("{query:?} gave {answer:?}"),
            history: String::new(),
        };
        for pair in answer.rows.windows(2) {
            if let [first, second] = pair {
                if first.row == second.row {
                    return Err(fail("a row came twice", first.row));
                }
                if (first.row < second.row) != query.is_ascending() {
                    return Err(fail("rows out of order", second.row));
                }
            }
        }
        let units = self.partitions.get(&query.partition);
        for row in &answer.rows {
            if !query.range.contains(row.row) {
                return Err(fail("a row outside of what was asked for", row.row));
            }
            let known = |unit| units.is_some_and(|units| units.contains_key(&unit));
            let cells = [Column::A, Column::B].map(|column| Unit::Cell(row.row, column));
            if !known(Unit::Liveness(row.row)) && !cells.into_iter().any(known) {
                return Err(fail("a row that nobody wrote", row.row));
            }
        }
        Ok(())
    }

    fn shown(&self, version: &Version, now: i64) -> Shown {
        let Effect::Set { ttl, .. } = version.effect else { return Shown::No };
        let Some(ttl) = ttl else { return Shown::Yes };
        let written = self.writes.get(version.write).map_or(0, |record| record.now);
        let expires = written + i64::from(ttl);
        match (now >= expires, self.latest >= expires) {
            (true, _) => Shown::No,
            (false, true) => Shown::Either,
            (false, false) => Shown::Yes,
        }
    }

    /// Must a write show? Where the read began at some time, only one acknowledged before.
    fn is_certain(&self, id: WriteId, began: Option<Instant>) -> bool {
        match self.fate(id) {
            Fate::Acknowledged(at) => began.is_none_or(|began| at <= began),
            Fate::Open | Fate::Refused => false,
        }
    }

    fn explain(
        &self,
        partition: Partition,
        unit: Unit,
        seen: Seen,
        answer: &Answer,
        began: Option<Instant>,
        findings: &mut Findings,
    ) -> Result<(), Violation> {
        let Some(versions) = self.partitions.get(&partition).and_then(|units| units.get(&unit))
        else {
            return Ok(());
        };
        let fail = |what| Err(self.violation(what, partition, unit, seen, answer, versions));
        // Newest first: those that did not take part, then the one that counts.
        let mut candidates = Vec::new();
        for version in versions.iter().rev() {
            let shown = self.shown(version, answer.now);
            let value = match version.effect {
                Effect::Set { value, .. } => Some(value),
                Effect::Delete => None,
            };
            let fits = match seen {
                Seen::Value(seen) => value == Some(seen) && shown != Shown::No,
                Seen::Absent => shown != Shown::Yes,
                Seen::Some => shown != Shown::No,
            };
            let possible = self.fate(version.write) != Fate::Refused;
            if fits && possible {
                candidates.push(version.write);
                if !matches!(seen, Seen::Absent) || self.is_certain(version.write, began) {
                    break;
                }
                continue;
            }
            if value.is_some() && Some(seen) == value.map(Seen::Value) {
                return fail(if possible {
                    "an expired value"
                } else {
                    "a value that was refused"
                });
            }
            if self.is_certain(version.write, began) {
                if candidates.is_empty() {
                    return fail("an acknowledged write does not show");
                }
                return self.close(&candidates, seen, findings);
            }
            if candidates.is_empty() && possible {
                findings.missing.insert(version.write);
            }
        }
        match (candidates.is_empty(), seen) {
            // nothing was there to begin with
            (_, Seen::Absent) => Ok(()),
            (true, _) => fail("a value that no write explains"),
            (false, _) => self.close(&candidates, seen, findings),
        }
    }

    /// Notes what follows if these are the writes of which one must be the last that was applied.
    fn close(
        &self,
        candidates: &[WriteId],
        seen: Seen,
        findings: &mut Findings,
    ) -> Result<(), Violation> {
        if let ([only], true) = (candidates, !matches!(seen, Seen::Some)) {
            findings.applied.insert(*only);
        }
        Ok(())
    }

    fn violation(
        &self,
        what: &'static str,
        partition: Partition,
        unit: Unit,
        seen: Seen,
        answer: &Answer,
        versions: &[Version],
    ) -> Violation {
        let history = versions.iter().rev().take(6).map(|version| {
            let record = self.writes.get(version.write);
            let at = record.map(|record| (record.now, record.fate));
            let changes = record.map_or(0, |record| record.write.changes.len());
            format!("#{} {:?} {at:?}, one of {changes} changes", version.write, version.effect)
        });
        Violation {
            what,
            at: format!("{partition:?} {unit:?}"),
            read: format!("{seen:?} at second {} (latest {})", answer.now, self.latest),
            history: history.collect::<Vec<_>>().join("\n           "),
        }
    }

    fn torn(&self, id: WriteId, reads: &[(Partition, Answer)]) -> Violation {
        let write = self.writes.get(id).map(|record| &record.write);
        let touched = |partition: &Partition| {
            write.is_some_and(|write| write.changes.iter().any(|(p, _)| p == partition))
        };
        let reads: Vec<_> = reads.iter().filter(|(partition, _)| touched(partition)).collect();
        Violation {
            what: "a write is there in part",
            at: format!("write #{id}"),
            read: format!("{reads:?}"),
            history: format!("{write:?}"),
        }
    }
}

/// The units that a change touches, of those that were ever written.
fn effects(units: &BTreeMap<Unit, Vec<Version>>, change: &Change) -> Vec<(Unit, Effect)> {
    let delete = |of: &dyn Fn(&Unit) -> bool| {
        units.keys().copied().filter(|unit| of(unit)).map(|unit| (unit, Effect::Delete)).collect()
    };
    let row_of = |unit: &Unit| match unit {
        Unit::Static => None,
        Unit::Liveness(row) | Unit::Cell(row, _) => Some(*row),
    };
    let set = |value: Option<Value>, ttl: Option<u32>| match value {
        Some(value) => Effect::Set { value, ttl },
        None => Effect::Delete,
    };
    match *change {
        Change::Insert { row, a, b, ttl } => {
            let mut out = vec![
                (Unit::Liveness(row), set(Some(a), ttl)),
                (Unit::Cell(row, Column::A), set(Some(a), ttl)),
            ];
            out.extend(b.map(|b| (Unit::Cell(row, Column::B), set(Some(b), ttl))));
            out
        }
        Change::Set { row, column, value, ttl } => {
            vec![(Unit::Cell(row, column), set(value, ttl))]
        }
        Change::Static { value } => vec![(Unit::Static, set(value, None))],
        Change::DeleteRow { row } => delete(&|unit| row_of(unit) == Some(row)),
        Change::DeleteRange { range } => {
            delete(&|unit| row_of(unit).is_some_and(|row| range.contains(row)))
        }
        Change::DeletePartition => delete(&|_| true),
    }
}
