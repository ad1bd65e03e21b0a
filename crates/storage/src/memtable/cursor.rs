//! A cursor over one partition of a memtable, in slices, either way.
//!
//! It stays valid while the memtable is written: rows are found again by their clustering. What it
//! shows of a row is the row at the time it got there.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use rows::{
    BoundKind, BoundRef, ColumnMap, Deletion, Layout, RowBuilder, RowRef, Unfiltered, compare,
};
use schema::Table;

use super::sorted::Place;
use super::{KeyRef, Partition, PartitionKey, Slot};
use crate::read::Slices;

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
    /// The next row, packed, in the memtable's layout; empty if there is none.
    row: Vec<u8>,
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
        // writes to a column that was dropped and added again may be older than the drop
        let is_other = !Arc::ptr_eq(from, table) && from.layout != table.layout;
        let map = (is_other || !table.layout.dropped.is_empty())
            .then(|| crate::read::column_map(&from.layout, table).keeping_complex_deletions())
            .filter(|map| !map.is_identity());
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
            row: Vec::new(),
            mapped: None,
            markers: markers.into_iter(),
            scratch: RowBuilder::new(),
        };
        drop(memtable);
        cursor.map_static();
        cursor.load_row();
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
        let packed = self.mapped.as_deref().unwrap_or(&self.row);
        (!packed.is_empty()).then(|| RowRef::from_packed(packed))
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
            let Some(map) = &self.map else { return };
            let mut mapped = self.mapped.take().unwrap_or_default();
            mapped.clear();
            if self.row.is_empty() {
                self.mapped = Some(mapped);
                return;
            }
            let row = RowRef::from_packed(&self.row);
            if let Some(row) = map.apply(row, &self.table.layout, &mut self.scratch) {
                mapped.extend_from_slice(row.as_packed());
                self.mapped = Some(mapped);
                return;
            }
            // nothing but dropped columns was in it: on to the next
        }
    }

    fn load_raw_row(&mut self) {
        let slot = Rc::clone(&self.slot);
        let memtable = slot.read();
        let Some(partition) = memtable.get(self.key.as_ref()) else {
            self.seek = Seek::End;
            return self.row.clear();
        };
        let layout = &memtable.table().layout;
        let reversed = self.slices.reversed();
        while let Some((start, end)) = self.slices.ordered(self.slice) {
            let place = match self.seek {
                Seek::End => break,
                Seek::Edge => edge_place(partition, layout, start, end, reversed),
                Seek::After(place, version) if version == partition.version() => {
                    step(partition, place, reversed)
                }
                Seek::After(..) => {
                    let last = RowRef::from_packed(&self.row).clustering();
                    place_after(partition, layout, last, reversed)
                }
            };
            let found = place.and_then(|place| Some((place, partition.rows().get(place)?)));
            if let Some((place, packed)) = found {
                let clustering = RowRef::from_packed(packed).clustering();
                let inside = match reversed {
                    false => compare(layout, clustering, end) == Ordering::Less,
                    true => compare(layout, clustering, start) == Ordering::Greater,
                };
                if inside {
                    self.seek = Seek::After(place, partition.version());
                    self.row.clear();
                    return self.row.extend_from_slice(packed);
                }
            }
            self.slice += 1;
            self.seek = Seek::Edge;
        }
        self.seek = Seek::End;
        self.row.clear();
    }
}

fn step(partition: &Partition, place: Place, reversed: bool) -> Option<Place> {
    match reversed {
        false => Some(partition.rows().next(place)),
        true => partition.rows().previous(place),
    }
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
    use rows::{CellRef, Clustering, Liveness, UpdateBuilder};
    use schema::{ColumnKind, DroppedColumn, TableId};
    use types::CqlType;

    const POSITION: Position = Position { segment: 1, offset: 0 };

    /// With a column `v` that was dropped at 10 and is there again.
    fn table() -> Arc<Table> {
        let mut builder = Table::builder("ks", "t", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Int, ColumnKind::Clustering)
            .column("v", CqlType::Int, ColumnKind::Regular);
        let (name, ty, kind) = ("v".to_owned(), CqlType::Int, ColumnKind::Regular);
        let dropped = DroppedColumn { name: name.as_str().into(), ty, kind, dropped_at: 10 };
        builder.dropped.insert(name, dropped);
        Arc::new(builder.build())
    }

    #[test]
    fn what_is_written_at_a_time_before_its_column_was_dropped_is_not_there() {
        let table = table();
        let mut memtable = Memtable::new(Arc::clone(&table), POSITION);
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        for (clustering, at) in [(1_i32, 10), (2, 11)] {
            let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), b"key!");
            row.start_row(Clustering::new([Some(clustering.to_be_bytes().as_slice())]).as_ref());
            row.liveness(Liveness::new(at));
            row.cell(CellRef::live(0, None, at, &[0, 0, 0, 7]));
            update.add(row.finish_row(&table.layout), &mut scratch);
            memtable.apply(&update.finish(&mut scratch), POSITION, &mut scratch);
        }
        let slot = Slot::new(memtable);
        let key = PartitionKey::new(*b"key!");
        let cursor = MemtableCursor::open(&slot, key.as_ref(), &table, Slices::all(false));
        let mut cursor = cursor.expect("was written");
        let mut cells = Vec::new();
        while let Some(Unfiltered::Row(row)) = cursor.head() {
            cells.push(row.cells().count());
            cursor.advance();
        }
        assert_eq!(cells, [0, 1]);
    }
}
