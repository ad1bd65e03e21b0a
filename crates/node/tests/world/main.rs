//! Whole nodes in simulated worlds, asked at their coordinators.

mod atomic;
mod counters;
mod directories;
mod disk;
mod end;
mod failure;
mod guarded;
mod hints;
mod join;
mod key_stores;
mod leave;
mod pages;
mod plan;
mod prepared;
mod repair;
mod replanned;
mod ring;
mod ring_data;
mod ring_verbs;
mod saved_caches;
mod schema_ring;
mod speculation;
mod story;
mod streams;
mod traced;
mod truncate;

use std::cell::{OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use cluster::{Answer, Request, Shard};
use config::{CommitLogSync, Config};
use env::sim::{NodeId, World};
use env::{Class, Env, Mesh};
use node::{Message, Node, run_shard};
use protocol::{ErrorResponse, QueryOptions, Version};
use server::ConnectionLimits;

/// Time in the world that anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

fn config() -> Config {
    let mut config = Config::default();
    let settings = [
        "data_dir=/d",
        "listen_address=10.0.0.1",
        "rpc_address=10.0.0.1",
        "open_without_authentication=true",
        // what is flushed is read from files
        "memtable_keeps_flushed=false",
        // a world keeps all segments that it ever had
        "commitlog_segment_size=1MiB",
    ];
    config.set_all(settings).unwrap();
    // what is acknowledged survives a power cut
    config.commitlog_sync = CommitLogSync::Batch;
    config
}

/// A client of one shard.
#[derive(Clone)]
struct Client {
    env: Env,
    node: Rc<Shard>,
    whole: Weak<Node>,
}

impl Client {
    fn request<'a>(&self, options: &'a QueryOptions<'a>) -> Request<'a> {
        let deadline = self.env.now() + Duration::from_secs(10);
        Request {
            keyspace: None,
            version: Version::V5,
            options,
            deadline,
            user: None,
            tracing: None,
            guard: OnceCell::new(),
            observed: None,
            is_shard_aware: false,
        }
    }

    async fn try_run(&self, text: &str) -> Result<Answer, ErrorResponse> {
        self.try_at(protocol::Consistency::One, text).await
    }

    async fn try_at(
        &self,
        consistency: protocol::Consistency,
        text: &str,
    ) -> Result<Answer, ErrorResponse> {
        let options = QueryOptions { consistency, ..QueryOptions::default() };
        self.node.coordinator().query(text, self.request(&options)).await.result
    }

    /// One statement: the number of its rows and their cells.
    async fn run(&self, text: &str) -> (u32, Vec<u8>) {
        match self.try_run(text).await {
            Ok(Answer::Rows(page)) => (page.rows, page.cells),
            Ok(_) => (0, Vec::new()),
            Err(error) => panic!("{text}: {}", error.message),
        }
    }
}

type Serving = Rc<RefCell<Option<Client>>>;

/// A node whose first coordinator is there to be asked once it serves.
fn start(world: &World, shards: usize, config: Config) -> (NodeId, Serving) {
    start_at(world, "10.0.0.1", shards, config)
}

/// The same at an address.
fn start_at(world: &World, ip: &str, shards: usize, config: Config) -> (NodeId, Serving) {
    let (node, serving) = launch(world, ip, shards, config);
    await_serving(world, &serving);
    (node, serving)
}

/// Starts a node, and does not wait for it.
fn launch(world: &World, ip: &str, shards: usize, config: Config) -> (NodeId, Serving) {
    let node = world.node(ip.parse().unwrap());
    let serving = Serving::default();
    let (theirs, config) = (Rc::clone(&serving), Arc::new(config));
    world.start(node, shards, move |env: Env, mesh: Mesh<Message>| {
        let (serving, config) = (Rc::clone(&theirs), Arc::clone(&config));
        run_shard(env.clone(), mesh, config, ConnectionLimits::new(), move |node, _| {
            *serving.borrow_mut() =
                Some(Client { env, node: Rc::clone(node.shard()), whole: Rc::downgrade(node) });
        })
    });
    (node, serving)
}

fn await_serving(world: &World, serving: &Serving) {
    world.run_until(|| serving.borrow().is_some(), PATIENCE).unwrap();
}

/// Lets a client do something, and waits for what comes of it.
fn told<T: 'static>(
    world: &World,
    serving: &Serving,
    story: impl AsyncFnOnce(Client) -> T + 'static,
) -> T {
    let client = serving.borrow().clone().unwrap();
    let result = Rc::new(RefCell::new(None));
    let theirs = Rc::clone(&result);
    client.env.clone().spawn(Class::Statement, async move {
        *theirs.borrow_mut() = Some(story(client).await);
    });
    world.run_until(|| result.borrow().is_some(), PATIENCE).unwrap();
    result.take().unwrap()
}

/// Runs statements one after another on a node.
fn all(world: &World, serving: &Serving, texts: Vec<String>) -> Vec<(u32, Vec<u8>)> {
    told(world, serving, async move |client| {
        let mut results = Vec::new();
        for text in texts {
            results.push(client.run(&text).await);
        }
        results
    })
}
