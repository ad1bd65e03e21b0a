//! A cursor over one partition of an SSTable, in slices, either way.
//!
//! Rows are decoded block by block of the partition's index (a narrow partition is one block);
//! against the clustering order a block is decoded forwards and handed out backwards, so memory
//! stays at one block.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use rows::{
    BoundKind, BoundRef, ColumnMap, Deletion, MarkerRef, RowBuilder, RowRef, Unfiltered, compare,
};
use schema::Table;
use sstable::data::{DataCursor, Next};
use sstable::descriptor::Component;

use super::blocks::{Access, Block, Blocks};
use super::locate::{Located, locate};
use super::pass::{Chunk, Keeping};
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::Slices;
use crate::sstables::{Files, SSTable};

/// The first row of a partition has so much room from the start.
const FIRST_ROW_BYTES: usize = 2 << 10;
/// So many bytes are taken of a chunk at first, then as many as were before: most partitions are
/// far smaller than a chunk.
const FIRST_FEED_BYTES: u64 = 2 << 10;

/// Reads a partition of an SSTable.
pub(crate) struct SSTableCursor {
    sstable: Arc<SSTable>,
    table: Arc<Table>,
    map: Option<ColumnMap>,
    data: DataCursor,
    blocks: Blocks,
    deletion: Deletion,
    static_row: Option<Box<[u8]>>,
    slices: Slices,
    slice: usize,
    /// The slice in progress, if it was begun.
    progress: Option<Progress>,
    /// Rows and markers in the order of reading, packed; the first is the head.
    queue: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    scratch: RowBuilder,
    keeping: Keeping,
    feeder: Feeder,
}

/// Gives a cursor the bytes of a partition bit by bit.
struct Feeder {
    /// Where the partition begins.
    began: u64,
    /// Where it ends, if that is known.
    end: u64,
    /// The chunk that the last bytes are of.
    chunk: Option<Chunk>,
}

/// Where reading stands in a slice.
#[derive(Clone, Copy, Debug)]
enum Progress {
    /// Within a block or behind it.
    Forwards {
        /// The range tombstone that is open where the cursor stands.
        open: Deletion,
        /// Has the slice's start been passed?
        entered: bool,
    },
    /// Between blocks.
    Backwards {
        /// The block to be read next.
        block: Block,
        /// Where the first block that may hold something of the slice starts.
        first: u64,
    },
}

impl SSTableCursor {
    /// Opens the partition; `None` if the SSTable has none of this key.
    pub async fn open(
        files: &Files,
        sstable: &Arc<SSTable>,
        key: KeyRef<'_>,
        table: &Arc<Table>,
        slices: Slices,
    ) -> Result<Option<Self>, StorageError> {
        let is_kept = table.params.caching.keys;
        let Some(located) = locate(files, sstable, key, is_kept).await? else { return Ok(None) };
        Self::open_at(files, sstable, key, located, table, slices, Keeping::Cache).await.map(Some)
    }

    /// Opens the partition that an index entry points to.
    pub async fn open_at(
        files: &Files,
        sstable: &Arc<SSTable>,
        key: KeyRef<'_>,
        located: Located,
        table: &Arc<Table>,
        slices: Slices,
        keeping: Keeping,
    ) -> Result<Self, StorageError> {
        let mut data = DataCursor::new(&sstable.table, located.position);
        let end = located.end.unwrap_or(0);
        let mut feeder = Feeder { began: located.position, end, chunk: None };
        let start = loop {
            let found = data.partition_start().map_err(|e| corrupt(sstable, e))?;
            match found {
                Some(start) => break start,
                None => feeder.feed(files, sstable, &mut data, &keeping).await?,
            }
        };
        if start.key != key.bytes {
            return Err(corrupt(sstable, "the index points to another partition"));
        }
        let blocks = Blocks::new(sstable, located.position, data.position(), located.rows)?;
        let from = &sstable.table.layout;
        let map = crate::read::needed_map(from, table);
        let mut cursor = Self {
            sstable: Arc::clone(sstable),
            table: Arc::clone(table),
            map,
            data,
            blocks,
            deletion: start.deletion,
            static_row: start.static_row.map(Vec::into_boxed_slice),
            slices,
            slice: 0,
            progress: None,
            queue: VecDeque::new(),
            spare: Vec::new(),
            scratch: RowBuilder::new(),
            keeping,
            feeder,
        };
        cursor.map_static();
        cursor.fill(files).await?;
        Ok(cursor)
    }

    fn map_static(&mut self) {
        let Some(map) = &self.map else { return };
        let Some(row) = self.static_row.take() else { return };
        let row = map.apply(RowRef::from_packed(&row), &self.table.layout, &mut self.scratch);
        self.static_row = row.map(|row| row.as_packed().into());
    }

