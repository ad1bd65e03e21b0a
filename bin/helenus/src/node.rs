//! What each shard runs, from its start to its end.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Coordinator, Identity, first_schema};
use config::Config;
use env::sync::Notify;
use env::{Class, Env, Mesh};
use metrics::Registry;
use protocol::Event;
use server::{ConnectionLimits, EventHub, Server};
use storage::shards::Shards;
use storage::{Engine, Replay};

use crate::adapter::Handler;
use crate::error::NodeError;
use crate::message::Message;
use crate::settings::{metrics_address, server_settings, storage_options};

/// How long requests in flight may take when the node ends.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);

/// What the first shard tells when the node serves.
#[derive(Debug)]
pub struct Ready {
    /// Where clients connect.
    pub address: SocketAddr,
    /// What the commit log gave back.
    pub replay: Replay,
    /// By how much the clock stood behind the last timestamp reserved.
    pub clock_behind: Duration,
}

/// One shard of a node.
pub struct Node {
    env: Env,
    config: Arc<Config>,
    mesh: Mesh<Message>,
    engine: Rc<Engine>,
    coordinator: OnceCell<Rc<Coordinator>>,
    server: OnceCell<Server>,
    hub: EventHub,
    registry: Rc<Registry>,
    limits: ConnectionLimits,
    /// Jobs for the coordinator that came before it was there.
    early: RefCell<Vec<storage::shards::Job<Rc<Coordinator>>>>,
    opened: Notify,
    identity: OnceCell<Arc<Identity>>,
    drained: Notify,
    is_drained: std::cell::Cell<bool>,
}

/// Runs one shard of a node until it is told to end. `ready` is called on the first shard once it serves.
///
/// # Errors
/// If the node cannot start, or not end in order.
pub async fn run_shard(
    env: Env,
    mesh: Mesh<Message>,
    config: Arc<Config>,
    limits: ConnectionLimits,
    ready: impl FnOnce(&Rc<Node>, &Ready),
) -> Result<(), NodeError> {
    let storage_mesh = mesh.clone();
    let shards = Shards::new(&env, move |to, job| storage_mesh.send(to, Message::Storage(job)));
    let engine = Engine::new(&env, storage_options(&config), shards, first_schema());
    let registry = Rc::new(Registry::new(env.shard() as u32));
    let node = Rc::new(Node {
        env: env.clone(),
        config,
        mesh,
        engine,
        coordinator: OnceCell::new(),
        server: OnceCell::new(),
        hub: EventHub::new(),
        registry,
        limits,
        early: RefCell::default(),
        opened: Notify::new(),
        identity: OnceCell::new(),
        drained: Notify::new(),
        is_drained: std::cell::Cell::new(false),
    });
    env.spawn(Class::Statement, Rc::clone(&node).dispatch());
    let result = match env.shard() {
        0 => node.run_first(ready).await,
        _ => node.run_other().await,
    };
    if result.is_err() {
        env.terminate();
    }
    result
}

impl Node {
    /// This shard's engine.
    pub fn engine(&self) -> &Rc<Engine> {
        &self.engine
    }

    /// This shard's coordinator, once the node is open.
    pub fn coordinator(&self) -> Option<&Rc<Coordinator>> {
        self.coordinator.get()
    }

    /// This shard's metrics.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Hands what other shards send to the layer that it is for.
    async fn dispatch(self: Rc<Self>) {
        loop {
            let (_, message) = self.mesh.recv().await;
            match message {
                Message::Storage(job) => job(&self.engine),
                Message::Cluster(job) => match self.coordinator.get() {
                    Some(coordinator) => job(coordinator),
                    None => self.early.borrow_mut().push(job),
                },
                Message::Connection(handle) => {
                    if let Some(server) = self.server.get() {
                        // a connection that is gone already needs no answer
                        let _ = server.adopt(handle);
                    }
                }
                Message::Opened(identity) => {
                    let _ = self.identity.set(identity);
                    self.opened.notify_all();
                }
                Message::Drained => {
                    self.is_drained.set(true);
                    self.drained.notify_all();
                }
            }
        }
    }

    async fn run_first(
        self: &Rc<Self>,
        ready: impl FnOnce(&Rc<Self>, &Ready),
    ) -> Result<(), NodeError> {
        let _lock = self.prepare_directories().await?;
        let booted = cluster::boot(&self.engine, &self.config).await?;
        let identity = Arc::new(booted.identity);
        self.start_coordinator(&identity);
        if let Some(coordinator) = self.coordinator.get() {
            coordinator.own_schema(booted.state);
        }
        for shard in 1..self.env.shards() {
            self.mesh.send(shard, Message::Opened(Arc::clone(&identity)));
        }
        let (clock, clock_env) = (Rc::new(booted.clock), self.env.clone());
        let keeper = Rc::clone(&clock);
        let keeper = self.env.spawn_task(Class::Background, async move {
            // without a reserve no timestamp is safe
            if keeper.keep().await.is_err() {
                clock_env.terminate();
            }
        });
        let address = self.start_server()?;
        let _metrics = self.serve_metrics()?;
        let (replay, clock_behind) = (booted.replay, booted.clock_behind);
        ready(self, &Ready { address, replay, clock_behind });
        self.env.terminated().await;
        self.stop_server().await;
        let drained = match self.engine.node() {
            Some(node) => node.drain().await,
            None => Ok(()),
        };
        for shard in 1..self.env.shards() {
            self.mesh.send(shard, Message::Drained);
        }
        drained?;
        keeper.cancel().await;
        Ok(clock.close().await?)
    }

