//! A cursor over one partition of a memtable, in slices, either way.
//!
//! It stays valid while the memtable is written: rows are found again by their clustering. What it
//! shows of a row is the row at the time it got there, or a few rows before.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use rows::{
    BoundKind, BoundRef, ColumnMap, Deletion, Layout, RowBuilder, RowRef, Unfiltered, compare,
};
use schema::Table;

use super::partition::bring_near;
use super::sorted::Place;
use super::{KeyRef, Partition, PartitionKey, Slot};
use crate::read::Slices;

/// Rows that are taken of a partition at once, at most.
const BATCH_MAX: usize = 16;

/// Where the next row is to be looked for.
#[derive(Clone, Copy, Debug)]
enum Seek {
    /// At the edge of the current slice.
    Edge,
    /// After the row in the buffer, which stood at this place when the partition had this version.
    After(Place, u64),
    /// There are no more rows.
    End,
}

/// Reads a partition of a memtable.
#[derive(Debug)]
pub struct MemtableCursor {
    slot: Rc<Slot>,
    key: PartitionKey,
    table: Arc<Table>,
    map: Option<ColumnMap>,
    slices: Slices,
    slice: usize,
    seek: Seek,
    deletion: Deletion,
    static_row: Option<Box<[u8]>>,
    /// The next row, packed, in the memtable's layout, which holds it too.
    row: Option<Arc<[u8]>>,
    /// Rows that follow it.
    ahead: VecDeque<Arc<[u8]>>,
    /// How many rows are taken when the partition is looked up again.
    batch: usize,
    /// The same in the table's present layout, where that differs.
    mapped: Option<Vec<u8>>,
    /// Markers of all slices, packed, in the order of iteration.
    markers: std::vec::IntoIter<Box<[u8]>>,
    scratch: RowBuilder,
}

impl MemtableCursor {
    /// Opens the partition; `None` if the memtable has none of this key.
    pub fn open(
        slot: &Rc<Slot>,
        key: KeyRef<'_>,
        table: &Arc<Table>,
        slices: Slices,
    ) -> Option<Self> {
        let memtable = slot.read();
        let partition = memtable.get(key)?;
        let from = memtable.table();
        let map = from_memtable(from, table);
        let layout = &from.layout;
        let mut markers: Vec<Box<[u8]>> = Vec::new();
        for (start, end) in slices.iter_ordered() {
            for marker in partition.ranges().markers_within(layout, start, end, slices.reversed()) {
                let mut packed = Vec::new();
                marker.pack(&mut packed);
                markers.push(packed.into());
            }
        }
        let mut cursor = Self {
            slot: Rc::clone(slot),
            key: key.to_owned(),
            table: Arc::clone(table),
            map,
            slices,
            slice: 0,
            seek: Seek::Edge,
            deletion: partition.deletion(),
            static_row: partition.static_row().map(|row| row.as_packed().into()),
            row: None,
            ahead: VecDeque::new(),
            batch: 1,
            mapped: None,
            markers: markers.into_iter(),
            scratch: RowBuilder::new(),
        };
        cursor.take_rows(partition, layout);
        drop(memtable);
        cursor.map_static();
        if !cursor.map_row() {
            cursor.load_row();
        }
        Some(cursor)
    }

    /// The deletion of the whole partition.
    pub fn deletion(&self) -> Deletion {
        self.deletion
    }

