//! What the clients of a world do: a mix of writes and reads, each checked against the history.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use env::{Env, Instant, Rng};

use crate::counters::{self, Counters};
use crate::failed::Failed;
use crate::history::{History, WriteId};
use crate::operation::{Answer, Change, Column, Partition, Query, Range, TABLES, Value, Write};
use crate::site::Site;
use crate::target::{COMPACT, FLUSH, Target};
use crate::world::Load;

/// Partition keys of each table.
const KEYS: u64 = 8;
/// Rows of the first partition of each table, which is the wide one, and of the others.
const WIDE_ROWS: u64 = 300;
const ROWS: u64 = 16;
/// Of how many operations one is of counters, where there are any.
const COUNTERS_ONE_IN: u64 = 10;
/// How long a client waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What the clients of a world share.
pub struct Shared {
    /// Dice.
    pub rng: Rng,
    /// What was written.
    pub history: RefCell<History>,
    /// What was counted.
    pub counters: Counters,
    /// A clock that never jumps.
    clock: Env,
    /// By how much the node's clock has jumped, in microseconds.
    jumped: Cell<i64>,
    busy: RefCell<BTreeSet<Partition>>,
    /// Tables that are being emptied: nobody writes to them.
    truncating: RefCell<BTreeSet<u8>>,
    next_value: Cell<u64>,
    /// Operations that were answered.
    pub done: Cell<u64>,
    /// Writes whose outcome a live node could not tell, since the last start: they may still
    /// happen.
    pub unknown: Cell<u64>,
    /// How often what was done.
    pub counts: RefCell<BTreeMap<&'static str, u64>>,
    /// Sum over what was read.
    pub digest: Cell<u64>,
    /// The first thing that was wrong.
    pub wrong: RefCell<Option<String>>,
}

impl Shared {
    /// For a world that begins.
    pub fn new(rng: Rng, clock: Env) -> Rc<Self> {
        Rc::new(Self {
            rng,
            history: RefCell::default(),
            counters: Counters::default(),
            clock,
            jumped: Cell::new(0),
            busy: RefCell::default(),
            truncating: RefCell::default(),
            counts: RefCell::default(),
            next_value: Cell::new(1),
            done: Cell::new(0),
            unknown: Cell::new(0),
            digest: Cell::new(0),
            wrong: RefCell::default(),
        })
    }

    /// For a world that goes on after one that was cut off: what was written there, and the next
    /// value to write.
    pub fn go_on(&self, history: History, next_value: u64) {
        self.history.replace(history);
        self.next_value.set(next_value);
    }

    /// The next value that a client writes.
    pub fn next_value(&self) -> u64 {
        self.next_value.get()
    }

    /// What the node's clock shows, in seconds since 1970.
    pub fn node_second(&self) -> i64 {
        (self.clock.unix_micros() + self.jumped.get()).div_euclid(1_000_000)
    }

    pub(crate) fn count(&self, name: &'static str) {
        *self.counts.borrow_mut().entry(name).or_default() += 1;
    }

    /// Notes that something is wrong.
    pub fn fail(&self, what: impl ToString) {
        self.wrong.borrow_mut().get_or_insert(what.to_string());
    }

    fn value(&self) -> Value {
        let value = self.next_value.get();
        self.next_value.set(value + 1);
        Value(value)
    }

    /// Folds something that was seen into the digest.
    pub fn note(&self, fact: u64) {
        let mixed = (self.digest.get() ^ fact).wrapping_mul(0x0000_0100_0000_01b3);
        self.digest.set(mixed ^ (mixed >> 31));
    }

    /// Checks what a client read.
    pub fn check(&self, query: &Query, answer: &Answer, began: Instant) {
        self.history.borrow_mut().clock_shows(self.node_second());
        self.note(answer.rows.len() as u64);
        for row in &answer.rows {
            self.note(
                row.row as u64 ^ row.a.map_or(0, |a| a.0) << 16 ^ row.b.map_or(0, |b| b.0) << 40,
            );
        }
        if let Err(violation) = self.history.borrow().check(query, answer, began) {
            self.fail(format!("{violation}\n  query: {query:?}"));
        }
    }

