//! Requests and background work, as the pools of threads that Cassandra has for them.

use std::cell::Cell;
use std::rc::Rc;

use cluster::Shard;
use cluster::virtual_tables::ThreadPool;
use internode::Verb;
use metrics::{Name, Snapshot};
use storage::shards::Stopping;

use crate::client_server::ClientServer;
use crate::figures::{count, gauge};
use crate::messages::{came, is_gossip, is_schema};
use crate::metrics_view::MetricsView;
use crate::pending_compactions::pending_compactions;

/// Of all shards.
pub(crate) struct Pools {
    shard: Rc<Shard>,
    clients: Rc<ClientServer>,
    metrics: Rc<MetricsView>,
    /// Requests of clients that had ended when this was last asked.
    requests_ended: Cell<i64>,
}

impl Pools {
    pub fn new(
        shard: &Rc<Shard>,
        clients: &Rc<ClientServer>,
        metrics: &Rc<MetricsView>,
    ) -> Rc<Self> {
        let (shard, clients) = (Rc::clone(shard), Rc::clone(clients));
        let requests_ended = Cell::default();
        Rc::new(Self { shard, clients, metrics: Rc::clone(metrics), requests_ended })
    }

    /// What stands here where Cassandra has stages of threads: shards run all requests, so their
    /// number is the limit.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn all(&self) -> Result<Vec<ThreadPool>, Stopping> {
        let metrics = self.metrics.all().await?;
        let pending = pending_compactions(&self.shard).await?;
        self.of(&metrics, pending.iter().map(|(_, tasks)| tasks).sum()).await
    }

    /// The same, of what is counted already.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn of(
        &self,
        metrics: &Snapshot,
        pending_compactions: u64,
    ) -> Result<Vec<ThreadPool>, Stopping> {
        let in_flight = self.clients.ask_all(|server| server.in_flight()).await?;
        let in_flight: usize = in_flight.into_iter().sum();
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
        // what runs now was looked at later than what began: the number never falls
        let ended = (dispatched - running).max(self.requests_ended.get());
        self.requests_ended.set(ended);
        Ok(vec![
            pool(
                "CompactionExecutor",
                compactors,
                of("Compaction", "Running"),
                gauge(pending_compactions),
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
            pool("MutationStage", shards, 0, 0, of("MemtablePool", "Mutations")),
            pool("Native-Transport-Requests", shards, running, 0, ended),
            pool("ReadStage", shards, 0, 0, of("Storage", "Reads")),
            pool("RequestResponseStage", shards, 0, 0, came(Verb::is_answer)),
        ])
    }
}
