//! The histograms of partition sizes and cell counts in Statistics.db
//! (`utils.EstimatedHistogram`).
//!
//! `i32` number of buckets; for each an `i64` offset and an `i64` count. The last bucket takes
//! what is beyond the last offset, so there is one offset fewer: bucket `i` is written with
//! offset `i - 1`, the first with the first.

use crate::bytes::{Reader, put_int};
use crate::error::{Result, corrupt};

const HISTOGRAM: &str = "an estimated histogram";
/// Offsets of the histogram of partition sizes.
pub const PARTITION_SIZE_BUCKETS: usize = 155;
/// Offsets of the histogram of cells in a partition.
pub const CELL_COUNT_BUCKETS: usize = 118;
/// More buckets than offsets below 2^63 can tell apart.
const MAX_BUCKETS: usize = 1024;

/// Counts of values in buckets, each a fifth wider than the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimatedHistogram {
    /// The largest value of each bucket but the last, ascending.
    offsets: Vec<i64>,
    /// One more than there are offsets.
    counts: Vec<i64>,
}

impl EstimatedHistogram {
    /// An empty one with `buckets` offsets.
    pub fn new(buckets: usize) -> Self {
        let offsets = metrics::offsets(buckets, false);
        Self { counts: vec![0; offsets.len() + 1], offsets }
    }

    /// Counts `value`.
    pub fn add(&mut self, value: i64) {
        self.add_many(value, 1);
    }

    /// Counts `value` so many times.
    pub fn add_many(&mut self, value: i64, times: i64) {
        let index = self.offsets.partition_point(|offset| *offset < value);
        let count = self.counts.get_mut(index).expect("there is one bucket more than offsets");
        *count = count.saturating_add(times);
    }

