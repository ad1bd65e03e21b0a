//! A node that is nothing but the storage engine: each shard takes writes and reads from a queue
//! and hands them to the shard that owns the key. Faster to simulate than a whole node, and what
//! fails is near.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use env::sim::{NodeId, World};
use env::sync::{OneshotSender, Queue, Semaphore, oneshot};
use env::{Class, Env, Mesh};
use rows::{CellRef, RowRef, Unfiltered};
use schema::{Schema, TableId, TombstoneOption};
use storage::commitlog::{LogEvent, Position};
use storage::shards::{Job, Shards};
use storage::snapshot::{SNAPSHOTS, Snapshot};
use storage::{
    DiskFailure, Engine, Import, KeyRef, NodeStore, Options, PartitionKey, Scrub, StorageError,
    table_directory,
};

use crate::failed::Failed;
use crate::operation::{Answer, Column, Query, Range, Row, TABLES, Value, Write};
use crate::plan::Plan;
use crate::site::Site;
use crate::tables;
use crate::target::Target;

/// What the names of the files begin with that say up to where the log's records of a table are
/// void.
pub const TRUNCATION: &str = "truncated-";
/// Requests that wait at a shard.
const QUEUE_LIMIT: usize = 1024;

/// What an operator may ask for, of the table of that number.
#[derive(Clone, Debug)]
pub enum Order {
    /// `nodetool flush`.
    Flush(u8),
    /// `nodetool compact`.
    Compact(u8),
    /// `nodetool snapshot`, with its name and a time to live.
    Snapshot(u8, String, Option<i64>),
    /// `nodetool clearsnapshot`, or the end of that time.
    Clear(u8, String),
    /// A snapshot is taken and brought back as SSTables that somebody else wrote; they stay where
    /// they are, or not.
    Import(u8, String, bool),
}

/// Snapshots by their directories.
#[derive(Clone, Debug, Default)]
pub struct SnapshotsKnown {
    /// Taken, as was acknowledged.
    pub taken: BTreeSet<PathBuf>,
    /// That were to go, or that files are taken from.
    pub going: BTreeSet<PathBuf>,
}

/// What travels between the shards.
pub type Message = Job<Rc<Engine>>;

enum Request {
    Write {
        write: Write,
        written_at: Box<dyn FnOnce(i64)>,
        reply: OneshotSender<Result<(), Failed>>,
    },
    Read {
        query: Query,
        reply: OneshotSender<Result<Answer, Failed>>,
    },
    Truncate {
        table: u8,
        reply: OneshotSender<Result<(), Failed>>,
    },
    Maintain {
        what: u64,
        reply: OneshotSender<Result<(), Failed>>,
    },
    Order {
        order: Order,
        reply: OneshotSender<Result<(), Failed>>,
    },
}

/// The way into a node, whichever life it is in.
pub struct Door {
    queues: RefCell<BTreeMap<usize, Queue<Request>>>,
    node: RefCell<Option<Rc<NodeStore>>>,
    serving: Cell<bool>,
    /// Largest timestamp given out: what a node keeps on its disk, with a reserve.
    floor: Cell<i64>,
    /// TRUNCATE takes a snapshot before.
    auto_snapshot: bool,
    /// Snapshots that were taken, and that went.
    pub snapshots: RefCell<SnapshotsKnown>,
    /// What the node said of its disks and logs, in all its lives: what kind of failure, and the
    /// words.
    pub said: RefCell<Vec<(&'static str, String)>>,
    /// Who empties a table, or brings SSTables back into one, holds it.
    emptying: Semaphore,
    options: Options,
    schema: Arc<Schema>,
}

impl Door {
    /// Of a node with these settings.
    pub fn new(options: Options, auto_snapshot: bool, schema: Arc<Schema>) -> Rc<Self> {
        Rc::new(Self {
            queues: RefCell::default(),
            node: RefCell::default(),
            serving: Cell::new(false),
            floor: Cell::new(0),
            auto_snapshot,
            snapshots: RefCell::default(),
            said: RefCell::default(),
            emptying: Semaphore::new(1),
            options,
            schema,
        })
    }

