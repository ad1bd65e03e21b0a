//! What becomes of the chunks of an SSTable's data that a reader asks for.
//!
//! A pass over a whole SSTable bypasses the page cache, unless `io_background_access_mode` is
//! `standard`. It reads pieces of 256 KiB.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;

use env::{ALIGNMENT, AlignedBuf, Env, File, OpenOptions};

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

/// A pass over one SSTable: partitions that share a chunk have it read and decompressed once, and
/// chunks come from the file in larger pieces.
pub(crate) struct Pass {
    /// Bytes that are read from the file at once; a chunk at least.
    piece: usize,
    last: RefCell<Option<Chunk>>,
    stored: RefCell<Stored>,
    /// The file, where it is read past the page cache.
    direct: RefCell<Option<File>>,
}

/// Bytes of the data file, as stored; none at first, and while they are read.
#[derive(Default)]
struct Stored {
    offset: u64,
    bytes: Option<AlignedBuf>,
}

impl Keeping {
    /// A pass that reads so many bytes at once.
    pub fn pass(piece: usize) -> Self {
        Self::Pass(Rc::new(Pass {
            piece,
            last: RefCell::default(),
            stored: RefCell::default(),
            direct: RefCell::default(),
        }))
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
        stored.bytes.as_ref()?.get(from..)?.get(..length).map(look)
    }

    /// Does it read so much at once that this is nothing for the page cache?
    pub fn is_large(&self) -> bool {
        self.piece > 0
    }

    /// Reads a piece of the data that begins with a chunk: past the page cache where a path is
    /// given, else from the file given. On an error nothing is stored.
    pub async fn fetch(&self, from: DataFile<'_>, offset: u64, length: usize) -> io::Result<()> {
        let file = self.file(&from).await?;
        let left = usize::try_from(from.data_length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let piece = left.min(self.piece).max(length);
        let block = ALIGNMENT as u64;
        // whole blocks, of the last of which the file may have a part
        let (start, needed) = match file.is_direct() {
            true => (offset / block * block, piece + (offset % block) as usize),
            false => (offset, piece),
        };
        let asked = match file.is_direct() {
            true => needed.next_multiple_of(ALIGNMENT),
            false => needed,
        };
        let before = self.stored.take().bytes.filter(|buffer| buffer.capacity() >= asked);
        let buffer = before.unwrap_or_else(|| AlignedBuf::with_capacity(asked));
        let (result, bytes) = file.read_at(buffer, start, asked).await;
        if result? < needed {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *self.stored.borrow_mut() = Stored { offset: start, bytes: Some(bytes) };
        Ok(())
    }

    async fn file(&self, from: &DataFile<'_>) -> io::Result<File> {
        let Some(path) = from.direct else { return Ok(from.file.clone()) };
        if let Some(file) = &*self.direct.borrow() {
            return Ok(file.clone());
        }
        let file = File::open(from.env, path, OpenOptions::READ.direct()).await?;
        *self.direct.borrow_mut() = Some(file.clone());
        Ok(file)
    }
}

/// Where a pass reads.
pub(crate) struct DataFile<'a> {
    pub env: &'a Env,
    /// The file as other readers have it.
    pub file: &'a File,
    /// Where it is, if it is to be read past the page cache.
    pub direct: Option<&'a Path>,
    pub data_length: u64,
}
