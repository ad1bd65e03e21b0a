//! How fast a session goes: over the last seconds, and in all.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use env::Instant;

/// Time between two points that a rate is taken from.
const POINT_EVERY: Duration = Duration::from_secs(1);
/// Points that are kept: the rate is that of about the last ten seconds.
const POINTS_MAX: usize = 10;

/// Counts the bytes of a session, both ways together.
#[derive(Debug)]
pub(crate) struct Meter {
    began: Instant,
    bytes: Cell<u64>,
    /// What had gone when; never empty.
    points: RefCell<VecDeque<(Instant, u64)>>,
}

impl Meter {
    pub fn new(began: Instant) -> Self {
        Self { began, bytes: Cell::new(0), points: RefCell::new([(began, 0)].into()) }
    }

    /// So many bytes went.
    pub fn went_on(&self, bytes: u64, now: Instant) {
        self.bytes.update(|before| before.saturating_add(bytes));
        let mut points = self.points.borrow_mut();
        if points.back().is_some_and(|(last, _)| now.since(*last) < POINT_EVERY) {
            return;
        }
        points.push_back((now, self.bytes.get()));
        if points.len() > POINTS_MAX {
            points.pop_front();
        }
    }

    /// Since the session began.
    pub fn elapsed(&self, now: Instant) -> Duration {
        now.since(self.began)
    }

    /// Bytes a second in all.
    pub fn mean(&self, now: Instant) -> u64 {
        rate(self.bytes.get(), self.elapsed(now))
    }

    /// Bytes a second of late: a stream that stands still goes down to zero.
    pub fn rate(&self, now: Instant) -> u64 {
        let points = self.points.borrow();
        let (since, before) = points.front().copied().unwrap_or((self.began, 0));
        rate(self.bytes.get() - before, now.since(since))
    }
}

fn rate(bytes: u64, time: Duration) -> u64 {
    match time.is_zero() {
        true => 0,
        false => (bytes as f64 / time.as_secs_f64()) as u64,
    }
}

/// How long what is left takes at a rate; none where that is not to be foreseen.
pub(crate) fn time_left(left: u64, rate: u64) -> Option<Duration> {
    match (left, rate) {
        (0, _) => Some(Duration::ZERO),
        (_, 0) => None,
        (left, rate) => Some(Duration::from_secs(left.div_ceil(rate))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_last_seconds_and_the_mean_of_all() {
        let began = Instant::ZERO;
        let meter = Meter::new(began);
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!((meter.rate(began), meter.mean(began)), (0, 0));
        (1..=20).for_each(|second| meter.went_on(1000, at(second)));
        assert_eq!((meter.rate(at(20)), meter.mean(at(20))), (1000, 1000));
        (21..=40).for_each(|second| meter.went_on(3000, at(second)));
        assert_eq!((meter.rate(at(40)), meter.mean(at(40))), (3000, 2000));
        assert!(meter.rate(at(100)) < 500, "{}", meter.rate(at(100)));
    }

    #[test]
    fn many_small_parts_make_few_points() {
        let meter = Meter::new(Instant::ZERO);
        for part in 1..=100_000_u64 {
            meter.went_on(10, Instant::ZERO + Duration::from_millis(part));
        }
        assert!(meter.points.borrow().len() <= POINTS_MAX);
        let now = Instant::ZERO + Duration::from_secs(100);
        assert!((9_900..=10_100).contains(&meter.rate(now)), "{}", meter.rate(now));
    }

    #[test]
    fn time_left_is_foreseen_only_while_something_goes() {
        assert_eq!(time_left(0, 0), Some(Duration::ZERO));
        assert_eq!(time_left(10, 0), None);
        assert_eq!(time_left(101, 10), Some(Duration::from_secs(11)));
    }
}
