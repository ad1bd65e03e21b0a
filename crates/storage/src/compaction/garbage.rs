//! What newer SSTables that are not compacted themselves make needless in those that are
//! (`CompactionIterator`'s garbage skipper): for `nodetool garbagecollect`, and for tables with
//! `provide_overlapping_tombstones`.
//!
//! Only what stays elsewhere is a reason to drop something: the merge of all SSTables is the same
//! before and after.
//!
//! A partition is merged in step with what other SSTables have of it, and loses what they delete.
//! Those others stay as they are.

use std::cmp::Ordering;
use std::sync::Arc;

use env::Env;
use rows::{
    BoundRef, Deletion, RowBuilder, RowRef, Unfiltered, compare, merge_versions, without_shadowed,
};
use schema::{Table, TombstoneOption};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::{Keeping, PartitionCursor, SSTableCursor, Slices, Source, locate};
use crate::sstables::SSTable;

/// A partition as the other SSTables have it, followed in step with what is compacted.
pub(crate) struct Shadow {
    partition: PartitionCursor,
    static_row: Option<Vec<u8>>,
    /// The range tombstone that is open before the head.
    open: Deletion,
    /// The next row or marker, packed; empty at the end.
    head: Vec<u8>,
    cells: bool,
    layout: Arc<rows::Layout>,
    env: Env,
}

impl Shadow {
    /// Of a key in those of `others` with something newer than `oldest`; `None` if nothing may be
    /// dropped for them.
    pub async fn open(
        engine: &Engine,
        table: &Arc<Table>,
        key: KeyRef<'_>,
        (others, oldest): (&[Arc<SSTable>], i64),
        granularity: TombstoneOption,
    ) -> Result<Option<Self>, StorageError> {
        if granularity == TombstoneOption::None {
            return Ok(None);
        }
        let files = &engine.files;
        let mut sources = Vec::new();
        for other in others {
            let is_newer = other.table.statistics.stats.max_timestamp > oldest;
            if !is_newer || !other.table.may_contain(key.token, key.bytes) {
                continue;
            }
            let Some(located) = locate(files, other, key, false).await? else { continue };
            let all = Slices::all(false);
            let cursor =
                SSTableCursor::open_at(files, other, key, located, table, all, Keeping::nowhere());
            sources.push(Source::SSTable(Box::new(cursor.await?)));
        }
        if sources.is_empty() {
            return Ok(None);
        }
        let partition = PartitionCursor::merge(files, Arc::clone(table), sources, false);
        let static_row = partition.static_row().map(|row| row.as_packed().to_vec());
        // Versions of a counter do not shadow, but add to each other.
        let cells = granularity == TombstoneOption::Cell && !table.is_counter();
        let layout = Arc::clone(&table.layout);
        let (open, head) = (Deletion::LIVE, Vec::new());
        let env = engine.env().clone();
        let mut shadow = Self { partition, static_row, open, head, cells, layout, env };
        shadow.step().await?;
        Ok(Some(shadow))
    }

    /// What is left of the deletion of the partition.
    pub fn deletion(&self, deletion: Deletion) -> Deletion {
        if deletion.supersedes(&self.partition.deletion()) { deletion } else { Deletion::LIVE }
    }

    /// What is left of the static row.
    pub fn static_row(&self, row: RowRef<'_>, out: &mut RowBuilder) -> Option<Vec<u8>> {
        let version = self.static_row.as_deref().map(RowRef::from_packed);
        self.row_under(row, self.partition.deletion(), version, out)
    }

    /// What is left of a row; rows are asked for in their order.
    pub async fn row(
        &mut self,
        row: RowRef<'_>,
        out: &mut RowBuilder,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let place: BoundRef<'_> = row.clustering().into();
        let mut order = Ordering::Greater;
        while !self.head.is_empty() {
            let head = Unfiltered::from_packed(&self.head);
            order = compare(&self.layout, head.position(), place);
            if order != Ordering::Less {
                break;
            }
            if let Unfiltered::Marker(marker) = head {
                self.open = marker.opens(false).unwrap_or(Deletion::LIVE);
            }
            self.step().await?;
        }
        let is_there = order == Ordering::Equal && !self.head.is_empty();
        let version = is_there.then(|| Unfiltered::from_packed(&self.head));
        let version = version.and_then(|version| match version {
            Unfiltered::Row(version) => Some(version),
            Unfiltered::Marker(_) => None,
        });
        // One that a later liveness undoes is no reason.
        let for_good = version.filter(|version| !version.is_shadowable());
        let of_row = for_good.map_or(Deletion::LIVE, |version| version.deletion());
        let active = self.partition.deletion().max(self.open).max(of_row);
        Ok(self.row_under(row, active, version, out))
    }

    fn row_under(
        &self,
        row: RowRef<'_>,
        active: Deletion,
        version: Option<RowRef<'_>>,
        out: &mut RowBuilder,
    ) -> Option<Vec<u8>> {
        let active = match active.is_live() || !self.env.planted("garbage_of_any_age") {
            true => active,
            false => Deletion::new(i64::MAX, active.local_deletion_time),
        };
        let left = merge_versions(&self.layout, [row].into_iter(), active, out)?;
        let left = left.as_packed().to_vec();
        let Some(version) = version.filter(|_| self.cells) else { return Some(left) };
        let left = without_shadowed(&self.layout, RowRef::from_packed(&left), version, out)?;
        Some(left.as_packed().to_vec())
    }

    async fn step(&mut self) -> Result<(), StorageError> {
        self.head.clear();
        if let Some(unfiltered) = self.partition.next().await? {
            unfiltered.pack(&mut self.head);
        }
        Ok(())
    }
}
