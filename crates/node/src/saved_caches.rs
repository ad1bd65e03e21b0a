//! Caches that are saved now and then and when the node ends, and read by the next start, while it
//! serves already.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use config::{Config, SavedCache};
use env::Class;
use env::sync::{Notify, Semaphore};
use storage::{CacheKind, StorageError, save_cache};

use crate::node::Node;

/// The caches that are saved, as Cassandra names them.
const SAVED: [(CacheKind, &str); 3] = [
    (CacheKind::Keys, "KeyCache"),
    (CacheKind::Rows, "RowCache"),
    (CacheKind::Counters, "CounterCache"),
];

/// What a node knows of its saved caches; on the first shard.
pub(crate) struct SavedCaches {
    /// Whoever writes the files holds it.
    turn: Semaphore,
    /// Which of them were read to the end.
    are_loaded: Cell<[bool; SAVED.len()]>,
    /// The operator changed how much is saved: the time until the next save begins anew.
    pub changed: Notify,
}

impl Default for SavedCaches {
    fn default() -> Self {
        Self { turn: Semaphore::new(1), are_loaded: Cell::default(), changed: Notify::new() }
    }
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

impl Node {
    /// Reads what was saved, and saves from now on.
    pub(crate) fn keep_caches(self: &Rc<Self>) {
        for place in 0..SAVED.len() {
            self.env().spawn(Class::Background, Rc::clone(self).keep_cache(place));
        }
    }

    async fn keep_cache(self: Rc<Self>, place: usize) {
        let Some((kind, name)) = SAVED.get(place).copied() else { return };
        let was_saved = self.load_cache(kind, name).await;
        let mut loaded = self.saved_caches.are_loaded.get();
        if let Some(loaded) = loaded.get_mut(place) {
            *loaded = true;
        }
        self.saved_caches.are_loaded.set(loaded);
        // What a key cache says of SSTables is only ever that of this start or of the one before:
        // their names may be given again later.
        if was_saved && kind == CacheKind::Keys {
            self.save(kind, name).await;
        }
        let period = saving(self.config(), kind).period;
        while !period.is_zero() {
            let changed = self.saved_caches.changed.notified();
            if self.env().timeout(period, changed).await.is_err() {
                self.save(kind, name).await;
            }
        }
    }

    /// Reads what was saved of a cache, if anything was.
    async fn load_cache(&self, kind: CacheKind, name: &str) -> bool {
        let Some(shard) = self.shard() else { return false };
        let (started, settings) = (self.env().now(), &self.config().saved_caches);
        let goes_on = || {
            let took = self.env().now().since(started);
            took < settings.load_timeout && !self.is_ending()
        };
        let directory = &self.config().saved_caches_directory;
        match shard.saved_caches().load(kind, directory, goes_on).await {
            Ok(None) => return false,
            Ok(Some(names)) => {
                let millis = self.env().now().since(started).as_millis();
                let text = format!("Completed loading ({millis} ms; {names} keys) {name} cache");
                self.say("INFO", text);
            }
            Err(error @ StorageError::Corrupt { .. }) => {
                self.say("WARN", format!("Non-fatal error reading saved cache: {error}"));
            }
            Err(error) => self.say("INFO", format!("Harmless error reading saved cache: {error}")),
        }
        true
    }

    async fn save(&self, kind: CacheKind, name: &str) {
        let Some(shard) = self.shard() else { return };
        let most = saving(&shard.guardrails().current_config(), kind).most;
        let directory = &self.config().saved_caches_directory;
        let _turn = self.saved_caches.turn.acquire(1).await;
        let started = self.env().now();
        match save_cache(self.engine(), kind, directory, most).await {
            Ok(0) => {}
            Ok(saved) => {
                let millis = self.env().now().since(started).as_millis();
                let directory = directory.display();
                self.say(
                    "INFO",
                    format!("Saved {name} ({saved} items) in {millis} ms to {directory}"),
                );
            }
            Err(error) => self.say(
                "WARN",
                format!(
                    "cannot save {name}, so the next start loads an older one or none: {error}"
                ),
            ),
        }
    }

    /// Saves those that were read to the end, and that are saved at all; when the node ends.
    pub(crate) async fn save_caches(&self) {
        for ((kind, name), is_loaded) in SAVED.into_iter().zip(self.saved_caches.are_loaded.get()) {
            if is_loaded && !saving(self.config(), kind).period.is_zero() {
                self.save(kind, name).await;
            }
        }
    }
}
