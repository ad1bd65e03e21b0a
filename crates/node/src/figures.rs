//! Numbers as metrics show them.

use metrics::Reading;

/// Nanoseconds in a microsecond, which is what metrics keep times in.
pub(crate) const NANOS: u64 = 1000;

/// A number of things as a gauge shows it.
pub(crate) fn gauge(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

/// The number of a reading that is one; of a histogram how much it counted.
pub(crate) fn count(reading: &Reading) -> i64 {
    match reading {
        Reading::Counter(count) | Reading::Peak(count) => *count as i64,
        Reading::Gauge(value) => *value,
        Reading::Histogram(distribution) => distribution.count() as i64,
    }
}
