//! The blocks that a partition's rows lie in, by whatever index the SSTable has of them.

use std::rc::Rc;

use rows::{BoundRef, Deletion, Layout};
use sstable::bti::{RowBlock, TrieCursor, bound_bytes};
use sstable::descriptor::Component;
use sstable::index::Promoted;

use super::locate::{RowsIndex, parse_promoted};
use crate::error::StorageError;
use crate::sstables::{Files, IndexFile, SSTable, TriePages};

/// A block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Where it starts in the data.
    pub start: u64,
    /// Where it ends; `None` if that is not known, or is where the partition does.
    pub end: Option<u64>,
    /// The range tombstone that is open at its start.
    pub open: Deletion,
}

/// The blocks that may hold something of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Where the first one starts.
    pub first: u64,
    /// The last one.
    pub last: Block,
}

/// What reading takes.
pub(crate) struct Access<'a> {
    pub files: &'a Files,
    pub sstable: &'a SSTable,
    pub keep: bool,
}

impl Access<'_> {
    fn rows_corrupt(&self, error: impl std::fmt::Display) -> StorageError {
        StorageError::corrupt(self.sstable.path(&Component::Rows), error)
    }
}

/// A partition's blocks.
pub(crate) struct Blocks {
    /// Where the partition starts, and where its first row or marker does.
    start: u64,
    body: u64,
    index: Kind,
}

enum Kind {
    /// All is one block.
    One,
    Promoted(Rc<Promoted>),
    /// The cursor stands at the block that was last given out.
    Trie(TrieCursor),
}

impl Blocks {
    /// Of a partition that starts at `start` and whose first row or marker is at `body`.
    pub fn new(
        sstable: &SSTable,
        start: u64,
        body: u64,
        rows: RowsIndex,
    ) -> Result<Self, StorageError> {
        let index = match rows {
            RowsIndex::None => Kind::One,
            RowsIndex::Promoted(bytes) => Kind::Promoted(parse_promoted(sstable, &bytes)?),
            RowsIndex::Parsed(promoted) => Kind::Promoted(promoted),
            RowsIndex::Trie(root) => Kind::Trie(TrieCursor::new(root)),
        };
        Ok(Self { start, body, index })
    }

    fn whole(&self) -> Block {
        Block { start: self.body, end: None, open: Deletion::LIVE }
    }

    /// The block from which on to look for what is not before a bound; `None` if there is nothing.
    pub async fn from(
        &mut self,
        access: &Access<'_>,
        layout: &Layout,
        bound: BoundRef<'_>,
    ) -> Result<Option<Block>, StorageError> {
        match &mut self.index {
            Kind::One => Ok(Some(self.whole())),
            Kind::Promoted(promoted) => {
                let block = promoted.first_block_from(layout, bound);
                Ok(promoted_block(promoted, self.start, block))
            }
            Kind::Trie(cursor) => match bound_bytes(layout, bound) {
                None => Ok(Some(self.whole())),
                Some(bound) => {
                    let block = floor(cursor, access, &bound).await?;
                    self.placed(access, block, None).map(Some)
                }
            },
        }
    }

    /// The blocks between two bounds; `None` if there is nothing.
    pub async fn span(
        &mut self,
        access: &Access<'_>,
        layout: &Layout,
        (start, end): (BoundRef<'_>, BoundRef<'_>),
    ) -> Result<Option<Span>, StorageError> {
        let whole = Span { first: self.body, last: self.whole() };
        match &mut self.index {
            Kind::One => Ok(Some(whole)),
            Kind::Promoted(promoted) => {
                let Some(last) = promoted.last_block_upto(layout, end) else { return Ok(None) };
                let first = promoted.first_block_from(layout, start).min(last);
                let first = promoted_block(promoted, self.start, first);
                let last = promoted_block(promoted, self.start, last);
                Ok(first.zip(last).map(|(first, last)| Span { first: first.start, last }))
            }
            Kind::Trie(cursor) => {
                let bounds = bound_bytes(layout, start).zip(bound_bytes(layout, end));
                let Some((start, end)) = bounds else { return Ok(Some(whole)) };
                let first = floor(cursor, access, &start).await?;
                let last = floor(cursor, access, &end).await?;
                let first = self.placed(access, first, None)?.start;
                Ok(Some(Span { first, last: self.placed(access, last, None)? }))
            }
        }
    }

    /// The block before one of a span that was given out last.
    pub async fn before(
        &mut self,
        access: &Access<'_>,
        block: Block,
    ) -> Result<Option<Block>, StorageError> {
        match &mut self.index {
            Kind::One => Ok(None),
            Kind::Promoted(promoted) => {
                let offset = block.start.saturating_sub(self.start);
                let at = promoted.blocks.partition_point(|block| block.offset < offset);
                let before = at.checked_sub(1);
                Ok(before.and_then(|before| promoted_block(promoted, self.start, before)))
            }
            Kind::Trie(cursor) => {
                let pages = pages(access);
                if !cursor.previous(&pages).await? {
                    return Ok(None);
                }
                let before = block_at(cursor, access).await?;
                self.placed(access, before, Some(block.start)).map(Some)
            }
        }
    }

    /// A block of the trie in the data; `end` is where the one after it starts.
    fn placed(
        &self,
        access: &Access<'_>,
        block: RowBlock,
        end: Option<u64>,
    ) -> Result<Block, StorageError> {
        let start = self.start.checked_add(block.offset);
        let start = start.filter(|at| *at >= self.body && end.is_none_or(|end| *at < end));
        match start {
            Some(start) => Ok(Block { start, end, open: block.open }),
            None => Err(access.rows_corrupt(format!(
                "its row index has a block {} bytes into the partition at {}, whose rows start at \
                 {}",
                block.offset, self.start, self.body
            ))),
        }
    }
}

fn promoted_block(promoted: &Promoted, start: u64, at: usize) -> Option<Block> {
    let block = promoted.blocks.get(at)?;
    let open = at.checked_sub(1).and_then(|before| promoted.blocks.get(before)?.open);
    // the last one ends with the partition
    let is_last = at + 1 == promoted.blocks.len();
    Some(Block {
        start: start.checked_add(block.offset)?,
        end: (!is_last).then(|| start.saturating_add(block.offset).saturating_add(block.width)),
        open: open.unwrap_or(Deletion::LIVE),
    })
}

fn pages<'a>(access: &Access<'a>) -> TriePages<'a> {
    let Access { files, sstable, keep } = *access;
    TriePages { files, sstable, file: IndexFile::Rows, keep }
}

async fn floor(
    cursor: &mut TrieCursor,
    access: &Access<'_>,
    bound: &[u8],
) -> Result<RowBlock, StorageError> {
    if !cursor.floor(&pages(access), bound).await? {
        return Err(access.rows_corrupt("its row index has no block before a bound"));
    }
    block_at(cursor, access).await
}

async fn block_at(cursor: &mut TrieCursor, access: &Access<'_>) -> Result<RowBlock, StorageError> {
    let Some((flags, payload)) = cursor.payload(&pages(access)).await? else {
        return Err(access.rows_corrupt("a block of its row index has no payload"));
    };
    RowBlock::parse(flags, &payload).map_err(|e| access.rows_corrupt(e))
}
