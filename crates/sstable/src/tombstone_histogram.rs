//! How many tombstones become droppable when (`utils.streamhist.TombstoneHistogram`): points
//! in time with counts, close ones merged so that no more than a hundred remain.
//!
//! `i32` greatest number of bins, `i32` number of bins, and for each in version `nb` an `f64`
//! point and an `i64` count, from `oa` on an `i64` point and an `i32` count.

use std::collections::BTreeMap;

use crate::bytes::{Reader, put_int};
use crate::descriptor::Version;
use crate::error::Result;

/// Bins of a table's histogram.
pub const MAX_BINS: usize = 100;
/// Seconds that points are rounded up to.
pub const ROUND_SECONDS: i64 = 60;
/// Points gathered before they are merged into bins.
const MAX_SPOOL: usize = 100_000;
/// The latest deletion time of version `nb`: the end of 32-bit time but one.
const MAX_POINT_NB: i64 = i32::MAX as i64 - 1;
/// The latest deletion time of version `oa`.
const MAX_POINT_OA: i64 = u32::MAX as i64 - 2;

/// Points in seconds since 1970, ascending, with how many tombstones each stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TombstoneHistogram {
    bins: Vec<(i64, i32)>,
}

impl TombstoneHistogram {
    /// Reads one from the middle of a component. Bins out of order are put in order, times
    /// and counts out of range are held at the range's end, as Cassandra does.
    pub fn parse(reader: &mut Reader<'_>, version: Version) -> Result<Self> {
        let is_wide = version.has_uint_deletion_time();
        // The greatest number of bins, of no use to a reader.
        reader.i32()?;
        let n = reader.count(if is_wide { 12 } else { 16 })?;
        let mut bins = BTreeMap::<i64, i32>::new();
        for _ in 0..n {
            let (point, count) = match is_wide {
                true => (held(reader.i64()?, MAX_POINT_OA), i64::from(reader.i32()?)),
                false => (held(reader.f64()? as i64, MAX_POINT_NB), reader.i64()?),
            };
            let count = if count < 0 { i32::MAX } else { saturated(count) };
            let bin = bins.entry(point).or_default();
            *bin = bin.saturating_add(count);
        }
        Ok(Self { bins: bins.into_iter().collect() })
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>, version: Version) {
        put_int(out, self.bins.len());
        put_int(out, self.bins.len());
        for (point, count) in &self.bins {
            if version.has_uint_deletion_time() {
                out.extend(point.to_be_bytes());
                out.extend(count.to_be_bytes());
            } else {
                out.extend((*point as f64).to_be_bytes());
                out.extend(i64::from(*count).to_be_bytes());
            }
        }
    }

    /// The bins.
    pub fn bins(&self) -> &[(i64, i32)] {
        &self.bins
    }

    /// An estimate of how many tombstones lie at `until` or before: half of a bin lies before
    /// its point, and between two points the count changes evenly.
    pub fn sum(&self, until: i64) -> f64 {
        let after = self.bins.partition_point(|(point, _)| *point <= until);
        let counts = |bins: &[(i64, i32)]| bins.iter().map(|(_, n)| f64::from(*n)).sum::<f64>();
        let (before, rest) = self.bins.split_at(after);
        let (Some((left, n)), Some((right, m))) = (before.last(), rest.first()) else {
            return counts(before);
        };
        let (n, m) = (f64::from(*n), f64::from(*m));
        let weight = (until - left) as f64 / (right - left) as f64;
        let here = n + (m - n) * weight;
        counts(before) - n / 2.0 + (n + here) * weight / 2.0
    }
}

fn held(point: i64, most: i64) -> i64 {
    if (0..=most).contains(&point) { point } else { most }
}

fn saturated(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Makes a histogram while a table is written.
#[derive(Clone, Debug)]
pub struct Builder {
    bins: BTreeMap<i64, i32>,
    spool: BTreeMap<i64, i32>,
    max_bins: usize,
    max_spool: usize,
    round: i64,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new(MAX_BINS, MAX_SPOOL, ROUND_SECONDS)
    }
}

impl Builder {
    fn new(max_bins: usize, max_spool: usize, round: i64) -> Self {
        let (bins, spool) = (BTreeMap::new(), BTreeMap::new());
        Self { bins, spool, max_bins, max_spool, round }
    }

    /// Counts a tombstone that becomes droppable at `point`, in seconds since 1970.
    pub fn add(&mut self, point: i64) {
        let point = self.rounded(held(point, MAX_POINT_OA));
        let count = self.spool.entry(point).or_default();
        *count = count.saturating_add(1);
        if self.spool.len() > self.max_spool {
            self.merge_spool();
        }
    }

    /// The histogram of what was counted.
    pub fn finish(mut self) -> TombstoneHistogram {
        self.merge_spool();
        assert!(self.bins.len() <= self.max_bins, "a histogram has no more bins than its limit");
        TombstoneHistogram { bins: self.bins.into_iter().collect() }
    }

    fn rounded(&self, point: i64) -> i64 {
        let rest = point % self.round;
        if rest == 0 { point } else { point.saturating_add(self.round - rest) }
    }

