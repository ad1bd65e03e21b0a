//! When a request asks a further replica (`service.reads.SpeculativeRetryPolicy`).

/// Which of two thresholds counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCombination {
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

/// When a request asks a further replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpeculativeRetry {
    /// Never, unless a replica fails.
    Never,
    /// At once.
    Always,
    /// After so many milliseconds.
    Fixed(i32),
    /// After the latency that this percentile of the table's requests stays within.
    Percentile(f64),
    /// After one of the two.
    Hybrid {
        /// Which.
        combination: RetryCombination,
        /// As in [`SpeculativeRetry::Percentile`].
        percentile: f64,
        /// As in [`SpeculativeRetry::Fixed`].
        millis: i32,
    },
}

impl SpeculativeRetry {
    /// `99p`.
    pub const DEFAULT: Self = Self::Percentile(99.0);
}
