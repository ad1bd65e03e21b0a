//! Rings of several nodes, by seed: statements on all of them at once, messages that are late or
//! lost, nodes that stop and start again. The nodes come to one schema, and it is that of all
//! statements together.

use std::collections::{BTreeMap, BTreeSet};

use cluster::schema_ring::{Agreement, Effect, Event, Pull, Said, Version};
use schema::change::{Action, ColumnSpec, CreateTable, TableAlteration};
use schema::{
    ChangeOptions, MergeError, PropertyValue, Release, Schema, SchemaChange, SchemaMutation,
    SchemaRows, SchemaState, TableId,
};
use types::{Address, CqlType};

const SECOND: u64 = 1_000;
/// How long statements come and messages get lost.
const UNREST: u64 = 180 * SECOND;
/// How long the ring has after that.
const QUIET: u64 = 300 * SECOND;
/// A question without an answer has failed after this.
const CALLBACK: u64 = 10 * SECOND;
const MESSAGING: u8 = 12;
const SEEDS: u64 = 60;

/// What is done wrong, to see that it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Rows of a peer are kept under a time of the receiver's own.
    Restamped,
    /// Nothing is done later: what fails or is lost is not tried again.
    NoTicks,
    /// A version is said at the start, and not after a merge.
    MergeIsNotSaid,
    /// What was merged is not durable.
    NotDurable,
    /// A row's deletion is not sent.
    NoTombstones,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn address(node: usize) -> Address {
    Address::new([127, 0, 0, node as u8 + 1], 7000)
}

enum Message {
    Push(Vec<SchemaMutation>),
    Ask(Pull, usize),
    Answer(Pull, Vec<SchemaMutation>),
    /// An answer that did not come.
    Late(Pull),
    /// News of what a node says of itself by gossip; that is what it says when they come.
    Said(usize),
    /// Gossip finds that a node came up or went down; it is as it is then.
    IsUp(usize),
}

struct Node {
    state: SchemaState,
    agreement: Agreement,
    says: Version,
    is_up: bool,
    /// By how much its clock is off, in microseconds.
    skew: i64,
}

