//! Memtables that were flushed and stay while there is memory for them: reads take them in place of
//! the SSTables that they were written to. They go in pieces, each of a part of the ring, so that
//! what is read is not all at once on disk.
//!
//! `memtable_keeps_flushed` turns this on. Kept memtables and those that writes fill share all but
//! a 32nd of the memtables' memory. The oldest one goes first.
//!
//! A kept memtable goes whole when anything replaces one of its SSTables. What took that SSTable's
//! place may be without tombstones that hide what the memtable has.

use std::rc::Rc;

use types::Token;

use super::Slot;
use crate::sstables::LiveSet;

/// A shard's flushed memtables of one table, oldest first.
#[derive(Debug, Default)]
pub(crate) struct KeptMemtables(Vec<Kept>);

/// What one flush froze.
#[derive(Debug)]
struct Kept {
    flush: u64,
    /// In the order of the ring; those that went were the first.
    pieces: Vec<Piece>,
    /// From this token on it stands for the SSTables.
    from: Token,
    /// The numbers of all that it wrote: of this shard's partitions they have what the memtables
    /// have, and no more.
    sstables: Vec<u64>,
}

/// A part of the ring of what a flush froze.
#[derive(Debug)]
struct Piece {
    /// No token in it is less.
    from: Token,
    slots: Vec<Rc<Slot>>,
    bytes: usize,
}

impl Piece {
    fn new(from: Token, slots: Vec<Rc<Slot>>) -> Self {
        let bytes = slots.iter().map(|slot| slot.read().bytes()).sum();
        Self { from, slots, bytes }
    }
}

impl Kept {
    /// The memtables that have a token's partitions.
    fn slots_of(&self, token: Token) -> &[Rc<Slot>] {
        let upto = self.pieces.partition_point(|piece| piece.from <= token);
        let piece = upto.checked_sub(1).and_then(|place| self.pieces.get(place));
        piece.map_or(&[], |piece| &piece.slots)
    }
}

impl KeptMemtables {
    /// Keeps what a flush froze, and wrote to these SSTables.
    pub fn keep(&mut self, flush: u64, slots: Vec<Rc<Slot>>, sstables: Vec<u64>) {
        assert!(!sstables.is_empty(), "a retained memtable has the data of at least one SSTable");
        let pieces = vec![Piece::new(Token::MIN, slots)];
        self.0.push(Kept { flush, pieces, from: Token::MIN, sstables });
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.0.iter().flat_map(|kept| &kept.pieces).map(|piece| piece.bytes).sum()
    }

    /// The memtables that have a token's partitions, newest first.
    pub fn slots_of(&self, token: Token) -> impl Iterator<Item = &Rc<Slot>> {
        self.0.iter().rev().flat_map(move |kept| kept.slots_of(token))
    }

    /// The memtables that stand for all of their SSTables, newest first.
    pub fn whole(&self) -> impl Iterator<Item = &Rc<Slot>> {
        let whole = self.0.iter().rev().filter(|kept| kept.from == Token::MIN);
        whole.flat_map(|kept| &kept.pieces).flat_map(|piece| &piece.slots)
    }

    /// Do they have what is in an SSTable from a token on?
    pub fn has(&self, sstable: u64, from: Token) -> bool {
        self.0.iter().any(|kept| kept.from <= from && kept.sstables.contains(&sstable))
    }

    /// The flush that the oldest are of.
    pub fn oldest(&self) -> Option<u64> {
        self.0.first().map(|kept| kept.flush)
    }

    /// Cuts the oldest, if it is whole, into pieces of so many bytes at most, but for partitions
    /// that are larger. False while a read has it, which is to find all that it began with.
    pub fn cut_oldest(&mut self, most: usize) -> bool {
        let Some([whole]) = self.0.first_mut().map(|kept| kept.pieces.as_mut_slice()) else {
            return true;
        };
        // what several memtables have goes together
        let [slot] = whole.slots.as_mut_slice() else { return true };
        if whole.bytes <= most {
            return true;
        }
        let Some(cut) = Slot::cut(slot, most) else { return false };
        let pieces = cut.into_iter().map(|(from, slot)| Piece::new(from, vec![slot]));
        if let Some(kept) = self.0.first_mut() {
            kept.pieces = pieces.collect();
        }
        true
    }

    /// Gives the first piece of the oldest away, and says for which SSTables it stood.
    pub fn take_oldest(&mut self) -> Option<(Vec<Rc<Slot>>, Vec<u64>)> {
        let kept = self.0.first_mut()?;
        let piece = (!kept.pieces.is_empty()).then(|| kept.pieces.remove(0));
        let sstables = kept.sstables.clone();
        match kept.pieces.first() {
            Some(next) => {
                assert!(kept.from < next.from, "pieces of a memtable go in the order of the ring");
                kept.from = next.from;
            }
            None => drop(self.0.remove(0)),
        }
        Some((piece.map_or_else(Vec::new, |piece| piece.slots), sstables))
    }

    /// Gives those away that do not stand for SSTables of this set: what became of these may be
    /// without tombstones that memtables which are gone had.
    pub fn take_outdated(&mut self, live: &LiveSet) -> Vec<Rc<Slot>> {
        let is_live = |number: &u64| live.tables().iter().any(|table| table.number == *number);
        let goes = |kept: &mut Kept| !kept.sstables.iter().all(is_live);
        let gone = self.0.extract_if(.., goes).flat_map(|kept| kept.pieces);
        gone.flat_map(|piece| piece.slots).collect()
    }

    /// Gives all away.
    pub fn take_all(&mut self) -> Vec<Rc<Slot>> {
        let all = self.0.drain(..).flat_map(|kept| kept.pieces);
        all.flat_map(|piece| piece.slots).collect()
    }
}
