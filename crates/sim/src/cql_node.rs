//! The whole node, as `bin/helenus` composes it, and clients that speak the native protocol to it.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use config::{CommitLogSync, Config, Host};
use env::sim::{NodeId, World};
use env::sync::{Semaphore, oneshot};
use env::{Class, Env, Mesh};
use helenus::{Message, Node, run_shard};
use protocol::BatchKind;
use protocol::client::{Answer as Result_, BatchItem, BatchRequest, Parameters};
use server::ConnectionLimits;
use storage::commitlog::SyncMode;

use crate::connection::Connection;
use crate::operation::{Answer, Query, Range, Row, Value, Write};
use crate::plan::Plan;
use crate::site::Site;
use crate::statement::{definitions, of_change, of_query};
use crate::tables;
use crate::workload::{Failed, Target};

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

    async fn read_pages(
        connection: &mut Connection,
        query: &Query,
        now: i64,
        prepared: bool,
    ) -> Result<Answer, Failed> {
        let statement = of_query(query);
        let mut parameters = Parameters {
            values: statement.values,
            page_size: query.page.map(|page| page as i32),
            now_in_seconds: u32::try_from(now).ok(),
            ..Parameters::default()
        };
        let mut answer = Answer { statics: None, rows: Vec::new(), now };
        let mut pages = 0;
        loop {
            let page = connection.run(&statement.text, &parameters, prepared).await?;
            let Result_::Rows(page) = page else {
                return Err(Failed::Wrong(format!("SELECT gave {page:?}")));
            };
            let mut statics = None;
            for cells in &page.rows {
                take_row(cells, &mut answer.rows, &mut statics)
                    .ok_or_else(|| Failed::Wrong(format!("a row with cells {cells:?}")))?;
            }
            statics_of_page(&mut answer, statics, pages);
            pages += 1;
            match page.metadata.paging_state {
                Some(state) => parameters.paging_state = Some(state),
                None => break,
            }
        }
        if pages == 1 && answer.statics.is_none() && query.range == Range::ALL {
            answer.statics = Some(None);
        }
        Ok(answer)
    }
}

/// Each page reads the static column anew: what they disagree about, the answer does not tell.
fn statics_of_page(answer: &mut Answer, statics: Option<Option<Value>>, pages_before: u32) {
    match statics {
        Some(_) if pages_before == 0 => answer.statics = statics,
        Some(_) if answer.statics != statics => answer.statics = None,
        _ => {}
    }
}

/// Adds a row of `c`, `s`, `a`, `b`; `None` if it is not one, or not of the page whose rows have
/// these statics.
fn take_row(
    cells: &[Option<Vec<u8>>],
    rows: &mut Vec<Row>,
    page_statics: &mut Option<Option<Value>>,
) -> Option<()> {
    let [c, s, a, b] = cells else { return None };
    let blob = |cell: &Option<Vec<u8>>| match cell {
        Some(bytes) => Value::from_blob(bytes).map(Some),
        None => Some(None),
    };
    let statics = blob(s)?;
    if page_statics.replace(statics).is_some_and(|before| before != statics) {
        return None;
    }
    let b = match b {
        Some(bytes) => Some(Value(u64::from_be_bytes(bytes.as_slice().try_into().ok()?))),
        None => None,
    };
    if let Some(c) = c {
        let row = i32::from_be_bytes(c.as_slice().try_into().ok()?);
        rows.push(Row { row, a: blob(a)?, b });
    }
    Some(())
}

impl Target for CqlNode {
    async fn write(
        &self,
        connection: u64,
        write: &Write,
        now: i64,
        _: Box<dyn FnOnce(i64)>,
    ) -> Result<(), Failed> {
        let parameters =
            Parameters { now_in_seconds: u32::try_from(now).ok(), ..Parameters::default() };
        let statements: Vec<_> =
            write.changes.iter().map(|(partition, change)| of_change(*partition, change)).collect();
        let prepared = connection & (1 << 40) != 0;
        let run = async |open: &mut Connection| {
            if let [statement] = &statements[..] {
                let values = statement.values.clone();
                let parameters = Parameters { values, ..parameters };
                return open.run(&statement.text, &parameters, prepared).await;
            }
            let kind = if write.is_atomic() { BatchKind::Logged } else { BatchKind::Unlogged };
            let items = statements.into_iter().map(|s| (BatchItem::Text(s.text), s.values));
            open.batch(&BatchRequest { kind, items: items.collect(), parameters }).await
        };
        match self.on(connection, run).await? {
            Result_::Void => Ok(()),
            other => Err(Failed::Wrong(format!("{write:?} gave {other:?}"))),
        }
    }

    async fn read(&self, connection: u64, query: &Query, now: i64) -> Result<Answer, Failed> {
        let prepared = connection & (1 << 40) != 0;
        let run = async |open: &mut Connection| Self::read_pages(open, query, now, prepared).await;
        self.on(connection, run).await
    }

    async fn truncate(&self, connection: u64, table: u8) -> Result<(), Failed> {
        let text = format!("TRUNCATE {}.t{table}", tables::KEYSPACE);
        let run =
            async |open: &mut Connection| open.run(&text, &Parameters::default(), false).await;
        match self.on(connection, run).await? {
            Result_::Void => Ok(()),
            other => Err(Failed::Wrong(format!("{text} gave {other:?}"))),
        }
    }

    async fn shard_of(&self, connection: u64) -> Option<usize> {
        let shard = async |open: &mut Connection| Ok(open.shard);
        self.on(connection, shard).await.ok().flatten()
    }

    async fn maintain(&self, what: u64) -> Result<(), Failed> {
        let table = format!("t{}", what % 2);
        self.maintain_table(tables::KEYSPACE, &table, (what >> 8).is_multiple_of(3)).await
    }

    fn takes_batches(&self) -> bool {
        true
    }

    fn counters(self: Rc<Self>) -> Option<Rc<CqlNode>> {
        Some(self)
    }
}

impl Site for CqlNode {
    fn new(plan: &Plan, clients: &Env, address: IpAddr) -> Rc<Self> {
        Rc::new(Self {
            config: Arc::new(configuration(plan, address)),
            clients: clients.clone(),
            address: SocketAddr::new(address, PORT),
            serving: Rc::default(),
            node: Rc::default(),
            slots: RefCell::new(slots()),
        })
    }

    fn start(self: &Rc<Self>, world: &World, node: NodeId, shards: usize) {
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

    fn is_serving(&self) -> bool {
        self.serving.get()
    }

    async fn prepare(&self) -> Result<(), Failed> {
        for text in definitions() {
            let run =
                async |open: &mut Connection| open.run(&text, &Parameters::default(), false).await;
            self.on(0, run).await.map_err(|error| Failed::Wrong(format!("{text}: {error}")))?;
        }
        Ok(())
    }

    fn closed(&self) {
        self.serving.set(false);
        self.node.replace(None);
        self.slots.replace(slots());
    }

    fn failure(&self) -> Option<String> {
        let node = self.node.borrow();
        let node = node.as_ref()?.engine().node()?.failure()?;
        Some(node.to_string())
    }
}
