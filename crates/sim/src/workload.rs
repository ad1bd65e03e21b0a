//! What the clients of a world do: a mix of writes and reads, each checked against the history.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use env::{Env, Instant, Rng};

use crate::history::{History, WriteId};
use crate::operation::{Answer, Change, Column, Partition, Query, Range, TABLES, Value, Write};

/// Partition keys of each table.
const KEYS: u64 = 8;
/// Rows of the first partition of each table, which is the wide one, and of the others.
const WIDE_ROWS: u64 = 300;
const ROWS: u64 = 16;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failed {
    /// The node said that nothing happened.
    #[error("refused: {0}")]
    Refused(String),
    /// Nobody knows whether anything happened.
    #[error("unknown: {0}")]
    Unknown(String),
    /// The node gave something that it must never give.
    #[error("wrong: {0}")]
    Wrong(String),
}

/// A way to a node. A connection ends at some shard; which one, the number decides.
pub trait Target {
    /// Writes; done when it returns. `now` is the second that TTLs count from; where the node takes its own clock
    /// for that, it calls `written_at` with it.
    async fn write(
        &self,
        connection: u64,
        write: &Write,
        now: i64,
        written_at: Box<dyn FnOnce(i64)>,
    ) -> Result<(), Failed>;

    /// Reads one partition, at the second `now` or that of the node's own clock.
    async fn read(&self, connection: u64, query: &Query, now: i64) -> Result<Answer, Failed>;

    /// Asks for something that an operator may ask for at any time.
    async fn maintain(&self, what: u64) -> Result<(), Failed>;

    /// Does it take writes of several partition keys? Those of one key are one write, others may come in part.
    fn takes_batches(&self) -> bool;
}

