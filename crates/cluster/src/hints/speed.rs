//! How fast a node is sent its hints: by the time in which they were made.
//!
//! What two nodes did not tell each other in ten minutes is delivered in less than ten, so that
//! they do not stay behind, and no faster than the nodes can do beside all else: hints are nobody's
//! hurry, and reads are. So each second of delivery is worth at least [`LEAST`] seconds of hints,
//! and more while acknowledgements do not become slower. A speed at which they did is remembered
//! and kept away from for a while: who finds out every few seconds how fast is too fast has reads
//! pay for each try. Those that are due are sent together, which is half the work of sending each
//! alone.

use std::time::Duration;

use env::Instant;

/// Seconds of hints a second, at least, and at the beginning.
const LEAST: f64 = 2.0;
/// How long a speed is tried.
const TRIAL: Duration = Duration::from_secs(1);
/// Where fewer acknowledgements than one in so many were slow, it may be faster; else it is slower.
const SLOW_ONE_IN: u32 = 20;
/// How many times as fast.
const FASTER: f64 = 1.2;
const SLOWER: f64 = 0.5;
/// What of a speed that was too fast is tried again at most, and for how long.
const BELOW: f64 = 0.7;
const REMEMBERED: Duration = Duration::from_secs(60);
/// Time without hints is passed over but for so much, in milliseconds.
const GAP: f64 = 1000.0;

/// The speed of one delivery.
#[derive(Debug)]
pub(super) struct Speed {
    /// Seconds of hints a second.
    factor: f64,
    /// What it may be at most until then.
    ceiling: Option<(f64, Instant)>,
    /// Hints made before this are due, in milliseconds since 1970; none was seen yet.
    reached: Option<f64>,
    moved: Instant,
    tried: Instant,
    acknowledged: u32,
    slow: u32,
}

impl Speed {
    pub fn new(now: Instant) -> Self {
        Self {
            factor: LEAST,
            ceiling: None,
            reached: None,
            moved: now,
            tried: now,
            acknowledged: 0,
            slow: 0,
        }
    }

    /// May a hint of this time be sent? With `at_least`: at the least speed, whatever the node can
    /// do.
    pub fn is_due(&mut self, now: Instant, created: i64, at_least: bool) -> bool {
        if at_least {
            self.factor = LEAST;
        }
        let created = created as f64;
        let passed = now.since(self.moved).as_secs_f64() * 1000.0;
        let reached = self.reached.unwrap_or(created) + passed * self.factor;
        let reached = reached.max(created - GAP);
        (self.reached, self.moved) = (Some(reached), now);
        created <= reached
    }

    /// One was acknowledged.
    pub fn acknowledged(&mut self, now: Instant, is_slow: bool) {
        self.acknowledged += 1;
        self.slow += u32::from(is_slow);
        if now.since(self.tried) < TRIAL {
            return;
        }
        let is_slower = self.slow * SLOW_ONE_IN >= self.acknowledged;
        if is_slower {
            self.ceiling = Some((self.factor * BELOW, now + REMEMBERED));
        }
        let remembered = self.ceiling.filter(|(_, until)| now < *until);
        let most = remembered.map_or(f64::MAX, |(most, _)| most);
        let tried = self.factor * if is_slower { SLOWER } else { FASTER };
        self.factor = tried.min(most).max(LEAST);
        (self.tried, self.acknowledged, self.slow) = (now, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers hints, ten a second for so many seconds: how long does it take?
    fn deliver(seconds: i64, at_least: bool, mut is_slow: impl FnMut(u32) -> bool) -> Duration {
        let mut speed = Speed::new(Instant::ZERO);
        let (mut now, mut sent) = (Instant::ZERO, 0);
        for created in (0..seconds * 1000).step_by(100) {
            while !speed.is_due(now, 1_700_000_000_000 + created, at_least) {
                now += Duration::from_millis(10);
            }
            sent += 1;
            speed.acknowledged(now, is_slow(sent));
        }
        now.since(Instant::ZERO)
    }

    #[test]
    fn slow_nodes_are_sent_twice_as_fast_as_it_was_made() {
        let took = deliver(600, false, |_| true).as_secs();
        assert!((280..=300).contains(&took), "{took}");
        assert_eq!(deliver(600, true, |_| false).as_secs(), 299);
    }

    #[test]
    fn nodes_that_stay_quick_are_sent_faster_and_faster() {
        let took = deliver(3 * 3600, false, |_| false).as_secs();
        assert!(took < 40, "{took}");
        // one in thirty is nothing yet
        assert!(deliver(3 * 3600, false, |n| n % 30 == 0).as_secs() < 60);
        assert!(deliver(3600, false, |n| n % 10 == 0).as_secs() > 1700);
    }

    #[test]
    fn what_was_too_fast_is_tried_once_a_minute() {
        let mut speed = Speed::new(Instant::ZERO);
        let (mut now, mut slow) = (Instant::ZERO, 0);
        for _ in 0..600 {
            now += TRIAL;
            let is_slow = speed.factor > 20.0;
            slow += u32::from(is_slow);
            speed.acknowledged(now, is_slow);
        }
        assert!((5..=10).contains(&slow), "{slow}");
        assert!(speed.factor > 10.0, "{}", speed.factor);
    }

    #[test]
    fn time_without_hints_is_not_waited_for() {
        let mut speed = Speed::new(Instant::ZERO);
        assert!(speed.is_due(Instant::ZERO, 0, true));
        assert!(!speed.is_due(Instant::ZERO, 3_600_000, true));
        assert!(speed.is_due(Instant::ZERO + Duration::from_millis(500), 3_600_000, true));
        // nor is one from before that
        assert!(speed.is_due(Instant::ZERO, 5, true));
    }
}
