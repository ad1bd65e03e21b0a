//! The queue in front of a shard's disk: what waits here can still be overtaken, what the device
//! has cannot.
//!
//! Each shard has one queue, and its part of `io_depth` bounds what the device has of it. Classes
//! have shares. Bulk is all but statements and the commit log. It has a quarter of the depth, and
//! four operations of a shard at most. It writes in pieces of 256 KiB, so that a read waits for one
//! piece at most.
//!
//! The simulated disks have the same queue in front of them.

use std::collections::VecDeque;

use crate::class::{CLASSES, Class};

/// Bytes that make one unit of [`cost`].
const COST_BYTES: usize = 4096;
/// What a sync costs, in the same units.
pub(crate) const SYNC_COST: u64 = 8;
/// Shares are of this.
const SHARES: u64 = 1000;
/// [Bulk](Class::is_bulk) has at most this part of the depth: the rest is free for what somebody
/// waits for.
const BULK_PART: usize = 4;
/// And at most so many operations: they keep a device busy that answers within a millisecond, and a
/// read does not wait behind more.
const BULK_DEPTH_MAX: usize = 4;

/// What an operation on so many bytes costs of the device.
pub(crate) fn cost(bytes: usize) -> u64 {
    1 + (bytes / COST_BYTES) as u64
}

/// Operations that wait, by class, and how many the device has.
#[derive(Debug)]
pub(crate) struct IoQueue<T> {
    queues: [VecDeque<(T, u64)>; CLASSES],
    virtual_time: [u64; CLASSES],
    floor: u64,
    waiting: usize,
    depth: usize,
    in_flight: usize,
    bulk_in_flight: usize,
}

impl<T> IoQueue<T> {
    /// A queue in front of a device that takes so many operations at a time.
    pub fn new(depth: usize) -> Self {
        Self {
            queues: std::array::from_fn(|_| VecDeque::new()),
            virtual_time: [0; CLASSES],
            floor: 0,
            waiting: 0,
            depth: depth.max(1),
            in_flight: 0,
            bulk_in_flight: 0,
        }
    }

    /// Lets an operation wait.
    pub fn push(&mut self, class: Class, cost: u64, operation: T) {
        let at = class.index();
        if self.queues[at].is_empty() {
            self.virtual_time[at] = self.virtual_time[at].max(self.floor);
        }
        self.queues[at].push_back((operation, cost));
        self.waiting += 1;
    }

    /// The next operation for the device, if that has room: of the class that had the least for its
    /// shares. [`Self::ended`] must follow.
    pub fn next(&mut self) -> Option<(Class, T)> {
        if self.in_flight >= self.depth {
            return None;
        }
        let is_bulk_full = self.bulk_in_flight >= (self.depth / BULK_PART).clamp(1, BULK_DEPTH_MAX);
        let has_room = |class: Class| !(is_bulk_full && class.is_bulk());
        let may_go = |at: &usize| !self.queues[*at].is_empty() && has_room(Class::ALL[*at]);
        let at = (0..CLASSES).filter(may_go).min_by_key(|&at| self.virtual_time[at])?;
        let class = Class::ALL[at];
        let (operation, cost) = self.queues[at].pop_front()?;
        self.waiting -= 1;
        self.in_flight += 1;
        self.bulk_in_flight += usize::from(class.is_bulk());
        self.floor = self.floor.max(self.virtual_time[at]);
        self.virtual_time[at] += cost.saturating_mul(SHARES) / u64::from(class.shares());
        Some((class, operation))
    }

