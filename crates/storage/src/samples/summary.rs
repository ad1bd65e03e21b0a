//! Which items come most often, of more than there is memory for: Space-Saving (Metwally, Agrawal
//! and El Abbadi, 2005), which Cassandra's `FrequencySampler` has from a library.
//!
//! With n counters and a stream of N in all, an item's count is never too small. It is too large by
//! at most its error, and no error is above N / n. So each item that came more than N / n times is
//! among the counters.

use std::collections::BTreeSet;

use types::hash::HashMap;

use super::Sampled;

/// An item and how often it came.
struct Counter {
    item: Box<[u8]>,
    count: u64,
    /// So much of the count may be other items'.
    error: u64,
}

/// The most frequent of the items that it was offered.
pub(super) struct Summary {
    capacity: usize,
    counters: Vec<Counter>,
    /// Where in `counters` an item is.
    places: HashMap<Box<[u8]>, usize>,
    /// Counts with their places: the least comes first.
    order: BTreeSet<(u64, usize)>,
}

impl Summary {
    /// One of at most so many counters.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            counters: Vec::new(),
            places: HashMap::default(),
            order: BTreeSet::new(),
        }
    }

    /// An item came so often.
    pub fn offer(&mut self, item: &[u8], times: u64) {
        if times == 0 {
            return;
        }
        let place = match self.places.get(item) {
            Some(place) => *place,
            None => self.place_for(item),
        };
        let Some(counter) = self.counters.get_mut(place) else { return };
        self.order.remove(&(counter.count, place));
        counter.count = counter.count.saturating_add(times);
        self.order.insert((counter.count, place));
    }

    /// A counter for a new item: a free one, or that of the item that came least.
    fn place_for(&mut self, item: &[u8]) -> usize {
        let item: Box<[u8]> = item.into();
        let least = self.order.first().copied();
        let place = match least.filter(|_| self.counters.len() >= self.capacity) {
            Some((count, place)) => {
                // what the item before it had is now the new one's, as its error
                let before = Counter { item: item.clone(), count, error: count };
                let gone = self.counters.get_mut(place).map(|old| std::mem::replace(old, before));
                if let Some(gone) = gone {
                    self.places.remove(&gone.item);
                }
                place
            }
            None => {
                self.counters.push(Counter { item: item.clone(), count: 0, error: 0 });
                self.counters.len() - 1
            }
        };
        self.places.insert(item, place);
        place
    }

    /// Those that came most, the most frequent first.
    pub fn top(self, most: usize) -> Vec<Sampled> {
        let mut top = self.counters;
        top.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.item.cmp(&b.item)));
        top.truncate(most);
        let sampled = |Counter { item, count, error }| Sampled { item, count, error };
        top.into_iter().map(sampled).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The bounds that the algorithm guarantees, against true counts.
        #[test]
        fn counts_are_within_their_errors(
            stream in prop::collection::vec((0_u8..40, 1_u64..5), 0..400),
            capacity in 1_usize..30,
        ) {
            let mut summary = Summary::new(capacity);
            let mut truth: BTreeMap<Box<[u8]>, u64> = BTreeMap::new();
            for (item, times) in &stream {
                summary.offer(&[*item], *times);
                *truth.entry([*item].into()).or_default() += times;
            }
            let total: u64 = truth.values().sum();
            let top = summary.top(usize::MAX);
            prop_assert!(top.len() <= capacity);
            prop_assert_eq!(top.iter().map(|of| of.count).sum::<u64>(), total);
            prop_assert!(top.is_sorted_by(|a, b| a.count >= b.count));
            let bound = total / capacity as u64;
            for Sampled { item, count, error } in &top {
                let truly = truth.get(item).copied().unwrap_or_default();
                prop_assert!(truly <= *count && *count - *error <= truly);
                prop_assert!(*error <= bound);
            }
            for (item, truly) in &truth {
                let is_there = top.iter().any(|of| of.item == *item);
                prop_assert!(is_there || *truly <= bound);
            }
        }

        /// With a counter for each item nothing is lost.
        #[test]
        fn few_items_are_counted_exactly(stream in prop::collection::vec(0_u8..10, 0..100)) {
            let mut summary = Summary::new(10);
            stream.iter().for_each(|item| summary.offer(&[*item], 1));
            for Sampled { item, count, error } in summary.top(usize::MAX) {
                let truly = stream.iter().filter(|other| item[..] == [**other]).count();
                prop_assert_eq!((count, error), (truly as u64, 0));
            }
        }
    }

    #[test]
    fn the_least_frequent_makes_room() {
        let mut summary = Summary::new(2);
        for item in ["a", "a", "a", "b", "c"] {
            summary.offer(item.as_bytes(), 1);
        }
        let of = |item: &str, count, error| Sampled { item: item.as_bytes().into(), count, error };
        assert_eq!(summary.top(9), [of("a", 3, 0), of("c", 2, 1)]);
    }
}
