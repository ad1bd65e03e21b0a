//! Hinted handoff: writes that a replica missed are kept for it, and sent once it is up
//! (`hints.HintsService`, `StorageProxy.shouldHint`).
//!
//! The node keeps its hints on the first shard (`service.rs`), in the files of crate `hints`; other
//! shards send theirs there. How a node is sent what is kept for it is in `delivery.rs`, how fast
//! in `speed.rs` and `pace.rs`, and what becomes of hints for a node that is gone in
//! `readdress.rs`.
//!
//! A shard asks `should_hint` and gives `hint` a mutation. The first shard syncs the file as the
//! commit log is synced, and the ticket resolves then.

mod delivery;
mod pace;
mod readdress;
mod service;
mod speed;
mod targets;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use env::sync::oneshot;
use env::{Class, Instant};
use hints::{Hint, HintError};
use internode::FailureReason;
use metrics::{Counter, Gauge, Name, Registry, Unit};
use ring::{NodeIndex, Ring};
use storage::Trace;
use storage::shards::Remote;
use types::{Address, Uuid};

use crate::local_writes::LocalWrites;
use crate::payload::mutation;
use crate::peers::Peers;
use crate::served::check_updates;
use crate::shard_context::ShardContext;

use service::Service;

/// Keeps writes that other nodes missed, and delivers them.
pub struct Handoff {
    shard: Rc<ShardContext>,
    others: Remote<Handoff>,
    peers: Rc<Peers>,
    writes: Rc<LocalWrites>,
    /// On the first shard: who keeps them.
    service: OnceCell<Rc<Service>>,
    /// The configuration's, until the operator sets others.
    settings: RefCell<config::Hints>,
    /// Since when nodes are down.
    down_since: RefCell<BTreeMap<Uuid, Instant>>,
    /// What is kept for nodes, as the first shard last said.
    kept: RefCell<BTreeMap<Uuid, Amount>>,
    counts: Counts,
}

/// What is kept for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    bytes: u64,
    /// When the oldest file was begun, in milliseconds since 1970.
    oldest: i64,
}

/// What a shard counts of hints, under Cassandra's names.
struct Counts {
    total: Counter,
    in_progress: Gauge,
    past_window: Counter,
    succeeded: Counter,
    failed: Counter,
    timed_out: Counter,
    unreadable: Counter,
}

impl Counts {
    fn new(registry: &Registry) -> Self {
        let count = |group, name, help| registry.counter(Name::new(group, name), Unit::Count, help);
        let service = |name, help| count("HintsService", name, help);
        Self {
            total: count("Storage", "TotalHints", "Hints stored since the start."),
            in_progress: registry.gauge(
                Name::new("Storage", "TotalHintsInProgress"),
                Unit::Count,
                "Hints that are not durable yet.",
            ),
            past_window: service(
                "Hints_not_stored",
                "Hints not stored: the replica is down for longer than max_hint_window.",
            ),
            succeeded: service("HintsSucceeded", "Hints delivered."),
            failed: service("HintsFailed", "Hints that a replica failed to apply."),
            timed_out: service(
                "HintsTimedOut",
                "Hints that a replica did not acknowledge in time.",
            ),
            unreadable: service("HintsUnreadable", "Damaged hints: not applied, and lost."),
        }
    }
}

/// A hint on its way: ready once it is as durable as an acknowledged write. It is kept whether
/// somebody waits or not.
#[must_use = "the hint is not durable before this is ready"]
pub struct HintTicket(Pin<Box<dyn Future<Output = Result<(), HintError>>>>);

impl Future for HintTicket {
    type Output = Result<(), HintError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

/// What is kept for a node, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its id.
    pub host: Uuid,
    /// The node, if it is in the ring.
    pub node: Option<ring::Node>,
    /// Files.
    pub files: usize,
    /// Bytes.
    pub bytes: u64,
    /// When the newest file was begun, in milliseconds since 1970.
    pub newest: i64,
    /// When the oldest was.
    pub oldest: i64,
}

