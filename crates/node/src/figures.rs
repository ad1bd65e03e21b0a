//! Numbers as metrics show them.

/// Nanoseconds in a microsecond, which is what metrics keep times in.
pub(crate) const NANOS: u64 = 1000;

/// A number of things as a gauge shows it.
pub(crate) fn gauge(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}
