//! One cell of the table: a kind of file under a fault.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{Change, Fault as Armed, FileFault, NodeId, Phase, World, WorldOptions};
use env::{DiskModel, Env};
use storage::commitlog::SyncMode;
use storage::table_directory;

use crate::engine_node::{Door, Order};
use crate::failed::Failed;
use crate::history::History;
use crate::operation::{Change as RowChange, Column, Partition, Query, TABLES, Value, Write};
use crate::plan::{Plan, directories};
use crate::site::Site;
use crate::tables;
use crate::target::Target;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// As it is called.
    pub name: &'static str,
    /// Part of its path.
    part: &'static str,
    /// The table whose file is damaged.
    table: u8,
}

impl Kind {
    /// Is it a part of an SSTable?
    pub fn is_component(&self) -> bool {
        self.part.starts_with('-')
    }
}

const fn component(name: &'static str, part: &'static str) -> Kind {
    Kind { name, part, table: 0 }
}

/// The kinds of files.
pub const FILES: [Kind; 13] = [
    component("Data.db", "-Data.db"),
    component("Index.db", "-Index.db"),
    component("Summary.db", "-Summary.db"),
    component("Filter.db", "-Filter.db"),
    component("Statistics.db", "-Statistics.db"),
    component("CompressionInfo.db", "-CompressionInfo.db"),
    Kind { name: "CRC.db", part: "-CRC.db", table: 1 },
    component("Digest.crc32", "-Digest.crc32"),
    component("TOC.txt", "-TOC.txt"),
    component("commit log segment", "CommitLog-"),
    component("list of log segments", "HelenusSegments-"),
    component("transaction log", "_txn_"),
    component("snapshot manifest", "manifest.json"),
];

/// Damage done to a file at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// One bit in its middle is another.
    FlippedBit,
    /// Its last sectors, up to 512 bytes from its middle on, are zeros.
    ZeroedBlock,
    /// Its second half is gone.
    Truncated,
    /// It is gone.
    Missing,
    /// It is an older file of the same kind.
    Stale,
}

/// A fault of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Of what it holds.
    Damage(Damage),
    /// Of what it does.
    Operation(FileFault),
}

/// The faults, with their names.
pub const FAULTS: [(&str, Fault); 9] = [
    ("flipped bit", Fault::Damage(Damage::FlippedBit)),
    ("zeroed block", Fault::Damage(Damage::ZeroedBlock)),
    ("truncated", Fault::Damage(Damage::Truncated)),
    ("missing", Fault::Damage(Damage::Missing)),
    ("stale", Fault::Damage(Damage::Stale)),
    ("EIO on read", Fault::Operation(FileFault::Read)),
    ("EIO on write", Fault::Operation(FileFault::Write)),
    ("fsync failure", Fault::Operation(FileFault::Sync)),
    ("full", Fault::Operation(FileFault::Full)),
];

/// A kind of file under a fault.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The kind of file.
    pub kind: Kind,
    /// The fault.
    pub fault: Fault,
    /// It comes while the node is down.
    pub at_rest: bool,
    /// `disk_failure_policy` is `best_effort`: a start goes without what it cannot open.
    pub best_effort: bool,
}

/// What was seen of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What failed, in the order in which it was tried: each kind of request once.
    pub failed: Vec<&'static str>,
    /// What the first failure said.
    pub said: Option<String>,
    /// Failures that did not name a file.
    pub unnamed: Vec<String>,
    /// The kinds of failure that the node said by itself.
    pub told: BTreeSet<&'static str>,
    /// A start went without an SSTable, and said so.
    pub is_aside: bool,
    /// A wrong answer: never allowed, but where the report says so.
    pub wrong: Option<String>,
}

const NODE: u8 = 1;
const KEYS: i32 = 6;
const ROWS: i32 = 12;
const MAX: Duration = Duration::from_secs(120);

struct Run {
    world: World,
    node: NodeId,
    clients: Env,
    door: Rc<Door>,
    history: History,
    next_value: u64,
    outcome: Outcome,
    /// What was damaged, as it was before.
    damaged: Option<(PathBuf, Vec<u8>)>,
}

