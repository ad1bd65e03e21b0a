//! What the tables of `system_views` show of this node, gathered from its layers and shards when
//! one is read.

mod distributions;
mod journal;

use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};

use cluster::Shard;
use cluster::virtual_tables::{
    BatchStats, Cache, Client, CqlStats, Endpoint, EndpointState, NodeData, RunningQuery,
    SsTableTask, ThreadPool, Views,
};
use internode::Verb;
use metrics::{Name, Reading, Snapshot};
use storage::shards::{HasShards, Stopping};
use storage::{CacheKind, CacheStats};

pub(crate) use journal::Journal;

use crate::network_view::{is_gossip, is_schema};
use crate::node::Node;
use distributions::histogram;

/// Who is connected where nobody has to say.
const ANONYMOUS: &str = "anonymous";
/// Properties of the system that Cassandra knows and that there are without a JVM.
const PROPERTIES: &[(&str, &str)] = &[
    ("os.arch", if cfg!(target_arch = "x86_64") { "amd64" } else { "aarch64" }),
    ("os.name", "Linux"),
];

/// A node, for its virtual tables; weak, because the node has the coordinator that has this.
struct NodeViews(Weak<Node>);

impl Views for NodeViews {
    fn gather(&self, table: &str) -> Pin<Box<dyn Future<Output = NodeData>>> {
        let (node, table) = (self.0.upgrade(), table.to_owned());
        Box::pin(async move {
            // a node that ends gathers nothing more
            let Some(node) = node else { return NodeData::default() };
            node.gather(&table).await.unwrap_or_default()
        })
    }

    fn forget_logs(&self) {
        if let Some(node) = self.0.upgrade() {
            node.journal.forget();
        }
    }
}

impl Node {
    /// Lets this shard's virtual tables show the node.
    pub(crate) fn show_views(self: &Rc<Self>, shard: &Rc<Shard>) {
        shard.virtual_tables().show(Box::new(NodeViews(Rc::downgrade(self))));
    }

    async fn gather(self: &Rc<Self>, table: &str) -> Result<NodeData, Stopping> {
        let mut data = NodeData::default();
        match table {
            "clients" => data.clients = Some(self.all_clients().await?),
            "queries" => data.queries = Some(self.all_queries().await?),
            "caches" => data.caches = Some(self.caches().await?),
            "thread_pools" => data.thread_pools = Some(self.pools().await?),
            "sstable_tasks" => data.sstable_tasks = Some(self.on_first(sstable_tasks).await?),
            "snapshots" => data.snapshots = Some(self.snapshots().await),
            "system_logs" => data.logs = Some(self.on_first(|node| node.journal.lines()).await?),
            "system_properties" => data.system_properties = Some(properties()),
            "pending_hints" => {
                data.pending_hints = Some(self.on_first(crate::hint_view::shown).await?);
            }
            "gossip_info" => data.gossip = Some(self.on_first(gossip).await?),
            "cql_metrics" => data.cql = Some(self.cql_stats().await?),
            "batch_metrics" => data.batches = Some(self.batch_stats().await?),
            "credentials_cache_keys"
            | "jmx_permissions_cache_keys"
            | "roles_cache_keys"
            | "network_permissions_cache_keys"
            | "permissions_cache_keys" => {
                // nothing of authentication is cached as long as there is none
                data.auth_keys = Some(Default::default());
            }
            name if distributions::TABLES.contains(&name) => {
                data.tables = Some(self.distributions(name).await?);
            }
            _ => {}
        }
        Ok(data)
    }