    /// Takes partitions for writing; false if somebody has one.
    fn take(&self, partitions: &[Partition]) -> bool {
        let (mut busy, truncating) = (self.busy.borrow_mut(), self.truncating.borrow());
        let is_free = |p: &Partition| !busy.contains(p) && !truncating.contains(&p.table);
        let free = partitions.iter().all(is_free);
        if free {
            busy.extend(partitions);
        }
        free
    }

    fn free(&self, partitions: &[Partition]) {
        self.busy.borrow_mut().retain(|partition| !partitions.contains(partition));
    }

    fn random_partition(&self) -> Partition {
        let table = self.rng.below(u64::from(TABLES)) as u8;
        // the wide one more often than the others
        let key = if self.rng.one_in(4) { 0 } else { self.rng.below(KEYS) as i32 };
        Partition { table, key }
    }

    fn random_row(&self, partition: Partition) -> i32 {
        self.rng.below(if partition.key == 0 { WIDE_ROWS } else { ROWS }) as i32
    }

    fn random_range(&self, partition: Partition) -> Range {
        let bound = |row: i32| (!self.rng.one_in(5)).then(|| (row, self.rng.one_in(2)));
        let (a, b) = (self.random_row(partition), self.random_row(partition));
        Range { from: bound(a.min(b)), to: bound(a.max(b)) }
    }
}

impl<S: Site> Load<S> for Shared {
    const OPERATIONS_MIN: u64 = 500;

    fn new(seed: u64, clients: Env) -> Rc<Self> {
        Self::new(Rng::new(seed ^ 0x776f_726b), clients)
    }

    async fn prepare(self: Rc<Self>, site: Rc<S>) -> Result<(), String> {
        site.prepare().await.map_err(|error| error.to_string())
    }

    async fn client(self: Rc<Self>, env: Env, site: Rc<S>, until: u64) {
        client(env, self, site, until).await;
    }

    /// Reads everything.
    async fn verify(self: Rc<Self>, site: Rc<S>) -> Result<(), String> {
        let partitions = self.history.borrow().partitions();
        let mut reads: Vec<(Partition, Answer)> = Vec::new();
        for partition in partitions {
            let query = Query::all(partition);
            let answer = site.read(self.rng.next(), &query, self.node_second()).await;
            reads.push((partition, answer.map_err(|e| format!("{query:?}: {e}"))?));
        }
        {
            let mut history = self.history.borrow_mut();
            history.clock_shows(self.node_second());
            history.settle(&reads).map_err(|violation| violation.to_string())?;
        }
        match site.counters() {
            Some(site) => self.counters.verify(&self, &site).await,
            None => Ok(()),
        }
    }

