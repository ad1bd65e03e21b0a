//! A partition in memory: the merge of all updates since the last flush.

use rows::{
    Deletion, Layout, PartitionUpdate, RangeTombstoneList, RowBuilder, RowRef, compare, update_row,
};

use std::sync::Arc;

use super::sorted::Sorted;

/// Bytes a row costs beside its own: its pointer, and the count of those who read it.
pub(crate) const ROW_OVERHEAD_BYTES: usize = 32;
/// Bytes a range tombstone costs beside its bounds.
const RANGE_OVERHEAD_BYTES: usize = 96;

/// One partition of a memtable.
#[derive(Debug, Default)]
pub struct Partition {
    deletion: Option<Deletion>,
    static_row: Option<Box<[u8]>>,
    rows: Sorted<Arc<[u8]>>,
    ranges: RangeTombstoneList,
    /// Counts the insertions of rows: a [`super::sorted::Place`] holds as long as it stands.
    version: u64,
}

/// What applying an update did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Applied {
    /// Bytes of memory more (or less).
    pub bytes: isize,
}

impl Partition {
    /// The deletion of the whole partition.
    pub fn deletion(&self) -> Deletion {
        self.deletion.unwrap_or(Deletion::LIVE)
    }

    /// The static row.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        self.static_row.as_deref().map(RowRef::from_packed)
    }

    /// The rows in clustering order, each as it is now: whoever reads one shares it.
    pub fn rows(&self) -> &Sorted<Arc<[u8]>> {
        &self.rows
    }

    /// The range tombstones.
    pub fn ranges(&self) -> &RangeTombstoneList {
        &self.ranges
    }

    /// Is nothing in it that deletes other parts of it?
    pub(crate) fn is_plain(&self) -> bool {
        self.deletion().is_live() && self.ranges.is_empty()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Merges an update in.
    pub(crate) fn apply(
        &mut self,
        layout: &Layout,
        update: &PartitionUpdate,
        scratch: &mut RowBuilder,
    ) -> Applied {
        let mut applied = Applied::default();
        if !update.deletion.is_live() {
            self.deletion = Some(self.deletion().max(update.deletion));
        }
        for range in update.ranges.iter() {
            applied.bytes += RANGE_OVERHEAD_BYTES as isize;
            self.ranges.insert(layout, range.clone());
        }
        if let Some(row) = update.static_row() {
            applied.bytes += merge_into(layout, &mut self.static_row, row, scratch);
        }
        for row in update.rows.iter() {
            applied.bytes += self.apply_row(layout, row, scratch);
        }
        applied
    }

    fn apply_row(&mut self, layout: &Layout, row: RowRef<'_>, scratch: &mut RowBuilder) -> isize {
        let clustering = row.clustering();
        let place = self
            .rows
            .find(|old| compare(layout, RowRef::from_packed(old).clustering(), clustering));
        match place {
            Ok(place) => {
                let Some(old) = self.rows.get_mut(place) else { return 0 };
                let before = old.len() as isize;
                let merged = update_row(layout, RowRef::from_packed(old), row, scratch);
                if let Some(merged) = merged
                    && merged.as_packed() != &**old
                {
                    *old = merged.as_packed().into();
                }
                old.len() as isize - before
            }
            Err(place) => {
                self.version += 1;
                self.rows.insert(place, row.as_packed().into());
                (row.as_packed().len() + ROW_OVERHEAD_BYTES) as isize
            }
        }
    }

    /// The row with this clustering.
    pub fn row(&self, layout: &Layout, clustering: rows::ClusteringRef<'_>) -> Option<RowRef<'_>> {
        let place = self
            .rows
            .find(|row| compare(layout, RowRef::from_packed(row).clustering(), clustering))
            .ok()?;
        self.rows.get(place).map(|row| RowRef::from_packed(row))
    }

    /// Where `bound` stands among the rows: the first place not before it.
    pub(crate) fn place_of(
        &self,
        layout: &Layout,
        bound: rows::BoundRef<'_>,
    ) -> super::sorted::Place {
        let found =
            self.rows.find(|row| compare(layout, RowRef::from_packed(row).clustering(), bound));
        found.unwrap_or_else(|place| place)
    }
}

fn merge_into(
    layout: &Layout,
    slot: &mut Option<Box<[u8]>>,
    row: RowRef<'_>,
    scratch: &mut RowBuilder,
) -> isize {
    let before = slot.as_ref().map_or(0, |old| old.len()) as isize;
    let merged = match slot.as_deref() {
        None => Some(row),
        Some(old) => update_row(layout, RowRef::from_packed(old), row, scratch),
    };
    if let Some(merged) = merged {
        *slot = Some(merged.as_packed().into());
    }
    slot.as_ref().map_or(0, |new| new.len()) as isize - before
}
