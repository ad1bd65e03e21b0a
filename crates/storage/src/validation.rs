//! Reads what a table has in ranges of tokens, merged and purged as a compaction of all of it would
//! leave it (`CassandraValidationIterator`): what replicas compare in a repair.
//!
//! Whoever looks is a [`Visitor`]. What it sees depends on the rows alone, not on how they are
//! spread over SSTables: two replicas with the same rows see the same.

use std::cell::Cell;
use std::sync::Arc;

use rows::{Deletion, Purger, RowBuilder, RowRef, Unfiltered, purge_marker, purge_row};
use schema::{Table, TableId};
use types::{Token, TokenRange};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::{KeyRef, PartitionKey};
use crate::outgoing::Chosen;
use crate::read::{Keeping, KeyWalk, PIECE_BYTES, PartitionCursor, SSTableCursor, Slices, Source};
use crate::sstables::IndexFile;
use crate::strategies::{Given, TombstoneOptions};

/// Bytes that are read from all SSTables at once, as far as a chunk of each allows.
const READ_BYTES: usize = 8 << 20;

/// Who looks at partitions, in the order of their tokens and keys.
pub trait Visitor {
    /// A partition of which something is left begins.
    fn start(&mut self, key: KeyRef<'_>, deletion: Deletion, static_row: Option<RowRef<'_>>);

    /// Its next row or marker.
    fn unfiltered(&mut self, unfiltered: Unfiltered<'_>);

    /// It ends.
    fn end(&mut self);
}

/// How far a validation is, and its end if it is wanted no more.
#[derive(Debug, Default)]
pub struct ValidationProgress {
    /// Partitions that are behind.
    pub partitions: Cell<u64>,
    /// Bytes of SSTables that are behind, uncompressed.
    pub bytes: Cell<u64>,
    /// It is to stop.
    pub stop: Cell<bool>,
}

/// What is looked at.
#[derive(Debug)]
pub struct Validation {
    /// The table.
    pub table: TableId,
    /// Its partitions: [normalized](TokenRange::normalize).
    pub ranges: Vec<TokenRange>,
    /// What of which SSTables lies in them.
    pub chosen: Vec<Chosen>,
    /// The time that all replicas take for the present, in seconds since the epoch.
    pub now: i64,
}

/// An SSTable, and where the walk over it is.
struct Input {
    walk: KeyWalk,
    keeping: Keeping,
}

impl Input {
    fn is_at(&self, key: &PartitionKey) -> bool {
        self.walk.head().is_some_and(|head| head.key == *key)
    }
}

impl Engine {
    /// Shows all of it to a visitor.
    ///
    /// # Errors
    /// If the table is unknown, an SSTable cannot be read, or it is to stop.
    pub async fn validate(
        &self,
        of: &Validation,
        visitor: &mut impl Visitor,
        progress: &ValidationProgress,
    ) -> Result<(), StorageError> {
        let table = self.store(of.table)?.table();
        for range in &of.ranges {
            self.validate_range(&table, of, *range, visitor, progress).await?;
        }
        Ok(())
    }

    async fn validate_range(
        &self,
        table: &Arc<Table>,
        of: &Validation,
        range: TokenRange,
        visitor: &mut impl Visitor,
        progress: &ValidationProgress,
    ) -> Result<(), StorageError> {
        let mut inputs = self.inputs(of, range).await?;
        let mut last: Option<PartitionKey> = None;
        loop {
            let heads = inputs.iter().filter_map(|input| input.walk.head());
            let least = heads.map(|head| &head.key).min().cloned();
            let Some(key) = least.filter(|key| key.as_ref().token.0 <= range.end()) else {
                return Ok(());
            };
            if last.as_ref().is_some_and(|last| key <= *last) {
                let input = inputs.iter().find(|input| input.is_at(&key));
                let input = input.expect("one of the inputs is at the least key");
                let sstable = input.walk.sstable();
                let path = sstable.path(&IndexFile::Keys.of(sstable).0);
                return Err(StorageError::corrupt(path, "its partitions are out of order"));
            }
            let mut partition = self.partition_of(table, &mut inputs, &key, progress).await?;
            self.show(&key, &mut partition, of, visitor, progress).await?;
            progress.partitions.update(|partitions| partitions + 1);
            last = Some(key);
        }
    }

