//! Requests a second of the whole node (`native_transport_max_requests_per_second`), as Cassandra
//! counts them: permits lie on a line of time, and what is not used within a second is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use env::Instant;

/// Nanoseconds of permits that may gather.
const BURST_NANOS: u64 = 1_000_000_000;
/// Nanoseconds in a second.
const SECOND_NANOS: u64 = 1_000_000_000;

/// Where the next permit lies: one for all shards, and touched only where there is a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextPermit(Arc<AtomicU64>);

/// A limit of requests a second.
#[derive(Debug)]
pub(crate) struct RequestRate {
    next: NextPermit,
    per_second: u32,
}

impl RequestRate {
    pub fn new(next: NextPermit, per_second: u32) -> Self {
        Self { next, per_second: per_second.max(1) }
    }

    fn interval(&self) -> u64 {
        SECOND_NANOS / u64::from(self.per_second)
    }

    /// Takes a permit if one is there.
    pub fn try_reserve(&self, now: Instant) -> bool {
        let now = now.as_nanos();
        let take = |next: u64| {
            let next = next.max(now.saturating_sub(BURST_NANOS));
            (next <= now).then_some(next + self.interval())
        };
        self.next.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes a permit, be it one of the future: how long until then.
    pub fn reserve(&self, now: Instant) -> Duration {
        let now = now.as_nanos();
        let floor = now.saturating_sub(BURST_NANOS);
        let take = |next: u64| Some(next.max(floor) + self.interval());
        let taken = self.next.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let taken = taken.unwrap_or_default().max(floor);
        Duration::from_nanos(taken.saturating_sub(now))
    }

    /// What an OVERLOADED error says, in Cassandra's words.
    pub fn overloaded(&self) -> String {
        format!(
            "Request breached global limit of {} requests/second. Server is currently in an \
             overloaded state and cannot accept more requests.",
            self.per_second
        )
    }

    /// The warning of a request that was let in above the limit.
    pub fn warning(&self) -> String {
        format!(
            "Request breached global limit of {} requests/second and triggered backpressure.",
            self.per_second
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_second_of_permits_gathers_and_no_more() {
        let rate = RequestRate::new(NextPermit::default(), 10);
        let burst = (0..50).filter(|_| rate.try_reserve(at(60_000))).count();
        assert_eq!(burst, 11);
        assert!(!rate.try_reserve(at(60_099)));
        assert!(rate.try_reserve(at(60_100)));
        assert!(!rate.try_reserve(at(60_100)));
    }

    #[test]
    fn permits_of_the_future_are_waited_for() {
        let rate = RequestRate::new(NextPermit::default(), 10);
        let delays: Vec<u64> =
            (0..14).map(|_| rate.reserve(at(60_000)).as_millis() as u64).collect();
        assert_eq!(delays[..11], [0; 11]);
        assert_eq!(delays[11..], [100, 200, 300]);
        // they count for those who do not wait
        assert!(!rate.try_reserve(at(60_300)));
        assert!(rate.try_reserve(at(60_400)));
    }
}
