//! A shard's cache of decompressed chunks and of pages of indexes.
//!
//! Chunks that are not likely to come again get a sixteenth of a full cache.

use std::rc::Rc;

use super::{CacheStats, ChunkKey, Clock};

/// The least that a value of it mostly takes, in bytes.
const CHUNK_BYTES_LEAST: usize = 4096;
/// The part of it in which chunks are that are not likely to come again.
const PASSING_PART: usize = 16;

type Chunks = Clock<ChunkKey, Rc<Vec<u8>>>;

/// The cache. Once it is full, a chunk that is not likely to come again gets a small part of it:
/// reads all over a table that is larger than memory would each throw out what is asked for more
/// often, such as a page of the index, and have the CPU bring near what was forgotten in the
/// meantime.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    kept: Chunks,
    passing: Chunks,
}

impl ChunkCache {
    /// Of at most so many bytes.
    pub fn new(limit: usize) -> Self {
        let passing = limit / PASSING_PART;
        let part = |limit| Clock::new(limit, CHUNK_BYTES_LEAST);
        Self { kept: part(limit - passing), passing: part(passing) }
    }

    /// Another limit from now on.
    pub fn set_limit(&mut self, limit: usize) {
        let passing = limit / PASSING_PART;
        self.kept.set_limit(limit - passing);
        self.passing.set_limit(passing);
    }

    /// What it holds and did.
    pub fn stats(&self) -> CacheStats {
        let (kept, passing) = (self.kept.stats(), self.passing.stats());
        let mut all = kept;
        all += passing;
        // what the one does not have the other is asked for
        all.misses = passing.misses;
        all
    }

    /// What is kept of a key.
    pub fn get(&mut self, key: &ChunkKey) -> Option<&Rc<Vec<u8>>> {
        match self.kept.get(key) {
            Some(chunk) => Some(chunk),
            None => self.passing.get(key),
        }
    }

    /// Is it there?
    pub fn has(&self, key: &ChunkKey) -> bool {
        self.kept.peek(key).or_else(|| self.passing.peek(key)).is_some()
    }

    /// Keeps what is likely to come again, and what there is room for.
    pub fn put(&mut self, key: ChunkKey, chunk: &Rc<Vec<u8>>, comes_again: bool) {
        let bytes = chunk.capacity();
        let passes = !comes_again && !self.kept.admits(&key, bytes);
        if passes && self.passing.put(key, Rc::clone(chunk), bytes) {
            return;
        }
        self.passing.remove(&key);
        self.kept.put(key, Rc::clone(chunk), bytes);
    }

    /// Drops what is kept of an SSTable.
    pub fn forget(&mut self, sstable: u64) {
        for part in [&mut self.kept, &mut self.passing] {
            part.forget(|key| key.sstable() == sstable);
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.passing.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 20;
    const CHUNK: usize = 4096;

    fn has(cache: &mut ChunkCache, chunks: std::ops::Range<u64>) -> usize {
        chunks.filter(|chunk| cache.get(&ChunkKey::Data(1, *chunk)).is_some()).count()
    }

    fn read(cache: &mut ChunkCache, chunks: std::ops::Range<u64>, comes_again: bool) {
        for chunk in chunks {
            cache.put(ChunkKey::Data(1, chunk), &Rc::new(vec![0; CHUNK]), comes_again);
        }
    }

    #[test]
    fn what_passes_throws_out_little() {
        let mut cache = ChunkCache::new(LIMIT);
        read(&mut cache, 0..200, true);
        assert_eq!(has(&mut cache, 0..200), 200);
        read(&mut cache, 1000..2000, false);
        assert_eq!(has(&mut cache, 0..200), 200);
        // the last of them are there for who needs them in a moment
        assert_eq!(has(&mut cache, 1990..2000), 10);
        assert!(has(&mut cache, 1000..2000) < 100);
        assert!(cache.stats().bytes <= LIMIT as u64);
        read(&mut cache, 1999..2000, true);
        read(&mut cache, 3000..4000, true);
        assert!(has(&mut cache, 0..200) < 200);
        assert!(cache.stats().bytes <= LIMIT as u64);
    }

    #[test]
    fn what_passes_is_kept_while_there_is_room() {
        let mut cache = ChunkCache::new(LIMIT);
        read(&mut cache, 0..200, false);
        assert_eq!(has(&mut cache, 0..200), 200);
        // a part that one chunk does not fit into has none
        let mut cache = ChunkCache::new(PASSING_PART * CHUNK);
        read(&mut cache, 0..1000, false);
        assert_eq!(has(&mut cache, 999..1000), 1);
    }

    #[test]
    fn a_lookup_counts_once_and_what_is_forgotten_is_gone() {
        let mut cache = ChunkCache::new(LIMIT);
        read(&mut cache, 0..1000, false);
        let (there, before) = (has(&mut cache, 0..1000), cache.stats());
        assert_eq!((before.hits, before.misses), (there as u64, 1000 - there as u64));
        assert_eq!(before.entries, there as u64);
        assert!(cache.has(&ChunkKey::Data(1, 0)) && cache.has(&ChunkKey::Data(1, 999)));
        cache.forget(2);
        assert_eq!(has(&mut cache, 0..1000), there);
        cache.forget(1);
        assert_eq!((has(&mut cache, 0..1000), cache.stats().bytes), (0, 0));
        read(&mut cache, 0..1000, false);
        cache.set_limit(LIMIT / 2);
        assert!(cache.stats().bytes <= LIMIT as u64 / 2);
        cache.clear();
        assert_eq!(cache.stats().entries, 0);
    }
}
