//! What the clients do with counters, among what else they do.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use env::{Class, Env, Instant, Task};
use protocol::BatchKind;
use protocol::client::{Answer, BatchItem, BatchRequest, Parameters};

use super::history::{Counts, Deleted, History, Place, Unit};
use super::statement::{counts, of_addition, of_deletion, of_read, table};
use crate::connection::Connection;
use crate::cql_node::CqlNode;
use crate::failed::Failed;
use crate::history::WriteId;
use crate::operation::{Column, Partition, TABLES};
use crate::statement::Statement;
use crate::tables::KEYSPACE;
use crate::workload::{PATIENCE, Shared};

/// Partition keys of each table, and rows of each partition: few, so that clients meet.
const KEYS: u64 = 2;
const ROWS: u64 = 4;
/// Requests that a client has under way at once.
const BURST: u64 = 4;
/// Counters that a batch adds to.
const BATCH: u64 = 4;
/// How often a client looks whether others are done.
const LOOK: Duration = Duration::from_micros(200);

/// What the clients know of the counters.
#[derive(Default)]
pub struct Counters {
    history: RefCell<History>,
    /// How many requests that add are under way in which partition.
    adding: RefCell<BTreeMap<Partition, usize>>,
    /// Partitions in which something is deleted, or may be any time until the node ends: nobody
    /// adds.
    deleting: RefCell<BTreeSet<Partition>>,
    /// Partitions in which something may be added any time until the node ends: nobody deletes.
    doubtful: RefCell<BTreeSet<Partition>>,
}

impl Counters {
    /// The node is gone, and the clients. What was acknowledged before `safe` must be there. How
    /// many writes are in doubt?
    pub fn ended(&self, safe: Instant) -> usize {
        self.adding.borrow_mut().clear();
        self.deleting.borrow_mut().clear();
        self.doubtful.borrow_mut().clear();
        self.history.borrow_mut().crashed(safe)
    }

    /// Reads all of them while nothing else is asked for.
    ///
    /// # Errors
    /// If they are not what they may be.
    pub async fn verify(&self, shared: &Shared, site: &CqlNode) -> Result<(), String> {
        let partitions = self.history.borrow().partitions();
        let mut reads = Vec::new();
        for partition in partitions {
            let read = ask(shared, site, partition, None).await;
            reads.push((partition, read.map_err(|error| format!("{partition:?}: {error}"))?));
        }
        self.history.borrow_mut().settle(&reads)
    }

    fn is_free(&self, partition: Partition) -> bool {
        !self.deleting.borrow().contains(&partition)
    }

    /// Takes partitions to delete in them; false if that is not possible while the node lives.
    fn take(&self, partitions: &[Partition]) -> bool {
        let taken = |it: &Partition| !self.is_free(*it) || self.doubtful.borrow().contains(it);
        if partitions.iter().any(taken) {
            return false;
        }
        self.deleting.borrow_mut().extend(partitions);
        true
    }

    fn free(&self, partitions: &[Partition]) {
        self.deleting.borrow_mut().retain(|it| !partitions.contains(it));
    }

    /// Notes that a request which adds to these partitions begins; does it meet another?
    fn begins(&self, partitions: &BTreeSet<Partition>) -> bool {
        let mut adding = self.adding.borrow_mut();
        let mut meets = false;
        for partition in partitions {
            let others = adding.entry(*partition).or_default();
            meets |= *others > 0;
            *others += 1;
        }
        meets
    }

    fn ends(&self, partitions: &BTreeSet<Partition>) {
        let mut adding = self.adding.borrow_mut();
        for partition in partitions {
            if let Some(others) = adding.get_mut(partition) {
                *others = others.saturating_sub(1);
            }
        }
    }

    fn is_added_to(&self, partitions: &[Partition]) -> bool {
        let adding = self.adding.borrow();
        partitions.iter().any(|partition| adding.get(partition).is_some_and(|others| *others > 0))
    }
}

/// One operation; false if there was no answer.
pub async fn operate(env: &Env, shared: &Rc<Shared>, site: &Rc<CqlNode>) -> bool {
    match shared.rng.below(24) {
        0 => maintain(env, shared, site).await,
        1..4 => delete(env, shared, site).await,
        4..8 => {
            let (partition, row) = (partition(shared), row(shared));
            let row = shared.rng.one_in(2).then_some(row);
            read(env, shared, site, partition, row).await
        }
        _ => add_at_once(env, shared, site).await,
    }
}

fn partition(shared: &Shared) -> Partition {
    let table = shared.rng.below(u64::from(TABLES)) as u8;
    Partition { table, key: shared.rng.below(KEYS) as i32 }
}

