//! What clients asked for and were told, each with its moment, and what a node may therefore hold
//! after a cut.
//!
//! Each key is written by one client that waits for every answer, so the writes of a key have an
//! order. After a cut the value of a key must be one that was asked for before the cut, and not
//! older than the last one that the mode promises to keep.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use env::Moment;

/// A table's name and a key.
pub type Key = (String, i32);

/// The beginning of everything.
pub const START: Moment = Moment { place: 0, time: Duration::ZERO };

/// A write of a key.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// None: deleted.
    pub value: Option<i32>,
    /// When it was asked for.
    pub begun: Moment,
    /// When its client was told that it is done.
    pub acked: Option<Moment>,
    /// Durable when it is acknowledged, whatever the mode: a TRUNCATE.
    pub at_once: bool,
}

/// Something done to the schema.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// When it was asked for.
    pub begun: Moment,
    /// When its client was told that it is done.
    pub acked: Option<Moment>,
}

/// The life of a table.
#[derive(Clone, Debug)]
pub struct TableLife {
    /// CREATE.
    pub created: Done,
    /// ALTER ... ADD.
    pub columns: BTreeMap<String, Done>,
    /// DROP.
    pub dropped: Option<Done>,
}

/// What clients did.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Writes, in order, by key.
    pub keys: BTreeMap<Key, Vec<Version>>,
    /// Tables that were created.
    pub tables: BTreeMap<String, TableLife>,
    /// TRUNCATEs of tables that held something: each takes a snapshot first.
    pub truncations: Vec<(String, Done)>,
    /// Statements that failed.
    pub errors: Vec<String>,
}

/// What a node shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tables and their columns.
    pub tables: BTreeMap<String, BTreeSet<String>>,
    /// Values of keys.
    pub keys: BTreeMap<Key, i32>,
}

/// Where a run was cut, and what may be lost by it.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The cut.
    pub at: Moment,
    /// What was acknowledged so long before the cut must be there; none: everything acknowledged
    /// must.
    pub window: Option<Duration>,
}

impl Cut {
    fn holds(&self, acked: Option<Moment>, at_once: bool) -> bool {
        let Some(acked) = acked.filter(|acked| acked.place <= self.at.place) else { return false };
        match self.window {
            Some(window) if !at_once => acked.time + window <= self.at.time,
            _ => true,
        }
    }
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    /// Acknowledged writes that had to be there, or one after them.
    pub writes: u64,
    /// Changes of the schema that had to be there.
    pub changes: u64,
    /// The longest time before a cut that a write was acknowledged which the cut took.
    pub lost_age: Duration,
}

impl Checked {
    /// Takes in what another check found.
    pub fn add(&mut self, other: Self) {
        self.writes += other.writes;
        self.changes += other.changes;
        self.lost_age = self.lost_age.max(other.lost_age);
    }
}

impl History {
    /// A write is about to be sent.
    pub fn begin(&mut self, key: Key, value: Option<i32>, begun: Moment, at_once: bool) {
        let version = Version { value, begun, acked: None, at_once };
        self.keys.entry(key).or_default().push(version);
    }

    /// The last write of a key is done.
    pub fn acked(&mut self, key: &Key, at: Moment) {
        if let Some(version) = self.keys.get_mut(key).and_then(|versions| versions.last_mut()) {
            version.acked = Some(at);
        }
    }

    /// Takes in what another client did, to other keys and tables.
    pub fn merge(&mut self, other: Self) {
        for (key, versions) in other.keys {
            self.keys.entry(key).or_default().extend(versions);
        }
        self.tables.extend(other.tables);
        self.truncations.extend(other.truncations);
        self.errors.extend(other.errors);
    }

    /// What was seen is all that there is, and must stay.
    pub fn settled(seen: &Seen) -> Self {
        let mut history = Self::default();
        for (key, value) in &seen.keys {
            history.begin(key.clone(), Some(*value), START, true);
            history.acked(key, START);
        }
        let done = Done { begun: START, acked: Some(START) };
        for (table, columns) in &seen.tables {
            let columns = columns.iter().map(|column| (column.clone(), done)).collect();
            let life = TableLife { created: done, columns, dropped: None };
            history.tables.insert(table.clone(), life);
        }
        history
    }