impl Handoff {
    pub(crate) fn new(
        shard: &Rc<ShardContext>,
        others: Remote<Self>,
        peers: &Rc<Peers>,
        writes: &Rc<LocalWrites>,
        registry: &Registry,
    ) -> Rc<Self> {
        let handoff = Rc::new(Self {
            shard: Rc::clone(shard),
            others,
            peers: Rc::clone(peers),
            writes: Rc::clone(writes),
            service: OnceCell::new(),
            settings: RefCell::new(shard.config.hints.clone()),
            down_since: RefCell::default(),
            kept: RefCell::default(),
            counts: Counts::new(registry),
        });
        let watcher = Rc::downgrade(&handoff);
        peers.watch_ring(move |ring| {
            if let Some(handoff) = watcher.upgrade() {
                handoff.see_ring(ring);
            }
        });
        handoff
    }

    /// Keeps a mutation of messaging 12 for a node that missed it. From `created`, in milliseconds,
    /// on it is worth something for the least `gc_grace_seconds` of its tables.
    pub fn keep(
        self: &Rc<Self>,
        to: Uuid,
        created: i64,
        gc_grace: i32,
        mutation: Arc<[u8]>,
    ) -> HintTicket {
        self.counts.total.inc();
        self.shard.env.mark("hint.kept");
        if self.others.me() == 0 {
            let kept = self.keep_here(to, &Hint { created, gc_grace, mutation: &mutation });
            return HintTicket(Box::pin(kept));
        }
        let (kept, ticket) = oneshot();
        let this = Rc::clone(self);
        self.shard.env.spawn(Class::Statement, async move {
            let keep = async move |first: Rc<Self>| {
                first.keep_here(to, &Hint { created, gc_grace, mutation: &mutation }).await
            };
            let result = this.others.call_async(0, Class::Statement, keep).await;
            let _ = kept.send(result.unwrap_or(Err(HintError::Closed)));
        });
        HintTicket(Box::pin(async move { ticket.await.unwrap_or(Err(HintError::Closed)) }))
    }

    fn keep_here(
        self: &Rc<Self>,
        to: Uuid,
        hint: &Hint<'_>,
    ) -> impl Future<Output = Result<(), HintError>> + use<> {
        let ticket = self.service.get().map(|service| service.store.add(to, hint));
        let this = Rc::clone(self);
        async move {
            let ticket = ticket.ok_or(HintError::Closed)?;
            let in_progress = |service: &Rc<Service>| service.store.in_progress() as i64;
            let count = || this.service.get().map_or(0, in_progress);
            this.counts.in_progress.set(count());
            let kept = ticket.durable().await;
            this.counts.in_progress.set(count());
            kept
        }
    }

    /// Is a write that a node missed to be kept for it?
    pub fn should_hint(&self, node: &ring::Node) -> bool {
        let settings = self.settings.borrow();
        let is_disabled = |known: &String| **known == *node.data_center;
        if !settings.is_enabled
            || node.is_local
            || settings.disabled_datacenters.iter().any(is_disabled)
        {
            return false;
        }
        let since = self.down_since.borrow().get(&node.host_id).copied();
        let down = since.map_or(Duration::ZERO, |since| self.shard.env.now().since(since));
        let kept = self.kept.borrow().get(&node.host_id).copied();
        let window = i64::try_from(settings.window.as_millis()).unwrap_or(i64::MAX);
        let begin = self.shard.unix_millis().saturating_sub(window);
        let is_past = |kept: Amount| settings.is_window_persistent && kept.oldest < begin;
        if down > settings.window || kept.is_some_and(is_past) {
            self.counts.past_window.inc();
            return false;
        }
        let most = settings.size_per_host;
        most == 0 || kept.is_none_or(|kept| kept.bytes <= most)
    }

    /// What this shard goes by.
    pub fn settings(&self) -> config::Hints {
        self.settings.borrow().clone()
    }

    /// Has all shards go by other settings from now on.
    pub fn set_settings(&self, settings: &config::Hints) {
        for shard in 0..self.others.count() {
            let settings = settings.clone();
            self.others.send(shard, move |other| drop(other.settings.replace(settings)));
        }
        self.settings.replace(settings.clone());
    }

    /// This shard knows of another ring.
    fn see_ring(&self, ring: &Ring) {
        let now = self.shard.env.now();
        let mut down = self.down_since.borrow_mut();
        down.retain(|host, _| ring.nodes().iter().any(|node| node.host_id == *host && !node.is_up));
        for node in ring.nodes().iter().filter(|node| !node.is_up) {
            down.entry(node.host_id).or_insert(now);
        }
        if let Some(service) = self.service.get() {
            service.wake();
        }
    }

