//! `insn PATH COUNT`: a node of one shard in a simulated world does COUNT operations of a path,
//! called in process; `insn` alone names the paths.
//!
//! An operation is a frame of EXECUTE or BATCH that is parsed and run, down to the cells of its
//! page. What a socket costs is not in it. All of them are done within [`counted`], whose
//! instructions `cargo xtask bench insn` has valgrind count. Printed are the allocations and
//! allocated bytes per operation.

mod heap;
mod path;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Answer, Coordinator, Request};
use config::Config;
use env::sim::{World, WorldOptions};
use env::{Class, Env, Instant, Mesh};
use node::{Message, run_shard};
use path::{Loaded, PATHS, Path, Shape, TABLES};
use protocol::client::{self, BatchItem, BatchRequest, BoundValue, Call, Parameters};
use protocol::{
    Decoder, Direction, Limits, Outcome, QueryOptions, Request as Frame, Started, Version,
};
use server::ConnectionLimits;
use storage::Engine;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// Operations before those that are counted, so that caches and buffers are as in the long run.
const WARM: u64 = 1000;
/// Of paths over many rows fewer: rows that are gone over before. With those that are counted they
/// fit into a segment of the log, which the simulated disk takes 71 million instructions to make.
const WARM_ROWS: u64 = 8_000;
/// Time in the world between the loading and the operations, in which the node ends what the
/// loading gave rise to: else what a flush takes would be counted as a part of them.
const REST: Duration = Duration::from_secs(60);
/// Time in the world that anything may take.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Requests of a path, over and over.
const FRAMES: u64 = 1000;

/// A frame of EXECUTE or BATCH.
fn frame(path: &Path, id: &[u8], number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let call = Call::new(Version::V4, 1);
    let plain = Parameters { skip_metadata: true, ..Parameters::default() };
    let values = |n: u64| (path.values)(n, path.rows);
    match path.shape {
        Shape::One => {
            let parameters = Parameters { values: values(number), ..plain };
            client::execute(&mut bytes, call, id, &[], &parameters);
        }
        Shape::Page => {
            let page_size = Some(path.rows as i32);
            let parameters = Parameters { values: values(number), page_size, ..plain };
            client::execute(&mut bytes, call, id, &[], &parameters);
        }
        Shape::Batch(kind) => {
            let item = |n| (BatchItem::Prepared(id.to_vec()), values(number + n * 37));
            let items = (0..path.rows).map(item).collect();
            client::batch(&mut bytes, call, &BatchRequest { kind, items, parameters: plain });
        }
    }
    bytes
}

