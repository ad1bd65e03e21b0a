//! A whole node's coordinators in a simulated world, asked as another node would ask.

mod hostile;
mod laws;
mod recorded;
mod writes;

use std::cell::{OnceCell, RefCell};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use env::sim::{NodeId, World, WorldOptions};
use env::{Class, Env, Mesh};
use internode::payload::read::ReadCommand;
use internode::{FailureReason, Flags, Params, Verb};
use metrics::Registry;
use protocol::{ErrorResponse, QueryOptions, Version};
use schema::Table;
use storage::commitlog::SyncMode;
use storage::shards::{Components, Job, Shards};
use storage::{DiskSettings, Engine, FlushCompression, LogSettings, Options, StorageError, Trace};
use types::Address;

use super::{PeerAnswer, PeerRequest};
use crate::answer::{Answer, Page};
use crate::boot::{boot, first_schema};
use crate::identity::Identity;
use crate::reconcile::Given;
use crate::request::Request;
use crate::shard::Shard;

/// Virtual time that anything in a test may take.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) enum Message {
    Storage(Job<Rc<Engine>>),
    Cluster(Job<Components>),
    Opened(Arc<Identity>),
}

type ShardParts = Rc<RefCell<Vec<Option<Rc<Shard>>>>>;

/// A node in a world.
pub(super) struct TestNode {
    pub world: World,
    id: NodeId,
    coordinators: ShardParts,
}

fn options(config: &Config) -> Options {
    Options {
        data_directories: vec!["/helenus/data".into()],
        disk: DiskSettings::default(),
        commitlog_directory: config.commitlog_directory.clone(),
        sync: SyncMode::Batch,
        segment_bytes: 1 << 20,
        log: LogSettings::default(),
        commitlog_bytes: 64 << 20,
        memtable_bytes: 32 << 20,
        keeps_flushed: false,
        cleanup_threshold: 0.5,
        column_index_bytes: 64 << 10,
        chunk_cache_bytes: 1 << 20,
        key_cache_bytes: 1 << 20,
        row_cache_bytes: 0,
        counter_cache_bytes: 1 << 20,
        concurrent_compactors: 1,
        compaction_bytes_per_second: 0,
        incremental_backups: false,
        flush_compression: FlushCompression::Fast,
        passes_page_cache: true,
        page_cache_bytes: Some(1 << 20),
        sstable_version: storage::SSTableVersion::NB,
        uuid_identifiers: false,
    }
}

async fn run(
    env: Env,
    mesh: Mesh<Message>,
    config: Arc<Config>,
    coordinators: ShardParts,
) -> Result<(), StorageError> {
    let sender = mesh.clone();
    let shards = Shards::new(&env, move |to, job| sender.send(to, Message::Storage(job)));
    let engine = Engine::new(&env, options(&config), shards, first_schema(&config));
    let opened = Rc::new(OnceCell::new());
    let slot: Rc<OnceCell<Components>> = Rc::default();
    let early = Rc::new(RefCell::new(Vec::new()));
    let dispatch = {
        let (mesh, engine, opened) = (mesh.clone(), Rc::clone(&engine), Rc::clone(&opened));
        let (slot, early) = (Rc::clone(&slot), Rc::clone(&early));
        async move {
            loop {
                match mesh.recv().await.1 {
                    Message::Storage(job) => job(&engine),
                    Message::Cluster(job) => match slot.get() {
                        Some(components) => job(components),
                        None => early.borrow_mut().push(job),
                    },
                    Message::Opened(identity) => {
                        let _ = opened.set(identity);
                    }
                }
            }
        }
    };
    env.spawn(Class::Background, dispatch);
    let mut state = None;
    let mut clock = None;
    if env.shard() == 0 {
        for directory in ["/helenus", "/helenus/data", "/helenus/commitlog"] {
            let made = env.create_dir_all(std::path::Path::new(directory)).await;
            made.map_err(|error| StorageError::io("make", directory, error))?;
        }
        for directory in ["/", "/helenus"] {
            let synced = env.sync_dir(std::path::Path::new(directory)).await;
            synced.map_err(|error| StorageError::io("sync", directory, error))?;
        }
        let booted = boot(&engine, &config).await.expect("an empty directory");
        (state, clock) = (Some(booted.state), Some(booted.clock));
        let identity = Arc::new(booted.identity);
        for shard in 1..env.shards() {
            mesh.send(shard, Message::Opened(Arc::clone(&identity)));
        }
        let _ = opened.set(identity);
    }
    while opened.get().is_none() {
        env.sleep(Duration::from_millis(1)).await;
    }
    let identity = Arc::clone(opened.get().expect("it was waited for"));
    let sender = mesh.clone();
    let components = Components::new(&env, move |to, job| sender.send(to, Message::Cluster(job)));
    let registry = Rc::new(Registry::new(env.shard() as u32));
    let shard = Shard::new(&engine, config, identity, &components, &registry, |_| {});
    if let Some(state) = state {
        shard.schema_owner().own(state);
    }
    let _ = slot.set(components.clone());
    for job in early.take() {
        let job: Job<Components> = job;
        job(&components);
    }
    coordinators.borrow_mut()[env.shard()] = Some(shard);
    env.terminated().await;
    coordinators.borrow_mut()[env.shard()] = None;
    drop(clock);
    Ok(())
}

