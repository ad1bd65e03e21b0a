//! The load: writers of rows and batches, one that truncates, one that changes the schema, an
//! operator.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use env::{Moment, Rng};

use crate::client::{Client, Failure, Row};
use crate::history::{Done, History, Key, TableLife};
use crate::node::{Mode, Place};

/// Writers of rows.
const WRITERS: u64 = 3;
/// Keys of a writer in a table.
const KEYS: u64 = 48;
/// The longest padding of a row, in bytes.
const PAD_MAX: u64 = 700;
/// Rows of the table that is truncated.
const TRUNCATED_KEYS: u64 = 24;

/// The longest pause between truncations and between tables' lives, in microseconds: each leaves a
/// directory of files.
const RARE: Option<u64> = Some(60_000);

/// Tells the moment.
pub type Clock<'a> = &'a (dyn Fn() -> Moment + Sync);

/// The filling of a row: says whether the row is whole.
pub fn pad(key: i32, value: i32) -> String {
    let seed = (u64::from(key.cast_unsigned()) << 32) | u64::from(value.cast_unsigned());
    let rng = Rng::new(seed);
    let length = rng.below(PAD_MAX);
    let letter = |_| char::from(b'a' + (rng.below(26) as u8));
    (0..length).map(letter).collect()
}

fn insert(table: &str, key: i32, value: i32) -> String {
    format!("INSERT INTO ks.{table} (k, v, pad) VALUES ({key}, {value}, '{}')", pad(key, value))
}

/// The tables that are always there.
pub const TABLES: [&str; 5] = ["t", "p", "q", "l", "tr"];

/// How an error begins that is no failed statement, but an answer that cannot be.
pub const WRONG: &str = "a wrong answer";

/// A client that writes down what it asks for and what it is told.
pub struct Writer<'a> {
    client: Client,
    clock: Clock<'a>,
    /// What it did.
    pub history: History,
    rng: Rng,
    next: i32,
}

impl<'a> Writer<'a> {
    /// One whose values are those from `first` on.
    pub fn new(client: Client, clock: Clock<'a>, seed: u64, first: i32) -> Self {
        Self { client, clock, history: History::default(), rng: Rng::new(seed), next: first }
    }

    fn value(&mut self) -> i32 {
        self.next += 1;
        self.next
    }