/// Is this the answer to expect?
fn check(path: &Path, answer: &Answer) {
    match answer {
        Answer::Void => assert!(!path.statement.starts_with("SELECT"), "no rows"),
        Answer::Rows(page) => assert_eq!(u64::from(page.rows), path.rows),
        _ => panic!("another answer"),
    }
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
        observed: None,
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
    let deadline = env.turn_now() + Duration::from_secs(12);
    let outcome = match Frame::parse(frame) {
        Ok(Frame::Execute { id, options, .. }) => {
            node.execute(id, request(&options, deadline)).await.0
        }
        Ok(Frame::Batch(batch)) => node.batch(&batch, request(&batch.options, deadline)).await,
        _ => panic!("neither EXECUTE nor BATCH"),
    };
    match outcome.result {
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

async fn load(env: &Env, node: &Rc<Coordinator>, decoder: &mut Decoder, path: &Path) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    text(env, node, &format!("CREATE KEYSPACE y WITH replication = {replication}")).await;
    for table in TABLES {
        text(env, node, &table.replace("{caching}", path.caching)).await;
    }
    let (statement, rows, values): (_, _, fn(u64) -> Vec<BoundValue>) = match path.loaded {
        Loaded::Nothing => return,
        Loaded::Rows | Loaded::Flushed => (path::INSERT, path::ROWS, |n| path::row(n, 1)),
        Loaded::Wide | Loaded::FlushedWide => (path::INSERT_WIDE, path::WIDE_ROWS, path::wide_row),
    };
    let id = prepare(node, statement).await;
    for number in 0..rows {
        let mut bytes = Vec::new();
        let parameters = Parameters { values: values(number), ..Parameters::default() };
        client::execute(&mut bytes, Call::new(Version::V4, 1), &id, &[], &parameters);
        once(env, node, decoder, &bytes).await;
    }
}

/// A node that serves.
#[derive(Clone)]
struct Served {
    coordinator: Rc<Coordinator>,
    engine: Rc<Engine>,
}

impl Served {
    async fn flush(&self, table: &str) {
        let schema = self.engine.schema();
        let table = schema.table("y", table).map(|table| table.id);
        let (Some(table), Some(node)) = (table, self.engine.node()) else { panic!("no table") };
        if let Err(error) = node.flush(table).await {
            panic!("{error}");
        }
    }
}

/// Ready to do a path's operations.
struct Ready {
    env: Env,
    node: Rc<Coordinator>,
    decoder: Decoder,
    frames: Vec<Vec<u8>>,
}

impl Ready {
    /// Loads and warms up.
    async fn make(env: Env, node: Served, path: Path) -> Self {
        let mut decoder = Decoder::reading(Direction::Request, Limits::default());
        decoder.start(Started { version: Version::V4, compression: None });
        load(&env, &node.coordinator, &mut decoder, &path).await;
        match path.loaded {
            Loaded::Flushed => node.flush("usertable").await,
            Loaded::FlushedWide => node.flush("wide").await,
            Loaded::Nothing | Loaded::Rows | Loaded::Wide => {}
        }
        env.sleep(REST).await;
        let node = node.coordinator;
        let id = prepare(&node, path.statement).await;
        let frames = (0..FRAMES).map(|n| frame(&path, &id, n * 7919)).collect();
        let mut ready = Self { env, node, decoder, frames };
        ready.operations(&path, WARM.min(WARM_ROWS / path.rows)).await;
        ready
    }

    async fn operations(&mut self, path: &Path, count: u64) {
        for n in 0..count {
            let Some(bytes) = self.frames.get((n % FRAMES) as usize) else { return };
            check(path, &once(&self.env, &self.node, &mut self.decoder, bytes).await);
        }
    }
}

/// Lets the world run until something is done. This is what is counted: nothing else is in it.
#[inline(never)]
fn counted(world: &World, is_done: &Cell<bool>) {
    if let Err(error) = world.run_until(|| is_done.get(), PATIENCE) {
        panic!("{error}");
    }
}

/// What the operations allocate together.
fn run(path: Path, count: u64) -> heap::Allocated {
    let mut config = Config::default();
    for setting in [
        "data_dir=/d",
        "listen_address=10.0.0.1",
        "rpc_address=10.0.0.1",
        "open_without_authentication=true",
        "row_cache_size=64MiB",
        // what is flushed is read from files
        "memtable_keeps_flushed=false",
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
                let coordinator = Rc::clone(node.shard().coordinator());
                *serving.borrow_mut() = Some((env, Served { coordinator, engine }));
            },
        )
    });
    let served = world.run_until(|| serving.borrow().is_some(), PATIENCE);
    let found = serving.borrow().clone();
    let (Ok(()), Some((env, node))) = (served, found) else { panic!("the node does not serve") };
    let ready: Rc<RefCell<Option<Ready>>> = Rc::default();
    let theirs = Rc::clone(&ready);
    env.clone().spawn(Class::Statement, async move {
        let made = Ready::make(env, node, path).await;
        *theirs.borrow_mut() = Some(made);
    });
    if let Err(error) = world.run_until(|| ready.borrow().is_some(), PATIENCE) {
        panic!("{error}");
    }
    let Some(mut ready) = ready.take() else { panic!("not ready") };
    let is_done = Rc::new(Cell::new(false));
    let theirs = Rc::clone(&is_done);
    let before = heap::Allocated::so_far();
    ready.env.clone().spawn(Class::Statement, async move {
        ready.operations(&path, count).await;
        theirs.set(true);
    });
    counted(&world, &is_done);
    heap::Allocated::so_far() - before
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() {
        PATHS.iter().for_each(|path| println!("{} {}", path.name, path.rows));
        return;
    }
    let named = |name: &String| PATHS.into_iter().find(|path| path.name == name);
    let Some(path) = args.first().and_then(named) else { panic!("no such path") };
    let count = args.get(1).and_then(|n| n.parse::<u64>().ok()).filter(|n| *n > 0);
    let Some(count) = count else { panic!("insn PATH COUNT") };
    let heap::Allocated { times, bytes } = run(path, count);
    let each = |n: u64| n as f64 / count as f64;
    println!("allocations {:.2} bytes {:.0}", each(times), each(bytes));
}
