//! A cursor over one partition of an SSTable, in slices, either way.
//!
//! Rows are decoded block by block of the promoted index (a narrow partition is one block); against the
//! clustering order a block is decoded forwards and handed out backwards, so memory stays at one block.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use rows::{
    BoundKind, BoundRef, ColumnMap, Deletion, MarkerRef, RowBuilder, RowRef, Unfiltered, compare,
};
use schema::Table;
use sstable::data::{DataCursor, Next};
use sstable::descriptor::Component;
use sstable::index::{Found, Promoted, read_entry};
use sstable::table::{format, order};

use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::Slices;
use crate::sstables::{Files, SSTable};

/// Reads a partition of an SSTable.
pub(crate) struct SSTableCursor {
    sstable: Arc<SSTable>,
    table: Arc<Table>,
    map: Option<ColumnMap>,
    data: DataCursor,
    /// Where the partition starts, and where its first row or marker does.
    start: u64,
    body: u64,
    promoted: Option<Promoted>,
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
    /// Keep chunks in the cache? Not for compaction.
    keep: bool,
}

/// Where reading stands in a slice.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The block being read, or to be read next.
    block: usize,
    /// Is the cursor of the data inside that block already (forwards only)?
    inside: bool,
    /// The range tombstone that is open where the cursor stands.
    open: Deletion,
    /// Has the slice's start been passed?
    entered: bool,
}

/// Where an index entry points.
pub(crate) struct Located {
    pub position: u64,
    pub promoted: Vec<u8>,
}