    /// The deletion of the whole partition.
    pub fn deletion(&self) -> Deletion {
        self.deletion
    }

    /// The static row.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        self.static_row.as_deref().map(RowRef::from_packed)
    }

    /// The next row or marker.
    pub fn head(&self) -> Option<Unfiltered<'_>> {
        self.queue.front().map(|packed| Unfiltered::from_packed(packed))
    }

    /// Moves past the head.
    pub async fn advance(&mut self, files: &Files) -> Result<(), StorageError> {
        if let Some(packed) = self.queue.pop_front() {
            self.spare.push(packed);
        }
        self.fill(files).await
    }

    /// Fills the queue, unless the slices are exhausted.
    async fn fill(&mut self, files: &Files) -> Result<(), StorageError> {
        while self.queue.is_empty() && self.slices.ordered(self.slice).is_some() {
            match self.slices.reversed() {
                false => self.fill_forwards(files).await?,
                true => self.fill_backwards(files).await?,
            }
        }
        Ok(())
    }

    fn next_slice(&mut self) {
        self.slice += 1;
        self.progress = None;
    }

    /// Decodes the next row or marker at the cursor into a buffer; `None` at the partition's end.
    async fn decode(&mut self, files: &Files) -> Result<Option<Vec<u8>>, StorageError> {
        let is_first = self.queue.is_empty();
        let room = || Vec::with_capacity(if is_first { FIRST_ROW_BYTES } else { 0 });
        let mut packed = self.spare.pop().unwrap_or_else(room);
        loop {
            match self.data.next(&mut packed).map_err(|e| corrupt(&self.sstable, e))? {
                Next::Unfiltered => return Ok(Some(packed)),
                Next::End => return Ok(None),
                Next::NeedMore => {
                    let Self { sstable, data, keeping, feeder, .. } = self;
                    feeder.feed(files, sstable, data, keeping).await?;
                }
            }
        }
    }

    /// A decoded row in the table's present layout; `None` if only dropped columns were in it.
    fn mapped(&mut self, packed: Vec<u8>) -> Option<Vec<u8>> {
        let Some(map) = &self.map else { return Some(packed) };
        let Unfiltered::Row(row) = Unfiltered::from_packed(&packed) else { return Some(packed) };
        let row = map.apply(row, &self.table.layout, &mut self.scratch)?;
        Some(row.as_packed().to_vec())
    }

    async fn fill_forwards(&mut self, files: &Files) -> Result<(), StorageError> {
        let layout = Arc::clone(&self.table.layout);
        let slices = self.slices.clone();
        let Some((start, end)) = slices.ordered(self.slice) else { return Ok(()) };
        let (mut open, mut entered) = match self.progress {
            Some(Progress::Forwards { open, entered }) => (open, entered),
            _ => {
                let access =
                    Access { files, sstable: &self.sstable, keep: self.keeping.is_cache() };
                let Some(block) = self.blocks.from(&access, &layout, start).await? else {
                    self.next_slice();
                    return Ok(());
                };
                self.data.seek(block.start);
                (block.open, false)
            }
        };
        while self.queue.is_empty() {
            let before = self.data.position();
            let Some(packed) = self.decode(files).await? else {
                self.next_slice();
                return Ok(());
            };
            let unfiltered = Unfiltered::from_packed(&packed);
            let place = unfiltered.position();
            // what ends just where the slice starts is before it, too, and what starts there opens
            // there
            if !entered && compare(&layout, place, start) != Ordering::Greater {
                open = open_after(unfiltered, open);
                self.spare.push(packed);
                continue;
            }
            let past = compare(&layout, place, end) != Ordering::Less;
            // a range that reaches over an edge of the slice opens and closes there
            if !entered {
                entered = true;
                if !open.is_live() {
                    self.queue.push_back(packed_marker(start, open));
                }
            }
            if past {
                if !open.is_live() {
                    self.queue.push_back(packed_marker(end, open));
                }
                self.data.seek(before);
                self.next_slice();
                return Ok(());
            }
            open = open_after(unfiltered, open);
            if let Some(packed) = self.mapped(packed) {
                self.queue.push_back(packed);
            }
        }
        self.progress = Some(Progress::Forwards { open, entered });
        Ok(())
    }

    async fn fill_backwards(&mut self, files: &Files) -> Result<(), StorageError> {
        let layout = Arc::clone(&self.table.layout);
        let slices = self.slices.clone();
        let Some(slice) = slices.ordered(self.slice) else { return Ok(()) };
        let sstable = Arc::clone(&self.sstable);
        let access = Access { files, sstable: &sstable, keep: self.keeping.is_cache() };
        let (block, first, is_last) = match self.progress {
            Some(Progress::Backwards { block, first }) => (block, first, false),
            _ => {
                let Some(span) = self.blocks.span(&access, &layout, slice).await? else {
                    self.next_slice();
                    return Ok(());
                };
                (span.last, span.first, true)
            }
        };
        let is_first = block.start <= first;
        self.collect_block(files, block, (is_first, is_last), slice).await?;
        let before = match is_first {
            true => None,
            false => self.blocks.before(&access, block).await?,
        };
        match before {
            Some(block) => self.progress = Some(Progress::Backwards { block, first }),
            None => self.next_slice(),
        }
        Ok(())
    }

    /// Puts what of a block lies in a slice into the queue, backwards. The flags say whether it is
    /// the first and whether it is the last one that may have a part of the slice: only there
    /// ranges open and close at the slice's edges.
    async fn collect_block(
        &mut self,
        files: &Files,
        block: Block,
        (is_first, is_last): (bool, bool),
        (start, end): (BoundRef<'_>, BoundRef<'_>),
    ) -> Result<(), StorageError> {
        let layout = Arc::clone(&self.table.layout);
        let mut open = block.open;
        let mut entered = !is_first;
        self.data.seek(block.start);
        let mut past = false;
        while block.end.is_none_or(|end| self.data.position() < end) {
            let Some(packed) = self.decode(files).await? else { break };
            let unfiltered = Unfiltered::from_packed(&packed);
            let place = unfiltered.position();
            // what ends just where the slice starts is before it, too, and what starts there opens
            // there
            if !entered && compare(&layout, place, start) != Ordering::Greater {
                open = open_after(unfiltered, open);
                self.spare.push(packed);
                continue;
            }
            if !std::mem::replace(&mut entered, true) && !open.is_live() {
                self.queue.push_front(packed_marker(start, open));
            }
            if compare(&layout, place, end) != Ordering::Less {
                past = true;
                break;
            }
            open = open_after(unfiltered, open);
            if let Some(packed) = self.mapped(packed) {
                self.queue.push_front(packed);
            }
        }
        if !entered && !open.is_live() {
            // the slice starts behind all items of its first block, inside a range
            self.queue.push_front(packed_marker(start, open));
        }
        if !open.is_live() && (past || is_last) {
            self.queue.push_front(packed_marker(end, open));
        }
        Ok(())
    }
}

