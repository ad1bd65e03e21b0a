//! The bucket boundaries that Cassandra's histograms share (`utils.EstimatedHistogram` and
//! `metrics.DecayingEstimatedHistogramReservoir`), on disk and in nodetool alike.
//!
//! Bucket `i` counts values up to and including `offsets[i]` that no earlier bucket took; one
//! more bucket takes what is beyond the last offset.

/// How many offsets a metric's histogram has: up to 1.8e13, which is 210 days in microseconds.
pub const DEFAULT_BUCKETS: usize = 164;
/// The most offsets that stay within an `i64`.
pub const MAX_BUCKETS: usize = 237;

/// The offsets of a metric's histogram.
pub static BUCKETS: Buckets<DEFAULT_BUCKETS> = Buckets { offsets: table() };

/// `size` offsets from 1, each a fifth larger than the one before and larger by 1 at least;
/// with `zero`, one more in front that is 0. No more than `MAX_BUCKETS` are made.
pub fn offsets(size: usize, zero: bool) -> Vec<i64> {
    let mut offsets = Vec::with_capacity(size.min(MAX_BUCKETS) + 1);
    if zero {
        offsets.push(0);
    }
    offsets.extend(std::iter::successors(Some(1), |last| next(*last)).take(size.min(MAX_BUCKETS)));
    offsets
}

/// The offset after `last`: 1.2 times it as a double, halves rounded upwards.
const fn next(last: i64) -> Option<i64> {
    let product = last as f64 * 1.2;
    let whole = product as i64;
    // Not by adding a half, which large products would round.
    let grown = if product - whole as f64 >= 0.5 { whole.saturating_add(1) } else { whole };
    if last == i64::MAX {
        return None;
    }
    Some(if grown == last { last + 1 } else { grown })
}

const fn table() -> [i64; DEFAULT_BUCKETS] {
    let mut offsets = [1; DEFAULT_BUCKETS];
    let mut i = 1;
    while i < DEFAULT_BUCKETS {
        offsets[i] = match next(offsets[i - 1]) {
            Some(offset) => offset,
            None => i64::MAX,
        };
        i += 1;
    }
    offsets
}

/// A fixed row of offsets.
#[derive(Debug)]
pub struct Buckets<const N: usize> {
    /// In ascending order.
    pub offsets: [i64; N],
}

impl<const N: usize> Buckets<N> {
    /// The bucket that counts `value`, `N` for what is beyond the last offset.
    pub fn index(&self, value: u64) -> usize {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.offsets.partition_point(|offset| *offset < value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn grows_as_cassandras_do() {
        let golden: Vec<i64> = include_str!("../testdata/offsets-5.0.9.txt")
            .lines()
            .map(|line| line.parse().unwrap())
            .collect();
        assert_eq!(golden.len(), MAX_BUCKETS);
        assert_eq!(offsets(MAX_BUCKETS, false), golden);
        assert_eq!(offsets(2, true), [0, 1, 2]);
    }

    #[test]
    fn the_table_is_the_generated_row() {
        assert_eq!(BUCKETS.offsets.to_vec(), offsets(DEFAULT_BUCKETS, false));
        assert_eq!(offsets(10_000, false).len(), MAX_BUCKETS);
        assert!(offsets(MAX_BUCKETS, false).is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn an_offset_belongs_to_its_own_bucket() {
        assert_eq!(BUCKETS.index(0), 0);
        assert_eq!(BUCKETS.index(1), 0);
        assert_eq!(BUCKETS.index(2), 1);
        assert_eq!(BUCKETS.index(9), 8);
        assert_eq!(BUCKETS.index(u64::MAX), DEFAULT_BUCKETS);
        // As DecayingEstimatedHistogramReservoir.findIndex answers.
        for (value, index) in [(100, 21), (1000, 34), (123_456_789, 98), (10_000_000_000_000, 160)]
        {
            assert_eq!(BUCKETS.index(value), index, "{value}");
        }
    }

    proptest! {
        #[test]
        fn the_bucket_holds_the_value(value in any::<u64>()) {
            let index = BUCKETS.index(value);
            if index < DEFAULT_BUCKETS {
                prop_assert!(value <= BUCKETS.offsets[index] as u64);
            }
            if index > 0 {
                prop_assert!(value > BUCKETS.offsets[index - 1] as u64);
            }
        }
    }
}
