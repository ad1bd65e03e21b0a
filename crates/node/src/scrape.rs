//! The pages of the metrics endpoint: one snapshot of all shards, under two kinds of names.
//!
//! Most of it is what the shards' registries hold. What needs an answer of the disk, of another
//! shard or of a compaction strategy is asked for when Prometheus asks, and added here.

use std::rc::Rc;
use std::sync::Arc;

use admin::http::Page;
use cluster::Shard;
use cluster::virtual_tables::ThreadPool;
use config::Config;
use env::Env;
use metrics::{Name, Reading, Sample, Snapshot, Unit, k8ssandra, prometheus};
use storage::shards::Stopping;
use types::Uuid;

use crate::context::Context;
use crate::figures::gauge;
use crate::messages::came;
use crate::metrics_view::MetricsView;
use crate::pending_compactions::pending_compactions;
use crate::pools::Pools;

/// Pools of threads that Cassandra counts elsewhere than among those inside the node.
const PATHS: &[(&str, &str)] = &[
    ("CounterMutationStage", "request"),
    ("MutationStage", "request"),
    ("Native-Transport-Requests", "transport"),
    ("ReadStage", "request"),
    ("RequestResponseStage", "request"),
];

/// What Prometheus asks; on the first shard.
pub(crate) struct Scrape {
    env: Env,
    config: Arc<Config>,
    shard: Rc<Shard>,
    metrics: Rc<MetricsView>,
    pools: Rc<Pools>,
}

impl Scrape {
    pub fn new(
        context: &Context,
        shard: &Rc<Shard>,
        (metrics, pools): (&Rc<MetricsView>, &Rc<Pools>),
    ) -> Rc<Self> {
        Rc::new(Self {
            env: context.env.clone(),
            config: Arc::clone(&context.config),
            shard: Rc::clone(shard),
            metrics: Rc::clone(metrics),
            pools: Rc::clone(pools),
        })
    }

    /// The text of a page.
    pub async fn page(&self, page: Page) -> String {
        let snapshots = [self.snapshot().await];
        match page {
            Page::Metrics => self.gathered(prometheus::families(&snapshots)).await,
            Page::K8ssandra { prefixes } => {
                let node = self.labels();
                self.gathered(k8ssandra::Text::new(&snapshots[0], &node, &prefixes)).await
            }
        }
    }

    async fn gathered(&self, parts: impl Iterator<Item = String>) -> String {
        let mut text = String::new();
        for part in parts {
            text.push_str(&part);
            self.env.maybe_yield().await;
        }
        text
    }

    /// What a shard that ends no longer tells is missing.
    async fn snapshot(&self) -> Snapshot {
        let mut found = Found(self.metrics.of_node().await);
        self.add_endpoints(&mut found);
        self.add_hints(&mut found);
        self.add_flushes(&mut found);
        self.add_disks(&mut found).await;
        self.add_process(&mut found).await;
        // a node that ends need not tell the rest
        let _ = self.add_compactions_and_pools(&mut found).await;
        let _ = self.add_dropped(&mut found).await;
        found.0
    }

    fn add_endpoints(&self, found: &mut Found) {
        let others = self.shard.membership().map(|members| members.nodes()).unwrap_or_default();
        let members = others.values().filter(|node| node.life.is_member());
        let (up, down): (Vec<_>, Vec<_>) = members.partition(|node| node.is_up);
        let name = |of| Name::new("FailureDetector", of);
        // Cassandra counts itself (FailureDetector.getUpEndpointCount)
        found.gauge(name("UpEndpointCount"), up.len() + 1, "Nodes that are up, this one included.");
        found.gauge(name("DownEndpointCount"), down.len(), "Nodes that this one holds to be down.");
    }

    fn add_hints(&self, found: &mut Found) {
        let pending = self.shard.handoff().pending();
        let name = |of| Name::new("HintsService", of);
        let files: usize = pending.iter().map(|of| of.files).sum();
        let bytes: u64 = pending.iter().map(|of| of.bytes).sum();
        found.gauge(name("PendingNodes"), pending.len(), "Nodes that hints wait for.");
        found.gauge(name("PendingFiles"), files, "Files of hints that wait to be delivered.");
        found.bytes(name("PendingSize"), bytes, "Bytes of hints that wait to be delivered.");
    }

    /// Of the tables that have series of their own.
    fn add_flushes(&self, found: &mut Found) {
        let Some(node) = self.shard.engine().node() else { return };
        for (keyspace, table, id) in self.metrics.shown_tables() {
            let name = Name::of_table(&keyspace, &table, "PendingFlushes");
            let help = "Flushes that wait or are under way.";
            found.gauge(name, node.flushes().pending(id), help);
        }
    }

