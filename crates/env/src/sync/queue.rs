//! A bounded queue between tasks of one shard.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::notify::Notify;

#[derive(Debug)]
struct State<T> {
    items: RefCell<VecDeque<T>>,
    limit: usize,
    closed: Cell<bool>,
    not_empty: Notify,
    not_full: Notify,
}

/// A bounded first-in first-out queue; clones are ends of the same queue, and any may push or pop.
#[derive(Debug)]
pub struct Queue<T>(Rc<State<T>>);

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The queue is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is closed")]
pub struct Closed;

/// The item was not taken: the queue is at its limit, or closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full or closed")]
pub struct Full<T>(pub T);

impl<T> Queue<T> {
    /// A queue of at most `limit` items (at least 1).
    pub fn new(limit: usize) -> Self {
        Self(Rc::new(State {
            items: RefCell::default(),
            limit: limit.max(1),
            closed: Cell::new(false),
            not_empty: Notify::new(),
            not_full: Notify::new(),
        }))
    }

    /// Items queued.
    pub fn len(&self) -> usize {
        self.0.items.borrow().len()
    }

    /// True with nothing queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts an item in if there is room.
    pub fn try_push(&self, item: T) -> Result<(), Full<T>> {
        if self.0.closed.get() || self.len() >= self.0.limit {
            return Err(Full(item));
        }
        self.0.items.borrow_mut().push_back(item);
        self.0.not_empty.notify_one();
        Ok(())
    }

    /// Puts an item in, waiting for room; gives it back if the queue is closed. Dropped while
    /// waiting, the item is gone with the future.
    pub async fn push(&self, item: T) -> Result<(), Full<T>> {
        let mut item = item;
        loop {
            match self.try_push(item) {
                Ok(()) => return Ok(()),
                Err(Full(back)) if self.0.closed.get() => return Err(Full(back)),
                Err(Full(back)) => item = back,
            }
            self.0.not_full.notified().await;
        }
    }

    /// Takes the oldest item, if any.
    pub fn try_pop(&self) -> Option<T> {
        let item = self.0.items.borrow_mut().pop_front();
        if item.is_some() {
            self.0.not_full.notify_one();
        }
        item
    }

    /// Takes the oldest item, waiting for one; `Closed` once the queue is closed and empty.
    pub async fn pop(&self) -> Result<T, Closed> {
        loop {
            if let Some(item) = self.try_pop() {
                // One ring may stand for several items: pass it on.
                if !self.is_empty() {
                    self.0.not_empty.notify_one();
                }
                return Ok(item);
            }
            if self.0.closed.get() {
                return Err(Closed);
            }
            self.0.not_empty.notified().await;
        }
    }

    /// Refuses further items; what is queued can still be popped.
    pub fn close(&self) {
        self.0.closed.set(true);
        self.0.not_empty.notify_all();
        self.0.not_full.notify_all();
    }

    /// True after [`Queue::close`].
    pub fn is_closed(&self) -> bool {
        self.0.closed.get()
    }
}