    /// What one shard runs.
    ///
    /// # Errors
    /// If the node cannot start or not drain.
    pub async fn run(self: Rc<Self>, env: Env, mesh: Mesh<Message>) -> Result<(), StorageError> {
        env.raise_unique_floor(self.floor.get());
        let sender = mesh.clone();
        let shards = Shards::new(&env, move |to, job| sender.send(to, job));
        let engine = Engine::new(&env, self.options.clone(), shards, Arc::clone(&self.schema));
        engine.set_host_id([7; 16]);
        self.listen(&engine);
        let context = Rc::clone(&engine);
        env.spawn(Class::Statement, async move {
            loop {
                let (_, job) = mesh.recv().await;
                job(&context);
            }
        });
        let queue = Queue::new(QUEUE_LIMIT);
        self.queues.borrow_mut().insert(env.shard(), queue.clone());
        let (door, serving) = (Rc::clone(&self), Rc::clone(&engine));
        env.spawn(Class::Statement, async move {
            while let Ok(request) = queue.pop().await {
                let task = Rc::clone(&door).serve(Rc::clone(&serving), request);
                serving.env().spawn(Class::Statement, task);
            }
        });
        if env.shard() == 0 {
            let node = self.open(&engine).await?;
            *self.node.borrow_mut() = Some(Rc::clone(&node));
            self.serving.set(true);
            env.terminated().await;
            self.serving.set(false);
            node.drain().await?;
            return Ok(());
        }
        env.terminated().await;
        Ok(())
    }

    /// Notes what an operator's log would have.
    fn listen(self: &Rc<Self>, engine: &Engine) {
        let door = Rc::clone(self);
        engine.watch_disks(Rc::new(move |event| {
            let kind = match event.failure {
                DiskFailure::Corrupt => "corrupt",
                DiskFailure::Incomplete => "incomplete",
                DiskFailure::Read | DiskFailure::Write => "I/O",
                DiskFailure::Full | DiskFailure::NoRoom => "full",
            };
            door.said.borrow_mut().push((kind, event.what.clone()));
        }));
        let door = Rc::clone(self);
        engine.watch_log(Rc::new(move |event| {
            if let LogEvent::Failed(what) | LogEvent::NotArchived(what) = event {
                door.said.borrow_mut().push(("log", what.to_owned()));
            }
        }));
    }

    async fn open(&self, engine: &Rc<Engine>) -> Result<Rc<NodeStore>, StorageError> {
        let env = engine.env();
        let node = engine.become_first();
        let captured = self.options.log.cdc.as_ref().map(|cdc| &cdc.directory);
        let directories = self.options.data_directories.iter().chain(captured);
        let directories = directories.chain([&self.options.commitlog_directory]);
        for directory in directories {
            let made = env.create_dir_all(directory).await;
            made.map_err(|e| StorageError::io("cannot create", directory, e))?;
            for above in directory.ancestors().skip(1) {
                let synced = env.sync_dir(above).await;
                synced.map_err(|e| StorageError::io("cannot sync", above, e))?;
            }
        }
        node.set_schema(&self.schema).await?;
        let keyspaces = self.schema.keyspaces().values();
        let tables: Vec<_> = keyspaces.flat_map(|keyspace| keyspace.tables.values()).collect();
        node.open_tables(tables).await?;
        node.restore_log().await?;
        let mut truncated = BTreeMap::new();
        for number in 0..TABLES {
            if let Some(position) = self.truncation_of(env, number).await? {
                truncated.insert(tables::table(number).id, position);
            }
        }
        let replay = node.replay(&|_| true, &truncated).await?;
        if replay.unknown > 0 {
            return Err(StorageError::corrupt("commitlog", format!("{replay:?}")));
        }
        node.begin_log().await?;
        Ok(node)
    }

    async fn serve(self: Rc<Self>, engine: Rc<Engine>, request: Request) {
        match request {
            Request::Write { write, written_at, reply } => {
                let outcome = self.write(&engine, &write, written_at).await;
                let _ = reply.send(outcome.map_err(|error| Failed::Unknown(error.to_string())));
            }
            Request::Read { query, reply } => {
                let outcome = read(&engine, query).await;
                if let Err(error) = &outcome {
                    // as a coordinator does
                    engine.inspect(error);
                }
                let _ = reply.send(outcome.map_err(|error| match error {
                    StorageError::Stopping(_) => Failed::Unknown(error.to_string()),
                    error => Failed::Wrong(error.to_string()),
                }));
            }
            Request::Truncate { table, reply } => {
                let outcome = self.truncate_table(&engine, table).await;
                let _ = reply.send(outcome.map_err(|error| Failed::Unknown(error.to_string())));
            }
            Request::Maintain { what, reply } => {
                let node = self.node.borrow().clone();
                let outcome = match node {
                    Some(node) => maintain(&node, what).await,
                    None => Ok(()),
                };
                let _ = reply.send(outcome.map_err(|error| Failed::Unknown(error.to_string())));
            }
            Request::Order { order, reply } => {
                let outcome = self.obey(&engine, order).await;
                let _ = reply.send(outcome.map_err(|error| Failed::Unknown(error.to_string())));
            }
        }
    }

