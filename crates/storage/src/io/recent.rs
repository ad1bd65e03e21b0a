//! What was read of late.
//!
//! For chunks it has a place for about as many as the page cache can hold.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};

use types::hash::State;

/// What was read of late, by its key: about as much as there is room for. With each that is read it
/// forgets another one, whichever stands where that comes to. Seldom enough it takes one for
/// another.
#[derive(Debug)]
pub(crate) struct Recent {
    /// Half a key's hash, in the place that the other half names.
    marks: RefCell<Vec<u32>>,
    hasher: State,
}

impl Recent {
    /// Room for so many, or less: down to the power of two before. Each takes four bytes.
    pub fn new(count: usize) -> Self {
        // zeros, of which the system makes memory when they are first written over
        let marks = RefCell::new(vec![0; 1 << count.max(1).ilog2()]);
        Self { marks, hasher: State::default() }
    }

    /// It is read: was it of late?
    pub fn read(&self, key: &(impl Hash + ?Sized)) -> bool {
        let hash = self.hasher.hash_one(key);
        let mut marks = self.marks.borrow_mut();
        let place = hash as usize & (marks.len() - 1);
        // none is 0, which no key left
        let mark = (hash >> 32) as u32 | 1;
        marks.get_mut(place).is_some_and(|before| std::mem::replace(before, mark) == mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::ChunkKey;

    #[test]
    fn what_comes_again_soon_is_known() {
        let room = 4096;
        let recent = Recent::new(room);
        let read = |chunks: std::ops::Range<u64>| {
            chunks.filter(|chunk| recent.read(&ChunkKey::Data(1, *chunk))).count()
        };
        assert_eq!(read(0..100), 0);
        assert_eq!(read(0..100), 100);
        assert!(!recent.read(&ChunkKey::Data(2, 0)) && !recent.read(&ChunkKey::Index(1, 0)));
        // others come between
        assert_eq!(read(1000..1400), 0);
        assert!(read(0..100) > 80);
        assert_eq!(read(10_000..10_000 + 4 * room as u64), 0);
        assert!(read(0..100) < 20);
    }
}
