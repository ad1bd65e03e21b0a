//! What a start replayed: segments of earlier runs of which memtables still have something that no
//! SSTable has.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use schema::TableId;
use sstable::statistics::LogPosition;

/// What memtables have of segments of earlier runs, by the segments' ids.
#[derive(Default)]
pub(crate) struct Replayed {
    /// The tables whose records in them were replayed and not flushed since.
    tables: RefCell<BTreeMap<i64, BTreeSet<TableId>>>,
    /// Up to where those could be read, in bytes of the file.
    read_to: RefCell<BTreeMap<i64, u64>>,
    /// The newest segment up to which a table was truncated in an earlier run.
    truncated_in: Cell<i64>,
    /// Segments with mutations that are to be captured, and where the last one ends.
    captured: RefCell<BTreeMap<i64, u32>>,
}

impl Replayed {
    /// A record of these tables was replayed.
    pub fn note(&self, segment: i64, tables: impl Iterator<Item = TableId>) {
        self.tables.borrow_mut().entry(segment).or_default().extend(tables);
    }

    /// A record that is to be captured ends there.
    pub fn note_captured(&self, segment: i64, end: u32) {
        let before = self.captured.borrow_mut().insert(segment, end);
        assert!(before <= Some(end), "records of a segment are replayed in their order");
    }

    /// A segment was read up to a byte, and what was read is durable.
    pub fn note_read(&self, segment: i64, read_to: u64) {
        assert!(self.has(segment), "a segment is noted as read if a record of it was replayed");
        self.read_to.borrow_mut().insert(segment, read_to);
    }

    pub fn note_truncated(&self, segment: i64) {
        self.truncated_in.set(segment);
    }

    pub fn has(&self, segment: i64) -> bool {
        self.tables.borrow().contains_key(&segment)
    }

    /// The tables that have something of a segment in memory alone.
    pub fn tables(&self, segment: i64) -> BTreeSet<TableId> {
        self.tables.borrow().get(&segment).cloned().unwrap_or_default()
    }

    pub fn read_to(&self, segment: i64) -> u64 {
        self.read_to.borrow().get(&segment).copied().unwrap_or_default()
    }

    pub fn captured(&self, segment: i64) -> Option<u32> {
        self.captured.borrow().get(&segment).copied()
    }

    pub fn truncated_in(&self) -> i64 {
        self.truncated_in.get()
    }

    /// A table was flushed: nothing of it is in memory alone.
    pub fn flushed(&self, id: TableId) {
        self.tables.borrow_mut().values_mut().for_each(|tables| {
            tables.remove(&id);
        });
    }

    /// The intervals of what was replayed into a table's memtables: in segments of earlier lives,
    /// of any shard.
    pub fn intervals(&self, id: TableId) -> Vec<(LogPosition, LogPosition)> {
        let replayed = self.tables.borrow();
        let segments = replayed.iter().filter(|(_, tables)| tables.contains(&id));
        let whole = |(segment, _): (&i64, _)| {
            let at = |offset| LogPosition { segment: *segment, offset };
            (at(0), at(i32::MAX))
        };
        segments.map(whole).collect()
    }
}