    /// The static row.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        self.static_row.as_deref().map(RowRef::from_packed)
    }

    fn map_static(&mut self) {
        let Some(map) = &self.map else { return };
        let Some(row) = self.static_row.take() else { return };
        let row = map.apply(RowRef::from_packed(&row), &self.table.layout, &mut self.scratch);
        self.static_row = row.map(|row| row.as_packed().into());
    }

    fn pending_row(&self) -> Option<RowRef<'_>> {
        let packed = match &self.mapped {
            Some(mapped) => Some(mapped.as_slice()).filter(|packed| !packed.is_empty()),
            None => self.row.as_deref(),
        };
        packed.map(RowRef::from_packed)
    }

    /// The next row or marker.
    pub fn head(&self) -> Option<Unfiltered<'_>> {
        let marker = self.markers.as_slice().first().map(|packed| Unfiltered::from_packed(packed));
        match (self.pending_row().map(Unfiltered::Row), marker) {
            (Some(row), Some(marker)) => {
                let order = compare(&self.table.layout, row.position(), marker.position());
                let row_first = (order == Ordering::Less) != self.slices.reversed();
                Some(if row_first { row } else { marker })
            }
            (row, marker) => row.or(marker),
        }
    }

    /// Moves past the head.
    pub fn advance(&mut self) {
        match self.head() {
            Some(Unfiltered::Row(_)) => self.load_row(),
            Some(Unfiltered::Marker(_)) => drop(self.markers.next()),
            None => {}
        }
    }

    /// Fills the row buffer with the next row of the slices.
    fn load_row(&mut self) {
        loop {
            self.load_raw_row();
            if self.map_row() {
                return;
            }
        }
    }

    /// Brings the row to the table's present layout. False if nothing but dropped columns was in
    /// it: on to the next.
    fn map_row(&mut self) -> bool {
        let Some(map) = &self.map else { return true };
        let mapped = self.mapped.get_or_insert_default();
        mapped.clear();
        let Some(row) = self.row.as_deref().map(RowRef::from_packed) else { return true };
        let Some(row) = map.apply(row, &self.table.layout, &mut self.scratch) else { return false };
        mapped.extend_from_slice(row.as_packed());
        true
    }

    fn load_raw_row(&mut self) {
        let next = self.ahead.pop_front();
        if next.is_some() || matches!(self.seek, Seek::End) {
            self.row = next;
            return;
        }
        // the row that was last is where the next ones follow
        let slot = Rc::clone(&self.slot);
        let memtable = slot.read();
        // To end here would leave out the rows that follow: a memtable that somebody reads is
        // neither cut nor freed.
        let partition = memtable.get(self.key.as_ref());
        let partition = partition.expect("a partition that is read stays in its memtable");
        self.take_rows(partition, &memtable.table().layout);
    }

    /// Takes the next rows of the slices from the partition as it is now: the more, the more were
    /// taken before, for to look the partition up for each row costs more than to share the row.
    fn take_rows(&mut self, partition: &Partition, layout: &Layout) {
        self.row = self.take_next(partition, layout);
        let more = self.batch - 1;
        self.batch = (2 * self.batch).min(BATCH_MAX);
        while self.ahead.len() < more
            && let Some(row) = self.take_next(partition, layout)
        {
            self.ahead.push_back(row);
        }
    }

    /// The next row of the slices in the partition as it is now.
    fn take_next(&mut self, partition: &Partition, layout: &Layout) -> Option<Arc<[u8]>> {
        let reversed = self.slices.reversed();
        while let Some((start, end)) = self.slices.ordered(self.slice) {
            let place = match self.seek {
                Seek::End => break,
                Seek::Edge => edge_place(partition, layout, start, end, reversed),
                Seek::After(place, version) if version == partition.version() => {
                    step(partition, place, reversed)
                }
                Seek::After(..) => self.row.as_deref().and_then(|last| {
                    let last = RowRef::from_packed(last).clustering();
                    place_after(partition, layout, last, reversed)
                }),
            };
            let found = place.and_then(|place| Some((place, partition.rows().get(place)?)));
            if let Some((place, packed)) = found {
                bring_near(packed);
                let clustering = RowRef::from_packed(packed).clustering();
                let inside = match reversed {
                    false => compare(layout, clustering, end) == Ordering::Less,
                    true => compare(layout, clustering, start) == Ordering::Greater,
                };
                if inside {
                    // without clustering columns there is no other
                    self.seek = match layout.clustering.is_empty() {
                        true => Seek::End,
                        false => Seek::After(place, partition.version()),
                    };
                    return Some(Arc::clone(packed));
                }
            }
            self.slice += 1;
            self.seek = Seek::Edge;
        }
        self.seek = Seek::End;
        None
    }
}