    /// Checks what a node shows after a cut.
    ///
    /// # Errors
    /// If something is missing that must be there, or there that cannot be.
    pub fn check(&self, cut: &Cut, seen: &Seen) -> Result<Checked, String> {
        let mut checked = Checked::default();
        for (name, life) in &self.tables {
            self.check_table(cut, seen, name, life, &mut checked)?;
        }
        if let Some(unknown) = seen.tables.keys().find(|name| !self.tables.contains_key(*name)) {
            return Err(format!("table {unknown} was never asked for"));
        }
        for (key, versions) in &self.keys {
            if !seen.tables.contains_key(&key.0) {
                // whether the table may be gone is checked above
                continue;
            }
            check_key(cut, key, versions, seen.keys.get(key).copied(), &mut checked)?;
        }
        if let Some(unknown) = seen.keys.keys().find(|key| !self.keys.contains_key(*key)) {
            return Err(format!("{unknown:?} was never written"));
        }
        Ok(checked)
    }

    /// Each truncation that shows must have left a snapshot: those that were acknowledged, and one
    /// more that was under way if the rows before it are gone.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn check_snapshots(&self, cut: &Cut, seen: &Seen, found: usize) -> Result<(), String> {
        let acked = |(_, done): &&(String, Done)| cut.holds(done.acked, true);
        let mut wanted = self.truncations.iter().filter(acked).count();
        let under_way = |(_, done): &&(String, Done)| {
            done.begun.place <= cut.at.place && !cut.holds(done.acked, true)
        };
        if let Some((table, done)) = self.truncations.iter().find(under_way) {
            let before = |(key, versions): (&Key, &Vec<Version>)| {
                let mut earlier = versions.iter().filter(|v| v.begun.place < done.begun.place);
                let last = earlier.next_back()?;
                let held = last.value.is_some() && cut.holds(last.acked, last.at_once);
                (key.0 == *table && held).then(|| seen.keys.contains_key(key))
            };
            let mut rows = self.keys.iter().filter_map(before).peekable();
            wanted += usize::from(rows.peek().is_some() && rows.all(|there| !there));
        }
        match found < wanted {
            true => Err(format!("{wanted} truncations took a snapshot, {found} are there")),
            false => Ok(()),
        }
    }

    fn check_table(
        &self,
        cut: &Cut,
        seen: &Seen,
        name: &str,
        life: &TableLife,
        checked: &mut Checked,
    ) -> Result<(), String> {
        let begun = |done: &Done| done.begun.place <= cut.at.place;
        let holds = |done: &Done| cut.holds(done.acked, true);
        let columns = seen.tables.get(name);
        let may_be_gone = life.dropped.as_ref().is_some_and(begun);
        match columns {
            None if holds(&life.created) && !may_be_gone => {
                return Err(format!("CREATE TABLE {name} was acknowledged and is lost: {life:?}"));
            }
            Some(_) if !begun(&life.created) => {
                return Err(format!("table {name} is there before it was asked for"));
            }
            Some(_) if life.dropped.as_ref().is_some_and(holds) => {
                return Err(format!("DROP TABLE {name} was acknowledged and is lost: {life:?}"));
            }
            _ => {}
        }
        checked.changes += u64::from(holds(&life.created));
        checked.changes += u64::from(life.dropped.as_ref().is_some_and(holds));
        let Some(columns) = columns else { return Ok(()) };
        for (column, done) in &life.columns {
            let there = columns.contains(column);
            if holds(done) && !there {
                return Err(format!(
                    "ALTER TABLE {name} ADD {column} was acknowledged and is lost"
                ));
            }
            if there && !begun(done) {
                return Err(format!("column {name}.{column} is there before it was asked for"));
            }
            checked.changes += u64::from(holds(done));
        }
        Ok(())
    }
}

