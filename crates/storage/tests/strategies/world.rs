//! Each strategy with real data in a simulated world: what is read agrees with a model at every
//! step, through compactions, a change of the strategy, stops and a crash.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
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
    ColumnKind, CompressionParams, Keyspace, Replication, Schema, Table, TableId, TableParams,
    TombstoneOption,
};
use storage::shards::{Job, Shards};
use storage::{
    Depth, Engine, NodeStore, Options, PartitionKey, SSTable, Scrub, Slices, StorageError, Verify,
};
use types::CqlType;

use super::common::options;
use super::day::Draw;
use super::loads::params;

const VALUE_BYTES: usize = 8000;
const KEYS: u64 = 500;
const ROUNDS: u64 = 24;
const WRITES: u64 = 120;
const READS: u64 = 25;
const SHARDS: usize = 2;
const ID: TableId = TableId([9; 16]);
/// Lives of rows that expire.
const TTL_SECONDS: i32 = 90;
/// The longest that anything waits for compactions.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a world is about.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub class: &'static str,
    pub options: &'static [(&'static str, &'static str)],
    /// Rows expire, and time passes between flushes.
    pub expires: bool,
    /// The strategy that the table has in the end.
    pub then: Option<(&'static str, &'static [(&'static str, &'static str)])>,
}

/// What a world showed.
#[derive(Debug, Default)]
pub struct Seen {
    pub wrong: Vec<String>,
    /// Of the files in the end: names and levels.
    pub levels: BTreeMap<String, usize>,
    pub expired: u64,
    pub compactions: u64,
    /// Most compactions of the table at a time.
    pub at_once: usize,
    /// Bytes that compactions wrote by those that flushes wrote.
    pub written: f64,
    /// Files that one flush made, at most.
    pub flush_outputs: usize,
}

fn table(plan: Plan, changed: bool) -> Arc<Table> {
    let (class, options) = match plan.then.filter(|_| changed) {
        Some(then) => then,
        None => (plan.class, plan.options),
    };
    let params = TableParams {
        compaction: params(class, options),
        compression: CompressionParams::none(),
        // what is deleted may go at once, so that what must not go is noticed
        gc_grace_seconds: 0,
        ..TableParams::default()
    };
    let builder = Table::builder("ks", "t", ID)
        .params(params)
        .column("k", CqlType::Int, ColumnKind::PartitionKey)
        .column("v", CqlType::Blob, ColumnKind::Regular);
    Arc::new(builder.build())
}

fn schema(plan: Plan, changed: bool) -> Arc<Schema> {
    let keyspace = Keyspace {
        name: "ks".into(),
        durable_writes: true,
        replication: Replication::simple(1),
        tables: [("t".to_owned(), table(plan, changed))].into(),
        types: BTreeMap::new(),
        views: BTreeMap::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    };
    Arc::new(Schema::new([Arc::new(keyspace)], Schema::empty_version(), 1))
}

/// What the newest write of a key was: none for a deletion. And when it ends.
type Model = BTreeMap<i32, (Option<i64>, i64)>;

#[derive(Default)]
struct Notes {
    lives: Cell<u32>,
    is_done: Cell<bool>,
    changed: Cell<bool>,
    model: RefCell<Model>,
    seen: RefCell<Seen>,
}

struct Client {
    engine: Rc<Engine>,
    node: Rc<NodeStore>,
    plan: Plan,
    draw: RefCell<Draw>,
    notes: Rc<Notes>,
}

impl Client {
    fn below(&self, n: u64) -> u64 {
        self.draw.borrow_mut().below(n)
    }

    fn wrong(&self, what: String) {
        self.notes.seen.borrow_mut().wrong.push(what);
    }

    async fn write(&self) -> Result<(), StorageError> {
        let table = table(self.plan, self.notes.changed.get());
        let layout = &table.layout;
        let key = self.below(KEYS) as i32;
        let env = self.engine.env();
        let timestamp = env.unique_micros();
        let now = env.unix_micros() / 1_000_000;
        let mut scratch = RowBuilder::new();
        let mut update = UpdateBuilder::new(ID.0, Arc::clone(layout), &key.to_be_bytes());
        if !self.plan.expires && self.below(8) == 0 {
            update.delete_partition(Deletion::new(timestamp, now));
            self.notes.model.borrow_mut().insert(key, (None, i64::MAX));
        } else {
            let mut value = timestamp.to_be_bytes().to_vec();
            let mut draw = Draw(timestamp as u64);
            value.extend((8..VALUE_BYTES / 8).flat_map(|_| draw.next().to_be_bytes()));
            let ends = if self.plan.expires { now + i64::from(TTL_SECONDS) } else { i64::MAX };
            let mut row = RowBuilder::new();
            row.start_row(Clustering::new([]).as_ref());
            if self.plan.expires {
                row.liveness(Liveness::expiring(timestamp, TTL_SECONDS, ends));
                row.cell(CellRef::expiring(0, None, timestamp, TTL_SECONDS, ends, &value));
            } else {
                row.liveness(Liveness::new(timestamp));
                row.cell(CellRef::live(0, None, timestamp, &value));
            }
            update.add(row.finish_row(layout), &mut scratch);
            self.notes.model.borrow_mut().insert(key, (Some(timestamp), ends));
        }
        let mutation = Mutation::new(update.finish(&mut scratch));
        let owner = self.engine.owner(mutation.token());
        let apply = move |engine: Rc<Engine>| async move {
            let ticket = engine.apply(&mutation, true).await?;
            Ok::<_, StorageError>(ticket.durable().await?)
        };
        self.engine.shards().call_async(owner, Class::Statement, apply).await?
    }

