//! The slots in which compactions run: `concurrent_compactors` of them.

use std::cell::Cell;
use std::rc::Rc;

use env::sync::Notify;

/// The node's slots.
pub(super) struct Slots {
    count: Cell<usize>,
    active: Cell<usize>,
    /// Those who wait for a slot to do what the operator asked for: they go before tables in the
    /// queue.
    waiting: Cell<usize>,
    /// A slot became free, or a task ended.
    freed: Notify,
}

/// A slot, taken.
pub(super) struct Slot(Rc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
        self.0.freed.notify_all();
    }
}

impl Slots {
    pub fn new(count: usize) -> Rc<Self> {
        Rc::new(Self {
            count: Cell::new(count.max(1)),
            active: Cell::new(0),
            waiting: Cell::new(0),
            freed: Notify::new(),
        })
    }

    pub fn count(&self) -> usize {
        self.count.get()
    }

    pub fn set_count(&self, count: usize) {
        self.count.set(count.max(1));
        self.freed.notify_all();
    }

    fn is_free(&self) -> bool {
        self.active.get() < self.count.get()
    }

    fn take(self: &Rc<Self>) -> Slot {
        self.active.set(self.active.get() + 1);
        Slot(Rc::clone(self))
    }

    /// Takes one, if one is free that nobody waits for.
    pub fn try_take(self: &Rc<Self>) -> Option<Slot> {
        (self.is_free() && self.waiting.get() == 0).then(|| self.take())
    }

    /// Waits for one.
    pub async fn wait(self: &Rc<Self>) -> Slot {
        self.waiting.set(self.waiting.get() + 1);
        while !self.is_free() {
            self.freed.notified().await;
        }
        self.waiting.set(self.waiting.get() - 1);
        self.take()
    }

    /// SSTables are free that no task worked on.
    pub fn tell(&self) {
        self.freed.notify_all();
    }

    /// Waits until a task has ended.
    pub async fn ended(&self) {
        self.freed.notified().await;
    }
}