    fn merge_spool(&mut self) {
        for (point, count) in std::mem::take(&mut self.spool) {
            let bin = self.bins.entry(point).or_default();
            *bin = bin.saturating_add(count);
            if self.bins.len() > self.max_bins {
                self.merge_nearest();
            }
        }
    }

    /// Puts the two closest points together at their mean, weighed by their counts.
    fn merge_nearest(&mut self) {
        let pairs = self.bins.iter().zip(self.bins.iter().skip(1));
        let nearest = pairs.min_by_key(|((a, _), (b, _))| *b - *a);
        let nearest = nearest.map(|((a, n), (b, m))| ((*a, *n), (*b, *m)));
        let ((a, n), (b, m)) = nearest.expect("a histogram above its limit has at least two bins");
        self.bins.remove(&a);
        self.bins.remove(&b);
        let (wide_n, wide_m) = (i128::from(n), i128::from(m));
        let total = (wide_n + wide_m).max(1);
        let mean = (i128::from(a) * wide_n + i128::from(b) * wide_m) / total;
        let mean = i64::try_from(mean).expect("a mean of two points lies between them");
        let mean = mean.clamp(a + 1, b);
        let bin = self.bins.entry(self.rounded(mean)).or_default();
        *bin = bin.saturating_add(n.saturating_add(m));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::descriptor::{NB, OA};
    use crate::histogram::EstimatedHistogram;

    /// A reader over component `kind` of a Statistics.db.
    pub fn component(bytes: &'static [u8], kind: i32) -> Reader<'static> {
        let mut toc = Reader::new("Statistics.db", bytes);
        let n = toc.i32().unwrap();
        toc.i32().unwrap();
        for _ in 0..n {
            let (found, offset) = (toc.i32().unwrap(), toc.u32().unwrap());
            if found == kind {
                return Reader::new("Statistics.db", &bytes[offset as usize..]);
            }
        }
        panic!("no component {kind}");
    }

    /// The component STATS.
    pub fn stats(bytes: &'static [u8]) -> Reader<'static> {
        component(bytes, 2)
    }

    #[test]
    fn round_trips_cassandras() {
        let mut reader = stats(include_bytes!("../testdata/lz4/nb-1-big-Statistics.db"));
        EstimatedHistogram::parse(&mut reader).unwrap();
        EstimatedHistogram::parse(&mut reader).unwrap();
        // Commit-log position, timestamps, deletion times, TTLs, compression ratio.
        reader.take(12 + 16 + 8 + 8 + 8).unwrap();
        let before = reader.clone();
        let read = TombstoneHistogram::parse(&mut reader, NB).unwrap();
        assert_eq!(read.bins().len(), 1);
        assert_eq!(read.bins()[0].1, 3, "one deleted row in ten partitions");
        let mut out = Vec::new();
        read.encode(&mut out, NB);
        assert_eq!(before.clone().take(out.len()).unwrap(), out);
    }

    /// Five bins over forty points, by Cassandra 5.0.9.
    const GOLDEN: [(i64, i32); 5] = [(1016, 19), (1074, 13), (1140, 14), (1196, 16), (1271, 17)];

    #[test]
    fn sums_as_cassandra() {
        let mut bytes = Vec::new();
        TombstoneHistogram { bins: GOLDEN.to_vec() }.encode(&mut bytes, NB);
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert!(hex.starts_with("0000000500000005408fc00000000000"));
        let read = TombstoneHistogram::parse(&mut Reader::new("x", &bytes), NB).unwrap();
        assert_eq!(read.sum(1100), 30.698_806_244_260_79);
        assert_eq!(read.sum(1050), 19.607_015_457_788_343);
        assert_eq!((read.sum(900), read.sum(5000)), (0.0, 79.0));
    }

    #[test]
    fn is_lenient_where_cassandra_is() {
        let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 2];
        bytes.extend((-5.0f64).to_be_bytes());
        bytes.extend((1i64 << 40).to_be_bytes());
        bytes.extend(7.0f64.to_be_bytes());
        bytes.extend(1i64.to_be_bytes());
        let read = TombstoneHistogram::parse(&mut Reader::new("x", &bytes), NB).unwrap();
        assert_eq!(read.bins(), [(7, 1), (MAX_POINT_NB, i32::MAX)]);
        let torn = TombstoneHistogram::parse(&mut Reader::new("x", &bytes[..30]), NB);
        assert!(torn.is_err());
    }

    proptest! {
        #[test]
        fn no_tombstone_is_lost(points in prop::collection::vec(0i64..4_000_000_000, 0..400)) {
            let mut builder = Builder::new(20, 50, 60);
            points.iter().for_each(|p| builder.add(*p));
            let made = builder.finish();
            prop_assert!(made.bins().len() <= 20);
            prop_assert!(made.bins().is_sorted_by(|a, b| a.0 < b.0));
            let total: i64 = made.bins().iter().map(|(_, n)| i64::from(*n)).sum();
            prop_assert_eq!(total, points.len() as i64);
            let mut out = Vec::new();
            made.encode(&mut out, OA);
            let read = TombstoneHistogram::parse(&mut Reader::new("x", &out), OA).unwrap();
            prop_assert_eq!(&read, &made);
            prop_assert_eq!(read.sum(i64::from(u32::MAX)), points.len() as f64);
        }
    }
}