fn row(shared: &Shared) -> i32 {
    shared.rng.below(ROWS) as i32
}

fn place(shared: &Shared, partition: Partition) -> Place {
    let column = if shared.rng.one_in(2) { Column::A } else { Column::B };
    let unit = match shared.rng.one_in(6) {
        true => Unit::Static,
        false => Unit::Cell(row(shared), column),
    };
    (partition, unit)
}

/// Several requests at once, over connections to any shard.
async fn add_at_once(env: &Env, shared: &Rc<Shared>, site: &Rc<CqlNode>) -> bool {
    let home = partition(shared);
    let add = |_| {
        let places = choose(shared, home)?;
        let task = add(env.clone(), Rc::clone(shared), Rc::clone(site), places);
        Some(env.spawn_task(Class::Statement, task))
    };
    let tasks: Vec<Task<bool>> = (0..shared.rng.between(1, BURST)).filter_map(add).collect();
    let mut answered = false;
    for task in tasks {
        answered |= task.await;
    }
    answered
}

/// The counters that a request adds to, and whether up or down; most of them of one partition.
fn choose(shared: &Shared, home: Partition) -> Option<Vec<(Place, bool)>> {
    let rng = &shared.rng;
    let count = if rng.one_in(3) { rng.between(2, BATCH) } else { 1 };
    let far = rng.one_in(3);
    let places: Vec<(Place, bool)> = (0..count)
        .map(|_| {
            let partition = if far && rng.one_in(2) { partition(shared) } else { home };
            (place(shared, partition), !rng.one_in(3))
        })
        .collect();
    let history = shared.counters.history.borrow();
    let is_open = |(place, _): &(Place, bool)| {
        shared.counters.is_free(place.0) && history.takes(*place, count as u32)
    };
    places.iter().all(is_open).then_some(places)
}

/// A request that adds to counters: one write for each key.
async fn add(env: Env, shared: Rc<Shared>, site: Rc<CqlNode>, places: Vec<(Place, bool)>) -> bool {
    let counters = &shared.counters;
    let partitions: BTreeSet<Partition> = places.iter().map(|(place, _)| place.0).collect();
    // another client may have begun to delete since they were chosen
    if partitions.iter().any(|partition| !counters.is_free(*partition)) {
        return false;
    }
    let mut by_key: BTreeMap<i32, Vec<(Place, bool)>> = BTreeMap::new();
    places.iter().for_each(|it| by_key.entry(it.0.0.key).or_default().push(*it));
    shared.count(match (places.len(), by_key.len()) {
        (1, _) => "counter.add",
        (_, 1) => "counter.batch",
        _ => "counter.batch_of_keys",
    });
    if counters.begins(&partitions) {
        shared.count("counter.contended");
    }
    let (mut ids, mut statements): (Vec<WriteId>, Vec<Statement>) = (Vec::new(), Vec::new());
    for part in by_key.into_values() {
        let (id, deltas) = counters.history.borrow_mut().add(&part);
        ids.push(id);
        let both = part.iter().zip(deltas);
        statements.extend(both.map(|((place, _), delta)| of_addition(*place, delta)));
    }
    let outcome = env.timeout(PATIENCE, send(&shared, &site, statements)).await;
    let answered = match outcome {
        Ok(outcome) => {
            if matches!(outcome, Err(Failed::Unknown(_))) {
                counters.doubtful.borrow_mut().extend(&partitions);
            }
            note_outcome(&env, &shared, &ids, &outcome)
        }
        Err(_) => {
            shared.fail(format!("adding to {places:?} takes for ever"));
            false
        }
    };
    counters.ends(&partitions);
    if let Some(((partition, unit), _)) = places.first().filter(|_| shared.rng.one_in(2)) {
        let row = match unit {
            Unit::Static => None,
            Unit::Cell(row, _) => Some(*row),
        };
        read(&env, &shared, &site, *partition, row).await;
    }
    answered
}

/// Sends one statement, or a batch of counters.
async fn send(
    shared: &Shared,
    site: &CqlNode,
    mut statements: Vec<Statement>,
) -> Result<(), Failed> {
    let connection = shared.rng.next();
    let run = async |open: &mut Connection| {
        if let [Statement { text, values }] = &mut statements[..] {
            let values = std::mem::take(values);
            let parameters = Parameters { values, ..Parameters::default() };
            return open.run(text, &parameters, connection & (1 << 40) != 0).await;
        }
        let items = statements.into_iter().map(|it| (BatchItem::Text(it.text), it.values));
        let (kind, parameters) = (BatchKind::Counter, Parameters::default());
        open.batch(&BatchRequest { kind, items: items.collect(), parameters }).await
    };
    match site.on(connection, run).await? {
        Answer::Void => Ok(()),
        other => Err(Failed::Wrong(format!("a write of counters gave {other:?}"))),
    }
}

