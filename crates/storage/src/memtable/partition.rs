//! A partition in memory: the merge of all updates since the last flush.

use rows::{
    Deletion, Layout, PartitionUpdate, RangeTombstoneList, RowBuilder, RowRef, compare, update_row,
};

use std::hint::black_box;
use std::sync::Arc;

use super::sorted::Sorted;

/// Bytes a row costs beside its own: its pointer, and the count of those who read it.
pub(crate) const ROW_OVERHEAD_BYTES: usize = 32;
/// Bytes a range tombstone costs beside its bounds.
const RANGE_OVERHEAD_BYTES: usize = 96;
/// Bytes that what stands beside the rows costs, where there is any.
const BESIDE_OVERHEAD_BYTES: usize = 64;
/// Bytes at the beginning of a row that are brought near at once by who is to read it; what follows
/// the machine foresees.
const NEAR_BYTES: usize = 1 << 10;
/// Bytes of a line of the CPU's caches.
const LINE_BYTES: usize = 64;
/// Of partitions that have nothing beside their rows.
static NO_RANGES: RangeTombstoneList = RangeTombstoneList::new();

/// One partition of a memtable. Most have rows and nothing else, and there may be very many.
#[derive(Debug, Default)]
pub struct Partition {
    rows: Sorted<Arc<[u8]>>,
    /// Counts the insertions of rows: a [`super::sorted::Place`] holds as long as it stands.
    version: u64,
    beside: Option<Box<Beside>>,
}

/// What a partition may have beside its rows.
#[derive(Debug)]
struct Beside {
    deletion: Deletion,
    static_row: Option<Box<[u8]>>,
    ranges: RangeTombstoneList,
}

impl Default for Beside {
    fn default() -> Self {
        Self { deletion: Deletion::LIVE, static_row: None, ranges: RangeTombstoneList::new() }
    }
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
        self.beside.as_ref().map_or(Deletion::LIVE, |beside| beside.deletion)
    }

    /// The static row.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        self.beside.as_ref()?.static_row.as_deref().map(RowRef::from_packed)
    }

    /// The rows in clustering order, each as it is now: whoever reads one shares it.
    pub fn rows(&self) -> &Sorted<Arc<[u8]>> {
        &self.rows
    }

    /// The range tombstones.
    pub fn ranges(&self) -> &RangeTombstoneList {
        self.beside.as_ref().map_or(&NO_RANGES, |beside| &beside.ranges)
    }

    /// Is nothing in it that deletes other parts of it?
    pub(crate) fn is_plain(&self) -> bool {
        self.deletion().is_live() && self.ranges().is_empty()
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
        let has_more = update.static_row().is_some() || !update.ranges.is_empty();
        if has_more || !update.deletion.is_live() {
            applied.bytes += self.apply_beside(layout, update, scratch);
        }
        for row in update.rows.iter() {
            applied.bytes += self.apply_row(layout, row, scratch);
        }
        applied
    }

    fn apply_beside(
        &mut self,
        layout: &Layout,
        update: &PartitionUpdate,
        scratch: &mut RowBuilder,
    ) -> isize {
        let mut bytes = if self.beside.is_none() { BESIDE_OVERHEAD_BYTES as isize } else { 0 };
        let beside = self.beside.get_or_insert_default();
        beside.deletion = beside.deletion.max(update.deletion);
        for range in update.ranges.iter() {
            bytes += RANGE_OVERHEAD_BYTES as isize;
            beside.ranges.insert(layout, range.clone());
        }
        if let Some(row) = update.static_row() {
            bytes += merge_into(layout, &mut beside.static_row, row, scratch);
        }
        bytes
    }

    fn apply_row(&mut self, layout: &Layout, row: RowRef<'_>, scratch: &mut RowBuilder) -> isize {
        let clustering = row.clustering();
        let place = self
            .rows
            .find(|old| compare(layout, RowRef::from_packed(old).clustering(), clustering));
        match place {
            Ok(place) => {
                let old = self.rows.get_mut(place).expect("a row that was found is at its place");
                let before = old.len() as isize;
                bring_near(old);
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

/// Brings the beginning of a row into the CPU's caches, all of its lines at once: who reads it
/// waits for one of them, not for one after the other. That the bytes are not used is the point.
pub(crate) fn bring_near(row: &[u8]) {
    let lines = row.iter().take(NEAR_BYTES).step_by(LINE_BYTES);
    black_box(lines.fold(0_u8, |sum, byte| sum ^ byte));
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
