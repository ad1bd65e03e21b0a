//! What the clients of these worlds do, and what they remember of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use env::{Env, Instant, Rng};
use protocol::client::{Answer, BatchItem, BatchRequest, OwnedRows, Parameters};
use protocol::{BatchKind, Consistency};
use storage::commitlog::SyncMode;

use super::check::{Entry, linearizable};
use super::fresh::Fresh;
use super::model::{Condition, Effect, Operation, Outcome, Part, State, Value};
use super::statement::{KEYSPACE, Kind, definitions, of_part, of_read, outcome, seen};
use crate::connection::Connection;
use crate::cql_node::CqlNode;
use crate::failed::Failed;
use crate::plan::Plan;
use crate::world::Load;

/// Partitions of each kind.
const KEYS: u64 = 2;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// A list that is longer is deleted.
const LIST_MAX: usize = 8;

type Partition = (Kind, i32);

/// What the clients share.
pub struct Cas {
    rng: Rng,
    /// Counts what is asked and answered: the time of the histories.
    time: Cell<u64>,
    histories: RefCell<BTreeMap<Partition, Vec<Entry>>>,
    /// What somebody saw of a partition last.
    known: RefCell<BTreeMap<Partition, State>>,
    /// Partitions in which somebody read or wrote serially since the node started: what was left
    /// undone in the life before is done there, so that plain reads see it too.
    settled: RefCell<BTreeSet<Partition>>,
    next_number: Cell<u64>,
    done: Cell<u64>,
    wrong: RefCell<Option<String>>,
    counts: RefCell<BTreeMap<&'static str, u64>>,
    digest: Cell<u64>,
    fresh: Fresh,
    env: Env,
}

impl Cas {
    fn now(&self) -> u64 {
        self.time.set(self.time.get() + 1);
        self.time.get()
    }

    fn count(&self, name: &'static str) {
        *self.counts.borrow_mut().entry(name).or_default() += 1;
    }

    fn fail(&self, what: impl ToString) {
        self.wrong.borrow_mut().get_or_insert(what.to_string());
    }

    fn number(&self) -> u64 {
        self.next_number.set(self.next_number.get() + 1);
        self.next_number.get()
    }

    /// Notes that something is asked; gives its place in the history.
    fn ask(&self, partition: Partition, operation: &Operation) -> usize {
        let mut histories = self.histories.borrow_mut();
        let history = histories.entry(partition).or_default();
        let (operation, invoked) = (operation.clone(), self.now());
        history.push(Entry { operation, outcome: None, invoked, returned: u64::MAX });
        history.len() - 1
    }

    /// Notes what was answered.
    fn answer(&self, partition: Partition, at: usize, outcome: Outcome) {
        let note = (self.digest.get() ^ self.time.get()).wrapping_mul(0x0000_0100_0000_01b3);
        let fact = format!("{outcome:?}")
            .bytes()
            .fold(note, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        self.digest.set(fact);
        let now = self.now();
        let mut histories = self.histories.borrow_mut();
        if let Some(entry) = histories.get_mut(&partition).and_then(|all| all.get_mut(at)) {
            if let Outcome::Saw(state) = &outcome {
                self.known.borrow_mut().insert(partition, state.clone());
            }
            entry.outcome = Some(outcome);
            entry.returned = now;
        }
    }

    /// Forgets what was not even tried, or is not to be judged.
    fn forget(&self, partition: Partition, at: usize) {
        let mut histories = self.histories.borrow_mut();
        if let Some(entry) = histories.get_mut(&partition).and_then(|all| all.get_mut(at)) {
            // what can happen only before it was asked never happens
            entry.returned = 0;
            entry.outcome = None;
        }
    }

    fn partition(&self) -> Partition {
        let kind = Kind::ALL[self.rng.below(Kind::ALL.len() as u64) as usize];
        (kind, self.rng.below(KEYS) as i32)
    }

    /// A part of a change at a row that is thought to hold a value.
    fn part(&self, kind: Kind, row: usize, known: &Value) -> Part {
        let rng = &self.rng;
        let number = self.number();
        let long = known.as_ref().is_some_and(|list| list.len() > LIST_MAX);
        let condition = match (known, rng.below(10)) {
            (None, 0..7) => Condition::Missing,
            (None, 7) => Condition::Exists,
            (_, 0 | 1) => Condition::Exists,
            (_, 2) => Condition::Missing,
            _ => Condition::Is(known.clone()),
        };
        let new = Effect::Set(Some(vec![number]));
        let effect = match (&condition, kind, rng.below(8)) {
            (Condition::Missing, ..) => new,
            (Condition::Is(None), Kind::List, _) => new,
            _ if long => Effect::Set(None),
            (_, _, 0) => Effect::Set(None),
            (_, Kind::List, 1..5) => Effect::Append(number),
            (_, Kind::List, 5 | 6) => Effect::Prepend(number),
            _ => new,
        };
        Part { row, condition, effect }
    }

    fn change(&self, (kind, key): Partition) -> Vec<Part> {
        let known = self.known.borrow().get(&(kind, key)).cloned();
        let known = known.unwrap_or_else(|| vec![None; kind.rows()]);
        let rows: Vec<usize> = match kind {
            Kind::Pair if !self.rng.one_in(3) => vec![0, 1],
            Kind::Pair => vec![self.rng.below(2) as usize],
            _ => vec![0],
        };
        let value = |row: usize| known.get(row).cloned().unwrap_or_default();
        rows.into_iter().map(|row| self.part(kind, row, &value(row))).collect()
    }

    /// Asks for a change, or reads serially.
    async fn serial(&self, env: &Env, site: &CqlNode, partition: Partition, read: bool) -> bool {
        let operation = match read {
            true => Operation::Read,
            false => Operation::Change(self.change(partition)),
        };
        let at = self.ask(partition, &operation);
        let result = env.timeout(PATIENCE, self.run(site, partition, &operation, true)).await;
        let outcome = match result {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(Failed::Refused(_))) => {
                self.forget(partition, at);
                return false;
            }
            Ok(Err(Failed::Unknown(_))) => {
                self.count("cas.unknown");
                if read {
                    self.forget(partition, at);
                }
                return false;
            }
            Ok(Err(error)) => {
                self.fail(format!("{operation:?}: {error}"));
                return false;
            }
            Err(_) => {
                self.fail(format!("{operation:?} takes for ever"));
                return false;
            }
        };
        self.answer(partition, at, outcome);
        self.settled.borrow_mut().insert(partition);
        true
    }