    /// Walks at the first partition of a range.
    async fn inputs(&self, of: &Validation, range: TokenRange) -> Result<Vec<Input>, StorageError> {
        let Some(first) = range.left.0.checked_add(1) else { return Ok(Vec::new()) };
        let from = KeyRef { token: Token(first), bytes: &[] };
        let piece = (READ_BYTES / of.chosen.len().max(1)).min(PIECE_BYTES);
        let mut inputs = Vec::new();
        for chosen in &of.chosen {
            let (least, greatest) = chosen.sstable.table.tokens();
            if least.0 > range.end() || greatest <= range.left {
                continue;
            }
            let walk = KeyWalk::start(&self.files, &chosen.sstable, Some(from), false).await?;
            inputs.push(Input { walk, keeping: Keeping::pass(piece) });
        }
        Ok(inputs)
    }

    /// The partition of a key that some inputs stand at; they go on behind it.
    async fn partition_of(
        &self,
        table: &Arc<Table>,
        inputs: &mut [Input],
        key: &PartitionKey,
        progress: &ValidationProgress,
    ) -> Result<PartitionCursor, StorageError> {
        let (files, at) = (&self.files, key.as_ref());
        let mut sources = Vec::new();
        for input in inputs.iter_mut().filter(|input| input.is_at(key)) {
            let head = input.walk.take(files).await?;
            let located = head.expect("an input that is at a key has its partition").located;
            let sstable = Arc::clone(input.walk.sstable());
            let next = input.walk.head().map(|head| head.located.position);
            let end = next.unwrap_or_else(|| sstable.table.uncompressed_length());
            progress.bytes.update(|bytes| bytes + end.saturating_sub(located.position));
            let (all, keeping) = (Slices::all(false), input.keeping.clone());
            let cursor = SSTableCursor::open_at(files, &sstable, at, located, table, all, keeping);
            sources.push(Source::SSTable(Box::new(cursor.await?)));
        }
        Ok(PartitionCursor::merge(files, Arc::clone(table), sources, false))
    }

    /// Shows what is left of a partition.
    async fn show(
        &self,
        key: &PartitionKey,
        partition: &mut PartitionCursor,
        of: &Validation,
        visitor: &mut impl Visitor,
        progress: &ValidationProgress,
    ) -> Result<(), StorageError> {
        let table = Arc::clone(partition.table());
        let (layout, key) = (&table.layout, key.as_ref());
        // where tombstones go only once they are repaired, none goes here: which of them are
        // repaired differs between replicas (`CompactionController.compactingRepaired`)
        let purges = !TombstoneOptions::new(Given(&table.params.compaction)).only_repaired;
        let purgeable = |_| purges;
        let gc_before = of.now.saturating_sub(i64::from(table.params.gc_grace_seconds));
        let purger =
            Purger { now: of.now, gc_before, strict_liveness: false, purgeable: &purgeable };
        let mut scratch = RowBuilder::new();
        let deletion = purger.deletion(partition.deletion());
        let static_row = partition.static_row();
        let static_row = static_row
            .and_then(|row| purge_row(layout, row, &purger, &mut scratch))
            .map(|row| row.as_packed().to_vec());
        let static_row = static_row.as_deref().map(RowRef::from_packed);
        let mut started = deletion != Deletion::LIVE || static_row.is_some();
        if started {
            visitor.start(key, deletion, static_row);
        }
        while let Some(unfiltered) = partition.next().await? {
            let left = match unfiltered {
                Unfiltered::Row(row) => {
                    purge_row(layout, row, &purger, &mut scratch).map(Unfiltered::Row)
                }
                Unfiltered::Marker(marker) => purge_marker(marker, &purger).map(Unfiltered::Marker),
            };
            if let Some(left) = left {
                if !std::mem::replace(&mut started, true) {
                    visitor.start(key, deletion, static_row);
                }
                visitor.unfiltered(left);
            }
            if progress.stop.get() || self.env().is_terminated() {
                return Err(StorageError::Interrupted);
            }
            self.env().maybe_yield().await;
        }
        if started {
            visitor.end();
        }
        self.env().maybe_yield().await;
        Ok(())
    }
}
