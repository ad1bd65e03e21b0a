//! A node of two tables, of which a model knows each version of each key: what is newest, and what
//! a repair has made of the SSTable that it is in.
//!
//! Each value names its key and its version, and files are not compressed: what is in an SSTable is
//! seen without reading it as the engine does.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Class, Env, Mesh};
use rows::{
    CellRef, Clustering, Deletion, Liveness, Mutation, RowBuilder, Unfiltered, UpdateBuilder,
};
use schema::{
    ColumnKind, CompactionParams, CompressionParams, Keyspace, Replication, Schema, Table, TableId,
    TableParams, TombstoneOption,
};
use sstable::descriptor::Component;
use storage::shards::{Job, Shards};
use storage::{
    Anticompaction, Engine, NodeStore, Options, Outcome, PartitionKey, RepairStatus, SSTable,
    Scrub, Slices, StorageError,
};
use types::{CqlType, Token, TokenRange, Uuid};

use crate::common::options;

const SHARDS: usize = 2;
const TABLES: u8 = 2;
const KEYS: u64 = 60;
const VALUE_BYTES: usize = 6000;
/// What a value begins with, before its key and its version: nothing else has it.
const MARK: [u8; 64] = [0xa7; 64];
/// The longest that anything waits for compactions.
const PATIENCE: Duration = Duration::from_secs(600);
/// A session that is cancelled, or that a crash ends, is none of these.
const SESSIONS_OF_STEPS: u128 = 100;

/// A strategy, with options.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub class: &'static str,
    pub options: &'static [(&'static str, &'static str)],
}

/// What is done to the node.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes and deletions, and a flush.
    Write(u8),
    Major(u8),
    UserDefined(u8, u8),
    Garbage(u8),
    Scrub(u8),
    /// Lets the first table be compacted by itself, or not, and waits a while.
    Auto(bool),
    /// Waits until compactions have nothing to do.
    Idle,
    Anticompact(u8, Vec<TokenRange>),
    /// One that is stopped after so many microseconds.
    Cancel(Vec<TokenRange>, u64),
    Release(u8, bool),
    Crash,
    /// In the middle of one, after so many microseconds.
    CrashIn(Vec<TokenRange>, u64),
}

/// A version of a key.
#[derive(Clone, Copy, Debug)]
struct Version {
    timestamp: i64,
    is_deletion: bool,
    status: RepairStatus,
    /// What is newer elsewhere may have made it needless.
    is_needless: bool,
}

/// By table and key, the newest last.
type Model = BTreeMap<(u8, i32), Vec<Version>>;

/// What a world showed.
#[derive(Debug, Default)]
pub struct Seen {
    pub wrong: Vec<String>,
    /// How often each of these happened.
    pub counts: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct Notes {
    next: Cell<usize>,
    wants_crash: Cell<bool>,
    is_done: Cell<bool>,
    /// A session of which a crash left what it left.
    left: Cell<Option<Uuid>>,
    sessions: Cell<u128>,
    model: RefCell<Model>,
    seen: RefCell<Seen>,
}

fn id(number: u8) -> TableId {
    TableId([number + 1; 16])
}

fn table(plan: Plan, number: u8) -> Arc<Table> {
    let class = format!("org.apache.cassandra.db.compaction.{}", plan.class);
    let named = plan.options.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let params = TableParams {
        compaction: CompactionParams::new(class, named.collect()),
        compression: CompressionParams::none(),
        ..TableParams::default()
    };
    let builder = Table::builder("ks", format!("t{number}"), id(number))
        .params(params)
        .column("k", CqlType::Int, ColumnKind::PartitionKey)
        .column("v", CqlType::Blob, ColumnKind::Regular);
    Arc::new(builder.build())
}

fn schema(plan: Plan) -> Arc<Schema> {
    let tables = (0..TABLES).map(|number| (format!("t{number}"), table(plan, number)));
    let keyspace = Keyspace {
        name: "ks".into(),
        durable_writes: true,
        replication: Replication::simple(1),
        tables: tables.collect(),
        types: BTreeMap::new(),
        views: BTreeMap::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    };
    Arc::new(Schema::new([Arc::new(keyspace)], Schema::empty_version(), 1))
}

fn token(key: i32) -> Token {
    Token::of(&key.to_be_bytes())
}

struct Client {
    engine: Rc<Engine>,
    node: Rc<NodeStore>,
    plan: Plan,
    notes: Rc<Notes>,
}

impl Client {
    fn below(&self, n: u64) -> u64 {
        self.engine.env().random_u64() % n
    }