    async fn on_first<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Rc<Self>) -> T + Send + 'static,
    ) -> Result<T, Stopping> {
        self.shards().call(0, look).await
    }

    pub(crate) async fn on_all<T: Send + 'static>(
        &self,
        look: impl Fn(&Rc<Self>) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>, Stopping> {
        let mut all = Vec::with_capacity(self.shards().count());
        for shard in 0..self.shards().count() {
            all.push(self.shards().call(shard, look.clone()).await?);
        }
        Ok(all)
    }

    /// The metrics of all shards together.
    pub(crate) async fn all_metrics(&self) -> Result<Snapshot, Stopping> {
        Ok(Snapshot::merge(self.on_all(|node| node.snapshot()).await?))
    }

    async fn all_clients(&self) -> Result<Vec<Client>, Stopping> {
        let views = self.on_all(|node| node.on_server(|server| server.clients())).await?;
        let is_open = !self.config().auth.authenticates;
        let client = |view: server::ClientView| Client {
            address: view.remote,
            hostname: view.remote.ip().to_string(),
            // who has not logged in yet is nobody
            username: view.user.or_else(|| is_open.then(|| ANONYMOUS.to_owned())),
            stage: view.stage,
            protocol_version: view.version.into(),
            options: Some(view.options),
            driver_name: view.driver_name,
            driver_version: view.driver_version,
            requests: view.messages as i64,
            tls: view.tls,
            keyspace: view.keyspace,
        };
        Ok(views.into_iter().flatten().map(client).collect())
    }

    async fn all_queries(&self) -> Result<Vec<RunningQuery>, Stopping> {
        let views =
            self.on_all(|node| (node.env().shard(), node.on_server(|server| server.running())));
        let views = views.await?.into_iter();
        let views = views.flat_map(|(shard, all)| all.into_iter().map(move |view| (shard, view)));
        let query = |(shard, view): (usize, server::RunningView)| RunningQuery {
            thread: format!("shard-{shard}-{}", view.place),
            queued: view.queued.as_micros() as i64,
            running: view.running.as_micros() as i64,
            task: cluster::redacted(&view.task).into_owned(),
        };
        Ok(views.map(query).collect())
    }

    /// Its caches.
    async fn caches(&self) -> Result<Vec<Cache>, Stopping> {
        let look = |node: &Rc<Node>| {
            (CacheKind::ALL.map(|kind| node.engine().caches().stats(kind)), node.cache_rates.get())
        };
        let shards = self.on_all(look).await?;
        let cache = |name, kind| {
            let mut all = CacheStats::default();
            let mut rates = CacheRates::default();
            let place = CacheKind::ALL.iter().position(|it| *it == kind);
            for (stats, rate) in shards
                .iter()
                .filter_map(|(stats, rates)| Some((*stats.get(place?)?, *rates.get(place?)?)))
            {
                all += stats;
                rates.requests += rate.requests;
                rates.hits += rate.hits;
            }
            Cache {
                name,
                capacity: all.capacity as i64,
                size: all.bytes as i64,
                entries: all.entries as i32,
                requests: all.requests() as i64,
                hits: all.hits as i64,
                request_rate: rates.requests as i64,
                hit_rate: rates.hits as i64,
            }
        };
        Ok(vec![
            cache("chunks", CacheKind::Chunks),
            cache("counters", CacheKind::Counters),
            cache("keys", CacheKind::Keys),
            cache("rows", CacheKind::Rows),
        ])
    }

    /// What stands here where Cassandra has stages of threads: shards run all requests, so their
    /// number is the limit.
    pub(crate) async fn pools(&self) -> Result<Vec<ThreadPool>, Stopping> {
        let metrics = self.all_metrics().await?;
        let in_flight: usize = self
            .on_all(|node| node.on_server(|server| vec![server.in_flight()]))
            .await?
            .into_iter()
            .flatten()
            .sum();
        let sum = |of: &str| -> i64 {
            let tables = metrics.samples.iter().filter(|(name, _)| name.kind == "Table");
            tables
                .filter(|(name, _)| name.name == of)
                .map(|(_, sample)| count(&sample.reading))
                .sum()
        };
        let of = |kind, name| {
            metrics.samples.get(&Name::new(kind, name)).map_or(0, |sample| count(&sample.reading))
        };
        let shards = self.shards().count() as i32;
        let compactors =
            self.engine().node().map_or(0, |node| node.compactions().concurrent()) as i32;
        let pool = |name: &str, limit, active: i64, pending: i64, completed: i64| ThreadPool {
            name: name.to_owned(),
            active: active as i32,
            limit,
            pending: pending as i32,
            completed,
            blocked: 0,
            all_time_blocked: 0,
        };
        let dispatched = of("Client", "RequestDispatched");
        let came = self.came().await?;
        let came = |verbs: fn(Verb) -> bool| -> i64 {
            let of = came.iter().filter(|(verb, _)| verbs(*verb));
            of.map(|(_, came)| (came.received - came.dropped) as i64).sum()
        };
        let running = in_flight as i64;
        Ok(vec![
            pool(
                "CompactionExecutor",
                compactors,
                of("Compaction", "Running"),
                0,
                of("Compaction", "TotalCompactionsCompleted"),
            ),
            pool(
                "CounterMutationStage",
                shards,
                0,
                0,
                came(|verb| verb == Verb::CounterMutationReq),
            ),
            pool("GossipStage", 1, 0, 0, came(is_gossip)),
            pool("MemtableFlushWriter", 1, 0, of("Flush", "Pending"), of("Flush", "Completed")),
            pool("MigrationStage", 1, 0, 0, came(is_schema)),
            pool("MutationStage", shards, 0, 0, sum("Writes")),
            pool("Native-Transport-Requests", shards, running, 0, dispatched - running),
            pool("ReadStage", shards, 0, 0, sum("Reads") + sum("RangeReads")),
            pool("RequestResponseStage", shards, 0, 0, came(Verb::is_answer)),
        ])
    }

    async fn cql_stats(&self) -> Result<CqlStats, Stopping> {
        let metrics = self.all_metrics().await?;
        let of = |name| {
            let sample = metrics.samples.get(&Name::new("CQL", name));
            sample.map_or(0, |sample| count(&sample.reading) as u64)
        };
        // each shard keeps every statement
        let kept = self.shard().map_or((0, 0), |shard| shard.statements().stats());
        Ok(CqlStats {
            prepared: kept.0 as u64,
            evicted: kept.1,
            prepared_executed: of("PreparedStatementsExecuted"),
            regular_executed: of("RegularStatementsExecuted"),
        })
    }

    async fn batch_stats(&self) -> Result<BatchStats, Stopping> {
        let metrics = self.all_metrics().await?;
        let of = |name| match metrics.samples.get(&Name::new("Batch", name)).map(|s| &s.reading) {
            Some(Reading::Histogram(distribution)) => histogram(distribution),
            _ => Default::default(),
        };
        Ok(BatchStats {
            counter: of("PartitionsPerCounterBatch"),
            logged: of("PartitionsPerLoggedBatch"),
            unlogged: of("PartitionsPerUnloggedBatch"),
        })
    }
}

