//! What a shard remembers of `system_auth`, as long as the configuration lets it
//! (`auth.AuthCache`).

use std::cell::{Cell, RefCell};

use config::AuthCache;
use env::Instant;
use types::hash::HashMap;

/// Values by role.
pub(super) struct Cache<V> {
    settings: Cell<AuthCache>,
    entries: RefCell<HashMap<String, Entry<V>>>,
    /// Moves on whenever everything is forgotten: what was read before must not be kept after.
    generation: Cell<u64>,
}

struct Entry<V> {
    value: V,
    read: Instant,
    is_read_again: bool,
}

/// What [`Cache::get`] finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<V> {
    /// A value that serves.
    Fresh(V),
    /// One that serves, and is to be read again by who gets this: nobody else does.
    Stale(V),
    Missing,
}

impl<V> Found<V> {
    /// The value, and whether it is to be read again.
    pub fn served(self) -> Option<(V, bool)> {
        match self {
            Self::Fresh(value) => Some((value, false)),
            Self::Stale(value) => Some((value, true)),
            Self::Missing => None,
        }
    }
}

impl<V: Clone> Cache<V> {
    pub fn new(settings: AuthCache) -> Self {
        let settings = Cell::new(settings);
        Self { settings, entries: RefCell::default(), generation: Cell::new(0) }
    }

    pub fn settings(&self) -> AuthCache {
        self.settings.get()
    }

    /// Keeps values by these from now on; those that are more than that go.
    pub fn set(&self, settings: AuthCache) {
        self.settings.set(settings);
        let is_too_full = self.entries.borrow().len() > settings.max_entries;
        if is_too_full || !self.is_on() {
            self.forget();
        }
    }

    /// Is anything kept at all?
    pub fn is_on(&self) -> bool {
        let settings = self.settings.get();
        !settings.validity.is_zero() && settings.max_entries > 0
    }

    pub fn get(&self, role: &str, now: Instant) -> Found<V> {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get_mut(role) else { return Found::Missing };
        let age = now.since(entry.read);
        let settings = self.settings.get();
        if age >= settings.validity {
            return Found::Missing;
        }
        if age >= settings.update_interval && !entry.is_read_again {
            entry.is_read_again = true;
            return Found::Stale(entry.value.clone());
        }
        Found::Fresh(entry.value.clone())
    }

    /// To be taken before a value is read, and given to [`Self::put`].
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    pub fn put(&self, role: &str, value: V, generation: u64, now: Instant) {
        if !self.is_on() || generation != self.generation.get() {
            return;
        }
        let mut entries = self.entries.borrow_mut();
        if entries.len() >= self.settings.get().max_entries && !entries.contains_key(role) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.read);
            if let Some(oldest) = oldest.map(|(role, _)| role.clone()) {
                entries.remove(&oldest);
            }
        }
        entries.insert(role.to_owned(), Entry { value, read: now, is_read_again: false });
    }

    pub fn forget(&self) {
        self.generation.set(self.generation.get() + 1);
        self.entries.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cache(validity: u64, update: u64, max_entries: usize) -> Cache<u8> {
        let (validity, update_interval) =
            (Duration::from_secs(validity), Duration::from_secs(update));
        Cache::new(AuthCache { validity, update_interval, max_entries })
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn one_reads_again_after_the_interval_and_all_after_the_validity() {
        let cache = cache(10, 4, 5);
        cache.put("a", 1, cache.generation(), at(0));
        assert_eq!(cache.get("a", at(3)), Found::Fresh(1));
        assert_eq!(cache.get("a", at(4)), Found::Stale(1));
        assert_eq!(cache.get("a", at(5)), Found::Fresh(1));
        assert_eq!(cache.get("a", at(10)), Found::Missing);
        assert_eq!(cache.get("b", at(0)), Found::Missing);
    }

    #[test]
    fn what_was_read_before_all_was_forgotten_is_not_kept() {
        let cache = cache(10, 10, 5);
        let before = cache.generation();
        cache.forget();
        cache.put("a", 1, before, at(0));
        assert_eq!(cache.get("a", at(0)), Found::Missing);
        cache.put("a", 2, cache.generation(), at(0));
        cache.forget();
        assert_eq!(cache.get("a", at(0)), Found::Missing);
    }

    #[test]
    fn settings_count_from_when_they_are_set() {
        let cache = cache(10, 10, 2);
        cache.put("a", 1, cache.generation(), at(0));
        let shorter = AuthCache { validity: Duration::from_secs(3), ..cache.settings() };
        cache.set(shorter);
        assert_eq!(cache.get("a", at(2)), Found::Fresh(1));
        assert_eq!(cache.get("a", at(3)), Found::Missing);
        cache.put("a", 1, cache.generation(), at(3));
        cache.set(AuthCache { max_entries: 0, ..shorter });
        assert_eq!(cache.get("a", at(3)), Found::Missing);
        assert!(!cache.is_on());
    }

    #[test]
    fn the_oldest_goes_first_and_nothing_is_kept_without_validity() {
        let cache = cache(10, 10, 2);
        for (n, role) in ["a", "b", "c"].into_iter().enumerate() {
            cache.put(role, n as u8, cache.generation(), at(n as u64));
        }
        assert_eq!(cache.get("a", at(3)), Found::Missing);
        assert_eq!(cache.get("b", at(3)), Found::Fresh(1));
        let off = self::cache(0, 0, 2);
        off.put("a", 1, off.generation(), at(0));
        assert_eq!(off.get("a", at(0)), Found::Missing);
    }
}