struct World {
    random: Random,
    bug: Bug,
    now: u64,
    nodes: Vec<Node>,
    /// By time and number.
    messages: BTreeMap<(u64, u64), (usize, Message)>,
    number: u64,
    is_quiet: bool,
    ids: u8,
    /// All that was ever acknowledged.
    truth: SchemaRows,
    /// Tables of which only a part came together.
    halved: BTreeSet<(String, String)>,
    statements: usize,
    pulls: usize,
}

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Random(seed);
        let count = 3 + random.below(3) as usize;
        let mut world = Self {
            random,
            bug,
            now: 0,
            nodes: Vec::new(),
            messages: BTreeMap::new(),
            number: 0,
            is_quiet: false,
            ids: 0,
            truth: SchemaRows::new(),
            halved: BTreeSet::new(),
            statements: 0,
            pulls: 0,
        };
        for _ in 0..count {
            let skew = world.random.below(4_000_000) as i64 - 2_000_000;
            let state = SchemaState::new(SchemaRows::new(), [], Release::V5_0, 0).unwrap();
            let agreement = Agreement::new(0, Release::V5_0, MESSAGING);
            let says = state.schema().version();
            world.nodes.push(Node { state, agreement, says, is_up: true, skew });
        }
        for node in 0..count {
            world.start(node);
        }
        world
    }

    fn seconds(&self) -> i64 {
        (self.now / SECOND) as i64
    }

    /// A message takes its time, or is lost.
    fn send(&mut self, to: usize, message: Message) {
        let is_gossip = matches!(message, Message::Said(..) | Message::IsUp(..));
        if !self.is_quiet && !is_gossip && self.random.one_in(4) {
            return;
        }
        let most = if self.is_quiet { 20 } else { 3 * SECOND };
        let delay = 1 + self.random.below(most);
        self.send_in(delay, to, message);
    }

    fn send_in(&mut self, delay: u64, to: usize, message: Message) {
        self.number += 1;
        self.messages.insert((self.now + delay, self.number), (to, message));
    }

    fn others(&self, node: usize) -> Vec<usize> {
        (0..self.nodes.len()).filter(|other| *other != node).collect()
    }

    /// A node that starts has what is on its disk, and hears what the others say.
    fn start(&mut self, node: usize) {
        let release = Release::V5_0;
        let rows = self.nodes[node].state.rows().clone();
        self.nodes[node].state = SchemaState::new(rows, [], release, self.seconds()).unwrap();
        self.nodes[node].agreement = Agreement::new(self.now, release, MESSAGING);
        self.nodes[node].is_up = true;
        let version = self.nodes[node].state.schema().version();
        self.step(node, Event::Local(version));
        for other in self.others(node) {
            self.send(other, Message::IsUp(node));
            self.send(node, Message::Said(other));
            self.send(node, Message::IsUp(other));
        }
    }

    fn stop(&mut self, node: usize) {
        self.nodes[node].is_up = false;
        for other in self.others(node) {
            self.send(other, Message::IsUp(node));
        }
    }

    fn step(&mut self, node: usize, event: Event) {
        self.step_with(node, event, &[]);
    }

    fn step_with(&mut self, node: usize, event: Event, changed: &[SchemaMutation]) {
        for effect in self.nodes[node].agreement.step(self.now, event) {
            match effect {
                Effect::Announce(version) => {
                    self.nodes[node].says = version;
                    for other in self.others(node) {
                        self.send(other, Message::Said(node));
                    }
                }
                Effect::Push(to) => {
                    for other in self.others(node) {
                        if to.contains(&address(other)) {
                            let sent = self.sent(changed.to_vec());
                            self.send(other, Message::Push(sent));
                        }
                    }
                }
                Effect::Pull(pull) => {
                    self.pulls += 1;
                    let asked = (0..self.nodes.len()).find(|other| address(*other) == pull.node);
                    self.send(asked.unwrap(), Message::Ask(pull, node));
                    self.send_in(CALLBACK, node, Message::Late(pull));
                }
            }
        }
    }

    /// Mutations as they go out.
    fn sent(&self, mut mutations: Vec<SchemaMutation>) -> Vec<SchemaMutation> {
        if self.bug == Bug::NoTombstones {
            let partitions = mutations.iter_mut().flat_map(|m| m.updates.values_mut());
            for partition in partitions {
                partition.deletion = None;
                partition.rows.values_mut().for_each(|row| row.deletion = None);
            }
        }
        mutations
    }

    fn merge(&mut self, node: usize, mut mutations: Vec<SchemaMutation>) -> bool {
        if self.bug == Bug::Restamped {
            let cells = mutations.iter_mut().flat_map(|m| m.updates.values_mut());
            let cells = cells.flat_map(|p| p.rows.values_mut()).flat_map(|r| r.cells.values_mut());
            cells.for_each(|cell| cell.timestamp += 1 + node as i64);
        }
        let now = self.seconds();
        let before = self.nodes[node].state.clone();
        match self.nodes[node].state.merge(&mutations, now) {
            Ok(merged) => {
                if merged.mutations.is_empty() {
                    assert_eq!(before.rows(), self.nodes[node].state.rows());
                    return true;
                }
                self.check_model(node);
                let version = self.nodes[node].state.schema().version();
                if self.bug != Bug::MergeIsNotSaid {
                    self.step(node, Event::Local(version));
                }
                if self.bug == Bug::NotDurable && self.random.one_in(3) {
                    self.nodes[node].state = before;
                }
                true
            }
            Err(MergeError::Load(schema::LoadError::NoPartitionKey(keyspace, table))) => {
                assert_eq!(before.rows(), self.nodes[node].state.rows(), "refused, and changed");
                self.halved.insert((keyspace, table));
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The model that a merge leaves is that of a start on the same rows.
    fn check_model(&self, node: usize) {
        let state = &self.nodes[node].state;
        let rows = state.rows().clone();
        let loaded = SchemaState::new(rows, [], Release::V5_0, self.seconds()).unwrap();
        assert!(
            loaded.schema().keyspaces() == state.schema().keyspaces(),
            "a start would have another schema"
        );
    }

    fn deliver(&mut self, to: usize, message: Message) {
        if !self.nodes[to].is_up {
            return;
        }
        match message {
            Message::Push(mutations) => drop(self.merge(to, mutations)),
            Message::Ask(pull, from) => {
                let answer = self.sent(self.nodes[to].state.mutations());
                self.send(from, Message::Answer(pull, answer));
            }
            Message::Answer(pull, mutations) => {
                let is_wanted = self.nodes[to].agreement.wants(&pull);
                let is_done = !is_wanted || self.merge(to, mutations);
                self.step(to, Event::Ended { pull, is_done });
            }
            Message::Late(pull) => {
                self.step(to, Event::Ended { pull, is_done: false });
            }
            Message::Said(node) => {
                let said = Said {
                    schema: Some(self.nodes[node].says),
                    release: "5.0.9".to_owned(),
                    messaging: Some(MESSAGING),
                    is_member: true,
                };
                self.step(to, Event::Heard(address(node), said));
            }
            Message::IsUp(node) if self.nodes[node].is_up => {
                self.step(to, Event::Up(address(node)));
            }
            Message::IsUp(node) => self.step(to, Event::Down(address(node))),
        }
    }

    fn action(&mut self) -> Action {
        let name = |random: &mut Random, of: &str| format!("{of}{}", random.below(3));
        let table = name(&mut self.random, "t");
        let column = name(&mut self.random, "c");
        let spec = |name: String, ty| ColumnSpec { name, ty, is_static: false, mask: None };
        match self.random.below(10) {
            0 => Action::CreateKeyspace { if_not_exists: false, properties: replication() },
            1 => Action::DropKeyspace { if_exists: false },
            2..=4 => Action::CreateTable(CreateTable {
                table,
                columns: vec![spec("k".to_owned(), CqlType::Int), spec(column, CqlType::Text)],
                partition_key: vec!["k".to_owned()],
                ..CreateTable::default()
            }),
            5 | 6 => Action::AlterTable {
                table,
                if_exists: false,
                alteration: TableAlteration::AddColumns {
                    if_not_exists: false,
                    columns: vec![spec(column, CqlType::Text)],
                },
            },
            7 => Action::AlterTable {
                table,
                if_exists: false,
                alteration: TableAlteration::DropColumns {
                    if_exists: false,
                    columns: vec![column],
                    timestamp: None,
                },
            },
            8 => Action::DropTable { table, if_exists: false },
            _ => Action::CreateType {
                name: name(&mut self.random, "u"),
                fields: vec![(column, CqlType::Int)],
                if_not_exists: false,
            },
        }
    }

    fn statement(&mut self, node: usize, change: &SchemaChange) {
        let newest = self.nodes[node].state.rows().newest(&change.keyspace).unwrap_or(0);
        let clock = 1_700_000_000_000_000 + self.now as i64 * 1000 + self.nodes[node].skew;
        let options = ChangeOptions { now: self.seconds(), ..ChangeOptions::default() };
        self.ids = self.ids.wrapping_add(1);
        let id = TableId([self.ids; 16]);
        let state = &mut self.nodes[node].state;
        let Ok(applied) = state.change(change, clock.max(newest + 1), id, &options) else { return };
        if applied.mutations.is_empty() {
            return;
        }
        self.statements += 1;
        for mutation in &applied.mutations {
            self.truth.apply(mutation);
        }
        let version = self.nodes[node].state.schema().version();
        self.step(node, Event::Local(version));
        self.step_with(node, Event::Changed, &applied.mutations);
    }

    fn run_until(&mut self, end: u64) {
        let mut second = self.now / SECOND;
        while self.now < end {
            let next = self.messages.first_key_value().map_or(end, |((at, _), _)| *at);
            let tick = (second + 1) * SECOND;
            if next <= tick && next < end {
                let ((at, _), (to, message)) = self.messages.pop_first().unwrap();
                self.now = at;
                self.deliver(to, message);
                continue;
            }
            self.now = tick;
            second += 1;
            for node in 0..self.nodes.len() {
                if self.nodes[node].is_up && self.bug != Bug::NoTicks {
                    self.step(node, Event::Tick);
                }
            }
            if !self.is_quiet {
                self.unrest();
            }
        }
    }

    fn unrest(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_up && self.random.one_in(4) {
                let keyspace = format!("ks{}", self.random.below(2));
                let action = self.action();
                self.statement(node, &SchemaChange { keyspace, action });
            }
            match self.nodes[node].is_up {
                true if self.random.one_in(60) => self.stop(node),
                false if self.random.one_in(10) => self.start(node),
                _ => {}
            }
        }
    }

    fn is_agreed(&self) -> bool {
        let version = |node: &Node| node.state.schema().version();
        self.nodes.iter().all(|node| version(node) == version(&self.nodes[0]))
    }

    /// What an operator does where half of a table was dropped while the other half was altered:
    /// drops it where it is.
    fn drop_halves(&mut self) {
        for (keyspace, table) in std::mem::take(&mut self.halved) {
            for node in 0..self.nodes.len() {
                let action = Action::DropTable { table: table.clone(), if_exists: true };
                self.statement(node, &SchemaChange { keyspace: keyspace.clone(), action });
            }
        }
    }

    /// All statements, then peace. Why the nodes do not agree, if so.
    fn run(&mut self) -> Result<(), String> {
        self.run_until(UNREST);
        self.is_quiet = true;
        for node in 0..self.nodes.len() {
            if !self.nodes[node].is_up {
                self.start(node);
            }
        }
        self.run_until(self.now + QUIET);
        // each time another table may come to light
        for _ in 0..8 {
            if self.is_agreed() || self.halved.is_empty() {
                break;
            }
            self.drop_halves();
            self.run_until(self.now + QUIET);
        }
        if !self.is_agreed() {
            return Err("the nodes do not agree".to_owned());
        }
        let shared = self.truth.version(Release::V5_0, self.seconds());
        let first = &self.nodes[0].state;
        if first.schema().version() != shared {
            return Err("the schema is not that of all statements".to_owned());
        }
        for node in &self.nodes {
            if node.state.schema().keyspaces() != first.schema().keyspaces() {
                return Err("one version, two schemas".to_owned());
            }
            if !node.agreement.is_ready() {
                return Err("all agree, and one waits".to_owned());
            }
        }
        Ok(())
    }
}

fn replication() -> Vec<(String, PropertyValue)> {
    let options = [("class", "SimpleStrategy"), ("replication_factor", "1")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    vec![("replication".to_owned(), PropertyValue::Map(options.to_vec()))]
}

#[test]
fn rings_come_to_one_schema() {
    let (mut statements, mut pulls, mut tables) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Bug::None);
        world.run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        statements += world.statements;
        pulls += world.pulls;
        let keyspaces = world.nodes[0].state.schema().keyspaces().values();
        tables += keyspaces.map(|keyspace| keyspace.tables.len()).sum::<usize>();
    }
    // something happened
    assert!(statements > SEEDS as usize * 40, "{statements}");
    assert!(pulls > SEEDS as usize * 20, "{pulls}");
    assert!(tables > SEEDS as usize, "{tables}");
}

#[test]
fn planted_bugs_are_found() {
    let bugs =
        [Bug::Restamped, Bug::NoTicks, Bug::MergeIsNotSaid, Bug::NotDurable, Bug::NoTombstones];
    for bug in bugs {
        let is_found = |seed| {
            let run = std::panic::AssertUnwindSafe(|| World::new(seed, bug).run().is_err());
            std::panic::catch_unwind(run).unwrap_or(true)
        };
        assert!((0..SEEDS).any(is_found), "{bug:?} is not found");
    }
}

#[test]
fn the_schema_of_no_keyspaces_is_empty() {
    let state = SchemaState::new(SchemaRows::new(), [], Release::V5_0, 0).unwrap();
    assert_eq!(state.schema().version(), Schema::empty_version());
}
