//! What the tables of `system_views` show of this node, gathered from its layers and shards when
//! one is read.

mod distributions;
mod hints;

use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use cluster::Shard;
use cluster::virtual_tables::{
    BatchStats, Cache, Client, CqlStats, Endpoint, EndpointState, NodeData, RunningQuery,
    SsTableTask, Views,
};
use config::Config;
use metrics::{Name, Reading};
use storage::shards::Stopping;
use storage::{CacheKind, Engine};

use crate::addresses::socket;
use crate::caches::Caches;
use crate::client_server::ClientServer;
use crate::context::Context;
use crate::figures::count;
use crate::journal::Journal;
use crate::metrics_view::MetricsView;
use crate::pools::Pools;
use crate::snapshots::TableSnapshots;
use distributions::histogram;

/// Who is connected where nobody has to say.
const ANONYMOUS: &str = "anonymous";
/// Properties of the system that Cassandra knows and that there are without a JVM.
const PROPERTIES: &[(&str, &str)] = &[
    ("os.arch", if cfg!(target_arch = "x86_64") { "amd64" } else { "aarch64" }),
    ("os.name", "Linux"),
];

/// What a shard's virtual tables show of the node.
pub(crate) struct SystemViews {
    config: Arc<Config>,
    shard: Rc<Shard>,
    journal: Rc<Journal>,
    clients: Rc<ClientServer>,
    metrics: Rc<MetricsView>,
    caches: Rc<Caches>,
    pools: Rc<Pools>,
    snapshots: Rc<TableSnapshots>,
}

/// Weak, because the views have the shard that has this.
struct Shown(Weak<SystemViews>);

impl Views for Shown {
    fn gather(&self, table: &str) -> Pin<Box<dyn Future<Output = NodeData>>> {
        let (views, table) = (self.0.upgrade(), table.to_owned());
        Box::pin(async move {
            // a node that ends gathers nothing more
            let Some(views) = views else { return NodeData::default() };
            views.gather(&table).await.unwrap_or_default()
        })
    }

    fn forget_logs(&self) {
        if let Some(views) = self.0.upgrade() {
            views.journal.forget();
        }
    }
}

impl SystemViews {
    /// Has the shard's virtual tables show the node, as long as this is there.
    pub fn show(
        context: &Context,
        (shard, clients): (&Rc<Shard>, &Rc<ClientServer>),
        (metrics, caches): (&Rc<MetricsView>, &Rc<Caches>),
        (pools, snapshots): (&Rc<Pools>, &Rc<TableSnapshots>),
    ) -> Rc<Self> {
        let views = Rc::new(Self {
            config: Arc::clone(&context.config),
            shard: Rc::clone(shard),
            journal: Rc::clone(&context.journal),
            clients: Rc::clone(clients),
            metrics: Rc::clone(metrics),
            caches: Rc::clone(caches),
            pools: Rc::clone(pools),
            snapshots: Rc::clone(snapshots),
        });
        shard.virtual_tables().show(Box::new(Shown(Rc::downgrade(&views))));
        views
    }

    async fn gather(&self, table: &str) -> Result<NodeData, Stopping> {
        let mut data = NodeData::default();
        match table {
            "clients" => data.clients = Some(self.all_clients().await?),
            "queries" => data.queries = Some(self.all_queries().await?),
            "caches" => data.caches = Some(self.shown_caches().await?),
            "thread_pools" => data.thread_pools = Some(self.pools.all().await?),
            "sstable_tasks" => {
                data.sstable_tasks =
                    Some(self.of_first(|shard| sstable_tasks(shard.engine())).await?)
            }
            "snapshots" => data.snapshots = Some(self.snapshots.all().await),
            "system_logs" => data.logs = Some(self.journal.lines().await?),
            "system_properties" => data.system_properties = Some(properties()),
            "pending_hints" => {
                data.pending_hints =
                    Some(self.of_first(|shard| hints::pending_hints(shard)).await?);
            }
            "gossip_info" => data.gossip = Some(self.of_first(|shard| gossip(shard)).await?),
            "streaming" => {
                data.streams = Some(self.of_first(|shard| shard.streaming().plans()).await?);
            }
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
                data.tables = Some(distributions::distributions(&self.shard, name).await?);
            }
            _ => {}
        }
        Ok(data)
    }

    /// What the first shard knows.
    async fn of_first<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Rc<Shard>) -> T + Send + 'static,
    ) -> Result<T, Stopping> {
        self.shard.others().call(0, look).await
    }

    async fn all_clients(&self) -> Result<Vec<Client>, Stopping> {
        let views = self.clients.ask_all(|server| server.clients()).await?;
        let is_open = !self.config.auth.authenticates;
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
        let views = self.clients.ask_all(|server| server.running()).await?.into_iter().enumerate();
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
    async fn shown_caches(&self) -> Result<Vec<Cache>, Stopping> {
        let mut all = Vec::new();
        for (name, kind) in [
            ("chunks", CacheKind::Chunks),
            ("counters", CacheKind::Counters),
            ("keys", CacheKind::Keys),
            ("rows", CacheKind::Rows),
        ] {
            let (stats, rates) = self.caches.of_all(kind).await?;
            all.push(Cache {
                name,
                capacity: stats.capacity as i64,
                size: stats.bytes as i64,
                entries: stats.entries as i32,
                requests: stats.requests() as i64,
                hits: stats.hits as i64,
                request_rate: rates.requests as i64,
                hit_rate: rates.hits as i64,
            });
        }
        Ok(all)
    }

    async fn cql_stats(&self) -> Result<CqlStats, Stopping> {
        let metrics = self.metrics.all().await?;
        let of = |name| {
            let sample = metrics.samples.get(&Name::new("CQL", name));
            sample.map_or(0, |sample| count(&sample.reading) as u64)
        };
        // each shard keeps every statement
        let kept = self.shard.statements().stats();
        Ok(CqlStats {
            prepared: kept.0 as u64,
            evicted: kept.1,
            prepared_executed: of("PreparedStatementsExecuted"),
            regular_executed: of("RegularStatementsExecuted"),
        })
    }

    async fn batch_stats(&self) -> Result<BatchStats, Stopping> {
        let metrics = self.metrics.all().await?;
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

fn properties() -> Vec<(String, Option<String>)> {
    PROPERTIES.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned()))).collect()
}

fn sstable_tasks(engine: &Engine) -> Vec<SsTableTask> {
    let schema = engine.schema();
    let Some(storage) = engine.node() else { return Vec::new() };
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
fn gossip(shard: &Shard) -> Vec<Endpoint> {
    let membership = shard.membership();
    let endpoint = |endpoint: cluster::Endpoint| {
        let state = &endpoint.state;
        let values = state.values.iter().map(|(kind, value)| EndpointState {
            name: kind.name().to_lowercase(),
            value: value.value.to_string(),
            version: value.version,
        });
        Endpoint {
            address: socket(endpoint.address),
            hostname: endpoint.address.ip.to_string(),
            generation: state.heartbeat.generation,
            heartbeat: state.heartbeat.version,
            states: values.collect(),
        }
    };
    let endpoints = membership.map(|membership| membership.endpoints()).unwrap_or_default();
    endpoints.into_iter().map(endpoint).collect()
}