    /// Reads what is there.
    async fn plain(&self, env: &Env, site: &CqlNode, partition: Partition) -> bool {
        let settled = self.settled.borrow().contains(&partition);
        let at = self.ask(partition, &Operation::Read);
        let run = self.run(site, partition, &Operation::Read, false);
        match env.timeout(PATIENCE, run).await {
            Ok(Ok(outcome)) if settled => {
                self.answer(partition, at, outcome);
                return true;
            }
            Ok(Ok(_) | Err(Failed::Refused(_) | Failed::Unknown(_))) => {}
            Ok(Err(error)) => self.fail(format!("a plain read: {error}")),
            Err(_) => self.fail("a plain read takes for ever"),
        }
        self.forget(partition, at);
        false
    }

    async fn run(
        &self,
        site: &CqlNode,
        (kind, key): Partition,
        operation: &Operation,
        serial: bool,
    ) -> Result<Outcome, Failed> {
        let connection = self.rng.next();
        let prepared = self.rng.one_in(2);
        let local = self.rng.one_in(4);
        let level = if local { Consistency::LocalSerial } else { Consistency::Serial };
        let mut parameters = Parameters::default();
        let wrong = |what: &Answer| Failed::Wrong(format!("{operation:?} gave {what:?}"));
        let rows = |answer: Answer| match answer {
            Answer::Rows(rows) => Ok(rows),
            other => Err(wrong(&other)),
        };
        let parse = |rows: &OwnedRows| match operation {
            Operation::Read => seen(kind, rows),
            Operation::Change(parts) => outcome(kind, parts, rows),
        };
        let answer = match operation {
            Operation::Read => {
                let statement = of_read(kind, key);
                parameters.values = statement.values;
                if serial {
                    parameters.consistency = level;
                }
                let run = async |open: &mut Connection| {
                    open.run(&statement.text, &parameters, prepared).await
                };
                site.on(connection, run).await?
            }
            Operation::Change(parts) => {
                parameters.serial_consistency = Some(level);
                let statements: Vec<_> =
                    parts.iter().map(|part| of_part(kind, key, part)).collect();
                let run = async |open: &mut Connection| {
                    if let [statement] = &statements[..] {
                        let values = statement.values.clone();
                        let parameters = Parameters { values, ..parameters };
                        return open.run(&statement.text, &parameters, prepared).await;
                    }
                    let items = statements.into_iter().map(|s| (BatchItem::Text(s.text), s.values));
                    let kind = if prepared { BatchKind::Logged } else { BatchKind::Unlogged };
                    let items = items.collect();
                    open.batch(&BatchRequest { kind, items, parameters }).await
                };
                site.on(connection, run).await?
            }
        };
        let answer = rows(answer)?;
        parse(&answer).ok_or_else(|| Failed::Wrong(format!("{operation:?} gave {answer:?}")))
    }