fn step(partition: &Partition, place: Place, reversed: bool) -> Option<Place> {
    match reversed {
        false => Some(partition.rows().next(place)),
        true => partition.rows().previous(place),
    }
}

/// From the layout that a memtable has to the table's present one; none if they are the same.
///
/// Writes to a column that was dropped and added again may be older than the drop. Of these
/// Cassandra's memtable keeps the deletions of the complex columns, its SSTables do not
/// (`ComplexColumnData.filter`, `DeserializationHelper.isDroppedComplexDeletion`); and an ALTER
/// flushes what it has in memory (`AbstractAllocatorMemtable.shouldSwitch`). So a memtable from
/// before it reads as an SSTable does.
pub(super) fn from_memtable(from: &Arc<Table>, table: &Arc<Table>) -> Option<ColumnMap> {
    let is_older = !Arc::ptr_eq(from, table) && from.layout != table.layout;
    if !is_older && table.layout.dropped.is_empty() {
        return None;
    }
    let map = crate::read::column_map(&from.layout, table);
    let map = if is_older { map } else { map.keeping_complex_deletions() };
    Some(map).filter(|map| !map.is_identity())
}

/// The first row of a slice in the direction of iteration, if it is inside.
fn edge_place(
    partition: &Partition,
    layout: &Layout,
    start: BoundRef<'_>,
    end: BoundRef<'_>,
    reversed: bool,
) -> Option<Place> {
    match reversed {
        false => Some(partition.place_of(layout, start)),
        true => partition.rows().previous(partition.place_of(layout, end)),
    }
}

