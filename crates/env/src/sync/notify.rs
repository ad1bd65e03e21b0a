//! A bell: wakes tasks that wait for a state to change.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
struct State {
    /// Rings of `notify_all` so far.
    epoch: Cell<u64>,
    /// A `notify_one` that found nobody waiting.
    stored: Cell<bool>,
    /// Waiters, oldest first by key.
    waiters: RefCell<std::collections::BTreeMap<u64, Option<Waker>>>,
    next: Cell<u64>,
}

/// A bell shared by the tasks of one shard; clones ring the same bell.
#[derive(Clone, Debug, Default)]
pub struct Notify(Rc<State>);

impl Notify {
    /// A new bell.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everyone who waits now. A [`Notified`] made before the call hears it, polled or not.
    pub fn notify_all(&self) {
        self.0.epoch.set(self.0.epoch.get().wrapping_add(1));
        let waiters = std::mem::take(&mut *self.0.waiters.borrow_mut());
        waiters.into_values().flatten().for_each(Waker::wake);
    }

    /// Wakes the longest waiting; with nobody waiting, the next to wait goes through at once.
    pub fn notify_one(&self) {
        let first = {
            let mut waiters = self.0.waiters.borrow_mut();
            let key = waiters.iter().find(|(_, w)| w.is_some()).map(|(k, _)| *k);
            key.and_then(|key| waiters.get_mut(&key).and_then(Option::take))
        };
        match first {
            Some(waker) => waker.wake(),
            None => self.0.stored.set(true),
        }
    }

    /// Waits for the next ring.
    pub fn notified(&self) -> Notified {
        Notified { bell: self.0.clone(), epoch: self.0.epoch.get(), key: None }
    }
}

/// Future of one ring.
#[derive(Debug)]
pub struct Notified {
    bell: Rc<State>,
    epoch: u64,
    key: Option<u64>,
}

impl Future for Notified {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.bell.epoch.get() != self.epoch {
            self.key = None;
            return Poll::Ready(());
        }
        if let Some(key) = self.key {
            let bell = self.bell.clone();
            let mut waiters = bell.waiters.borrow_mut();
            return match waiters.get_mut(&key) {
                // `notify_one` took the waker: this ring is ours.
                Some(None) | None => {
                    waiters.remove(&key);
                    self.key = None;
                    Poll::Ready(())
                }
                Some(Some(waker)) => {
                    waker.clone_from(cx.waker());
                    Poll::Pending
                }
            };
        }
        if self.bell.stored.replace(false) {
            return Poll::Ready(());
        }
        let key = self.bell.next.get();
        self.bell.next.set(key + 1);
        self.bell.waiters.borrow_mut().insert(key, Some(cx.waker().clone()));
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        if self.bell.epoch.get() != self.epoch {
            return;
        }
        let removed = self.bell.waiters.borrow_mut().remove(&key);
        // Rung but never heard: pass it on, or the ring is lost.
        if matches!(removed, Some(None)) {
            Notify(self.bell.clone()).notify_one();
        }
    }
}
