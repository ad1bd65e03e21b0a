//! A shard's memory for memtables: what they take, who waits for it, what is flushed for it, and
//! what is kept in the rest.
//!
//! Beside a large flush, writes get the rest of the memory as the flush gets on. If they took it at
//! once, all of them would wait for the flush's end.
//!
//! A share of the memory, `memtable_cleanup_threshold`, starts a flush of the largest memtable.
//! Large memtables are freed bit by bit, so that the shard does not stall.

use std::rc::Rc;
use std::sync::Arc;

use env::Class;
use schema::TableId;

use super::Engine;
use crate::error::StorageError;
use crate::memtable::Slot;

/// While nothing can be flushed, the log grows to so many times its limit: what is overwritten
/// takes no memory.
const LOG_EXCESS: u64 = 2;
/// One part of so many of the memory for memtables is left free by those that are kept, so that
/// writes find it.
const KEPT_FREE_PART: usize = 32;
/// They go in pieces of one part of so many of that memory, as it is needed.
const KEPT_PIECE_PART: usize = 64;
/// One part of so many of it they may be above what they may have, while a read has one whole that
/// is to go.
const KEPT_EXCESS_PART: usize = 32;
/// A flush of so large a part of the memory for memtables, or of more, holds writes to its own
/// progress.
const LARGE_FLUSH_PART: usize = 8;
/// How far they may be ahead of it, as a part of what is left for them.
const AHEAD_OF_FLUSH: f64 = 1.0 / 8.0;
/// The part of the memory that is not theirs until it has ended: for its syncs, after its last
/// byte.
const LAST_PART: usize = 32;
/// Partitions of a memtable that are freed without a look at who else wants to run.
const FREED_AT_ONCE: usize = 256;

impl Engine {
    /// This shard's lease of the node's memtable memory, in bytes.
    pub fn memory_lease(&self) -> usize {
        (self.options.memtable_bytes / self.env.shards() as u64) as usize
    }

    /// Bytes in memtables, active and frozen.
    pub fn memtable_bytes(&self) -> usize {
        self.memtable_bytes.get()
    }

    /// Bytes in memtables that were flushed and are kept for reads.
    pub fn kept_bytes(&self) -> usize {
        self.kept_bytes.get()
    }

    /// Counts the memory of the memtables anew, after some were freed.
    pub(crate) fn count_memory(&self) {
        self.measure_memory();
        self.freed.notify_all();
    }

    pub(super) fn measure_memory(&self) {
        let tables = self.tables.borrow();
        let sizes = tables.values().map(|store| store.memtable_bytes());
        let (active, frozen) =
            sizes.fold((0, 0), |(a, f), (active, frozen)| (a + active, f + frozen));
        self.memtable_bytes.set(active + frozen);
        self.frozen_bytes.set(frozen);
        self.kept_bytes.set(tables.values().map(|store| store.kept().borrow().bytes()).sum());
    }

    pub(super) fn flush_begins(&self) {
        self.active_at_freeze.set(self.active_bytes());
        self.flush_done.set(0.0);
    }

    /// So much of the flush under way is done, 1 for all.
    pub(crate) fn flush_gets_on(&self, done: f64) {
        self.flush_done.set(done);
        self.freed.notify_all();
    }

    fn active_bytes(&self) -> usize {
        self.memtable_bytes.get().saturating_sub(self.frozen_bytes.get())
    }

    /// Have writes taken more of the memory beside a large flush than is due after the part of it
    /// that is done? If they went on until nothing is left, all of them would wait for all that is
    /// left of it.
    fn is_ahead_of_flush(&self) -> bool {
        let (lease, frozen) = (self.memory_lease(), self.frozen_bytes.get());
        if frozen < lease / LARGE_FLUSH_PART || self.unflushed.borrow().is_some() {
            return false;
        }
        let before = self.active_at_freeze.get();
        let left = (lease - lease / LAST_PART).saturating_sub(frozen + before);
        let due = (self.flush_done.get() + AHEAD_OF_FLUSH).min(1.0);
        let taken = self.active_bytes().saturating_sub(before);
        taken as f64 > left as f64 * due && !self.env.planted("writes_run_ahead_of_flush")
    }

    fn has_memory(&self) -> bool {
        self.memtable_bytes.get() < self.memory_limit.get() && !self.is_ahead_of_flush()
    }

