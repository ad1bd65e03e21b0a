//! Timers of one shard: an indexed heap, so that a cancelled timeout leaves at once.

use std::cell::RefCell;
use std::task::Waker;

use crate::time::Instant;

#[derive(Debug)]
struct Entry {
    deadline: Instant,
    /// Order of arming: equal deadlines fire first come, first served.
    seq: u64,
    heap_at: usize,
    waker: Option<Waker>,
    generation: u32,
}

/// Names a live timer; stale after it fired or was cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerKey {
    slot: usize,
    generation: u32,
}

#[derive(Debug, Default)]
struct Heap {
    entries: slab::Slab<Entry>,
    /// Slots of `entries`, ordered as a binary heap by (deadline, seq).
    heap: Vec<usize>,
    seq: u64,
}

/// The timers of one shard.
#[derive(Debug, Default)]
pub(crate) struct Timers(RefCell<Heap>);

impl Timers {
    pub fn insert(&self, deadline: Instant, waker: Waker) -> TimerKey {
        let mut h = self.0.borrow_mut();
        h.seq += 1;
        let seq = h.seq;
        let heap_at = h.heap.len();
        let generation = seq as u32;
        let slot =
            h.entries.insert(Entry { deadline, seq, heap_at, waker: Some(waker), generation });
        h.heap.push(slot);
        h.sift_up(heap_at);
        TimerKey { slot, generation }
    }

    /// Renews the waker; false when the timer has fired.
    pub fn update(&self, key: TimerKey, waker: &Waker) -> bool {
        let mut h = self.0.borrow_mut();
        let Some(e) = h.entries.get_mut(key.slot).filter(|e| e.generation == key.generation) else {
            return false;
        };
        match &mut e.waker {
            Some(w) => w.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        true
    }

    pub fn cancel(&self, key: TimerKey) {
        let entry = {
            let mut h = self.0.borrow_mut();
            match h.entries.get(key.slot) {
                Some(e) if e.generation == key.generation => Some(h.remove(key.slot)),
                _ => None,
            }
        };
        drop(entry);
    }

    /// Wakes all that is due; says how many.
    pub fn fire(&self, now: Instant) -> usize {
        let mut fired = 0;
        loop {
            let entry = {
                let mut h = self.0.borrow_mut();
                match h.heap.first() {
                    Some(&slot) if h.entries[slot].deadline <= now => h.remove(slot),
                    _ => return fired,
                }
            };
            fired += 1;
            if let Some(waker) = entry.waker {
                waker.wake();
            }
        }
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        let h = self.0.borrow();
        h.heap.first().map(|&slot| h.entries[slot].deadline)
    }

    pub fn len(&self) -> usize {
        self.0.borrow().heap.len()
    }
}

impl Heap {
    fn rank(&self, at: usize) -> (Instant, u64) {
        let e = &self.entries[self.heap[at]];
        (e.deadline, e.seq)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.entries[self.heap[a]].heap_at = a;
        self.entries[self.heap[b]].heap_at = b;
    }

    fn sift_up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.rank(parent) <= self.rank(at) {
                break;
            }
            self.swap(parent, at);
            at = parent;
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                break;
            }
            let right = left + 1;
            let child = if right < self.heap.len() && self.rank(right) < self.rank(left) {
                right
            } else {
                left
            };
            if self.rank(at) <= self.rank(child) {
                break;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn remove(&mut self, slot: usize) -> Entry {
        let at = self.entries[slot].heap_at;
        let last = self.heap.len() - 1;
        if at != last {
            self.swap(at, last);
        }
        self.heap.pop();
        if at < self.heap.len() {
            self.sift_up(at);
            self.sift_down(at);
        }
        self.entries.remove(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_in_order_and_cancels_anywhere() {
        let timers = Timers::default();
        let rng = crate::rng::Rng::new(7);
        let keys: Vec<_> = (0..1000)
            .map(|_| timers.insert(Instant::from_nanos(rng.below(500)), Waker::noop().clone()))
            .collect();
        for key in keys.iter().step_by(3) {
            timers.cancel(*key);
            timers.cancel(*key);
        }
        assert_eq!(timers.len(), 666);
        let mut fired = 0;
        for t in 0..500 {
            fired += timers.fire(Instant::from_nanos(t));
            assert!(timers.next_deadline().is_none_or(|d| d.as_nanos() > t));
        }
        assert_eq!(fired, 666);
    }
}
