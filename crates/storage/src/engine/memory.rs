//! A shard's memory for memtables: what they take, how long writes wait for it, and what is kept in
//! the rest.
//!
//! Beside a large flush, writes get the rest of the memory as the flush gets on. If they took it at
//! once, all of them would wait for the flush's end.
//!
//! A share of the memory, `memtable_cleanup_threshold`, starts a flush of the largest memtable.
//! Large memtables are freed bit by bit, so that the shard does not stall.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use env::sync::Notify;
use env::{Class, Env};
use schema::TableId;

use super::tables::Tables;
use crate::memtable::Slot;
use crate::options::Options;
use crate::table_store::TableStore;

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

/// The memory of one shard's memtables.
pub(super) struct Memory {
    env: Env,
    tables: Rc<Tables>,
    /// This shard's part of the node's, in bytes.
    lease: usize,
    /// The part of it at which the largest memtable is flushed.
    cleanup_threshold: f64,
    /// Writes go on without a second look below so many; 0 when the log can take no more either.
    limit: Cell<usize>,
    held: Held,
    flush: FlushUnderWay,
    /// Why memtables cannot be flushed now, if so: writes that find no room are refused.
    unflushed: RefCell<Option<Arc<str>>>,
    /// Was a flush asked for since the last one ended?
    asked: Cell<bool>,
    /// Memory became free.
    freed: Notify,
}

/// Bytes that memtables take.
#[derive(Default)]
struct Held {
    /// Active and frozen ones.
    all: Cell<usize>,
    /// Frozen ones, which a flush frees.
    frozen: Cell<usize>,
    /// Those that were flushed and are kept for reads.
    kept: Cell<usize>,
}

/// How the flush stands for which memtables were frozen last.
#[derive(Default)]
struct FlushUnderWay {
    /// Bytes in active memtables when it began.
    active_before: Cell<usize>,
    /// The part of it that is done, 1 for all.
    done: Cell<f64>,
}

impl Memory {
    pub fn new(env: &Env, options: &Options, tables: &Rc<Tables>) -> Self {
        let lease = (options.memtable_bytes / env.shards() as u64) as usize;
        Self {
            env: env.clone(),
            tables: Rc::clone(tables),
            lease,
            cleanup_threshold: options.cleanup_threshold,
            limit: Cell::new(lease),
            held: Held::default(),
            flush: FlushUnderWay::default(),
            unflushed: RefCell::default(),
            asked: Cell::new(false),
            freed: Notify::new(),
        }
    }

    /// This shard's part of the node's, in bytes.
    pub fn lease(&self) -> usize {
        self.lease
    }

    /// Bytes in memtables, active and frozen.
    pub fn held(&self) -> usize {
        self.held.all.get()
    }

    /// Bytes in memtables that were flushed and are kept for reads.
    pub fn kept(&self) -> usize {
        self.held.kept.get()
    }

    /// An active memtable took so many bytes more, or less.
    pub fn grew(&self, bytes: isize) {
        self.held.all.set(self.held.all.get().saturating_add_signed(bytes));
    }

    /// Counts anew, after memtables were freed: whoever waits looks again.
    pub fn count(&self) {
        self.measure();
        self.freed.notify_all();
    }

    /// The same, where nobody can have waited for it.
    pub fn measure(&self) {
        let (mut active, mut frozen, mut kept) = (0, 0, 0);
        self.tables.for_each(|_, store| {
            let (of_active, of_frozen) = store.memtable_bytes();
            active += of_active;
            frozen += of_frozen;
            kept += store.kept().borrow().bytes();
        });
        self.held.all.set(active + frozen);
        self.held.frozen.set(frozen);
        self.held.kept.set(kept);
    }

    /// Memtables were frozen for a flush.
    pub fn flush_began(&self) {
        self.measure();
        self.flush.active_before.set(self.active());
        self.flush.done.set(0.0);
    }

    /// So much of the flush under way is done, 1 for all.
    pub fn flush_gets_on(&self, done: f64) {
        assert!((0.0..=1.0).contains(&done), "a flush is done to a part of it: {done}");
        self.flush.done.set(done);
        self.freed.notify_all();
    }