    async fn maintain(&self, env: &Env, site: &CqlNode) -> bool {
        let (keyspace, table) = match self.rng.below(3) {
            0 => (KEYSPACE, Kind::ALL[self.rng.below(3) as usize].table()),
            _ => ("system", "paxos"),
        };
        let compact = self.rng.one_in(3);
        match env.timeout(PATIENCE, site.maintain_table(keyspace, table, compact)).await {
            Ok(Ok(())) => return true,
            Ok(Err(Failed::Wrong(error))) => self.fail(error),
            Ok(Err(_)) => {}
            Err(_) => self.fail("maintenance takes for ever"),
        }
        false
    }
}

impl Load<CqlNode> for Cas {
    const OPERATIONS_MIN: u64 = 500;

    fn new(seed: u64, env: Env) -> Rc<Self> {
        Rc::new(Self {
            rng: Rng::new(seed ^ 0x6361_735f),
            time: Cell::new(0),
            histories: RefCell::default(),
            known: RefCell::default(),
            settled: RefCell::default(),
            next_number: Cell::new(0),
            done: Cell::new(0),
            wrong: RefCell::default(),
            counts: RefCell::default(),
            digest: Cell::new(0),
            fresh: Fresh::new(seed),
            env,
        })
    }

    /// Where an acknowledged write may be lost, nothing is linearizable.
    fn plan(seed: u64) -> Plan {
        let mut plan = Plan::new(seed);
        if matches!(plan.sync, SyncMode::Periodic { .. }) {
            plan.sync = SyncMode::Batch;
            plan.options.sync = SyncMode::Batch;
        }
        plan
    }

    async fn prepare(self: Rc<Self>, site: Rc<CqlNode>) -> Result<(), String> {
        for text in definitions().into_iter().chain(Fresh::definitions()) {
            let run =
                async |open: &mut Connection| open.run(&text, &Parameters::default(), false).await;
            site.on(0, run).await.map_err(|error| format!("{text}: {error}"))?;
        }
        Ok(())
    }

    async fn client(self: Rc<Self>, env: Env, site: Rc<CqlNode>, until: u64) {
        while self.done.get() < until && self.wrong.borrow().is_none() {
            env.sleep(Duration::from_micros(self.rng.below(2000))).await;
            let partition = self.partition();
            let answered = match self.rng.below(100) {
                0 | 1 => self.maintain(&env, &site).await,
                2..12 => self.fresh.write(&env, &site).await.unwrap_or_else(|wrong| {
                    self.fail(wrong);
                    false
                }),
                12 => match self.fresh.verify(&env, &site, false).await {
                    Ok(()) => true,
                    Err(wrong) => {
                        self.fail(wrong);
                        false
                    }
                },
                13..24 => self.plain(&env, &site, partition).await,
                24..44 => self.serial(&env, &site, partition, true).await,
                _ => self.serial(&env, &site, partition, false).await,
            };
            if answered {
                self.done.set(self.done.get() + 1);
            }
        }
    }

    /// Reads some of the partitions serially; in the others the clients' own statements come first.
    async fn verify(self: Rc<Self>, site: Rc<CqlNode>) -> Result<(), String> {
        let partitions: Vec<Partition> = self.histories.borrow().keys().copied().collect();
        for partition in partitions {
            if self.rng.one_in(2) {
                continue;
            }
            let at = self.ask(partition, &Operation::Read);
            let outcome = self.run(&site, partition, &Operation::Read, true).await;
            let outcome = outcome.map_err(|error| format!("a serial read: {error}"))?;
            self.answer(partition, at, outcome);
            self.settled.borrow_mut().insert(partition);
        }
        self.fresh.verify(&self.env, &site, true).await
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

    fn jump(&self, _: i64, jump: &mut dyn FnMut()) {
        jump();
    }

    /// What has no answer happened by now, or was proposed and is finished before anything else in
    /// its partition, or never happens.
    fn ended(&self, _: Instant) -> bool {
        let now = self.now();
        let mut in_doubt = false;
        for entry in self.histories.borrow_mut().values_mut().flatten() {
            if entry.outcome.is_none() && entry.returned == u64::MAX {
                entry.returned = now;
                in_doubt |= entry.operation != Operation::Read;
            }
        }
        self.settled.borrow_mut().clear();
        in_doubt
    }

    fn judge(&self) -> Result<(), String> {
        for ((kind, key), history) in &*self.histories.borrow() {
            let possible = |entry: &&Entry| {
                entry.outcome.is_some()
                    || (entry.returned > 0 && entry.operation != Operation::Read)
            };
            let entries: Vec<Entry> = history.iter().filter(possible).cloned().collect();
            linearizable(&entries, &vec![None; kind.rows()])
                .map_err(|violation| format!("{kind:?} {key}: {violation}"))?;
        }
        Ok(())
    }
}
