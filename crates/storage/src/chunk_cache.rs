//! Decompressed chunks and index pages that a shard keeps: CLOCK, bounded in bytes.

use std::rc::Rc;

use types::hash::HashMap;

/// What is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChunkKey {
    /// A chunk of the data of an SSTable, by their numbers.
    Data(u64, u64),
    /// A page of its index of keys.
    Index(u64, u64),
    /// A page of its index of rows, where that is a file of its own.
    Rows(u64, u64),
}

impl ChunkKey {
    fn sstable(self) -> u64 {
        match self {
            Self::Data(sstable, _) | Self::Index(sstable, _) | Self::Rows(sstable, _) => sstable,
        }
    }
}

#[derive(Debug)]
struct Entry {
    key: ChunkKey,
    bytes: Rc<Vec<u8>>,
    /// Was it asked for since the hand last passed?
    used: bool,
}

/// What a shard's cache of chunks holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkCacheStats {
    /// Lookups answered.
    pub hits: u64,
    /// Lookups not answered.
    pub misses: u64,
    /// Chunks that went to make room.
    pub evictions: u64,
    /// Chunks.
    pub entries: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Bytes at most.
    pub capacity: usize,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    limit: usize,
    bytes: usize,
    places: HashMap<ChunkKey, usize>,
    entries: Vec<Entry>,
    hand: usize,
    hits: u64,
    misses: u64,
    evictions: u64,
}

impl ChunkCache {
    /// A cache of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: 0,
            places: HashMap::default(),
            entries: Vec::new(),
            hand: 0,
            hits: 0,
            misses: 0,
            evictions: 0,
        }
    }

    /// What it holds and did.
    pub fn stats(&self) -> ChunkCacheStats {
        ChunkCacheStats {
            hits: self.hits,
            misses: self.misses,
            evictions: self.evictions,
            entries: self.entries.len(),
            bytes: self.bytes,
            capacity: self.limit,
        }
    }

    /// What is cached under a key.
    pub fn get(&mut self, key: ChunkKey) -> Option<Rc<Vec<u8>>> {
        let entry = self.places.get(&key).and_then(|place| self.entries.get_mut(*place));
        match entry {
            Some(entry) => {
                entry.used = true;
                self.hits += 1;
                Some(Rc::clone(&entry.bytes))
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Caches bytes; others go to make room.
    pub fn put(&mut self, key: ChunkKey, bytes: Rc<Vec<u8>>) {
        if bytes.len() > self.limit || self.places.contains_key(&key) {
            return;
        }
        while self.bytes + bytes.len() > self.limit {
            self.evict_one();
        }
        self.bytes += bytes.len();
        self.places.insert(key, self.entries.len());
        self.entries.push(Entry { key, bytes, used: false });
    }

    fn evict_one(&mut self) {
        loop {
            self.hand = if self.hand >= self.entries.len() { 0 } else { self.hand };
            let Some(entry) = self.entries.get_mut(self.hand) else { return };
            if !std::mem::take(&mut entry.used) {
                self.evictions += 1;
                return self.remove(self.hand);
            }
            self.hand += 1;
        }
    }

    fn remove(&mut self, place: usize) {
        let entry = self.entries.swap_remove(place);
        self.places.remove(&entry.key);
        self.bytes -= entry.bytes.len();
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.key, place);
        }
    }

    /// Drops what is cached of an SSTable.
    pub fn forget(&mut self, sstable: u64) {
        let mut place = 0;
        while place < self.entries.len() {
            match self.entries[place].key.sstable() == sstable {
                true => self.remove(place),
                false => place += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn never_over_its_limit_and_never_wrong(
            steps in prop::collection::vec((0u64..3, 0u64..30, 1usize..400, 0u8..10), 0..300),
        ) {
            let mut cache = ChunkCache::new(2000);
            for (sstable, chunk, size, what) in steps {
                let key = ChunkKey::Data(sstable, chunk);
                // a chunk's bytes tell which one it is
                let bytes = || vec![(sstable * 30 + chunk) as u8; size];
                match what {
                    0 => cache.forget(sstable),
                    1..6 => cache.put(key, Rc::new(bytes())),
                    _ => if let Some(found) = cache.get(key) {
                        prop_assert!(found.iter().all(|b| u64::from(*b) == sstable * 30 + chunk));
                    },
                }
                let sum: usize = cache.entries.iter().map(|entry| entry.bytes.len()).sum();
                prop_assert_eq!(sum, cache.bytes);
                prop_assert!(cache.bytes <= 2000);
                prop_assert_eq!(cache.places.len(), cache.entries.len());
            }
        }
    }

    #[test]
    fn what_is_used_stays() {
        let mut cache = ChunkCache::new(300);
        for chunk in 0..3 {
            cache.put(ChunkKey::Data(1, chunk), Rc::new(vec![0; 100]));
        }
        assert!(cache.get(ChunkKey::Data(1, 0)).is_some());
        cache.put(ChunkKey::Data(1, 3), Rc::new(vec![0; 100]));
        assert!(cache.get(ChunkKey::Data(1, 0)).is_some());
        assert!(cache.get(ChunkKey::Data(1, 1)).is_none());
    }
}
