//! The node's metrics: each shard shows what its layers count, the first one gathers them all.

use std::cell::RefCell;
use std::rc::Rc;

use cluster::Shard;
use env::{Env, Instant, Stats};
use metrics::{Name, Registry, Snapshot, Unit};
use schema::TableId;
use storage::shards::{Remote, Stopping};
use storage::{Engine, Replay};

use crate::all_shards::ask_all;
use crate::context::Context;
use crate::engine_metrics::register_engine;
use crate::figures::gauge;
use crate::loop_metrics::register_loop;
use crate::table_metrics::ShownTables;

/// The metrics of one shard, and by way of the others those of the node.
pub(crate) struct MetricsView {
    env: Env,
    engine: Rc<Engine>,
    others: Remote<MetricsView>,
    registry: Rc<Registry>,
    /// The loop's counters as of the last look at the metrics.
    observed: Rc<RefCell<Stats>>,
    tables: ShownTables,
}

impl MetricsView {
    /// Shows what the layers of this shard count.
    pub fn new(context: &Context, shard: &Rc<Shard>, others: Remote<Self>) -> Rc<Self> {
        let registry = &context.registry;
        let observed = Rc::default();
        register_loop(registry, &observed, &context.mesh);
        register_node(context);
        register_prepared(registry, shard);
        register_engine(registry, &context.engine);
        Rc::new(Self {
            env: context.env.clone(),
            engine: Rc::clone(&context.engine),
            others,
            registry: Rc::clone(registry),
            observed,
            tables: ShownTables::new(context.config.lookup().word("metrics_per_table") == "all"),
        })
    }

    /// Lets recent values of histograms lose weight.
    pub fn tick(&self) {
        self.registry.tick(self.env.now().since(Instant::ZERO));
    }

    /// The metrics of all shards together.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn all(&self) -> Result<Snapshot, Stopping> {
        Ok(Snapshot::merge(ask_all(&self.others, |there| there.snapshot()).await?))
    }

    /// The same. What a shard that ends no longer tells is missing.
    pub async fn of_node(&self) -> Snapshot {
        let mut snapshots = Vec::with_capacity(self.others.count());
        for shard in 0..self.others.count() {
            snapshots.extend(self.others.call(shard, |there| there.snapshot()).await.ok());
        }
        Snapshot::merge(snapshots)
    }

    /// The tables that have series of their own, by keyspace and name.
    pub fn shown_tables(&self) -> Vec<(String, String, TableId)> {
        let schema = self.engine.schema();
        let table = |id| Some((schema.table_by_id(&id)?, id));
        let tables = self.tables.ids().into_iter().filter_map(table);
        tables.map(|(of, id)| (of.keyspace.clone(), of.name.clone(), id)).collect()
    }

    /// Shows what the start found in the commit log.
    pub fn show_replay(&self, replay: &Replay) {
        let show = |name, value: i64, help| {
            self.registry.gauge(Name::new("CommitLog", name), Unit::Count, help).set(value);
        };
        show("ReplayApplied", gauge(replay.applied), "Commit log records that the start replayed.");
        show(
            "ReplayCovered",
            gauge(replay.covered),
            "Commit log records that were in SSTables already.",
        );
        show(
            "ReplayUnknown",
            gauge(replay.unknown),
            "Commit log records of tables that no longer exist.",
        );
        show("ReplayTorn", gauge(replay.torn.len()), "Commit log segments that a crash cut off.");
    }

    /// This shard's metrics as they are now.
    fn snapshot(&self) -> Snapshot {
        *self.observed.borrow_mut() = self.env.stats();
        self.tables.show(&self.registry, &self.engine);
        self.registry.snapshot()
    }
}

/// What the first shard shows of the process.
fn register_node(context: &Context) {
    if context.env.shard() != 0 {
        return;
    }
    let (env, started) = (context.env.clone(), context.started);
    let (registry, limits) = (&context.registry, context.limits.clone());
    let behind = env.clone();
    let micros = |time: std::time::Duration| gauge(time.as_micros());
    registry.probe(
        Name::new("Clock", "Behind"),
        Unit::Micros,
        "How far the clock is behind the node's last timestamp.",
        move || micros(behind.clock_behind()),
    );
    registry.probe(Name::new("Node", "Uptime"), Unit::Micros, "Time since the start.", move || {
        micros(env.now().since(started))
    });
    registry.probe(
        Name::new("Client", "ConnectionsOfNode"),
        Unit::Count,
        "Connections that count against the node's limit.",
        move || gauge(limits.open()),
    );
}

fn register_prepared(registry: &Registry, shard: &Rc<Shard>) {
    let kept = Rc::clone(shard);
    let evicted = Rc::clone(shard);
    registry.probe(
        Name::new("CQL", "PreparedStatementsCount"),
        Unit::Count,
        "Prepared statements in the cache, on every shard.",
        move || gauge(kept.statements().stats().0),
    );
    registry.count_probe(
        Name::new("CQL", "PreparedStatementsEvicted"),
        Unit::Count,
        "Prepared statements evicted from the cache.",
        move || evicted.statements().stats().1,
    );
}
