//! The largest of the items that were offered (`MaxSampler`): each by itself, so that a partition
//! is there as often as it was among the largest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Sampled;

/// The largest, with the least of them on top.
pub(super) struct Largest {
    capacity: usize,
    heap: BinaryHeap<Reverse<(u64, Box<[u8]>)>>,
}

impl Largest {
    /// At most so many.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), heap: BinaryHeap::new() }
    }

    /// An item of this size.
    pub fn offer(&mut self, item: &[u8], size: u64) {
        if self.heap.len() >= self.capacity {
            if self.heap.peek().is_some_and(|Reverse((least, _))| *least >= size) {
                return;
            }
            self.heap.pop();
        }
        self.heap.push(Reverse((size, item.into())));
    }

    /// Those of most, the largest first.
    pub fn top(self, most: usize) -> Vec<Sampled> {
        let all = self.heap.into_sorted_vec().into_iter();
        let sampled = |Reverse((count, item))| Sampled { item, count, error: 0 };
        all.take(most).map(sampled).collect()
    }
}