    /// An operation of the class has left the device.
    pub fn ended(&mut self, class: Class) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.bulk_in_flight = self.bulk_in_flight.saturating_sub(usize::from(class.is_bulk()));
    }

    /// How many operations wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many the device has.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Forgets what waits.
    pub fn clear(&mut self) -> Vec<T> {
        self.waiting = 0;
        self.queues.iter_mut().flat_map(std::mem::take).map(|(operation, _)| operation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes one operation at a time: how much of it each class had when one ran dry.
    fn served(pushed: &[(Class, usize, u64)]) -> Vec<(Class, u64)> {
        let mut queue = IoQueue::new(1);
        for (class, count, cost) in pushed {
            (0..*count).for_each(|_| queue.push(*class, *cost, *cost));
        }
        let mut had: Vec<_> = pushed.iter().map(|(class, ..)| (*class, 0, 0)).collect();
        while let Some((class, cost)) = queue.next() {
            queue.ended(class);
            let Some(at) = had.iter().position(|(of, ..)| *of == class) else { continue };
            had[at].1 += cost;
            had[at].2 += 1;
            if had[at].2 == pushed[at].1 {
                break;
            }
        }
        had.into_iter().map(|(class, cost, _)| (class, cost)).collect()
    }

    #[test]
    fn classes_that_wait_have_the_device_by_their_shares() {
        let piece = cost(256 << 10);
        let had = served(&[
            (Class::Statement, 20_000, cost(4096)),
            (Class::Flush, 2_000, piece),
            (Class::Compaction, 2_000, piece),
        ]);
        let reads = had[0].1 as f64;
        for (at, class) in [(1, Class::Flush), (2, Class::Compaction)] {
            let wanted = f64::from(class.shares()) / f64::from(Class::Statement.shares());
            let is = had[at].1 as f64 / reads;
            assert!((is - wanted).abs() < 0.02, "{class:?} had {is} of what reads had");
        }
    }

    #[test]
    fn a_read_goes_before_all_bulk_that_waits() {
        for (depth, bulk) in [(2, 1), (8, 2), (16, 4), (128, 4)] {
            goes_before_bulk(depth, bulk);
        }
    }

    fn goes_before_bulk(depth: usize, bulk: usize) {
        let mut queue = IoQueue::new(depth);
        for class in Class::ALL.into_iter().filter(|class| class.is_bulk()) {
            (0..1000).for_each(|_| queue.push(class, cost(256 << 10), class));
        }
        let first: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(first.len(), bulk, "bulk leaves room");
        for _ in 0..100 {
            queue.push(Class::Statement, cost(4096), Class::Statement);
            assert_eq!(queue.next().map(|(class, _)| class), Some(Class::Statement));
            queue.ended(Class::Statement);
            queue.ended(Class::Flush);
            assert!(queue.next().is_some_and(|(class, _)| class.is_bulk()), "bulk goes on");
            assert!(queue.in_flight() <= depth);
        }
    }

    #[test]
    fn an_idle_class_saves_nothing_up() {
        let mut queue = IoQueue::new(1);
        for _ in 0..1000 {
            queue.push(Class::Statement, 2, ());
            assert!(queue.next().is_some());
            queue.ended(Class::Statement);
        }
        (0..100).for_each(|_| queue.push(Class::Compaction, 2, ()));
        (0..100).for_each(|_| queue.push(Class::Statement, 2, ()));
        let mut reads = 0;
        for _ in 0..60 {
            let Some((class, ())) = queue.next() else { break };
            queue.ended(class);
            reads += usize::from(class == Class::Statement);
        }
        assert!(reads >= 48, "{reads} of 60 were reads");
        assert_eq!(queue.waiting(), 140);
    }

    #[test]
    fn the_depth_is_a_bound_and_no_class_starves() {
        let mut queue = IoQueue::new(3);
        for class in Class::ALL {
            (0..10).for_each(|_| queue.push(class, cost(64 << 10), class));
        }
        let mut under_way = VecDeque::new();
        let mut done = 0;
        loop {
            while let Some((class, _)) = queue.next() {
                under_way.push_back(class);
            }
            assert!(under_way.len() <= 3 && queue.in_flight() == under_way.len());
            let Some(class) = under_way.pop_front() else { break };
            queue.ended(class);
            done += 1;
        }
        assert_eq!(done, 10 * CLASSES);
    }
}
