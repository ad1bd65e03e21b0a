//! Holds work of the node to so many bytes a second: all compactions together to
//! `compaction_throughput`, what is sent to other nodes to its limits.

use std::cell::Cell;
use std::time::Duration;

use env::{Env, Instant};

/// The longest pause at once: a changed limit, and a stop, are noticed after it.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A debt smaller than this is left for later: a pause for each small partition would cost more
/// than to merge it.
const PAUSE_LEAST: Duration = Duration::from_millis(4);

/// The limiter.
#[derive(Debug)]
pub struct Throttle {
    /// 0 for no limit.
    bytes_per_second: Cell<u64>,
    /// When what was taken so far is paid for.
    paid: Cell<Option<Instant>>,
}

impl Throttle {
    /// With a limit; 0 for none.
    pub fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: Cell::new(bytes_per_second), paid: Cell::new(None) }
    }

    /// The limit; 0 for none.
    pub fn rate(&self) -> u64 {
        self.bytes_per_second.get()
    }

    /// Sets the limit.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.set(bytes_per_second);
        self.paid.set(None);
    }

    /// Counts bytes, and waits until they are paid for or `stops` says so; little at a time may
    /// stay owed.
    pub async fn take(&self, env: &Env, bytes: u64, stops: impl Fn() -> bool) {
        let rate = self.rate();
        if bytes == 0 || rate == 0 {
            return;
        }
        let now = env.now();
        let start = self.paid.get().map_or(now, |paid| paid.max(now));
        let due = start + Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.paid.set(Some(due));
        if due < now + PAUSE_LEAST {
            return;
        }
        while env.now() < due && self.rate() == rate && !stops() {
            env.sleep_until(due.min(env.now() + PAUSE_MAX)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::{IpAddr, Ipv4Addr};
    use std::rc::Rc;

    use env::sim::{World, WorldOptions};

    use super::*;
    use crate::error::StorageError;

    #[test]
    fn many_small_pieces_take_their_time_in_few_pauses() {
        const PIECES: u32 = 4096;
        let world = World::new(1, WorldOptions::default());
        let node = world.node(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let done = Rc::new(Cell::new(None));
        let ended = Rc::clone(&done);
        world.start::<(), _, _, StorageError>(node, 1, move |env, _| {
            let ended = Rc::clone(&ended);
            async move {
                let throttle = Throttle::new(1 << 20);
                let (began, mut pauses) = (env.now(), 0_u32);
                for _ in 0..PIECES {
                    let before = env.now();
                    throttle.take(&env, 1 << 10, || false).await;
                    pauses += u32::from(env.now() > before);
                }
                ended.set(Some((env.now().since(began), pauses)));
                env.terminated().await;
                Ok(())
            }
        });
        world.run_until(|| done.get().is_some(), Duration::from_secs(60)).expect("it ends");
        let (took, pauses) = done.get().expect("it is over");
        let whole = Duration::from_secs(4);
        assert!(took <= whole && took + PAUSE_LEAST >= whole, "{took:?}");
        // each pays for four pieces
        assert!(pauses <= PIECES / 4, "{pauses}");
    }
}
