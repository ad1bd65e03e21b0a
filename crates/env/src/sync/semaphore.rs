//! Permits, given in the order in which they were asked for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
struct Waiter {
    wants: u64,
    waker: Waker,
    granted: bool,
}

#[derive(Debug)]
struct State {
    free: Cell<u64>,
    waiters: RefCell<BTreeMap<u64, Waiter>>,
    /// Waiters not granted yet.
    pending: Cell<usize>,
    next: Cell<u64>,
}

/// Counts permits (requests, bytes: the unit is the user's). First come, first served: a large
/// request is not overtaken by small ones. Clones share the permits.
#[derive(Clone, Debug)]
pub struct Semaphore(Rc<State>);

/// Not enough permits free, or others wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no permits free")]
pub struct TryAcquireError;

impl Semaphore {
    /// A semaphore with `permits` free.
    pub fn new(permits: u64) -> Self {
        Self(Rc::new(State {
            free: Cell::new(permits),
            waiters: RefCell::default(),
            pending: Cell::new(0),
            next: Cell::new(0),
        }))
    }

    /// Permits free now.
    pub fn available(&self) -> u64 {
        self.0.free.get()
    }

    /// Tasks that wait for permits.
    pub fn waiting(&self) -> usize {
        self.0.pending.get()
    }

    /// Takes `n` permits now, or not at all.
    pub fn try_acquire(&self, n: u64) -> Result<Permit, TryAcquireError> {
        let free = self.0.free.get();
        if self.0.pending.get() > 0 || free < n {
            return Err(TryAcquireError);
        }
        self.0.free.set(free - n);
        Ok(Permit { state: self.0.clone(), n })
    }

    /// Waits for `n` permits. More than the semaphore ever holds waits until some are added.
    pub fn acquire(&self, n: u64) -> Acquire {
        Acquire { state: self.0.clone(), wants: n, key: None }
    }

    /// Adds permits.
    pub fn add(&self, n: u64) {
        self.0.release(n);
    }

    /// Takes up to `n` free permits out for good; says how many.
    pub fn forget(&self, n: u64) -> u64 {
        let taken = self.0.free.get().min(n);
        self.0.free.set(self.0.free.get() - taken);
        taken
    }
}

impl State {
    fn release(&self, n: u64) {
        self.free.set(self.free.get().saturating_add(n));
        if self.pending.get() > 0 {
            self.grant();
        }
    }

    fn grant(&self) {
        let mut wake = Vec::new();
        for waiter in self.waiters.borrow_mut().values_mut().filter(|w| !w.granted) {
            let free = self.free.get();
            if waiter.wants > free {
                break;
            }
            self.free.set(free - waiter.wants);
            self.pending.set(self.pending.get() - 1);
            waiter.granted = true;
            wake.push(waiter.waker.clone());
        }
        wake.into_iter().for_each(Waker::wake);
    }
}

/// Permits held; given back on drop.
#[derive(Debug)]
pub struct Permit {
    state: Rc<State>,
    n: u64,
}

impl Permit {
    /// How many.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// Gives `n` of them back early (at most all).
    pub fn shrink(&mut self, n: u64) {
        let n = n.min(self.n);
        self.n -= n;
        self.state.release(n);
    }

    /// Joins another permit of the same semaphore into this one.
    pub fn merge(&mut self, mut other: Permit) {
        debug_assert!(Rc::ptr_eq(&self.state, &other.state), "permits of two semaphores");
        self.n += std::mem::take(&mut other.n);
    }

    /// Splits `n` (at most all) off into a permit of its own.
    pub fn split(&mut self, n: u64) -> Permit {
        let n = n.min(self.n);
        self.n -= n;
        Permit { state: self.state.clone(), n }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.n > 0 {
            self.state.release(self.n);
        }
    }
}

/// Future of permits.
#[derive(Debug)]
pub struct Acquire {
    state: Rc<State>,
    wants: u64,
    key: Option<u64>,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        let state = self.state.clone();
        if let Some(key) = self.key {
            let mut waiters = state.waiters.borrow_mut();
            let Some(waiter) = waiters.get_mut(&key) else { return Poll::Pending };
            if !waiter.granted {
                waiter.waker.clone_from(cx.waker());
                return Poll::Pending;
            }
            waiters.remove(&key);
            self.key = None;
            drop(waiters);
            return Poll::Ready(Permit { state, n: self.wants });
        }
        let free = state.free.get();
        if state.pending.get() == 0 && free >= self.wants {
            state.free.set(free - self.wants);
            return Poll::Ready(Permit { state, n: self.wants });
        }
        let key = state.next.get();
        state.next.set(key + 1);
        let waiter = Waiter { wants: self.wants, waker: cx.waker().clone(), granted: false };
        state.waiters.borrow_mut().insert(key, waiter);
        state.pending.set(state.pending.get() + 1);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let Some(waiter) = self.state.waiters.borrow_mut().remove(&key) else { return };
        if waiter.granted {
            self.state.release(waiter.wants);
        } else {
            self.state.pending.set(self.state.pending.get() - 1);
            // A large request gave up: those behind it may fit now.
            self.state.grant();
        }
    }
}