    /// The node's hints; on the first shard, once they are open.
    fn service(&self) -> Option<&Rc<Service>> {
        self.service.get()
    }

    /// Opens the hints of earlier runs and begins to deliver them; on the first shard.
    ///
    /// # Errors
    /// Of the disk, or if the compression of hints is unknown.
    pub async fn open(self: &Rc<Self>) -> std::io::Result<()> {
        let service = Service::start(self).await?;
        let _ = self.service.set(service);
        Ok(())
    }

    /// Delivers nothing more, and writes what waits; on the first shard.
    pub async fn close(&self) {
        if let Some(service) = self.service() {
            service.close().await;
        }
    }

    /// Stops to deliver hints, or goes on with it (`nodetool pausehandoff`, `resumehandoff`); on
    /// the first shard.
    pub fn pause(&self, are_paused: bool) {
        if let Some(service) = self.service() {
            service.pause(are_paused);
        }
    }

    /// Are hints not delivered for now?
    pub fn is_paused(&self) -> bool {
        self.service().is_some_and(|service| service.is_paused())
    }

    /// Throws hints away: all, or those for a node; on the first shard. Says how many files went.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn truncate(&self, of: Option<Uuid>) -> std::io::Result<usize> {
        match self.service() {
            Some(service) => service.store.truncate(of).await,
            None => Ok(0),
        }
    }

    /// What is kept for which node; on the first shard.
    pub fn pending(&self) -> Vec<Pending> {
        let Some(service) = self.service() else { return Vec::new() };
        let ring = self.peers.ring();
        let pending = |kept: hints::Kept| {
            let nodes = ring.iter().flat_map(|ring| ring.nodes());
            let node = nodes.into_iter().find(|node| node.host_id == kept.host).cloned();
            let hints::Kept { host, files, bytes, oldest, newest } = kept;
            Pending { host, node, files, bytes, newest, oldest }
        };
        service.store.kept().into_iter().map(pending).collect()
    }

    /// Sends all hints to another node, which keeps them from then on: before this one leaves the
    /// ring (`HintsService.transferHints`). On the first shard. False if some could not be sent.
    pub async fn hand_over(&self, to: Address) -> bool {
        match self.service() {
            Some(service) => service.hand_over(to).await,
            None => true,
        }
    }

    /// Gives a hint to all replicas of its key: this node applies it if it is one, and keeps it for
    /// the others. One that cannot be read, or has no table any more, comes to nothing. An error is
    /// none of the hint's.
    pub(crate) async fn give_to_replicas(
        self: &Rc<Self>,
        created: i64,
        gc_grace: i32,
        payload: &[u8],
    ) -> Result<(), FailureReason> {
        let schema = self.shard.schema();
        let mutation = match mutation(payload, &schema) {
            Ok(mutation) => mutation,
            Err(FailureReason::IncompatibleSchema) => return Ok(()),
            Err(_) => {
                self.counts.unreadable.inc();
                return Ok(());
            }
        };
        let Ok(checked) = check_updates(&schema, mutation.updates()) else { return Ok(()) };
        let keyspace = schema.keyspace(&checked.keyspace).ok_or(FailureReason::Unknown)?;
        let ring = self.peers.ring().ok_or(FailureReason::Unknown)?;
        let placement = ring.placement(&keyspace.replication.strategy);
        let replicas = placement.ok_or(FailureReason::Unknown)?.at(mutation.token());
        let all = replicas.natural.iter().chain(replicas.pending);
        let (own, others): (Vec<&NodeIndex>, Vec<&NodeIndex>) =
            all.partition(|node| **node == ring.local());
        let tickets: Vec<_> = others
            .into_iter()
            .map(|node| {
                let host = ring.node(*node).host_id;
                self.keep(host, created, gc_grace, payload.into())
            })
            .collect();
        for ticket in tickets {
            ticket.await.map_err(|_| FailureReason::Unknown)?;
        }
        if !own.is_empty() {
            let own = vec![(checked.is_durable, mutation)];
            let applied = self.writes.apply_all(own, &Trace::OFF).await;
            applied.map_err(|error| self.shard.reason_of(&error))?;
        }
        Ok(())
    }
}
