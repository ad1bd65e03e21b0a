//! Samples of what a shard does with a table's partitions, for `nodetool profileload`
//! (`metrics.Sampler`).
//!
//! Nothing is sampled until a verb asks for it: then an operation looks at one flag. What is
//! sampled is counted where it happens, on the shard, in at most so many counters as the verb says.
//! A partition is of one shard, so what shards found has nothing in common and is put together by
//! its counts.

mod largest;
mod size;
mod summary;

use std::cell::{Cell, RefCell};

use env::Instant;

use self::largest::Largest;
pub(crate) use self::size::data_size;
use self::summary::Summary;

/// What is sampled of a table (`Sampler.SamplerType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// Which partitions are read most often.
    Reads,
    /// Which partitions are written to most often.
    Writes,
    /// Which reads take longest.
    LocalReadTime,
    /// Of which partitions reads give most rows.
    ReadRowCount,
    /// In which partitions reads meet most tombstones.
    ReadTombstoneCount,
    /// Which partitions are read from most SSTables.
    ReadSSTableCount,
    /// To which partitions the largest mutations go.
    WriteSize,
    /// At which partitions conditional requests are in each other's way most often.
    CasContentions,
}

impl Sampler {
    /// All of them, in Cassandra's order.
    pub const ALL: [Self; 8] = [
        Self::Reads,
        Self::Writes,
        Self::LocalReadTime,
        Self::ReadRowCount,
        Self::ReadTombstoneCount,
        Self::ReadSSTableCount,
        Self::WriteSize,
        Self::CasContentions,
    ];

    /// Does it count how often something comes? The others look for the largest.
    pub fn is_of_frequency(self) -> bool {
        matches!(self, Self::Reads | Self::Writes | Self::CasContentions)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// An item with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// A partition's key, or the text of a read.
    pub item: Box<[u8]>,
    /// How often it came, or how large it was.
    pub count: u64,
    /// So much of the count may be other items'.
    pub error: u64,
}

/// A sampler that is on.
struct Open {
    sampler: Sampler,
    /// What comes later does not count.
    until: Instant,
    found: Found,
}

enum Found {
    Frequent(Summary),
    Largest(Largest),
}

/// A shard's samplers of one table.
#[derive(Default)]
pub struct Samples {
    /// Those that are on, a bit each.
    on: Cell<u8>,
    open: RefCell<Vec<Open>>,
}

impl Samples {
    /// Is anything sampled?
    pub fn is_on(&self) -> bool {
        self.on.get() != 0
    }

    /// Is this sampled?
    pub fn has(&self, sampler: Sampler) -> bool {
        self.on.get() & sampler.bit() != 0
    }

    /// Begins to sample, anew where it does so already.
    pub fn begin(&self, sampler: Sampler, capacity: usize, until: Instant) {
        let found = match sampler.is_of_frequency() {
            true => Found::Frequent(Summary::new(capacity)),
            false => Found::Largest(Largest::new(capacity)),
        };
        let mut open = self.open.borrow_mut();
        open.retain(|of| of.sampler != sampler);
        open.push(Open { sampler, until, found });
        self.on.set(self.on.get() | sampler.bit());
    }

    /// Ends to sample, and gives the most frequent or the largest.
    pub fn end(&self, sampler: Sampler, most: usize) -> Vec<Sampled> {
        self.on.set(self.on.get() & !sampler.bit());
        let mut open = self.open.borrow_mut();
        let ended = open.extract_if(.., |of| of.sampler == sampler).next();
        match ended.map(|of| of.found) {
            Some(Found::Frequent(summary)) => summary.top(most),
            // one more than wanted, as `MaxSampler.finishSampling` gives
            Some(Found::Largest(largest)) => largest.top(most.saturating_add(1)),
            None => Vec::new(),
        }
    }

    /// Takes an item, if that is sampled; nothing counts as none.
    pub fn take(&self, sampler: Sampler, now: Instant, count: u64, item: impl AsRef<[u8]>) {
        let mut open = self.open.borrow_mut();
        let open = open.iter_mut().find(|of| of.sampler == sampler);
        let Some(open) = open.filter(|of| count > 0 && now <= of.until) else { return };
        match &mut open.found {
            Found::Frequent(summary) => summary.offer(item.as_ref(), count),
            Found::Largest(largest) => largest.offer(item.as_ref(), count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn counts(found: &[Sampled]) -> Vec<(&str, u64)> {
        let of = |of: &Sampled| of.count;
        found.iter().map(|s| (std::str::from_utf8(&s.item).unwrap(), of(s))).collect()
    }

    #[test]
    fn nothing_is_sampled_unless_asked_for() {
        let samples = Samples::default();
        samples.take(Sampler::Reads, at(1), 1, "a");
        assert!(!samples.is_on());
        assert_eq!(samples.end(Sampler::Reads, 10), []);
        samples.begin(Sampler::Reads, 4, at(10));
        assert!(samples.is_on() && samples.has(Sampler::Reads) && !samples.has(Sampler::Writes));
        samples.take(Sampler::Writes, at(1), 1, "a");
        samples.take(Sampler::Reads, at(1), 1, "b");
        assert_eq!(samples.end(Sampler::Writes, 10), []);
        assert_eq!(counts(&samples.end(Sampler::Reads, 10)), [("b", 1)]);
        assert!(!samples.is_on());
    }

    #[test]
    fn what_comes_too_late_does_not_count() {
        let samples = Samples::default();
        for sampler in Sampler::ALL {
            samples.begin(sampler, 4, at(10));
            samples.take(sampler, at(10), 2, "in time");
            samples.take(sampler, at(11), 2, "late");
            samples.take(sampler, at(5), 0, "nothing");
            assert_eq!(counts(&samples.end(sampler, 3)), [("in time", 2)]);
        }
    }

    #[test]
    fn the_largest_are_given_each_by_itself_and_one_more() {
        let samples = Samples::default();
        samples.begin(Sampler::WriteSize, 3, at(10));
        for (item, size) in [("a", 5), ("b", 9), ("a", 7), ("c", 1), ("a", 7)] {
            samples.take(Sampler::WriteSize, at(1), size, item);
        }
        let found = samples.end(Sampler::WriteSize, 2);
        assert_eq!(counts(&found), [("b", 9), ("a", 7), ("a", 7)]);
    }
}
