//! What each shard runs, from its start to its end.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Identity, Shard, first_schema};
use config::Config;
use env::sync::{Notify, Semaphore};
use env::{Class, Env, Instant, ListenOptions, Mesh, Stats, TcpListener};
use metrics::{Counter, Name, Registry, Unit};
use schema::TableId;
use server::{ConnectionLimits, EventHub, Server};
use storage::shards::{Components, HasShards, Job, Shards, Stopping};
use storage::{CacheKind, Engine, Replay};
use tls::Tls;

use crate::adapter::Handler;
use crate::error::NodeError;
use crate::memory::Memory;
use crate::message::Message;
use crate::operator::Operations;
use crate::saved_caches::SavedCaches;
use crate::settings::{metrics_address, server_settings, storage_options};
use crate::tls::{Of, tls_notes};
use crate::views::{CacheRates, Journal};

/// How often recent values of histograms lose weight.
const TICK: Duration = Duration::from_secs(1);
/// Who says what the log has.
const LOGGER: &str = "helenus.node";
/// Seconds in a minute, in which evictions are counted.
const MINUTE_SECONDS: u64 = 60;
/// How long after the start the sizes of tables are first estimated, and how often from then on
/// (Cassandra: 5 minutes).
const FIRST_ESTIMATES: Duration = Duration::from_secs(30);
const ESTIMATES: Duration = Duration::from_secs(60);
/// Bytes that a file with a password may have.
const MAX_PASSWORD_FILE: u64 = 4096;
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
    /// Are clients served at `address` (`start_native_transport`)?
    pub serves_clients: bool,
    /// What the operator should know: a line each.
    pub notes: Vec<String>,
}