/// The row after the one of this clustering, which may be gone or moved.
fn place_after(
    partition: &Partition,
    layout: &Layout,
    last: rows::ClusteringRef<'_>,
    reversed: bool,
) -> Option<Place> {
    let kind = if reversed { BoundKind::ExclEnd } else { BoundKind::ExclStart };
    let place = partition.place_of(layout, BoundRef::new(kind, last));
    if reversed { partition.rows().previous(place) } else { Some(place) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commitlog::Position;
    use crate::memtable::Memtable;
    use proptest::prelude::*;
    use rows::{CellRef, Clustering, Liveness, UpdateBuilder};
    use schema::{ColumnKind, DroppedColumn, TableId};
    use types::CqlType;

    const POSITION: Position = Position { segment: 1, offset: 0 };

    /// With a column `v`; perhaps it was dropped at 10 and is there again.
    fn table(of: &CqlType, dropped_at: Option<i64>) -> Arc<Table> {
        let mut builder = Table::builder("ks", "t", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Int, ColumnKind::Clustering)
            .column("v", of.clone(), ColumnKind::Regular);
        if let Some(dropped_at) = dropped_at {
            let (name, ty, kind) = ("v".to_owned(), of.clone(), ColumnKind::Regular);
            let dropped = DroppedColumn { name: name.as_str().into(), ty, kind, dropped_at };
            builder.dropped.insert(name, dropped);
        }
        Arc::new(builder.build())
    }

    /// Writes rows to a memtable that began with a table, and counts the cells that each has in a
    /// read of it when the table is another.
    fn cells_of(
        began: &Arc<Table>,
        read: &Arc<Table>,
        rows: &[&dyn Fn(&mut RowBuilder)],
    ) -> Vec<usize> {
        let mut memtable = Memtable::new(Arc::clone(began), POSITION);
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        for (clustering, fill) in (1_i32..).zip(rows) {
            let mut update = UpdateBuilder::new(began.id.0, Arc::clone(&began.layout), b"key!");
            row.start_row(Clustering::new([Some(clustering.to_be_bytes().as_slice())]).as_ref());
            row.liveness(Liveness::new(1));
            fill(&mut row);
            update.add(row.finish_row(&began.layout), &mut scratch);
            memtable.apply(&update.finish(&mut scratch), POSITION, &mut scratch);
        }
        let slot = Slot::new(memtable);
        let key = PartitionKey::new(*b"key!");
        let cursor = MemtableCursor::open(&slot, key.as_ref(), read, Slices::all(false));
        let mut cursor = cursor.expect("was written");
        let mut cells = Vec::new();
        while let Some(Unfiltered::Row(row)) = cursor.head() {
            cells.push(row.cells().count());
            cursor.advance();
        }
        cells
    }

    #[test]
    fn what_is_written_at_a_time_before_its_column_was_dropped_is_not_there() {
        let table = table(&CqlType::Int, Some(10));
        let written =
            |at| move |row: &mut RowBuilder| row.cell(CellRef::live(0, None, at, &[0, 0, 0, 7]));
        assert_eq!(cells_of(&table, &table, &[&written(10), &written(11)]), [0, 1]);
    }

    /// Cassandra's memtable shows them, its SSTables do not, and an ALTER flushes.
    #[test]
    fn deletions_of_a_collection_that_was_dropped_show_until_the_next_alter() {
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
        let (before, after) = (table(&set, None), table(&set, Some(10)));
        let deleted =
            |at| move |row: &mut RowBuilder| row.complex_deletion(0, Deletion::new(at, 1000));
        assert_eq!(cells_of(&after, &after, &[&deleted(10), &deleted(11)]), [1, 1]);
        assert_eq!(cells_of(&before, &after, &[&deleted(10), &deleted(11)]), [0, 1]);
        assert_eq!(cells_of(&before, &before, &[&deleted(10)]), [1]);
    }

    fn insert(slot: &Slot, table: &Arc<Table>, clustering: i32) {
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), b"key!");
        row.start_row(Clustering::new([Some(clustering.to_be_bytes().as_slice())]).as_ref());
        row.liveness(Liveness::new(1));
        update.add(row.finish_row(&table.layout), &mut scratch);
        let update = update.finish(&mut scratch);
        slot.write(|memtable| memtable.apply(&update, POSITION, &mut scratch)).expect("active");
    }

    proptest! {
        /// While rows come in, a cursor shows each row that was there when it was opened, once and
        /// in order, and no other row than there is.
        #[test]
        fn rows_that_come_in_between_make_none_go_missing(
            rows in prop::collection::btree_set(0..100_i32, 1..60),
            news in prop::collection::vec(prop::option::of(0..100_i32), 60),
            edges in prop::collection::btree_set(0..100_i32, 0..6),
            reversed in any::<bool>(),
        ) {
            let table = table(&CqlType::Int, None);
            let slot = Slot::new(Memtable::new(Arc::clone(&table), POSITION));
            rows.iter().for_each(|row| insert(&slot, &table, *row));
            let edges: Vec<i32> = edges.into_iter().collect();
            let bound = |kind, at: &i32| {
                let values = Clustering::new([Some(at.to_be_bytes().as_slice())]);
                rows::Bound::new(kind, values)
            };
            let pairs = edges.chunks_exact(2).map(|two| {
                (bound(BoundKind::InclStart, &two[0]), bound(BoundKind::ExclEnd, &two[1]))
            });
            let slices = match edges.len() < 2 {
                true => Slices::all(reversed),
                false => Slices::new(pairs.collect::<Vec<_>>(), reversed),
            };
            let inside = |row: &i32| {
                edges.len() < 2 || edges.chunks_exact(2).any(|two| (two[0]..two[1]).contains(row))
            };
            let key = PartitionKey::new(*b"key!");
            let mut cursor = MemtableCursor::open(&slot, key.as_ref(), &table, slices).expect("there");
            let (mut seen, mut all) = (Vec::new(), rows.clone());
            let mut news = news.into_iter();
            while let Some(Unfiltered::Row(row)) = cursor.head() {
                let at = row.clustering().get(0).flatten().and_then(|at| at.first_chunk().copied());
                seen.push(i32::from_be_bytes(at.expect("an int")));
                if let Some(new) = news.next().flatten() {
                    insert(&slot, &table, new);
                    all.insert(new);
                }
                cursor.advance();
            }
            if reversed {
                seen.reverse();
            }
            prop_assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
            prop_assert!(seen.iter().all(|row| inside(row) && all.contains(row)), "{seen:?}");
            prop_assert!(rows.iter().filter(|row| inside(row)).all(|row| seen.contains(row)), "{seen:?}");
        }
    }
}
