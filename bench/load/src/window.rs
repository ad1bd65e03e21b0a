//! What clients of a ring saw, in all and since the last window ended.

use std::time::Duration;

use crate::Outcome;
use crate::json::{list, text};
use crate::latency::Latencies;
use crate::reasons::{Failure, Reasons, clock};

/// What was wrong is counted, and so much of it shown.
const SHOWN: usize = 5;

pub struct Windows {
    done: u64,
    failed: u64,
    failed_before: u64,
    /// What was judged wrong.
    pub wrong: Vec<String>,
    reasons: Reasons,
    second: Latencies,
    window: Latencies,
    /// Of the window, reads alone.
    reads: Latencies,
}

impl Windows {
    pub fn new() -> Outcome<Self> {
        Ok(Self {
            done: 0,
            failed: 0,
            failed_before: 0,
            wrong: Vec::new(),
            reasons: Reasons::default(),
            second: Latencies::new()?,
            window: Latencies::new()?,
            reads: Latencies::new()?,
        })
    }

    /// An operation ended.
    pub fn count(&mut self, took: Duration, is_write: bool, failure: Option<&Failure>) {
        self.done += 1;
        self.second.record(took);
        self.window.record(took);
        if !is_write {
            self.reads.record(took);
        }
        if let Some(failure) = failure {
            self.failed += 1;
            self.reasons.add(failure);
        }
    }

    /// A second ended: how it went.
    pub fn end_second(&mut self) -> String {
        let (done, failed) = (self.second.count(), self.failed);
        let (p99, worst) = (self.second.percentile_ms(99.0), self.second.worst_ms());
        self.second.clear();
        format!("{} {done} done, p99 {p99:.1} ms, worst {worst:.1} ms, {failed} failed", clock())
    }

    /// A window ended: its figures as JSON, latencies in milliseconds. One in which nothing was
    /// done has no percentiles.
    pub fn end_window(&mut self, name: &str) -> String {
        let done = self.window.count();
        let failed = self.failed - self.failed_before;
        let mut line =
            format!("{{\"window\": {}, \"done\": {done}, \"failed\": {failed}", text(name));
        if done > 0 {
            for percent in [50.0, 99.0, 99.9] {
                let at = self.window.percentile_ms(percent);
                line.push_str(&format!(", \"p{percent}\": {at:.2}"));
            }
        }
        let (reads, worst) = (self.reads.percentile_ms(99.0), self.window.worst_ms());
        line.push_str(&format!(", \"reads_p99\": {reads:.2}, \"worst\": {worst:.2}}}"));
        self.window.clear();
        self.reads.clear();
        self.failed_before = self.failed;
        line
    }

    /// What was found in all, as JSON: `conditions` were applied, and of `unknown` nobody knows.
    pub fn sum(&self, conditions: usize, unknown: usize) -> String {
        let Self { done, failed, wrong, reasons, .. } = self;
        let first = wrong.get(..SHOWN).unwrap_or(wrong);
        format!(
            "{{\"done\": {done}, \"failed\": {failed}, \"reasons\": {}, \"wrong\": {}, \
             \"conditions\": {conditions}, \"unknown\": {unknown}, \"first_wrong\": {}}}",
            reasons.json(),
            wrong.len(),
            list(first),
        )
    }

    /// Nothing failed and nothing was wrong.
    pub fn is_well(&self) -> bool {
        self.failed == 0 && self.wrong.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scylla::errors::ExecutionError;

    use super::Windows;

    #[test]
    fn a_window_has_what_happened_in_it() {
        let mut windows = Windows::new().expect("constants that fit");
        windows.count(Duration::from_millis(4), true, None);
        windows.count(Duration::from_millis(2), false, Some(&ExecutionError::EmptyPlan.into()));
        assert_eq!(
            windows.end_window("a"),
            "{\"window\": \"a\", \"done\": 2, \"failed\": 1, \"p50\": 2.00, \"p99\": 4.00, \"p99.9\": 4.00, \
             \"reads_p99\": 2.00, \"worst\": 4.00}"
        );
        assert_eq!(
            windows.end_window("b"),
            "{\"window\": \"b\", \"done\": 0, \"failed\": 0, \"reads_p99\": 0.00, \"worst\": 0.00}"
        );
        assert!(!windows.is_well());
    }

    #[test]
    fn the_sum_has_all() {
        let mut windows = Windows::new().expect("constants that fit");
        windows.count(Duration::from_millis(4), true, None);
        assert!(windows.is_well());
        windows.wrong.extend((0..9).map(|n| format!("wrong \"{n}\"")));
        assert!(!windows.is_well());
        let sum = windows.sum(3, 1);
        assert!(sum.starts_with("{\"done\": 1, \"failed\": 0, \"reasons\": {}, \"wrong\": 9, "));
        assert!(sum.contains(
            "\"conditions\": 3, \"unknown\": 1, \"first_wrong\": [\"wrong \\\"0\\\"\", "
        ));
        assert_eq!(sum.matches("wrong \\\"").count(), super::SHOWN);
    }
}