    /// Where it is noted up to where the log's records of a table are void.
    fn truncation_file(&self, number: u8) -> PathBuf {
        let data = self.options.data_directories.first().cloned().unwrap_or_default();
        data.join(format!("{TRUNCATION}{number}"))
    }

    async fn truncation_of(&self, env: &Env, number: u8) -> Result<Option<Position>, StorageError> {
        let path = self.truncation_file(number);
        let failed = |e| StorageError::io("cannot read", &path, e);
        if !env.exists(&path).await.map_err(failed)? {
            return Ok(None);
        }
        let bytes = env.read_file(&path, 8).await.map_err(failed)?;
        let segment = <[u8; 8]>::try_from(bytes.as_slice()).map(i64::from_be_bytes);
        let segment = segment.map_err(|_| StorageError::corrupt(&path, "it has not 8 bytes"))?;
        Ok(Some(Position { segment, offset: i32::MAX as u32 }))
    }

    async fn truncate_table(&self, engine: &Rc<Engine>, number: u8) -> Result<(), StorageError> {
        let Some(node) = self.node.borrow().clone() else { return Ok(()) };
        let _emptying = self.emptying.acquire(1).await;
        let env = engine.env();
        let id = tables::table(number).id;
        let snapshot =
            self.auto_snapshot.then(|| snapshot(env, format!("truncated-{}", env.unix_micros())));
        let record = async |position: Position| {
            if let Some(snapshot) = &snapshot {
                self.was_taken(number, &snapshot.name);
            }
            let path = self.truncation_file(number);
            let bytes = position.segment.to_be_bytes().to_vec();
            let written = env.write_file_atomically(&path, bytes).await;
            written.map_err(|e| StorageError::io("cannot write", &path, e))
        };
        node.truncations().truncate::<StorageError>(id, snapshot.as_ref(), record).await
    }

    /// The directory of a snapshot.
    fn snapshot_place(&self, number: u8, name: &str) -> PathBuf {
        let data = self.options.data_directories.first().map_or(Path::new("/"), PathBuf::as_path);
        table_directory(data, &tables::table(number)).join(SNAPSHOTS).join(name)
    }

    fn was_taken(&self, number: u8, name: &str) {
        self.snapshots.borrow_mut().taken.insert(self.snapshot_place(number, name));
    }

    fn goes(&self, place: &Path) {
        let mut known = self.snapshots.borrow_mut();
        known.taken.remove(place);
        known.going.insert(place.to_path_buf());
    }

    async fn obey(&self, engine: &Rc<Engine>, order: Order) -> Result<(), StorageError> {
        let Some(node) = self.node.borrow().clone() else { return Ok(()) };
        let env = engine.env();
        match order {
            Order::Flush(table) => node.flush(tables::table(table).id).await.map(drop),
            Order::Compact(table) => node.compactions().merge_all(tables::table(table).id).await,
            Order::Snapshot(table, name, ttl) => {
                let mut wanted = snapshot(env, name);
                wanted.expires_at = ttl.map(|millis| wanted.created_at + millis);
                node.snapshots().take(tables::table(table).id, &wanted, ttl.is_none()).await?;
                self.was_taken(table, &wanted.name);
                Ok(())
            }
            Order::Clear(table, name) => {
                let place = self.snapshot_place(table, &name);
                self.goes(&place);
                let removed = env.remove_dir_all(&place).await;
                removed.map_err(|e| StorageError::io("cannot remove", &place, e))
            }
            Order::Import(table, name, copy) => {
                // what was truncated after it was copied is not to come back
                let _emptying = self.emptying.acquire(1).await;
                let id = tables::table(table).id;
                let wanted = snapshot(env, name);
                node.snapshots().take(id, &wanted, true).await?;
                let place = self.snapshot_place(table, &wanted.name);
                self.goes(&place);
                let how = Import { copy, keep_level: false, verify: true };
                let refused = node.importer().import(id, std::slice::from_ref(&place), how).await?;
                match refused.into_iter().next() {
                    Some((_, error)) => Err(error),
                    None => Ok(()),
                }
            }
        }
    }