    fn wrong(&self, what: String) {
        self.notes.seen.borrow_mut().wrong.push(what);
    }

    fn count(&self, what: &'static str) {
        *self.notes.seen.borrow_mut().counts.entry(what).or_default() += 1;
    }

    async fn write(&self, number: u8) -> Result<(), StorageError> {
        let table = table(self.plan, number);
        let (layout, env) = (&table.layout, self.engine.env());
        let key = self.below(KEYS) as i32;
        let (timestamp, now) = (env.unique_micros(), env.unix_micros() / 1_000_000);
        let mut scratch = RowBuilder::new();
        let mut update = UpdateBuilder::new(table.id.0, Arc::clone(layout), &key.to_be_bytes());
        let is_deletion = self.below(10) == 0;
        if is_deletion {
            update.delete_partition(Deletion::new(timestamp, now));
        } else {
            let mut value = MARK.to_vec();
            value.extend(key.to_be_bytes());
            value.extend(timestamp.to_be_bytes());
            value.resize(VALUE_BYTES, 0);
            let mut row = RowBuilder::new();
            row.start_row(Clustering::new([]).as_ref());
            row.liveness(Liveness::new(timestamp));
            row.cell(CellRef::live(0, None, timestamp, &value));
            update.add(row.finish_row(layout), &mut scratch);
        }
        let status = RepairStatus::Unrepaired;
        let version = Version { timestamp, is_deletion, status, is_needless: false };
        self.notes.model.borrow_mut().entry((number, key)).or_default().push(version);
        let mutation = Mutation::new(update.finish(&mut scratch));
        let owner = self.engine.owner(mutation.token());
        let apply = move |engine: Rc<Engine>| async move {
            let ticket = engine.apply(&mutation, true).await?;
            Ok::<_, StorageError>(ticket.durable().await?)
        };
        self.engine.shards().call_async(owner, Class::Statement, apply).await?
    }

    /// The version of a key that a read finds.
    async fn read(&self, number: u8, key: i32) -> Result<Option<i64>, StorageError> {
        let key = PartitionKey::new(key.to_be_bytes());
        let owner = self.engine.owner(key.token);
        let table = table(self.plan, number);
        let now = self.engine.env().unix_micros() / 1_000_000;
        let read = move |engine: Rc<Engine>| async move {
            let slices = Slices::all(false);
            let Some(mut partition) = engine.partition(&table, key.as_ref(), &slices).await? else {
                return Ok(None);
            };
            while let Some(unfiltered) = partition.next().await? {
                if let Unfiltered::Row(row) = unfiltered
                    && row.has_live_data(now, false)
                {
                    let cell = row.cells().find(|cell| cell.is_live(now));
                    return Ok(cell.map(|cell| cell.timestamp));
                }
            }
            Ok::<_, StorageError>(None)
        };
        self.engine.shards().call_async(owner, Class::Statement, read).await?
    }

    fn live(&self, number: u8) -> Vec<Arc<SSTable>> {
        self.node.live(id(number)).tables().to_vec()
    }

    /// The keys and versions in an SSTable.
    async fn versions(&self, sstable: &SSTable) -> Result<BTreeSet<(i32, i64)>, StorageError> {
        let path = sstable.path(&Component::Data);
        let bytes = self.engine.env().read_file(&path, 1 << 30).await;
        let bytes = bytes.map_err(|error| StorageError::io("cannot read", &path, error))?;
        let (mut found, mut at) = (BTreeSet::new(), 0);
        while at < bytes.len() {
            if bytes[at] != MARK[0] {
                at += MARK.len() / 2;
                continue;
            }
            at += bytes[at..].iter().take_while(|byte| **byte == MARK[0]).count();
            if let (Some(key), Some(timestamp)) =
                (bytes[at..].first_chunk(), bytes[at..].get(4..).and_then(<[u8]>::first_chunk))
            {
                found.insert((i32::from_be_bytes(*key), i64::from_be_bytes(*timestamp)));
            }
        }
        Ok(found)
    }

