//! Which segments still hold writes that no SSTable has: pure bookkeeping of one shard's chain.
//!
//! A segment may go once every table's last record in it lies at or before that table's flushed
//! position, and never while it is being written.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schema::TableId;

use super::format::Position;

#[derive(Debug)]
struct Segment {
    id: i64,
    bytes: u64,
    /// Offset after the last record of each table that is not flushed yet.
    dirty: BTreeMap<TableId, u32>,
}

/// The segments of one shard, oldest first; the last one is being written.
#[derive(Debug, Default)]
pub struct Ledger {
    segments: VecDeque<Segment>,
}

impl Ledger {
    /// A new segment follows the ones before.
    pub fn open(&mut self, id: i64, bytes: u64) {
        let is_later = self.segments.back().is_none_or(|last| last.id < id);
        assert!(is_later, "a segment has a greater id than those before: {id}");
        self.segments.push_back(Segment { id, bytes, dirty: BTreeMap::new() });
    }

    /// A segment takes so many bytes now.
    pub fn resize(&mut self, id: i64, bytes: u64) {
        if let Some(segment) = self.segments.iter_mut().rev().find(|segment| segment.id == id) {
            segment.bytes = bytes;
        }
    }

    /// A segment of an earlier run, with the tables whose records in it were replayed: it may go
    /// once they are flushed. To be told before [`Ledger::open`], oldest first.
    pub fn inherit(&mut self, id: i64, bytes: u64, tables: impl IntoIterator<Item = TableId>) {
        let dirty = tables.into_iter().map(|table| (table, 0)).collect();
        let follows = self.segments.back().is_none_or(|last| last.id <= id);
        assert!(follows, "segments of earlier runs are inherited in the order of their ids: {id}");
        self.segments.push_back(Segment { id, bytes, dirty });
    }

    /// A record of `table` ends at `position`.
    pub fn wrote(&mut self, table: TableId, position: Position) {
        let segment = self.segments.iter_mut().rev().find(|segment| segment.id == position.segment);
        // One that is not known would go with the record in it.
        let segment = segment.expect("a record is written to a segment that is still needed");
        let last = segment.dirty.entry(table).or_insert(0);
        assert!(*last <= position.offset, "records of a segment follow each other");
        *last = position.offset;
    }

    /// All records of `table` up to `position` are in durable SSTables.
    pub fn flushed(&mut self, table: TableId, position: Position) {
        for segment in &mut self.segments {
            let covered = segment
                .dirty
                .get(&table)
                .is_some_and(|last| Position { segment: segment.id, offset: *last } <= position);
            if covered {
                segment.dirty.remove(&table);
            }
        }
    }

    /// Forgets a table that was dropped.
    pub fn dropped(&mut self, table: TableId) {
        for segment in &mut self.segments {
            segment.dirty.remove(&table);
        }
    }

    /// Removes the segments that may go and gives their ids. A clean one in the middle may go too:
    /// replay needs no unbroken chain.
    pub fn take_clean(&mut self) -> Vec<i64> {
        let active = self.segments.back().map(|segment| segment.id);
        let mut gone = Vec::new();
        let before = self.segments.len();
        self.segments.retain(|segment| {
            let keep = Some(segment.id) == active || !segment.dirty.is_empty();
            if !keep {
                gone.push(segment.id);
            }
            keep
        });
        let stays = active.is_none_or(|id| self.segments.back().is_some_and(|last| last.id == id));
        assert!(stays, "the segment that is written stays: {active:?}");
        assert_eq!(gone.len() + self.segments.len(), before, "each segment stays or goes");
        gone
    }

