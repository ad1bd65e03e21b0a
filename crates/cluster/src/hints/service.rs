//! The hints that the node keeps, and who looks after them: on the first shard (`hints.HintsService`,
//! `HintsDispatchTrigger`, `HintsDispatchExecutor`).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use config::CommitLogSync;
use env::sync::Notify;
use env::{Class, Env, Instant};
use hints::{Compression, Hints, Options, SyncMode};
use types::{Address, Uuid};

use super::delivery::Delivery;
use super::{Amount, Handoff};

/// How often it is looked who is up.
const LOOK: Duration = Duration::from_secs(1);
/// After how long a node that failed is sent hints again (`HintsService.startDispatch`).
const AGAIN: Duration = Duration::from_secs(10);
/// How long a node must not be in the ring before its hints go to others: it may not be heard of yet.
const GONE: Duration = Duration::from_secs(60);
/// Bytes of hints that wait to be written at most.
const WAITING_BYTES: usize = 32 << 20;
/// How often it is looked for files of which nothing is worth anything any more (`HintsService`).
const CLEAN: Duration = Duration::from_secs(3600);

/// Keeps and delivers.
pub(crate) struct Service {
    pub env: Env,
    pub handoff: Weak<Handoff>,
    pub store: Rc<Hints>,
    work: Notify,
    is_paused: Cell<bool>,
    is_closing: Cell<bool>,
    /// Whose hints are being delivered.
    delivering: RefCell<BTreeSet<Uuid>>,
    ended: Notify,
    /// Who is sent nothing until then.
    later: RefCell<BTreeMap<Uuid, Instant>>,
    /// Since when nodes are not in the ring.
    missing: RefCell<BTreeMap<Uuid, Instant>>,
    told: RefCell<BTreeMap<Uuid, Amount>>,
}

/// What to do with a node's hints.
pub(super) enum Target {
    /// Send them.
    Up(Address),
    /// Wait.
    Down,
    /// It is in no ring; or it is this node: they are for whoever has the data now.
    Nobody,
}

fn options(config: &config::Config) -> io::Result<Options> {
    let mode = match config.commitlog_sync {
        CommitLogSync::Periodic { period, lag_block } => SyncMode::Periodic { period, lag_block },
        CommitLogSync::Batch => SyncMode::Batch,
        CommitLogSync::Group { window } => SyncMode::Group { window },
    };
    let compression = config.hints.compression.as_ref().map(|compression| {
        let made = Compression::new(&compression.class, compression.parameters.clone());
        made.map_err(|error| io::Error::other(format!("hints_compression: {error}")))
    });
    Ok(Options {
        directory: config.hints_directory.clone(),
        mode,
        compression: compression.transpose()?,
        file_bytes_max: config.hints.file_size.max(1),
        waiting_bytes_max: WAITING_BYTES.max(2 * config.max_mutation_size as usize),
    })
}

impl Service {
    pub async fn start(handoff: &Rc<Handoff>) -> io::Result<Rc<Self>> {
        let env = handoff.shard.env.clone();
        let told = Rc::downgrade(handoff);
        let tell = Box::new(move |text: &str| {
            if let Some(handoff) = told.upgrade() {
                handoff.peers.note(text.to_owned());
            }
        });
        let store = Hints::start(&env, options(&handoff.shard.config)?, tell).await?;
        let service = Rc::new(Self {
            env: env.clone(),
            handoff: Rc::downgrade(handoff),
            store,
            work: Notify::new(),
            is_paused: Cell::default(),
            is_closing: Cell::default(),
            delivering: RefCell::default(),
            ended: Notify::new(),
            later: RefCell::default(),
            missing: RefCell::default(),
            told: RefCell::default(),
        });
        env.spawn(Class::Streaming, Rc::clone(&service).watch());
        Ok(service)
    }

    async fn watch(self: Rc<Self>) {
        let mut cleaned = self.env.now();
        while !self.is_closing.get() {
            let Some(handoff) = self.handoff.upgrade() else { return };
            self.tell_amounts(&handoff);
            if self.env.now().since(cleaned) >= CLEAN {
                cleaned = self.env.now();
                self.clean(&handoff).await;
            }
            if !self.is_paused.get() {
                for kept in self.store.kept().iter().filter(|kept| kept.files > 0) {
                    self.begin(kept.host);
                }
            }
            drop(handoff);
            let _ = self.env.timeout(LOOK, self.work.notified()).await;
        }
    }

    /// Has every shard know what is kept for whom.
    fn tell_amounts(&self, handoff: &Handoff) {
        let kept = self.store.kept().into_iter();
        let amounts: BTreeMap<_, _> = kept
            .map(|kept| (kept.host, Amount { bytes: kept.bytes, oldest: kept.oldest }))
            .collect();
        if *self.told.borrow() == amounts {
            return;
        }
        let known = amounts.clone();
        handoff.others.send_to_all(move |other| drop(other.kept.replace(known.clone())));
        self.told.replace(amounts);
    }

