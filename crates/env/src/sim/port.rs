//! What a simulated shard has of the outside.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Inner;
use super::later::later;
use super::machine::{NodeId, SimNode};
use crate::io_queue::IoQueue;
use crate::time::nanos;

/// Operations that wait for the disk; each starts when it is called.
pub(crate) type Waiting = IoQueue<Box<dyn FnOnce(&Port)>>;

/// The outside of one simulated shard.
pub(crate) struct Port {
    pub world: Rc<Inner>,
    pub node: Rc<SimNode>,
    pub life: u64,
    /// CPU time used in the turn that runs now, in nanoseconds.
    pub used: Cell<u64>,
    pub(super) busy_until: Cell<u64>,
    /// Operations that wait for the disk.
    pub disk: RefCell<Waiting>,
}

impl Port {
    /// Monotonic nanoseconds as this shard sees them.
    pub fn now_ns(&self) -> u64 {
        self.world.now.get() + self.used.get()
    }

    pub fn unix_micros(&self) -> i64 {
        let micros = i64::try_from(self.now_ns() / 1000).unwrap_or(i64::MAX);
        micros.saturating_add(self.node.clock_offset.get())
    }

    /// This life of this node.
    pub fn owner(&self) -> Option<(NodeId, u64)> {
        Some((self.node.id, self.life))
    }

    /// False once the process that this shard was part of is gone.
    pub fn is_alive(&self) -> bool {
        self.node.is_up() && self.node.life.get() == self.life
    }

    /// Something happens to this life of the node, some time from the shard's now.
    pub fn after(&self, delay: u64, action: impl FnOnce(&Rc<Inner>) + 'static) {
        self.world.at(self.now_ns().saturating_add(delay), self.owner(), action);
    }

    /// The dice for [`Env::should_yield`]; asking costs CPU time.
    pub fn should_yield(&self, slice_start: u64) -> bool {
        self.used.set(self.used.get() + self.world.rng.between(100, 20_000));
        self.world.rng.one_in(8)
            || self.now_ns().saturating_sub(slice_start) > nanos(crate::slice::SLICE)
    }

    /// Runs `f` at a later point, as a helper thread would.
    pub async fn helper<T: 'static>(&self, f: impl FnOnce() -> T + 'static) -> T {
        let (fill, result) = later();
        self.after(self.world.rng.between(10_000, 3_000_000), move |_| fill(f()));
        result.await
    }
}