    fn settle<T>(&mut self, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Refused(text)) => {
                self.history.errors.push(text);
                Ok(None)
            }
            Err(gone) => Err(gone),
        }
    }

    /// Runs a statement that writes these values.
    fn write(&mut self, text: &str, keys: &[(Key, Option<i32>)]) -> Result<(), Failure> {
        let begun = (self.clock)();
        for (key, value) in keys {
            self.history.begin(key.clone(), *value, begun, false);
        }
        let result = self.client.query(text);
        if self.settle(result)?.is_some() {
            let acked = (self.clock)();
            keys.iter().for_each(|(key, _)| self.history.acked(key, acked));
        }
        Ok(())
    }

    /// Writes a row.
    pub fn insert(&mut self, table: &str, key: i32) -> Result<i32, Failure> {
        let value = self.value();
        self.write(&insert(table, key, value), &[((table.to_owned(), key), Some(value))])?;
        Ok(value)
    }

    /// Reads a row's value.
    pub fn read(&mut self, table: &str, key: i32) -> Result<Option<i32>, Failure> {
        let rows = self.client.query(&format!("SELECT v FROM ks.{table} WHERE k = {key}"))?;
        Ok(rows.first().and_then(|row| row.first()).and_then(|cell| int(cell.as_deref())))
    }

    /// One write of a writer of rows.
    fn any(&mut self, writer: u64) -> Result<(), Failure> {
        let key = (self.rng.below(KEYS) * WRITERS + writer) as i32;
        let name = |table: &str, key| (table.to_owned(), key);
        match self.rng.below(20) {
            0 => {
                let text = format!("DELETE FROM ks.t WHERE k = {key}");
                self.write(&text, &[(name("t", key), None)])
            }
            1..=3 => {
                let value = self.value();
                let text = format!(
                    "BEGIN UNLOGGED BATCH {}; {}; APPLY BATCH",
                    insert("p", key, value),
                    insert("q", key, value)
                );
                let keys = [(name("p", key), Some(value)), (name("q", key), Some(value))];
                self.write(&text, &keys)
            }
            4..=5 => {
                let (value, one, two) = (self.value(), 2 * key, 2 * key + 1);
                let text = format!(
                    "BEGIN BATCH {}; {}; APPLY BATCH",
                    insert("l", one, value),
                    insert("l", two, value)
                );
                self.write(&text, &[(name("l", one), Some(value)), (name("l", two), Some(value))])
            }
            _ => self.insert("t", key).map(drop),
        }
    }

    /// Fills a table and empties it.
    fn truncate(&mut self) -> Result<(), Failure> {
        for _ in 0..self.rng.between(3, 30) {
            let key = self.rng.below(TRUNCATED_KEYS) as i32;
            self.insert("tr", key)?;
        }
        self.compare_truncated()?;
        let begun = (self.clock)();
        // Those of an earlier run too, which this history does not know.
        let known: Vec<Key> = (0..TRUNCATED_KEYS as i32).map(|key| ("tr".into(), key)).collect();
        for key in &known {
            self.history.begin(key.clone(), None, begun, true);
        }
        let result = self.client.query("TRUNCATE ks.tr");
        let done = self.settle(result)?.is_some();
        let acked = (self.clock)();
        if done {
            known.iter().for_each(|key| self.history.acked(key, acked));
        }
        let done = Done { begun, acked: done.then_some(acked) };
        self.history.truncations.push(("tr".into(), done));
        Ok(())
    }

    /// The table holds what was written since the last truncation, and nothing else: a compaction
    /// that was under way then must not have brought anything back.
    fn compare_truncated(&mut self) -> Result<(), Failure> {
        if self.history.truncations.iter().all(|(_, done)| done.acked.is_none()) {
            return Ok(());
        }
        let rows = self.client.query("SELECT k, v FROM ks.tr")?;
        let cell = |row: &Row, at: usize| int(row.get(at).and_then(|cell| cell.as_deref()));
        let found: BTreeMap<i32, Option<i32>> =
            rows.iter().filter_map(|row| Some((cell(row, 0)?, cell(row, 1)))).collect();
        for (key, versions) in self.history.keys.iter().filter(|((table, _), _)| table == "tr") {
            let Some(last) = versions.last().filter(|last| last.acked.is_some()) else { continue };
            let shown = found.get(&key.1).copied().flatten();
            if shown != last.value {
                let wrong = format!("{WRONG}: {key:?} shows {shown:?}, set to {last:?}");
                self.history.errors.push(wrong);
                break;
            }
        }
        Ok(())
    }

    fn change(&mut self, text: &str) -> Result<Done, Failure> {
        let begun = (self.clock)();
        let result = self.client.query(text);
        let done = self.settle(result)?.is_some();
        Ok(Done { begun, acked: done.then(|| (self.clock)()) })
    }

    /// A table's whole life.
    fn table(&mut self, number: u64) -> Result<(), Failure> {
        let name = format!("d{number}");
        // Noted before it is asked for: the connection may break in between.
        let done = Done { begun: (self.clock)(), acked: None };
        let life = TableLife { created: done, columns: [].into(), dropped: None };
        self.history.tables.insert(name.clone(), life);
        let text = format!("CREATE TABLE ks.{name} (k int PRIMARY KEY, v int, pad text)");
        let created = self.change(&text)?;
        self.note(&name, |life| life.created = created);
        let rows = self.rng.between(5, 30);
        for at in 0..rows {
            self.insert(&name, at as i32)?;
        }
        if self.rng.below(2) == 0 {
            let begun = Done { begun: (self.clock)(), acked: None };
            self.note(&name, |life| {
                life.columns.insert("more".into(), begun);
            });
            let added = self.change(&format!("ALTER TABLE ks.{name} ADD more int"))?;
            self.note(&name, |life| {
                life.columns.insert("more".into(), added);
            });
            for at in 0..self.rng.below(5) {
                self.insert(&name, at as i32)?;
            }
        }
        if self.rng.below(3) > 0 {
            let begun = Done { begun: (self.clock)(), acked: None };
            self.note(&name, |life| life.dropped = Some(begun));
            let dropped = self.change(&format!("DROP TABLE ks.{name}"))?;
            self.note(&name, |life| life.dropped = Some(dropped));
        }
        Ok(())
    }

    fn note(&mut self, table: &str, f: impl FnOnce(&mut TableLife)) {
        if let Some(life) = self.history.tables.get_mut(table) {
            f(life);
        }
    }

    /// The keyspace and the tables that are always there.
    pub fn prepare(&mut self) -> Result<(), Failure> {
        self.client.query(
            "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = \
             {'class': 'SimpleStrategy', 'replication_factor': 1}",
        )?;
        for name in TABLES {
            let begun = Done { begun: (self.clock)(), acked: None };
            let life = TableLife { created: begun, columns: [].into(), dropped: None };
            self.history.tables.insert(name.into(), life);
            let text = format!("CREATE TABLE ks.{name} (k int PRIMARY KEY, v int, pad text)");
            let created = self.change(&text)?;
            self.note(name, |life| life.created = created);
        }
        Ok(())
    }
}

