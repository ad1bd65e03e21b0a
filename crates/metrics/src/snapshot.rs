//! Metrics at one moment: plain data that may leave its shard.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::buckets::BUCKETS;
use crate::name::{Name, Unit};

/// After this long a value weighs half of a new one.
pub(crate) const HALF_LIFE_SECONDS: f64 = 60.0;

/// What a metric showed.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Of a counter.
    Counter(u64),
    /// Of a gauge.
    Gauge(i64),
    /// Of the largest value seen.
    Peak(u64),
    /// Of a histogram.
    Histogram(Box<Distribution>),
}

/// A metric's reading with what is needed to show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What the values count.
    pub unit: Unit,
    /// One line for the operator.
    pub help: &'static str,
    /// The value.
    pub reading: Reading,
}

/// A histogram's cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Sum of all values, wrapping.
    pub sum: u64,
    /// The largest value ever.
    pub max: u64,
    /// How many values fell into each bucket, ever; one more than there are offsets.
    pub counts: Vec<u64>,
    /// The same, weighed towards the last minutes. In hundredths, so that those of shards
    /// whose landmarks differ can be added.
    pub recent: Vec<u64>,
}

/// Parts of a value recorded this second that `Distribution::recent` is counted in.
const PARTS: f64 = 100.0;

impl Distribution {
    /// Brings `recent` from the registry's growing weights to parts of a new value.
    pub(crate) fn scaled(mut self, weight: u64) -> Self {
        let factor = PARTS / weight.max(1) as f64;
        for cell in &mut self.recent {
            *cell = (*cell as f64 * factor).round() as u64;
        }
        self
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().copied().fold(0, u64::wrapping_add)
    }

    /// How many values there were of at most `bound`, which is the end of a bucket.
    pub fn count_to(&self, bound: u64) -> u64 {
        let within = BUCKETS.offsets.iter().take_while(|offset| offset.unsigned_abs() <= bound);
        let counts = self.counts.iter().zip(within);
        counts.map(|(count, _)| *count).fold(0, u64::wrapping_add)
    }

    /// The offset of the bucket below which a share `q` (0 to 1) of the recent values lies; 0
    /// where there are none, or where it lies beyond the last offset. As Cassandra's
    /// `EstimatedHistogramReservoirSnapshot.getValue`.
    pub fn quantile(&self, q: f64) -> u64 {
        let total: u64 = self.recent.iter().copied().fold(0, u64::saturating_add);
        let wanted = (total as f64 * q.clamp(0.0, 1.0)).ceil() as u64;
        if wanted == 0 {
            return 0;
        }
        let mut seen = 0u64;
        for (count, offset) in self.recent.iter().zip(&BUCKETS.offsets) {
            seen = seen.saturating_add(*count);
            if seen >= wanted {
                return offset.unsigned_abs();
            }
        }
        0
    }

    /// The offset of the highest bucket that still counts; 0 where none does.
    pub fn recent_max(&self) -> u64 {
        let counts = self.recent.iter().zip(&BUCKETS.offsets).rev();
        let mut highest = counts.filter(|(count, _)| **count > 0);
        highest.next().map_or(0, |(_, offset)| offset.unsigned_abs())
    }

    /// The least value that may be in the lowest bucket that still counts; 0 where none does.
    pub fn recent_min(&self) -> u64 {
        let lowest = self.recent.iter().position(|count| *count > 0);
        let below = lowest.and_then(|at| BUCKETS.offsets.get(at.checked_sub(1)?));
        below.map_or(0, |offset| offset.unsigned_abs() + 1)
    }

    /// Values a second, of late: values fade as `exp(-t / lifetime)`, so of a steady stream a
    /// lifetime's worth counts.
    pub fn recent_rate(&self) -> f64 {
        let counts = self.recent.iter().map(|count| *count as f64).sum::<f64>();
        counts / PARTS * std::f64::consts::LN_2 / HALF_LIFE_SECONDS
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: &Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.wrapping_add(*theirs);
        }
        for (mine, theirs) in self.recent.iter_mut().zip(&other.recent) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

/// All metrics of a shard, or of the node, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Whose; `None` after a merge.
    pub shard: Option<u32>,
    /// By name.
    pub samples: BTreeMap<Name, Sample>,
}

