//! Who has been silent for too long (`gms.FailureDetector`): phi accrual over the times between
//! signs of life.

use std::collections::{BTreeMap, VecDeque};

use types::Address;

/// Times between signs of life that are remembered of a node.
const SAMPLES: usize = 1000;
/// The first of them, before there is a second sign, in nanoseconds.
const FIRST_INTERVAL: u64 = 2_000_000_000;
/// Longer ones say nothing about how often a node gives signs of life, in nanoseconds.
const MAX_INTERVAL: u64 = FIRST_INTERVAL;
/// When nobody was looked at for so long, it is this node that stood still, in nanoseconds.
const MAX_PAUSE: u64 = 5_000_000_000;
/// Phi is told in powers of ten: 1 / ln 10.
const PHI_FACTOR: f64 = std::f64::consts::LOG10_E;

/// The times between signs of life of one node.
#[derive(Clone, Debug)]
struct Window {
    last: u64,
    intervals: VecDeque<u64>,
    sum: u64,
}

impl Window {
    fn new(now: u64) -> Self {
        Self { last: now, intervals: [FIRST_INTERVAL].into(), sum: FIRST_INTERVAL }
    }

    fn add(&mut self, now: u64) {
        let interval = now.saturating_sub(self.last);
        self.last = now;
        if interval > MAX_INTERVAL {
            return;
        }
        if self.intervals.len() == SAMPLES {
            self.sum -= self.intervals.pop_front().unwrap_or_default();
        }
        self.intervals.push_back(interval);
        self.sum += interval;
    }

    fn phi(&self, now: u64) -> f64 {
        // times are many orders of magnitude below what a double holds exactly
        let mean = self.sum as f64 / self.intervals.len() as f64;
        now.saturating_sub(self.last) as f64 / mean.max(1.0)
    }
}

/// Watches over nodes.
#[derive(Clone, Debug)]
pub struct FailureDetector {
    windows: BTreeMap<Address, Window>,
    /// `phi_convict_threshold`.
    threshold: f64,
    last_look: Option<u64>,
    last_pause: Option<u64>,
}

impl FailureDetector {
    /// With a `phi_convict_threshold`.
    pub fn new(threshold: f64) -> Self {
        Self { windows: BTreeMap::new(), threshold, last_look: None, last_pause: None }
    }

    /// A sign of life, at a time in nanoseconds.
    pub fn report(&mut self, node: Address, now: u64) {
        match self.windows.get_mut(&node) {
            Some(window) => window.add(now),
            None => _ = self.windows.insert(node, Window::new(now)),
        }
    }

    /// Forgets a node.
    pub fn forget(&mut self, node: Address) {
        self.windows.remove(&node);
    }

    /// Called before nodes are looked at: may they be judged, or did this node itself stand still?
    pub fn may_judge(&mut self, now: u64) -> bool {
        let pause = self.last_look.map_or(0, |last| now.saturating_sub(last));
        self.last_look = Some(now);
        if pause > MAX_PAUSE {
            self.last_pause = Some(now);
        }
        self.last_pause.is_none_or(|pause| now.saturating_sub(pause) >= MAX_PAUSE)
    }

    /// How suspicious a node's silence is; none of a node that never gave a sign.
    pub fn phi(&self, node: Address, now: u64) -> Option<f64> {
        Some(PHI_FACTOR * self.windows.get(&node)?.phi(now))
    }

    /// Is it silent for too long?
    pub fn is_suspect(&self, node: Address, now: u64) -> bool {
        self.phi(node, now).is_some_and(|phi| phi > self.threshold)
    }

    /// Changes `phi_convict_threshold`.
    pub fn set_threshold(&mut self, threshold: f64) {
        self.threshold = threshold;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn silence_is_judged_by_what_was_usual() {
        let node = Address::new([127, 0, 0, 1], 7000);
        for (interval, seconds) in [(SECOND, 19), (SECOND / 2, 10)] {
            let mut detector = FailureDetector::new(8.0);
            assert_eq!(detector.phi(node, 0), None);
            let mut now = 0;
            for _ in 0..3000 {
                detector.report(node, now);
                now += interval;
            }
            let last = now - interval;
            assert!(!detector.is_suspect(node, last + (seconds - 1) * SECOND), "{interval}");
            assert!(detector.is_suspect(node, last + seconds * SECOND), "{interval}");
            // a long silence does not make silence usual
            detector.report(node, last + 1000 * SECOND);
            assert!(detector.is_suspect(node, last + (1000 + seconds) * SECOND), "{interval}");
        }
    }

    #[test]
    fn nobody_is_judged_after_a_pause_of_our_own() {
        let mut detector = FailureDetector::new(8.0);
        assert!(detector.may_judge(0));
        assert!(detector.may_judge(5 * SECOND));
        assert!(!detector.may_judge(10 * SECOND + 1));
        assert!(!detector.may_judge(12 * SECOND));
        assert!(!detector.may_judge(15 * SECOND));
        assert!(detector.may_judge(15 * SECOND + 1));
    }
}