/// Looks a key up in the index.
pub(crate) async fn locate(
    files: &Files,
    sstable: &SSTable,
    key: KeyRef<'_>,
) -> Result<Option<Located>, StorageError> {
    let corrupt = |error| StorageError::corrupt(sstable.path(&Component::Index), error);
    let Some(mut at) = sstable.table.index_start(key.token, key.bytes) else { return Ok(None) };
    let mut window = Vec::new();
    let mut window_start = at;
    loop {
        let left = sstable.table.index_length.saturating_sub(at);
        if left == 0 {
            return Ok(None);
        }
        let bytes = window.get((at - window_start) as usize..).unwrap_or_default();
        match read_entry(bytes, left).map_err(corrupt)? {
            Found::Entry(entry) => {
                if entry.key == key.bytes {
                    let promoted = entry.promoted.to_vec();
                    return Ok(Some(Located { position: entry.position, promoted }));
                }
                if order(entry.key, key.token, key.bytes) == Ordering::Greater {
                    return Ok(None);
                }
                at += entry.length as u64;
            }
            Found::NeedMore(_) => {
                window.drain(..((at - window_start) as usize).min(window.len()));
                window_start = at;
                let next = window_start + window.len() as u64;
                let (start, page) = files.index_page(sstable, next, true).await?;
                window.extend_from_slice(page.get((next - start) as usize..).unwrap_or_default());
            }
        }
    }
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
        let Some(located) = locate(files, sstable, key).await? else { return Ok(None) };
        Self::open_at(files, sstable, key, located, table, slices, true).await.map(Some)
    }

    /// Opens the partition that an index entry points to.
    pub async fn open_at(
        files: &Files,
        sstable: &Arc<SSTable>,
        key: KeyRef<'_>,
        located: Located,
        table: &Arc<Table>,
        slices: Slices,
        keep: bool,
    ) -> Result<Self, StorageError> {
        let mut data = DataCursor::new(&sstable.table, located.position);
        let start = loop {
            let found = data.partition_start().map_err(|e| corrupt(sstable, e))?;
            match found {
                Some(start) => break start,
                None => feed(files, sstable, &mut data, keep).await?,
            }
        };
        if start.key != key.bytes {
            return Err(corrupt(sstable, "the index points to another partition"));
        }
        let format = format(sstable.table.descriptor.version);
        let promoted = match located.promoted.is_empty() {
            true => None,
            false => Some(
                Promoted::read(&sstable.table.layout, format, &located.promoted)
                    .map_err(|e| StorageError::corrupt(sstable.path(&Component::Index), e))?,
            ),
        };
        let from = &sstable.table.layout;
        let map = Some(crate::read::column_map(from, table)).filter(|map| !map.is_identity());
        let mut cursor = Self {
            sstable: Arc::clone(sstable),
            table: Arc::clone(table),
            map,
            start: located.position,
            body: data.position(),
            data,
            promoted,
            deletion: start.deletion,
            static_row: start.static_row.map(Vec::into_boxed_slice),
            slices,
            slice: 0,
            progress: None,
            queue: VecDeque::new(),
            spare: Vec::new(),
            scratch: RowBuilder::new(),
            keep,
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

    fn blocks(&self) -> usize {
        self.promoted.as_ref().map_or(1, |promoted| promoted.blocks.len())
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

    /// What a slice needs to begin at a block: the open range at the block's start.
    fn open_before(&self, block: usize) -> Deletion {
        let before = block.checked_sub(1);
        let blocks = self.promoted.as_ref().map(|promoted| &promoted.blocks);
        let open = before.and_then(|n| blocks?.get(n)?.open);
        open.unwrap_or(Deletion::LIVE)
    }

    fn block_offset(&self, block: usize) -> u64 {
        let blocks = self.promoted.as_ref().map(|promoted| &promoted.blocks);
        blocks.and_then(|blocks| blocks.get(block)).map_or(self.body, |b| self.start + b.offset)
    }

    fn block_end(&self, block: usize) -> Option<u64> {
        let blocks = self.promoted.as_ref().map(|promoted| &promoted.blocks)?;
        // the last one ends with the partition
        let block = blocks.get(block).filter(|_| block + 1 < blocks.len())?;
        Some(self.start + block.offset + block.width)
    }

    fn next_slice(&mut self) {
        self.slice += 1;
        self.progress = None;
    }

    /// Decodes the next row or marker at the cursor into a buffer; `None` at the partition's end.
    async fn decode(&mut self, files: &Files) -> Result<Option<Vec<u8>>, StorageError> {
        let mut packed = self.spare.pop().unwrap_or_default();
        loop {
            match self.data.next(&mut packed).map_err(|e| corrupt(&self.sstable, e))? {
                Next::Unfiltered => return Ok(Some(packed)),
                Next::End => return Ok(None),
                Next::NeedMore => feed(files, &self.sstable, &mut self.data, self.keep).await?,
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
        let mut progress = match self.progress {
            Some(progress) => progress,
            None => {
                let promoted = self.promoted.as_ref();
                let block = promoted.map_or(0, |p| p.first_block_from(&layout, start));
                if block >= self.blocks() {
                    self.next_slice();
                    return Ok(());
                }
                let open = self.open_before(block);
                Progress { block, inside: false, open, entered: false }
            }
        };
        if !progress.inside {
            self.data.seek(self.block_offset(progress.block));
            progress.inside = true;
        }
        while self.queue.is_empty() {
            let before = self.data.position();
            let Some(packed) = self.decode(files).await? else {
                self.next_slice();
                return Ok(());
            };
            let unfiltered = Unfiltered::from_packed(&packed);
            let place = unfiltered.position();
            if !progress.entered && compare(&layout, place, start) == Ordering::Less {
                progress.open = open_after(unfiltered, progress.open);
                self.spare.push(packed);
                continue;
            }
            let past = compare(&layout, place, end) != Ordering::Less;
            // a range that reaches over an edge of the slice opens and closes there
            if !progress.entered {
                progress.entered = true;
                if !progress.open.is_live() {
                    self.queue.push_back(packed_marker(start, progress.open));
                }
            }
            if past {
                if !progress.open.is_live() {
                    self.queue.push_back(packed_marker(end, progress.open));
                }
                self.data.seek(before);
                self.next_slice();
                return Ok(());
            }
            progress.open = open_after(unfiltered, progress.open);
            if let Some(packed) = self.mapped(packed) {
                self.queue.push_back(packed);
            }
        }
        self.progress = Some(progress);
        Ok(())
    }

    async fn fill_backwards(&mut self, files: &Files) -> Result<(), StorageError> {
        let layout = Arc::clone(&self.table.layout);
        let slices = self.slices.clone();
        let Some((start, end)) = slices.ordered(self.slice) else { return Ok(()) };
        let promoted = self.promoted.as_ref();
        let last = match promoted {
            None => Some(0),
            Some(promoted) => promoted.last_block_upto(&layout, end),
        };
        let Some(last) = last else {
            self.next_slice();
            return Ok(());
        };
        let first = promoted.map_or(0, |p| p.first_block_from(&layout, start)).min(last);
        let block = self.progress.map_or(last, |progress| progress.block);
        self.collect_block(files, block, (first, last), (start, end)).await?;
        match block.checked_sub(1).filter(|_| block > first) {
            Some(block) => {
                let open = Deletion::LIVE;
                self.progress = Some(Progress { block, inside: false, open, entered: false });
            }
            None => self.next_slice(),
        }
        Ok(())
    }

    /// Puts what of a block lies in a slice into the queue, backwards. `range` holds the first and the last
    /// block that have a part of the slice: only there ranges open and close at the slice's edges.
    async fn collect_block(
        &mut self,
        files: &Files,
        block: usize,
        range: (usize, usize),
        (start, end): (BoundRef<'_>, BoundRef<'_>),
    ) -> Result<(), StorageError> {
        let layout = Arc::clone(&self.table.layout);
        let block_end = self.block_end(block);
        let mut open = self.open_before(block);
        let mut entered = block > range.0;
        self.data.seek(self.block_offset(block));
        let mut past = false;
        while block_end.is_none_or(|end| self.data.position() < end) {
            let Some(packed) = self.decode(files).await? else { break };
            let unfiltered = Unfiltered::from_packed(&packed);
            let place = unfiltered.position();
            if !entered && compare(&layout, place, start) == Ordering::Less {
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
        if !entered && !open.is_live() && (past || block == range.1) {
            // the slice lies between two items, inside a range
            self.queue.push_front(packed_marker(start, open));
        }
        if !open.is_live() && (past || block == range.1) {
            self.queue.push_front(packed_marker(end, open));
        }
        Ok(())
    }
}

fn corrupt(sstable: &SSTable, error: impl std::fmt::Display) -> StorageError {
    StorageError::corrupt(sstable.path(&Component::Data), error)
}

async fn feed(
    files: &Files,
    sstable: &SSTable,
    data: &mut DataCursor,
    keep: bool,
) -> Result<(), StorageError> {
    let wants = data.wants();
    let (start, chunk) = files.chunk(sstable, wants, keep).await?;
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
    debug_assert!(edge.kind != BoundKind::Clustering);
    let mut packed = Vec::new();
    MarkerRef::bound(edge, deletion).pack(&mut packed);
    packed
}