fn check_key(
    cut: &Cut,
    key: &Key,
    versions: &[Version],
    seen: Option<i32>,
    checked: &mut Checked,
) -> Result<(), String> {
    let holds = |version: &Version| cut.holds(version.acked, version.at_once);
    let must = versions.iter().rposition(holds);
    let asked = versions.iter().take_while(|version| version.begun.place <= cut.at.place).count();
    checked.writes += versions.iter().filter(|version| holds(version)).count() as u64;
    let possible = versions.get(must.unwrap_or(0)..asked).unwrap_or_default();
    let fits = possible.iter().rposition(|version| version.value == seen);
    let Some(at) = fits.map(|at| at + must.unwrap_or(0)) else {
        if seen.is_none() && must.is_none() {
            note_lost(cut, versions, checked);
            return Ok(());
        }
        let known = versions.get(must.unwrap_or(0).saturating_sub(2)..asked).unwrap_or_default();
        return Err(format!(
            "{key:?} shows {seen:?}, not one of {:?} ({:?}); with those before: {known:?}",
            possible.iter().map(|version| version.value).collect::<Vec<_>>(),
            cut,
        ));
    };
    note_lost(cut, versions.get(at + 1..asked).unwrap_or_default(), checked);
    Ok(())
}

/// Notes the age of the oldest acknowledged write that was lost.
fn note_lost(cut: &Cut, lost: &[Version], checked: &mut Checked) {
    let acked = lost.iter().filter_map(|version| version.acked);
    for acked in acked.filter(|acked| acked.place <= cut.at.place) {
        checked.lost_age = checked.lost_age.max(cut.at.time.saturating_sub(acked.time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Moment {
        Moment { place: n as usize, time: Duration::from_millis(n) }
    }

    fn history() -> (History, Key) {
        let mut history = History::default();
        let done = Done { begun: START, acked: Some(START) };
        let life = TableLife { created: done, columns: BTreeMap::new(), dropped: None };
        history.tables.insert("t".into(), life);
        let key = ("t".to_owned(), 1);
        for (value, begun, acked) in
            [(Some(1), 10, Some(20)), (Some(2), 30, Some(40)), (None, 50, None)]
        {
            history.begin(key.clone(), value, at(begun), false);
            if let Some(acked) = acked {
                history.acked(&key, at(acked));
            }
        }
        (history, key)
    }

    fn shows(key: &Key, value: Option<i32>) -> Seen {
        let mut seen = Seen::default();
        seen.tables.insert("t".into(), BTreeSet::new());
        seen.keys.extend(value.map(|value| (key.clone(), value)));
        seen
    }

    #[test]
    fn an_acknowledged_write_must_be_there() {
        let (history, key) = history();
        let check = |cut: u64, window: Option<u64>, value| {
            let cut = Cut { at: at(cut), window: window.map(Duration::from_millis) };
            history.check(&cut, &shows(&key, value)).is_ok()
        };
        // before the first, under way, acknowledged
        assert!(check(5, None, None) && !check(5, None, Some(1)));
        assert!(check(15, None, None) && check(15, None, Some(1)) && !check(15, None, Some(2)));
        assert!(!check(20, None, None) && check(20, None, Some(1)));
        assert!(check(45, None, Some(2)) && !check(45, None, Some(1)) && !check(45, None, None));
        // a deletion under way
        assert!(check(55, None, Some(2)) && check(55, None, None) && !check(55, None, Some(1)));
        // the last 10 ms may be lost
        assert!(check(45, Some(10), Some(1)) && check(45, Some(10), Some(2)));
        assert!(!check(45, Some(10), None) && !check(50, Some(10), Some(1)));
    }

    #[test]
    fn what_is_lost_has_an_age() {
        let (history, key) = history();
        let cut = Cut { at: at(45), window: Some(Duration::from_millis(10)) };
        let checked = history.check(&cut, &shows(&key, Some(1))).unwrap();
        assert_eq!((checked.writes, checked.lost_age), (1, Duration::from_millis(5)));
    }

    #[test]
    fn tables_come_and_go_as_acknowledged() {
        let (mut history, key) = history();
        let cut = Cut { at: at(45), window: Some(Duration::from_secs(1)) };
        assert!(history.check(&cut, &Seen::default()).is_err());
        let dropped = Done { begun: at(40), acked: None };
        history.tables.get_mut("t").unwrap().dropped = Some(dropped);
        history.check(&cut, &Seen::default()).unwrap();
        history.check(&cut, &shows(&key, Some(1))).unwrap();
        let dropped = Done { begun: at(40), acked: Some(at(45)) };
        history.tables.get_mut("t").unwrap().dropped = Some(dropped);
        assert!(history.check(&cut, &shows(&key, Some(1))).is_err());
        let mut more = shows(&key, Some(1));
        more.keys.insert(("t".into(), 7), 1);
        assert!(history.check(&Cut { at: at(30), window: None }, &more).is_err());
    }
}