    /// Removes files of which nothing is worth anything any more (`auto_hints_cleanup_enabled`).
    async fn clean(&self, handoff: &Handoff) {
        if !handoff.settings.borrow().cleans_up {
            return;
        }
        let schema = handoff.shard.schema();
        let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
        let longest = tables.map(|table| i64::from(table.params.gc_grace_seconds)).max();
        let before = self.env.unix_micros() / 1000 - longest.unwrap_or_default() * 1000;
        if let Err(error) = self.store.remove_older(before).await {
            handoff.peers.note(format!("cannot delete expired hints: {error}"));
        }
    }

    pub(super) fn target(&self, host: Uuid) -> Target {
        let ring = self.handoff.upgrade().and_then(|handoff| handoff.peers.ring());
        let Some(ring) = ring else { return Target::Down };
        let node = ring.nodes().iter().find(|node| node.host_id == host);
        if node.is_some() {
            self.missing.borrow_mut().remove(&host);
        }
        match node {
            Some(node) if node.is_local => Target::Nobody,
            Some(node) if node.is_up => Target::Up(node.address),
            Some(_) => Target::Down,
            None => {
                let now = self.env.now();
                let since = *self.missing.borrow_mut().entry(host).or_insert(now);
                if now.since(since) >= GONE { Target::Nobody } else { Target::Down }
            }
        }
    }

    /// Begins to deliver a node's hints, if it is time.
    fn begin(self: &Rc<Self>, host: Uuid) {
        let now = self.env.now();
        let target = self.target(host);
        if matches!(target, Target::Down) {
            // once it is up, at once
            self.later.borrow_mut().remove(&host);
            return;
        }
        if self.later.borrow().get(&host).is_some_and(|at| now < *at)
            || !self.delivering.borrow_mut().insert(host)
        {
            return;
        }
        let this = Rc::clone(self);
        self.env.spawn(Class::Streaming, async move {
            let is_done = match target {
                Target::Up(address) => Delivery::new(&this, host, host, address).run().await,
                _ => this.readdress(host).await,
            };
            match is_done {
                Ok(true) => drop(this.later.borrow_mut().remove(&host)),
                Ok(false) => this.not_before(host, this.env.now() + AGAIN),
                Err(error) => {
                    let seconds = AGAIN.as_secs();
                    this.note(format!(
                        "cannot deliver hints for host {host}, retrying in {seconds} s: {error}"
                    ));
                    this.not_before(host, this.env.now() + AGAIN);
                }
            }
            this.delivering.borrow_mut().remove(&host);
            this.ended.notify_all();
            this.work.notify_one();
        });
    }

    /// Is this node one of the first that are being sent hints, of `max_hints_delivery_threads`? All are sent theirs at once, so
    /// that none waits for another; but so many alone as fast as they can.
    pub(super) fn may_be_fast(&self, host: Uuid) -> bool {
        let Some(handoff) = self.handoff.upgrade() else { return false };
        let most = handoff.settings.borrow().deliveries as usize;
        self.delivering.borrow().iter().take(most).any(|first| *first == host)
    }

    fn not_before(&self, host: Uuid, at: Instant) {
        self.later.borrow_mut().insert(host, at);
    }

    pub(super) fn note(&self, message: String) {
        if let Some(handoff) = self.handoff.upgrade() {
            handoff.peers.note(message);
        }
    }

    /// Something about the ring is other than it was.
    pub fn wake(&self) {
        self.work.notify_one();
    }

    pub fn pause(&self, is_paused: bool) {
        self.is_paused.set(is_paused);
        self.later.borrow_mut().clear();
        self.wake();
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    /// Is nothing delivered any more?
    pub(super) fn has_stopped(&self) -> bool {
        self.is_paused.get() || self.is_closing.get()
    }

    pub async fn close(&self) {
        self.is_closing.set(true);
        self.wake();
        self.store.close().await;
    }

    /// Hands all hints to a node that keeps them from then on.
    pub async fn hand_over(self: &Rc<Self>, to: Address) -> bool {
        let ring = self.handoff.upgrade().and_then(|handoff| handoff.peers.ring());
        let node = ring.as_ref().and_then(|ring| Some(ring.node(ring.find(to)?).host_id));
        let Some(node) = node else { return false };
        self.is_paused.set(false);
        for kept in self.store.kept() {
            while self.delivering.borrow().contains(&kept.host) {
                self.ended.notified().await;
            }
            self.delivering.borrow_mut().insert(kept.host);
            let handed = Delivery::new(self, kept.host, node, to).run().await;
            self.delivering.borrow_mut().remove(&kept.host);
            if !matches!(handed, Ok(true)) {
                return false;
            }
        }
        true
    }

    /// Bytes a second that a node is sent, where the operator has set that: its share of what all are sent, unless it is
    /// handed what is for others.
    pub(super) fn throttle(&self, is_hand_over: bool) -> Option<u64> {
        let handoff = self.handoff.upgrade()?;
        let rate = handoff.settings.borrow().throttle.filter(|rate| *rate > 0)?;
        let nodes = handoff.peers.ring().map_or(1, |ring: Arc<ring::Ring>| ring.nodes().len());
        let others = if is_hand_over { 1 } else { nodes.saturating_sub(1).max(1) };
        Some((rate / others as u64).max(1))
    }
}
