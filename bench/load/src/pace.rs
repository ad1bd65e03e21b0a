//! When the operations of a task are due.

use std::time::{Duration, Instant};

/// The load does not wait for answers: a task's operations are due at fixed times, `pause` apart,
/// and each one's latency counts from when it was due, though the one before may still have been
/// under way.
///
/// But what was missed is not made up for: of those that were due while one was under way the last
/// alone is done, so that a ring which comes back is not met by a burst. So of a stop of the
/// servers each task sees the operation that meets it and the one after, no further one: a
/// percentile of a window with a stop in it is that of clients who give up, lower than that of
/// clients who all come regardless. `load rate` forgets none. And tasks keep their own times: if
/// all went on at once from the end of a stop they would be in step from then on, and each
/// operation wait for those of all others.
pub struct Pace {
    pause: Duration,
    /// When the next operation is due.
    due: Instant,
}

impl Pace {
    /// The first operation is due at `first`.
    pub fn new(first: Instant, pause: Duration) -> Self {
        Self { pause, due: first }
    }

    /// When the next operation is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// It begins now: when it was due.
    pub fn begin(&mut self, now: Instant) -> Instant {
        let due = self.due;
        let next = due + self.pause;
        let late = now.saturating_duration_since(next);
        self.due = if late < self.pause { next } else { now - rest(late, self.pause) };
        due
    }
}

/// What is left of a time when whole pauses are taken from it.
fn rest(time: Duration, pause: Duration) -> Duration {
    let rest = time.as_nanos() % pause.as_nanos().max(1);
    Duration::from_nanos(u64::try_from(rest).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Pace;

    const PAUSE: Duration = Duration::from_millis(10);

    #[test]
    fn operations_are_due_at_fixed_times() {
        let first = Instant::now();
        let mut pace = Pace::new(first, PAUSE);
        // each begins a bit late
        for n in 0..5 {
            assert_eq!(pace.begin(first + PAUSE * n + PAUSE / 2), first + PAUSE * n);
        }
    }

    #[test]
    fn what_became_due_while_one_took_long_counts_from_then() {
        let first = Instant::now();
        let mut pace = Pace::new(first, PAUSE);
        pace.begin(first);
        assert_eq!(pace.begin(first + PAUSE * 3 / 2), first + PAUSE);
        assert_eq!(pace.due(), first + PAUSE * 2);
    }

    #[test]
    fn what_was_missed_is_not_made_up_for() {
        let first = Instant::now();
        let mut pace = Pace::new(first, PAUSE);
        pace.begin(first);
        // the second one begins when the tenth is due already
        let late = first + PAUSE * 9 + PAUSE / 2;
        assert_eq!(pace.begin(late), first + PAUSE);
        assert_eq!(pace.begin(late), first + PAUSE * 9);
        assert_eq!(pace.due(), first + PAUSE * 10);
    }
}
