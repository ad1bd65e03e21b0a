//! Memtables that were flushed and stay while there is memory for them: reads take them in place of the SSTables that
//! they were written to.

use std::rc::Rc;

use super::Slot;
use crate::sstables::LiveSet;

/// A shard's flushed memtables of one table, oldest first.
#[derive(Debug, Default)]
pub(crate) struct KeptMemtables(Vec<Kept>);

/// What one flush froze.
#[derive(Debug)]
pub(crate) struct Kept {
    flush: u64,
    pub slots: Vec<Rc<Slot>>,
    /// The numbers of all that it wrote: of this shard's partitions they have what the memtables have, and no more.
    pub sstables: Vec<u64>,
    bytes: usize,
}

impl KeptMemtables {
    /// Keeps what a flush froze, and wrote to these SSTables.
    pub fn keep(&mut self, flush: u64, slots: Vec<Rc<Slot>>, sstables: Vec<u64>) {
        let bytes = slots.iter().map(|slot| slot.read().bytes()).sum();
        self.0.push(Kept { flush, slots, sstables, bytes });
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|kept| kept.bytes).sum()
    }

    /// All memtables, newest first.
    pub fn slots(&self) -> impl Iterator<Item = &Rc<Slot>> {
        self.0.iter().rev().flat_map(|kept| &kept.slots)
    }

    /// Do they have what is in an SSTable?
    pub fn has(&self, sstable: u64) -> bool {
        self.0.iter().any(|kept| kept.sstables.contains(&sstable))
    }

    /// The flush that the oldest are of.
    pub fn oldest(&self) -> Option<u64> {
        self.0.first().map(|kept| kept.flush)
    }

    /// Gives the oldest away.
    pub fn take_oldest(&mut self) -> Option<Kept> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// Gives those away that do not stand for SSTables of this set: what became of these may be without tombstones
    /// that memtables which are gone had.
    pub fn take_outdated(&mut self, live: &LiveSet) -> Vec<Rc<Slot>> {
        let is_live = |number: &u64| live.tables().iter().any(|table| table.number == *number);
        let goes = |kept: &mut Kept| !kept.sstables.iter().all(is_live);
        self.0.extract_if(.., goes).flat_map(|kept| kept.slots).collect()
    }

    /// Gives all away.
    pub fn take_all(&mut self) -> Vec<Rc<Slot>> {
        self.0.drain(..).flat_map(|kept| kept.slots).collect()
    }
}