    /// A flush has ended: another may be asked for.
    pub fn flush_ended(&self) {
        self.asked.set(false);
        self.count();
        self.trim_kept();
    }

    fn active(&self) -> usize {
        self.held.all.get().saturating_sub(self.held.frozen.get())
    }

    /// Have writes taken more of the memory beside a large flush than is due after the part of it
    /// that is done? If they went on until nothing is left, all of them would wait for all that is
    /// left of it.
    fn is_ahead_of_flush(&self) -> bool {
        let frozen = self.held.frozen.get();
        if frozen < self.lease / LARGE_FLUSH_PART || self.unflushed.borrow().is_some() {
            return false;
        }
        let before = self.flush.active_before.get();
        let left = (self.lease - self.lease / LAST_PART).saturating_sub(frozen + before);
        let due = (self.flush.done.get() + AHEAD_OF_FLUSH).min(1.0);
        let taken = self.active().saturating_sub(before);
        taken as f64 > left as f64 * due && !self.env.planted("writes_run_ahead_of_flush")
    }

    /// May a write go on?
    pub fn has_room(&self) -> bool {
        !self.is_full() && !self.is_ahead_of_flush()
    }

    pub fn is_full(&self) -> bool {
        self.held.all.get() >= self.limit.get()
    }

    /// Waits until memory became free, or until it is known that it will not.
    pub async fn wait(&self) {
        self.freed.notified().await;
    }

    /// Why memtables cannot be flushed now, if so.
    pub fn unflushed(&self) -> Option<Arc<str>> {
        self.unflushed.borrow().clone()
    }

    /// Memtables cannot be flushed, or can again.
    pub fn set_unflushed(&self, why: Option<Arc<str>>) {
        if why.is_none() {
            self.limit.set(self.lease);
            self.asked.set(false);
        }
        self.unflushed.replace(why);
        self.freed.notify_all();
    }

    /// The log takes no more, and nothing can be flushed: writes find no room.
    pub fn take_no_more(&self) {
        self.limit.set(0);
    }

    /// The table with the largest memtable.
    pub fn largest(&self) -> Option<TableId> {
        let mut largest = None;
        self.tables
            .for_each(|id, store| largest = largest.max(Some((store.memtable_bytes().0, id))));
        largest.map(|(_, id)| id)
    }

    /// The table that is to be flushed, if memtables have come to take so much.
    pub fn wants_flush(&self) -> Option<TableId> {
        let is_over = self.active() as f64 > self.lease as f64 * self.cleanup_threshold;
        (is_over && !self.asked.replace(true)).then(|| self.largest()).flatten()
    }

    /// Do memtables take so much that a replay has to flush them?
    pub fn is_over_threshold(&self) -> bool {
        self.held.all.get() as f64 > self.lease as f64 * self.cleanup_threshold
    }

    /// Frees pieces of the oldest memtables that are kept, as many as writes need the memory of.
    pub fn trim_kept(&self) {
        let most = self.lease - self.lease / KEPT_FREE_PART;
        while self.kept() > 0 && self.held() + self.kept() > most {
            let Some(store) = self.oldest_kept() else { return };
            let is_cut = store.kept().borrow_mut().cut_oldest(self.lease / KEPT_PIECE_PART);
            let excess = self.held() + self.kept() - most;
            if !is_cut && excess < self.lease / KEPT_EXCESS_PART {
                return;
            }
            let Some((slots, sstables)) = store.kept().borrow_mut().take_oldest() else { return };
            if self.env.planted("kept_memtable_gone_unsaid") {
                store.kept().borrow_mut().keep(u64::MAX, Vec::new(), sstables);
            }
            self.free(slots);
            self.measure();
        }
    }

    /// The table with the oldest memtables that are kept.
    fn oldest_kept(&self) -> Option<Rc<TableStore>> {
        let stores = self.tables.all().into_iter();
        let oldest = stores.filter_map(|(_, store)| {
            store.kept().borrow().oldest().map(|flush| (flush, store.clone()))
        });
        oldest.min_by_key(|(flush, _)| *flush).map(|(_, store)| store)
    }

    /// Frees memtables: large ones bit by bit, for it takes a while.
    pub fn free(&self, slots: Vec<Rc<Slot>>) {
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
