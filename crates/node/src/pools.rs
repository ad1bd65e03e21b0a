//! Requests and background work, as the pools of threads that Cassandra has for them.

use std::rc::Rc;

use cluster::Shard;
use cluster::virtual_tables::ThreadPool;
use internode::Verb;
use metrics::Name;
use storage::shards::Stopping;

use crate::client_server::ClientServer;
use crate::figures::count;
use crate::messages::{came, is_gossip, is_schema};
use crate::metrics_view::MetricsView;

/// Of all shards.
pub(crate) struct Pools {
    shard: Rc<Shard>,
    clients: Rc<ClientServer>,
    metrics: Rc<MetricsView>,
}

impl Pools {
    pub fn new(
        shard: &Rc<Shard>,
        clients: &Rc<ClientServer>,
        metrics: &Rc<MetricsView>,
    ) -> Rc<Self> {
        let (shard, clients) = (Rc::clone(shard), Rc::clone(clients));
        Rc::new(Self { shard, clients, metrics: Rc::clone(metrics) })
    }

    /// What stands here where Cassandra has stages of threads: shards run all requests, so their
    /// number is the limit.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn all(&self) -> Result<Vec<ThreadPool>, Stopping> {
        let metrics = self.metrics.all().await?;
        let in_flight = self.clients.ask_all(|server| server.in_flight()).await?;
        let in_flight: usize = in_flight.into_iter().sum();
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
        let shards = self.shard.others().count() as i32;
        let compactors =
            self.shard.engine().node().map_or(0, |node| node.compactions().concurrent()) as i32;
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
        let came = came(&self.shard).await?;
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
}