    async fn read(&self, key: i32, now: i64) -> Result<Option<i64>, StorageError> {
        let key = PartitionKey::new(key.to_be_bytes());
        let owner = self.engine.owner(key.token);
        let table = table(self.plan, self.notes.changed.get());
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
                    let bytes = cell.and_then(|cell| cell.value.first_chunk::<8>().copied());
                    return Ok(bytes.map(i64::from_be_bytes));
                }
            }
            Ok::<_, StorageError>(None)
        };
        self.engine.shards().call_async(owner, Class::Statement, read).await?
    }

    /// A key's newest write, as the model has it.
    async fn compare(&self, key: i32, when: &str) -> Result<(), StorageError> {
        let now = self.engine.env().unix_micros() / 1_000_000;
        let newest = self.notes.model.borrow().get(&key).copied();
        let wanted = newest.filter(|(_, ends)| *ends > now).and_then(|(written, _)| written);
        let found = self.read(key, now).await?;
        if found != wanted {
            self.wrong(format!("{when}: key {key} is {found:?}, not {wanted:?}"));
        }
        Ok(())
    }

    async fn compare_all(&self, when: &str) -> Result<(), StorageError> {
        for key in 0..KEYS as i32 {
            self.compare(key, when).await?;
        }
        Ok(())
    }

    fn live(&self) -> Vec<Arc<SSTable>> {
        let store = self.engine.store(ID);
        store.map(|store| store.live().tables().to_vec()).unwrap_or_default()
    }

    fn levels(&self) -> BTreeMap<String, usize> {
        let name = |table: &Arc<SSTable>| format!("{}", table.path(&DATA).display());
        self.live().iter().map(|table| (name(table), table.level())).collect()
    }

    /// Waits for a condition, which should come true by itself.
    async fn until(&self, what: &str, holds: impl AsyncFn(&Self) -> bool) {
        let env = self.engine.env();
        let deadline = env.now() + PATIENCE;
        while !holds(self).await {
            if env.now() > deadline {
                self.wrong(format!("never {what}: {:?}", self.node.failure()));
                return;
            }
            env.sleep(Duration::from_millis(50)).await;
        }
    }

    async fn idle(&self) {
        self.until("idle", async |client: &Self| {
            let pending = client.node.compactions().pending(ID).await.unwrap_or(1);
            client.node.compactions().running().is_empty() && pending == 0
        })
        .await;
    }

    /// Above level 0, no two files of a level have a key's range in common.
    fn check_levels(&self, when: &str) {
        let mut levels: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for table in self.live() {
            levels.entry(table.level()).or_default().push(table.table.tokens());
        }
        for (level, mut spans) in levels.into_iter().filter(|(level, _)| *level > 0) {
            spans.sort();
            if spans.windows(2).any(|two| two[0].1 >= two[1].0) {
                self.wrong(format!("{when}: level {level} overlaps"));
            }
        }
    }

    async fn round(&self) -> Result<(), StorageError> {
        for _ in 0..WRITES {
            self.write().await?;
        }
        let before = self.live().len();
        let at_once = self.node.compactions().running().len();
        self.node.flush(ID).await?;
        let outputs = self.live().len().saturating_sub(before);
        {
            let mut seen = self.notes.seen.borrow_mut();
            seen.flush_outputs = seen.flush_outputs.max(outputs);
            seen.at_once = seen.at_once.max(at_once).max(self.node.compactions().running().len());
        }
        for _ in 0..READS {
            self.compare(self.below(KEYS) as i32, "in a round").await?;
            let running = self.node.compactions().running().len();
            let mut seen = self.notes.seen.borrow_mut();
            seen.at_once = seen.at_once.max(running);
        }
        self.check_levels("in a round");
        Ok(())
    }

    /// Stops a compaction that the operator asked for: it leaves everything as it was.
    async fn interrupt(&self) -> Result<(), StorageError> {
        self.idle().await;
        let before = self.levels();
        self.node.compactions().set_throughput(200 << 10);
        let node = Rc::clone(&self.node);
        let major = self
            .engine
            .env()
            .spawn_task(Class::Compaction, async move { node.compactions().merge_all(ID).await });
        self.until("under way", async |client: &Self| {
            client.node.compactions().running().iter().any(|running| running.written.get() > 0)
        })
        .await;
        if self.node.compactions().stop(|running| running.table == ID) == 0 {
            self.wrong("nothing to stop".into());
        }
        match major.await {
            Err(StorageError::Interrupted) => {}
            other => self.wrong(format!("a stopped compaction ended with {other:?}")),
        }
        if self.levels() != before {
            self.wrong("a stopped compaction changed the table".into());
        }
        self.node.compactions().set_throughput(0);
        Ok(())
    }

    /// Without compactions by themselves, files gather; one that is asked for makes one of them.
    async fn by_hand(&self) -> Result<(), StorageError> {
        self.node.compactions().set_auto(ID, false);
        self.idle_or_off().await;
        let count = self.node.stats.compactions.get();
        for _ in 0..5 {
            self.round().await?;
        }
        if self.node.stats.compactions.get() != count || self.node.compactions().is_auto(ID) {
            self.wrong("compactions went on by themselves".into());
        }
        // the oldest and the newest: what comes of them has something older and something newer
        // than all others
        let live = self.live();
        let two: Vec<u64> =
            live.first().into_iter().chain(live.last()).map(|table| table.number).collect();
        let merged =
            self.node.compactions().merge_these(ID, |table| two.contains(&table.number)).await?;
        if merged != 2 || self.live().iter().any(|table| two.contains(&table.number)) {
            self.wrong("the two files that were named are not merged".into());
        }
        self.compare_all("after a compaction of two files").await?;
        self.upkeep().await?;
        self.node.compactions().major(ID, false).await?;
        self.compare_all("after a major compaction").await?;
        self.node.compactions().set_auto(ID, true);
        Ok(())
    }

    /// What the operator does to files one by one changes nothing that is read.
    async fn upkeep(&self) -> Result<(), StorageError> {
        self.node.compactions().collect_garbage(ID, TombstoneOption::Row).await?;
        self.compare_all("without rows that are deleted elsewhere").await?;
        let before = self.bytes();
        self.node.compactions().collect_garbage(ID, TombstoneOption::Cell).await?;
        self.compare_all("without cells that are written over elsewhere").await?;
        let after = self.bytes();
        if after >= before && !self.plan.expires {
            self.wrong(format!("{before} bytes are {after} without what is written over"));
        }
        let found = RefCell::new(Vec::new());
        let how = Scrub { skip_corrupted: false, validate: true };
        let count = self.live().len();
        self.node.compactions().scrub(ID, how, &found).await?;
        let found = found.into_inner();
        if found.len() != count || found.iter().any(|of| of.bad + of.out_of_order > 0) {
            self.wrong(format!("a scrub of what is whole: {found:?}"));
        }
        self.compare_all("after a scrub").await?;
        let how = Verify {
            depth: Depth::Rows,
            check_version: true,
            mutate_repaired: false,
            owned: Vec::new(),
        };
        let damaged = self.node.verifier().verify(ID, how).await?;
        if !damaged.is_empty() {
            self.wrong(format!("{damaged:?}"));
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.live().iter().map(|table| table.table.data_length).sum()
    }

    async fn idle_or_off(&self) {
        // one that was chosen before, or merged and not yet swapped in, shows in its count only
        self.until("off", async |client: &Self| {
            let count = client.node.stats.compactions.get();
            client.engine.env().sleep(Duration::from_secs(1)).await;
            client.node.compactions().running().is_empty()
                && client.node.stats.compactions.get() == count
        })
        .await;
    }

    async fn first_life(&self) -> Result<(), StorageError> {
        for round in 0..ROUNDS {
            self.round().await?;
            if self.plan.expires {
                self.engine.env().sleep(Duration::from_secs(20)).await;
            }
            if round == ROUNDS / 2 {
                self.interrupt().await?;
            }
        }
        self.by_hand().await?;
        if self.plan.then.is_some() {
            // of sizes that size tiers leave alone, and levels do not
            for _ in 0..2 {
                self.round().await?;
            }
            self.idle().await;
            let count = self.node.stats.compactions.get();
            self.notes.changed.set(true);
            self.node.set_schema(&schema(self.plan, true)).await?;
            self.until("of the new strategy", async |client: &Self| {
                client.live().iter().any(|table| table.level() > 0)
            })
            .await;
            self.idle().await;
            if self.node.stats.compactions.get() == count {
                self.wrong("the new strategy did nothing".into());
            }
        }
        for _ in 0..4 {
            self.round().await?;
        }
        self.idle().await;
        self.compare_all("in the end").await?;
        if self.plan.expires {
            // all of it expires, and the next check drops it
            self.engine.env().sleep(Duration::from_secs(300)).await;
            self.write().await?;
            self.node.flush(ID).await?;
            self.until("dropped", async |client: &Self| client.live().len() <= 2).await;
            // what is live is committed a little later
            self.idle_or_off().await;
        }
        let stats = &self.node.stats;
        let mut seen = self.notes.seen.borrow_mut();
        seen.levels = self.levels();
        seen.expired = stats.expired.get();
        seen.compactions = stats.compactions.get();
        let (flushed, compacted) = (stats.flushed_bytes.get(), stats.compacted_bytes.get());
        seen.written = (flushed + compacted) as f64 / flushed.max(1) as f64;
        if let Some(failure) = self.node.failure() {
            seen.wrong.push(format!("failed: {failure}"));
        }
        Ok(())
    }

    /// After a crash: the files are in the levels that they were in.
    async fn next_life(&self) -> Result<(), StorageError> {
        let before = self.notes.seen.borrow().levels.clone();
        let now = self.levels();
        if !before.iter().all(|(name, level)| now.get(name) == Some(level)) {
            self.wrong(format!("levels after a restart: {now:?}, not {before:?}"));
        }
        self.check_levels("after a restart");
        self.compare_all("after a restart").await?;
        self.round().await?;
        self.idle().await;
        self.compare_all("after a restart and a round").await
    }
}

