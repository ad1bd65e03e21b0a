//! Who may change a partition now: what reads before it writes does both in its turn.

use std::cell::RefCell;
use std::collections::BTreeMap;

use env::sync::{Permit, Semaphore};

/// The partitions of a shard that somebody changes or waits to change.
#[derive(Default)]
pub(crate) struct Turns {
    queues: RefCell<BTreeMap<Box<[u8]>, Semaphore>>,
}

/// The turn at a partition; given up on drop.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    key: Box<[u8]>,
    permit: Option<Permit>,
}

impl Turns {
    /// Waits for the turn at a partition, after those who asked before.
    pub async fn take(&self, key: &[u8]) -> Turn<'_> {
        let queue = {
            let mut queues = self.queues.borrow_mut();
            queues.entry(key.into()).or_insert_with(|| Semaphore::new(1)).clone()
        };
        // Given up while it waits, it still clears the queue away.
        let mut turn = Turn { turns: self, key: key.into(), permit: None };
        turn.permit = Some(queue.acquire(1).await);
        turn
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut queues = self.turns.queues.borrow_mut();
        let idle = |queue: &Semaphore| queue.waiting() == 0 && queue.available() == 1;
        if queues.get(&self.key).is_some_and(idle) {
            queues.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn one_at_a_time_in_order_and_nothing_is_left() {
        let turns = Turns::default();
        let (mut a, mut b, mut c) =
            (pin!(turns.take(b"k")), Box::pin(turns.take(b"k")), pin!(turns.take(b"k")));
        let Poll::Ready(first) = poll(a.as_mut()) else { panic!("the queue is empty") };
        assert!(poll(b.as_mut()).is_pending());
        assert!(poll(c.as_mut()).is_pending());
        assert!(poll(pin!(turns.take(b"other"))).is_ready());
        drop(b);
        assert!(poll(c.as_mut()).is_pending());
        drop(first);
        let Poll::Ready(third) = poll(c.as_mut()) else { panic!("nobody is before it") };
        drop(third);
        assert!(turns.queues.borrow().is_empty());
    }
}