    async fn run_other(self: &Rc<Self>) -> Result<(), NodeError> {
        while self.identity.get().is_none() {
            if self.env.is_terminated() {
                return Ok(());
            }
            let opened = self.opened.notified();
            let ended = self.env.terminated();
            either(opened, ended).await;
        }
        if let Some(identity) = self.identity.get() {
            self.start_coordinator(&Arc::clone(identity));
        }
        self.start_server()?;
        self.env.terminated().await;
        self.stop_server().await;
        // The first shard still needs this one to drain.
        while !self.is_drained.get() {
            self.drained.notified().await;
        }
        Ok(())
    }

    /// Makes the directories and takes the data directory for this process.
    async fn prepare_directories(&self) -> Result<env::LockGuard, NodeError> {
        let config = &self.config;
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| NodeError::Directory { path, source }
        };
        let all = config.data_file_directories.iter().chain([
            &config.data_dir,
            &config.commitlog_directory,
            &config.hints_directory,
            &config.saved_caches_directory,
        ]);
        for directory in all {
            self.env.create_dir_all(directory).await.map_err(failed(directory))?;
            let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
            if let Some(parent) = parent {
                self.env.sync_dir(parent).await.map_err(failed(parent))?;
            }
        }
        let lock = config.data_dir.join("lock");
        match self.env.lock_file(&lock).await {
            Ok(guard) => Ok(guard),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                Err(NodeError::Locked { path: config.data_dir.clone() })
            }
            Err(source) => Err(NodeError::Directory { path: lock, source }),
        }
    }

    fn start_coordinator(self: &Rc<Self>, identity: &Arc<Identity>) {
        let mesh = self.mesh.clone();
        let shards = Shards::new(&self.env, move |to, job| mesh.send(to, Message::Cluster(job)));
        let hub = self.hub.clone();
        let coordinator = Coordinator::new(
            &self.engine,
            Arc::clone(&self.config),
            Arc::clone(identity),
            shards,
            Rc::clone(&self.registry),
            move |change| hub.publish(&Event::Schema(change.clone())),
        );
        let _ = self.coordinator.set(Rc::clone(&coordinator));
        for job in self.early.take() {
            job(&coordinator);
        }
    }

    fn start_server(self: &Rc<Self>) -> Result<SocketAddr, NodeError> {
        let settings = server_settings(&self.config)?;
        let address = settings.listen;
        let Some(coordinator) =
            self.coordinator.get().filter(|_| self.config.native_transport.start)
        else {
            return Ok(address);
        };
        let mesh = self.mesh.clone();
        let hand_over: server::HandOver = Rc::new(move |shard, handle| {
            mesh.send(shard, Message::Connection(handle));
        });
        let server = Server::start(
            &self.env,
            settings,
            Rc::new(Handler(Rc::clone(coordinator))),
            self.hub.clone(),
            &self.registry,
            self.limits.clone(),
            Some(hand_over),
        );
        let server = server.map_err(|source| NodeError::Listen { address, source })?;
        let address = server.address();
        let _ = self.server.set(server);
        Ok(address)
    }

    /// Serves the metrics of all shards, labelled by shard.
    fn serve_metrics(&self) -> Result<Option<admin::http::Endpoint>, NodeError> {
        let Some(address) = metrics_address(&self.config)? else { return Ok(None) };
        let Some(coordinator) = self.coordinator.get().cloned() else { return Ok(None) };
        let body = async move || metrics::prometheus::write(&coordinator.metrics().await);
        Ok(Some(admin::http::serve(&self.env, address, &self.registry, body)?))
    }

    async fn stop_server(&self) {
        if let Some(server) = self.server.get() {
            server.drain(DRAIN_PATIENCE).await;
        }
    }
}

/// Waits for the first of two.
async fn either(a: impl Future<Output = ()>, b: impl Future<Output = ()>) {
    let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
    std::future::poll_fn(move |cx| match a.as_mut().poll(cx) {
        std::task::Poll::Ready(()) => std::task::Poll::Ready(()),
        std::task::Poll::Pending => b.as_mut().poll(cx),
    })
    .await;
}