/// Says which indexes there are, since scans stand in for them.
fn indexes_note(schema: &schema::Schema) -> Option<String> {
    let keyspaces = schema.keyspaces().values();
    let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
    let names = tables.flat_map(|table| {
        table.legacy_indexes().map(move |(index, _)| format!("{}.{}", table.keyspace, index.name))
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| {
        format!(
            "this release builds no secondary indexes: a read by index scans the whole table; \
             indexes: {}",
            names.join(", ")
        )
    })
}

/// One shard of a node.
pub struct Node {
    env: Env,
    config: Arc<Config>,
    mesh: Mesh<Message>,
    engine: Rc<Engine>,
    shard: OnceCell<Rc<Shard>>,
    /// The shard's components, for jobs of other shards.
    components: OnceCell<Components>,
    server: RefCell<Option<Rc<Server>>>,
    hub: EventHub,
    /// TLS of clients, if there is any.
    tls: OnceCell<Tls>,
    peer_tls: OnceCell<Tls>,
    certificates_read: Counter,
    certificates_refused: Counter,
    pub(crate) registry: Registry,
    /// The loop's counters as of the last look at the metrics.
    pub(crate) observed: Rc<RefCell<Stats>>,
    /// The tables that the metrics show.
    pub(crate) shown_tables: RefCell<BTreeSet<TableId>>,
    /// When the node started.
    pub(crate) started: Instant,
    /// How often each of its caches is asked.
    pub(crate) cache_rates: Cell<[CacheRates; CacheKind::ALL.len()]>,
    /// On the first shard: what the node said.
    pub(crate) journal: Journal,
    shards: Shards<Rc<Node>>,
    limits: ConnectionLimits,
    /// Jobs for components that came before these were there.
    early: RefCell<Vec<Job<Components>>>,
    opened: Notify,
    identity: OnceCell<Arc<Identity>>,
    drained: Notify,
    is_drained: Cell<bool>,
    /// Whoever drains the node, or starts or stops serving clients, holds it.
    changing: Semaphore,
    /// On the first shard: nothing is left to drain.
    is_empty: Cell<bool>,
    /// On the first shard: the node is being drained.
    is_draining: Cell<bool>,
    pub(crate) saved_caches: SavedCaches,
    /// Listens for other nodes.
    pub(crate) peers_tasks: RefCell<Vec<env::Task<()>>>,
}

impl HasShards for Node {
    fn shards(&self) -> &Shards<Rc<Self>> {
        &self.shards
    }
}

/// Runs one shard of a node until it is told to end. `ready` is called on the first shard once it
/// serves.
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
    let engine = Engine::new(
        &env,
        storage_options(&config, env.machine_memory())?,
        shards,
        first_schema(&config),
    );
    let registry = Registry::sharing(env.shard() as u32, engine.weight().clone());
    let count = |name, help| registry.counter(Name::new("Client", name), Unit::Count, help);
    let node_mesh = mesh.clone();
    let shards = Shards::new(&env, move |to, job| node_mesh.send(to, Message::Node(job)));
    let node = Rc::new(Node {
        env: env.clone(),
        config,
        mesh,
        engine,
        shard: OnceCell::new(),
        components: OnceCell::new(),
        server: RefCell::default(),
        hub: EventHub::new(),
        tls: OnceCell::new(),
        peer_tls: OnceCell::new(),
        certificates_read: count("CertificatesRead", "Key stores reloaded after a change."),
        certificates_refused: count(
            "CertificatesRefused",
            "Key stores that changed and could not be read.",
        ),
        registry,
        observed: Rc::default(),
        shown_tables: RefCell::default(),
        started: env.now(),
        cache_rates: Cell::default(),
        journal: Journal::default(),
        shards,
        limits,
        early: RefCell::default(),
        opened: Notify::new(),
        identity: OnceCell::new(),
        drained: Notify::new(),
        is_drained: Cell::new(false),
        changing: Semaphore::new(1),
        is_empty: Cell::new(false),
        is_draining: Cell::new(false),
        saved_caches: SavedCaches::default(),
        peers_tasks: RefCell::default(),
    });
    node.watch_log();
    env.spawn(Class::Statement, Rc::clone(&node).dispatch());
    env.spawn(Class::Background, Rc::clone(&node).tick());
    let result = match env.shard() {
        0 => {
            let result = node.run_first(ready).await;
            // However it went: they wait for it.
            for shard in 1..env.shards() {
                node.mesh.send(shard, Message::Drained);
            }
            result
        }
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

    /// Its components, once the node is open.
    pub fn shard(&self) -> Option<&Rc<Shard>> {
        self.shard.get()
    }

    /// This shard's metrics.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The outside.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The way to the other shards.
    pub(crate) fn mesh(&self) -> &Mesh<Message> {
        &self.mesh
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Connections of clients, on all shards.
    pub(crate) fn connections(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// TLS on this shard.
    pub(crate) fn tls(&self, of: Of) -> Option<&Tls> {
        self.tls_cell(of).get()
    }

    pub(crate) fn set_tls(&self, of: Of, tls: Tls) {
        let _ = self.tls_cell(of).set(tls);
    }

    fn tls_cell(&self, of: Of) -> &OnceCell<Tls> {
        match of {
            Of::Clients => &self.tls,
            Of::Nodes => &self.peer_tls,
        }
    }

    /// Counts stores that were read anew, or could not be.
    pub(crate) fn count_certificates(&self, are_good: bool) {
        match are_good {
            true => self.certificates_read.inc(),
            false => self.certificates_refused.inc(),
        }
    }

    /// Runs `f` on a shard of the node.
    pub(crate) async fn on_shard<T: Send + 'static>(
        &self,
        shard: usize,
        f: impl FnOnce(&Rc<Self>) -> T + Send + 'static,
    ) -> Result<T, Stopping> {
        self.shards.call(shard, f).await
    }

    /// Runs `f` on the first shard some time soon, unless the node ends before.
    pub(crate) fn send_to_first(&self, f: impl FnOnce(&Rc<Self>) + Send + 'static) {
        self.shards.send(0, f);
    }

    /// Lets time pass for the metrics.
    async fn tick(self: Rc<Self>) {
        let (mut seconds, mut evicted) = (0u64, 0);
        loop {
            self.registry.tick(self.env.now().since(Instant::ZERO));
            let mut rates = self.cache_rates.get();
            for (rates, kind) in rates.iter_mut().zip(CacheKind::ALL) {
                let stats = self.engine.caches().stats(kind);
                *rates = rates.tick(stats.requests(), stats.hits);
            }
            self.cache_rates.set(rates);
            seconds += 1;
            if seconds % MINUTE_SECONDS == 0 && self.env.shard() == 0 {
                self.warn_of_evictions(&mut evicted);
            }
            self.env.sleep(TICK).await;
        }
    }

    /// Says how many prepared statements went to make room since it was last asked.
    fn warn_of_evictions(&self, before: &mut u64) {
        let now = self.shard.get().map_or(0, |shard| shard.statements().stats().1);
        let gone = now - std::mem::replace(before, now);
        if gone > 0 {
            let size = self.shard.get().map_or(0, |it| it.statements().limit()) >> 20;
            self.say("WARN", format!("{gone} prepared statements discarded in the last minute because cache limit reached ({size} MiB)"));
        }
    }

    /// Prepares what was prepared before the node ended. What cannot be read is prepared again by
    /// those who need it.
    async fn load_statements(&self) {
        let Some(shard) = self.shard.get() else { return };
        let began = self.env.now();
        match shard.statements().load().await {
            Ok(0) => {}
            Ok(count) => {
                let took = (self.env.now() - began).as_millis();
                self.say("INFO", format!("Preloaded {count} prepared statements in {took} ms"));
            }
            Err(error) => {
                self.say(
                    "WARN",
                    format!(
                        "cannot read system.prepared_statements, drivers prepare their statements \
                         again: {}",
                        error.message
                    ),
                );
            }
        }
    }

    /// Keeps the estimates of tables up to date; on the first shard.
    async fn estimate(self: Rc<Self>) {
        self.env.sleep(FIRST_ESTIMATES).await;
        loop {
            if let Some(shard) = self.shard.get() {
                // another time, if the log does not take it now
                let _ = shard.estimates().refresh().await;
            }
            self.env.sleep(ESTIMATES).await;
        }
    }

    /// Hands what other shards send to the layer that it is for.
    async fn dispatch(self: Rc<Self>) {
        loop {
            let (_, message) = self.mesh.recv().await;
            match message {
                Message::Storage(job) => job(&self.engine),
                Message::Cluster(job) => match self.components.get() {
                    Some(shard) => job(shard),
                    None => self.early.borrow_mut().push(job),
                },
                Message::Node(job) => job(&self),
                Message::Messaging(job) => {
                    if let Some(messenger) = self.shard.get().and_then(|it| it.peers().messenger())
                    {
                        job(messenger);
                    }
                }
                Message::Connection(handle) => {
                    let server = self.server.borrow().clone();
                    if let Some(server) = server {
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

    /// Lets each compaction that ends leave a row in `system.compaction_history`.
    fn keep_history(self: &Rc<Self>) {
        let Some(storage) = self.engine.node() else { return };
        let node = Rc::downgrade(self);
        storage.compactions().tell(Rc::new(move |record| {
            let Some(node) = node.upgrade() else { return };
            node.env.clone().spawn(Class::Background, async move {
                if let Some(shard) = node.shard() {
                    // Nobody misses a row that cannot be written.
                    let _ = shard.compactions().note(&record).await;
                }
            });
        }));
    }

    async fn run_first(
        self: &Rc<Self>,
        ready: impl FnOnce(&Rc<Self>, &Ready),
    ) -> Result<(), NodeError> {
        let address = server_settings(&self.config)?.listen;
        let _lock = self.prepare_directories().await?;
        self.watch_writes(&self.config);
        self.watch_disks();
        let booted = cluster::boot(&self.engine, &self.config).await?;
        let identity = Arc::new(booted.identity);
        self.start_tls(Of::Nodes).await?;
        self.start_coordinator(&identity);
        if let Some(shard) = self.shard.get() {
            shard.schema_owner().own(booted.state);
        }
        let (clock, clock_env) = (Rc::new(booted.clock), self.env.clone());
        let keeper = Rc::clone(&clock);
        let keeper = self.env.spawn_task(Class::Background, async move {
            // without a reserve no timestamp is safe
            if keeper.keep().await.is_err() {
                clock_env.terminate();
            }
        });
        self.env.spawn(Class::Background, Rc::clone(self).estimate());
        self.env.spawn(Class::Background, Rc::clone(self).expire_snapshots());
        self.keep_history();
        self.env.spawn(Class::Background, Rc::clone(self).watch_disk());
        let idle = self.config.idle();
        let idle = idle.iter().map(|(key, why)| format!("the setting {key} has no effect: {why}"));
        let mut notes: Vec<String> = idle.collect();
        notes.extend(indexes_note(&self.engine.schema()));
        notes.extend(Memory::of(&self.config).note());
        notes.extend(self.config.server_tls.iter().flat_map(tls_notes));
        let _endpoint = self.serve_metrics(&mut notes)?;
        self.replay_metrics(&booted.replay);
        let operations = Rc::new(Operations(Rc::clone(self)));
        let data_dir = &self.config.data_dir;
        let _socket = admin::socket::serve(&self.env, data_dir, &self.registry, operations)?;
        self.start_tls(Of::Clients).await?;
        self.open_hints().await?;
        self.listen_to_peers()?;
        for shard in 1..self.env.shards() {
            self.mesh.send(shard, Message::Opened(Arc::clone(&identity)));
        }
        let joined = self.join_ring(booted.snitch, booted.is_known).await?;
        let is_told_to_end = joined.is_none();
        let joined = joined.unwrap_or_default();
        // a ring of others has its roles
        if joined.others == 0 && !is_told_to_end {
            self.prepare_roles(&mut notes).await?;
        }
        let serves_clients = self.config.native_transport.start && !is_told_to_end;
        if serves_clients {
            self.load_statements().await;
            self.start_clients().await?;
        }
        notes.extend(booted.replay.notes.iter().cloned());
        notes.extend(self.aside_notes());
        let (replay, clock_behind) = (booted.replay, booted.clock_behind);
        notes.iter().for_each(|note| self.say("WARN", note.clone()));
        if !clock_behind.is_zero() {
            self.say(
                "WARN",
                format!(
                    "the clock is {clock_behind:?} behind the last timestamp of this node: \
                     timestamps stay ahead of the clock until it catches up; check NTP"
                ),
            );
        }
        self.say(
            "INFO",
            match serves_clients {
                true => format!("Starting listening for CQL clients on /{address}"),
                false => "Not serving CQL clients: start_native_transport is false, or the node \
                          is stopping; nodetool enablebinary starts serving"
                    .to_owned(),
            },
        );
        self.keep_caches();
        ready(self, &Ready { address, replay, clock_behind, serves_clients, notes });
        self.env.terminated().await;
        self.drain().await?;
        keeper.cancel().await;
        Ok(clock.close().await?)
    }

    /// What of tables a start went without.
    fn aside_notes(&self) -> Vec<String> {
        let Some(storage) = self.engine.node() else { return Vec::new() };
        let tables = self.engine.stores().into_iter();
        let aside = tables.flat_map(|(id, store)| {
            let table = store.table();
            let note = move |aside: storage::Aside| {
                let of = format!("{}.{}", table.keyspace, table.name);
                format!(
                    "put aside {}: table {of} is served without its data; restore it from a \
                     snapshot, or remove it, and restart the node: {}",
                    aside.path.display(),
                    aside.why
                )
            };
            storage.failures().aside(id).into_iter().map(note)
        });
        aside.collect()
    }

    /// Makes the first superuser, where the operator wants one and there is no role; says so where
    /// nobody can log in.
    async fn prepare_roles(&self, notes: &mut Vec<String>) -> Result<(), NodeError> {
        let auth = &self.config.auth;
        let Some(shard) = self.shard.get().filter(|_| auth.authenticates) else {
            return Ok(());
        };
        let failed = |error: protocol::ErrorResponse| NodeError::FirstSuperuser(error.message);
        if shard.auth().has_roles().await.map_err(failed)? {
            return Ok(());
        }
        let Some((name, path)) = &auth.first_superuser else {
            notes.push(
                "no client can log in, as no role exists: set first_superuser and \
                 first_superuser_password_file, and restart the node"
                    .to_owned(),
            );
            return Ok(());
        };
        let bad = |why: String| NodeError::FirstPassword { path: path.clone(), why };
        let read = self.env.read_file(path, MAX_PASSWORD_FILE).await;
        let bytes = read.map_err(|error| bad(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8".to_owned()))?;
        let password = text.trim_end_matches(['\n', '\r']);
        if password.is_empty() {
            return Err(bad("it is empty".to_owned()));
        }
        if shard.auth().make_first_superuser(name, password).await.map_err(failed)? {
            notes.push(format!("created the superuser {name}"));
        }
        Ok(())
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
        self.listen_to_peers()?;
        self.opened.notify_all();
        self.env.terminated().await;
        self.stop_server(DRAIN_PATIENCE).await;
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
        let captured = config.cdc.as_ref().map(|cdc| &cdc.directory);
        let all = config.data_file_directories.iter().chain(captured).chain([
            &config.data_dir,
            &config.commitlog_directory,
            &config.hints_directory,
            &config.saved_caches_directory,
        ]);
        let mut above = BTreeMap::new();
        for directory in all {
            self.env.create_dir_all(directory).await.map_err(failed(directory))?;
            for (distance, parent) in directory.ancestors().skip(1).enumerate() {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                let nearest = above.entry(parent.to_path_buf()).or_insert(distance);
                *nearest = distance.min(*nearest);
            }
        }
        // Those above may be as new, or left by a start that was killed before it synced them.
        // Where they are older and others' they need not be ours to open.
        for (parent, distance) in above {
            match self.env.sync_dir(&parent).await {
                Err(_) if distance > 0 => {}
                synced => synced.map_err(failed(&parent))?,
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
        let send = move |to, job| mesh.send(to, Message::Cluster(job));
        let components = Components::new(&self.env, send);
        let hub = self.hub.clone();
        let shard = Shard::new(
            &self.engine,
            Arc::clone(&self.config),
            Arc::clone(identity),
            &components,
            &self.registry,
            move |event| hub.publish(event),
        );
        self.reach_peers(&shard, identity);
        let _ = self.shard.set(Rc::clone(&shard));
        for job in self.early.take() {
            job(&components);
        }
        let _ = self.components.set(components);
        self.register(&shard);
        self.show_views(&shard);
    }

    /// Serves the node's metrics, if the configuration says so. A port that is taken ends the start
    /// only where the operator asked for it.
    fn serve_metrics(
        self: &Rc<Self>,
        notes: &mut Vec<String>,
    ) -> Result<Option<admin::http::Endpoint>, NodeError> {
        let Some((address, is_asked_for)) = metrics_address(&self.config)? else {
            return Ok(None);
        };
        let node = Rc::clone(self);
        let body = async move || node.metrics_text().await;
        match admin::http::serve(&self.env, address, &self.registry, body) {
            Ok(endpoint) => Ok(Some(endpoint)),
            Err(error) if is_asked_for => Err(error.into()),
            Err(error) => {
                notes.push(format!(
                    "not serving metrics: {error}; set another metrics_address or metrics_port"
                ));
                Ok(None)
            }
        }
    }

    /// Serves clients on this shard, unless it does already.
    fn start_server(self: &Rc<Self>) -> Result<(), NodeError> {
        let Some(shard) = self.shard.get().filter(|_| self.server.borrow().is_none()) else {
            return Ok(());
        };
        let mut settings = server_settings(&self.config)?;
        settings.tls = self.tls.get().cloned();
        let address = settings.listen;
        let listen = |source| NodeError::Listen { address, source };
        if self.env.shard() == 0 && self.env.shards() > 1 {
            // The shards share their port, and would share it with another node too.
            let options = ListenOptions { reuse_port: false };
            drop(TcpListener::bind(&self.env, address, options).map_err(listen)?);
        }
        let mesh = self.mesh.clone();
        let hand_over: server::HandOver = Rc::new(move |shard, handle| {
            mesh.send(shard, Message::Connection(handle));
        });
        let server = Server::start(
            &self.env,
            settings,
            Rc::new(Handler(Rc::clone(shard))),
            self.hub.clone(),
            &self.registry,
            self.limits.clone(),
            Some(hand_over),
        );
        *self.server.borrow_mut() = Some(Rc::new(server.map_err(listen)?));
        Ok(())
    }

    /// Stops serving clients on this shard; what runs has `patience` to end.
    async fn stop_server(&self, patience: Duration) {
        let server = self.server.borrow_mut().take();
        if let Some(server) = server {
            server.drain(patience).await;
        }
    }

    /// Asks the server of this shard, if it runs.
    pub(crate) fn on_server<T: Default>(&self, ask: impl FnOnce(&Server) -> T) -> T {
        self.server.borrow().as_ref().map(|server| ask(server)).unwrap_or_default()
    }

    /// Says something for the operator; on the first shard.
    pub(crate) fn say(&self, level: &'static str, message: String) {
        self.journal.say(self.env.unix_micros() / 1000, level, LOGGER, message);
    }

    /// Says it, unless it was said lately; on the first shard.
    pub(crate) fn say_seldom(&self, level: &'static str, message: String) {
        self.journal.say_seldom(self.env.unix_micros() / 1000, level, LOGGER, message);
    }

    /// Are clients served?
    pub(crate) fn serves_clients(&self) -> bool {
        self.server.borrow().is_some()
    }

    /// Is it being drained, or was it?
    pub(crate) fn is_ending(&self) -> bool {
        self.is_draining.get() || self.env.is_terminated()
    }

    /// Is everything in memory on disk, for good?
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty.get()
    }

    /// Where the node stands, in Cassandra's words (`StorageService.Mode`).
    pub(crate) fn mode(&self) -> &'static str {
        match (self.is_empty.get(), self.is_draining.get()) {
            (true, _) => "DRAINED",
            (false, true) => "DRAINING",
            (false, false) => "NORMAL",
        }
    }

    /// Serves clients on all shards; on the first shard.
    pub(crate) async fn start_clients(self: &Rc<Self>) -> Result<(), NodeError> {
        let _turn = self.changing.acquire(1).await;
        if self.is_empty.get() {
            return Ok(());
        }
        // The first shard first: it finds out whether the port is free.
        for shard in 0..self.shards.count() {
            let start = |node: Rc<Self>| async move {
                while node.shard.get().is_none() && !node.env.is_terminated() {
                    node.opened.notified().await;
                }
                node.start_server()
            };
            self.shards.call_async(shard, Class::Admin, start).await??;
        }
        self.tell_whether_clients_are_served(true);
        Ok(())
    }

    /// Stops serving clients on all shards; on the first shard.
    pub(crate) async fn stop_clients(self: &Rc<Self>, is_forced: bool) -> Result<(), NodeError> {
        let _turn = self.changing.acquire(1).await;
        self.tell_whether_clients_are_served(false);
        Ok(self.stop_all_servers(if is_forced { Duration::ZERO } else { DRAIN_PATIENCE }).await?)
    }

    fn tell_whether_clients_are_served(&self, they_are: bool) {
        if let Some(membership) = self.shard.get().and_then(|it| it.membership()) {
            membership.serves_clients(they_are);
        }
    }

    async fn stop_all_servers(self: &Rc<Self>, patience: Duration) -> Result<(), Stopping> {
        let mut stopping = Vec::with_capacity(self.shards.count());
        for shard in 0..self.shards.count() {
            let node = Rc::clone(self);
            stopping.push(self.env.spawn_task(Class::Admin, async move {
                let stop = move |node: Rc<Self>| async move { node.stop_server(patience).await };
                node.shards.call_async(shard, Class::Admin, stop).await
            }));
        }
        for stopped in stopping {
            stopped.await?;
        }
        Ok(())
    }

    /// Stops serving clients and writes everything to SSTables; again, it does nothing. On the
    /// first shard.
    pub(crate) async fn drain(self: &Rc<Self>) -> Result<(), NodeError> {
        let _turn = self.changing.acquire(1).await;
        if self.is_empty.get() {
            return Ok(());
        }
        self.is_draining.set(true);
        self.stop_all_servers(DRAIN_PATIENCE).await?;
        self.leave_ring().await;
        self.close_hints().await;
        if let Some(node) = self.engine.node() {
            node.drain().await?;
        }
        self.save_caches().await;
        self.is_empty.set(true);
        Ok(())
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
