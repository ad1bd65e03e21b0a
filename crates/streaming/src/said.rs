//! What the log says of how far sessions are, and of events that take long.

use std::cell::Cell;
use std::time::Duration;

use env::Instant;

use crate::progress::{Direction, Progress, Speed, Sum};
use crate::session::SessionId;

/// Time between two lines about a session that is under way.
pub(crate) const SAID_EVERY: Duration = Duration::from_secs(60);
/// Time between two lines about events that take long.
const SLOW_SAID_EVERY: Duration = Duration::from_secs(60);

/// What a session did, once it is over.
pub(crate) fn summary(id: SessionId, progress: &Progress, now: Instant) -> String {
    let of = |sum: Sum| format!("{} files({})", sum.files_done, mebibytes(sum.bytes_done));
    format!(
        "[Stream #{} ID#{}] Received {}, sent {} with /{} in {:.3} s, {}",
        id.plan,
        id.session,
        of(progress.sum(Direction::In)),
        of(progress.sum(Direction::Out)),
        id.peer,
        progress.speed(now).elapsed.as_secs_f64(),
        rate(progress.mean(now)),
    )
}

/// How far a session is.
pub(crate) fn so_far(id: SessionId, progress: &Progress, now: Instant) -> String {
    let of = |sum: Sum| format!("{} of {}", mebibytes(sum.bytes_done), mebibytes(sum.bytes));
    let Speed { bytes_per_second, left, .. } = progress.speed(now);
    let left = left
        .map_or("time left unknown".to_owned(), |left| format!("about {} s left", left.as_secs()));
    format!(
        "[Stream #{} ID#{}] Received {}, sent {} with /{}, {}, {left}",
        id.plan,
        id.session,
        of(progress.sum(Direction::In)),
        of(progress.sum(Direction::Out)),
        id.peer,
        rate(bytes_per_second),
    )
}

pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.3}MiB", bytes as f64 / f64::from(1 << 20))
}

fn rate(bytes_per_second: u64) -> String {
    format!("{:.2} MiB/s", bytes_per_second as f64 / f64::from(1 << 20))
}

/// Says, now and then, that handling an event took long (`StreamResultFuture.fireStreamEvent`).
#[derive(Debug)]
pub(crate) struct SlowEvents {
    limit: Duration,
    said: Cell<Option<Instant>>,
}

impl SlowEvents {
    pub fn new(limit: Duration) -> Self {
        Self { limit, said: Cell::new(None) }
    }

    /// Handling an event took so long: what is to be said of it.
    pub fn look(&self, took: Duration, now: Instant) -> Option<String> {
        let is_silent = self.said.get().is_some_and(|said| now.since(said) < SLOW_SAID_EVERY);
        if took <= self.limit || is_silent {
            return None;
        }
        self.said.set(Some(now));
        let limit = self.limit;
        Some(format!("Handling streaming events took longer than {limit:?}; took {took:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::{FileKey, FileView, TableView};
    use schema::TableId;
    use types::{Address, Uuid};

    #[test]
    fn lines_have_bytes_rate_and_time_left() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let id = SessionId { plan: Uuid(7), peer: Address::new([10, 0, 0, 2], 7000), session: 1 };
        let progress = Progress::new(at(0));
        let (table, sequence) = (TableId([1; 16]), 0);
        let key = FileKey { direction: Direction::In, table, sequence };
        progress.announce(Direction::In, TableView::new(table, 1, 40 << 20));
        progress.begin(key, FileView::new("f".to_owned(), 1, 40 << 20));
        let end = |text: String| text.split_once("] ").unwrap().1.to_owned();
        assert_eq!(
            end(so_far(id, &progress, at(1))),
            "Received 0.000MiB of 40.000MiB, sent 0.000MiB of 0.000MiB with /10.0.0.2:7000, 0.00 \
             MiB/s, time left unknown"
        );
        progress.went_on(key, 10 << 20, at(2));
        assert_eq!(
            end(so_far(id, &progress, at(2))),
            "Received 10.000MiB of 40.000MiB, sent 0.000MiB of 0.000MiB with /10.0.0.2:7000, 5.00 \
             MiB/s, about 6 s left"
        );
        progress.went_on(key, 30 << 20, at(4));
        assert_eq!(
            end(summary(id, &progress, at(4))),
            "Received 1 files(40.000MiB), sent 0 files(0.000MiB) with /10.0.0.2:7000 in 4.000 s, \
             10.00 MiB/s"
        );
    }

    #[test]
    fn slow_events_are_said_once_a_minute() {
        let slow = SlowEvents::new(Duration::from_secs(10));
        let look = |took, now| {
            let now = Instant::ZERO + Duration::from_secs(now);
            slow.look(Duration::from_secs(took), now).is_some()
        };
        assert!(!look(10, 100));
        assert!(look(11, 100));
        assert!(!look(11, 159));
        assert!(look(11, 160));
    }
}