    /// The same, for a log that ends: the segment being written may go too.
    pub fn take_all_clean(&mut self) -> Vec<i64> {
        let all = std::mem::take(&mut self.segments).into_iter();
        let (gone, left): (VecDeque<_>, _) = all.partition(|segment| segment.dirty.is_empty());
        self.segments = left;
        gone.into_iter().map(|segment| segment.id).collect()
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// The tables whose flush lets the oldest segment go.
    pub fn oldest_dirty(&self) -> Vec<TableId> {
        let oldest = self.segments.iter().find(|segment| !segment.dirty.is_empty());
        oldest.map(|segment| segment.dirty.keys().copied().collect()).unwrap_or_default()
    }

    /// Does a segment hold what no SSTable has?
    pub fn is_dirty(&self, id: i64) -> bool {
        self.segments.iter().any(|segment| segment.id == id && !segment.dirty.is_empty())
    }

    /// The tables whose flush lets these segments go.
    pub fn dirty_in(&self, ids: &BTreeSet<i64>) -> BTreeSet<TableId> {
        let segments = self.segments.iter().filter(|segment| ids.contains(&segment.id));
        segments.flat_map(|segment| segment.dirty.keys().copied()).collect()
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// The segments' ids, oldest first, from `from` on: an SSTable's commit-log intervals name
    /// each.
    pub fn ids_from(&self, from: i64) -> impl Iterator<Item = i64> {
        self.segments.iter().map(|segment| segment.id).filter(move |id| *id >= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(n: u8) -> TableId {
        TableId([n; 16])
    }

    fn at(segment: i64, offset: u32) -> Position {
        Position { segment, offset }
    }

    #[test]
    fn a_segment_goes_when_every_table_in_it_is_flushed() {
        let mut ledger = Ledger::default();
        ledger.open(1, 100);
        ledger.wrote(table(1), at(1, 10));
        ledger.wrote(table(2), at(1, 20));
        ledger.wrote(table(1), at(1, 30));
        ledger.open(2, 100);
        ledger.wrote(table(1), at(2, 5));
        assert!(ledger.take_clean().is_empty());
        ledger.flushed(table(1), at(1, 29));
        assert_eq!(ledger.oldest_dirty(), [table(1), table(2)]);
        ledger.flushed(table(1), at(1, 30));
        assert!(ledger.take_clean().is_empty());
        ledger.flushed(table(2), at(2, 0));
        assert_eq!(ledger.take_clean(), [1]);
        ledger.flushed(table(1), at(2, 5));
        assert!(ledger.take_clean().is_empty(), "the segment being written stays");
        ledger.open(3, 100);
        assert_eq!(ledger.take_clean(), [2]);
        assert_eq!(ledger.bytes(), 100);
    }

    #[test]
    fn what_was_replayed_stays_until_it_is_flushed() {
        let mut ledger = Ledger::default();
        ledger.inherit(1, 100, [table(1), table(2)]);
        ledger.inherit(2, 100, []);
        ledger.open(7, 100);
        assert_eq!(ledger.take_clean(), [2]);
        ledger.flushed(table(1), at(7, 50));
        assert!(ledger.take_clean().is_empty());
        ledger.flushed(table(2), at(7, 50));
        assert_eq!(ledger.take_clean(), [1]);
    }

    #[test]
    fn a_log_that_ends_keeps_only_what_is_not_flushed() {
        let mut ledger = Ledger::default();
        ledger.open(1, 100);
        ledger.wrote(table(1), at(1, 10));
        ledger.open(2, 100);
        ledger.wrote(table(2), at(2, 10));
        ledger.flushed(table(2), at(2, 10));
        assert_eq!(ledger.take_all_clean(), [2]);
        ledger.flushed(table(1), at(2, 10));
        assert_eq!(ledger.take_all_clean(), [1]);
        assert_eq!(ledger.len(), 0);
    }

    #[test]
    fn a_dropped_table_holds_nothing() {
        let mut ledger = Ledger::default();
        ledger.open(1, 100);
        ledger.wrote(table(1), at(1, 10));
        ledger.open(2, 100);
        ledger.dropped(table(1));
        assert_eq!(ledger.take_clean(), [1]);
    }
}