    pub(super) async fn wait_for_memory(&self) -> Result<(), StorageError> {
        if self.has_memory() {
            return Ok(());
        }
        self.stats.waits_for_memory.set(self.stats.waits_for_memory.get() + 1);
        self.env.mark("memtable.full");
        while !self.has_memory() {
            // The node tries again by itself: no write waits for what may take the operator.
            if let Some(why) = self.unflushed.borrow().clone() {
                self.env.mark("memtable.refused");
                return Err(StorageError::Unflushed(why));
            }
            self.shards.send(0, |engine| {
                if let Some(node) = engine.node.get() {
                    node.is_memory_short.set(true);
                }
            });
            if self.memtable_bytes.get() >= self.memory_limit.get() {
                self.ask_for_memory();
            }
            self.freed.notified().await;
        }
        Ok(())
    }

    /// Memtables cannot be flushed, or can again.
    pub(crate) fn set_unflushed(&self, why: Option<Arc<str>>) {
        if why.is_none() {
            self.memory_limit.set(self.memory_lease());
            self.asked.set(false);
        }
        self.unflushed.replace(why);
        self.freed.notify_all();
    }

    /// Asks the first shard to flush this shard's largest memtable.
    fn ask_for_memory(&self) {
        let tables = self.tables.borrow();
        let largest = tables.iter().max_by_key(|(id, store)| (store.memtable_bytes().0, **id));
        if let Some((id, _)) = largest {
            self.ask_for_flush(*id);
        }
    }

    /// Asks the first shard to flush a table, some time soon.
    pub(crate) fn ask_for_flush(&self, table: TableId) {
        self.shards.send(0, move |engine| {
            if let Some(node) = engine.node.get() {
                node.want_flush(table);
            }
        });
    }

    /// Asks for flushes where memory or the log's space runs short. Called after writes.
    pub(super) fn watch_limits(&self, log_grew_segment: bool) {
        self.trim_kept();
        let threshold = self.memory_lease() as f64 * self.options.cleanup_threshold;
        let active = self.active_bytes();
        if active as f64 > threshold && !self.asked.get() {
            self.asked.set(true);
            self.ask_for_memory();
        }
        if log_grew_segment && let Some(log) = self.log.get() {
            if self.unflushed.borrow().is_none() {
                log.over_limit().into_iter().for_each(|table| self.ask_for_flush(table));
            } else if log.size().0 / LOG_EXCESS >= log.limit() {
                self.memory_limit.set(0);
            }
        }
    }

    /// Frees pieces of the oldest memtables that are kept, as many as writes need the memory of.
    pub(super) fn trim_kept(&self) {
        let lease = self.memory_lease();
        let most = lease - lease / KEPT_FREE_PART;
        while self.kept_bytes.get() > 0 && self.memtable_bytes.get() + self.kept_bytes.get() > most
        {
            let stores = self.stores();
            let oldest = stores
                .iter()
                .filter_map(|(_, store)| Some((store.kept().borrow().oldest()?, store)));
            let Some((_, store)) = oldest.min_by_key(|(flush, _)| *flush) else { return };
            let is_cut = store.kept().borrow_mut().cut_oldest(lease / KEPT_PIECE_PART);
            let excess = self.memtable_bytes.get() + self.kept_bytes.get() - most;
            if !is_cut && excess < lease / KEPT_EXCESS_PART {
                return;
            }
            let Some((slots, sstables)) = store.kept().borrow_mut().take_oldest() else { return };
            if self.env.planted("kept_memtable_gone_unsaid") {
                store.kept().borrow_mut().keep(u64::MAX, Vec::new(), sstables);
            }
            self.free(slots);
            self.measure_memory();
        }
    }

    /// Frees memtables: large ones bit by bit, for it takes a while.
    pub(super) fn free(&self, slots: Vec<Rc<Slot>>) {
        for slot in slots {
            if slot.read().len() <= FREED_AT_ONCE {
                continue;
            }
            let Some(mut memtable) = Slot::into_memtable(slot) else { continue };
            let env = self.env.clone();
            self.env.spawn(Class::Flush, async move {
                while memtable.free_some(FREED_AT_ONCE) {
                    env.maybe_yield().await;
                }
            });
        }
    }
}