    /// What is read is what was written last, and each version is in an SSTable of its state.
    async fn check(&self, when: &str) -> Result<(), StorageError> {
        let model = self.notes.model.borrow().clone();
        for ((number, key), versions) in &model {
            let newest = versions.last().filter(|version| !version.is_deletion);
            let (found, wanted) = (self.read(*number, *key).await?, newest.map(|v| v.timestamp));
            if found != wanted {
                self.wrong(format!("{when}: t{number} key {key} is {found:?}, not {wanted:?}"));
            }
        }
        for number in 0..TABLES {
            let mut found: BTreeSet<(i32, i64)> = BTreeSet::new();
            let live = self.live(number);
            for sstable in &live {
                let status = sstable.repair_status();
                for (key, timestamp) in self.versions(sstable).await? {
                    found.insert((key, timestamp));
                    let of_key = model.get(&(number, key)).map(Vec::as_slice).unwrap_or_default();
                    let version = of_key.iter().find(|version| version.timestamp == timestamp);
                    let wanted = version.map(|version| version.status);
                    // of those that are repaired it is the earliest time
                    let is_so = wanted.is_some_and(|wanted| {
                        wanted.group() == status.group()
                            && wanted.repaired_at() >= status.repaired_at()
                    });
                    if !is_so {
                        let what = format!("{when}: t{number} key {key} {timestamp}");
                        self.wrong(format!("{what} is in one that is {status:?}, not {wanted:?}"));
                    }
                }
            }
            for ((_, key), versions) in model.iter().filter(|((of, _), _)| *of == number) {
                let mut newest: BTreeMap<RepairStatus, Version> = BTreeMap::new();
                newest.extend(versions.iter().map(|version| (version.status.group(), *version)));
                for version in newest.values() {
                    let may_go = version.is_deletion || version.is_needless;
                    if !may_go && !found.contains(&(*key, version.timestamp)) {
                        self.wrong(format!("{when}: t{number} key {key} is not in: {version:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Above level 0, no two SSTables of a state and level have a key's range in common.
    fn check_levels(&self, when: &str) {
        for number in 0..TABLES {
            let mut levels: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for table in self.live(number).iter().filter(|table| table.level() > 0) {
                let place = (table.repair_status().group(), table.level());
                levels.entry(place).or_default().push(table.table.tokens());
                self.count("levels");
            }
            for (place, mut spans) in levels {
                spans.sort();
                if spans.windows(2).any(|two| two[0].1 >= two[1].0) {
                    self.wrong(format!("{when}: t{number} {place:?} overlaps"));
                }
            }
        }
    }

    async fn idle(&self) -> Result<(), StorageError> {
        let env = self.engine.env();
        let deadline = env.now() + PATIENCE;
        loop {
            let mut is_idle = self.node.compactions().running().is_empty();
            for number in 0..TABLES {
                is_idle &= self.node.compactions().pending(id(number)).await? == 0;
            }
            if is_idle {
                return Ok(());
            }
            if env.now() > deadline {
                self.wrong(format!("never idle: {:?}", self.node.failure()));
                return Ok(());
            }
            env.sleep(Duration::from_millis(50)).await;
        }
    }

    fn change_status(&self, which: impl Fn(i32, &Version) -> bool, status: RepairStatus) -> u64 {
        let (mut model, mut changed) = (self.notes.model.borrow_mut(), 0);
        for ((_, key), versions) in model.iter_mut() {
            for version in versions.iter_mut().filter(|version| which(*key, version)) {
                version.status = status;
                changed += 1;
            }
        }
        changed
    }

    fn wanted(session: Uuid, ranges: &[TokenRange]) -> Anticompaction {
        let tables = (0..TABLES).map(|number| (id(number), ranges.to_vec())).collect();
        Anticompaction { session, tables, finalized: Vec::new() }
    }

    fn anticompacted(&self, session: Uuid, ranges: &[TokenRange]) {
        let is_in = |key: i32, version: &Version| {
            version.status == RepairStatus::Unrepaired
                && TokenRange::any_contains(ranges, token(key))
        };
        if self.change_status(is_in, RepairStatus::Pending(session)) > 0 {
            self.count("anticompacted");
        }
    }

    async fn anticompact(&self, session: Uuid, ranges: &[TokenRange]) -> Result<(), StorageError> {
        let is_other = |status: RepairStatus| status.session().is_some_and(|it| it != session);
        let model = self.notes.model.borrow().clone();
        let collides = model.iter().any(|((_, key), versions)| {
            let newest: BTreeMap<_, _> = versions.iter().map(|v| (v.status, v)).collect();
            TokenRange::any_contains(ranges, token(*key))
                && newest.values().any(|version| {
                    is_other(version.status) && !version.is_deletion && !version.is_needless
                })
        });
        let wanted = Self::wanted(session, ranges);
        match self.node.repairs().anticompact(wanted, Rc::default()).await {
            Ok(()) if collides => self.wrong(format!("{session} took what others have")),
            Ok(()) => self.anticompacted(session, ranges),
            Err(StorageError::PendingElsewhere { .. }) => {
                self.count("refused");
                let sessions = self.node.repairs().pending_sessions();
                if sessions.keys().all(|other| *other == session) {
                    self.wrong(format!("{session} was refused for nothing"));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn fresh_session(&self) -> Uuid {
        self.notes.sessions.set(self.notes.sessions.get() + 1);
        Uuid(SESSIONS_OF_STEPS + self.notes.sessions.get())
    }

    async fn cancel(&self, ranges: &[TokenRange], micros: u64) -> Result<(), StorageError> {
        let (session, stop) = (self.fresh_session(), Rc::new(Cell::new(false)));
        let (repairs, wanted) = (Rc::clone(self.node.repairs()), Self::wanted(session, ranges));
        let theirs = Rc::clone(&stop);
        let work = async move { repairs.anticompact(wanted, theirs).await };
        let task = self.engine.env().spawn_task(Class::Admin, work);
        self.engine.env().sleep(Duration::from_micros(micros)).await;
        stop.set(true);
        match task.await {
            Ok(()) => self.anticompacted(session, ranges),
            Err(StorageError::Interrupted) => self.count("cancelled"),
            Err(StorageError::PendingElsewhere { .. }) => self.count("refused"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn release(&self, session: Uuid, is_repaired: bool) -> Result<(), StorageError> {
        let now = self.engine.env().unix_micros() / 1000;
        let (outcome, status) = match is_repaired {
            true => (Outcome::Repaired(now), RepairStatus::Repaired(now)),
            false => (Outcome::Failed, RepairStatus::Unrepaired),
        };
        for _ in 0..2 {
            self.node.repairs().release(session, outcome).await?;
        }
        if !self.node.repairs().pending(session).is_empty() {
            self.wrong(format!("{session} has SSTables after it was released"));
        }
        let is_its = |_, version: &Version| version.status == RepairStatus::Pending(session);
        if self.change_status(is_its, status) > 0 {
            self.count(if is_repaired { "repaired" } else { "failed" });
        }
        Ok(())
    }

    async fn step(&self, step: &Step) -> Result<(), StorageError> {
        let compactions = self.node.compactions();
        match step {
            Step::Write(number) => {
                for _ in 0..40 {
                    self.write(*number).await?;
                }
                self.node.flush(id(*number)).await?;
            }
            Step::Major(number) => match compactions.major(id(*number), false).await {
                Err(StorageError::Interrupted) => {}
                done => done?,
            },
            Step::UserDefined(number, which) => {
                let which = u64::from(*which);
                compactions.merge_these(id(*number), |it| it.number & which != 0).await?;
            }
            Step::Garbage(number) => {
                for ((of, _), versions) in self.notes.model.borrow_mut().iter_mut() {
                    let newest = versions.len().saturating_sub(1);
                    let older = versions.iter_mut().take(newest).filter(|_| of == number);
                    older.for_each(|version| version.is_needless = true);
                }
                compactions.collect_garbage(id(*number), TombstoneOption::Cell).await?;
            }
            Step::Scrub(number) => {
                let how = Scrub { skip_corrupted: false, validate: true };
                compactions.scrub(id(*number), how, &RefCell::default()).await?;
            }
            Step::Auto(enabled) => {
                compactions.set_auto(id(0), *enabled);
                self.engine.env().sleep(Duration::from_secs(1)).await;
            }
            Step::Idle => {
                self.idle().await?;
                self.check_levels("idle");
            }
            Step::Anticompact(session, ranges) => {
                self.anticompact(Uuid(u128::from(*session)), ranges).await?;
            }
            Step::Cancel(ranges, micros) => self.cancel(ranges, *micros).await?,
            Step::Release(session, is_repaired) => {
                self.release(Uuid(u128::from(*session)), *is_repaired).await?;
            }
            Step::Crash | Step::CrashIn(..) => {
                if let Step::CrashIn(ranges, micros) = step {
                    let session = self.fresh_session();
                    self.notes.left.set(Some(session));
                    let wanted = Self::wanted(session, ranges);
                    let repairs = Rc::clone(self.node.repairs());
                    self.engine.env().spawn(Class::Admin, async move {
                        let _ = repairs.anticompact(wanted, Rc::default()).await;
                    });
                    self.engine.env().sleep(Duration::from_micros(*micros)).await;
                }
                self.count("crashes");
                self.notes.wants_crash.set(true);
                std::future::pending::<()>().await;
            }
        }
        Ok(())
    }

    async fn live_on(&self, steps: &[Step]) -> Result<(), StorageError> {
        if let Some(session) = self.notes.left.take() {
            if !self.node.repairs().pending(session).is_empty() {
                self.count("left by a crash");
            }
            self.release(session, false).await?;
        }
        loop {
            self.check(&format!("before step {}", self.notes.next.get())).await?;
            let next = self.notes.next.get();
            let Some(step) = steps.get(next) else { return Ok(()) };
            self.notes.next.set(next + 1);
            self.step(step).await?;
        }
    }
}

async fn shard(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    (plan, steps): (Plan, Rc<[Step]>),
    notes: Rc<Notes>,
) -> Result<(), StorageError> {
    let sender = mesh.clone();
    let shards = Shards::new(&env, move |to, job| sender.send(to, job));
    let options = Options {
        segment_bytes: 256 << 10,
        commitlog_bytes: 64 << 20,
        memtable_bytes: 64 << 20,
        cleanup_threshold: 0.9,
        ..options()
    };
    let engine = Engine::new(&env, options, shards, schema(plan));
    engine.set_host_id([7; 16]);
    let context = Rc::clone(&engine);
    env.spawn(Class::Statement, async move {
        loop {
            let (_, job) = mesh.recv().await;
            job(&context);
        }
    });
    if env.shard() == 0 {
        for directory in ["/data", "/commitlog"].map(PathBuf::from) {
            let made = env.create_dir_all(&directory).await;
            made.map_err(|e| StorageError::corrupt(&directory, e))?;
            let synced = env.sync_dir("/").await;
            synced.map_err(|e| StorageError::corrupt(&directory, e))?;
        }
        let node = engine.become_first();
        node.set_schema(&schema(plan)).await?;
        let tables: Vec<_> = (0..TABLES).map(|number| table(plan, number)).collect();
        node.open_tables(&tables).await?;
        node.replay(&|_| true, &BTreeMap::new()).await?;
        node.begin_log().await?;
        let client = Client { engine, node, plan, notes: Rc::clone(&notes) };
        client.live_on(&steps).await?;
        notes.is_done.set(true);
    }
    env.terminated().await;
    Ok(())
}

/// What a world of a seed shows.
pub fn run(seed: u64, plan: Plan, steps: &[Step], bug: Option<&'static str>) -> Seen {
    let world = World::new(seed, WorldOptions::default());
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let notes = Rc::<Notes>::default();
    let (theirs, steps) = (Rc::clone(&notes), Rc::<[Step]>::from(steps));
    world.start(node, SHARDS, move |env, mesh| {
        shard(env, mesh, (plan, Rc::clone(&steps)), Rc::clone(&theirs))
    });
    loop {
        let ends = || notes.is_done.get() || notes.wants_crash.get() || !world.is_up(node);
        let wrong = match world.run_until(ends, Duration::from_secs(4 * 3600)) {
            Err(failure) => Some(failure.to_string()),
            Ok(_) if notes.wants_crash.get() || notes.is_done.get() => None,
            Ok(_) => Some(format!("ended: {:?}", world.exits(node))),
        };
        notes.seen.borrow_mut().wrong.extend(wrong);
        if !notes.wants_crash.take() || !notes.seen.borrow().wrong.is_empty() {
            notes.seen.borrow_mut().counts.extend(world.marks());
            return notes.seen.take();
        }
        world.power_cut(node);
        world.restart(node);
    }
}
