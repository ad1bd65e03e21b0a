//! A timer that is exact to a tenth of a millisecond: the runtime's own rounds up to a whole one, which would be a part of each latency
//! that counts from when an operation was due.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::Outcome;

/// How long the thread sleeps where nobody waits for anything.
const IDLE: Duration = Duration::from_secs(3600);

/// When, and whom to tell.
type Wait = (Instant, oneshot::Sender<()>);

/// A thread that sleeps for others; it ends with this value.
pub struct Timer(Sender<Wait>);

impl Timer {
    pub fn start() -> Outcome<Self> {
        let (sender, waits) = channel();
        std::thread::Builder::new().name("timer".to_owned()).spawn(move || sleep(&waits))?;
        Ok(Self(sender))
    }

    /// Waits until then.
    pub async fn until(&self, when: Instant) {
        if when <= Instant::now() {
            return;
        }
        let (tell, told) = oneshot::channel();
        if self.0.send((when, tell)).is_ok() {
            let _ = told.await;
        }
    }
}

fn sleep(waits: &Receiver<Wait>) {
    // several may wait for the same instant
    let mut waiting: BTreeMap<(Instant, u64), oneshot::Sender<()>> = BTreeMap::new();
    for number in 0.. {
        let now = Instant::now();
        let limit = waiting.first_key_value().map_or(IDLE, |((at, _), _)| at.duration_since(now));
        match waits.recv_timeout(limit) {
            Ok((when, tell)) => drop(waiting.insert((when, number), tell)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        while let Some(first) = waiting.first_entry()
            && first.key().0 <= now
        {
            // whoever waits no more need not be told
            let _ = first.remove().send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Timer;

    #[test]
    fn nobody_is_woken_early_and_all_are() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let timer = Timer::start().expect("a thread");
        let begin = Instant::now();
        let waits = [30, 10, 20, 10, 0].map(|ms| {
            let (timer, when) = (&timer, begin + Duration::from_millis(ms));
            async move {
                timer.until(when).await;
                assert!(Instant::now() >= when);
            }
        });
        runtime.block_on(futures::future::join_all(waits));
    }
}
