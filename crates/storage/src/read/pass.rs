//! What becomes of the chunks of an SSTable's data that a reader asks for.

use std::cell::RefCell;
use std::rc::Rc;

/// Bytes that a pass over a whole SSTable reads from its data at once.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// A chunk, and where it starts in the uncompressed data.
pub(crate) type Chunk = (u64, Rc<Vec<u8>>);

/// Where chunks stay that were read.
#[derive(Clone)]
pub(crate) enum Keeping {
    /// In the node's cache.
    Cache,
    /// With one that reads an SSTable from its beginning to its end, or but one place of it.
    Pass(Rc<Pass>),
}

/// A pass over one SSTable: partitions that share a chunk have it read and decompressed once, and chunks come from the file
/// in larger pieces.
pub(crate) struct Pass {
    /// Bytes that are read from the file at once; a chunk at least.
    piece: usize,
    last: RefCell<Option<Chunk>>,
    stored: RefCell<Stored>,
}

/// Bytes of the data file, as stored.
#[derive(Default)]
struct Stored {
    offset: u64,
    bytes: Vec<u8>,
}

impl Keeping {
    /// A pass that reads so many bytes at once.
    pub fn pass(piece: usize) -> Self {
        Self::Pass(Rc::new(Pass { piece, last: RefCell::default(), stored: RefCell::default() }))
    }

    /// For who looks at one place and does not come back: nothing is read but what is asked for.
    pub fn nowhere() -> Self {
        Self::pass(0)
    }

    /// Are pages of the index worth caching, too?
    pub fn is_cache(&self) -> bool {
        matches!(self, Self::Cache)
    }
}

impl Pass {
    /// The chunk that starts there, if it was the last.
    pub fn last(&self, start: u64) -> Option<Chunk> {
        self.last.borrow().clone().filter(|last| last.0 == start)
    }

    /// A chunk was decompressed.
    pub fn set_last(&self, chunk: Chunk) {
        *self.last.borrow_mut() = Some(chunk);
    }

    /// Looks at stored bytes, if they are there.
    pub fn with_stored<T>(
        &self,
        offset: u64,
        length: usize,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let stored = self.stored.borrow();
        let from = usize::try_from(offset.checked_sub(stored.offset)?).ok()?;
        stored.bytes.get(from..)?.get(..length).map(look)
    }

    /// How many bytes to read where so many are asked for and so many are left, and a buffer for them.
    pub fn piece(&self, length: usize, left: u64) -> (usize, Vec<u8>) {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(self.piece).max(length);
        let mut buffer = std::mem::take(&mut self.stored.borrow_mut().bytes);
        buffer.clear();
        buffer.reserve(piece);
        (piece, buffer)
    }

    /// The bytes that were read from there on.
    pub fn set_stored(&self, offset: u64, bytes: Vec<u8>) {
        *self.stored.borrow_mut() = Stored { offset, bytes };
    }
}