/// What the clients of a world share.
pub struct Shared {
    /// Dice.
    pub rng: Rng,
    /// What was written.
    pub history: RefCell<History>,
    /// A clock that never jumps.
    clock: Env,
    /// By how much the node's clock has jumped, in microseconds.
    jumped: Cell<i64>,
    busy: RefCell<BTreeSet<Partition>>,
    next_value: Cell<u64>,
    /// Operations ended.
    pub done: Cell<u64>,
    /// Writes whose outcome a live node could not tell.
    pub unknown: Cell<u64>,
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
            clock,
            jumped: Cell::new(0),
            busy: RefCell::default(),
            next_value: Cell::new(1),
            done: Cell::new(0),
            unknown: Cell::new(0),
            digest: Cell::new(0),
            wrong: RefCell::default(),
        })
    }

    /// What the node's clock shows, in seconds since 1970.
    pub fn node_second(&self) -> i64 {
        (self.clock.unix_micros() + self.jumped.get()).div_euclid(1_000_000)
    }

    /// The node's clock jumps.
    pub fn jump(&self, micros: i64) {
        self.jumped.set(self.jumped.get() + micros);
    }

    /// All clients are gone, in the middle of what they did.
    pub fn clients_died(&self) {
        self.busy.borrow_mut().clear();
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

/// One client: operations one after the other until there were enough of all clients.
pub async fn client<T: Target>(env: Env, shared: Rc<Shared>, target: Rc<T>, until: u64) {
    while shared.done.get() < until && shared.wrong.borrow().is_none() {
        let pause = Duration::from_micros(shared.rng.below(2000));
        env.sleep(pause).await;
        match shared.rng.below(100) {
            0 => maintain(&env, &shared, &*target).await,
            1..50 => write(&env, &shared, &*target).await,
            _ => read(&env, &shared, &*target).await,
        }
        shared.done.set(shared.done.get() + 1);
    }
}

async fn maintain<T: Target>(env: &Env, shared: &Shared, target: &T) {
    let what = shared.rng.next();
    match env.timeout(PATIENCE, target.maintain(what)).await {
        Ok(Ok(()) | Err(Failed::Refused(_) | Failed::Unknown(_))) => {}
        Ok(Err(error)) => shared.fail(format!("maintenance: {error}")),
        Err(_) => {
            shared.fail(format!("maintenance {} of {} takes for ever", (what >> 8) % 3, what % 2))
        }
    }
}

async fn read<T: Target>(env: &Env, shared: &Shared, target: &T) {
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
    let began = env.now();
    let connection = shared.rng.next();
    match env.timeout(PATIENCE, target.read(connection, &query, shared.node_second())).await {
        Ok(Ok(answer)) => shared.check(&query, &answer, began),
        Ok(Err(error @ Failed::Wrong(_))) => shared.fail(format!("read: {error}")),
        Ok(Err(_)) => {}
        Err(_) => shared.fail(format!("{query:?} takes for ever")),
    }
}

async fn write<T: Target>(env: &Env, shared: &Rc<Shared>, target: &T) {
    let Some((partitions, write)) = choose_write(shared, target.takes_batches()) else { return };
    let now = shared.node_second();
    let ids: Vec<WriteId> = {
        let mut history = shared.history.borrow_mut();
        by_key(&write).into_iter().map(|part| history.begin(part, now)).collect()
    };
    let connection = shared.rng.next();
    let (theirs, known) = (Rc::clone(shared), ids.clone());
    let written_at = Box::new(move |now: i64| {
        let mut history = theirs.history.borrow_mut();
        known.iter().for_each(|id| history.written_at(*id, now));
    });
    let outcome = env.timeout(PATIENCE, target.write(connection, &write, now, written_at)).await;
    match outcome {
        Ok(outcome) => note_outcome(env, shared, &ids, &outcome),
        Err(_) => shared.fail(format!("{write:?} takes for ever")),
    }
    if shared.rng.one_in(2) {
        // at once, over another connection: what is acknowledged is visible everywhere
        for partition in &partitions {
            read_back(env, shared, target, *partition).await;
        }
    }
    let mut busy = shared.busy.borrow_mut();
    busy.retain(|partition| !partitions.contains(partition));
}

/// A write in parts, one for each key: what is atomic.
fn by_key(write: &Write) -> Vec<Write> {
    let keys: BTreeSet<i32> = write.changes.iter().map(|(partition, _)| partition.key).collect();
    let of = |key: i32| write.changes.iter().filter(move |(p, _)| p.key == key).cloned().collect();
    keys.into_iter().map(|key| Write { changes: of(key) }).collect()
}

fn note_outcome(env: &Env, shared: &Shared, ids: &[WriteId], outcome: &Result<(), Failed>) {
    let mut history = shared.history.borrow_mut();
    match outcome {
        Ok(()) => ids.iter().for_each(|id| history.acknowledged(*id, env.now())),
        Err(Failed::Refused(_)) => ids.iter().for_each(|id| history.refused(*id)),
        Err(Failed::Unknown(_)) => shared.unknown.set(shared.unknown.get() + 1),
        Err(error @ Failed::Wrong(_)) => shared.fail(format!("write: {error}")),
    }
}

async fn read_back<T: Target>(env: &Env, shared: &Shared, target: &T, partition: Partition) {
    let query = Query::all(partition);
    let began = env.now();
    let connection = shared.rng.next();
    match env.timeout(PATIENCE, target.read(connection, &query, shared.node_second())).await {
        Ok(Ok(answer)) => shared.check(&query, &answer, began),
        Ok(Err(error @ Failed::Wrong(_))) => shared.fail(format!("read: {error}")),
        Ok(Err(_)) => {}
        Err(_) => shared.fail(format!("{query:?} takes for ever")),
    }
}

/// Takes partitions that nobody writes to, and makes up what to do to them.
fn choose_write(shared: &Shared, batches: bool) -> Option<(Vec<Partition>, Write)> {
    let rng = &shared.rng;
    let first = shared.random_partition();
    let mut partitions = vec![first];
    if rng.one_in(6) {
        // both tables, one key: one mutation
        partitions.push(Partition { table: 1 - first.table, ..first });
    } else if batches && rng.one_in(4) {
        partitions.extend((0..rng.between(1, 3)).map(|_| shared.random_partition()));
    }
    partitions.sort();
    partitions.dedup();
    let mut busy = shared.busy.borrow_mut();
    if partitions.iter().any(|partition| busy.contains(partition)) {
        return None;
    }
    busy.extend(partitions.iter().copied());
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