fn count(reading: &Reading) -> i64 {
    match reading {
        Reading::Counter(count) | Reading::Peak(count) => *count as i64,
        Reading::Gauge(value) => *value,
        Reading::Histogram(distribution) => distribution.count() as i64,
    }
}

fn properties() -> Vec<(String, Option<String>)> {
    PROPERTIES.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned()))).collect()
}

fn sstable_tasks(node: &Rc<Node>) -> Vec<SsTableTask> {
    let schema = node.engine().schema();
    let Some(storage) = node.engine().node() else { return Vec::new() };
    let task = |compaction: Rc<storage::RunningCompaction>| {
        let table = schema.table_by_id(&compaction.table);
        SsTableTask {
            keyspace: table.map(|table| table.keyspace.clone()),
            table: table.map(|table| table.name.clone()),
            id: compaction.id,
            kind: compaction.kind.to_lowercase(),
            progress: compaction.written.get() as i64,
            total: compaction.total as i64,
            total_compressed: compaction.total as i64,
            unit: "bytes",
            sstables: compaction.sstables as i32,
            target_directory: Some(compaction.directory.display().to_string()),
        }
    };
    storage.compactions().running().into_iter().map(task).collect()
}

/// What gossip says of all nodes.
fn gossip(node: &Rc<Node>) -> Vec<Endpoint> {
    let membership = node.shard().and_then(|shard| shard.membership());
    let endpoint = |endpoint: cluster::Endpoint| {
        let state = &endpoint.state;
        let values = state.values.iter().map(|(kind, value)| EndpointState {
            name: kind.name().to_lowercase(),
            value: value.value.to_string(),
            version: value.version,
        });
        Endpoint {
            address: crate::ring_view::socket(endpoint.address),
            hostname: endpoint.address.ip.to_string(),
            generation: state.heartbeat.generation,
            heartbeat: state.heartbeat.version,
            states: values.collect(),
        }
    };
    let endpoints = membership.map(|membership| membership.endpoints()).unwrap_or_default();
    endpoints.into_iter().map(endpoint).collect()
}

/// How often a cache is asked, and hits, a second: averaged over about a minute.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheRates {
    seen: (u64, u64),
    requests: f64,
    hits: f64,
}

impl CacheRates {
    /// What a second weighs in an average over a minute.
    const SECOND: f64 = 1.0 / 60.0;

    /// Another second has gone, after which there were so many requests and hits in all.
    pub fn tick(self, requests: u64, hits: u64) -> Self {
        let towards = |rate: f64, now: u64, before: u64| {
            rate + (now.saturating_sub(before) as f64 - rate) * Self::SECOND
        };
        Self {
            seen: (requests, hits),
            requests: towards(self.requests, requests, self.seen.0),
            hits: towards(self.hits, hits, self.seen.1),
        }
    }
}
