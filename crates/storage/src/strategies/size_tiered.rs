//! Size-tiered choice: compact files of about one size together (`SizeTieredCompactionStrategy`).

use super::choice::{Candidate, Choice, Given, Reason, Split, View};
use super::long_map::LongMap;
use super::tombstones::TombstoneOptions;

/// Which SSTables are of about one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketOptions {
    /// `min_sstable_size`: files below this size, in bytes, share one bucket.
    pub min_sstable_size: i64,
    /// `bucket_low`: a file joins a bucket from this share of its average size ...
    pub bucket_low: f64,
    /// `bucket_high`: ... up to this one.
    pub bucket_high: f64,
}

impl BucketOptions {
    pub(crate) fn new(given: Given<'_>) -> Self {
        Self {
            min_sstable_size: given.number("min_sstable_size", 50 << 20),
            bucket_low: given.number("bucket_low", 0.5),
            bucket_high: given.number("bucket_high", 1.5),
        }
    }
}

/// How many SSTables are compacted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// `min_threshold`.
    pub min: usize,
    /// `max_threshold`.
    pub max: usize,
}

impl Thresholds {
    pub(crate) fn new(given: Given<'_>) -> Self {
        Self { min: given.0.min_threshold() as usize, max: given.0.max_threshold() as usize }
    }

    /// Tasks that so many SSTables of a bucket are.
    fn tasks(self, of: usize) -> usize {
        if of >= self.min { of.div_ceil(self.max.max(1)) } else { 0 }
    }
}

/// Puts files of about one size together. Buckets come in Cassandra's order, which decides where a
/// file fits several.
pub(crate) fn buckets<'a>(
    candidates: &[&'a Candidate],
    options: &BucketOptions,
) -> Vec<Vec<&'a Candidate>> {
    let mut sorted = candidates.to_vec();
    sorted.sort_by_key(|candidate| candidate.data_bytes);
    let small = options.min_sstable_size;
    let mut buckets: LongMap<Vec<&Candidate>> = LongMap::new();
    for candidate in sorted {
        let size = candidate.data_bytes.cast_signed();
        let fits = |average: &i64| {
            let above = size as f64 > *average as f64 * options.bucket_low;
            let below = (size as f64) < *average as f64 * options.bucket_high;
            (above && below) || (size < small && *average < small)
        };
        let joins = buckets.iter().map(|(average, _)| average).find(fits);
        match joins {
            Some(average) => {
                let mut bucket = buckets.remove(average).unwrap_or_default();
                let n = bucket.len() as i64;
                bucket.push(candidate);
                buckets.put((n * average + size) / (n + 1), bucket);
            }
            None => buckets.put(size, vec![candidate]),
        }
    }
    buckets.into_values().collect()
}

/// The bucket most worth compacting: the hottest; of equally hot ones that of the largest files.
pub(crate) fn most_interesting(
    buckets: Vec<Vec<&Candidate>>,
    thresholds: Thresholds,
) -> Option<Vec<&Candidate>> {
    let mut best: Option<(f64, u64, Vec<&Candidate>)> = None;
    for mut bucket in buckets {
        bucket.sort_by(|a, b| b.hotness.total_cmp(&a.hotness));
        bucket.truncate(thresholds.max);
        if bucket.len() < thresholds.min || bucket.is_empty() {
            continue;
        }
        let hotness: f64 = bucket.iter().map(|table| table.hotness).sum();
        let bytes = bucket.iter().map(|table| table.total_bytes).sum::<u64>() / bucket.len() as u64;
        let is_better = |(hot, large, _): &(f64, u64, Vec<&Candidate>)| {
            hotness.total_cmp(hot).then(bytes.cmp(large)).is_gt()
        };
        if best.as_ref().is_none_or(is_better) {
            best = Some((hotness, bytes, bucket));
        }
    }
    best.map(|(_, _, bucket)| bucket)
}

pub(crate) fn ids(tables: &[&Candidate]) -> Vec<u64> {
    tables.iter().map(|table| table.id).collect()
}

/// The strategy.
#[derive(Clone, Debug)]
pub struct SizeTiered {
    buckets: BucketOptions,
    thresholds: Thresholds,
    tombstones: TombstoneOptions,
}

impl SizeTiered {
    pub(crate) fn new(given: Given<'_>) -> Self {
        Self {
            buckets: BucketOptions::new(given),
            thresholds: Thresholds::new(given),
            tombstones: TombstoneOptions::new(given),
        }
    }

    pub(crate) fn next(&self, mine: &[&Candidate], view: &View<'_>) -> Option<Choice> {
        let free: Vec<_> = mine.iter().copied().filter(|table| !table.is_compacting).collect();
        let buckets = buckets(&free, &self.buckets);
        if let Some(bucket) = most_interesting(buckets, self.thresholds) {
            return Some(Choice::merge(ids(&bucket), Reason::Tier));
        }
        let worth = free.into_iter().filter(|table| self.tombstones.is_worth(view, table));
        let largest = worth.reduce(|a, b| if b.data_bytes > a.data_bytes { b } else { a })?;
        Some(Choice::merge(vec![largest.id], Reason::Tombstones))
    }

    pub(crate) fn pending(&self, mine: &[&Candidate]) -> usize {
        let free: Vec<_> = mine.iter().copied().filter(|table| !table.is_compacting).collect();
        let buckets = buckets(&free, &self.buckets);
        buckets.iter().map(|bucket| self.thresholds.tasks(bucket.len())).sum()
    }

    pub(crate) fn major(&self, mine: &[&Candidate], split: bool) -> Choice {
        let bytes = mine.iter().map(|table| table.data_bytes).sum();
        let split = if split { Split::Halves(bytes) } else { Split::None };
        Choice { split, ..Choice::merge(ids(mine), Reason::Major) }
    }
}