/// A configuration for tests.
pub(super) fn config() -> Config {
    let mut config = Config::default();
    config.data_dir = "/helenus".into();
    config.data_file_directories = vec!["/helenus/data".into()];
    config.commitlog_directory = "/helenus/commitlog".into();
    config.auth.may_be_open = true;
    config.auto_snapshot = false;
    config
}

impl TestNode {
    /// A node of so many shards.
    pub fn new(shards: usize) -> Self {
        Self::with(shards, config())
    }

    /// A node with settings of its own.
    pub fn with(shards: usize, config: Config) -> Self {
        let world = World::new(1, WorldOptions::default());
        let id = world.node(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 60)));
        let coordinators: ShardParts = Rc::new(RefCell::new(vec![None; shards]));
        let (of_main, config) = (Rc::clone(&coordinators), Arc::new(config));
        world.start(id, shards, move |env, mesh| {
            run(env, mesh, Arc::clone(&config), Rc::clone(&of_main))
        });
        let node = Self { world, id, coordinators };
        node.wait();
        node
    }

    fn wait(&self) {
        let all = || self.coordinators.borrow().iter().all(Option::is_some);
        self.world.run_until(all, PATIENCE).expect("the node opens");
    }

    /// Cuts its power, and starts it again.
    pub fn power_cut(&self) {
        self.coordinators.borrow_mut().iter_mut().for_each(|slot| *slot = None);
        self.world.power_cut(self.id);
        self.world.restart(self.id);
        self.wait();
    }

    /// A shard's shard.
    pub fn shard(&self, shard: usize) -> Rc<Shard> {
        self.coordinators.borrow()[shard].clone().expect("the node is open")
    }

    /// Runs something on a shard.
    pub fn run<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        shard: usize,
        run: impl FnOnce(Rc<Shard>) -> F,
    ) -> T {
        let shard = self.shard(shard);
        let env = shard.engine().env().clone();
        self.world.block_on(&env, PATIENCE, run(shard)).expect("it ends")
    }

    /// Runs a statement as a client would.
    pub fn try_cql(&self, text: &str) -> Result<Option<Page>, ErrorResponse> {
        let text = text.to_owned();
        self.run(0, |shard| async move {
            let options = QueryOptions::default();
            let request = Request {
                keyspace: None,
                version: Version::CURRENT,
                options: &options,
                deadline: shard.engine().env().now() + PATIENCE,
                user: None,
                tracing: None,
                guard: OnceCell::new(),
                observed: None,
                is_shard_aware: false,
            };
            Ok(match shard.coordinator().query(&text, request).await.result? {
                Answer::Rows(page) => Some(page),
                _ => None,
            })
        })
    }

    /// The same of a statement that succeeds.
    pub fn cql(&self, text: &str) -> Option<Page> {
        self.try_cql(text).unwrap_or_else(|error| panic!("{text}: {}", error.message))
    }

    /// Asks a shard as another node would.
    pub fn ask_as(
        &self,
        shard: usize,
        verb: Verb,
        payload: &[u8],
        flags: Flags,
    ) -> Result<Option<PeerAnswer>, FailureReason> {
        let payload = payload.to_vec();
        self.run(shard, |shard| async move {
            let request = PeerRequest {
                from: Address::new(Ipv4Addr::new(127, 0, 0, 61), 7000),
                verb,
                params: &Params::NONE,
                flags,
                payload: &payload,
                deadline: shard.engine().env().now() + Duration::from_secs(10),
                trace: &Trace::OFF,
            };
            shard.replica().serve(request).await
        })
    }

    /// What a shard gives itself as a shard.
    pub fn own(
        &self,
        shard: usize,
        table: &Arc<Table>,
        command: &ReadCommand,
    ) -> Result<Given, FailureReason> {
        let (table, command) = (Arc::clone(table), Arc::new(command.clone()));
        self.run(shard, |shard| async move {
            let deadline = shard.engine().env().now() + Duration::from_secs(10);
            let read = shard.replica().reads().read_own(
                &table,
                &command,
                Flags::NONE,
                deadline,
                &Trace::OFF,
            );
            read.await.map(|seen| seen.answer)
        })
    }

    /// The payload of the answer, or why there is none.
    pub fn ask(&self, verb: Verb, payload: &[u8]) -> Result<Vec<u8>, FailureReason> {
        let answer = self.ask_as(0, verb, payload, Flags::NONE)?.expect("it is not too late");
        assert_eq!(Some(answer.verb), verb.answer());
        Ok(answer.payload)
    }

    /// Flushes all tables of a keyspace.
    pub fn flush(&self, keyspace: &str) {
        let schema = self.shard(0).schema();
        let tables = schema.keyspace(keyspace).into_iter().flat_map(|of| of.tables.values());
        for id in tables.map(|table| table.id).collect::<Vec<_>>() {
            self.run(0, |shard| async move {
                let node = shard.engine().node().expect("the first shard");
                node.flush(id).await.expect("a disk without faults");
            });
        }
    }
}
