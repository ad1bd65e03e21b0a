//! Size-tiered choice: compact files of about one size together (`SizeTieredCompactionStrategy`).
//!
//! Pure: candidates in, choice out.

/// Options of the strategy, with Cassandra's names and defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Fewest files of a bucket worth compacting.
    pub min_threshold: usize,
    /// Most files compacted at once.
    pub max_threshold: usize,
    /// Files below this size, in bytes, share one bucket.
    pub min_sstable_size: u64,
    /// A file joins a bucket from this share of its average size ...
    pub bucket_low: f64,
    /// ... up to this one.
    pub bucket_high: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_threshold: 4,
            max_threshold: 32,
            min_sstable_size: 50 << 20,
            bucket_low: 0.5,
            bucket_high: 1.5,
        }
    }
}

impl Options {
    /// Reads a table's `compaction` map, which the schema validated; what is absent keeps its default.
    pub fn from_map<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        fn or<T: std::str::FromStr>(text: Option<&str>, default: T) -> T {
            text.and_then(|text| text.trim().parse().ok()).unwrap_or(default)
        }
        let default = Self::default();
        Self {
            min_threshold: or(get("min_threshold"), default.min_threshold),
            max_threshold: or(get("max_threshold"), default.max_threshold),
            min_sstable_size: or(get("min_sstable_size"), default.min_sstable_size),
            bucket_low: or(get("bucket_low"), default.bucket_low),
            bucket_high: or(get("bucket_high"), default.bucket_high),
        }
    }
}

/// A file that may be compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What the caller knows it by.
    pub id: u64,
    /// Bytes on disk.
    pub size: u64,
}

struct Bucket {
    average: f64,
    members: Vec<Candidate>,
}

fn buckets(candidates: &[Candidate], options: &Options) -> Vec<Bucket> {
    let mut sorted = candidates.to_vec();
    sorted.sort_by_key(|candidate| (candidate.size, candidate.id));
    let small = options.min_sstable_size as f64;
    let mut buckets: Vec<Bucket> = Vec::new();
    for candidate in sorted {
        let size = candidate.size as f64;
        let fits = |bucket: &&mut Bucket| {
            let alike = size > bucket.average * options.bucket_low
                && size < bucket.average * options.bucket_high;
            alike || (size < small && bucket.average < small)
        };
        match buckets.iter_mut().find(fits) {
            Some(bucket) => {
                let n = bucket.members.len() as f64;
                bucket.average = (bucket.average * n + size) / (n + 1.0);
                bucket.members.push(candidate);
            }
            None => buckets.push(Bucket { average: size, members: vec![candidate] }),
        }
    }
    buckets
}

/// The files to compact next, if any are worth it: the fullest bucket, of equally full ones the cheapest.
pub fn choose(candidates: &[Candidate], options: &Options) -> Option<Vec<u64>> {
    let mut buckets = buckets(candidates, options);
    buckets.retain(|bucket| bucket.members.len() >= options.min_threshold.max(2));
    for bucket in &mut buckets {
        bucket.members.truncate(options.max_threshold.max(2));
    }
    let best = buckets.into_iter().max_by(|a, b| {
        (a.members.len().cmp(&b.members.len())).then(b.average.total_cmp(&a.average))
    })?;
    Some(best.members.into_iter().map(|candidate| candidate.id).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn candidates(sizes: &[u64]) -> Vec<Candidate> {
        sizes
            .iter()
            .enumerate()
            .map(|(id, size)| Candidate { id: id as u64, size: *size })
            .collect()
    }

    #[test]
    fn four_alike_are_chosen() {
        let options = Options::default();
        let sizes = [100 * MIB, 1000 * MIB, 110 * MIB, 90 * MIB, 105 * MIB];
        assert_eq!(choose(&candidates(&sizes), &options), Some(vec![3, 0, 4, 2]));
        assert_eq!(choose(&candidates(&sizes[..4]), &options), None);
    }

    #[test]
    fn small_files_share_a_bucket() {
        let sizes = [1, MIB, 10 * MIB, 49 * MIB];
        assert_eq!(choose(&candidates(&sizes), &Options::default()), Some(vec![0, 1, 2, 3]));
    }

    proptest! {
        #[test]
        fn chosen_are_distinct_candidates(
            sizes in prop::collection::vec(1u64..1 << 34, 0..80),
        ) {
            let options = Options::default();
            if let Some(mut chosen) = choose(&candidates(&sizes), &options) {
                prop_assert!(chosen.len() >= options.min_threshold);
                prop_assert!(chosen.len() <= options.max_threshold);
                chosen.sort_unstable();
                let n = chosen.len();
                chosen.dedup();
                prop_assert_eq!(chosen.len(), n);
                prop_assert!(chosen.iter().all(|id| (*id as usize) < sizes.len()));
            }
        }

        /// A table where every merge happens settles in logarithmically many files.
        #[test]
        fn merging_terminates(sizes in prop::collection::vec(1u64..1 << 34, 0..200)) {
            let options = Options::default();
            let mut live = candidates(&sizes);
            let mut rounds = 0;
            while let Some(chosen) = choose(&live, &options) {
                let size = live.iter().filter(|c| chosen.contains(&c.id)).map(|c| c.size).sum();
                live.retain(|c| !chosen.contains(&c.id));
                live.push(Candidate { id: 1000 + rounds, size });
                rounds += 1;
                prop_assert!(rounds <= 200);
            }
        }
    }
}
