//! A timer that is exact to some microseconds: the runtime's own rounds up to a whole millisecond,
//! which would be a part of each latency that counts from when an operation was due.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::Outcome;

/// One task's: it waits on it for one thing at a time. A file of the kernel, so that no other
/// thread is woken, nor this one by another.
pub struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    #[allow(
        deprecated,
        reason = "unsound for a descriptor that another one may close: this one is owned"
    )]
    pub fn new() -> Outcome<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self(AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)?))
    }

    /// Waits until then.
    ///
    /// # Panics
    /// Where the kernel has no time: there is no load without it.
    pub async fn until(&mut self, when: Instant) {
        loop {
            let left = when.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.set(left).expect("a timer that was made is set");
            let mut told = self.0.readable().await.expect("a timer is waited for");
            // setting it again takes back that it has run out: nobody reads how often it did
            told.clear_ready();
        }
    }

    fn set(&self, left: Duration) -> rustix::io::Result<()> {
        let left =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: left };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Timer;

    #[test]
    fn nobody_is_woken_early_and_all_are() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let begin = Instant::now();
        let waits = [&[30, 40][..], &[10, 10, 11], &[20], &[0, 5]].map(|all| async move {
            let mut timer = Timer::new().expect("a timer");
            for ms in all {
                let when = begin + Duration::from_millis(*ms);
                timer.until(when).await;
                assert!(Instant::now() >= when);
            }
        });
        runtime.block_on(futures::future::join_all(waits));
    }
}