    async fn write(
        &self,
        engine: &Rc<Engine>,
        write: &Write,
        written_at: Box<dyn FnOnce(i64)>,
    ) -> Result<(), StorageError> {
        let env = engine.env();
        let timestamp = env.unique_micros();
        self.floor.set(self.floor.get().max(timestamp));
        let now = env.unix_micros() / 1_000_000;
        written_at(now);
        for mutation in tables::mutations(&engine.schema(), write, timestamp, now) {
            let owner = engine.owner(mutation.token());
            let apply = move |engine: Rc<Engine>| async move {
                let ticket = engine.apply(&mutation, true).await?;
                Ok::<_, StorageError>(ticket.durable().await?)
            };
            engine.shards().call_async(owner, Class::Statement, apply).await??;
        }
        Ok(())
    }
}

fn snapshot(env: &Env, name: String) -> Snapshot {
    let created_at = env.unix_micros() / 1000;
    let schema = Some("CREATE TABLE sim.t (k int PRIMARY KEY);".to_owned());
    Snapshot { name, created_at, expires_at: None, schema }
}

async fn maintain(node: &NodeStore, what: u64) -> Result<(), StorageError> {
    let table = tables::table((what % 2) as u8).id;
    match (what >> 8) % 3 {
        0 => match (what >> 16) % 4 {
            0 => node.compactions().collect_garbage(table, TombstoneOption::Row).await,
            1 => node.compactions().collect_garbage(table, TombstoneOption::Cell).await,
            2 => scrub(node, table).await,
            _ => node.compactions().merge_all(table).await,
        },
        _ => node.flush(table).await.map(drop),
    }
}

/// Nothing of what the worlds write is damaged.
async fn scrub(node: &NodeStore, table: TableId) -> Result<(), StorageError> {
    let found = RefCell::new(Vec::new());
    node.compactions()
        .scrub(table, Scrub { skip_corrupted: false, validate: true }, &found)
        .await?;
    let bad = found.into_inner().into_iter().find_map(|of| of.why);
    bad.map_or(Ok(()), Err)
}

async fn read(engine: &Rc<Engine>, query: Query) -> Result<Answer, StorageError> {
    let now = engine.env().unix_micros() / 1_000_000;
    let key = tables::key_bytes(query.partition);
    let owner = engine.owner(PartitionKey::new(key).token);
    let mut answer = Answer { statics: Some(None), rows: Vec::new(), now };
    let mut range = query.range;
    loop {
        let part = move |engine: Rc<Engine>| async move {
            let most = query.page.unwrap_or(u32::MAX) as usize;
            read_page(&engine, query, range, most, now).await
        };
        let page = engine.shards().call_async(owner, Class::Statement, part).await??;
        answer.statics = page.statics;
        let full = query.page.is_some_and(|most| page.rows.len() >= most as usize);
        let last = page.rows.last().map(|row| row.row);
        answer.rows.extend(page.rows);
        let Some(last) = last.filter(|_| full) else { return Ok(answer) };
        match query.is_ascending() {
            true => range.from = Some((last, false)),
            false => range.to = Some((last, false)),
        }
    }
}

async fn read_page(
    engine: &Rc<Engine>,
    query: Query,
    range: Range,
    most: usize,
    now: i64,
) -> Result<Answer, StorageError> {
    let table = tables::table(query.partition.table);
    let key = tables::key_bytes(query.partition);
    let key = PartitionKey::new(key);
    let key = KeyRef { token: key.token, bytes: &key.bytes };
    let slices = tables::slices(query.partition, range, query.reversed);
    let mut answer = Answer { statics: Some(None), rows: Vec::new(), now };
    let Some(mut cursor) = engine.partition(&table, key, &slices).await? else {
        return Ok(answer);
    };
    let corrupt = |what: &str| StorageError::corrupt("a row that was read", what);
    if let Some(cell) = cursor.static_row().and_then(|row| live_cell(row, 0, now)) {
        let value = Value::from_blob(cell.value).ok_or_else(|| corrupt("the static value"))?;
        answer.statics = Some(Some(value));
    }
    while answer.rows.len() < most {
        match cursor.next().await? {
            None => break,
            Some(Unfiltered::Row(row)) if row.has_live_data(now, false) => {
                answer.rows.push(client_row(row, now).ok_or_else(|| corrupt("a value"))?);
            }
            Some(_) => {}
        }
        engine.env().maybe_yield().await;
    }
    Ok(answer)
}

fn live_cell(row: RowRef<'_>, column: u16, now: i64) -> Option<CellRef<'_>> {
    row.cell(column).filter(|cell| cell.is_live(now))
}

fn client_row(row: RowRef<'_>, now: i64) -> Option<Row> {
    let number = row.clustering().get(0)??;
    let number = i32::from_be_bytes(number.try_into().ok()?);
    let cell = |column: Column| live_cell(row, column as u16, now);
    let a = match cell(Column::A) {
        Some(cell) => Some(Value::from_blob(cell.value)?),
        None => None,
    };
    let b = match cell(Column::B) {
        Some(cell) => Some(Value(u64::from_be_bytes(cell.value.try_into().ok()?))),
        None => None,
    };
    Some(Row { row: number, a, b })
}

impl Door {
    async fn ask<T: 'static>(
        &self,
        connection: u64,
        request: impl FnOnce(OneshotSender<Result<T, Failed>>) -> Request,
    ) -> Result<T, Failed> {
        let queue = {
            let queues = self.queues.borrow();
            let shard = connection % (queues.len().max(1) as u64);
            queues.get(&(shard as usize)).cloned()
        };
        let refused = |what: &str| Failed::Refused(what.to_string());
        let queue = queue.filter(|_| self.serving.get()).ok_or_else(|| refused("not serving"))?;
        let (reply, answer) = oneshot();
        queue.try_push(request(reply)).map_err(|_| refused("the queue is full"))?;
        answer.await.unwrap_or_else(|_| Err(Failed::Unknown("the node is gone".into())))
    }
}

impl Door {
    /// Does what an operator asks for.
    ///
    /// # Errors
    /// If it could not be done.
    pub async fn order(&self, order: Order) -> Result<(), Failed> {
        self.ask(0, |reply| Request::Order { order, reply }).await
    }
}

impl Target for Door {
    async fn write(
        &self,
        connection: u64,
        write: &Write,
        _: i64,
        written_at: Box<dyn FnOnce(i64)>,
    ) -> Result<(), Failed> {
        let write = write.clone();
        self.ask(connection, |reply| Request::Write { write, written_at, reply }).await
    }

