//! A map that is bounded in bytes; what was not asked for of late goes to make room (CLOCK).
//!
//! A full map admits a key that it refused before, lately (`Clock::admits`). So what comes once
//! does not throw out what comes again.

use std::borrow::Borrow;
use std::hash::Hash;

use types::hash::HashMap;

use super::CacheStats;
use crate::io::Recent;

/// Entries that memory is taken for at once, at most.
const ENTRIES_AT_ONCE_MAX: usize = 1 << 22;

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    bytes: usize,
    /// Was it asked for since the hand last passed?
    used: bool,
}

/// The map. Keys are held twice, so they should be small or shared.
#[derive(Debug)]
pub(crate) struct Clock<K, V> {
    limit: usize,
    /// What values mostly point to, at least.
    least: usize,
    bytes: usize,
    places: HashMap<K, usize>,
    entries: Vec<Entry<K, V>>,
    hand: usize,
    /// What was not let in of late; of use once it is full.
    refused: Option<Recent>,
    hits: u64,
    misses: u64,
    evictions: u64,
}

impl<K: Clone + Eq + Hash, V> Clock<K, V> {
    /// What an entry takes beside what its key and value point to: its place, the way there, and as
    /// much again that growing leaves free.
    const OVERHEAD: usize = 2 * (size_of::<Entry<K, V>>() + size_of::<(K, usize)>() + 1);

    /// A map of at most `limit` bytes, of values that mostly point to `least` of them or more.
    pub fn new(limit: usize, least: usize) -> Self {
        Self {
            limit,
            least,
            bytes: 0,
            places: HashMap::default(),
            entries: Vec::new(),
            hand: 0,
            refused: None,
            hits: 0,
            misses: 0,
            evictions: 0,
        }
    }

