//! How fast files went while sessions were under way the last time: what an operator is told of how
//! long the next ones take. It counts from the first session's begin to the last one's end, with
//! all that they waited for.

use env::Instant;

use crate::progress::Direction;

/// Bytes that say something: what is less took as long as its messages.
const BYTES_MIN: u64 = 1 << 20;

/// Bytes a second; none of what was never measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// What came.
    pub received: Option<u64>,
    /// What was sent.
    pub sent: Option<u64>,
}

/// Sessions that are under way at the same time, and what came of the last ones.
#[derive(Debug, Default)]
pub(crate) struct LastRates {
    since: Option<Instant>,
    received: u64,
    sent: u64,
    last: Measured,
}

impl LastRates {
    /// A session begins.
    pub fn begin(&mut self, now: Instant) {
        if self.since.is_none() {
            (self.since, self.received, self.sent) = (Some(now), 0, 0);
        }
    }

    pub fn went_on(&mut self, direction: Direction, bytes: u64) {
        match direction {
            Direction::In => self.received += bytes,
            Direction::Out => self.sent += bytes,
        }
    }

    /// The last session is over.
    pub fn end(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let micros = (now - since).as_micros().max(1);
        let rate = |bytes: u64| {
            let rate = u128::from(bytes) * 1_000_000 / micros;
            (bytes >= BYTES_MIN).then(|| u64::try_from(rate).unwrap_or(u64::MAX).max(1))
        };
        self.last.received = rate(self.received).or(self.last.received);
        self.last.sent = rate(self.sent).or(self.last.sent);
    }

    pub fn last(&self) -> Measured {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_are_of_the_last_sessions_that_moved_much() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let mut rates = LastRates::default();
        assert_eq!(rates.last(), Measured::default());
        // two that overlap count once
        rates.begin(at(1000));
        rates.begin(at(1500));
        rates.went_on(Direction::In, 8 << 20);
        rates.went_on(Direction::Out, BYTES_MIN - 1);
        rates.end(at(3000));
        let first = Measured { received: Some(4 << 20), sent: None };
        assert_eq!(rates.last(), first);
        // what is little says nothing
        rates.begin(at(9000));
        rates.went_on(Direction::In, 5);
        rates.went_on(Direction::Out, 3 << 20);
        rates.end(at(9500));
        assert_eq!(rates.last(), Measured { sent: Some(6 << 20), ..first });
        rates.end(at(9900));
        assert_eq!(rates.last().sent, Some(6 << 20), "there was none");
    }
}