pub(super) fn corrupt(sstable: &SSTable, error: impl std::fmt::Display) -> StorageError {
    StorageError::corrupt(sstable.path(&Component::Data), error)
}

impl Feeder {
    /// Gives the next bytes, of a chunk no more at once than were read of the partition before.
    async fn feed(
        &mut self,
        files: &Files,
        sstable: &SSTable,
        data: &mut DataCursor,
        keeping: &Keeping,
    ) -> Result<(), StorageError> {
        let wants = data.wants();
        let holds = |(start, chunk): &Chunk| {
            wants.checked_sub(*start).is_some_and(|at| at < chunk.len() as u64)
        };
        let (start, chunk) = match self.chunk.take().filter(holds) {
            Some(chunk) => chunk,
            None => files.chunk_until(sstable, wants, self.end, keeping).await?,
        };
        let most = wants.saturating_sub(self.began).max(FIRST_FEED_BYTES) as usize;
        let bytes = chunk.get((wants - start) as usize..).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| corrupt(sstable, "a chunk ends early"))?;
        data.feed(bytes.get(..most).unwrap_or(bytes));
        self.chunk = Some((start, chunk));
        Ok(())
    }
}

pub(super) async fn feed(
    files: &Files,
    sstable: &SSTable,
    data: &mut DataCursor,
    keeping: &Keeping,
) -> Result<(), StorageError> {
    let wants = data.wants();
    let (start, chunk) = files.chunk(sstable, wants, keeping).await?;
    let bytes = chunk.get((wants - start) as usize..).filter(|bytes| !bytes.is_empty());
    data.feed(bytes.ok_or_else(|| corrupt(sstable, "a chunk ends early"))?);
    Ok(())
}

/// The range that is open, in clustering order, after a row or marker.
fn open_after(unfiltered: Unfiltered<'_>, open: Deletion) -> Deletion {
    match unfiltered {
        Unfiltered::Row(_) => open,
        Unfiltered::Marker(marker) => marker.opens(false).unwrap_or(Deletion::LIVE),
    }
}

/// The marker where a range opens or closes at the edge of a slice.
fn packed_marker(edge: BoundRef<'_>, deletion: Deletion) -> Vec<u8> {
    assert!(edge.kind != BoundKind::Clustering, "a slice has bounds at its edges, not rows");
    let mut packed = Vec::new();
    MarkerRef::bound(edge, deletion).pack(&mut packed);
    packed
}
