//! What a shard does by itself from when the node opens.

use std::rc::Rc;
use std::time::Duration;

use cluster::Shard;
use env::{Class, Env};
use metrics::Level;

use crate::caches::Caches;
use crate::context::Context;
use crate::guardrails::NodeGuardrails;
use crate::journal::Journal;
use crate::metrics_view::MetricsView;
use crate::snapshots::TableSnapshots;

/// How often recent values of histograms lose weight.
const TICK: Duration = Duration::from_secs(1);
/// Seconds in a minute, in which evictions are counted.
const MINUTE_SECONDS: u64 = 60;
/// How long after the start the sizes of tables are first estimated, and how often from then on
/// (Cassandra: 5 minutes).
const FIRST_ESTIMATES: Duration = Duration::from_secs(30);
const ESTIMATES: Duration = Duration::from_secs(60);

/// Ticks, estimates, the history of compactions, snapshots that expire and disks that fill.
pub(crate) struct Background {
    env: Env,
    shard: Rc<Shard>,
    journal: Rc<Journal>,
    metrics: Rc<MetricsView>,
    caches: Rc<Caches>,
    snapshots: Rc<TableSnapshots>,
    guardrails: Rc<NodeGuardrails>,
}

impl Background {
    pub fn new(
        context: &Context,
        shard: &Rc<Shard>,
        (metrics, caches): (&Rc<MetricsView>, &Rc<Caches>),
        (snapshots, guardrails): (&Rc<TableSnapshots>, &Rc<NodeGuardrails>),
    ) -> Rc<Self> {
        Rc::new(Self {
            env: context.env.clone(),
            shard: Rc::clone(shard),
            journal: Rc::clone(&context.journal),
            metrics: Rc::clone(metrics),
            caches: Rc::clone(caches),
            snapshots: Rc::clone(snapshots),
            guardrails: Rc::clone(guardrails),
        })
    }

    /// Begins; what the node does once begins on the first shard.
    pub fn start(self: &Rc<Self>) {
        self.env.spawn(Class::Background, Rc::clone(self).tick());
        if self.env.shard() == 0 {
            self.env.spawn(Class::Background, Rc::clone(self).estimate());
            self.env.spawn(Class::Background, Rc::clone(&self.snapshots).expire());
            self.env.spawn(Class::Background, Rc::clone(&self.guardrails).watch_disk());
            self.keep_history();
        }
    }

    /// Lets time pass for the metrics.
    async fn tick(self: Rc<Self>) {
        let (mut seconds, mut evicted) = (0u64, 0);
        loop {
            self.metrics.tick();
            self.caches.tick();
            seconds += 1;
            if seconds % MINUTE_SECONDS == 0 && self.env.shard() == 0 {
                self.warn_of_evictions(&mut evicted);
            }
            self.env.sleep(TICK).await;
        }
    }

    /// Says how many prepared statements went to make room since it was last asked.
    fn warn_of_evictions(&self, before: &mut u64) {
        let statements = self.shard.statements();
        let now = statements.stats().1;
        let gone = now - std::mem::replace(before, now);
        if gone > 0 {
            let size = statements.limit() >> 20;
            self.journal.say(Level::Warn, format!("{gone} prepared statements discarded in the last minute because cache limit reached ({size} MiB)"));
        }
    }

    /// Keeps the estimates of tables up to date.
    async fn estimate(self: Rc<Self>) {
        self.env.sleep(FIRST_ESTIMATES).await;
        loop {
            // another time, if the log does not take it now
            let _ = self.shard.estimates().refresh().await;
            self.env.sleep(ESTIMATES).await;
        }
    }

    /// Lets each compaction that ends leave a row in `system.compaction_history`.
    fn keep_history(&self) {
        let Some(storage) = self.shard.engine().node() else { return };
        let (env, compactions) = (self.env.clone(), Rc::downgrade(self.shard.compactions()));
        storage.compactions().tell(Rc::new(move |record| {
            let Some(compactions) = compactions.upgrade() else { return };
            env.spawn(Class::Background, async move {
                // Nobody misses a row that cannot be written.
                let _ = compactions.note(&record).await;
            });
        }));
    }
}