    async fn add_disks(&self, found: &mut Found) {
        let log = std::slice::from_ref(&self.config.commitlog_directory);
        for directory in self.config.data_file_directories.iter().chain(log) {
            let Ok((total, free)) = self.env.disk_space(directory).await else { continue };
            let name = |of| Name::new("Directory", of).path(directory.display().to_string());
            found.bytes(name("TotalSpace"), total, "Bytes of the disk that holds the directory.");
            found.bytes(name("FreeSpace"), free, "Bytes that are free on that disk.");
        }
    }

    async fn add_process(&self, found: &mut Found) {
        let Ok(process) = self.env.process_stats().await else { return };
        let name = |of| Name::new("Node", of);
        let help = "Bytes of this process in memory.";
        found.bytes(name("ResidentMemory"), process.resident_bytes, help);
        found.gauge(name("OpenFiles"), process.open_files, "Files and sockets that are open.");
        let help = "How many files and sockets may be open.";
        found.gauge(name("OpenFilesMax"), process.open_files_max, help);
    }

    async fn add_compactions_and_pools(&self, found: &mut Found) -> Result<(), Stopping> {
        let pending = pending_compactions(&self.shard).await?;
        let all: u64 = pending.iter().map(|(_, tasks)| tasks).sum();
        let help = "Compactions that tables need, as nodetool compactionstats counts them.";
        found.gauge(Name::new("Compaction", "PendingTasks"), all, help);
        for (keyspace, table, id) in self.metrics.shown_tables() {
            let tasks = pending.iter().find(|(of, _)| *of == id).map_or(0, |(_, tasks)| *tasks);
            let name = Name::of_table(&keyspace, &table, "PendingCompactions");
            found.gauge(name, tasks, "Compactions that the table needs.");
        }
        for pool in self.pools.of(&found.0, all).await? {
            found.pool(&pool);
        }
        Ok(())
    }

    async fn add_dropped(&self, found: &mut Found) -> Result<(), Stopping> {
        for (verb, came) in came(&self.shard).await? {
            let name = Name::new("DroppedMessage", "Dropped").scope(verb.name());
            let help = "Messages of other nodes that came too late and were dropped.";
            found.count(name, came.dropped, help);
        }
        Ok(())
    }

    /// What says on each line which node it is.
    fn labels(&self) -> Vec<(&'static str, String)> {
        let identity = self.shard.identity();
        let host = Uuid::from_bytes(self.shard.engine().host_id());
        let mut labels = vec![
            ("host", host.to_string()),
            ("instance", identity.broadcast.to_string()),
            ("cluster", identity.cluster_name.clone()),
            ("datacenter", identity.data_center.clone()),
            ("rack", identity.rack.clone()),
        ];
        labels.extend(self.config.given.metric_labels.iter().cloned());
        labels
    }
}

/// A snapshot that is added to.
struct Found(Snapshot);

impl Found {
    fn add(&mut self, name: Name, unit: Unit, help: &'static str, reading: Reading) {
        self.0.samples.insert(name, Sample { unit, help, reading });
    }

    fn gauge(&mut self, name: Name, value: impl TryInto<i64>, help: &'static str) {
        self.add(name, Unit::Count, help, Reading::Gauge(gauge(value)));
    }

    fn bytes(&mut self, name: Name, value: u64, help: &'static str) {
        self.add(name, Unit::Bytes, help, Reading::Gauge(gauge(value)));
    }

    fn count(&mut self, name: Name, value: u64, help: &'static str) {
        self.add(name, Unit::Count, help, Reading::Counter(value));
    }

    fn pool(&mut self, pool: &ThreadPool) {
        let path = PATHS.iter().find(|(name, _)| *name == pool.name);
        let path = path.map_or("internal", |(_, path)| path);
        let name = |of| Name::new("ThreadPools", of).path(path).scope(pool.name.as_str());
        let counted = |n: i64| u64::try_from(n).unwrap_or_default();
        self.gauge(name("ActiveTasks"), pool.active, "Tasks that run.");
        self.gauge(name("PendingTasks"), pool.pending, "Tasks that wait.");
        self.count(name("CompletedTasks"), counted(pool.completed), "Tasks that ended.");
        self.gauge(name("CurrentlyBlockedTasks"), pool.blocked, "Tasks that wait to be queued.");
        let help = "Tasks that had to wait to be queued.";
        self.count(name("TotalBlockedTasks"), counted(pool.all_time_blocked), help);
        self.gauge(name("MaxPoolSize"), pool.limit, "Tasks that may run at once.");
    }
}