fn note_outcome(env: &Env, shared: &Shared, ids: &[WriteId], outcome: &Result<(), Failed>) -> bool {
    let mut history = shared.counters.history.borrow_mut();
    match outcome {
        Ok(()) => ids.iter().for_each(|id| history.acknowledged(*id, env.now())),
        Err(Failed::Refused(_)) => ids.iter().for_each(|id| history.refused(*id)),
        Err(Failed::Unknown(_)) => shared.unknown.set(shared.unknown.get() + 1),
        Err(error @ Failed::Wrong(_)) => shared.fail(format!("counters: {error}")),
    }
    outcome.is_ok()
}

async fn ask(
    shared: &Shared,
    site: &CqlNode,
    partition: Partition,
    row: Option<i32>,
) -> Result<Counts, Failed> {
    let Statement { text, values } = of_read(partition, row);
    let parameters = Parameters { values, ..Parameters::default() };
    let connection = shared.rng.next();
    let prepared = connection & (1 << 40) != 0;
    let run = async |open: &mut Connection| open.run(&text, &parameters, prepared).await;
    let answer = site.on(connection, run).await?;
    let found = match &answer {
        Answer::Rows(rows) => counts(row, rows),
        _ => None,
    };
    found.ok_or_else(|| Failed::Wrong(format!("{text} gave {answer:?}")))
}

async fn read(
    env: &Env,
    shared: &Shared,
    site: &CqlNode,
    partition: Partition,
    row: Option<i32>,
) -> bool {
    let began = env.now();
    match env.timeout(PATIENCE, ask(shared, site, partition, row)).await {
        Ok(Ok(counts)) => {
            shared.count("counter.read");
            counts.values.values().for_each(|value| shared.note(*value as u64));
            let mut history = shared.counters.history.borrow_mut();
            if let Err(violation) = history.check(partition, &counts, began, env.now()) {
                shared.fail(violation);
            }
            return true;
        }
        Ok(Err(error @ Failed::Wrong(_))) => shared.fail(format!("read of counters: {error}")),
        Ok(Err(_)) => {}
        Err(_) => shared.fail(format!("a read of counters of {partition:?} takes for ever")),
    }
    false
}

/// Deletes something while nobody adds to it. False if that was not possible.
async fn delete(env: &Env, shared: &Shared, site: &CqlNode) -> bool {
    let home = partition(shared);
    let what = match shared.rng.below(12) {
        0 => Deleted::Table(home.table),
        1 => Deleted::Counter(place(shared, home)),
        2..6 => Deleted::Partition(home),
        _ => Deleted::Row(home, row(shared)),
    };
    let partitions: Vec<Partition> = match what {
        Deleted::Table(table) => (0..KEYS as i32).map(|key| Partition { table, key }).collect(),
        _ => vec![home],
    };
    let counters = &shared.counters;
    if !counters.take(&partitions) {
        return false;
    }
    while counters.is_added_to(&partitions) {
        env.sleep(LOOK).await;
    }
    if partitions.iter().any(|partition| counters.doubtful.borrow().contains(partition)) {
        counters.free(&partitions);
        return false;
    }
    shared.count(match what {
        Deleted::Table(_) => "counter.truncate",
        _ => "counter.delete",
    });
    let id = counters.history.borrow_mut().delete(what);
    let answered = match env.timeout(PATIENCE, send(shared, site, vec![of_deletion(what)])).await {
        Ok(outcome) => {
            let answered = note_outcome(env, shared, &[id], &outcome);
            if !matches!(outcome, Err(Failed::Unknown(_))) {
                counters.free(&partitions);
            }
            answered
        }
        Err(_) => {
            shared.fail(format!("{what:?} takes for ever"));
            false
        }
    };
    for partition in partitions {
        read(env, shared, site, partition, None).await;
    }
    answered
}

async fn maintain(env: &Env, shared: &Shared, site: &CqlNode) -> bool {
    let table = table(partition(shared).table);
    let compact = shared.rng.one_in(3);
    match env.timeout(PATIENCE, site.maintain_table(KEYSPACE, &table, compact)).await {
        Ok(Ok(())) => return true,
        Ok(Err(Failed::Wrong(error))) => shared.fail(error),
        Ok(Err(_)) => {}
        Err(_) => shared.fail(format!("maintenance of {table} takes for ever")),
    }
    false
}