    /// Reads one from the middle of a component.
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let n = reader.count(16)?;
        if !(2..=MAX_BUCKETS).contains(&n) {
            return corrupt(HISTOGRAM, format!("{n} buckets"));
        }
        let (mut offsets, mut counts) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for _ in 0..n {
            offsets.push(reader.i64()?);
            counts.push(reader.i64()?);
        }
        // The first offset stands twice.
        offsets.remove(0);
        match offsets.is_sorted_by(|a, b| a < b) && counts.iter().all(|count| *count >= 0) {
            true => Ok(Self { offsets, counts }),
            false => corrupt(HISTOGRAM, "its offsets are out of order, or a count is negative"),
        }
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_int(out, self.counts.len());
        let offsets = self.offsets.first().into_iter().chain(&self.offsets);
        for (offset, count) in offsets.zip(&self.counts) {
            out.extend(offset.to_be_bytes());
            out.extend(count.to_be_bytes());
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> i64 {
        self.counts.iter().copied().fold(0, i64::saturating_add)
    }

    /// The counts, bucket by bucket.
    pub fn counts(&self) -> &[i64] {
        &self.counts
    }

    /// The largest value of each bucket but the last.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// Whether values fell beyond the last offset; then there is no mean and no maximum.
    pub fn is_overflowed(&self) -> bool {
        self.counts.last().is_some_and(|count| *count > 0)
    }

    /// The least value that may have been counted.
    pub fn min(&self) -> i64 {
        match self.counts.iter().position(|count| *count > 0) {
            None | Some(0) => 0,
            Some(i) => self.offsets.get(i - 1).map_or(0, |offset| offset.saturating_add(1)),
        }
    }

    /// The greatest value that may have been counted; `i64::MAX` after an overflow.
    pub fn max(&self) -> i64 {
        match self.counts.iter().rposition(|count| *count > 0) {
            None => 0,
            Some(i) => self.offsets.get(i).copied().unwrap_or(i64::MAX),
        }
    }

    /// The offset below which a share of the values lies, 0 to 1; `None` after an overflow.
    pub fn percentile(&self, share: f64) -> Option<i64> {
        if self.is_overflowed() {
            return None;
        }
        let wanted = (self.count() as f64 * share.clamp(0.0, 1.0)).ceil() as i64;
        if wanted == 0 {
            return Some(0);
        }
        let mut seen = 0i64;
        for (count, offset) in self.counts.iter().zip(&self.offsets) {
            seen = seen.saturating_add(*count);
            if seen >= wanted {
                return Some(*offset);
            }
        }
        Some(0)
    }

    /// The mean, rounded up, each value taken for its bucket's offset; `None` after an
    /// overflow, 0 of nothing.
    pub fn mean(&self) -> Option<i64> {
        if self.is_overflowed() {
            return None;
        }
        let pairs = || self.counts.iter().zip(&self.offsets);
        let sum: f64 = pairs().map(|(count, offset)| *count as f64 * *offset as f64).sum();
        let count = self.count();
        Some(if count == 0 { 0 } else { (sum / count as f64).ceil() as i64 })
    }

    /// Adds the counts of another one with the same offsets; `None` if they differ.
    #[must_use]
    pub fn merge(&mut self, other: &Self) -> Option<()> {
        if self.offsets != other.offsets {
            return None;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_as_cassandras() {
        let mut histogram = EstimatedHistogram::new(150);
        (0..1000).for_each(|i: i64| histogram.add(i * i));
        assert_eq!(histogram.mean(), Some(365_476));
        assert_eq!(histogram.percentile(0.5), Some(263_210));
        assert_eq!(histogram.percentile(0.99), Some(1_131_752));
        assert_eq!((histogram.min(), histogram.max()), (0, 1_131_752));
    }

    #[test]
    fn round_trips_cassandras() {
        for bytes in [
            &include_bytes!("../testdata/lz4/nb-1-big-Statistics.db")[..],
            include_bytes!("../testdata/plain/nb-1-big-Statistics.db"),
        ] {
            let mut stats = crate::tombstone_histogram::tests::stats(bytes);
            let before = stats.clone();
            let sizes = EstimatedHistogram::parse(&mut stats).unwrap();
            let cells = EstimatedHistogram::parse(&mut stats).unwrap();
            assert_eq!(sizes.offsets().len(), PARTITION_SIZE_BUCKETS);
            assert_eq!(cells.offsets().len(), CELL_COUNT_BUCKETS);
            assert_eq!(sizes.offsets(), EstimatedHistogram::new(PARTITION_SIZE_BUCKETS).offsets());
            assert!(sizes.count() == 30 || sizes.count() == 150);
            let mut out = Vec::new();
            sizes.encode(&mut out);
            cells.encode(&mut out);
            assert_eq!(before.clone().take(out.len()).unwrap(), out);
        }
    }

    #[test]
    fn refuses_what_is_none() {
        let parse = |bytes: &[u8]| EstimatedHistogram::parse(&mut Reader::new("x", bytes));
        assert!(parse(&[0, 0, 0, 0]).is_err());
        assert!(parse(&[0x7f, 0xff, 0xff, 0xff]).is_err());
        let mut backwards = vec![0, 0, 0, 3];
        for n in [5i64, 0, 5, 0, 4, 0] {
            backwards.extend(n.to_be_bytes());
        }
        assert!(parse(&backwards).is_err());
    }

    proptest! {
        #[test]
        fn bounds_hold(values in prop::collection::vec(0i64..1 << 38, 1..60)) {
            let mut histogram = EstimatedHistogram::new(150);
            values.iter().for_each(|v| histogram.add(*v));
            prop_assert!(histogram.min() <= *values.iter().min().unwrap());
            prop_assert!(histogram.max() >= *values.iter().max().unwrap());
            let mut out = Vec::new();
            histogram.encode(&mut out);
            let read = EstimatedHistogram::parse(&mut Reader::new("x", &out)).unwrap();
            prop_assert_eq!(read, histogram);
        }
    }
}
