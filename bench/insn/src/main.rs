//! `insn KIND COUNT`: a node of one shard in a simulated world does COUNT operations of a kind, called in process.
//!
//! A fixed number of instructions goes into the start and the loading; what an operation takes is the difference of
//! two runs with other counts, as `cargo xtask bench insn` makes them. An operation is a frame of EXECUTE that is
//! parsed and run, down to the cells of its page. What a socket costs is not in it. Printed are the allocations and
//! allocated bytes per operation.

use std::alloc::System;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Answer, Coordinator, Request};
use config::Config;
use env::sim::{World, WorldOptions};
use env::{Class, Env, Instant, Mesh};
use helenus::{Message, run_shard};
use protocol::client::{self, BoundValue, Call, Parameters};
use protocol::{
    Decoder, Direction, Limits, Outcome, QueryOptions, Request as Frame, Started, Version,
};
use server::ConnectionLimits;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use storage::Engine;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rows of the table, each with YCSB's ten fields of 100 bytes.
const ROWS: u64 = 1000;
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
/// Operations before those that are counted, so that caches and buffers are as in the long run.
const WARM: u64 = 1000;
/// Time in the world between the loading and the operations, in which the node ends what the loading gave rise to: else what a
/// flush takes would be counted as a part of them.
const REST: Duration = Duration::from_secs(60);
/// Time in the world that anything may take.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What is done, over and over.
#[derive(Clone, Copy)]
enum Kind {
    /// From the memtable.
    Read,
    /// From an SSTable whose chunks are in memory.
    Disk,
    /// The same, where places of keys are not kept.
    Search,
    /// From the cache of rows.
    Rows,
    Update,
}

fn key(number: u64) -> BoundValue {
    BoundValue::Bytes(format!("user{:019}", number % ROWS).into_bytes())
}

fn field(number: u64) -> BoundValue {
    BoundValue::Bytes(vec![b'a' + (number % 26) as u8; FIELD_BYTES])
}

impl Kind {
    fn statement(self) -> &'static str {
        match self {
            Self::Read | Self::Disk | Self::Search | Self::Rows => {
                "SELECT * FROM y.usertable WHERE y_id = ?"
            }
            Self::Update => "UPDATE y.usertable SET field3 = ? WHERE y_id = ?",
        }
    }

    fn values(self, number: u64) -> Vec<BoundValue> {
        match self {
            Self::Read | Self::Disk | Self::Search | Self::Rows => vec![key(number)],
            Self::Update => vec![field(number), key(number)],
        }
    }

    /// What is cached of the table.
    fn caching(self) -> &'static str {
        match self {
            Self::Search => "{'keys': 'NONE', 'rows_per_partition': 'NONE'}",
            Self::Rows => "{'keys': 'ALL', 'rows_per_partition': 'ALL'}",
            Self::Read | Self::Disk | Self::Update => {
                "{'keys': 'ALL', 'rows_per_partition': 'NONE'}"
            }
        }
    }

    /// Is this the answer to expect?
    fn check(self, answer: &Answer) {
        match (self, answer) {
            (Self::Update, Answer::Void) => {}
            (Self::Update, _) => panic!("another answer"),
            (_, Answer::Rows(page)) => {
                assert_eq!(page.rows, 1);
                assert!(page.cells.len() > FIELDS * FIELD_BYTES);
            }
            _ => panic!("another answer"),
        }
    }
}

/// A frame of EXECUTE.
fn frame(id: &[u8], values: Vec<BoundValue>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let parameters = Parameters { values, skip_metadata: true, ..Parameters::default() };
    client::execute(&mut bytes, Call::new(Version::V4, 1), id, &[], &parameters);
    bytes
}

/// A request of a node where nobody has to log in, not traced.
fn request<'a>(options: &'a QueryOptions<'a>, deadline: Instant) -> Request<'a> {
    Request {
        keyspace: None,
        version: Version::V4,
        options,
        deadline,
        user: None,
        tracing: None,
        guard: OnceCell::new(),
        is_shard_aware: false,
    }
}

async fn text(env: &Env, node: &Rc<Coordinator>, text: &str) {
    let options = QueryOptions::default();
    let deadline = env.now() + PATIENCE;
    let request = request(&options, deadline);
    if let Err(error) = node.query(text, request).await.result {
        panic!("{text}: {}", error.message);
    }
}

/// One operation: from the bytes of a frame to the answer.
async fn once(env: &Env, node: &Rc<Coordinator>, decoder: &mut Decoder, bytes: &[u8]) -> Answer {
    let Outcome::Frame(frame) = decoder.next(bytes).outcome else { panic!("no whole frame") };
    let Ok(Frame::Execute { id, options, .. }) = Frame::parse(frame) else { panic!("no EXECUTE") };
    let deadline = env.turn_now() + Duration::from_secs(12);
    let request = request(&options, deadline);
    match node.execute(id, request).await.0.result {
        Ok(answer) => answer,
        Err(error) => panic!("{}", error.message),
    }
}

async fn prepare(node: &Rc<Coordinator>, statement: &str) -> Vec<u8> {
    match node.prepare(statement, None, false, None, None, &mut Vec::new()).await {
        Ok(info) => info.id.to_vec(),
        Err(error) => panic!("{statement}: {}", error.message),
    }
}