/// A cell of type int.
pub fn int(cell: Option<&[u8]>) -> Option<i32> {
    cell.and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes)
}

/// How a load runs.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// How long.
    pub length: Duration,
    /// Values of this load are from here on.
    pub first: i32,
    /// Tables that it creates are numbered from here on.
    pub tables: u64,
}

impl Plan {
    /// Of a run that is recorded for so many milliseconds.
    pub fn recorded(millis: u64, seed: u64) -> Self {
        Self { seed, length: Duration::from_millis(millis), first: 1_000_000, tables: 0 }
    }
}

/// What each client does until the load is over: false when it shall stop.
fn keep_on(
    writer: &mut Writer<'_>,
    over: &dyn Fn() -> bool,
    pause: Option<u64>,
    mut step: impl FnMut(&mut Writer<'_>) -> Result<(), Failure>,
) {
    while !over() {
        if let Err(gone) = step(writer) {
            if !over() {
                writer.history.errors.push(gone.to_string());
            }
            return;
        }
        if let Some(most) = pause {
            // The pace of a load, not a wait for anything.
            std::thread::sleep(Duration::from_micros(writer.rng.below(most)));
        }
    }
}

/// Loads a node until the time is over, or `stop` says so, and returns what happened.
pub fn run(
    place: &Place,
    clock: Clock<'_>,
    plan: Plan,
    stop: &AtomicBool,
) -> Result<History, String> {
    let end = Instant::now() + plan.length;
    let over = || stop.load(Ordering::Acquire) || Instant::now() >= end;
    let over: &(dyn Fn() -> bool + Sync) = &over;
    // Otherwise nothing holds a writer back that waits for no sync.
    let pause = (place.mode == Mode::Periodic).then_some(3000);
    let mut history = History::default();
    let connect = |number: u64| {
        let client = place.connect().map_err(|e| e.to_string())?;
        let first = plan.first + (number as i32) * 100_000;
        Ok::<_, String>(Writer::new(client, clock, plan.seed.wrapping_add(number), first))
    };
    let mut writers = Vec::new();
    for number in 0..WRITERS + 2 {
        writers.push(connect(number)?);
    }
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, mut writer) in writers.into_iter().enumerate() {
            threads.push(scope.spawn(move || {
                let number = number as u64;
                match number {
                    WRITERS => keep_on(&mut writer, over, RARE, |writer| writer.truncate()),
                    n if n > WRITERS => {
                        let mut table = plan.tables;
                        keep_on(&mut writer, over, RARE, |writer| {
                            table += 1;
                            writer.table(table)
                        });
                    }
                    _ => keep_on(&mut writer, over, pause, |writer| writer.any(number)),
                }
                writer.history
            }));
        }
        scope.spawn(move || operate(place, over, plan.seed));
        for thread in threads {
            match thread.join() {
                Ok(part) => history.merge(part),
                Err(_) => history.errors.push("a client panicked".into()),
            }
        }
    });
    Ok(history)
}

/// An operator who flushes and compacts.
fn operate(place: &Place, over: &(dyn Fn() -> bool + Sync), seed: u64) {
    let rng = Rng::new(seed ^ 0x6f70);
    while !over() {
        std::thread::sleep(Duration::from_millis(rng.between(5, 60)));
        // Half of the time the one that is truncated: the two meet.
        let at = rng.below(2 * TABLES.len() as u64) as usize;
        let table = TABLES.get(at).copied().unwrap_or("tr");
        let verb = if rng.below(3) == 0 { "compact" } else { "flush" };
        // A node that ends refuses; the load itself notices.
        let _ = place.verb(&[verb, "ks", table]);
    }
}