    /// What it holds and did.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits,
            misses: self.misses,
            evictions: self.evictions,
            entries: self.entries.len() as u64,
            bytes: self.bytes as u64,
            capacity: self.limit as u64,
        }
    }

    /// Bytes that it may hold; 0: nothing is ever kept.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Is what points to so many bytes to be kept? If there is room for it, or it was to be before,
    /// of late: as many that were not are remembered as there is room for twice, so that others
    /// which come again take the place of those that do not.
    pub fn admits<Q: Hash + ?Sized>(&mut self, key: &Q, bytes: usize) -> bool {
        let most = self.most_entries();
        self.bytes + bytes + Self::OVERHEAD <= self.limit
            || self.refused.get_or_insert_with(|| Recent::new(2 * most)).read(key)
    }

    /// Entries that there is room for.
    fn most_entries(&self) -> usize {
        (self.limit / (Self::OVERHEAD + self.least)).min(ENTRIES_AT_ONCE_MAX)
    }

    /// Another limit from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.refused = None;
        self.make_room(0);
    }

    /// What is kept of a key.
    pub fn get<Q>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let entry = self.places.get(key).and_then(|place| self.entries.get_mut(*place));
        match entry {
            Some(entry) => {
                entry.used = true;
                self.hits += 1;
                Some(&entry.value)
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// What is kept of a key, without asking for it.
    pub fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let entry = self.places.get(key).and_then(|place| self.entries.get(*place));
        entry.map(|entry| &entry.value)
    }

    /// Keeps a value that points to so many bytes, with its key; others go to make room. One that
    /// is there already goes, too. False if it does not fit.
    pub fn put(&mut self, key: K, value: V, bytes: usize) -> bool {
        let bytes = bytes + Self::OVERHEAD;
        self.remove(&key);
        if bytes > self.limit {
            return false;
        }
        self.make_room(bytes);
        if self.entries.capacity() == 0 {
            // all at once, the most of it not used yet: a large map that grows is moved, and that
            // takes the shard too long
            let entries = self.most_entries();
            self.entries.reserve(entries);
            self.places.reserve(entries);
        }
        self.bytes += bytes;
        self.places.insert(key.clone(), self.entries.len());
        self.entries.push(Entry { key, value, bytes, used: false });
        assert!(self.bytes <= self.limit, "a cache has no more bytes than its limit");
        assert_eq!(self.places.len(), self.entries.len(), "each entry of a cache has one place");
        true
    }

    /// Drops what is kept of a key.
    pub fn remove<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(place) = self.places.get(key).copied() {
            self.remove_at(place);
        }
    }

    /// Drops what is kept of some keys.
    pub fn forget(&mut self, goes: impl Fn(&K) -> bool) {
        let mut place = 0;
        while let Some(entry) = self.entries.get(place) {
            match goes(&entry.key) {
                true => self.remove_at(place),
                false => place += 1,
            }
        }
    }

    /// Of so many entries from a place on the keys of those that were asked for since the hand last
    /// passed, or of those that were not; and where the next ones begin, if there are more. Entries
    /// that move meanwhile may be missed, or seen twice.
    pub fn page(&self, from: usize, count: usize, is_used: bool) -> (Vec<K>, Option<usize>) {
        let page = self.entries.iter().skip(from).take(count);
        let keys = page.filter(|entry| entry.used == is_used).map(|entry| entry.key.clone());
        let next = from.saturating_add(count);
        (keys.collect(), (next < self.entries.len()).then_some(next))
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.places = HashMap::default();
        self.entries = Vec::new();
        self.bytes = 0;
    }

    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > self.limit && !self.entries.is_empty() {
            self.evict_one();
        }
    }

    fn evict_one(&mut self) {
        loop {
            self.hand = if self.hand >= self.entries.len() { 0 } else { self.hand };
            let entry = self.entries.get_mut(self.hand);
            let entry = entry.expect("a cache that evicts has at least one entry");
            if !std::mem::take(&mut entry.used) {
                self.evictions += 1;
                self.remove_at(self.hand);
                // past the one that takes its place: that is the newest, whose turn comes when the
                // hand has been everywhere
                self.hand += 1;
                return;
            }
            self.hand += 1;
        }
    }

    fn remove_at(&mut self, place: usize) {
        let entry = self.entries.swap_remove(place);
        let had = self.places.remove(&entry.key);
        assert_eq!(had, Some(place), "a key leads to the place of its entry");
        self.bytes -= entry.bytes;
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.key.clone(), place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Cache = Clock<(u64, u64), Vec<u8>>;
    const LIMIT: usize = 4000;

    proptest! {
        #[test]
        fn never_over_its_limit_and_never_wrong(
            steps in prop::collection::vec((0u64..3, 0u64..30, 1usize..400, 0u8..13), 0..300),
        ) {
            let mut cache = Cache::new(LIMIT, 0);
            let mut kept = std::collections::BTreeMap::new();
            for (group, number, size, what) in steps {
                let key = (group, number);
                match what {
                    0 => {
                        cache.forget(|key| key.0 == group);
                        kept.retain(|key: &(u64, u64), _| key.0 != group);
                    }
                    1 => {
                        cache.remove(&key);
                        kept.remove(&key);
                    }
                    2 => {
                        cache.set_limit(LIMIT / 2);
                        prop_assert!(cache.bytes <= LIMIT / 2);
                        cache.set_limit(LIMIT);
                    }
                    3 if number == 0 => {
                        cache.clear();
                        kept.clear();
                    }
                    3..8 => {
                        prop_assert!(cache.put(key, vec![number as u8; size], size));
                        kept.insert(key, size);
                    }
                    // what went to make room may be gone, nothing else, and nothing comes back
                    _ => if let Some(found) = cache.get(&key) {
                        prop_assert_eq!(Some(&found.len()), kept.get(&key));
                        prop_assert!(found.iter().all(|b| u64::from(*b) == number));
                    },
                }
                let sum: usize = cache.entries.iter().map(|entry| entry.value.len() + Cache::OVERHEAD).sum();
                prop_assert_eq!(sum, cache.bytes);
                prop_assert!(cache.bytes <= LIMIT);
                prop_assert_eq!(cache.places.len(), cache.entries.len());
            }
        }
    }

    #[test]
    fn what_is_used_stays() {
        let mut cache = Cache::new(3 * (100 + Cache::OVERHEAD), 100);
        for number in 0..3 {
            cache.put((1, number), Vec::new(), 100);
        }
        assert!(cache.get(&(1, 0)).is_some());
        cache.put((1, 3), Vec::new(), 100);
        assert!(cache.get(&(1, 0)).is_some());
        assert!(cache.get(&(1, 1)).is_none());
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.evictions, stats.hits, stats.misses), (3, 1, 2, 1));
    }

    /// A cache that is full of others keeps what is new until all of those had their turn.
    #[test]
    fn what_is_read_from_now_on_is_kept_from_now_on() {
        let mut cache = Cache::new(100 * (100 + Cache::OVERHEAD), 100);
        for number in 0..1000 {
            cache.put((1, number), Vec::new(), 100);
        }
        let mut missed = [0; 3];
        for missed in &mut missed {
            for number in 0..50 {
                if cache.get(&(2, number)).is_none() {
                    *missed += 1;
                    cache.put((2, number), Vec::new(), 100);
                }
            }
        }
        assert_eq!(missed, [50, 0, 0]);
    }

    /// A full cache of which others are asked for from now on has them after they came some times,
    /// whatever its limit was before.
    #[test]
    fn what_comes_again_takes_the_place_of_what_does_not() {
        let mut cache = Cache::new(0, 100);
        assert!(!cache.admits(&(1, 0), 100));
        cache.set_limit(100 * (100 + Cache::OVERHEAD));
        // in one order after the other: of two that have one mark neither would be known in always
        // the same
        let mut read = |group, count: u64, step: u64| {
            let mut missed = 0;
            for key in (0..count).map(|number| (group, number * step % count)) {
                if cache.get(&key).is_none() {
                    missed += 1;
                    if cache.admits(&key, 100) {
                        cache.put(key, Vec::new(), 100);
                    }
                }
            }
            missed
        };
        assert_eq!((read(1, 100, 1), read(1, 100, 1)), (100, 0));
        assert_eq!((read(2, 1000, 1), read(1, 100, 1)), (1000, 0));
        let missed = [1, 3, 7, 9, 11, 13, 17, 19].map(|step| read(3, 50, step));
        assert!(missed[0] == 50 && missed[7] < 5, "{missed:?}");
    }

    #[test]
    fn pages_have_each_entry_once() {
        let mut cache = Cache::new(100 * (100 + Cache::OVERHEAD), 0);
        for number in 0..20 {
            cache.put((1, number), Vec::new(), 100);
        }
        assert!((0..20).step_by(3).all(|number| cache.get(&(1, number)).is_some()));
        let mut found = Vec::new();
        for is_used in [true, false] {
            let mut from = Some(0);
            while let Some(place) = from {
                let (keys, next) = cache.page(place, 7, is_used);
                assert!(keys.iter().all(|(_, number)| (number % 3 == 0) == is_used));
                found.extend(keys.into_iter().map(|(_, number)| number));
                from = next;
            }
        }
        found.sort_unstable();
        assert_eq!(found, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let mut cache = Cache::new(0, 0);
        assert!(!cache.put((1, 1), Vec::new(), 0));
        assert_eq!(cache.stats().entries, 0);
    }
}
