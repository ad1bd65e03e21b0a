//! Latencies: how long operations took, as a histogram.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Outcome;

/// The longest that is told from longer ones, in microseconds: no request is waited for longer.
const LONGEST: u64 = 120_000_000;
/// Digits of a latency that are kept.
const DIGITS: u8 = 3;

/// In microseconds.
pub struct Latencies(Histogram<u64>);

impl Latencies {
    pub fn new() -> Outcome<Self> {
        Ok(Self(Histogram::new_with_max(LONGEST, DIGITS)?))
    }

    pub fn record(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_micros()).unwrap_or(LONGEST));
    }

    /// Those of another one, too.
    pub fn add(&mut self, other: &Self) -> Outcome {
        Ok(self.0.add(&other.0)?)
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// In microseconds: the latency that so many percent of the operations did not exceed.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent)
    }

    /// The same in milliseconds.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        milliseconds(self.percentile(percent))
    }

    /// In microseconds.
    pub fn worst(&self) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.max() }
    }

    pub fn worst_ms(&self) -> f64 {
        milliseconds(self.worst())
    }

    pub fn clear(&mut self) {
        self.0.reset();
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latencies;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut all = Latencies::new().expect("constants that fit");
        for ms in 1..=1000 {
            all.record(Duration::from_millis(ms));
        }
        let is_near = |got: f64, want: f64| (got - want).abs() / want < 0.002;
        assert!(is_near(all.percentile_ms(50.0), 500.0));
        assert!(is_near(all.percentile_ms(99.0), 990.0));
        assert!(is_near(all.worst_ms(), 1000.0));
        let mut more = Latencies::new().expect("constants that fit");
        more.record(Duration::from_millis(2000));
        more.add(&all).expect("both are alike");
        assert_eq!(more.count(), 1001);
        assert!(is_near(more.percentile_ms(50.0), 501.0) && is_near(more.worst_ms(), 2000.0));
        all.clear();
        assert_eq!((all.count(), all.worst()), (0, 0));
    }
}
