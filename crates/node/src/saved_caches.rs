//! Caches that are saved now and then and when the node ends, and read by the next start, while it
//! serves already.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::Shard;
use config::{Config, SavedCache};
use env::sync::{Notify, Semaphore};
use env::{Class, Env};
use metrics::Level;
use storage::{CacheKind, StorageError, save_cache};

use crate::context::Context;
use crate::journal::Journal;
use crate::mode::Mode;

/// The caches that are saved, as Cassandra names them.
const SAVED: [(CacheKind, &str); 3] = [
    (CacheKind::Keys, "KeyCache"),
    (CacheKind::Rows, "RowCache"),
    (CacheKind::Counters, "CounterCache"),
];

/// Saves caches and reads them back; on the first shard.
pub(crate) struct SavedCaches {
    env: Env,
    config: Arc<Config>,
    shard: Rc<Shard>,
    journal: Rc<Journal>,
    mode: Rc<Mode>,
    /// Whoever writes the files holds it.
    turn: Semaphore,
    /// Which of them were read to the end.
    are_loaded: Cell<[bool; SAVED.len()]>,
    /// The operator changed how much is saved: the time until the next save begins anew.
    changed: Notify,
}

/// How often a cache is saved, and how much of it.
pub(crate) fn saving(config: &Config, kind: CacheKind) -> SavedCache {
    match kind {
        CacheKind::Keys => config.saved_caches.keys,
        CacheKind::Rows => config.saved_caches.rows,
        CacheKind::Counters => config.saved_caches.counters,
        CacheKind::Chunks => SavedCache { period: Duration::ZERO, most: 0 },
    }
}

impl SavedCaches {
    pub fn new(context: &Context, shard: &Rc<Shard>, mode: &Rc<Mode>) -> Rc<Self> {
        Rc::new(Self {
            env: context.env.clone(),
            config: Arc::clone(&context.config),
            shard: Rc::clone(shard),
            journal: Rc::clone(&context.journal),
            mode: Rc::clone(mode),
            turn: Semaphore::new(1),
            are_loaded: Cell::default(),
            changed: Notify::new(),
        })
    }

    /// Reads what was saved, and saves from now on.
    pub fn keep(self: &Rc<Self>) {
        for place in 0..SAVED.len() {
            self.env.spawn(Class::Background, Rc::clone(self).keep_cache(place));
        }
    }

    /// The operator changed how much is saved.
    pub fn begin_periods_anew(&self) {
        self.changed.notify_all();
    }

    /// Saves those that were read to the end, and that are saved at all; when the node ends.
    pub async fn save_all(&self) {
        for ((kind, name), is_loaded) in SAVED.into_iter().zip(self.are_loaded.get()) {
            if is_loaded && !saving(&self.config, kind).period.is_zero() {
                self.save(kind, name).await;
            }
        }
    }

    async fn keep_cache(self: Rc<Self>, place: usize) {
        let Some((kind, name)) = SAVED.get(place).copied() else { return };
        let was_saved = self.load(kind, name).await;
        let mut loaded = self.are_loaded.get();
        if let Some(loaded) = loaded.get_mut(place) {
            *loaded = true;
        }
        self.are_loaded.set(loaded);
        // What a key cache says of SSTables is only ever that of this start or of the one before:
        // their names may be given again later.
        if was_saved && kind == CacheKind::Keys {
            self.save(kind, name).await;
        }
        let period = saving(&self.config, kind).period;
        while !period.is_zero() {
            if self.env.timeout(period, self.changed.notified()).await.is_err() {
                self.save(kind, name).await;
            }
        }
    }

    /// Reads what was saved of a cache, if anything was.
    async fn load(&self, kind: CacheKind, name: &str) -> bool {
        let (started, settings) = (self.env.now(), &self.config.saved_caches);
        let goes_on = || {
            let took = self.env.now().since(started);
            took < settings.load_timeout && !self.mode.is_ending()
        };
        let directory = &self.config.saved_caches_directory;
        match self.shard.saved_caches().load(kind, directory, goes_on).await {
            Ok(None) => return false,
            Ok(Some(names)) => {
                let millis = self.env.now().since(started).as_millis();
                let text = format!("Completed loading ({millis} ms; {names} keys) {name} cache");
                self.journal.say(Level::Info, text);
            }
            Err(error @ StorageError::Corrupt { .. }) => {
                let text = format!("Non-fatal error reading saved cache: {error}");
                self.journal.say(Level::Warn, text);
            }
            Err(error) => {
                let text = format!("Harmless error reading saved cache: {error}");
                self.journal.say(Level::Info, text);
            }
        }
        true
    }

    async fn save(&self, kind: CacheKind, name: &str) {
        let most = saving(&self.shard.guardrails().current_config(), kind).most;
        let directory = &self.config.saved_caches_directory;
        let _turn = self.turn.acquire(1).await;
        let started = self.env.now();
        match save_cache(self.shard.engine(), kind, directory, most).await {
            Ok(0) => {}
            Ok(saved) => {
                let millis = self.env.now().since(started).as_millis();
                let directory = directory.display();
                let text = format!("Saved {name} ({saved} items) in {millis} ms to {directory}");
                self.journal.say(Level::Info, text);
            }
            Err(error) => {
                let text = format!(
                    "cannot save {name}, so the next start loads an older one or none: {error}"
                );
                self.journal.say(Level::Warn, text);
            }
        }
    }
}
