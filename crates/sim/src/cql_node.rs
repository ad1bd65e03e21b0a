//! The whole node, as `crates/node` composes it, and clients that speak the native protocol to it.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use config::{CommitLogSync, Config, Host};
use env::sim::{NodeId, World};
use env::sync::{Semaphore, oneshot};
use env::{Class, Env, Mesh};
use node::{Message, Node, run_shard};
use server::ConnectionLimits;
use storage::commitlog::SyncMode;

use crate::connection::Connection;
use crate::failed::Failed;
use crate::plan::Plan;

/// Connections of all clients together; the listener spreads them over the shards.
const CONNECTIONS: usize = 8;
/// Port of the native transport.
const PORT: u16 = 9042;
/// Commit-log segments take the largest statement of DDL twice.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// System tables take their share of the memtables.
const MEMTABLE_BYTES_MORE: u64 = 128 << 10;
/// `memory_budget` of the node.
const MEMORY_BUDGET: u64 = 8 << 20;

/// A connection to be, or one that is open.
struct Slot {
    free: Semaphore,
    connection: RefCell<Option<Connection>>,
}

/// A node and the connections to it.
pub struct CqlNode {
    config: Arc<Config>,
    clients: Env,
    address: SocketAddr,
    serving: Rc<Cell<bool>>,
    node: Rc<RefCell<Option<Rc<Node>>>>,
    slots: RefCell<Vec<Rc<Slot>>>,
}

fn slots() -> Vec<Rc<Slot>> {
    let slot = || Slot { free: Semaphore::new(1), connection: RefCell::default() };
    (0..CONNECTIONS).map(|_| Rc::new(slot())).collect()
}

fn configuration(plan: &Plan, address: IpAddr) -> Config {
    let mut config = Config::default();
    config.data_dir = "/helenus".into();
    let several = plan.options.data_directories.len();
    config.data_file_directories =
        (0..several).map(|n| format!("/helenus/data{n}").into()).collect();
    config.commitlog_directory = "/helenus/commitlog".into();
    config.hints_directory = "/helenus/hints".into();
    config.saved_caches_directory = "/helenus/saved_caches".into();
    config.rpc_address = Host::Ip(address);
    config.listen_address = Host::Ip(address);
    config.auth.may_be_open = true;
    config.native_transport.port = PORT;
    config.commitlog_sync = match plan.sync {
        SyncMode::Periodic { period, lag_block } => CommitLogSync::Periodic { period, lag_block },
        SyncMode::Batch => CommitLogSync::Batch,
        SyncMode::Group { window } => CommitLogSync::Group { window },
    };
    let options = &plan.options;
    config.commitlog_segment_size = u64::from(options.segment_bytes).max(SEGMENT_BYTES_MIN);
    config.commitlog_compression =
        options.log.compression.as_ref().map(|compression| config::LogCompression {
            class: compression.class().to_owned(),
            parameters: Default::default(),
        });
    config.memtable_keeps_flushed = options.keeps_flushed;
    config.commit_failure_policy = match options.log.goes_on_after_failure {
        true => config::CommitFailurePolicy::Ignore,
        false => config::CommitFailurePolicy::StopCommit,
    };
    config.commitlog_total_space = Some(options.commitlog_bytes);
    config.memtable_space = Some(options.memtable_bytes + MEMTABLE_BYTES_MORE);
    config.memtable_cleanup_threshold = options.cleanup_threshold;
    config.column_index_size = Some(u64::from(options.column_index_bytes));
    config.concurrent_compactors = Some(options.concurrent_compactors as u32);
    config.compaction_throughput = Some(options.compaction_bytes_per_second);
    config.memory_budget = Some(MEMORY_BUDGET);
    config.key_cache_size = Some(options.key_cache_bytes);
    config.row_cache_size = options.row_cache_bytes;
    config.counter_cache_size = Some(options.counter_cache_bytes);
    config
}

impl CqlNode {
    /// A node that will have this address; `clients` is where its clients are.
    pub fn new(plan: &Plan, clients: &Env, address: IpAddr) -> Rc<Self> {
        Rc::new(Self {
            config: Arc::new(configuration(plan, address)),
            clients: clients.clone(),
            address: SocketAddr::new(address, PORT),
            serving: Rc::default(),
            node: Rc::default(),
            slots: RefCell::new(slots()),
        })
    }

    /// Starts it for the first time.
    pub fn start(self: &Rc<Self>, world: &World, node: NodeId, shards: usize) {
        let (config, serving) = (Arc::clone(&self.config), Rc::clone(&self.serving));
        let running = Rc::clone(&self.node);
        world.start(node, shards, move |env, mesh: Mesh<Message>| {
            let (config, serving, running) = (config.clone(), serving.clone(), running.clone());
            run_shard(env, mesh, config, ConnectionLimits::new(), move |node, _| {
                running.replace(Some(Rc::clone(node)));
                serving.set(true);
            })
        });
    }

    /// Does it take requests?
    pub fn is_serving(&self) -> bool {
        self.serving.get()
    }

    /// The node is gone.
    pub fn closed(&self) {
        self.serving.set(false);
        self.node.replace(None);
        self.slots.replace(slots());
    }

    /// Why background work failed, if it did.
    pub fn failure(&self) -> Option<String> {
        let node = self.node.borrow();
        let node = node.as_ref()?.engine().node()?.failure()?;
        Some(node.to_string())
    }

    /// Runs something on a connection, which breaks with the first error that is not the node's.
    pub(crate) async fn on<T>(
        &self,
        connection: u64,
        run: impl AsyncFnOnce(&mut Connection) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let slot = {
            let slots = self.slots.borrow();
            let slot = slots.get((connection % CONNECTIONS as u64) as usize).cloned();
            slot.ok_or_else(|| Failed::Refused("no connection".into()))?
        };
        let _free = slot.free.acquire(1).await;
        let known = slot.connection.borrow_mut().take();
        let mut connection = match known {
            Some(connection) => connection,
            None => Connection::open(&self.clients, self.address).await?,
        };
        let result = run(&mut connection).await;
        if !matches!(&result, Err(Failed::Unknown(text)) if text.contains("connection")) {
            slot.connection.replace(Some(connection));
        }
        result
    }

    /// Flushes a table, or compacts all of it.
    pub(crate) async fn maintain_table(
        &self,
        keyspace: &'static str,
        table: &str,
        compact: bool,
    ) -> Result<(), Failed> {
        let Some(node) = self.node.borrow().clone() else { return Ok(()) };
        let (reply, answer) = oneshot();
        let (engine, table) = (Rc::clone(node.engine()), table.to_owned());
        engine.env().clone().spawn(Class::Admin, async move {
            let schema = engine.schema();
            let result = match (engine.node(), schema.table(keyspace, &table)) {
                (Some(node), Some(table)) if compact => {
                    node.compactions().merge_all(table.id).await
                }
                (Some(node), Some(table)) => node.flush(table.id).await.map(drop),
                _ => Ok(()),
            };
            let _ = reply.send(result);
        });
        match answer.await {
            Ok(result) => result.map_err(|error| Failed::Unknown(error.to_string())),
            Err(_) => Err(Failed::Unknown("the node is gone".into())),
        }
    }
}
