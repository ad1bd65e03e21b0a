//! The primitives at their edges: cancelled waiters lose nothing.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use super::*;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_ring_that_is_not_heard_passes_on() {
    let bell = Notify::new();
    let mut second = pin!(bell.notified());
    {
        let mut first = pin!(bell.notified());
        assert!(poll(first.as_mut()).is_pending());
        assert!(poll(second.as_mut()).is_pending());
        bell.notify_one();
        // `first` was rung, and is dropped before it is polled.
    }
    assert!(poll(second.as_mut()).is_ready());
    let mut third = pin!(bell.notified());
    assert!(poll(third.as_mut()).is_pending());
    bell.notify_all();
    assert!(poll(third.as_mut()).is_ready());
    bell.notify_one();
    assert!(poll(pin!(bell.notified())).is_ready());
    assert!(poll(pin!(bell.notified())).is_pending());
}

#[test]
fn a_notified_made_before_the_ring_hears_it() {
    let bell = Notify::new();
    let mut early = pin!(bell.notified());
    bell.notify_all();
    assert!(poll(early.as_mut()).is_ready());
}

#[test]
fn permits_of_cancelled_waiters_come_back() {
    let sem = Semaphore::new(4);
    let held = sem.try_acquire(3).unwrap();
    let mut small = pin!(sem.acquire(1));
    {
        let mut large = pin!(sem.acquire(4));
        assert!(poll(large.as_mut()).is_pending());
        // One is free, but the large request is first.
        assert!(poll(small.as_mut()).is_pending());
        assert_eq!(sem.waiting(), 2);
    }
    // The large one gave up.
    let Poll::Ready(permit) = poll(small.as_mut()) else { panic!("granted") };
    drop(held);
    {
        let mut granted = pin!(sem.acquire(4));
        assert!(poll(granted.as_mut()).is_pending());
        drop(permit);
        // Granted, and dropped before it is polled.
    }
    assert_eq!((sem.available(), sem.waiting()), (4, 0));
    let mut permit = sem.try_acquire(4).unwrap();
    let part = permit.split(1);
    permit.shrink(2);
    assert_eq!((permit.count(), part.count(), sem.available()), (1, 1, 2));
    permit.merge(part);
    drop(permit);
    assert_eq!(sem.available(), 4);
    assert_eq!(sem.forget(9), 4);
    assert!(sem.try_acquire(1).is_err());
}

#[test]
fn queues_are_bounded_and_close() {
    let queue = Queue::new(2);
    queue.try_push(1).unwrap();
    queue.try_push(2).unwrap();
    assert_eq!(queue.try_push(3), Err(Full(3)));
    let mut push = pin!(queue.push(3));
    assert!(poll(push.as_mut()).is_pending());
    assert_eq!(queue.try_pop(), Some(1));
    assert_eq!(poll(push.as_mut()), Poll::Ready(Ok(())));
    queue.close();
    assert_eq!(poll(pin!(queue.push(4))), Poll::Ready(Err(Full(4))));
    assert_eq!(poll(pin!(queue.pop())), Poll::Ready(Ok(2)));
    assert_eq!(poll(pin!(queue.pop())), Poll::Ready(Ok(3)));
    assert_eq!(poll(pin!(queue.pop())), Poll::Ready(Err(Closed)));
}