    async fn read(&self, connection: u64, query: &Query, _: i64) -> Result<Answer, Failed> {
        let query = *query;
        self.ask(connection, |reply| Request::Read { query, reply }).await
    }

    async fn truncate(&self, _: u64, table: u8) -> Result<(), Failed> {
        self.ask(0, |reply| Request::Truncate { table, reply }).await
    }

    async fn shard_of(&self, connection: u64) -> Option<usize> {
        Some((connection % (self.queues.borrow().len().max(1) as u64)) as usize)
    }

    async fn maintain(&self, what: u64) -> Result<(), Failed> {
        // what the node does once is the first shard's
        self.ask(0, |reply| Request::Maintain { what, reply }).await
    }

    fn takes_batches(&self) -> bool {
        false
    }
}

impl Site for Door {
    fn new(plan: &Plan, _: &Env, _: IpAddr) -> Rc<Self> {
        // No system tables share it.
        let memtable_bytes = plan.options.memtable_bytes / 2;
        let options = Options { memtable_bytes, ..plan.options.clone() };
        let schema = if plan.compacts { tables::schema() } else { tables::schema_at_rest() };
        Door::new(options, plan.auto_snapshot, schema)
    }

    fn start(self: &Rc<Self>, world: &World, node: NodeId, shards: usize) {
        let door = Rc::clone(self);
        world.start(node, shards, move |env, mesh: Mesh<Message>| Rc::clone(&door).run(env, mesh));
    }

    fn is_serving(&self) -> bool {
        self.serving.get()
    }

    async fn prepare(&self) -> Result<(), Failed> {
        Ok(())
    }

    fn closed(&self) {
        self.serving.set(false);
        self.queues.borrow_mut().clear();
        self.node.borrow_mut().take();
    }

    fn failure(&self) -> Option<String> {
        self.node.borrow().as_ref().and_then(|node| node.failure()).map(|error| error.to_string())
    }
}
