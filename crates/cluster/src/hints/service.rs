//! The hints that the node keeps, and who looks after them: on the first shard
//! (`hints.HintsService`, `HintsDispatchTrigger`, `HintsDispatchExecutor`).
//!
//! It looks who is up each second, and at each change of the ring.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use config::CommitLogSync;
use env::sync::Notify;
use env::{Class, Env, Instant};
use hints::{Compression, Hints, Options, SyncMode};
use metrics::Level;
use types::{Address, Uuid};

use super::delivery::Delivery;
use super::targets::{Target, Targets};
use super::{Amount, Handoff};

/// How often it is looked who is up.
const LOOK: Duration = Duration::from_secs(1);
/// After how long a node that failed is sent hints again (`HintsService.startDispatch`).
const AGAIN: Duration = Duration::from_secs(10);
/// Bytes of hints that wait to be written at most.
const WAITING_BYTES: usize = 32 << 20;
/// How often it is looked for files of which nothing is worth anything any more (`HintsService`).
const CLEAN: Duration = Duration::from_secs(3600);

/// Keeps and delivers.
pub(crate) struct Service {
    pub(super) env: Env,
    pub(super) handoff: Weak<Handoff>,
    pub store: Rc<Hints>,
    pub(super) targets: Rc<Targets>,
    work: Notify,
    ended: Notify,
    /// Who is sent nothing until then.
    later: RefCell<BTreeMap<Uuid, Instant>>,
    told: RefCell<BTreeMap<Uuid, Amount>>,
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
        let tell = Box::new(move |level, text: &str| {
            if let Some(handoff) = told.upgrade() {
                handoff.peers.note(level, text.to_owned());
            }
        });
        let store = Hints::start(&env, options(&handoff.shard.config)?, tell).await?;
        let service = Rc::new(Self {
            env: env.clone(),
            handoff: Rc::downgrade(handoff),
            targets: Targets::new(&env, handoff, &store),
            store,
            work: Notify::new(),
            ended: Notify::new(),
            later: RefCell::default(),
            told: RefCell::default(),
        });
        env.spawn(Class::Streaming, Rc::clone(&service).watch());
        Ok(service)
    }

    async fn watch(self: Rc<Self>) {
        let mut cleaned = self.env.now();
        while !self.targets.is_closing.get() {
            let Some(handoff) = self.handoff.upgrade() else { return };
            self.tell_amounts(&handoff);
            if self.env.now().since(cleaned) >= CLEAN {
                cleaned = self.env.now();
                self.clean(&handoff).await;
            }
            if !self.targets.is_paused.get() {
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
            let text = format!("cannot delete expired hints: {error}");
            handoff.peers.note(Level::Warn, text);
        }
    }

    /// Begins to deliver a node's hints, if it is time.
    fn begin(self: &Rc<Self>, host: Uuid) {
        let now = self.env.now();
        let target = self.targets.target(host);
        if matches!(target, Target::Down) {
            // once it is up, at once
            self.later.borrow_mut().remove(&host);
            return;
        }
        if self.later.borrow().get(&host).is_some_and(|at| now < *at)
            || !self.targets.delivering.borrow_mut().insert(host)
        {
            return;
        }
        let this = Rc::clone(self);
        self.env.spawn(Class::Streaming, async move {
            let is_done = match target {
                Target::Up(address) => {
                    Delivery::new(&this.targets, host, host, address).run().await
                }
                _ => this.readdress(host).await,
            };
            match is_done {
                Ok(true) => drop(this.later.borrow_mut().remove(&host)),
                Ok(false) => this.not_before(host, this.env.now() + AGAIN),
                Err(error) => {
                    let seconds = AGAIN.as_secs();
                    let text = format!(
                        "cannot deliver hints for host {host}, retrying in {seconds} s: {error}"
                    );
                    this.targets.note(Level::Warn, text);
                    this.not_before(host, this.env.now() + AGAIN);
                }
            }
            this.targets.delivering.borrow_mut().remove(&host);
            this.ended.notify_all();
            this.work.notify_one();
        });
    }

    fn not_before(&self, host: Uuid, at: Instant) {
        self.later.borrow_mut().insert(host, at);
    }

    /// Something about the ring is other than it was.
    pub fn wake(&self) {
        self.work.notify_one();
    }

    pub fn pause(&self, is_paused: bool) {
        self.targets.is_paused.set(is_paused);
        self.later.borrow_mut().clear();
        self.wake();
    }

    pub fn is_paused(&self) -> bool {
        self.targets.is_paused.get()
    }

    pub async fn close(&self) {
        self.targets.is_closing.set(true);
        self.wake();
        self.store.close().await;
    }

    /// Hands all hints to a node that keeps them from then on.
    pub async fn hand_over(self: &Rc<Self>, to: Address) -> bool {
        let ring = self.handoff.upgrade().and_then(|handoff| handoff.peers.ring());
        let node = ring.as_ref().and_then(|ring| Some(ring.node(ring.find(to)?).host_id));
        let Some(node) = node else { return false };
        self.targets.is_paused.set(false);
        for kept in self.store.kept() {
            while self.targets.delivering.borrow().contains(&kept.host) {
                self.ended.notified().await;
            }
            self.targets.delivering.borrow_mut().insert(kept.host);
            let handed = Delivery::new(&self.targets, kept.host, node, to).run().await;
            self.targets.delivering.borrow_mut().remove(&kept.host);
            if !matches!(handed, Ok(true)) {
                return false;
            }
        }
        true
    }
}