    async fn compact(self: Rc<Self>, site: Rc<S>) -> Result<(), String> {
        for what in [FLUSH, FLUSH | 1, COMPACT, COMPACT | 1] {
            site.maintain(what).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn done(&self) -> u64 {
        self.done.get()
    }

    fn wrong(&self) -> Option<String> {
        self.wrong.borrow().clone()
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.borrow().clone()
    }

    fn digest(&self) -> u64 {
        self.digest.get()
    }

    fn jump(&self, micros: i64, jump: &mut dyn FnMut()) {
        let mut history = self.history.borrow_mut();
        history.clock_shows(self.node_second());
        jump();
        self.jumped.set(self.jumped.get() + micros);
        history.clock_shows(self.node_second());
    }

    fn ended(&self, safe: Instant) -> bool {
        self.busy.borrow_mut().clear();
        self.truncating.borrow_mut().clear();
        self.unknown.set(0);
        self.counters.ended(safe) + self.history.borrow_mut().crashed(safe) > 0
    }
}

pub(crate) async fn client<T: Target>(env: Env, shared: Rc<Shared>, target: Rc<T>, until: u64) {
    let counters = Rc::clone(&target).counters();
    while shared.done.get() < until && shared.wrong.borrow().is_none() {
        let pause = Duration::from_micros(shared.rng.below(2000));
        env.sleep(pause).await;
        if let Some(site) = &counters
            && shared.rng.one_in(COUNTERS_ONE_IN)
        {
            let answered = counters::operate(&env, &shared, site).await;
            shared.done.set(shared.done.get() + u64::from(answered));
            continue;
        }
        let answered = match shared.rng.below(200) {
            0 | 1 => maintain(&env, &shared, &*target).await,
            2 => truncate(&env, &shared, &*target).await,
            3..13 => two_connections(&env, &shared, &*target).await,
            13..100 => write(&env, &shared, &*target).await,
            _ => read(&env, &shared, &*target).await,
        };
        if answered {
            shared.done.set(shared.done.get() + 1);
        }
    }
}

async fn maintain<T: Target>(env: &Env, shared: &Shared, target: &T) -> bool {
    let what = shared.rng.next();
    shared.count(if (what >> 8).is_multiple_of(3) { "ask.compact" } else { "ask.flush" });
    match env.timeout(PATIENCE, target.maintain(what)).await {
        Ok(Ok(())) => return true,
        Ok(Err(Failed::Refused(_) | Failed::Unknown(_))) => {}
        Ok(Err(error)) => shared.fail(format!("maintenance: {error}")),
        Err(_) => {
            shared.fail(format!("maintenance {} of {} takes for ever", (what >> 8) % 3, what % 2))
        }
    }
    false
}

async fn read<T: Target>(env: &Env, shared: &Shared, target: &T) -> bool {
    let partition = shared.random_partition();
    let range = match shared.rng.below(4) {
        0 => Range::ALL,
        1 => shared.random_range(partition),
        _ => {
            let row = shared.random_row(partition);
            Range { from: Some((row, true)), to: Some((row, true)) }
        }
    };
    let page = shared.rng.one_in(2).then(|| shared.rng.between(1, 40) as u32);
    let query = Query { partition, range, reversed: shared.rng.one_in(3), page };
    if query.reversed {
        shared.count("read.reversed");
    }
    let rows = read_and_check(env, shared, target, &query).await;
    if rows.is_some_and(|rows| page.is_some_and(|page| rows > page as usize)) {
        shared.count("read.pages");
    }
    rows.is_some()
}

/// How many rows there were; `None` without an answer.
async fn read_and_check<T: Target>(
    env: &Env,
    shared: &Shared,
    target: &T,
    query: &Query,
) -> Option<usize> {
    let began = env.now();
    let connection = shared.rng.next();
    match env.timeout(PATIENCE, target.read(connection, query, shared.node_second())).await {
        Ok(Ok(answer)) => {
            shared.check(query, &answer, began);
            return Some(answer.rows.len());
        }
        Ok(Err(error @ Failed::Wrong(_))) => shared.fail(format!("read: {error}")),
        Ok(Err(_)) => {}
        Err(_) => shared.fail(format!("{query:?} takes for ever")),
    }
    None
}

async fn write<T: Target>(env: &Env, shared: &Rc<Shared>, target: &T) -> bool {
    let Some((partitions, write)) = choose_write(shared, target.takes_batches()) else {
        return false;
    };
    let keys: BTreeSet<i32> = partitions.iter().map(|partition| partition.key).collect();
    match (keys.len() > 1, write.is_atomic()) {
        (true, true) => shared.count("write.logged_batch"),
        (true, false) => shared.count("write.unlogged_batch"),
        (false, _) if partitions.len() > 1 => shared.count("write.two_tables"),
        (false, _) => {}
    }
    let connection = shared.rng.next();
    let answered = send(env, shared, target, connection, &write).await;
    if shared.rng.one_in(2) {
        // at once, over another connection: what is acknowledged is visible everywhere
        for partition in &partitions {
            read_and_check(env, shared, target, &Query::all(*partition)).await;
        }
    }
    shared.free(&partitions);
    answered
}

/// Sends a write whose partitions are taken. False without an answer.
async fn send<T: Target>(
    env: &Env,
    shared: &Rc<Shared>,
    target: &T,
    connection: u64,
    write: &Write,
) -> bool {
    let now = shared.node_second();
    let ids: Vec<WriteId> = {
        let mut history = shared.history.borrow_mut();
        parts(write).into_iter().map(|part| history.begin(part, now)).collect()
    };
    let (theirs, known) = (Rc::clone(shared), ids.clone());
    let written_at = Box::new(move |now: i64| {
        let mut history = theirs.history.borrow_mut();
        known.iter().for_each(|id| history.written_at(*id, now));
    });
    let outcome = env.timeout(PATIENCE, target.write(connection, write, now, written_at)).await;
    match outcome {
        Ok(outcome) => note_outcome(env, shared, &ids, &outcome),
        Err(_) => {
            shared.fail(format!("{write:?} takes for ever"));
            false
        }
    }
}

/// One client with two connections, on different shards where the node has several: it writes over
/// one and, once that is acknowledged, over the other; the later write must win, whatever clocks
/// do.
async fn two_connections<T: Target>(env: &Env, shared: &Rc<Shared>, target: &T) -> bool {
    let partition = shared.random_partition();
    if !shared.take(&[partition]) {
        return false;
    }
    let row = shared.random_row(partition);
    let first = shared.rng.next();
    let home = target.shard_of(first).await;
    let mut second = shared.rng.next();
    for _ in 0..16 {
        if target.shard_of(second).await != home {
            shared.count("two_connections.two_shards");
            break;
        }
        second = shared.rng.next();
    }
    let insert = |value| Change::Insert { row, a: value, b: None, ttl: None };
    let later = match shared.rng.below(3) {
        0 => Change::DeleteRow { row },
        1 => Change::Set { row, column: Column::A, value: Some(shared.value()), ttl: None },
        _ => insert(shared.value()),
    };
    let mut answered = true;
    for (connection, change) in [(first, insert(shared.value())), (second, later)] {
        let write = Write { changes: vec![(partition, change)] };
        answered = answered && send(env, shared, target, connection, &write).await;
    }
    let range = Range { from: Some((row, true)), to: Some((row, true)) };
    let query = Query { partition, range, reversed: false, page: None };
    let read = read_and_check(env, shared, target, &query).await.is_some();
    shared.free(&[partition]);
    answered && read
}

/// Empties a table, while nobody writes to it. False if that was not possible.
async fn truncate<T: Target>(env: &Env, shared: &Rc<Shared>, target: &T) -> bool {
    let table = shared.rng.below(u64::from(TABLES)) as u8;
    if shared.unknown.get() > 0 || !shared.truncating.borrow_mut().insert(table) {
        return false;
    }
    while shared.busy.borrow().iter().any(|partition| partition.table == table) {
        env.sleep(Duration::from_micros(200)).await;
    }
    if shared.unknown.get() > 0 {
        shared.truncating.borrow_mut().remove(&table);
        return false;
    }
    let partitions = shared.history.borrow().partitions().into_iter();
    let partitions: Vec<_> = partitions.filter(|partition| partition.table == table).collect();
    let changes = partitions.iter().map(|p| (*p, Change::DeletePartition)).collect();
    let id = shared.history.borrow_mut().begin(Write { changes }, shared.node_second());
    shared.count("ask.truncate");
    let outcome = env.timeout(PATIENCE, target.truncate(shared.rng.next(), table)).await;
    let answered = match outcome {
        Ok(outcome) => note_outcome(env, shared, &[id], &outcome),
        Err(_) => {
            shared.fail(format!("TRUNCATE t{table} takes for ever"));
            false
        }
    };
    for partition in partitions.iter().filter(|_| answered) {
        read_and_check(env, shared, target, &Query::all(*partition)).await;
    }
    shared.truncating.borrow_mut().remove(&table);
    answered
}

/// A write in parts that happen each as a whole.
fn parts(write: &Write) -> Vec<Write> {
    match write.is_atomic() {
        true => vec![write.clone()],
        false => by_key(write),
    }
}

/// A write in parts, one for each key.
fn by_key(write: &Write) -> Vec<Write> {
    let keys: BTreeSet<i32> = write.changes.iter().map(|(partition, _)| partition.key).collect();
    let of = |key: i32| write.changes.iter().filter(move |(p, _)| p.key == key).cloned().collect();
    keys.into_iter().map(|key| Write { changes: of(key) }).collect()
}

/// True if there was an answer.
fn note_outcome(env: &Env, shared: &Shared, ids: &[WriteId], outcome: &Result<(), Failed>) -> bool {
    let mut history = shared.history.borrow_mut();
    match outcome {
        Ok(()) => ids.iter().for_each(|id| history.acknowledged(*id, env.now())),
        Err(Failed::Refused(_)) => ids.iter().for_each(|id| history.refused(*id)),
        Err(Failed::Unknown(_)) => shared.unknown.set(shared.unknown.get() + 1),
        Err(error @ Failed::Wrong(_)) => shared.fail(format!("write: {error}")),
    }
    outcome.is_ok()
}

/// Takes partitions that nobody writes to, and makes up what to do to them.
fn choose_write(shared: &Shared, batches: bool) -> Option<(Vec<Partition>, Write)> {
    let rng = &shared.rng;
    let first = shared.random_partition();
    let mut partitions = vec![first];
    if rng.one_in(6) {
        // both tables, one key: one mutation
        partitions.push(Partition { table: 1 - first.table, ..first });
    } else if batches && rng.one_in(3) {
        let table = rng.one_in(2).then_some(0);
        let more = (0..rng.between(1, 3)).map(|_| shared.random_partition());
        partitions.extend(more);
        partitions.iter_mut().for_each(|p| p.table = table.unwrap_or(p.table));
    }
    partitions.sort();
    partitions.dedup();
    if !shared.take(&partitions) {
        return None;
    }
    let many = partitions.len() > 1 || rng.one_in(5);
    let mut changes = Vec::new();
    for partition in &partitions {
        if many {
            changes.extend(batch(shared, *partition).into_iter().map(|c| (*partition, c)));
        } else {
            changes.push((*partition, change(shared, *partition)));
        }
    }
    Some((partitions, Write { changes }))
}

/// Changes of different rows.
fn batch(shared: &Shared, partition: Partition) -> Vec<Change> {
    let rng = &shared.rng;
    let most = if partition.key == 0 { 20 } else { 5 };
    let rows: BTreeSet<i32> =
        (0..rng.between(1, most)).map(|_| shared.random_row(partition)).collect();
    let mut changes: Vec<Change> = rows.into_iter().map(|row| row_change(shared, row)).collect();
    if rng.one_in(3) {
        changes.push(Change::Static { value: Some(shared.value()) });
    }
    changes
}

fn random_ttl(shared: &Shared) -> Option<u32> {
    shared.rng.one_in(4).then(|| shared.rng.between(1, 30) as u32)
}

fn row_change(shared: &Shared, row: i32) -> Change {
    let rng = &shared.rng;
    let ttl = random_ttl(shared);
    match rng.below(8) {
        0..5 => {
            let b = rng.one_in(2).then(|| shared.value());
            Change::Insert { row, a: shared.value(), b, ttl }
        }
        5 | 6 => {
            let column = if rng.one_in(2) { Column::A } else { Column::B };
            let value = (!rng.one_in(3)).then(|| shared.value());
            Change::Set { row, column, value, ttl: ttl.filter(|_| value.is_some()) }
        }
        _ => Change::DeleteRow { row },
    }
}

fn change(shared: &Shared, partition: Partition) -> Change {
    let rng = &shared.rng;
    match rng.below(32) {
        0 | 1 => Change::DeleteRange { range: shared.random_range(partition) },
        2 if partition.key != 0 || rng.one_in(4) => Change::DeletePartition,
        3 | 4 => Change::Static { value: (!rng.one_in(3)).then(|| shared.value()) },
        _ => row_change(shared, shared.random_row(partition)),
    }
}