impl Snapshot {
    /// The node's: counters and gauges add up, the largest peak stands, histograms share their
    /// buckets. Where two shards disagree over a metric's kind, the first one's stands.
    pub fn merge(shards: impl IntoIterator<Item = Snapshot>) -> Self {
        let mut merged = Self::default();
        for shard in shards {
            for (name, sample) in shard.samples {
                match merged.samples.entry(name) {
                    Entry::Vacant(entry) => {
                        entry.insert(sample);
                    }
                    Entry::Occupied(mut entry) => entry.get_mut().merge(&sample),
                }
            }
        }
        merged
    }
}

impl Sample {
    fn merge(&mut self, other: &Self) {
        match (&mut self.reading, &other.reading) {
            (Reading::Counter(mine), Reading::Counter(theirs)) => {
                *mine = mine.wrapping_add(*theirs);
            }
            (Reading::Gauge(mine), Reading::Gauge(theirs)) => *mine = mine.wrapping_add(*theirs),
            (Reading::Peak(mine), Reading::Peak(theirs)) => *mine = (*mine).max(*theirs),
            (Reading::Histogram(mine), Reading::Histogram(theirs)) => mine.merge(theirs),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::registry::Registry;

    fn shard(number: u32, values: &[u64]) -> Snapshot {
        let registry = Registry::new(number);
        let sizes = registry.histogram(Name::new("Table", "Size"), Unit::Bytes, "Sizes.");
        let rows = registry.counter(Name::new("Table", "Rows"), Unit::Count, "Rows.");
        for value in values {
            sizes.record(*value);
            rows.inc();
        }
        registry.snapshot()
    }

    fn sizes(snapshot: &Snapshot) -> &Distribution {
        match &snapshot.samples[&Name::new("Table", "Size")].reading {
            Reading::Histogram(d) => d,
            _ => panic!(),
        }
    }

    #[test]
    fn travels_between_threads() {
        fn travels<T: Send + 'static>() {}
        travels::<Snapshot>();
    }

    #[test]
    fn a_steady_stream_has_its_rate_and_nameless_values_fade() {
        let weight = crate::Weight::default();
        let registry = Registry::sharing(0, weight.clone());
        let nameless = weight.histogram();
        for second in 0..7200 {
            registry.tick(std::time::Duration::from_secs(second));
            (0..10).for_each(|_| nameless.record(if second == 0 { 900 } else { 5 }));
        }
        let seen = nameless.distribution();
        assert!((seen.recent_rate() - 10.0).abs() < 0.5, "{}", seen.recent_rate());
        assert_eq!((seen.recent_max(), seen.max, seen.count()), (5, 900, 72_000));
    }

    #[test]
    fn no_value_has_quantile_zero() {
        assert_eq!(sizes(&shard(0, &[])).quantile(0.99), 0);
        assert_eq!(sizes(&shard(0, &[7])).quantile(0.0), 0);
        assert_eq!(sizes(&shard(0, &[7])).quantile(1.0), 7);
    }

    proptest! {
        #[test]
        fn a_merge_is_as_if_one_shard_had_counted(
            a in prop::collection::vec(0u64..1 << 40, 0..50),
            b in prop::collection::vec(0u64..1 << 40, 0..50),
        ) {
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            let merged = Snapshot::merge([shard(0, &a), shard(1, &b)]);
            prop_assert_eq!(&merged.samples, &shard(2, &both).samples);
        }

        #[test]
        fn a_quantile_is_no_less_than_its_share(
            mut values in prop::collection::vec(1u64..1 << 30, 1..80),
            q in 0.01f64..1.0,
        ) {
            let seen = sizes(&shard(0, &values)).quantile(q);
            values.sort_unstable();
            let rank = ((values.len() as f64 * q).ceil() as usize).max(1) - 1;
            prop_assert!(seen >= values[rank]);
            prop_assert!(seen as f64 <= values[rank] as f64 * 1.2 + 1.0);
        }
    }
}
