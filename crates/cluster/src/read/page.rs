//! Pages: rows of shards put together and cut, and the rest of a read after one.

use cql::select::{Position, Read, Target};
use rows::{Clustering, ClusteringRef};
use schema::Table;
use storage::PartitionKey;
use types::Few;

use crate::paging::Last;
use crate::read::shard::{Block, Noticed, ReadError, Task};
use crate::scanned::Scanned;

/// The rest of a read after a page of it; nothing if the page was the last.
pub(super) fn next_page(
    mut read: Read,
    last: &Last,
    table: &Table,
) -> Result<Option<Read>, ReadError> {
    let left = last.left;
    let (key, row) = match &read.target {
        Target::Keys(keys) if left == 0 => match keys.get(last.place + 1) {
            Some(next) => (next.bytes.clone(), None),
            None => return Ok(None),
        },
        _ => (last.key.bytes.clone(), last.mark.clone()),
    };
    read.first_rows = None;
    read.first_limit = read.per_partition_limit;
    let position = Position {
        key: Some(&key),
        remaining: read.limit,
        remaining_in_partition: if row.is_some() { left } else { u32::MAX },
        row,
    };
    Ok(Some(read.resume(&position, table)?))
}

/// All rows that the shards found, in the order of the result, cut to the page.
#[derive(Default)]
pub(super) struct Merged {
    pub cells: Vec<u8>,
    pub rows: u32,
    /// Where the last row's cells start.
    pub last_row: usize,
    pub last: Option<Last>,
    /// Did a limit of the page end it?
    pub full: bool,
    /// What was read for the page.
    pub all: Scanned,
    /// Rows, and bytes of their cells, that were read and are not of the result.
    pub left_out: (u32, usize),
    /// What was read of each partition from the first with a tombstone on; of an aggregation, its
    /// pages with too many.
    pub scanned: Vec<Noticed>,
}

impl Merged {
    pub fn scan(&mut self, key: &Option<PartitionKey>, scanned: Scanned) {
        self.all += scanned;
        // the most of reads go over no tombstone: nothing is noted of those
        if let (Some(key), true) = (key, scanned.counts() || !self.scanned.is_empty()) {
            self.scanned.push((key.clone(), scanned));
        }
    }

    /// What was read as each command of Cassandra's would count it: a partition's, or a range's up
    /// to its last one.
    pub fn commands(&self, read: &Read, is_aggregate: bool) -> Vec<Noticed> {
        if is_aggregate || matches!(read.target, Target::Keys(_)) {
            return self.scanned.clone();
        }
        self.scanned.last().map(|(key, _)| (key.clone(), self.all)).into_iter().collect()
    }
}

/// A page in the making: blocks, which are in order, are put together until it is full.
pub(super) struct Cut {
    merged: Merged,
    rows_max: u32,
    bytes_max: usize,
    /// Bytes of the blocks that are to come.
    bytes: usize,
}

impl Cut {
    pub fn new(blocks: &[(usize, Block)], task: &Task) -> Self {
        let bytes = blocks.iter().map(|(_, block)| block.cells.len()).sum();
        let (rows_max, bytes_max) = (task.read.page_limit(), task.bytes_max);
        Self { merged: Merged::default(), rows_max, bytes_max, bytes }
    }

    fn is_spent(&self, rows: u32, bytes: usize) -> bool {
        rows >= self.rows_max || bytes >= self.bytes_max
    }

    /// Takes the next block; false once the page is full.
    pub fn take(&mut self, place: usize, mut block: Block) -> bool {
        let before = self.merged.cells.len();
        let (mut taken, mut end, mut mark) = (0, 0, 0..0);
        while taken < block.rows.len() && !self.is_spent(self.merged.rows, before + end) {
            let row = &block.rows[taken];
            self.merged.last_row = before + end;
            (end, mark) = (row.cells, mark.end..row.mark);
            self.merged.rows += 1;
            taken += 1;
        }
        let spent = self.is_spent(self.merged.rows, before + end);
        let merged = &mut self.merged;
        let last = block.rows[..taken].last();
        if let Some(row) = last {
            let mark = row.has_mark.then(|| clustering_of(&block.marks[mark]));
            let left = mark.as_ref().map_or(0, |_| block.limit.saturating_sub(taken as u32));
            merged.last = block.key.clone().map(|key| Last { key, place, mark, left });
        }
        let scanned = last.map(|row| row.scanned).unwrap_or_default();
        merged.scan(&block.key, if spent { scanned } else { block.scanned });
        let is_full = taken < block.rows.len() || (block.full && spent);
        // the most of reads have one block, and some are large: that of the first is not copied
        if merged.cells.is_empty() {
            block.cells.truncate(end);
            merged.cells = block.cells;
        } else {
            if merged.cells.capacity() < self.bytes {
                let more = self.bytes.min(self.bytes_max.saturating_add(end));
                merged.cells.reserve_exact(more.saturating_sub(before).max(end));
            }
            merged.cells.extend_from_slice(&block.cells[..end]);
        }
        merged.full = is_full;
        !is_full
    }

    /// There are no more blocks, or the page is full.
    pub fn end(mut self) -> Merged {
        let is_spent = self.is_spent(self.merged.rows, self.merged.cells.len());
        self.merged.full |= is_spent;
        self.merged
    }
}

/// A page of blocks, which are few.
pub(super) fn cut(blocks: Few<(usize, Block)>, task: &Task) -> Merged {
    let mut cut = Cut::new(&blocks, task);
    for (place, block) in blocks {
        if !cut.take(place, block) {
            break;
        }
    }
    cut.end()
}

pub(super) fn clustering_of(packed: &[u8]) -> Clustering {
    // a row's own packed clustering, so it can be looked at as one
    ClusteringRef::from_packed(packed).to_owned()
}