fn plan(cell: Cell) -> Plan {
    let mut plan = Plan::new(1);
    plan.sync = SyncMode::Batch;
    plan.compacts = false;
    plan.options.log = storage::LogSettings::default();
    plan.options.memtable_bytes = 8 << 20;
    plan.options.segment_bytes = 64 << 10;
    plan.options.commitlog_bytes = 4 << 20;
    // nothing is answered from memory
    plan.options.keeps_flushed = false;
    plan.options.chunk_cache_bytes = 0;
    plan.options.key_cache_bytes = 0;
    plan.options.row_cache_bytes = 0;
    plan.options.counter_cache_bytes = 0;
    plan.options.compaction_bytes_per_second = 0;
    if cell.best_effort {
        plan.options.disk.on_failure = storage::OnDiskFailure::BestEffort;
    }
    plan
}

/// Runs a cell.
///
/// # Errors
/// If the world is not as it must be before the fault, or does not heal after it.
pub fn run(cell: Cell) -> Result<Outcome, String> {
    let world = World::new(7, WorldOptions::default());
    let node = world.node(std::net::IpAddr::from([10, 0, 0, NODE]));
    let clients = world.client(std::net::IpAddr::from([10, 0, 0, NODE + 1]));
    let door = <Door as Site>::new(&plan(cell), &clients, std::net::IpAddr::from([10, 0, 0, NODE]));
    let outcome = Outcome::default();
    let history = History::default();
    let mut run =
        Run { world, node, clients, door, history, next_value: 1, outcome, damaged: None };
    run.prepare(cell)?;
    let is_damage = matches!(cell.fault, Fault::Damage(_));
    if cell.at_rest {
        run.stop();
    }
    run.strike(cell)?;
    if cell.at_rest {
        run.restart();
    }
    if run.world.is_up(node) {
        run.day();
        run.restart();
    }
    if run.world.is_up(node) {
        run.read_all();
        run.order("compaction", Order::Compact(cell.kind.table));
        run.read_all();
    }
    run.listen();
    if !is_damage {
        run.heal()?;
    }
    if run.outcome.is_aside {
        run.put_back()?;
    }
    Ok(run.outcome)
}

impl Run {
    /// Two SSTables a table, one over the other, writes in the log that are in neither, and a
    /// snapshot.
    fn prepare(&mut self, cell: Cell) -> Result<(), String> {
        self.door.start(&self.world, self.node, 2);
        self.wait()?;
        for step in 0..3 {
            for table in 0..TABLES {
                // each SSTable has a key that the other has not
                (step..step + KEYS).for_each(|key| self.write(table, key, step));
            }
            if step < 2 {
                (0..TABLES).for_each(|table| self.order("flush", Order::Flush(table)));
            }
        }
        (0..TABLES).for_each(|t| {
            self.order("snapshot", Order::Snapshot(t, "before".into(), Some(60_000)));
        });
        self.read_all();
        if self.outcome != Outcome::default() {
            return Err(format!("before any fault: {:?}", self.outcome));
        }
        if cell.kind.name == "transaction log" && cell.at_rest {
            self.stop_in_compaction()?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), String> {
        let door = Rc::clone(&self.door);
        let over = || door.is_serving() || !self.world.is_up(self.node);
        self.world.run_until(over, MAX).map_err(|failure| failure.to_string())
    }

    /// Kills the node while a compaction removes what it replaced: only the transaction's log tells
    /// what stays.
    fn stop_in_compaction(&mut self) -> Result<(), String> {
        let removed = Rc::new(std::cell::Cell::new(0));
        let count = Rc::clone(&removed);
        self.world.watch_disk(self.node, move |change, path, phase, _| {
            let goes = change == Change::Remove && phase == Phase::After;
            let is_component = path.to_string_lossy().contains("-big-");
            count.set(count.get() + u32::from(goes && is_component));
        });
        let door = Rc::clone(&self.door);
        let task = self.clients.spawn_task(env::Class::Statement, async move {
            let _ = door.order(Order::Compact(0)).await;
        });
        let reached = self.world.run_until(|| removed.get() >= 11, MAX);
        reached.map_err(|failure| format!("no compaction: {failure}"))?;
        drop(task);
        self.world.kill(self.node);
        self.door.closed();
        Ok(())
    }

    fn write(&mut self, table: u8, key: i32, step: i32) {
        let partition = Partition { table, key };
        let value = |run: &mut Self| {
            run.next_value += 1;
            Value(run.next_value)
        };
        let mut changes = Vec::new();
        // each step reaches into what the one before wrote, and one deletes
        for row in step * 4..step * 4 + ROWS {
            let change = match row % 5 {
                4 if step > 0 => RowChange::DeleteRow { row },
                3 if step > 0 => {
                    let value = Some(value(self));
                    RowChange::Set { row, column: Column::A, value, ttl: None }
                }
                _ => RowChange::Insert { row, a: value(self), b: None, ttl: None },
            };
            changes.push((partition, change));
        }
        let write = Write { changes };
        let now = self.clients.unix_micros() / 1_000_000;
        let id = self.history.begin(write.clone(), now);
        let door = Rc::clone(&self.door);
        let connection = key as u64;
        let done =
            self.ask(async move { door.write(connection, &write, now, Box::new(|_| ())).await });
        match done {
            Ok(()) => self.history.acknowledged(id, self.world.now()),
            Err(error) => self.fails("write", error),
        }
    }

    fn ask<T: 'static>(
        &self,
        request: impl Future<Output = Result<T, Failed>> + 'static,
    ) -> Result<T, Failed> {
        let done = self.world.block_on(&self.clients, MAX, request);
        done.unwrap_or_else(|failure| Err(Failed::Wrong(failure.to_string())))
    }

