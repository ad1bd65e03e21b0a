//! How far the sessions of a node are, and how fast it sends: on its first shard, where what all
//! shards do comes together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use env::{Class, Env};
use metrics::Registry;
use storage::shards::Remote;
use types::{Address, Uuid};

use crate::limits::{Limits, Load, Pace};
use crate::measured::{LastRates, Measured};
use crate::progress::{Direction, FileKey, Progress};
use crate::session::SessionId;
use crate::settings::Settings;
use crate::states::{Moment, PlanView, States};
use crate::stream_metrics::StreamMetrics;
use crate::watch::{FileNumber, Watch};
use crate::wire::Operation;

/// Of one shard; that of the first one is the node's.
pub(crate) struct Ledger {
    env: Env,
    pace: Pace,
    states: States,
    metrics: StreamMetrics,
    /// How long the other node may take to say that it has a file.
    transfer_timeout: Duration,
    sessions: RefCell<BTreeMap<SessionId, UnderWay>>,
    rates: RefCell<LastRates>,
}

/// A session under way.
struct UnderWay {
    operation: Operation,
    progress: Rc<Progress>,
    watch: Rc<Watch>,
}

impl Ledger {
    pub fn new(env: &Env, settings: &Settings, registry: &Rc<Registry>) -> Rc<Self> {
        Rc::new(Self {
            env: env.clone(),
            pace: Pace::new(settings.limits),
            states: States::new(settings.remembered),
            metrics: StreamMetrics::new(registry),
            transfer_timeout: settings.transfer_timeout,
            sessions: RefCell::default(),
            rates: RefCell::default(),
        })
    }

    /// A plan begins, or a session of one that another node began.
    pub fn begin_plan(&self, id: Uuid, operation: Operation, is_follower: bool) {
        let now = Moment { at: self.env.now(), unix_millis: self.env.unix_micros() / 1000 };
        self.states.begin(id, operation, is_follower, now);
    }

    /// A plan of this node is over: with whom it failed, and why.
    pub fn end_plan(&self, id: Uuid, failed: &[(Address, String)]) {
        self.states.end(id, failed, self.env.now());
    }

    /// A session begins.
    pub fn begin(&self, id: SessionId, operation: Operation) -> (Rc<Progress>, Rc<Watch>) {
        let (progress, watch) = (Rc::new(Progress::new(self.env.now())), Rc::<Watch>::default());
        self.states.session(id, &progress);
        let (shown, watched) = (Rc::clone(&progress), Rc::clone(&watch));
        let under_way = UnderWay { operation, progress: shown, watch: watched };
        self.sessions.borrow_mut().insert(id, under_way);
        self.rates.borrow_mut().begin(self.env.now());
        (progress, watch)
    }

    /// Both sides of a session know what is to go.
    pub fn prepared(&self, id: SessionId) {
        self.states.prepared(id, self.env.now());
        self.show_active();
    }

    /// A session is over: why, if it failed.
    pub fn end(&self, id: SessionId, failed: Option<&str>) {
        let ended = self.sessions.borrow_mut().remove(&id);
        if let Some(UnderWay { progress, watch, .. }) = ended {
            watch.end();
            if failed.is_none() {
                progress.all_done();
            }
            if self.sessions.borrow().is_empty() {
                self.rates.borrow_mut().end(self.env.now());
            }
        }
        self.states.session_over(id, failed, self.env.now());
        self.show_active();
    }

    fn show_active(&self) {
        let sessions = self.sessions.borrow();
        let sends = |of: &&UnderWay| of.progress.sum(Direction::Out).files > 0;
        self.metrics.show_active(sessions.values().filter(sends).count());
    }

    /// All that are under way.
    pub fn all(&self) -> Vec<Rc<Progress>> {
        self.sessions.borrow().values().map(|of| Rc::clone(&of.progress)).collect()
    }

    /// What is remembered of plans.
    pub fn plans(&self) -> Vec<PlanView> {
        self.states.views(self.env.now())
    }

    pub fn metrics(&self) -> &StreamMetrics {
        &self.metrics
    }

    pub fn limits(&self) -> Limits {
        self.pace.limits()
    }

    /// How fast files went the last time.
    pub fn measured(&self) -> Measured {
        self.rates.borrow().last()
    }

    pub fn set_limits(&self, limits: Limits) {
        self.pace.set(limits);
    }

    /// Part of a file of a session was sent, or came.
    pub fn went_on(&self, id: SessionId, key: FileKey, bytes: u64) {
        let now = self.env.now();
        if let Some(of) = self.sessions.borrow().get(&id) {
            of.progress.went_on(key, bytes, now);
            self.states.went_on(id.plan, now);
            self.metrics.went_on(id.peer, of.operation, key.direction, bytes);
            self.rates.borrow_mut().went_on(key.direction, bytes);
        }
    }

    /// All of a file was sent: the other node is to say in time that it has it.
    pub fn sent(&self, id: SessionId, file: FileNumber) {
        if let Some(of) = self.sessions.borrow().get(&id) {
            of.watch.sent(file, self.env.now() + self.transfer_timeout);
        }
    }
}

/// Waits until so much more may be sent.
pub(crate) async fn throttle(ledger: &Remote<Ledger>, load: Load) {
    let paid = ledger.call_async(0, Class::Streaming, move |first: Rc<Ledger>| async move {
        first.pace.take(&first.env, load).await;
    });
    // a node that ends is not held up
    let _ = paid.await;
}
