//! Holds all compactions of the node together to `compaction_throughput`.

use std::cell::Cell;
use std::time::Duration;

use env::{Env, Instant};

/// The longest pause at once: a changed limit, and a stop, are noticed after it.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The limiter.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// 0 for no limit.
    bytes_per_second: Cell<u64>,
    /// When what was taken so far is paid for.
    paid: Cell<Option<Instant>>,
}

impl Throttle {
    pub fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: Cell::new(bytes_per_second), paid: Cell::new(None) }
    }

    pub fn rate(&self) -> u64 {
        self.bytes_per_second.get()
    }

    pub fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.set(bytes_per_second);
        self.paid.set(None);
    }

    /// Counts bytes, and waits until they are paid for or `stops` says so.
    pub async fn take(&self, env: &Env, bytes: u64, stops: impl Fn() -> bool) {
        let rate = self.rate();
        if bytes == 0 || rate == 0 {
            return;
        }
        let now = env.now();
        let start = self.paid.get().map_or(now, |paid| paid.max(now));
        let due = start + Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.paid.set(Some(due));
        while env.now() < due && self.rate() == rate && !stops() {
            env.sleep_until(due.min(env.now() + PAUSE_MAX)).await;
        }
    }
}