async fn load(env: &Env, node: &Rc<Coordinator>, decoder: &mut Decoder, kind: Kind) {
    text(
        env,
        node,
        "CREATE KEYSPACE y WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    )
    .await;
    let names: Vec<String> = (0..FIELDS).map(|n| format!("field{n}")).collect();
    let columns: String = names.iter().map(|name| format!(", {name} text")).collect();
    let caching = kind.caching();
    let table = format!(
        "CREATE TABLE y.usertable (y_id text PRIMARY KEY{columns}) WITH caching = {caching}"
    );
    text(env, node, &table).await;
    let marks = ", ?".repeat(FIELDS);
    let names = names.join(", ");
    let insert = format!("INSERT INTO y.usertable (y_id, {names}) VALUES (?{marks})");
    let id = prepare(node, &insert).await;
    for row in 0..ROWS {
        let fields = (0..FIELDS as u64).map(|n| field(row + n));
        once(env, node, decoder, &frame(&id, std::iter::once(key(row)).chain(fields).collect()))
            .await;
    }
}

/// A node that serves.
#[derive(Clone)]
struct Served {
    coordinator: Rc<Coordinator>,
    engine: Rc<Engine>,
}

impl Served {
    async fn flush(&self) {
        let schema = self.engine.schema();
        let table = schema.table("y", "usertable").map(|table| table.id);
        let (Some(table), Some(node)) = (table, self.engine.node()) else { panic!("no table") };
        if let Err(error) = node.flush(table).await {
            panic!("{error}");
        }
    }
}

/// Loads, warms up, does the operations; allocations and bytes of the latter together.
async fn measure(env: Env, node: Served, kind: Kind, count: u64) -> (usize, usize) {
    let mut decoder = Decoder::reading(Direction::Request, Limits::default());
    decoder.start(Started { version: Version::V4, compression: None });
    load(&env, &node.coordinator, &mut decoder, kind).await;
    if matches!(kind, Kind::Disk | Kind::Search | Kind::Rows) {
        node.flush().await;
    }
    env.sleep(REST).await;
    let node = node.coordinator;
    let id = prepare(&node, kind.statement()).await;
    let frames: Vec<_> = (0..ROWS).map(|n| frame(&id, kind.values(n * 7919))).collect();
    let mut stats = None;
    for n in 0..WARM + count {
        if n == WARM {
            stats = Some(Region::new(ALLOCATOR));
        }
        let bytes = &frames[(n % ROWS) as usize];
        kind.check(&once(&env, &node, &mut decoder, bytes).await);
    }
    let change = stats.map(|region| region.change()).unwrap_or_default();
    (change.allocations + change.reallocations, change.bytes_allocated)
}

fn run(kind: Kind, count: u64) -> (usize, usize) {
    let mut config = Config::default();
    for setting in [
        "data_dir=/d",
        "listen_address=10.0.0.1",
        "rpc_address=10.0.0.1",
        "open_without_authentication=true",
        "row_cache_size=64MiB",
    ] {
        if let Err(error) = config.set(setting) {
            panic!("{error}");
        }
    }
    let config = Arc::new(config);
    let world = World::new(1, WorldOptions::default());
    let Ok(address) = "10.0.0.1".parse() else { panic!("an address") };
    let node = world.node(address);
    let serving: Rc<RefCell<Option<(Env, Served)>>> = Rc::default();
    let theirs = Rc::clone(&serving);
    world.start(node, 1, move |env: Env, mesh: Mesh<Message>| {
        let serving = Rc::clone(&theirs);
        run_shard(
            env.clone(),
            mesh,
            Arc::clone(&config),
            ConnectionLimits::new(),
            move |node, _| {
                let engine = Rc::clone(node.engine());
                let served = |it: &Rc<_>| (env, Served { coordinator: Rc::clone(it), engine });
                *serving.borrow_mut() = node.coordinator().map(served);
            },
        )
    });
    let served = world.run_until(|| serving.borrow().is_some(), PATIENCE);
    let found = serving.borrow().clone();
    let (Ok(()), Some((env, node))) = (served, found) else { panic!("the node does not serve") };
    let done = Rc::new(Cell::new(None));
    let theirs = Rc::clone(&done);
    env.clone().spawn(Class::Statement, async move {
        theirs.set(Some(measure(env, node, kind, count).await));
    });
    match world.run_until(|| done.get().is_some(), PATIENCE) {
        Ok(()) => done.get().unwrap_or_default(),
        Err(error) => panic!("{error}"),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kind = match args.first().map(String::as_str) {
        Some("read") => Kind::Read,
        Some("disk") => Kind::Disk,
        Some("search") => Kind::Search,
        Some("rows") => Kind::Rows,
        Some("update") => Kind::Update,
        _ => panic!("insn read|disk|search|rows|update COUNT"),
    };
    let Some(count) = args.get(1).and_then(|n| n.parse::<u64>().ok()).filter(|n| *n > 0) else {
        panic!("insn read|disk|search|rows|update COUNT");
    };
    let (allocations, bytes) = run(kind, count);
    let each = |n: usize| n as f64 / count as f64;
    println!("allocations {:.2} bytes {:.0}", each(allocations), each(bytes));
}