const DATA: sstable::descriptor::Component = sstable::descriptor::Component::Data;

async fn shard(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    plan: Plan,
    notes: Rc<Notes>,
) -> Result<(), StorageError> {
    let sender = mesh.clone();
    let shards = Shards::new(&env, move |to, job| sender.send(to, job));
    let (data, commitlog) = (PathBuf::from("/data"), PathBuf::from("/commitlog"));
    let options = Options {
        segment_bytes: 256 << 10,
        commitlog_bytes: 64 << 20,
        memtable_bytes: 64 << 20,
        cleanup_threshold: 0.9,
        concurrent_compactors: 3,
        ..options()
    };
    let schema = schema(plan, notes.changed.get());
    let engine = Engine::new(&env, options, shards, Arc::clone(&schema));
    engine.set_host_id([7; 16]);
    let context = Rc::clone(&engine);
    env.spawn(Class::Statement, async move {
        loop {
            let (_, job) = mesh.recv().await;
            job(&context);
        }
    });
    if env.shard() == 0 {
        for directory in [data, commitlog] {
            let made = env.create_dir_all(&directory).await;
            made.map_err(|e| StorageError::corrupt(&directory, e))?;
            let synced = env.sync_dir("/").await;
            synced.map_err(|e| StorageError::corrupt(&directory, e))?;
        }
        let node = engine.become_first();
        node.set_schema(&schema).await?;
        node.open_tables(&[table(plan, notes.changed.get())]).await?;
        node.replay(&|_| true, &BTreeMap::new()).await?;
        notes.lives.set(notes.lives.get() + 1);
        let draw = RefCell::new(Draw(env.random_u64()));
        let client = Client { engine, node, plan, draw, notes: Rc::clone(&notes) };
        if notes.lives.get() == 1 {
            client.node.begin_log().await?;
            client.first_life().await?;
        } else {
            // nothing is compacted before the log is begun
            let levels = client.levels();
            client.node.begin_log().await?;
            if levels.is_empty() {
                client.wrong("no files after a restart".into());
            }
            client.next_life().await?;
        }
        notes.is_done.set(true);
    }
    env.terminated().await;
    Ok(())
}

/// What a world of a seed shows.
pub fn run(seed: u64, plan: Plan, bug: Option<&'static str>) -> Seen {
    let world = World::new(seed, WorldOptions::default());
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let notes = Rc::<Notes>::default();
    let theirs = Rc::clone(&notes);
    world.start(node, SHARDS, move |env, mesh| shard(env, mesh, plan, Rc::clone(&theirs)));
    for life in 1..=2 {
        let done = || notes.is_done.get() || !world.is_up(node);
        let ran = world.run_until(done, Duration::from_secs(4 * 3600));
        let wrong = match ran {
            Err(failure) => Some(failure.to_string()),
            Ok(_) if notes.is_done.get() => None,
            Ok(_) => Some(format!("life {life} ended: {:?}", world.exits(node))),
        };
        if let Some(wrong) = wrong {
            notes.seen.borrow_mut().wrong.push(wrong);
            break;
        }
        if life == 1 {
            notes.is_done.set(false);
            world.power_cut(node);
            world.restart(node);
        }
    }
    notes.seen.take()
}