    fn fails(&mut self, what: &'static str, error: impl ToString) {
        let text = error.to_string();
        if !self.outcome.failed.contains(&what) {
            self.outcome.failed.push(what);
        }
        if !text.contains("/var/") && !text.contains("the commit log failed") {
            self.outcome.unnamed.push(text.clone());
        }
        self.outcome.said.get_or_insert(text);
    }

    fn order(&mut self, what: &'static str, order: Order) {
        let door = Rc::clone(&self.door);
        if let Err(error) = self.ask(async move { door.order(order).await }) {
            self.fails(what, error);
        }
    }

    fn read_all(&mut self) {
        for partition in self.history.partitions() {
            let (began, query) = (self.world.now(), Query::all(partition));
            let door = Rc::clone(&self.door);
            match self.ask(async move { door.read(0, &query, 0).await }) {
                Ok(answer) => {
                    if let Err(wrong) = self.history.check(&query, &answer, began) {
                        self.outcome.wrong.get_or_insert(wrong.to_string());
                    }
                }
                Err(error) => self.fails("read", error),
            }
        }
    }

    fn home(table: u8) -> PathBuf {
        table_directory(&directories().0, &tables::table(table))
    }

    /// The newest file of a kind and the one before, as paths.
    fn find(disk: &DiskModel, kind: Kind) -> Vec<PathBuf> {
        let (_, log) = directories();
        let home = Self::home(kind.table);
        let places = [home.clone(), log, home.join("snapshots/before")];
        let mut found: Vec<PathBuf> = Vec::new();
        for place in places {
            for (name, is_dir) in disk.list(&place).unwrap_or_default() {
                let path = place.join(&name);
                let is_link = place.ends_with("before") && kind.part != "manifest.json";
                if !is_dir && !is_link && path.to_string_lossy().contains(kind.part) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn strike(&mut self, cell: Cell) -> Result<(), String> {
        let damage = match cell.fault {
            Fault::Damage(damage) => damage,
            Fault::Operation(what) => {
                let what = Some((cell.kind.part.to_owned(), what));
                self.world.set_fault(Armed::File { node: self.node, what });
                return Ok(());
            }
        };
        let mut before = None;
        let struck = self.world.disk(self.node, |disk| {
            let files = Self::find(disk, cell.kind);
            let holds_writes = |path: &&PathBuf| {
                let bytes = disk.read_file(path).unwrap_or_default();
                bytes.iter().skip(64).any(|byte| *byte != 0)
            };
            let newest = files.iter().rev().find(holds_writes).cloned();
            let Some(path) = newest.or_else(|| files.last().cloned()) else { return false };
            let older = files.iter().find(|other| **other != path);
            let older = older.and_then(|other| disk.read_file(other)).unwrap_or_default();
            before = disk.read_file(&path).map(|bytes| (path.clone(), bytes));
            match damage {
                Damage::Missing => disk.lose(&path),
                _ => disk.damage(&path, |bytes| harm(damage, bytes, &older)),
            }
        });
        self.damaged = before;
        if struck == Some(true) { Ok(()) } else { Err("there is no such file".into()) }
    }

    /// What a node does in a day.
    fn day(&mut self) {
        self.read_all();
        (0..TABLES).for_each(|table| self.order("flush", Order::Flush(table)));
        (0..TABLES).for_each(|table| self.order("compaction", Order::Compact(table)));
        let values = self.next_value;
        let name = || format!("after-{values}");
        (0..TABLES).for_each(|t| self.order("snapshot", Order::Snapshot(t, name(), None)));
        for table in 0..TABLES {
            (0..KEYS).for_each(|key| self.write(table, key, 3));
        }
        self.read_all();
    }

    fn stop(&self) {
        if self.world.is_up(self.node) {
            self.world.kill(self.node);
            self.door.closed();
        }
    }

    fn restart(&mut self) {
        self.stop();
        self.world.restart(self.node);
        if let Err(failure) = self.wait() {
            self.fails("start", failure);
        }
        if !self.world.is_up(self.node) {
            let exits = self.world.exits(self.node);
            let error = exits.into_iter().find_map(Result::err).unwrap_or_default();
            self.door.closed();
            self.fails("start", error);
        }
    }

    /// Takes down what the node said by itself.
    fn listen(&mut self) {
        for (kind, text) in self.door.said.take() {
            self.outcome.told.insert(kind);
            self.outcome.is_aside |= text.contains("; skipping table");
            if !text.contains("/var/") {
                self.outcome.unnamed.push(text);
            }
        }
    }

    /// What was put aside is there again, as it was: nothing may be missing, and nothing back that
    /// was deleted meanwhile.
    fn put_back(&mut self) -> Result<(), String> {
        self.stop();
        let Some((path, bytes)) = self.damaged.take() else { return Ok(()) };
        self.world.disk(self.node, |disk| disk.write_file(&path, &bytes));
        // what it answered without it may have been as it was before
        self.outcome.wrong = None;
        let kept = self.outcome.clone();
        self.outcome.failed.clear();
        self.restart();
        self.read_all();
        self.order("compaction", Order::Compact(0));
        self.read_all();
        let after = std::mem::replace(&mut self.outcome, kept);
        self.outcome.wrong = after.wrong;
        match after.failed.is_empty() {
            true => Ok(()),
            false => Err(format!("it is not as before: {:?} {:?}", after.failed, after.said)),
        }
    }

    /// The fault goes; nothing of it stays.
    fn heal(&mut self) -> Result<(), String> {
        self.world.set_fault(Armed::File { node: self.node, what: None });
        let before = self.outcome.failed.len();
        let kept = self.outcome.clone();
        self.outcome.failed.clear();
        self.restart();
        if self.world.is_up(self.node) {
            self.read_all();
            self.day();
        }
        let after = std::mem::replace(&mut self.outcome, kept);
        self.outcome.wrong = self.outcome.wrong.take().or(after.wrong);
        debug_assert_eq!(before, self.outcome.failed.len());
        match after.failed.is_empty() {
            true => Ok(()),
            false => Err(format!("it does not heal: {:?} {:?}", after.failed, after.said)),
        }
    }
}

fn harm(damage: Damage, bytes: &mut Vec<u8>, older: &[u8]) {
    // of a log, where writes are; of the rest, its middle
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |last| last + 1);
    let middle = used / 2;
    match damage {
        Damage::FlippedBit => {
            if let Some(byte) = bytes.get_mut(middle) {
                *byte ^= 1;
            }
        }
        Damage::ZeroedBlock => {
            let end = (middle + 512).min(bytes.len());
            if let Some(block) = bytes.get_mut(middle..end) {
                block.fill(0);
            }
        }
        Damage::Truncated => bytes.truncate(middle),
        Damage::Stale => *bytes = older.to_vec(),
        Damage::Missing => {}
    }
}
