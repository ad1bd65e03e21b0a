//! Runs each test in both makes of `env`: once on real loopback sockets, then in simulated worlds.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use env::real::{RealOptions, run};
use env::sim::{World, WorldOptions};
use env::{Env, Mesh, StreamHandle};
use metrics::{Name, Reading, Registry};
use server::{ConnectionLimits, EventHub, Server, Settings};

use crate::client::Client;
use crate::mock::Mock;

const SEEDS: u64 = 8;

/// What the shards of a test say to each other.
pub enum Msg {
    Address(SocketAddr, SocketAddr),
    Stream(StreamHandle),
    Done,
}

/// Runs `main` on every shard of a real node, then of simulated ones.
pub fn both<F, Fut>(shards: usize, main: F)
where
    F: Fn(Env, Mesh<Msg>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = io::Result<()>> + 'static,
{
    real(shards, main.clone());
    for seed in 0..SEEDS {
        let world = World::new(seed, WorldOptions::default());
        let node = world.node("10.0.0.1".parse().unwrap());
        world.start(node, shards, main.clone());
        world.run_until(|| !world.is_up(node), Duration::from_secs(600)).unwrap();
        let exits = world.exits(node);
        assert!(exits.iter().all(Result::is_ok), "seed {seed}: {exits:?}");
        assert_eq!(exits.len(), shards);
    }
}

/// Runs `main` on every shard of a real node.
pub fn real<F, Fut>(shards: usize, main: F)
where
    F: Fn(Env, Mesh<Msg>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = io::Result<()>> + 'static,
{
    let options =
        RealOptions { shards, signals: false, ring_entries: 256, ..RealOptions::default() };
    run(options, main).unwrap();
}

/// A server, its coordinator and its clients on one shard.
pub struct Place {
    pub env: Env,
    pub server: Server,
    pub mock: Rc<Mock>,
    pub hub: EventHub,
    pub registry: Registry,
}

pub fn settings() -> Settings {
    Settings::new("127.0.0.1:0".parse().unwrap())
}

impl Place {
    pub fn new(env: &Env, settings: Settings) -> Self {
        Self::with(env, settings, Mock::default())
    }

    pub fn with(env: &Env, settings: Settings, mock: Mock) -> Self {
        let hub = EventHub::new();
        let registry = Registry::new(0);
        let mock = Rc::new(Mock { env: Some(env.clone()), hub: hub.clone(), ..mock });
        let limits = ConnectionLimits::new();
        let coordinator = Rc::clone(&mock);
        let server =
            Server::start(env, settings, coordinator, hub.clone(), &registry, limits, None)
                .unwrap();
        Self { env: env.clone(), server, mock, hub, registry }
    }

    pub async fn connect(&self) -> Client {
        Client::connect(&self.env, self.server.address()).await
    }

    /// A counter or gauge.
    pub fn metric(&self, kind: &'static str, name: &'static str) -> i64 {
        match &self.registry.snapshot().samples[&Name::new(kind, name)].reading {
            Reading::Counter(n) | Reading::Peak(n) => *n as i64,
            Reading::Gauge(n) => *n,
            Reading::Histogram(_) => panic!("{name} is a histogram"),
        }
    }

    pub fn client_metric(&self, name: &'static str) -> i64 {
        self.metric("Client", name)
    }

    /// Waits until `done`; a test that waits for ever fails.
    pub async fn until(&self, done: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            if done(self) {
                return;
            }
            self.env.sleep(Duration::from_millis(1)).await;
        }
        panic!("nothing came of it");
    }
}
